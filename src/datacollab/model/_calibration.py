r"""Scores of classes as probabilities, :math:`p(x) = \mathrm{softmax}(a F(x) + b)`, and a forest calibrated so."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray, Interval
from ._left_out import checked_for_fit, forest_left_out

__all__ = ["FLOOR", "CalibratedForestClassifier", "calibrate", "calibrated", "log_loss_of"]

_SPREAD = 2.0
"""Standard deviation of the offsets under their Gaussian prior."""
_LARGEST_SCALE = 200.0
_START = 5.0


def calibrated(scores: FloatArray, scale: float, offsets: FloatArray) -> FloatArray:
    """Class probabilities, shape (n_rows, n_classes)."""
    return np.asarray(softmax(scale * scores + offsets, axis=1))


def calibrate(scores: FloatArray, codes: NDArray[np.intp], weights: FloatArray) -> tuple[float, FloatArray]:
    r"""Scale a and offsets b under which scores are the best probabilities, by the log loss.

    One scale keeps the classes' order but for the offsets, which have a Gaussian prior, so that a class that is hardly
    there moves little.  The problem is convex.
    """
    n_classes = scores.shape[1]
    one_hot = np.eye(n_classes)[codes]

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        a, b = parameters[0], parameters[1:]
        logits = a * scores + b
        normaliser = logsumexp(logits, axis=1)
        loss = weights @ (normaliser - np.sum(one_hot * logits, axis=1)) + b @ b / (2 * _SPREAD**2)
        slopes = weights[:, None] * (np.exp(logits - normaliser[:, None]) - one_hot)
        return float(loss), np.concatenate([[np.sum(slopes * scores)], slopes.sum(axis=0) + b / _SPREAD**2])

    bounds = [(0.0, _LARGEST_SCALE)] + [(None, None)] * n_classes
    start = np.concatenate([[_START], np.zeros(n_classes)])
    found = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    offsets = found.x[1:]
    return float(found.x[0]), offsets - offsets.mean()


def log_loss_of(probabilities: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    """Minus the logarithm of the probability that each row's class was given, shape (n_rows,)."""
    chosen = probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(chosen, np.finfo(float).tiny)))


FLOOR = 1e-3
"""Smallest probability before its logarithm is taken: trees that agree are not certain."""


class CalibratedForestClassifier(ClassifierMixin, BaseEstimator):
    r"""Random forest with probabilities :math:`\mathrm{softmax}(a \log p(x) + b)`, a and b from rows left out.

    Parameters
    ----------
    n_estimators : int, default=200
    n_jobs : int, default=None
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    estimator_ : RandomForestClassifier
    scale_ : float
    offsets_ : ndarray of shape (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    estimator_: RandomForestClassifier
    scale_: float
    offsets_: FloatArray
    classes_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit; see `fit_left_out`."""
        self.fit_left_out(X, y, sample_weight)
        return self

    def fit_left_out(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: NDArray[np.intp] | None = None,
        judges: FloatArray | None = None,
    ) -> FloatArray:
        """Fit, and say what trees that did not see a row make of it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        groups : ndarray of shape (n_rows,), optional
            Rows of one number are left out together; then by folds instead of trees.
        judges : ndarray of shape (n_rows,), optional
            How much each row counts in the calibration; all alike by default.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of `classes_`.  They stay with whoever has the rows.
        """
        self._validate_params()
        rows, target, weights, groups, judges = checked_for_fit(self, X, y, sample_weight, groups, judges)
        forest = RandomForestClassifier(self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state)
        self.estimator_, left_out = forest_left_out(forest, rows, target, weights, groups)
        if left_out is None:
            raise ValueError(f"{type(self).__name__}: n_samples={len(rows)} of one group, so none can be left out.")
        self.classes_ = self.estimator_.classes_
        scores = _log(left_out)
        judged = (judges > 0) & np.isin(target, self.classes_)
        codes = np.searchsorted(self.classes_, target)
        self.scale_, self.offsets_ = calibrate(scores[judged], codes[judged], judges[judged])
        return calibrated(scores, self.scale_, self.offsets_)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return calibrated(_log(self.estimator_.predict_proba(rows)), self.scale_, self.offsets_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, shape (n_rows,)."""
        most = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[most])


def _log(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, FLOOR)))
