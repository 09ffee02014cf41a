"""Folds, models fitted on the others of them, and the default propensity model."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray, Interval
from ..errors import EffectError

__all__ = ["Folds", "WhitenedLogisticRegression", "cross_fitted", "effect_folds", "equal_rows", "predicted"]

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
"""Positions that train and positions that are predicted, fold by fold."""


def equal_rows(X: FloatArray) -> NDArray[np.intp]:
    """A number for each row, the same for rows that are equal to the bit, shape (n_rows,)."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1], dtype=np.intp).ravel()


def effect_folds(
    treatment: NDArray[np.int64],
    groups: NDArray[np.intp],
    n_folds: int,
    random_state: int | np.random.RandomState | None,
) -> Folds:
    """Folds with about the same part of treated rows; rows of one group are in one fold.

    Parameters
    ----------
    treatment : ndarray of shape (n_rows,)
    groups : ndarray of shape (n_rows,)
        Such as `equal_rows` gives; a group of both arms counts for the one that most of its rows are of.
    n_folds : int
    random_state : int, RandomState or None

    Returns
    -------
    list of (ndarray, ndarray)

    Raises
    ------
    EffectError
        When an arm has too few groups to be in every fold's training rows.

    Examples
    --------
    >>> import numpy as np
    >>> groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> folds = effect_folds(np.array([0, 0, 1, 1, 0, 0, 1, 1]), groups, 2, 0)
    >>> [sorted(set(groups[test].tolist())) for _, test in folds]
    [[1, 2], [0, 3]]
    """
    _, numbers = np.unique(groups, return_inverse=True)
    arms = (np.bincount(numbers, weights=treatment) > 0.5 * np.bincount(numbers)).astype(np.intp)
    fewest = int(np.bincount(arms, minlength=2).min())
    if fewest < n_folds:
        raise EffectError(
            f"{n_folds} folds need {n_folds} distinct rows of either arm, treated and not; one arm has {fewest}. Ask "
            "for fewer folds, or for more rows."
        )
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    tests = [np.isin(numbers, test) for _, test in splitter.split(arms, arms)]
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests]


_RANK = 1e-9
"""Singular values below this part of the largest count as none."""


class WhitenedLogisticRegression(ClassifierMixin, BaseEstimator):
    r"""Logistic regression that is the same in all coordinates: of rows x and of rows xG + b, G invertible.

    Rows are centred and brought to covariance I, and coefficients there have a small ridge penalty.  So scores of an
    affine collaboration representation of full rank are those of the original columns, and they exist also where the
    arms can be told apart completely.

    Parameters
    ----------
    C : float, default=10.0
        One over the penalty, as in scikit-learn's `LogisticRegression`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_ : ndarray of shape (1, n_features)
        For rows as they are given.
    intercept_ : ndarray of shape (1,)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> t = (X[:, 0] + rng.logistic(size=100) > 0).astype(int)
    >>> G, b = np.array([[1.0, 5.0], [0.0, 0.01]]), np.array([3.0, 7.0])
    >>> there, here = X @ G + b, X
    >>> first = WhitenedLogisticRegression().fit(here, t).predict_proba(here)
    >>> bool(np.allclose(first, WhitenedLogisticRegression().fit(there, t).predict_proba(there)))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"C": [Interval(Real, 0, None, closed="right")]}

    def __init__(self, C: float = 10.0) -> None:
        self.C = C

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and arms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Of two classes.
        """
        self._validate_params()
        rows, y = validate_data(self, X, y)
        mean = rows.mean(axis=0)
        U, s, Vt = np.linalg.svd(rows - mean, full_matrices=False)
        kept = s > _RANK * max(float(s.max()), np.finfo(float).tiny)
        scale = np.where(kept, np.sqrt(len(rows)), 0.0)
        model = LogisticRegression(C=self.C, tol=1e-10, max_iter=1000).fit(U * scale, y)
        coef = model.coef_ @ (Vt * (scale / np.where(kept, s, 1.0))[:, None])
        self.classes_ = model.classes_
        self.coef_ = coef
        self.intercept_ = model.intercept_ - coef @ mean
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probabilities of the classes, shape (n_samples, 2)."""
        check_is_fitted(self)
        second = expit(validate_data(self, X, reset=False) @ self.coef_[0] + self.intercept_[0])
        return np.column_stack([1.0 - second, second])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class of each row, shape (n_samples,)."""
        return np.asarray(self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(np.intp)])


def predicted(model: Any, X: FloatArray) -> FloatArray:
    """Probability of class 1 of a classifier, number of a regressor, shape (n_rows,)."""
    return np.asarray(model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X), dtype=np.float64)


def cross_fitted(
    model: Any, X: FloatArray, y: NDArray[Any], folds: Folds, *, among: NDArray[np.bool_] | None = None
) -> FloatArray:
    """What a model says of each row that it was not fitted on, shape (n_rows,).

    Parameters
    ----------
    model : estimator
        A classifier of 0 and 1, or a regressor; cloned.
    X : ndarray of shape (n_rows, n_components)
    y : ndarray of shape (n_rows,)
    folds : list of (ndarray, ndarray)
    among : ndarray of shape (n_rows,), bool, optional
        Rows that may train, such as those of one arm; all rows are predicted.
    """
    values = np.empty(len(X))
    for train, test in folds:
        rows = train if among is None else train[among[train]]
        values[test] = predicted(clone(model).fit(X[rows], y[rows]), X[test])
    return values
