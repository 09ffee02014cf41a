"""The columns of a study, what a statistic is, and the plan that all parties agree on."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._frames import are_missing, plain_column, plain_table
from .._recommended import TABLE
from .._typing import FloatArray, PartyName
from ..errors import AgreementError, NumericalError, ShareError
from ..linalg import gaussian_sigma
from ..sums import MaskedMessage, MaskedSum, MaskKey, RidgeSums, not_of_rows
from ._cells import COUNT_NOISE

USUAL_NOISE = TABLE.noise
RIDGE_MOVED = RidgeSums(1, limits=(0.0, 1.0)).sensitivity
"""How far replacing one row moves the sums of ridge regression, whose noise others are compared with."""
StudyTable = Mapping[str, ArrayLike]
"""A party's columns by name, all equally long, or a frame; NaN, None or a mask is a missing entry."""
FARTHEST = 6.0
"""Standard deviations of noise beyond which a number is not noise."""
FEWEST = 10
"""Each row of a level with fewer rows in a total may be recognised."""
CERTAINTY = 2.0
"""Standard deviations of noise that a level has to be above the fewest rows."""
_DIGITS = 4
_SMALL_P = 0.001


def new_secret() -> bytes:
    """Draw from the operating system what deals rows to groups in one message."""
    return secrets.token_bytes(32)


def number_text(value: float) -> str:
    """Return a number as people read it, with four digits; nothing if it is NaN."""
    return "" if math.isnan(value) else f"{value:.{_DIGITS}g}"


def count_text(value: float) -> str:
    """Return a number of rows as people read it; noise may have made it negative."""
    return str(max(0, round(value)))


def p_text(p: float) -> str:
    """Return a p value as people read it."""
    return "<0.001" if p < _SMALL_P else f"{p:.3f}"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers with a declared range; an AgreementError if it is not finite, or `low` not below `high`."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise AgreementError(f"Column {self.name!r}: expected low below high, got {self.low} and {self.high}.")

    @property
    def width(self) -> float:
        """Return the width of the range."""
        return self.high - self.low

    def numbers(self, table: StudyTable) -> FloatArray:
        """Return the entries, NaN if missing; raise AgreementError if it is not there, or an entry is no number."""
        entries = entries_of(table, self.name)
        try:
            if entries.dtype.kind in "mM":  # Dates would turn into numbers of their own.
                raise TypeError
            return np.asarray(entries, dtype=np.float64)
        except (TypeError, ValueError):
            # numpy's own message quotes an entry.
            raise AgreementError(f"Column {self.name!r}: an entry is no number. Correct it, or make it NaN.") from None

    def scaled(self, table: StudyTable) -> FloatArray:
        """Return the entries with the range moved to [-1/2, 1/2], and clipped to it; see `numbers`."""
        return np.clip((self.numbers(table) - self.low) / self.width - 0.5, -0.5, 0.5)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of levels that were agreed on; an AgreementError if there are fewer than two, or two are the same."""

    name: str
    levels: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(np.asarray(self.levels).tolist()))
        if len(set(map(str, self.levels))) < max(2, len(self.levels)):
            raise AgreementError(f"Column {self.name!r}: expected at least two different levels.")

    def indicators(self, table: StudyTable) -> NDArray[np.bool_]:
        """Return which level each entry is, shape (n_rows, n_levels); none if it is missing.

        It raises AgreementError if the table lacks the column, or an entry is none of the levels.
        """
        entries = entries_of(table, self.name)
        missing = are_missing(entries)
        found = entries.astype(object)[:, None] == np.array(self.levels, dtype=object)
        if not (found.any(axis=1) | missing).all():
            raise AgreementError(f"Column {self.name!r}: an entry is none of the levels. Correct it, or make it None.")
        return np.asarray(found, dtype=np.bool_)


Column = NumberColumn | CategoryColumn


def coefficient_names(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the name of each coefficient: a category has one for each level but the first."""
    names: list[str] = []
    for each in columns:
        names += [each.name] if isinstance(each, NumberColumn) else [f"{each.name}={one}" for one in each.levels[1:]]
    return tuple(names)


def coefficient_widths(columns: Sequence[Column]) -> FloatArray:
    """Return the widths of the columns' ranges, 1 for levels, shape (n_coefficients,)."""
    return np.concatenate(
        [[each.width] if isinstance(each, NumberColumn) else np.ones(len(each.levels) - 1) for each in columns]
    )


def design(columns: Sequence[Column], table: StudyTable) -> FloatArray:
    """Return scaled numbers and indicators of levels, shape (n_rows, n_coefficients); NaN if missing."""
    blocks = list[FloatArray]()
    for column in columns:
        if isinstance(column, NumberColumn):
            blocks.append(column.scaled(table)[:, None])
        else:
            levels = column.indicators(table)
            blocks.append(np.where(levels.any(axis=1, keepdims=True), levels, np.nan)[:, 1:])
    return np.column_stack(blocks)


def columns_of(table: Any) -> StudyTable:
    """Return the columns of a frame of any library by their names; a mapping as it is."""
    if isinstance(table, Mapping):
        return table
    frame = plain_table(table, "The table")
    return {name: frame[name] for name in getattr(frame, "columns", ())}


def entries_of(table: StudyTable, name: str) -> NDArray[Any]:
    """Return a column of a table; missing entries are NaN."""
    try:
        return plain_column(table[name])
    except KeyError:
        raise AgreementError(f"The table lacks column {name!r}. Give all columns that were agreed on.") from None


class ResultTable(NamedTuple):
    """A result as people read it: the heads of its columns, its rows of texts, and a note.

    `bars` are rows in equal parts of a range, for a small histogram in a cell, by place of its row and column; `noise`
    is the standard deviation of the noise in each of them.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str
    bars: Mapping[tuple[int, int], FloatArray] = {}
    noise: float = 0.0


class StatisticResult(ABC):
    """What follows from the total of one statistic."""

    @property
    def size(self) -> tuple[float, float] | None:
        """Return the number of all rows, and the standard deviation of its noise; None if the total does not say."""
        return None

    @property
    def complete(self) -> tuple[float, float] | None:
        """Return the number of rows that were added up, those with gaps left out, and its noise; as in `size`."""
        return self.size

    @property
    def fault(self) -> str | None:
        """Return why no rows can give this total, as the end of a sentence; None if rows can."""
        return None

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels that may have fewer than ten rows."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to look at before the result is used, as sentences."""
        return ()

    @abstractmethod
    def table(self) -> ResultTable:
        """Return the result as people read it, one figure in a cell."""

    def printed(self) -> ResultTable:
        """Return the result as an article prints it."""
        return self.table()


def refuse_total(wrong: str | None, title: str) -> None:
    """Raise a ShareError if something is wrong with the total of a statistic that no rows can explain."""
    if wrong:
        raise ShareError(not_of_rows(wrong, title))


def coefficient_table(found: Any, note: str) -> ResultTable:
    """Return a line for each coefficient of a regression: it, its error, its interval and its p value."""
    heads = ("column", "coefficient", "standard error", "95 % low", "95 % high", "p")
    columns = (found.coefficients, found.errors, found.low, found.high)
    each = zip(found.names, map(p_text, found.p_values), *columns, strict=True)
    return ResultTable(heads, [(name, *map(number_text, numbers), p) for name, p, *numbers in each], note)


@dataclass(frozen=True)
class Refused(StatisticResult):
    """Why one statistic of several cannot be had from their total."""

    reason: str

    def table(self) -> ResultTable:
        """Return the reason."""
        return ResultTable(("no result",), [(self.reason,)], "")


@dataclass(frozen=True)
class Statistic(ABC):
    """Numbers that each party adds up over its rows, and what follows from their total.

    Parameters
    ----------
    copies : float, default=1
        How many times a message has each count, at most; the noise in counts grows with its square root.  `StudyPlan`
        adds up the `own_copies` of its statistics.
    """

    copies: float = field(default=1.0, kw_only=True)

    title: ClassVar[str]
    tells: ClassVar[str] = "see docs/study.md"
    """What the total tells, for approvers."""
    own_copies: ClassVar[float] = 1.0
    """How many times it has counts that others have, too; with twice the noise, a count is a quarter of one."""

    @property
    def noise_of_rows(self) -> float:
        """Return the noise in the number of rows of a regression, twice that of counts, as few figures need it."""
        return 2 * COUNT_NOISE * math.sqrt(self.copies)

    @property
    @abstractmethod
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""

    @property
    @abstractmethod
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, each in units of its noise."""

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return asdict(self)

    @abstractmethod
    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return sums over some rows of a party; `join` makes one of those of two batches.

        `secret`, 32 bytes that are drawn for one message, deals rows to groups if the statistic has groups.
        """

    def join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the sums over the rows of both batches."""
        return first + second

    def finish(self, sums: FloatArray) -> FloatArray:
        """Return what a party masks, shape (n_numbers,), from the sums over all its rows."""
        return sums

    def fault(self, sums: FloatArray) -> str | None:
        """Return why the sums over all rows of a party must not go into a total; None if they may."""
        return None

    def part(self, table: StudyTable, secret: bytes | None = None) -> FloatArray:
        """Return what a party with these rows masks, shape (n_numbers,)."""
        return self.finish(self.add_up(columns_of(table), secret or new_secret()))

    @abstractmethod
    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> StatisticResult:
        """Return what follows from a total whose noise is `noise` times `spread`; ShareError if no rows can give it."""


@dataclass(frozen=True, eq=False)
class StudyPlan:
    """All that parties and analyst agree on for one message that carries one or several statistics.

    Parameters
    ----------
    roster : mapping of str or int to bytes
        Public mask keys, by party.
    statistics : sequence of Statistic
        Each of another class.
    facts : mapping, optional
        What else was agreed on.  JSON.
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
        _ = self.agreed  # It raises what is wrong with the plan.

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves all numbers at most, each in units of its noise."""
        return math.hypot(*(each.loss for each in self._carried)) / self.raised

    @property
    def noise_of_sums(self) -> float:
        """Return the `noise` of `RidgeSums` that hides a row as well."""
        return RIDGE_MOVED / self.loss

    @cached_property
    def agreed(self) -> MaskedSum:
        """Return the sum under masks."""
        said = {each.title: each.facts() for each in self._carried} | {"agreed": dict(self.facts)}
        noise = self.raised * np.concatenate([each.spread for each in self._carried])
        return MaskedSum(said, self.roster, noise=noise, n_colluding=self.n_colluding)

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
        """Return what a party masks, shape (n_numbers,), from the sums over all its rows.

        It raises AgreementError if clusters are so few that a total might be of one party alone.
        """
        for each, own in zip(self.statistics, sums, strict=True):
            if fault := each.fault(own):
                raise AgreementError(fault)
        return np.concatenate([each.finish(own) for each, own in zip(self.statistics, sums, strict=True)])

    def results(self, messages: Sequence[MaskedMessage]) -> list[Any]:
        """Add up the messages of all parties, and return the result of each statistic, or `Refused` for some of them.

        Raises
        ------
        AgreementError, ShareError
            As `MaskedSum.total` raises them; a ShareError also if no rows can give the total.
        NumericalError
            If no statistic can be had from the total; the message has the reason of each.
        """
        ends = np.cumsum([len(each.spread) for each in self._carried])[:-1]
        parts = np.split(self.agreed.total(messages), ends)
        noise = self.raised * self.agreed.excess
        found = [self._result(each, part, noise) for each, part in zip(self._carried, parts, strict=True)]
        if all(isinstance(each, Refused) for each in found):
            raise NumericalError(" ".join(each.reason for each in found if isinstance(each, Refused)))
        return found

    def _result(self, statistic: Statistic, part: FloatArray, noise: float) -> StatisticResult:
        try:
            found = statistic.result(part, n_parties=len(self.roster), noise=noise)
        except NumericalError as error:
            # The same rows are not shared again, so that the others must not be lost.
            return Refused(str(error))
        refuse_total(found.fault, statistic.title)
        return found

    @cached_property
    def _carried(self) -> tuple[Statistic, ...]:
        """Return the statistics with so much noise that no count can be read better from all of them together.

        What a reader learns of a count adds up: one over the squared noise of each copy.
        """
        copies = sum(each.own_copies for each in self.statistics) if len(self.statistics) > 1 else 1.0
        return tuple(replace(each, copies=max(1.0, copies)) for each in self.statistics)

    @cached_property
    def raised(self) -> float:
        """Return the factor of all noise."""
        if self.epsilon is None:
            return 1.0
        return max(1.0, gaussian_sigma(self.epsilon, self.delta) * math.hypot(*(each.loss for each in self._carried)))
