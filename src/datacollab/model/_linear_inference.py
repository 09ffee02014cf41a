r"""Least squares and logistic regression that keep the covariance of their coefficients.

.. math:: V = s^2 (\bar X^\top W \bar X)^{-1}, \qquad
   V_{\text{robust}} = \frac{n}{n - p - 1} (\bar X^\top W \bar X)^{-1} \bar X^\top R^2 \bar X
   (\bar X^\top W \bar X)^{-1},

with :math:`\bar X = [1, X]`, residuals R, and for least squares :math:`W = I` and
:math:`s^2 = \|r\|^2 / (n - p - 1)`, for logistic regression :math:`W = \mathrm{diag}(p (1 - p))` and
:math:`s^2 = 1`; the second is that of [White1980] with the usual correction for few rows.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray
from ..errors import AgreementError, NumericalError

__all__ = ["LeastSquaresInference", "LogisticInference"]

_RANK = 1e-10
_GRADIENT = 1e-7
_MOST_LOG_ODDS = 30.0
"""Log odds of a row beyond which classes are as good as separated, and no largest likelihood exists."""


class LeastSquaresInference(RegressorMixin, BaseEstimator):
    """Least squares, with the covariance of its coefficients.

    As the model h of a collaboration, it lets each party see effects of its own columns with intervals:
    `Party.column_effects`.

    Parameters
    ----------
    robust : bool, default=False
        Whether the covariance allows for errors of unequal variance.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    covariance_ : ndarray of shape (n_features, n_features)
        Of `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import LeastSquaresInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> fitted = LeastSquaresInference().fit(X, X @ [1.0, 0.0] + rng.normal(size=400))
    >>> np.sqrt(np.diag(fitted.covariance_)).round(2)
    array([0.05, 0.05])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"robust": ["boolean"]}

    coef_: FloatArray
    intercept_: float
    covariance_: FloatArray
    n_features_in_: int

    def __init__(self, *, robust: bool = False) -> None:
        self.robust = robust

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)

        Returns
        -------
        self

        Raises
        ------
        NumericalError
            When columns are linearly dependent, or there are too few rows for so many.
        """
        self._validate_params()
        rows, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        check_rows(rows, type(self).__name__)
        fitted = LinearRegression().fit(rows, target)
        residuals = target - fitted.predict(rows)
        dispersion = float(residuals @ residuals) / (len(rows) - rows.shape[1] - 1)
        covariance = _covariance(rows, np.ones(len(rows)), residuals, dispersion, robust=self.robust)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)
        self.covariance_ = covariance
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted means, shape (n_rows,)."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_)


class LogisticInference(ClassifierMixin, BaseEstimator):
    """Logistic regression of two classes without a penalty, with the covariance of its coefficients.

    Parameters
    ----------
    robust : bool, default=False
        Whether the covariance allows for a model that is not the right one.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
        Of the log odds of the second class.
    intercept_ : ndarray of shape (1,)
    covariance_ : ndarray of shape (n_features, n_features)
        Of `coef_`.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import LogisticInference
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> fitted = LogisticInference().fit(X, X[:, 0] + rng.logistic(size=400) > 0)
    >>> np.sqrt(np.diag(fitted.covariance_)).round(1)
    array([0.1, 0.1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"robust": ["boolean"]}

    classes_: NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    covariance_: FloatArray
    n_features_in_: int

    def __init__(self, *, robust: bool = False) -> None:
        self.robust = robust

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Of two classes.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When there are not two classes.
        NumericalError
            When columns are linearly dependent, there are too few rows for so many, or a hyperplane separates the
            classes.
        """
        self._validate_params()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            # The last words are what scikit-learn's own checks look for.
            raise AgreementError(
                f"LogisticInference: two classes are wanted; got {len(classes)}, of one class where it is 1. Only "
                "binary classification is supported."
            )
        check_rows(rows, type(self).__name__)
        # Columns of one scale: how near the optimum a gradient is then means the same for all.
        scale = rows.std(axis=0)
        coefficients, intercept = _logistic(rows / scale, codes)
        coefficients = coefficients / scale
        said = expit(rows @ coefficients + intercept)
        covariance = _covariance(rows, said * (1 - said), codes - said, 1.0, robust=self.robust)
        self.classes_, self.coef_, self.intercept_ = classes, coefficients[None, :], np.array([intercept])
        self.covariance_ = covariance
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Log odds of the second class, shape (n_rows,)."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, 2)."""
        scores = self.decision_function(X)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Likelier class of each row, shape (n_rows,)."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def check_rows(rows: FloatArray, name: str) -> None:
    """Refuse rows from which no coefficients with a covariance can be had.

    Raises
    ------
    NumericalError
        When there are too few, or columns are linearly dependent.
    """
    n_rows, n_columns = rows.shape
    if n_rows < n_columns + 2:
        raise NumericalError(
            f"{name}: {n_columns} coefficients with a covariance need at least {n_columns + 2} rows; got {n_rows}. "
            "Take fewer components, or collect more rows."
        )
    centred = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    varies = lengths > _RANK * np.sqrt(n_rows) * np.abs(rows).max(axis=0)
    singular_values = np.linalg.svd(centred / np.where(varies, lengths, 1.0), compute_uv=False)
    if not varies.all() or singular_values[-1] < _RANK * singular_values[0]:
        raise NumericalError(
            f"{name}: of {n_columns} columns some are constant or linear in others, so that coefficients have no "
            "covariance. Take fewer components, as many as the parties' representations have dimensions."
        )


def _covariance(
    rows: FloatArray, weights: FloatArray, residuals: FloatArray, dispersion: float, *, robust: bool
) -> FloatArray:
    """Covariance of the slopes; the intercept is left out at the end."""
    n_rows, n_columns = rows.shape
    # Slopes have the same covariance wherever columns are centred; near their mean the intercept is well told.
    centre, scale = np.average(rows, axis=0, weights=weights), rows.std(axis=0)
    design = np.column_stack([np.ones(n_rows), (rows - centre) / scale])
    R = np.linalg.qr(np.sqrt(weights)[:, None] * design, mode="r")
    root = scipy.linalg.solve_triangular(R, np.eye(n_columns + 1))
    if robust:
        scores = (residuals[:, None] * design) @ root
        bread = root @ scores.T
        full = bread @ bread.T * (n_rows / (n_rows - n_columns - 1))
    else:
        full = dispersion * (root @ root.T)
    return np.asarray(full[1:, 1:] / np.outer(scale, scale))


def _logistic(rows: FloatArray, target: NDArray[np.intp]) -> tuple[FloatArray, float]:
    """Slopes and intercept of the largest likelihood."""
    centre = rows.mean(axis=0)
    with warnings.catch_warnings():
        # What does not converge here is separated, and is seen below by its log odds.
        warnings.simplefilter("ignore")
        fitted = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-9, max_iter=200)
        fitted.fit(rows - centre, target)
    scores = fitted.decision_function(rows - centre)
    gradient = np.column_stack([np.ones(len(rows)), rows - centre]).T @ (expit(scores) - target) / len(rows)
    if not np.abs(scores).max() <= _MOST_LOG_ODDS or np.abs(gradient).max() > _GRADIENT:
        raise NumericalError(
            "LogisticInference: a hyperplane separates the classes, or nearly, so that no largest likelihood exists. "
            "Take fewer components, or a model with a penalty, which has no intervals."
        )
    slopes = np.asarray(fitted.coef_[0])
    return slopes, float(fitted.intercept_[0] - centre @ slopes)
