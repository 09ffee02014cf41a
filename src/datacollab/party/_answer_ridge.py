"""Kernel ridge regression of answers on the anchor's raw columns, its width and penalty chosen by leave-one-out."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray, Interval
from ..linalg import Kernel, centred_ridge, left_out_errors, median_gamma

__all__ = ["AnswerRidge"]

_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_MOST_TRIED = 1000
"""Rows by which width and penalty are chosen; ten decompositions of a matrix of this size take some seconds."""


class _Settings(NamedTuple):
    error: float
    gamma: float
    alpha: float
    standardize: bool


class AnswerRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""RBF kernel ridge regression with a free intercept, of one or several numbers at once.

    What is not given is chosen by the squared error on rows left out, one by one and in closed form: whether columns
    are standardised, the width among five multiples of the median one, and the penalty among seven.

    Parameters
    ----------
    gamma : float or None, default=None
        Of :math:`\exp(-\gamma \|x - a\|^2)`, on columns as they are used.
    alpha : float or None, default=None
        Penalty.
    standardize : bool or None, default=None
        Whether each column is brought to mean 0 and variance 1.

    Attributes
    ----------
    gamma_, alpha_ : float
    standardize_ : bool
    r2_ : float
        Part of the targets' variance that is predicted of rows left out, over all targets together: what is left of
        it by chance where the parameters were given, and slightly flattering where they were chosen by it.
    coefficients_ : ndarray of shape (n_rows, n_targets)
    intercept_ : ndarray of shape (n_targets,)
    n_features_in_ : int

    Notes
    -----
    Of more than 1,000 rows, 1,000 choose: always the same ones, drawn at random.  All are learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import AnswerRidge
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(200, 2))
    >>> ridge = AnswerRidge().fit(X[:150], np.sin(X[:150]))
    >>> ridge.r2_ > 0.99 and ridge.score(X[150:], np.sin(X[150:])) > 0.99
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "standardize": ["boolean", None],
    }

    gamma_: float
    alpha_: float
    standardize_: bool
    r2_: float
    coefficients_: FloatArray
    intercept_: FloatArray
    n_features_in_: int

    def __init__(
        self, *, gamma: float | None = None, alpha: float | None = None, standardize: bool | None = None
    ) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.standardize = standardize

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose what was not given, and solve.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_targets)

        Raises
        ------
        ValueError
            When all rows are equal, so that there is no width.
        """
        self._validate_params()
        rows, target = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        T = np.asarray(target, dtype=np.float64).reshape(len(rows), -1)
        self._is_flat = target.ndim == 1
        best = self._chosen(rows, T)
        self.gamma_, self.alpha_, self.standardize_, self.r2_ = best.gamma, best.alpha, best.standardize, 1 - best.error
        self._centre, self._scale = _centre_and_scale(rows, self.standardize_)
        self._rows = (rows - self._centre) / self._scale
        self.coefficients_, self.intercept_ = centred_ridge(self._kernel.gram(self._rows), self.alpha_, T)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted numbers, of shape (n_rows,) or (n_rows, n_targets)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        kernel = self._kernel.between((rows - self._centre) / self._scale, self._rows)
        values = np.asarray(kernel @ self.coefficients_ + self.intercept_)
        return values[:, 0] if self._is_flat else values

    @property
    def _kernel(self) -> Kernel:
        return Kernel(metric="rbf", parameters={"gamma": self.gamma_})

    def _chosen(self, rows: FloatArray, T: FloatArray) -> _Settings:
        """Of all settings that are left open, those with the smallest error on rows left out, relative to a mean's."""
        if len(rows) > _MOST_TRIED:
            tried = np.random.default_rng(0).choice(len(rows), size=_MOST_TRIED, replace=False)
            rows, T = rows[tried], T[tried]
        n = len(T)
        # A mean of the other rows misses a row by this.
        spread = float((((T - T.mean(axis=0)) * n / (n - 1)) ** 2).sum())
        best: _Settings | None = None
        for standardize in (False, True) if self.standardize is None else (bool(self.standardize),):
            centre, scale = _centre_and_scale(rows, standardize)
            used = (rows - centre) / scale
            for gamma in self._widths(used):
                gram = Kernel(metric="rbf", parameters={"gamma": gamma}).gram(used)
                eigenvalues, U = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False)
                for alpha in _ALPHAS if self.alpha is None else (float(self.alpha),):
                    missed = float((left_out_errors(eigenvalues, U, alpha, T) ** 2).sum())
                    # Targets that are all equal are met by any setting.
                    error = missed / spread if spread > 0 else 0.0
                    if best is None or error < best.error:
                        best = _Settings(error, gamma, alpha, standardize)
        assert best is not None
        return best

    def _widths(self, rows: FloatArray) -> list[float]:
        if self.gamma is not None:
            return [float(self.gamma)]
        median = median_gamma(rows)
        if not 0 < median < np.inf:
            raise ValueError("More than half of the distances between rows are 0, or one is infinite; give gamma.")
        return [multiple * median for multiple in _MULTIPLES]


def _centre_and_scale(rows: FloatArray, standardize: bool) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the columns; 1 for constant ones, and where they are not wanted."""
    scale = rows.std(axis=0) if standardize else np.ones(rows.shape[1])
    return rows.mean(axis=0), np.where(scale > 0, scale, 1.0)
