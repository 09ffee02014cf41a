"""Transformers of columns, before a model and behind it, as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import decomposition, feature_selection, preprocessing

from ._columns import Affine, Clip, Elementwise, Scale
from ._sent import NotSendableError, floats, picked, stretch
from ._step import Step

__all__ = ["TRANSFORMERS", "inverse_of_target", "transformer"]


def transformer(fitted: Any) -> tuple[Step, ...]:
    """The steps of a transformer.

    Raises
    ------
    NotSendableError
    """
    if type(fitted) not in TRANSFORMERS:
        raise NotSendableError(f"a {type(fitted).__name__}")
    return TRANSFORMERS[type(fitted)](fitted)


def inverse_of_target(fitted: Any) -> tuple[Step, ...]:
    """From what a regressor of a transformed target says to the target.

    Raises
    ------
    NotSendableError
    """
    if isinstance(fitted, preprocessing.FunctionTransformer):
        if fitted.inverse_func is np.exp:
            return (Elementwise(1, "exp"),)
        if fitted.inverse_func is np.expm1:
            return (Elementwise(1, "exp"), stretch([1.0], [-1.0]))
    elif isinstance(fitted, preprocessing.StandardScaler):
        centre = fitted.mean_[0] if fitted.with_mean else 0.0
        return (stretch([1.0 if fitted.scale_ is None else fitted.scale_[0]], [centre]),)
    raise NotSendableError(f"a target transformed by a {type(fitted).__name__}, other than log or log1p")


def _standard(fitted: Any) -> tuple[Step, ...]:
    # The means are there also where they are not taken off.
    return _scale(fitted, fitted.mean_ if fitted.with_mean else None, fitted.scale_)


def _robust(fitted: Any) -> tuple[Step, ...]:
    return _scale(fitted, fitted.center_, fitted.scale_)


def _largest(fitted: Any) -> tuple[Step, ...]:
    steps = _scale(fitted, None, fitted.scale_)
    # Since scikit-learn 1.9.
    return (*steps, Clip(fitted.n_features_in_, -1.0, 1.0)) if getattr(fitted, "clip", False) else steps


def _smallest_and_largest(fitted: Any) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = (stretch(fitted.scale_, fitted.min_),)
    if not fitted.clip:
        return steps
    low, high = fitted.feature_range
    return (*steps, Clip(fitted.n_features_in_, float(low), float(high)))


def _scale(fitted: Any, centre: Any, spread: Any) -> tuple[Step, ...]:
    n_columns = fitted.n_features_in_
    centre = np.zeros(n_columns) if centre is None else centre
    return (Scale(floats(centre), floats(np.ones(n_columns) if spread is None else spread)),)


def _principal(fitted: Any) -> tuple[Step, ...]:
    directions = floats(fitted.components_.T)
    steps: tuple[Step, ...] = (Affine(directions, -floats(fitted.mean_ @ fitted.components_.T)),)
    if not fitted.whiten:
        return steps
    # As scikit-learn, which does not divide by the spread of a column that has none.
    spread = np.maximum(np.sqrt(fitted.explained_variance_), np.finfo(np.float64).eps)
    return (*steps, Scale(np.zeros(len(spread)), floats(spread)))


def _singular(fitted: Any) -> tuple[Step, ...]:
    return (Affine(floats(fitted.components_.T), np.zeros(len(fitted.components_))),)


def _selected(fitted: Any) -> tuple[Step, ...]:
    return (picked(fitted.n_features_in_, fitted.get_support()),)


TRANSFORMERS: dict[type, Callable[[Any], tuple[Step, ...]]] = {
    decomposition.PCA: _principal,
    decomposition.TruncatedSVD: _singular,
    feature_selection.SelectKBest: _selected,
    feature_selection.SelectPercentile: _selected,
    feature_selection.VarianceThreshold: _selected,
    preprocessing.MaxAbsScaler: _largest,
    preprocessing.MinMaxScaler: _smallest_and_largest,
    preprocessing.RobustScaler: _robust,
    preprocessing.StandardScaler: _standard,
}
