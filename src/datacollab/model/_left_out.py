"""What a model says of rows that were left out of its training."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_sample_weight, has_fit_parameter, validate_data

from .._validation import FloatArray

__all__ = ["checked_for_fit", "fit_left_out", "fit_weighted", "forest_left_out"]

_FOLDS = 5
_OF_ROWS = ("oob_decision_function_", "oob_prediction_", "oob_score_")
_FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")


def fit_left_out(
    estimator: Any,
    X: FloatArray,
    y: NDArray[Any],
    weights: FloatArray,
    *,
    groups: NDArray[np.intp],
    judges: FloatArray,
) -> tuple[Any, FloatArray | None]:
    """A fitted clone, and what it says of each row when that row is left out.

    In closed form or by trees that did not see the row, where the estimator can; by five folds otherwise.

    Parameters
    ----------
    estimator : estimator
    X : ndarray of shape (n_rows, n_components)
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    groups : ndarray of shape (n_rows,)
        Rows of one number are left out together.
    judges : ndarray of shape (n_rows,)
        How much each row counts where the estimator chooses or calibrates by rows left out.

    Returns
    -------
    fitted : estimator
    left_out : ndarray of shape (n_rows,) or (n_rows, n_classes), or None
        Numbers, or probabilities in the order of ``fitted.classes_``; None for a classifier that gives none, and
        where there are not two groups to leave out.
    """
    copy = clone(estimator)
    if hasattr(copy, "fit_left_out"):
        return copy, copy.fit_left_out(X, y, weights, groups=groups, judges=judges)
    if type(copy).__name__ in _FORESTS and copy.bootstrap:
        return forest_left_out(copy, X, y, weights, groups)
    fitted = fit_weighted(copy, X, y, weights)
    if is_classifier(fitted) and not hasattr(fitted, "predict_proba"):
        return fitted, None
    return fitted, _by_folds(estimator, X, y, weights, groups)


def checked_for_fit(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    groups: NDArray[np.intp] | None,
    judges: FloatArray | None,
) -> tuple[FloatArray, NDArray[Any], FloatArray, NDArray[np.intp], FloatArray]:
    """Rows, targets, weights, groups and judges, of an estimator that is fitted with rows left out.

    Without weights or judges all rows count alike; without groups each is left out by itself.
    """
    rows, target = validate_data(estimator, X, y, dtype=np.float64)
    weights = np.asarray(_check_sample_weight(sample_weight, rows, dtype=np.float64))
    groups = np.arange(len(rows)) if groups is None else groups
    judges = np.ones(len(rows)) if judges is None else judges
    return rows, target, weights, groups, judges


def forest_left_out(
    forest: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp]
) -> tuple[Any, FloatArray | None]:
    """A fitted forest, and its predictions by trees that did not see the row; by folds where rows go together.

    None in place of predictions where there are not two groups to leave out.
    """
    if len(np.unique(groups)) == len(groups):
        fitted, left_out = _by_trees(forest, X, y, weights)
        if left_out is not None:
            return fitted, left_out
    return fit_weighted(clone(forest), X, y, weights), _by_folds(forest, X, y, weights, groups)


def _by_trees(forest: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray) -> tuple[Any, FloatArray | None]:
    """None in place of predictions where every tree saw some row, as where few rows weigh much."""
    there = weights > 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(forest).set_params(oob_score=True).fit(X[there], y[there], sample_weight=weights[there])
    name = "oob_decision_function_" if is_classifier(fitted) else "oob_prediction_"
    left_out = _predicted(fitted, X)
    left_out[there] = getattr(fitted, name)
    fitted.set_params(oob_score=False)
    _forget_rows(fitted)
    return fitted, None if any("OOB" in str(each.message) for each in caught) else left_out


def _predicted(fitted: Any, X: FloatArray) -> FloatArray:
    return np.asarray(fitted.predict_proba(X) if is_classifier(fitted) else fitted.predict(X))


def fit_weighted(
    estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, *, strata: NDArray[Any] | None = None
) -> Any:
    """Fit an estimator, or the last step of a pipeline, with weights; rows of weight 0 are not shown to it.

    Parameters
    ----------
    estimator : estimator
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,)
    strata : ndarray of shape (n_rows,), optional
        Told to an estimator that takes them.

    Raises
    ------
    TypeError
        When weights differ and the estimator takes none.
    """
    there = weights > 0
    X, y, weights = X[there], y[there], weights[there]
    last, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        prefix = f"{step}__"
    options = {}
    if strata is not None and has_fit_parameter(last, "strata"):
        options[f"{prefix}strata"] = strata[there]
    if not np.all(weights == weights[0]):
        if not has_fit_parameter(last, "sample_weight"):
            raise TypeError(
                f"{type(last).__name__} takes no sample_weight, so rows cannot weigh differently; set anchor_weight to "
                "0 or 1 and class_weight to None, or take another model."
            )
        options[f"{prefix}sample_weight"] = weights
    fitted = estimator.fit(X, y, **options)
    _forget_rows(fitted)
    return fitted


def _forget_rows(fitted: Any) -> None:
    """Take out what a forest says of each row out of its bag: the model goes to all parties, that to the row's own."""
    for part in [fitted, *(step for _, step in getattr(fitted, "steps", ()))]:
        for name in _OF_ROWS:
            if name in vars(part):
                delattr(part, name)


def _by_folds(
    estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp]
) -> FloatArray | None:
    n_folds = min(_FOLDS, len(np.unique(groups)))
    there = weights > 0
    classes = np.unique(y[there]) if is_classifier(estimator) else None
    if classes is not None:
        n_folds = min(n_folds, int(np.unique(y, return_counts=True)[1].max()))
    if n_folds < 2:
        return None
    left_out = np.zeros(len(y) if classes is None else (len(y), len(classes)))
    folds = (GroupKFold if classes is None else StratifiedGroupKFold)(n_folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rare classes and of solvers that stop early; the scores show it
        for train, held_out in folds.split(X, y, groups):
            if not there[train].any():
                return None
            fitted = fit_weighted(clone(estimator), X[train], y[train], weights[train])
            if classes is None:
                left_out[held_out] = fitted.predict(X[held_out])
            else:
                columns = np.searchsorted(classes, fitted.classes_)
                left_out[np.ix_(held_out, columns)] = fitted.predict_proba(X[held_out])
    return left_out
