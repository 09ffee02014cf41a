r"""Kernel ridge regression on landmarks: models h that hold anchor rows and coefficients, and no row of a party.

.. math:: F(x) = \kappa(x, S) \Gamma + t_0, \qquad
   \min_{\Gamma} \sum_i s_i \|F(x_i) - t_i\|^2 + \alpha \,\mathrm{tr}(\Gamma^\top \kappa(S, S) \Gamma) .
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray, Interval, StrOptions
from ..linalg import Kernel, WeightedRidgePath, weighted_ridge_path
from ._batches import row_batches
from ._calibration import calibrate, calibrated, log_loss_of
from ._left_out import checked_for_fit

__all__ = ["ALPHAS", "LandmarkRidgeClassifier", "LandmarkRidgeRegressor"]

ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_RANK = 1e-9
"""Directions of the landmarks' span with a smaller part of the largest eigenvalue are rounding."""


class _LandmarkRidge(BaseEstimator, ABC):
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "landmarks": ["array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"rbf", "linear"})],
        "alphas": ["array-like"],
    }

    n_features_in_: int
    coefficients_: FloatArray
    intercept_: FloatArray
    alpha_: float

    def __init__(
        self,
        landmarks: ArrayLike | None = None,
        *,
        kernel: str = "rbf",
        gamma: float = 1.0,
        alphas: Sequence[float] = ALPHAS,
    ) -> None:
        self.landmarks = landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.alphas = alphas

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
        """Fit, and say what the model makes of each row when that row is left out.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 0 takes no part, and what is said of it is a prediction.
        groups : ndarray of shape (n_rows,), optional
            Rows of one number are left out together.
        judges : ndarray of shape (n_rows,), optional
            How much each row counts in the choice of the penalty and in the calibration; all alike by default.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Numbers, or class probabilities in the order of `classes_`.  They are of rows, and stay with whoever has
            these: nothing of them is kept in the model but what is learnt.
        """
        self._validate_params()
        rows, target, weights, groups, judges = checked_for_fit(self, X, y, sample_weight, groups, judges)
        root = self._root(rows.shape[1])
        path = weighted_ridge_path(self._features(rows) @ root, weights)
        return self._choose(path, root, target, groups, judges)

    @abstractmethod
    def _choose(
        self,
        path: WeightedRidgePath,
        root: FloatArray,
        y: NDArray[Any],
        groups: NDArray[np.intp],
        judges: FloatArray,
    ) -> FloatArray:
        """Choose the penalty, keep what it gives, and say what that makes of rows left out."""

    def _features(self, X: FloatArray) -> FloatArray:
        if self.kernel == "linear":
            return X
        kernel = Kernel(metric="rbf", parameters={"gamma": self.gamma})
        return np.asarray(kernel.between(X, np.asarray(self.landmarks, dtype=np.float64)))

    def _root(self, n_features: int) -> FloatArray:
        r"""R with :math:`R R^\top = \kappa(S, S)^+`, by which the penalty becomes that of a plain ridge regression."""
        if self.kernel == "linear":
            return np.eye(n_features)
        if self.landmarks is None:
            raise ValueError(f"{type(self).__name__}: the kernel 'rbf' needs landmarks, such as anchor rows; got None.")
        S = np.asarray(self.landmarks, dtype=np.float64)
        if S.ndim != 2 or S.shape[1] != n_features:
            raise ValueError(
                f"{type(self).__name__}: landmarks must have the {n_features} columns of the rows; got shape {S.shape}."
            )
        eigenvalues, U = scipy.linalg.eigh(self._features(S), overwrite_a=True)
        kept = eigenvalues > _RANK * eigenvalues[-1]
        return np.asarray(U[:, kept] / np.sqrt(eigenvalues[kept]))

    def _scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Scores of one batch of rows after the other."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        width = max(len(self.coefficients_), np.size(self.intercept_))
        for batch in row_batches(rows, width):
            yield np.asarray(self._features(batch) @ self.coefficients_ + self.intercept_)


class LandmarkRidgeClassifier(ClassifierMixin, _LandmarkRidge):
    r"""Kernel ridge regression of one-hot classes on landmarks, with calibrated probabilities.

    The penalty with the smallest log loss on rows left out is taken, in closed form for all rows; the scale and the
    offsets of the softmax are fitted to these left-out scores.

    Parameters
    ----------
    landmarks : array-like of shape (n_landmarks, n_components), default=None
        S, rows that may be shown to everybody who gets the model: anchor rows.  Not needed by the linear kernel.
    kernel : {"rbf", "linear"}, default="rbf"
    gamma : float, default=1.0
        Of the RBF kernel.
    alphas : sequence of float
        Penalties to choose from.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coefficients_ : ndarray of shape (n_landmarks, n_classes)
        With the linear kernel, of shape (n_components, n_classes).
    intercept_ : ndarray of shape (n_classes,)
    scale_ : float
    offsets_ : ndarray of shape (n_classes,)
        Of the probabilities ``softmax(scale_ * F(x) + offsets_)``.
    alpha_ : float
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import LandmarkRidgeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> inside = np.linalg.norm(X, axis=1) < 1
    >>> LandmarkRidgeClassifier(X[:50], gamma=0.5).fit(X[:150], inside[:150]).score(X[150:], inside[150:]) > 0.9
    True
    """

    classes_: NDArray[Any]
    scale_: float
    offsets_: FloatArray

    def _choose(
        self,
        path: WeightedRidgePath,
        root: FloatArray,
        y: NDArray[Any],
        groups: NDArray[np.intp],
        judges: FloatArray,
    ) -> FloatArray:
        check_classification_targets(y)
        classes = np.unique(y[path.weights > 0])
        T = (y[:, None] == classes).astype(np.float64)
        codes, judged = np.argmax(T, axis=1), (judges > 0) & T.any(axis=1)
        best = None
        for alpha in sorted(self.alphas, reverse=True):  # of equal ones the largest penalty
            scores = path.left_out(alpha, T, groups)
            scale, offsets = calibrate(scores[judged], codes[judged], judges[judged])
            probabilities = calibrated(scores, scale, offsets)
            loss = float(judges[judged] @ log_loss_of(probabilities[judged], codes[judged]))
            if best is None or loss < best[0]:
                best = loss, alpha, scale, offsets, probabilities
        assert best is not None
        _, alpha, self.scale_, self.offsets_, probabilities = best
        coefficients, self.intercept_ = path.solve(alpha, T)
        self.classes_, self.alpha_, self.coefficients_ = classes, float(alpha), root @ coefficients
        return probabilities

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate(list(self._probabilities(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row, shape (n_rows,)."""
        most = np.concatenate([np.argmax(said, axis=1) for said in self._probabilities(X)])
        return np.asarray(self.classes_[most])

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Class probabilities of one batch of rows after the other."""
        for scores in self._scores(X):
            yield calibrated(scores, self.scale_, self.offsets_)


class LandmarkRidgeRegressor(RegressorMixin, _LandmarkRidge):
    """Kernel ridge regression of numbers on landmarks.

    The penalty with the smallest squared error on rows left out is taken, in closed form for all rows.

    Parameters
    ----------
    landmarks, kernel, gamma, alphas
        As in `LandmarkRidgeClassifier`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_landmarks,)
        With the linear kernel, of shape (n_components,).
    intercept_ : float
    alpha_ : float
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import LandmarkRidgeRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.sin(X[:, 0])
    >>> LandmarkRidgeRegressor(X[:50], gamma=0.5).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95
    True
    """

    def _choose(
        self,
        path: WeightedRidgePath,
        root: FloatArray,
        y: NDArray[Any],
        groups: NDArray[np.intp],
        judges: FloatArray,
    ) -> FloatArray:
        T = np.asarray(y, dtype=np.float64)[:, None]
        left = {alpha: path.left_out(alpha, T, groups)[:, 0] for alpha in sorted(self.alphas, reverse=True)}
        alpha = min(left, key=lambda each: float(judges @ (left[each] - T[:, 0]) ** 2))
        coefficients, intercept = path.solve(alpha, T)
        self.alpha_, self.coefficients_, self.intercept_ = float(alpha), root @ coefficients[:, 0], intercept[0]
        return left[alpha]

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted numbers, shape (n_rows,)."""
        return np.concatenate(list(self._scores(X)))
