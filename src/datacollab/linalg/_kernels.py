"""Kernels between rows, in float64, and data-driven widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import pairwise_kernels

from .._validation import Array, FloatArray, array_library, array_namespace
from ._array_api import array_kernel, cast, exp_of_nonpositive, hstack

__all__ = ["Kernel", "median_gamma", "rbf_operands", "scale_gamma"]


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
        r"""Kernel matrix :math:`\Sigma` between the rows of ``A`` (eq. kernel-matrix-definition), shape (n, n)."""
        return self._evaluate(self._centred(A, A), None)

    def between(self, X: Array, A: Array, dtype: DTypeLike = np.float64) -> Array:
        r"""Kernel vectors :math:`\kappa(x)` (eq. kernel-vector-definition), one row for each row of ``X``.

        Both arrays are NumPy's, or of another library with one of `ARRAY_KERNELS`, and so is the result.
        """
        if self.metric == "rbf" and self.parameters.get("gamma") is not None:
            left, right = rbf_operands(X, A, self.parameters["gamma"], dtype)
            return exp_of_nonpositive(cast(left @ right.T, dtype))
        if array_library(A) is not None:
            return cast(array_kernel(str(self.metric), X, A, self.parameters), dtype)
        return self._evaluate(self._centred(X, A), self._centred(A, A)).astype(dtype, copy=False)

    def diagonal(self, A: FloatArray) -> FloatArray:
        r"""Diagonal of the kernel matrix of the rows of ``A``, without the matrix, shape (n,)."""
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
    r"""Two arrays whose rows' inner products are the exponents :math:`-\gamma |x - a|^2` of the RBF kernel.

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
    """One over the median distance between two rows: squared Euclidean, or Manhattan for the Laplacian kernel.

    Of more than 2,000 rows, 2,000 are looked at: always the same ones, drawn at random.

    Returns 0 or infinity where the data give no width; the caller decides what to say.
    """
    if A.shape[0] > _MEDIAN_ROWS:
        A = A[np.random.default_rng(0).choice(A.shape[0], size=_MEDIAN_ROWS, replace=False)]
    distances = pdist(A, "cityblock" if metric == "laplacian" else "sqeuclidean")
    median = float(np.median(distances, overwrite_input=True))
    return 1.0 / median if median > 0 else np.inf


def scale_gamma(A: FloatArray) -> float:
    """One over the number of columns times the variance of all entries, as ``gamma="scale"`` in scikit-learn."""
    variance = float(A.var())
    return 1.0 / (A.shape[1] * variance) if variance > 0 else np.inf
