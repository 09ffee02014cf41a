"""The one plan: all that parties and analyst agree on for a message of sums, whatever its statistics are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._frames import plain_column
from .._typing import FloatArray, PartyName
from ..errors import AgreementError, NumericalError
from ..linalg import gaussian_sigma
from ._isolated_rows import IsolatedRows
from ._masked_sum import MaskedMessage, MaskedSum, MaskKey
from ._recommended import TABLE
from ._ridge_regression import RidgeRegression
from ._ridge_sums import RidgeSums
from ._statistic import (
    RIDGE_MOVED,
    Refused,
    Statistic,
    StatisticResult,
    StudyTable,
    columns_of,
    new_secret,
    refuse_total,
)
from ._sums_model import SumsModel


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """All that parties and analyst agree on for one message that carries one or several statistics.

    Parameters
    ----------
    roster : mapping of str or int to bytes
        Public mask keys, by party.
    statistics : sequence of Statistic
        Each of another class; ridge regression by itself.
    facts : mapping, optional
        Other facts of the agreement.  JSON.
    epsilon : float, optional
        If given, all noise is raised until the message is (epsilon, delta)-differentially private for one row.
    delta : float, default=1e-5
    n_colluding : int, optional
        See `MaskedSum`.

    Raises
    ------
    AgreementError
        As the statistics and `MaskedSum` raise it.

    Examples
    --------
    >>> from datacollab.study import CategoryColumn, Counts, StudyPlan
    >>> from datacollab.sums import MaskKey
    >>> keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    >>> roster = {name: key.public for name, key in keys.items()}
    >>> plan = StudyPlan(roster, [Counts([CategoryColumn("course", ["mild", "severe", "fatal"])])])
    >>> table = {"course": ["mild"] * 60 + ["severe"] * 30 + ["fatal"]}
    >>> (counts,) = plan.results([plan.message(name, table, key) for name, key in keys.items()])
    >>> counts.rare
    (('course', 'fatal'),)
    """

    roster: Mapping[PartyName, bytes] = field(repr=False)
    statistics: Sequence[Statistic]
    facts: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    delta: float = 1e-5
    n_colluding: int | None = None

    def __post_init__(self) -> None:
        titles = [each.title for each in self.statistics]
        if not titles or len(set(titles)) < len(titles):
            raise AgreementError(f"A message carries each statistic once, and one at least; got {titles}.")
        if alone := [each.title for each in self.statistics if each.is_alone and len(titles) > 1]:
            raise AgreementError(f"{alone[0].capitalize()} needs a message of its own; got it beside others: {titles}.")
        _ = self.agreed  # It raises what is wrong with the plan.

    @cached_property
    def noise(self) -> float:
        """Return the noise in the `unit` of the statistics: that unit, or more if epsilon needs more."""
        unit = self._carried[0].unit
        if self.epsilon is None:
            return unit
        # The Gaussian mechanism: noise in proportion to how far one row moves all numbers together.
        return max(unit, gaussian_sigma(self.epsilon, self.delta) * self._moved)

    @property
    def raised(self) -> float:
        """Return the factor by which epsilon raises all noise."""
        return self.noise / self._carried[0].unit

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves all numbers at most, each in units of its noise."""
        return self._moved / self.noise

    @property
    def noise_of_sums(self) -> float:
        """Return the `noise` of `RidgeSums` that hides a row as well, in which the ledger counts."""
        return RIDGE_MOVED / self.loss if self.ridge is None else self.noise

    @cached_property
    def ridge(self) -> RidgeSums | None:
        """Return the sums of ridge regression, with the noise of the plan; None of statistics that make no model."""
        first = self.statistics[0]
        if not isinstance(first, RidgeRegression):
            return None
        return replace(first.sums, noise=self.noise)

    @property
    def shortens(self) -> bool:
        """Return whether rows that stand alone may be shortened, as `IsolatedRows` does.

        Not in tables of a study, whose counts would no longer be those of the table.  Nor for an epsilon: shortening
        depends on the party's other rows, so that replacing one row would move the sums farther than the proof allows.
        """
        return self.ridge is not None and self.epsilon is None

    @cached_property
    def agreed(self) -> MaskedSum:
        """Return the sum under masks."""
        agreements = [each.agreement() for each in self._carried]
        facts = {name: value for each in agreements for name, value in each.items()} | {"agreed": dict(self.facts)}
        # All of it goes into the digest on which masks depend: no message of another agreement cancels.
        noise = np.concatenate([each.spread_at(self.noise) for each in self._carried])
        return MaskedSum(facts, self.roster, noise=noise, n_colluding=self.n_colluding)

    def message(
        self, party: PartyName, table: StudyTable, key: MaskKey, *, noise_key: bytes | None = None
    ) -> MaskedMessage:
        """Make a party's message from its columns, and erase its key.

        It raises AgreementError if the table does not fit the columns, and the errors of `MaskedSum.mask`.
        """
        return self.agreed.mask(party, self.finish(self.add_up(table, new_secret())), key, noise_key=noise_key)

    def add_up(self, table: StudyTable, secret: bytes) -> list[FloatArray]:
        """Return sums over some rows of a party, for each statistic; `join` makes one of those of two batches.

        `secret`, as of `new_secret`, is the same for all batches of a message, and for no other.  It raises
        AgreementError if the table does not fit the columns.
        """
        table = columns_of(table)
        lengths = {len(plain_column(each)) for each in table.values()}
        if len(lengths) > 1:
            raise AgreementError(f"The columns have {len(lengths)} different lengths. Give one entry for each row.")
        return [each.add_up(table, secret) for each in self.statistics]

    def join(self, first: Sequence[FloatArray], second: Sequence[FloatArray]) -> list[FloatArray]:
        """Return the sums over the rows of both batches, for each statistic."""
        return [each.join(*own) for each, *own in zip(self.statistics, first, second, strict=True)]

    def finish(self, sums: Sequence[FloatArray]) -> FloatArray:
        """Return the numbers that a party masks, shape (n_numbers,), from the sums over all its rows.

        It raises AgreementError if clusters are so few that a total might be of one party alone.
        """
        # Nothing leaves if one of them must not.
        for each, own in zip(self.statistics, sums, strict=True):
            if fault := each.fault(own):
                raise AgreementError(fault)
        carried = zip(self._carried, sums, strict=True)
        return np.concatenate([each.finish(own, self.noise) for each, own in carried])

    def results(self, messages: Sequence[MaskedMessage]) -> list[Any]:
        """Add up the messages of all parties, and return the result of each statistic, or `Refused` for some of them.

        Raises
        ------
        AgreementError, ShareError
            As `MaskedSum.total` raises them; a ShareError also if no rows can give the total.
        NumericalError
            If no statistic can be had from the total; the message has the reason of each.
        """
        results = self.read(messages)
        for statistic, result in zip(self.statistics, results, strict=True):
            refuse_total(result.fault, statistic.title)
        return results

    def read(self, messages: Sequence[MaskedMessage]) -> list[StatisticResult]:
        """Return the same, but leave it to the caller to refuse a result with a `fault`."""
        ends = np.cumsum([len(each.spread) for each in self._carried])[:-1]
        parts = np.split(self.agreed.total(messages), ends)
        results = [self._result(each, part) for each, part in zip(self._carried, parts, strict=True)]
        if all(isinstance(each, Refused) for each in results):
            raise NumericalError(" ".join(each.reason for each in results if isinstance(each, Refused)))
        return results

    def _result(self, statistic: Statistic, part: FloatArray) -> StatisticResult:
        try:
            return statistic.result(part, n_parties=len(self.roster), noise=self.noise * self.agreed.excess)
        except NumericalError as error:
            # The same rows are not shared again, so that the others must not be lost.
            return Refused(str(error))

    @cached_property
    def _carried(self) -> tuple[Statistic, ...]:
        """Return the statistics with so much noise that no count can be read better from all of them together.

        Pieces of knowledge about a count add up: one over the squared noise of each copy.
        """
        copies = 1.0
        if len(self.statistics) > 1:
            copies = max(1.0, sum(each.own_copies for each in self.statistics))
        return tuple(replace(each, copies=copies) for each in self.statistics)

    @property
    def _moved(self) -> float:
        """Return how far replacing one row moves all numbers at most, in the unit of the noise."""
        return math.hypot(*(each.loss for each in self._carried))


@dataclass(frozen=True, eq=False, repr=False)
class SumsPlan:
    """The plan of one model: a `StudyPlan` of ridge regression, for rows and targets as arrays.

    Parameters
    ----------
    roster : mapping of str or int to bytes
        Public mask keys, by party.
    n_components : int
        Columns of the common map.
    classes : sequence, optional
        All classes; `limits` instead for numbers.
    limits : (float, float), optional
        The declared range of a numeric target.
    noise : float
        See `RidgeSums`.
    facts : mapping, optional
        Other facts of the agreement: project, purpose, columns, units, run.  JSON.
    n_colluding : int, optional
        See `MaskedSum`.
    least_penalty : float
        See `RidgeSums.solve`.  For columns that are all alike `recommended` has less noise and a smaller penalty.
    scale : str, optional
        See `RidgeSums`.
    epsilon : float, optional
        If given, `noise` is raised until the message is (epsilon, 1e-5)-differentially private for one row.

    Raises
    ------
    AgreementError
        As `RidgeSums` and `MaskedSum` raise it.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab.sums import CommonMap, MaskKey, SumsPlan
    >>> X, y = dc.datasets.load("digits")
    >>> common = CommonMap.from_anchor(X[:200], secret=bytes(32))
    >>> keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    >>> roster = {name: key.public for name, key in keys.items()}
    >>> plan = SumsPlan(roster, n_components=common.n_components, classes=range(10))
    >>> messages = []
    >>> for place, (name, key) in enumerate(keys.items()):
    ...     rows = slice(200 + 100 * place, 300 + 100 * place)
    ...     messages.append(plan.message(name, common.transform(X[rows]), y[rows], key))
    >>> model = plan.solve(messages)
    >>> bool((model.predict(common.transform(X[500:])) == y[500:]).mean() > 0.85)
    True
    """

    roster: Mapping[PartyName, bytes]
    n_components: int
    classes: Sequence[Any] | None = None
    limits: tuple[float, float] | None = None
    noise: float = TABLE.noise
    facts: Mapping[str, Any] = field(default_factory=dict)
    n_colluding: int | None = None
    least_penalty: float = TABLE.least_penalty
    scale: str | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        _ = self.study  # It raises what is wrong with the plan.

    @cached_property
    def study(self) -> StudyPlan:
        """Return the plan that this one stands for."""
        sums = RidgeSums(self.n_components, self.classes, self.limits, self.noise, self.scale)
        regression = RidgeRegression(sums, self.least_penalty)
        return StudyPlan(self.roster, [regression], self.facts, self.epsilon, n_colluding=self.n_colluding)

    @property
    def statistic(self) -> RidgeSums:
        """Return the sums that a party adds up, with the noise that epsilon needs."""
        assert self.study.ridge is not None
        return self.study.ridge

    @property
    def agreed(self) -> MaskedSum:
        """Return the sum under masks."""
        return self.study.agreed

    def message(
        self,
        party: PartyName,
        v: FloatArray,
        y: ArrayLike,
        key: MaskKey,
        *,
        noise_key: bytes | None = None,
        witness: NDArray[np.uint64] | None = None,
        public: tuple[FloatArray, ArrayLike] | None = None,
        shorten: bool = True,
    ) -> MaskedMessage:
        """Make a party's message, and erase its key.

        Parameters
        ----------
        v, y : ndarray of shape (n_rows, n_components), and array-like of shape (n_rows,)
            The party's rows in the common map, and their targets.
        party, key, noise_key, witness
            See `MaskedSum.mask`.
        public : (ndarray, array-like), optional
            Labelled public rows in the common map, and their targets, if this party adds them for all.
        shorten : bool, default=True
            Whether rows that stand alone are shortened first, as `IsolatedRows` does; never for an epsilon.

        Raises
        ------
        AgreementError, SharedBeforeError
            As `RidgeSums.part` and `MaskedSum.mask` raise them.
        """
        # The other parties' rows are taken to be like these.
        alone = IsolatedRows(self.statistic, len(self.roster))
        part = alone.part(v, y)
        if shorten and self.study.shortens:
            part = part + alone.correction()[0]
        if public is not None:
            part = part + self.statistic.part(*public)
        return self.agreed.mask(party, part, key, noise_key=noise_key, witness=witness)

    def solve(self, messages: Sequence[MaskedMessage]) -> SumsModel:
        """Add up the messages of all parties and fit the model; errors are those of `MaskedSum.total` and `model`."""
        return self.model(self.agreed.total(messages))

    def model(self, total: FloatArray) -> SumsModel:
        """Fit the model to a total of `agreed`, shape (n_numbers,); NumericalError as `RidgeSums.solve` raises it."""
        (regression,) = self.study.statistics
        noise = self.study.noise * self.agreed.excess
        model = regression.result(total, n_parties=len(self.roster), noise=noise).model(self.agreed.context)
        assert model is not None
        return model

    def __repr__(self) -> str:
        target = f"limits={self.limits}"
        if self.classes is not None:
            target = f"n_classes={len(self.classes)}"
        parties = list(self.roster)
        return (
            f"SumsPlan(parties={parties}, n_components={self.n_components}, {target}, noise={self.statistic.noise:.3g})"
        )
