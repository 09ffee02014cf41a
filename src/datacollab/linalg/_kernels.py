"""Kernels between rows, in float64, and data-driven widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import pairwise_kernels

from .._validation import FloatArray

__all__ = ["Kernel", "median_gamma", "scale_gamma"]


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

    def between(self, X: FloatArray, A: FloatArray) -> FloatArray:
        r"""Kernel vectors :math:`\kappa(x)` (eq. kernel-vector-definition), one row for each row of ``X``."""
        return self._evaluate(self._centred(X, A), self._centred(A, A))

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


def median_gamma(A: FloatArray, metric: str | Callable[..., Any] = "rbf") -> float:
    """One over the median distance between two rows: squared Euclidean, or Manhattan for the Laplacian kernel.

    Returns 0 or infinity where the data give no width; the caller decides what to say.
    """
    distances = pdist(A, "cityblock" if metric == "laplacian" else "sqeuclidean")
    median = float(np.median(distances, overwrite_input=True))
    return 1.0 / median if median > 0 else np.inf


def scale_gamma(A: FloatArray) -> float:
    """One over the number of columns times the variance of all entries, as ``gamma="scale"`` in scikit-learn."""
    variance = float(A.var())
    return 1.0 / (A.shape[1] * variance) if variance > 0 else np.inf
