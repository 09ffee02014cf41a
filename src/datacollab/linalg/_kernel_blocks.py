r"""Blocks of a kernel matrix between anchor rows, made when they are needed and never kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._validation import Array, FloatArray, array_namespace
from ._array_api import cast, exp_of_nonpositive
from ._kernels import Kernel, rbf_operands

__all__ = ["KernelBlocks", "symmetric_product"]

_TILE = 192
"""Rows and columns of a tile, so few that OpenBLAS multiplies it by some columns without packing it first."""
_DEVICE_TILE = 1024
"""The same where another library than NumPy computes."""
_ROWS = 256
"""Rows made at a time, which stay in the processor's cache."""

Place = tuple[slice, slice]
"""Rows and columns of a block."""


class KernelBlocks:
    r"""The kernel matrix :math:`\Sigma` of rows ``A``, block by block (eq. kernel-matrix-definition).

    Parameters
    ----------
    kernel : Kernel
    A : array of shape (n, d)
    dtype : numpy.float32 or numpy.float64
        Precision of the blocks; they are of the library of ``A`` and on its device.
    """

    def __init__(self, kernel: Kernel, A: Array, dtype: DTypeLike = np.float64) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.n_rows = A.shape[0]
        self._A = A
        if kernel.metric == "rbf":
            self._left, right = rbf_operands(A, A, kernel.parameters["gamma"], dtype)
            self._right = array_namespace(right).asarray(right.T, copy=True)

    def block(self, rows: slice, columns: slice) -> Array:
        """One block, written anew, of shape (rows, columns)."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._A[rows, :], self._A[columns, :]), self.dtype)
        return exp_of_nonpositive(cast(self._left[rows, :] @ self._right[:, columns], self.dtype))

    def rows(self, chosen: NDArray[np.intp]) -> Array:
        """Some rows, written anew, of shape (rows, n)."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._A[chosen], self._A), self.dtype)
        return exp_of_nonpositive(cast(self._left[chosen] @ self._right, self.dtype))

    def each(self, places: Sequence[Place]) -> Iterator[Array]:
        """Blocks, made one after the other; NumPy's lie side by side in memory that is taken at once."""
        if not isinstance(self._A, np.ndarray):
            yield from (self.block(*place) for place in places)
            return
        for (rows, columns), out in zip(places, _in_one_piece(places, self.dtype), strict=True):
            for start in range(rows.start, rows.stop, _ROWS):
                part = slice(start, min(start + _ROWS, rows.stop))
                self._write(part, columns, out[part.start - rows.start : part.stop - rows.start])
            yield out

    def lower_tiles(self) -> list[tuple[slice, slice, Array]]:
        """The lower triangle as square tiles: rows, columns, values."""
        size = _TILE if isinstance(self._A, np.ndarray) else _DEVICE_TILE
        edges = [slice(start, min(start + size, self.n_rows)) for start in range(0, self.n_rows, size)]
        places = [(rows, columns) for i, rows in enumerate(edges) for columns in edges[: i + 1]]
        return [(*place, tile) for place, tile in zip(places, self.each(places), strict=True)]

    def _write(self, rows: slice, columns: slice, out: FloatArray) -> None:
        if self.kernel.metric == "rbf" and self._left.dtype == self.dtype:
            np.matmul(self._left[rows], self._right[:, columns], out=out)
            exp_of_nonpositive(out)
        else:
            out[:] = self.block(rows, columns)


def _in_one_piece(places: Sequence[Place], dtype: DTypeLike) -> list[FloatArray]:
    # The operating system hands out large pieces in large pages, which are much faster to take and to walk through.
    shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in places]
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    memory = np.empty(ends[-1], dtype=dtype)
    return [memory[start:end].reshape(shape) for (start, end), shape in zip(pairwise(ends), shapes, strict=True)]


def symmetric_product(tiles: list[tuple[slice, slice, Array]], X: Array) -> Array:
    r""":math:`\Sigma X` from the lower triangle of :math:`\Sigma` in tiles."""
    total = array_namespace(X).zeros_like(X)
    for rows, columns, tile in tiles:
        total[rows, :] += tile @ X[columns, :]
        if rows != columns:
            total[columns, :] += tile.T @ X[rows, :]
    return total
