"""Finding a party's own rows in a table, without keeping them."""

from __future__ import annotations

import hashlib
import secrets
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from .._validation import FloatArray

__all__ = ["OwnRows", "TableDigest"]


TOLERANCE = 1e-7
"""How far an entry may be from the own one, relative to the largest entry of its column, and still be the same."""
_PROJECTIONS = 4
_CELL = 10.0
"""Width of a cell, in multiples of what entries that are the same may add up to."""


class OwnRows:
    """Keyed digests of a party's rows, to recognise the same rows elsewhere, even if rounded.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)

    Notes
    -----
    Of numbers, four secret random projections are kept, each by the number of the cell that it falls into, and of
    that no more than a digest, together with texts and what is missing.  A row whose numbers were rounded to single
    precision, or all moved by as little, falls into the same cells or next to their borders, where both sides are
    looked up.
    """

    def __init__(self, X: Any) -> None:
        self._key = secrets.token_bytes(32)
        self._names = _names(X)
        columns = [_comparable(column) for column in _columns(X)]
        self._kinds = [isinstance(column, list) for column in columns]
        numbers, rest = _parts(columns)
        largest = np.abs(numbers).max(axis=0, initial=0.0)
        generator = np.random.default_rng(secrets.randbits(128))
        directions = generator.standard_normal((numbers.shape[1], _PROJECTIONS))
        self._directions = directions / np.where(largest > 0, largest, 1.0)[:, None]
        # Errors of all columns add up in a random direction; six standard deviations.
        self._width = _CELL * TOLERANCE * 6 * np.sqrt(max(1, numbers.shape[1]))
        cells = np.floor(self._places(numbers))
        self._digests = frozenset(map(self._digest, cells, rest))

    def count_in(self, table: Any) -> int:
        """How many rows of a table are among the own ones; 0 where its columns are others."""
        if self._names and _names(table):
            if not set(self._names) <= set(_names(table)):
                return 0
            table = table[self._names]
        columns = [_comparable(column) for column in _columns(table)]
        if [isinstance(column, list) for column in columns] != self._kinds:
            return 0
        numbers, rest = _parts(columns)
        return sum(
            any(self._digest(np.array(cells), others) in self._digests for cells in product(*map(_cells, places)))
            for places, others in zip(self._places(numbers), rest, strict=True)
        )

    def _places(self, numbers: FloatArray) -> FloatArray:
        """Projections in units of a cell, shape (n_rows, n_projections)."""
        return np.asarray(numbers @ self._directions / self._width)

    def _digest(self, cells: FloatArray, rest: bytes) -> bytes:
        return hashlib.blake2b((cells + 0.0).tobytes() + rest, digest_size=16, key=self._key).digest()

    def __repr__(self) -> str:
        return f"OwnRows({len(self._digests)} distinct)"


def _cells(place: float) -> list[float]:
    """The cell of a projection, and the one beside it where the border is near."""
    return sorted({float(np.floor(place + shift)) for shift in (-1 / _CELL, 0.0, 1 / _CELL)})


def _parts(columns: list[Any]) -> tuple[FloatArray, list[bytes]]:
    """Finite numbers, shape (n_rows, n_numbers), and for each row all else: texts, and what is not finite."""
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
        """Whether this is the table."""
        return self._hashed(table) == self._digest

    def _hashed(self, table: Any) -> bytes:
        hashed = hashlib.blake2b(digest_size=16, key=self._key)
        for name in _names(table):
            hashed.update(str(name).encode() + b"\0")
        for column in _columns(table):
            hashed.update(_as_bytes(_comparable(column)))
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
    """Numbers as float64, anything else as a list of texts."""
    try:
        # Adding zero makes one of the two zeros of floating-point numbers.
        return np.asarray(column, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        return [str(entry) for entry in column]


def _as_bytes(row: Any) -> bytes:
    return row.tobytes() if isinstance(row, np.ndarray) else repr([str(entry) for entry in row]).encode()
