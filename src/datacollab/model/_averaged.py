r"""The weighted mean of several models: :math:`h(x) = \sum_j w_j h_j(x)`, of probabilities or of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._validation import FloatArray
from ._batches import row_batches
from ._left_out import fit_weighted

__all__ = ["AveragedClassifier", "AveragedRegressor", "probabilities_of"]


class _Averaged(BaseEstimator):
    estimators_: list[Any]
    weights_: FloatArray
    n_features_in_: int

    def __init__(self, estimators: Sequence[Any] = (), *, weights: Sequence[float] | None = None) -> None:
        self.estimators = estimators
        self.weights = weights

    @classmethod
    def of(cls, fitted: Sequence[Any], weights: Sequence[float] | FloatArray) -> Self:
        """The mean of models that are fitted already, each perhaps to other weights of the rows.

        Parameters
        ----------
        fitted : sequence of fitted estimators
        weights : sequence of float
            From 0 on, not all 0.
        """
        return cls(list(fitted), weights=[float(weight) for weight in weights])._keep(list(fitted))

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit all models to the same rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Raises
        ------
        ValueError
            When there is nothing to fit, or weights have no meaning.
        """
        rows, target = validate_data(self, X, y)
        weights = _check_sample_weight(sample_weight, rows)
        return self._keep([fit_weighted(clone(each), rows, target, weights) for each in self.estimators])

    def _keep(self, fitted: list[Any]) -> Self:
        weights = np.ones(len(fitted)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if not fitted:
            raise ValueError(f"{type(self).__name__}: estimators is empty; name at least one.")
        if weights.shape != (len(fitted),) or not (np.isfinite(weights) & (weights >= 0)).all() or weights.sum() == 0:
            raise ValueError(
                f"{type(self).__name__}: weights must be {len(fitted)} numbers from 0 on, not all 0; got "
                f"{self.weights!r}."
            )
        self.estimators_, self.weights_ = fitted, weights / weights.sum()
        self.n_features_in_ = fitted[0].n_features_in_
        return self

    def _batches(self, X: ArrayLike, width: int) -> Iterator[FloatArray]:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False)
        return row_batches(rows, max(width, rows.shape[1]))

    def _mean(self, said: Iterable[FloatArray]) -> FloatArray:
        """One after the other, so that no more than one of them is in memory beside the sum."""
        return np.asarray(sum(weight * each for weight, each in zip(self.weights_, said, strict=True)))


class AveragedClassifier(ClassifierMixin, _Averaged):
    """Weighted mean of the class probabilities of several classifiers: a soft vote.

    Parameters
    ----------
    estimators : sequence of classifiers
        With `predict_proba`; clones of them are fitted.
    weights : sequence of float, default=None
        One for each; all alike by default.

    Attributes
    ----------
    estimators_ : list of fitted classifiers
    weights_ : ndarray of shape (n_estimators,)
        They add up to one.
    classes_ : ndarray of shape (n_classes,)
        All that any of them knows; to the others it is impossible.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import AveragedClassifier, LandmarkRidgeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> inside = np.linalg.norm(X, axis=1) < 1
    >>> narrow, wide = (LandmarkRidgeClassifier(X[:50], gamma=gamma) for gamma in (0.5, 2.0))
    >>> average = AveragedClassifier([narrow, wide]).fit(X[:150], inside[:150])
    >>> average.score(X[150:], inside[150:]) > 0.9
    True
    """

    classes_: NDArray[Any]

    def _keep(self, fitted: list[Any]) -> Self:
        super()._keep(fitted)
        self.classes_ = np.unique(np.concatenate([each.classes_ for each in fitted]))
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate(list(self._probabilities(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, shape (n_rows,)."""
        most = np.concatenate([np.argmax(said, axis=1) for said in self._probabilities(X)])
        return np.asarray(self.classes_[most])

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Class probabilities of one batch of rows after the other."""
        check_is_fitted(self)
        for rows in self._batches(X, len(self.classes_)):
            yield self._mean(
                probabilities_of(each.predict_proba(rows), each.classes_, self.classes_) for each in self.estimators_
            )


class AveragedRegressor(RegressorMixin, _Averaged):
    """Weighted mean of the predictions of several regressors.

    Parameters
    ----------
    estimators, weights
        As in `AveragedClassifier`.

    Attributes
    ----------
    estimators_ : list of fitted regressors
    weights_ : ndarray of shape (n_estimators,)
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import AveragedRegressor, LandmarkRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.sin(X[:, 0])
    >>> narrow, wide = (LandmarkRidgeRegressor(X[:50], gamma=gamma) for gamma in (0.2, 0.5))
    >>> AveragedRegressor([narrow, wide], weights=[1, 3]).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95
    True
    """

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted numbers, shape (n_rows,)."""
        batches = self._batches(X, 1)
        return np.concatenate([self._mean(each.predict(rows) for each in self.estimators_) for rows in batches])


def probabilities_of(probabilities: FloatArray, known: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """Probabilities in the order of more classes, those that are not known with probability 0.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_known)
    known : ndarray of shape (n_known,)
    classes : ndarray of shape (n_classes,)
        Sorted; all of the known ones among them.
    """
    spread = np.zeros((len(probabilities), len(classes)))
    spread[:, np.searchsorted(classes, known)] = probabilities
    return spread
