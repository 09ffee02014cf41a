"""Fitted models of one party's own rows: scores of classes, or numbers, for encoded rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..linalg import Kernel

__all__ = ["FLOOR", "EstimatorScorer", "KernelScorer", "SpreadScorer", "log_of_shares", "nearest_weights"]

FLOOR = 0.01
"""Part of every probability that is spread over all classes: nothing is ever ruled out."""


def log_of_shares(shares: FloatArray) -> FloatArray:
    """Logarithms of rows of shares, with a floor; rows without any share are even, shape as given."""
    totals = shares.sum(axis=1, keepdims=True)
    even = 1.0 / shares.shape[1]
    normal = np.divide(shares, totals, out=np.full_like(shares, even), where=totals > 0)
    return np.asarray(np.log((1 - FLOOR) * normal + FLOOR * even))


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """Kernel ridge regression, with a constant in the kernel for an intercept.

    Attributes
    ----------
    rows : ndarray of shape (n_train, n_encoded)
        The rows learnt from, multiplied by `factors`.
    coefficients : ndarray of shape (n_train, n_outputs)
    kernel : Kernel
    factors : ndarray of shape (n_encoded,)
    """

    rows: FloatArray
    coefficients: FloatArray
    kernel: Kernel
    factors: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Outputs for encoded rows, shape (n_rows, n_outputs)."""
        return np.asarray((self.kernel.between(Z * self.factors, self.rows) + 1.0) @ self.coefficients)


@dataclass(frozen=True, eq=False)
class EstimatorScorer:
    """A scikit-learn estimator.

    Attributes
    ----------
    estimator : estimator
        Classifiers are fitted on positions of classes.
    n_classes : int or None
        None for numbers.
    """

    estimator: Any
    n_classes: int | None

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1)."""
        if self.n_classes is None:
            return np.asarray(self.estimator.predict(Z), dtype=np.float64)[:, None]
        shares = np.zeros((len(Z), self.n_classes))
        shares[:, np.asarray(self.estimator.classes_, dtype=np.intp)] = self.estimator.predict_proba(Z)
        return log_of_shares(shares)


@dataclass(frozen=True, eq=False)
class SpreadScorer:
    """What the nearest rows were told when labels were spread.

    Attributes
    ----------
    rows : ndarray of shape (n_train, n_encoded)
        Multiplied by `factors`.
    labels : ndarray of shape (n_train, n_classes)
    gamma : float
    n_neighbors : int
    factors : ndarray of shape (n_encoded,)
    """

    rows: FloatArray
    labels: FloatArray
    gamma: float
    n_neighbors: int
    factors: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Logarithms of class shares, shape (n_rows, n_classes)."""
        return log_of_shares(nearest_weights(Z * self.factors, self.rows, self.gamma, self.n_neighbors) @ self.labels)


def nearest_weights(X: FloatArray, rows: FloatArray, gamma: float, n_neighbors: int) -> FloatArray:
    r"""Weights :math:`e^{-\gamma |x - r|^2}` of the nearest rows, 0 for all others, shape (n_X, n_rows)."""
    weights = Kernel(metric="rbf", parameters={"gamma": gamma}).between(X, rows)
    if n_neighbors < weights.shape[1]:
        far: NDArray[np.intp] = np.argpartition(weights, -n_neighbors, axis=1)[:, :-n_neighbors]
        np.put_along_axis(weights, far, 0.0, axis=1)
    return np.asarray(weights)
