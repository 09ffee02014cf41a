"""Rows that cross, behind defences, and digests that recognise a party's rows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName
from ..errors import AnchorError, DataCollabError, DataCollabWarning, ObfuscationError
from ._defence import Defence, Published

# How far an entry may be from the own one, relative to the largest entry of its column, and still be the same.
TOLERANCE = 1e-7
_PROJECTIONS = 4
# Width of a cell, in multiples of what entries that are the same may add up to.
_CELL = 10.0


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
        numbers, others = _split_numbers(columns)
        # Rounding is relative to the entries of the table in which rows are sought.
        largest = np.abs(numbers).max(axis=0, initial=0.0)
        if like is not None and (public := self._like(like)) is not None:
            largest = np.abs(_split_numbers(public)[0]).max(axis=0, initial=0.0)
        # Secret directions: nobody else can make rows that fall into the same cells.
        generator = np.random.default_rng(secrets.randbits(128))
        directions = generator.standard_normal((numbers.shape[1], _PROJECTIONS))
        self._directions = directions / np.where(largest > 0, largest, 1.0)[:, None]
        # Errors of all columns add up in a random direction; six standard deviations.
        self._width = _CELL * TOLERANCE * 6 * np.sqrt(max(1, numbers.shape[1]))
        cells = np.floor(self._places(numbers))
        self._digests = frozenset(map(self._digest, cells, others))

    def count_in(self, table: Any) -> int:
        """Return how many rows of a table are among these; 0 if its columns are others."""
        return int(self.are_in(table).sum())

    def are_in(self, table: Any) -> NDArray[np.bool_]:
        """Return which rows of a table are among these, shape (n_rows,); none if its columns are others."""
        columns = self._like(table)
        if columns is None:
            return np.zeros(_num_samples(table), dtype=bool)
        numbers, others = _split_numbers(columns)
        are_known = (
            any(self._digest(np.array(cells), other) in self._digests for cells in product(*map(_cells, places)))
            for places, other in zip(self._places(numbers), others, strict=True)
        )
        return np.fromiter(are_known, dtype=bool, count=len(others))

    def _like(self, table: Any) -> list[Any] | None:
        """Return the columns of a table in the order of these rows', or None if they are others."""
        if self._names and _names(table):
            if not set(self._names) <= set(_names(table)):
                return None
            table = table[self._names]
        columns = [_comparable(column) for column in _columns(table)]
        if [isinstance(column, list) for column in columns] != self._kinds:
            return None
        return columns

    def _places(self, numbers: FloatArray) -> FloatArray:
        """Return projections in units of a cell, shape (n_rows, n_projections)."""
        return np.asarray(numbers @ self._directions / self._width)

    def _digest(self, cells: FloatArray, others: bytes) -> bytes:
        # Adding zero makes one of the two zeros of floating-point numbers.
        return hashlib.blake2b((cells + 0.0).tobytes() + others, digest_size=16, key=self._key).digest()

    def __repr__(self) -> str:
        return f"RowDigests({len(self._digests)} distinct)"


def _cells(place: float) -> list[float]:
    """Return the cell of a projection, and the one beside it if the border is near."""
    return sorted({float(np.floor(place + shift)) for shift in (-1 / _CELL, 0.0, 1 / _CELL)})


def _split_numbers(columns: list[Any]) -> tuple[FloatArray, list[bytes]]:
    """Return finite numbers, shape (n_rows, n_numbers), and each row's texts and numbers that are not finite."""
    if not columns:
        return np.empty((0, 0)), []
    n_rows = len(columns[0])
    # An empty table at first, so that there may be no numbers at all.
    numeric = [column for column in columns if not isinstance(column, list)]
    numbers = np.column_stack([np.empty((n_rows, 0)), *numeric])
    finite = np.isfinite(numbers)
    # Gaps and infinities have a number each, as texts have their words.
    odd = np.where(finite, 0.0, np.nan_to_num(numbers, nan=1.0, posinf=2.0, neginf=3.0)).astype(np.int8)
    texts = list(zip(*(column for column in columns if isinstance(column, list)), strict=True)) or [()] * n_rows
    others = [odd_entries.tobytes() + repr(words).encode() for odd_entries, words in zip(odd, texts, strict=True)]
    return np.where(finite, numbers, 0.0), others


class TableDigest:
    """A keyed digest of a whole table, to recognise the same rows and columns in the same order."""

    def __init__(self, X: Any) -> None:
        self._key = secrets.token_bytes(32)
        self._digest = self._hash(X)

    def matches(self, table: Any) -> bool:
        """Return whether this is the table."""
        return self._hash(table) == self._digest

    def _hash(self, table: Any) -> bytes:
        hashed = hashlib.blake2b(digest_size=16, key=self._key)
        for name in _names(table):
            hashed.update(str(name).encode() + b"\0")
        for column in _columns(table):
            entries = _comparable(column)
            if isinstance(entries, list):
                hashed.update(repr(entries).encode())
            else:
                hashed.update(entries.tobytes())
        return hashed.digest()

    def __repr__(self) -> str:
        return "TableDigest()"


def _names(table: Any) -> list[str]:
    return list(getattr(table, "columns", []))


def _columns(table: Any) -> list[Any]:
    if hasattr(table, "columns"):
        return [np.asarray(table[name]) for name in table.columns]
    if sparse.issparse(table):
        table = table.toarray()
    return list(np.asarray(table).T)


def _comparable(column: Any) -> Any:
    """Return numbers as float64, anything else as a list of texts."""
    try:
        # Adding zero makes one of the two zeros of floating-point numbers.
        return np.asarray(column, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        return [str(entry) for entry in column]


# Largest difference, relative to the largest entry, between two representations of one anchor.
SAME_ANCHOR = 1e-9


class DefendedRows:
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
        # Drawn once, so that two shares of the same rows have them in one order.
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
        # Linear algebra may add in another order the next time, so the last bits may differ.
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
        published = self._published
        try:
            for defence in self._defences:
                later = defence.apply(
                    *published[:2], anchor_representation=anchor_representation, random_state=self._generator
                )
                # Each defence counts rows as the one before gave them; the party counts its own.
                published = later._replace(own_rows=published.own_rows[later.own_rows])
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
        self._published = published
        self._generator = None

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
