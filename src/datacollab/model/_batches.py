"""Rows a batch at a time, so that what a prediction makes on its way takes little memory."""

from __future__ import annotations

from collections.abc import Iterator

from .._typing import FloatArray

__all__ = ["row_batches"]

_MOST_NUMBERS = 2**23
"""Of the widest table on the way of a batch: 64 MiB."""


def row_batches(
    rows: FloatArray, width: int, *, most_numbers: int = _MOST_NUMBERS, least_rows: int = 1
) -> Iterator[FloatArray]:
    """Cut rows into batches, one of them at least."""
    size = max(least_rows, most_numbers // max(width, 1))
    for start in range(0, max(len(rows), 1), size):
        yield rows[start : start + size]
