"""Differential privacy of a party's share, its conditions, and the cost of earlier shares of the same rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .._validation import FloatArray, PartyName
from ..errors import NoGuaranteeError, SharedBeforeError
from ..linalg import gaussian_epsilon, gaussian_sigma
from ._defence import Defence, Promise
from ._defended_rows import RowDigests

# Rows that are transformed one by one, to see whether the obfuscator maps each row by itself.
LONE_ROWS = 10
# Entries of a list that still is a setting rather than data.
MOST_NUMBERS = 8
_TEXTS = "OUS"
# Largest difference, relative to the largest entry, between a row alone and among others.
SAME_ROW = 1e-6


@dataclass(frozen=True, kw_only=True)
class PrivacyGuarantee:
    """Differential privacy of a party's share.

    Attributes
    ----------
    party : str or int
    epsilon, delta : float
    n_rows : int
    mu : float
        Telling two neighbouring tables apart by the share is as hard as telling two normal distributions apart whose
        means are mu standard deviations from one another, or harder [Dong2022]_.
    clip, noise : float or None
        Largest distance of a row from the mean of the anchor's representation, and the noise's standard deviation.
    n_shares : int
        Shares of the same rows that it covers together.
    """

    party: PartyName
    epsilon: float
    delta: float
    n_rows: int
    mu: float
    clip: float | None = None
    noise: float | None = None
    n_shares: int = 1

    @property
    def auc_at_most(self) -> float:
        r"""Area under the curve that no membership attack on the share exceeds: :math:`\Phi(\mu/\sqrt 2)`."""
        return float(ndtr(self.mu / math.sqrt(2)))

    def tpr_at_most(self, fpr: float) -> float:
        r"""Return the share of members that no attack exceeds which takes a part `fpr` of others for members.

        It is :math:`\Phi(\mu + \Phi^{-1}(\mathrm{fpr}))`, the power of the best test of two normal distributions.
        Raise ValueError if `fpr` is not from 0 to 1.
        """
        if not 0 <= fpr <= 1:
            raise ValueError(f"fpr must be from 0 to 1; got {fpr!r}.")
        return float(ndtr(self.mu + ndtri(fpr)))

    @property
    def statement(self) -> str:
        """The promise, its limits, and its conditions."""
        shares = "one share" if self.n_shares == 1 else f"{self.n_shares} shares of these rows together"
        return (
            f"Party {self.party!r}: what is published is ({self.epsilon:g}, {self.delta:g})-differentially private for "
            f"each of its {self.n_rows} rows: if the features of one row were replaced by any others, with all other "
            "rows, all targets and the number of rows unchanged, the probability of any publication would change at "
            f"most by the factor exp({self.epsilon:g}), up to {self.delta:g}. So no attack on the share, whatever else "
            "it knows, tells whether a row is in it with an area under the curve above "
            f"{_round_up(self.auc_at_most)}, nor finds more than {_round_up(self.tpr_at_most(0.01))} of the rows "
            f"while taking one in a hundred others for one. Labels (targets) and row counts are released "
            "exactly and are not covered. Someone with m rows in the table is "
            f"covered less, for about m times epsilon. This holds for {shares}. It presumes that the rows in fit_on "
            "and the anchor are not private nor made from private rows, and that no parameter was chosen by looking at "
            "private rows."
        )

    def __str__(self) -> str:
        return self.statement


def guarantee_of(promise: Promise, party: PartyName, n_rows: int, earlier_mu: Sequence[float] = ()) -> PrivacyGuarantee:
    """Return the guarantee of a promise and earlier ones for the same rows: their mu add up in squares."""
    # Gaussian mechanisms compose like one whose mu is the root of the squares' sum [Dong2022]_.
    together = math.hypot(mu_of(promise), *earlier_mu)
    if len(earlier_mu):
        promise = replace(promise, epsilon=gaussian_epsilon(1 / together, promise.delta))
    return PrivacyGuarantee(**vars(promise), party=party, n_rows=n_rows, mu=together, n_shares=1 + len(earlier_mu))


def mu_of(promise: Promise) -> float:
    """Return sensitivity over the standard deviation of the noise."""
    return 1 / gaussian_sigma(promise.epsilon, promise.delta)


def _round_up(share: float) -> str:
    # A bound that is rounded down would be none.
    return f"{math.ceil(share * 100) / 100:.2f}"


def obstacle_in(defences: Sequence[Defence]) -> tuple[Defence | None, str | None]:
    """Return the defence that covers a share, or why none does."""
    mechanism = next((defence for defence in defences if defence.has_promise), None)
    if mechanism is None:
        return None, "there is no GaussianMechanism among its defences"
    # Defences after it take nothing from the promise; those before must change each row by itself.
    before = next(defence for defence in defences if defence is mechanism or not defence.independent_rows)
    if before is mechanism:
        return mechanism, None
    name = type(mechanism).__name__
    return None, (
        f"{type(before).__name__} comes before {name} and makes rows depend on one another, so replacing one row may "
        f"change many of those published; put {name} first"
    )


def obstacle_before(
    obfuscator: Any, transform: Callable[[Any], FloatArray], X: Any, *, n_own_rows: int | None, random_state: Any
) -> str | None:
    """Return why the map before the defences depends on private rows, or None; `transform` is the fitted one's."""
    if n_own_rows is None:
        return (
            "its obfuscator, with every scaler and bandwidth in it, was fitted on its private rows; give public rows "
            "as fit_on"
        )
    if n_own_rows:
        return f"{n_own_rows} rows of fit_on are also among its private rows; take them out"
    if random_state is not None:
        return "its noise comes from a random_state, and anyone who knows that can subtract it; leave it None"
    # A parameter that keeps something: a step that a clone leaves fitted, or numbers, or a closure.
    memory = _find_first([obfuscator, *obfuscator.get_params(deep=True).values()])
    if memory is not None:
        why = "which keeps what it was fitted on before or was given; let fit_on teach it"
        return f"its obfuscator holds a {memory}, {why}"
    if not _maps_rows_alone(transform, X):
        return "its obfuscator maps a row differently when others are beside it, so each row depends on all"
    return None


def _find_first(values: Iterable[Any]) -> str | None:
    return next((memory for value in values if (memory := _name_memory(value))), None)


def _name_memory(value: Any) -> str | None:
    """Name the data that a parameter keeps, or return None if it is a setting."""
    name = type(value).__name__
    # A frozen estimator, for instance, stays fitted in a clone.
    own_way = getattr(type(value), "__sklearn_clone__", None)
    if own_way is not None and own_way is not BaseEstimator.__sklearn_clone__:
        return name
    if isinstance(value, functools.partial) or getattr(value, "__closure__", None):
        return f"{name} with values of its own"
    if isinstance(value, Mapping):
        return _find_first(value.values())
    if isinstance(value, list | tuple):
        numbers = [each for each in value if isinstance(each, Real)]
        if len(numbers) > MOST_NUMBERS:
            return f"{name} of {len(numbers)} numbers"
        return _find_first(value)
    if not (sparse.issparse(value) or hasattr(value, "__array__")) or np.shape(value) == ():
        return None
    # Names of columns and of categories are texts.
    if getattr(getattr(value, "dtype", None), "kind", "f") in _TEXTS:
        return None
    return f"{name} of shape {np.shape(value)}"


def _maps_rows_alone(transform: Callable[[Any], FloatArray], X: Any) -> bool:
    together = transform(X)
    # A few rows from all over the table stand for all.
    allowed = SAME_ROW * np.abs(together).max()
    chosen = np.unique(np.linspace(0, len(together) - 1, LONE_ROWS, dtype=int))
    return all(np.abs(transform(_safe_indexing(X, [i])) - together[i]).max() <= allowed for i in chosen)


@dataclass(eq=False)
class FittedTable:
    """The table of one fit: digests of its rows, and earlier tables with the number of rows in common.

    `shared` says whether something of it has left, and `mu` the cost of that (see `PrivacyGuarantee`).
    """

    rows: RowDigests
    earlier: list[tuple[FittedTable, int]] = field(default_factory=list)
    shared: bool = False
    mu: float | None = None


class FittedTables:
    """The tables that a party was fitted on.  Copies of the party, deep or not, have the same one."""

    def __init__(self) -> None:
        self._tables: list[FittedTable] = []

    def add(self, X: Any) -> FittedTable:
        """Enter a table."""
        counts = [(earlier, earlier.rows.count_in(X)) for earlier in self._tables]
        table = FittedTable(RowDigests(X), [(earlier, n) for earlier, n in counts if n])
        self._tables.append(table)
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"FittedTables({len(self._tables)} tables)"


@dataclass(frozen=True, eq=False)
class Basis:
    """The conditions of a guarantee: the defence that promises, or an obstacle; own rows, sought in an anchor.

    `table` is the fitted table where rows leave behind defences.
    """

    party: PartyName
    n_rows: int
    mechanism: Defence | None
    obstacle: str | None
    own_rows: RowDigests | None
    table: FittedTable | None

    def check_first_share(self, *, allowed: bool) -> None:
        """Raise SharedBeforeError if rows would leave once more, unless that is allowed."""
        if self.table is None or self.table.shared or allowed:
            return
        if n_rows := max((n for table, n in self.table.earlier if table.shared), default=0):
            raise SharedBeforeError(
                f"Party {self.party!r}: {n_rows} of its rows were shared after an earlier fit. Shared once more, with "
                "other noise or in other groups, they can be read from the difference of the two. Share what was "
                "fitted first; or set share_again=True, by which the promises for each share add up."
            )

    def note_left(self, anchor: Any, representation: FloatArray) -> None:
        """Enter in the table that something of its rows has left, and the cost of that."""
        # The same rows behind the same noise tell nothing new the second time.
        if self.table is None or self.table.shared:
            return
        try:
            self.table.mu = mu_of(self._promise(anchor, representation))
        except NoGuaranteeError:
            self.table.mu = None
        self.table.shared = True

    def guarantee(self, anchor: Any, representation: FloatArray) -> PrivacyGuarantee:
        """Return the guarantee with this anchor and earlier shares of the same rows, or raise NoGuaranteeError."""
        promise = self._promise(anchor, representation)
        earlier = []
        if self.table is not None:
            earlier = [table for table, _ in self.table.earlier if table.shared]
        # A share without a promise has spent what nobody can state.
        spent = [each.mu for each in earlier if each.mu is not None]
        if len(spent) < len(earlier):
            raise self._refusal("some of its rows were shared before, and nothing was promised then")
        return guarantee_of(promise, self.party, self.n_rows, spent)

    def _promise(self, anchor: Any, representation: FloatArray) -> Promise:
        if self.mechanism is None or self.obstacle is not None:
            raise self._refusal(str(self.obstacle))
        if self.own_rows is not None and (n_own := self.own_rows.count_in(anchor)):
            raise self._refusal(f"{n_own} rows of the anchor are also among its private rows; take them out")
        promise = self.mechanism.promise(representation)
        if promise is None:
            raise self._refusal(f"{type(self.mechanism).__name__} promises nothing with this anchor")
        # A delta this large is met by publishing a row at random.
        if promise.delta * self.n_rows >= 1:
            raise self._refusal(
                f"delta={promise.delta:g} is not below one over its {self.n_rows} rows; publishing one of them as it "
                "is would satisfy that"
            )
        return promise

    def _refusal(self, reason: str) -> NoGuaranteeError:
        return NoGuaranteeError(f"Party {self.party!r}: no epsilon can be stated, for {reason}.")
