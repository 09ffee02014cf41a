"""Whether each estimator within another takes as many columns as it is given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["check_columns"]

_OF_EQUALS = (
    *("AdaBoostClassifier", "AdaBoostRegressor", "OneVsOneClassifier", "OneVsRestClassifier"),
    *("StackingClassifier", "StackingRegressor", "VotingClassifier", "VotingRegressor"),
)
"""Whose `estimators_` are all given the columns that come in."""

_ANSWERS = ("decision_function", "predict", "predict_proba")


def check_columns(part: Any, n_features: int) -> None:
    """Follow the columns through pipelines and ensembles.

    Parameters
    ----------
    part : estimator
        Its arrays have to be checked already, since steps of a pipeline are tried on two made-up rows.
    n_features : int
        Columns that it is given.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    # A pipeline asks its first step.
    if part.n_features_in_ != n_features:
        raise _malformed(part, f"does not take the {n_features} columns that it is given")
    for inner, width in _inner(part, n_features):
        check_columns(inner, width)


def _inner(part: Any, n_features: int) -> Iterator[tuple[Any, int]]:
    """Estimators within this one, each with the columns that it is given; each is checked before the next is asked."""
    name = type(part).__name__
    if name == "Pipeline":
        yield from _steps(part, n_features)
    elif name in ("BaggingClassifier", "BaggingRegressor"):
        yield from ((each, len(of)) for each, of in zip(part.estimators_, part.estimators_features_, strict=True))
    elif name == "CalibratedClassifierCV":
        yield from ((each.estimator, n_features) for each in part.calibrated_classifiers_)
    elif name == "TransformedTargetRegressor":
        yield part.regressor_, n_features
        yield part.transformer_, 1
    elif name in ("GradientBoostingClassifier", "GradientBoostingRegressor") and part.init_ != "zero":
        yield part.init_, n_features
    elif name in _OF_EQUALS:
        yield from ((each, n_features) for each in part.estimators_)
    if name.startswith("Stacking"):
        if not set(part.stack_method_) <= set(_ANSWERS):
            raise _malformed(part, "asks its estimators for something other than answers")
        yield part.final_estimator_, _width_after(part, n_features)
    if name == "OneVsOneClassifier" and part.pairwise_indices_ is not None:
        raise _malformed(part, "gives its estimators kernels in place of rows")


def _steps(pipeline: Any, n_features: int) -> Iterator[tuple[Any, int]]:
    steps = [step for _, step in pipeline.steps if step is not None and not isinstance(step, str)]
    for before, step in enumerate(steps, start=1):
        yield step, n_features
        if before < len(steps):
            n_features = _width_after(step, n_features)


def _width_after(step: Any, n_features: int) -> int:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return int(step.transform(np.full((2, n_features), 0.5)).shape[1])


def _malformed(part: Any, what: str) -> ExchangeError:
    return malformed(f"its {type(part).__name__} {what}")
