r"""Blocks of a kernel matrix between anchor rows, made when they are needed and never kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._validation import FloatArray
from ._kernels import Kernel

__all__ = ["KernelBlocks", "symmetric_product"]

_TILE = 512
_FAR = 8.0
"""Largest gamma * |a|^2 at which float32 holds the exponent well enough."""


class KernelBlocks:
    r"""The kernel matrix :math:`\Sigma` of rows ``A``, block by block (eq. kernel-matrix-definition).

    Parameters
    ----------
    kernel : Kernel
    A : ndarray of shape (n, d)
    dtype : numpy.float32 or numpy.float64
        Precision of the blocks.
    """

    def __init__(self, kernel: Kernel, A: FloatArray, dtype: DTypeLike = np.float64) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.n_rows = A.shape[0]
        if kernel.metric == "rbf":
            # |x|^2 + |a|^2 - 2 x.a as one matrix product, about the mean, where it cancels least.
            gamma = kernel.parameters["gamma"]
            scaled = (A - A.mean(axis=0)) * np.sqrt(2.0 * gamma)
            half = 0.5 * np.einsum("ij,ij->i", scaled, scaled)[:, None]
            one = np.ones_like(half)
            precision = np.float64 if half.max() > _FAR else self.dtype
            self._left = np.hstack([scaled, one, -half]).astype(precision)
            self._right = np.hstack([scaled, -half, one]).astype(precision)
        else:
            self._rows = A

    def block(self, rows: slice, columns: slice) -> NDArray[Any]:
        """One block, written anew, of shape (rows, columns)."""
        if self.kernel.metric != "rbf":
            return self.kernel.between(self._rows[rows], self._rows[columns]).astype(self.dtype, copy=False)
        exponents: NDArray[Any] = (self._left[rows] @ self._right[columns].T).astype(self.dtype, copy=False)
        np.minimum(exponents, 0, out=exponents)
        np.exp(exponents, out=exponents)
        return exponents

    def lower_tiles(self) -> list[tuple[slice, slice, NDArray[Any]]]:
        """The lower triangle as square tiles that fit into the processor's cache: rows, columns, values."""
        edges = [slice(start, min(start + _TILE, self.n_rows)) for start in range(0, self.n_rows, _TILE)]
        return [
            (rows, columns, self.block(rows, columns)) for i, rows in enumerate(edges) for columns in edges[: i + 1]
        ]


def symmetric_product(tiles: list[tuple[slice, slice, NDArray[Any]]], X: NDArray[Any]) -> NDArray[Any]:
    r""":math:`\Sigma X` from the lower triangle of :math:`\Sigma` in tiles."""
    total = np.zeros_like(X)
    for rows, columns, tile in tiles:
        total[rows] += tile @ X[columns]
        if rows != columns:
            total[columns] += tile.T @ X[rows]
    return total
