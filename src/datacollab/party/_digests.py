"""Keyed digests that recognise rows and tables."""

from __future__ import annotations

import hashlib
import secrets
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray

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
