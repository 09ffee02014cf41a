"""Models that a party makes at home to find targets for anchor rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem

from .._validation import FloatArray
from ..linalg import median_gamma

__all__ = ["KernelModel", "best_labels", "offsets_for_counts", "usable_gamma"]

RIDGES = (1e-2, 1e-1, 1.0)
WIDTHS = (0.5, 1.0, 2.0)
"""Of the kernel, in multiples of one over the median squared distance."""
MOST_LANDMARKS = 500
N_TREES = 200
FIRST_TREES = 50
"""Enough to see, mostly, that a forest would not be the best of the models."""
_STEPS, _STEPS_AT_FULL_LENGTH = 200, 20
"""Of the search for offsets, whose steps become shorter after the first ones."""

Score = Callable[[FloatArray], FloatArray]
"""From rows (n_rows, n_columns) to outputs (n_rows, n_classes), or (n_rows, 1) for numbers."""


def best_labels(
    X: FloatArray, y: NDArray[Any], new: FloatArray, *, numeric: bool, generator: np.random.RandomState
) -> NDArray[Any]:
    """Targets of new rows from the model that does best on own rows that it was not fitted on.

    The candidates are kernel ridge models of three widths, each with the best of three penalties by leave-one-out, and
    a random forest by its out-of-bag rows: of few trees first, and of all where these could make it the best.  Of
    equals, the first is taken.  Its scores of classes are raised or lowered until each class is its answer for as many
    own rows, left out, as there are of that class: models of few rows are timid, and a rare class would hardly be
    named.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    new : ndarray of shape (n_new, n_columns)
    numeric : bool
        Whether targets are numbers rather than classes.
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_new,)
    """
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        return np.full(len(new), y[0], dtype=y.dtype)
    left_out, score = max(_kernel_models(X, y, numeric, generator), key=lambda pair: _fit(pair[0], y, numeric))
    if forest := _better_forest(X, y, numeric, generator, _fit(left_out, y, numeric)):
        left_out, score = forest
    if numeric:
        return np.asarray(score(new)[:, 0], dtype=np.float64)
    offsets = offsets_for_counts(left_out, np.bincount(codes))
    return np.asarray(classes[(score(new) + offsets).argmax(axis=1)])


def offsets_for_counts(scores: FloatArray, counts: NDArray[np.intp]) -> FloatArray:
    """What to add to each class's scores for it to be the largest in as many rows as wanted, or nearly.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
    counts : ndarray of shape (n_classes,)
        Rows wanted of each class, `n_rows` together.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    offsets = best = np.zeros(len(counts))
    nearest = np.inf
    for step in range(_STEPS):
        missing = counts - np.bincount((scores + offsets).argmax(axis=1), minlength=len(counts))
        if (distance := np.abs(missing).sum()) < nearest:
            nearest, best = distance, offsets
        if not distance:
            break
        offsets = offsets + scores.std() * missing / len(scores) / (1 + step / _STEPS_AT_FULL_LENGTH)
    return best


def usable_gamma(X: FloatArray) -> float:
    """One over the median squared distance between rows; 1 where more than half of the pairs are equal."""
    gamma = median_gamma(X) if len(X) > 1 else np.inf
    return gamma if np.isfinite(gamma) else 1.0


def _kernel_models(
    X: FloatArray, y: NDArray[Any], numeric: bool, generator: np.random.RandomState
) -> Iterator[tuple[FloatArray, Score]]:
    """Each model's scores of the own rows, left out, and what scores new ones; a column for each class, or one."""
    gamma = usable_gamma(X)
    for width in WIDTHS:
        model = KernelModel(width * gamma, RIDGES[0], numeric).fit(X, y, generator)
        for each in (model, *(model.with_ridge(ridge) for ridge in RIDGES[1:])):
            yield each.left_out_scores, each.scores


def _better_forest(
    X: FloatArray, y: NDArray[Any], numeric: bool, generator: np.random.RandomState, best: float
) -> tuple[FloatArray, Score] | None:
    """A forest's out-of-bag scores, and what scores new rows; None where its fit is not above the best one."""
    kind: Any = RandomForestRegressor if numeric else RandomForestClassifier
    forest = kind(FIRST_TREES, oob_score=True, warm_start=True, random_state=generator)
    with warnings.catch_warnings():
        # Of rows that every tree has seen: their scores are taken for zero.
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(X, y)
        if _fit(_out_of_bag(forest), y, numeric) + _gain_of_more_trees(forest, y, numeric) <= best:
            return None
        forest.set_params(n_estimators=N_TREES).fit(X, y)
    left_out = _out_of_bag(forest)
    if _fit(left_out, y, numeric) <= best:
        return None
    return left_out, (lambda new: forest.predict(new)[:, None]) if numeric else forest.predict_proba


def _out_of_bag(forest: Any) -> FloatArray:
    """What the trees that have not seen a row say of it, a column for each class, or one."""
    if isinstance(forest, RandomForestRegressor):
        return np.asarray(forest.oob_prediction_[:, None])
    return np.asarray(np.nan_to_num(forest.oob_decision_function_))


def _gain_of_more_trees(forest: Any, y: NDArray[Any], numeric: bool) -> float:
    """How much a forest's out-of-bag fit would rise at most, on average, with any number of trees.

    A mean of T trees is off the mean of all by their variance over T, in the square.  What lies between a and b with
    mean m has a variance of (b - m)(m - a) at most, and of T trees one in e has not seen a row.
    """
    told, truth = _out_of_bag(forest), _indicators(y, numeric)
    variance = (truth.max(axis=0) - told) * (told - truth.min(axis=0))
    return float(variance.mean() / (forest.n_estimators / math.e - 1))


def _fit(left_out: FloatArray, y: NDArray[Any], numeric: bool) -> float:
    """Minus the mean squared error: of numbers, or of class indicators."""
    return -float(np.mean((_indicators(y, numeric) - left_out) ** 2))


def _indicators(y: NDArray[Any], numeric: bool) -> FloatArray:
    """Numbers as they are, shape (n_rows, 1), or a column for each class."""
    return np.asarray(y[:, None] if numeric else y[:, None] == np.unique(y), dtype=np.float64)


@dataclass(eq=False)
class KernelModel:
    """Kernel ridge regression on the target, or on an indicator of each class of which the largest wins.

    Parameters
    ----------
    gamma : float
        Of the Gaussian kernel.
    ridge : float
    numeric : bool
        Whether the target is a number.
    """

    gamma: float
    ridge: float
    numeric: bool

    def fit(self, X: FloatArray, y: NDArray[Any], generator: np.random.RandomState) -> Self:
        """Fit rows X, shape (n_rows, n_columns), to targets y, shape (n_rows,)."""
        # With as many landmarks as rows this is the kernel itself; the constant stands for an intercept.
        n_landmarks = min(len(X), MOST_LANDMARKS)
        self._map = Nystroem("rbf", gamma=self.gamma, n_components=n_landmarks, random_state=generator).fit(X)
        self._classes = np.unique(y)
        self._decomposed = scipy.linalg.svd(self._features(X), full_matrices=False)
        self._wanted = _indicators(y, self.numeric)
        return self._solved()

    def with_ridge(self, ridge: float) -> Self:
        """What a fit with another penalty gives, from the same landmarks and for little."""
        other = copy(self)
        other.ridge = ridge
        return other._solved()

    def _solved(self) -> Self:
        (U, s, Vt), T = self._decomposed, self._wanted
        kept = s**2 / (s**2 + self.ridge)
        self._coefficients = Vt.T @ ((s / (s**2 + self.ridge))[:, None] * (U.T @ T))
        # What a model without the row would say of it.
        residuals = (T - U @ (kept[:, None] * (U.T @ T))) / (1 - (U**2) @ kept)[:, None]
        self.left_out_scores = np.asarray(T - residuals)
        return self

    def scores(self, X: FloatArray) -> FloatArray:
        """Outputs for new rows, shape (n_rows, 1) or (n_rows, n_classes)."""
        return np.asarray(self._features(X) @ self._coefficients)

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Targets of new rows, shape (n_rows,)."""
        outputs = self.scores(X)
        return outputs[:, 0] if self.numeric else np.asarray(self._classes[outputs.argmax(axis=1)])

    def _features(self, X: FloatArray) -> FloatArray:
        return np.column_stack([self._map.transform(X), np.ones(len(X))])
