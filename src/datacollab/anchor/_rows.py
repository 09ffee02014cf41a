"""Equality of whole rows, by hashing their bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["distinct_rows", "rows_among"]


def _keys(table: FloatArray) -> Iterator[bytes]:
    """One hashable key per row; equal rows have equal keys."""
    # Adding zero turns -0.0 into 0.0, which compares equal to it but has other bytes.
    return ((row + 0.0).tobytes() for row in table)


def distinct_rows(table: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct row first occurs, and which of these every row equals."""
    numbers: dict[bytes, int] = {}
    inverse = np.array([numbers.setdefault(key, len(numbers)) for key in _keys(table)], dtype=np.intp)
    _, first = np.unique(inverse, return_index=True)
    return first, inverse  # (n_distinct,), (n_rows,)


def rows_among(rows: FloatArray, table: FloatArray) -> NDArray[np.bool_]:
    """For each of `rows`, whether it equals some row of `table`."""
    keys = list(_keys(rows))
    shared = set(keys).intersection(_keys(table))
    return np.array([key in shared for key in keys], dtype=np.bool_)  # (n_rows,)
