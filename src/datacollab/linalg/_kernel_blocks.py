r"""Blocks of a kernel matrix between anchor rows, made when they are needed and never kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .._validation import Array, array_namespace
from ._array_api import cast, exp_of_nonpositive
from ._kernels import Kernel, rbf_operands

__all__ = ["KernelBlocks", "symmetric_product"]

_TILE = 512


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
        if kernel.metric == "rbf":
            self._left, self._right = rbf_operands(A, A, kernel.parameters["gamma"], dtype)
        else:
            self._rows = A

    def block(self, rows: slice, columns: slice) -> Array:
        """One block, written anew, of shape (rows, columns)."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._rows[rows, :], self._rows[columns, :]), self.dtype)
        return exp_of_nonpositive(cast(self._left[rows, :] @ self._right[columns, :].T, self.dtype))

    def lower_tiles(self) -> list[tuple[slice, slice, Array]]:
        """The lower triangle as square tiles that fit into the processor's cache: rows, columns, values."""
        edges = [slice(start, min(start + _TILE, self.n_rows)) for start in range(0, self.n_rows, _TILE)]
        return [
            (rows, columns, self.block(rows, columns)) for i, rows in enumerate(edges) for columns in edges[: i + 1]
        ]


def symmetric_product(tiles: list[tuple[slice, slice, Array]], X: Array) -> Array:
    r""":math:`\Sigma X` from the lower triangle of :math:`\Sigma` in tiles."""
    total = array_namespace(X).zeros_like(X)
    for rows, columns, tile in tiles:
        total[rows, :] += tile @ X[columns, :]
        if rows != columns:
            total[columns, :] += tile.T @ X[rows, :]
    return total
