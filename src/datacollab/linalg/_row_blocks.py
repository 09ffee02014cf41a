"""Rows in blocks whose columns lie in one piece, in memory that begins with a line of the cache."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._validation import FloatArray

__all__ = ["BLOCK", "aligned", "block_squares", "copy_rows", "empty", "in_blocks"]

BLOCK = 64
"""Rows, and anchor rows, that one small product takes.  Single precision adds up this many terms at a time."""

_CACHE_LINE = 64
"""Bytes.  Vector instructions are slower on arrays that begin within a line, which NumPy's do by 16 bytes."""


def in_blocks(X: FloatArray) -> FloatArray:
    """Rows (n_rows, n_columns) as float64 of shape (n_blocks, n_columns, BLOCK), filled up with the last row.

    Columns of a block lie in one piece, and products with them are twice as fast.
    """
    n_rows, n_columns = X.shape
    n_whole, rest = divmod(n_rows, BLOCK)
    blocks = empty((n_whole + bool(rest), n_columns, BLOCK), np.float64)
    blocks[:n_whole] = X[: n_rows - rest].reshape(n_whole, BLOCK, n_columns).transpose(0, 2, 1)
    if rest:
        blocks[n_whole, :, :rest] = X[n_rows - rest :].T
        blocks[n_whole, :, rest:] = X[-1][:, np.newaxis]
    return blocks


def copy_rows(X: FloatArray, blocks: FloatArray) -> None:
    """Write into ``X`` (n_rows, n_columns) what `in_blocks` would have made such blocks of."""
    n_rows, n_columns = X.shape
    n_whole, rest = divmod(n_rows, BLOCK)
    X[: n_rows - rest].reshape(n_whole, BLOCK, n_columns)[...] = blocks[:n_whole].transpose(0, 2, 1)
    if rest:
        X[n_rows - rest :] = blocks[n_whole, :, :rest].T


def block_squares(X: FloatArray) -> FloatArray:
    """Squared lengths, shape (n_blocks, BLOCK), of rows in blocks."""
    # That of a row far out may be infinite; its kernel values are then zero, as they should be.
    with np.errstate(over="ignore"):
        return np.asarray(np.einsum("bjr,bjr->br", X, X))


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array that begins with a line of the cache."""
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def aligned(values: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """A contiguous copy that begins with a line of the cache, with another data type if one is given."""
    copy = empty(values.shape, values.dtype if dtype is None else dtype)
    copy[...] = values
    return copy
