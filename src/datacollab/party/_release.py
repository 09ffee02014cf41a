"""A party's rows as they are shared, defended once; their differential privacy; digests that recognise rows."""

from __future__ import annotations

import functools
import hashlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName
from ..errors import (
    AnchorError,
    DataCollabError,
    DataCollabWarning,
    NoGuaranteeError,
    ObfuscationError,
    SharedBeforeError,
)
from ..linalg import gaussian_epsilon, gaussian_sigma
from ._defence import Defence, Promise, Published

TOLERANCE = 1e-7
"""How far an entry may be from the own one, relative to the largest entry of its column, and still be the same."""
_PROJECTIONS = 4
_CELL = 10.0
"""Width of a cell, in multiples of what entries that are the same may add up to."""


class RowDigests:
    """Keyed digests of rows, to recognise the same rows elsewhere, even if rounded.

    A digest is made of the cells that four secret random projections of the numbers fall into, with texts and missing
    entries.  A row whose numbers were rounded to single precision falls into the same cells, or next to their borders,
    where both sides are looked up.  The largest entries of `like`, by default of the rows, define rounding.
    """

    def __init__(self, X: Any, like: Any = None) -> None:
        self._key = secrets.token_bytes(32)
        self._names = _names(X)
        columns = [_comparable(column) for column in _columns(X)]
        self._kinds = [isinstance(column, list) for column in columns]
        numbers, rest = _parts(columns)
        largest = np.abs(numbers).max(axis=0, initial=0.0)
        if like is not None and (public := self._like(like)) is not None:
            largest = np.abs(_parts(public)[0]).max(axis=0, initial=0.0)
        generator = np.random.default_rng(secrets.randbits(128))
        directions = generator.standard_normal((numbers.shape[1], _PROJECTIONS))
        self._directions = directions / np.where(largest > 0, largest, 1.0)[:, None]
        # Errors of all columns add up in a random direction; six standard deviations.
        self._width = _CELL * TOLERANCE * 6 * np.sqrt(max(1, numbers.shape[1]))
        cells = np.floor(self._places(numbers))
        self._digests = frozenset(map(self._digest, cells, rest))

    def count_in(self, table: Any) -> int:
        """Return how many rows of a table are among these; 0 if its columns are others."""
        return int(self.are_in(table).sum())

    def are_in(self, table: Any) -> NDArray[np.bool_]:
        """Return which rows of a table are among these, shape (n_rows,); none if its columns are others."""
        columns = self._like(table)
        if columns is None:
            return np.zeros(_num_samples(table), dtype=bool)
        numbers, rest = _parts(columns)
        found = (
            any(self._digest(np.array(cells), others) in self._digests for cells in product(*map(_cells, places)))
            for places, others in zip(self._places(numbers), rest, strict=True)
        )
        return np.fromiter(found, dtype=bool, count=len(rest))

    def _like(self, table: Any) -> list[Any] | None:
        """Return the columns of a table in the order of these rows', or None if they are others."""
        if self._names and _names(table):
            if not set(self._names) <= set(_names(table)):
                return None
            table = table[self._names]
        columns = [_comparable(column) for column in _columns(table)]
        return columns if [isinstance(column, list) for column in columns] == self._kinds else None

    def _places(self, numbers: FloatArray) -> FloatArray:
        """Return projections in units of a cell, shape (n_rows, n_projections)."""
        return np.asarray(numbers @ self._directions / self._width)

    def _digest(self, cells: FloatArray, rest: bytes) -> bytes:
        return hashlib.blake2b((cells + 0.0).tobytes() + rest, digest_size=16, key=self._key).digest()

    def __repr__(self) -> str:
        return f"RowDigests({len(self._digests)} distinct)"


def _cells(place: float) -> list[float]:
    """Return the cell of a projection, and the one beside it if the border is near."""
    return sorted({float(np.floor(place + shift)) for shift in (-1 / _CELL, 0.0, 1 / _CELL)})


def _parts(columns: list[Any]) -> tuple[FloatArray, list[bytes]]:
    """Return finite numbers, shape (n_rows, n_numbers), and each row's texts and numbers that are not finite."""
    n_rows = len(columns[0]) if columns else 0
    numeric = [column for column in columns if not isinstance(column, list)]
    numbers = np.column_stack(numeric) if numeric else np.empty((n_rows, 0))
    finite = np.isfinite(numbers)
    odd = np.where(finite, 0.0, np.nan_to_num(numbers, nan=1.0, posinf=2.0, neginf=3.0)).astype(np.int8)
    texts = list(zip(*(column for column in columns if isinstance(column, list)), strict=True)) or [()] * n_rows
    rest = [odd_entries.tobytes() + repr(words).encode() for odd_entries, words in zip(odd, texts, strict=True)]
    return np.where(finite, numbers, 0.0), rest


class TableDigest:
    """A keyed digest of a whole table, to recognise the same rows and columns in the same order."""

    def __init__(self, X: Any) -> None:
        self._key = secrets.token_bytes(32)
        self._digest = self._hashed(X)

    def matches(self, table: Any) -> bool:
        """Return whether this is the table."""
        return self._hashed(table) == self._digest

    def _hashed(self, table: Any) -> bytes:
        hashed = hashlib.blake2b(digest_size=16, key=self._key)
        for name in _names(table):
            hashed.update(str(name).encode() + b"\0")
        for column in _columns(table):
            entries = _comparable(column)
            hashed.update(repr(entries).encode() if isinstance(entries, list) else entries.tobytes())
        return hashed.digest()

    def __repr__(self) -> str:
        return "TableDigest()"


def _names(table: Any) -> list[str]:
    return list(getattr(table, "columns", []))


def _columns(table: Any) -> list[Any]:
    if hasattr(table, "columns"):
        return [np.asarray(table[name]) for name in table.columns]
    return list((table.toarray() if sparse.issparse(table) else np.asarray(table)).T)


def _comparable(column: Any) -> Any:
    """Return numbers as float64, anything else as a list of texts."""
    try:
        # Adding zero makes one of the two zeros of floating-point numbers.
        return np.asarray(column, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        return [str(entry) for entry in column]


@dataclass(eq=False)
class FittedTable:
    """The table of one fit: digests of its rows, and earlier tables with the number of rows in common.

    `shared` says whether something of it has left, and `mu` what that spent of a promise (see `PrivacyGuarantee`).
    """

    rows: RowDigests
    earlier: list[tuple[FittedTable, int]] = field(default_factory=list)
    shared: bool = False
    mu: float | None = None


class Ledger:
    """The tables that a party was fitted on.  Copies of the party, deep or not, have the same one."""

    def __init__(self) -> None:
        self._tables: list[FittedTable] = []

    def add(self, X: Any) -> FittedTable:
        """Enter a table."""
        found = [(table, table.rows.count_in(X)) for table in self._tables]
        table = FittedTable(RowDigests(X), [(table, n) for table, n in found if n])
        self._tables.append(table)
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"Ledger({len(self._tables)} tables)"


SAME_ANCHOR = 1e-9
"""Largest difference, relative to the largest entry, between two representations of one anchor."""


class Release:
    """Representation and targets of a party's rows behind its defences.

    Noise is drawn once, and so is the order in which rows leave.  If a defence needs the anchor, noise is drawn for the
    first anchor, and no other one is taken afterwards; otherwise it is drawn at once.  Copies of a party share it.
    """

    def __init__(
        self,
        party: PartyName,
        representation: FloatArray,
        target: NDArray[Any],
        defences: Sequence[Defence],
        generator: np.random.RandomState,
    ) -> None:
        self._party = party
        self._defences = defences
        self._published = Published(rows=representation, target=target, own_rows=np.arange(len(target)))
        # Given away with the first use: nothing can draw the same noise, or fresh noise, again.
        self._generator: np.random.RandomState | None = generator
        self._anchor: FloatArray | None = None
        self._order: NDArray[np.intp] | None = None
        if not self._needs_anchor:
            self._defend(None)

    @property
    def _needs_anchor(self) -> bool:
        return any(defence.needs_anchor for defence in self._defences)

    def rows(self, anchor_representation: FloatArray) -> Published:
        """Return defended rows in the order of the own rows behind them."""
        self.check_anchor(anchor_representation)
        if self._generator is not None:
            self._defend(anchor_representation)
        return self._published

    def order(self, generator: np.random.RandomState) -> NDArray[np.intp]:
        """Return the order in which the rows leave, shape (n_published,), drawn with the first generator."""
        if self._order is None:
            order = np.arange(len(self._published.rows))
            generator.shuffle(order)
            self._order = order
        return self._order

    def bind(self, anchor_representation: FloatArray) -> None:
        """Take this anchor and no other one if the defences depend on it."""
        if self._needs_anchor:
            self._anchor = anchor_representation

    def check_anchor(self, anchor_representation: FloatArray) -> None:
        """Raise AnchorError if the rows are for another anchor."""
        known = self._anchor
        if known is None or (
            known.shape == anchor_representation.shape
            and np.abs(known - anchor_representation).max() <= SAME_ANCHOR * np.abs(known).max()
        ):
            return
        raise AnchorError(
            f"Party {self._party!r}: its rows were defended for another anchor, or a guarantee was given for that. "
            "Published once more, they would have other noise, and both together average it away. Share "
            "with the first anchor; a new one needs a new collaboration, in which the promises for each add up."
        )

    def _defend(self, anchor_representation: FloatArray | None) -> None:
        assert self._generator is not None
        given = self._published
        try:
            for defence in self._defences:
                later = defence.apply(
                    *given[:2], anchor_representation=anchor_representation, random_state=self._generator
                )
                given = later._replace(own_rows=given.own_rows[later.own_rows])
        except DataCollabWarning:  # turned into an error by a warnings filter; it shows no data
            raise
        except DataCollabError as error:
            raise ObfuscationError(f"Party {self._party!r}: {error} Nothing left the party.") from None
        except Exception as error:
            raise ObfuscationError(
                f"Party {self._party!r}: a defence failed ({type(error).__name__}). Nothing left the party. Its own "
                "words may quote data, so they are only in the error's 'original'.",
                error,
            ) from None
        if anchor_representation is not None:
            self._anchor = anchor_representation
        self._published, self._generator = given, None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Two copies that draw for two anchors would draw the same noise, or noise anew, for the same rows.
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self._generator is not None:
            raise TypeError(
                f"Party {self._party!r}: its rows have not been shared yet, and each stored copy would draw noise of "
                "its own for them. Share first, or store the rows and fit again."
            )
        return vars(self).copy()


LONE_ROWS = 10
"""Rows that are transformed one by one, to see whether the obfuscator maps each row by itself."""
MOST_NUMBERS = 8
"""Entries of a list that still is a setting rather than data."""
_TEXTS = "OUS"
SAME_ROW = 1e-6
"""Largest difference, relative to the largest entry, between a row alone and among others."""


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
            f"{_rounded_up(self.auc_at_most)}, nor finds more than {_rounded_up(self.tpr_at_most(0.01))} of the rows "
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
    together = math.hypot(mu_of(promise), *earlier_mu)
    if len(earlier_mu):
        promise = replace(promise, epsilon=gaussian_epsilon(1 / together, promise.delta))
    return PrivacyGuarantee(**vars(promise), party=party, n_rows=n_rows, mu=together, n_shares=1 + len(earlier_mu))


def mu_of(promise: Promise) -> float:
    """Return sensitivity over the standard deviation of the noise."""
    return 1 / gaussian_sigma(promise.epsilon, promise.delta)


def _rounded_up(share: float) -> str:
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
    kept = _kept_from_elsewhere(obfuscator)
    if kept is not None:
        return (
            f"its obfuscator holds a {kept}, which keeps what it was fitted on before or was given; let fit_on teach it"
        )
    if not _maps_rows_alone(transform, X):
        return "its obfuscator maps a row differently when others are beside it, so each row depends on all"
    return None


def _kept_from_elsewhere(obfuscator: Any) -> str | None:
    """Return a parameter that keeps something: a step that a clone leaves fitted, or numbers, or a closure."""
    values = [obfuscator, *obfuscator.get_params(deep=True).values()]
    return next((kept for value in values if (kept := _what_is_kept(value))), None)


def _what_is_kept(value: Any) -> str | None:
    name = type(value).__name__
    own_way = getattr(type(value), "__sklearn_clone__", None)
    if own_way is not None and own_way is not BaseEstimator.__sklearn_clone__:
        return name
    if isinstance(value, functools.partial) or getattr(value, "__closure__", None):
        return f"{name} with values of its own"
    if isinstance(value, Mapping):
        return next((kept for each in value.values() if (kept := _what_is_kept(each))), None)
    if isinstance(value, list | tuple):
        numbers = [each for each in value if isinstance(each, Real)]
        if len(numbers) > MOST_NUMBERS:
            return f"{name} of {len(numbers)} numbers"
        return next((kept for each in value if (kept := _what_is_kept(each))), None)
    shape = np.shape(value) if sparse.issparse(value) or hasattr(value, "__array__") else ()
    # Names of columns and of categories are texts.
    return (
        None
        if shape == () or getattr(getattr(value, "dtype", None), "kind", "f") in _TEXTS
        else f"{name} of shape {shape}"
    )


def _maps_rows_alone(transform: Callable[[Any], FloatArray], X: Any) -> bool:
    together = transform(X)
    allowed = SAME_ROW * np.abs(together).max()
    chosen = np.unique(np.linspace(0, len(together) - 1, LONE_ROWS, dtype=int))
    return all(np.abs(transform(_safe_indexing(X, [i])) - together[i]).max() <= allowed for i in chosen)


@dataclass(frozen=True, eq=False)
class Basis:
    """The conditions of a guarantee: the defence that promises, or an obstacle; own rows, sought in an anchor.

    `table` is the fitted table in the ledger where rows leave behind defences.
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
        """Enter in the ledger that something of the rows has left, and what it spent."""
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
        earlier = [] if self.table is None else [table for table, _ in self.table.earlier if table.shared]
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
        if promise.delta * self.n_rows >= 1:
            raise self._refusal(
                f"delta={promise.delta:g} is not below one over its {self.n_rows} rows; publishing one of them as it "
                "is would satisfy that"
            )
        return promise

    def _refusal(self, reason: str) -> NoGuaranteeError:
        return NoGuaranteeError(f"Party {self.party!r}: no epsilon can be stated, for {reason}.")
