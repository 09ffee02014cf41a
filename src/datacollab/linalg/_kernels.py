"""Kernels between rows, in float64, and data-driven widths; blocks of a kernel matrix, made when they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import pairwise_kernels

from .._validation import Array, FloatArray, array_library, array_namespace
from ._array_api import ARRAY_KERNELS, cast, exp_of_nonpositive, hstack

__all__ = ["Kernel", "KernelBlocks", "median_gamma", "rbf_operands", "scale_gamma", "symmetric_product"]


_FAR = 8.0
"""Largest gamma * |a|^2 at which float32 holds the exponent of the RBF kernel well enough."""

_MEDIAN_ROWS = 2000
"""Rows between which distances are computed for their median, which more would hardly change."""

_UNIT_DIAGONAL = ("rbf", "laplacian")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel with its parameters, as `sklearn.metrics.pairwise.pairwise_kernels` takes them.

    Attributes
    ----------
    metric : str or callable
    parameters : mapping
        Passed on; those that a named kernel does not take are left out.
    """

    metric: str | Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def gram(self, A: FloatArray) -> FloatArray:
        r"""Return the kernel matrix :math:`\Sigma` between the rows of ``A`` (eq. kernel-matrix-definition)."""
        return self._evaluate(self._centred(A, A), None)

    def between(self, X: Array, A: Array, dtype: DTypeLike = np.float64) -> Array:
        r"""Return kernel vectors :math:`\kappa(x)` (eq. kernel-vector-definition), one row for each row of ``X``.

        Both arrays are NumPy's, or of another library with one of `ARRAY_KERNELS`, and so is the result.
        """
        if self.metric == "rbf" and self.parameters.get("gamma") is not None:
            left, right = rbf_operands(X, A, self.parameters["gamma"], dtype)
            return exp_of_nonpositive(cast(left @ right.T, dtype))
        if array_library(A) is not None:
            return cast(ARRAY_KERNELS[str(self.metric)](X, A, self.parameters), dtype)
        return self._evaluate(self._centred(X, A), self._centred(A, A)).astype(dtype, copy=False)

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return the diagonal of the kernel matrix of the rows of ``A``, shape (n,), without the matrix."""
        if self.metric in _UNIT_DIAGONAL:
            return np.ones(A.shape[0])
        return np.array([self.gram(row[None, :])[0, 0] for row in A])

    def _centred(self, X: FloatArray, A: FloatArray) -> FloatArray:
        # |x|^2 + |a|^2 - 2 x.a cancels badly far from the origin; distances do not depend on the origin.
        return X - A.mean(axis=0) if self.metric == "rbf" else X

    def _evaluate(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        named = isinstance(self.metric, str)
        values = pairwise_kernels(X, Y, metric=self.metric, filter_params=named, **self.parameters)
        return np.asarray(values, dtype=np.float64)


def rbf_operands(X: Array, A: Array, gamma: float, dtype: DTypeLike) -> tuple[Array, Array]:
    r"""Return two arrays whose rows' inner products are the exponents :math:`-\gamma |x - a|^2` of the RBF kernel.

    One matrix product is three times as fast as distances.  About the mean of ``A`` it cancels least.
    """
    xp = array_namespace(A)
    centre, scale = xp.mean(A, axis=0), (2.0 * gamma) ** 0.5
    rows, columns = (X - centre) * scale, (A - centre) * scale
    half_rows = 0.5 * xp.sum(rows * rows, axis=1, keepdims=True)
    half_columns = 0.5 * xp.sum(columns * columns, axis=1, keepdims=True)
    # Far from the centre the exponent, a difference of large numbers, needs float64 whatever the result has.
    far = any(half.shape[0] and float(xp.max(half)) > _FAR for half in (half_rows, half_columns))
    left = hstack([rows, half_rows, xp.ones_like(half_rows)])
    right = hstack([columns, -xp.ones_like(half_columns), -half_columns])
    return cast(left, np.float64 if far else dtype), cast(right, np.float64 if far else dtype)


def median_gamma(A: FloatArray, metric: str | Callable[..., Any] = "rbf") -> float:
    """Return one over the median distance between two rows: squared Euclidean, or Manhattan for the Laplacian kernel.

    Beyond 2,000 rows it takes 2,000, always the same ones.  0 or infinity means that the data give no width.
    """
    if A.shape[0] > _MEDIAN_ROWS:
        A = A[np.random.default_rng(0).choice(A.shape[0], size=_MEDIAN_ROWS, replace=False)]
    distances = pdist(A, "cityblock" if metric == "laplacian" else "sqeuclidean")
    median = float(np.median(distances, overwrite_input=True))
    return 1.0 / median if median > 0 else np.inf


def scale_gamma(A: FloatArray) -> float:
    """Return one over the number of columns times the variance of all entries, as ``gamma="scale"`` in scikit-learn."""
    variance = float(A.var())
    return 1.0 / (A.shape[1] * variance) if variance > 0 else np.inf


_TILE = 192
"""Rows and columns of a tile, so few that OpenBLAS multiplies it by some columns without packing it first."""
_DEVICE_TILE = 1024
"""The same if another library than NumPy computes."""
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
        Precision of the blocks, which have the library and device of ``A``.
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
        """Return one block, written anew."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._A[rows, :], self._A[columns, :]), self.dtype)
        return exp_of_nonpositive(cast(self._left[rows, :] @ self._right[:, columns], self.dtype))

    def rows(self, chosen: NDArray[np.intp]) -> Array:
        """Return some rows, written anew, of shape (rows, n)."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._A[chosen], self._A), self.dtype)
        return exp_of_nonpositive(cast(self._left[chosen] @ self._right, self.dtype))

    def each(self, places: Sequence[Place]) -> Iterator[Array]:
        """Yield blocks, made one after the other; NumPy's lie side by side in memory that is taken at once."""
        if not isinstance(self._A, np.ndarray):
            yield from (self.block(*place) for place in places)
            return
        for (rows, columns), out in zip(places, _in_one_piece(places, self.dtype), strict=True):
            for start in range(rows.start, rows.stop, _ROWS):
                part = slice(start, min(start + _ROWS, rows.stop))
                self._write(part, columns, out[part.start - rows.start : part.stop - rows.start])
            yield out

    def lower_tiles(self) -> list[tuple[slice, slice, Array]]:
        """Return the lower triangle as square tiles: rows, columns, values."""
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
    r"""Return :math:`\Sigma X` from the lower triangle of :math:`\Sigma` in tiles."""
    total = array_namespace(X).zeros_like(X)
    for rows, columns, tile in tiles:
        total[rows, :] += tile @ X[columns, :]
        if rows != columns:
            total[columns, :] += tile.T @ X[rows, :]
    return total
