"""Kernel PCA whose bandwidth comes from its own training rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import KernelPCA
from sklearn.utils.validation import check_is_fitted, validate_data

from .._constraints import Interval, StrOptions
from .._notebooks import FittedUnseen
from .._typing import DefaultNumber
from .._validation import FloatArray
from ..errors import ObfuscationError


class KernelPCAObfuscator(FittedUnseen, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""RBF kernel PCA with the median heuristic [Schölkopf1998]_.

    The kernel is :math:`\exp(-\|x - x'\|^2 / (2 \sigma^2))`, and :math:`\sigma` the median Euclidean distance between
    two training rows.  `sklearn.decomposition.KernelPCA` does the rest.  Each row is mapped by itself
    (eq. row-wise-obfuscation of the paper).  The fitted object holds the raw table, and stays at the party.

    Parameters
    ----------
    n_components : int, default=10
        Columns of the intermediate representation.  At most the number of positive eigenvalues of the centred kernel
        matrix, which is below the number of distinct training rows.
    bandwidth : "median" or float, default="median"
        :math:`\sigma`, in the units of the columns.
    bandwidth_factor : float, default=1.0
        Multiplies the bandwidth.  :math:`1/\sqrt 2` gives the other common reading of the median heuristic, a kernel
        :math:`\exp(-\|x - x'\|^2 / m)` with m the median squared distance.
    random_state : int, RandomState or None, default=None
        Starting vector of the iterative eigensolvers.  No secret depends on it.

    Attributes
    ----------
    bandwidth_, gamma_ : float
        :math:`\sigma` and :math:`1 / (2 \sigma^2)`.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, descending; all are positive.

    Raises
    ------
    ObfuscationError
        In `fit`, if the median distance is zero, or `n_components` exceeds the number of positive eigenvalues.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "bandwidth": [StrOptions({"median"}), Interval(Real, 0, None, closed="neither")],
        "bandwidth_factor": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    bandwidth_: float
    gamma_: float
    eigenvalues_: FloatArray

    def __init__(
        self,
        n_components: int = 10,
        *,
        bandwidth: str | float = "median",
        bandwidth_factor: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the bandwidth and the principal directions; `y` is ignored."""
        self._validate_params()
        rows: FloatArray = validate_data(self, X, dtype=np.float64)
        n_samples = rows.shape[0]
        is_default = isinstance(self.n_components, DefaultNumber)
        if self.n_components >= n_samples and not is_default:
            raise ObfuscationError(
                f"Kernel PCA: n_components={self.n_components} needs more than n_samples={n_samples} rows; "
                f"at most {n_samples - 1} components exist."
            )
        bandwidth = _median_distance(rows) if self.bandwidth == "median" else float(self.bandwidth)
        bandwidth *= self.bandwidth_factor
        gamma = 1.0 / (2.0 * bandwidth**2)
        mean = rows.mean(axis=0)
        # Centring takes one direction.
        n_components = min(self.n_components, n_samples - 1)
        kernel_pca = KernelPCA(n_components, kernel="rbf", gamma=gamma, random_state=self.random_state)
        # scikit-learn computes squared distances from inner products, which cancel badly far from the origin.
        kernel_pca.fit(rows - mean)
        # Components of eigenvalues that are not positive are rounding alone.
        positive = int((kernel_pca.eigenvalues_ > 0).sum())
        # A number that nobody chose may be lowered; one that was chosen is an agreement.
        if 0 < positive < n_components and is_default:
            kernel_pca = kernel_pca.set_params(n_components=positive).fit(rows - mean)
        elif positive < n_components:
            raise ObfuscationError(
                f"Kernel PCA: n_components={self.n_components}, but the kernel matrix of these {n_samples} rows has "
                f"only {positive} positive eigenvalues. Lower n_components to {positive}, or lower the bandwidth; "
                "repeated rows add nothing."
            )
        self.bandwidth_ = bandwidth
        self.gamma_ = gamma
        self.eigenvalues_ = kernel_pca.eigenvalues_
        self._mean = mean
        self._kernel_pca = kernel_pca
        self._n_features_out = len(kernel_pca.eigenvalues_)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map rows to their principal components, shape (n_rows, n_components)."""
        check_is_fitted(self, "eigenvalues_")
        rows: FloatArray = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self._kernel_pca.transform(rows - self._mean), dtype=np.float64)


def _median_distance(X: FloatArray) -> float:
    median = float(np.median(pdist(X), overwrite_input=True))
    if not 0 < median < np.inf:
        fault = "not finite"
        if median == 0:
            fault = "zero: at least half of the pairs coincide"
        raise ObfuscationError(
            f"Kernel PCA: the median distance between two rows is {fault}. "
            "Drop repeated rows, standardise the columns, or give bandwidth a number."
        )
    return median
