"""The model h as facts and members of a bundle: plain numbers, each checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from .._typing import FloatArray
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._export import sendable_form
from ._models import (
    AveragedClassifier,
    AveragedRegressor,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    Levelled,
    add_level,
)
from ._predictors import read_predictor, write_predictor
from ._refusals import MOST_CLASSES, bad_model, bad_predictor, check_classes, class_names, too_large
from ._steps import Budget, Parts

_MOST_AVERAGED = 50
_MOST_LANDMARKS = 10_000
# Largest scale and offset: those that are fitted stay far below.
_MOST_CALIBRATION = 1e6
_LEAST_POSITIVE = float(np.nextafter(0.0, 1.0))
_ROUNDING = 1e-9
# The cost of one number of a product, of one exponential, and of one number that is copied or added, roughly.
_NANOSECONDS_PRODUCT = 0.25
_NANOSECONDS_EXPONENTIAL = 20.0
_NANOSECONDS_EACH = 10.0
_LEVEL = "level"
# Exponentials of such levels are finite, whatever probabilities they multiply.
_MOST_LEVEL = 100.0
_FORMS = ("average", "landmark-ridge", "steps")

_Ridge = LandmarkRidgeClassifier | LandmarkRidgeRegressor
_Average = AveragedClassifier | AveragedRegressor


def _ridge_to(estimator: _Ridge) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    names: list[Any] | None = None
    dtype: str | None = None
    if isinstance(estimator, LandmarkRidgeClassifier):
        names, dtype = class_names(estimator.classes_)
    facts = {
        "form": "landmark-ridge",
        "kernel": estimator.kernel,
        "gamma": float(estimator.gamma),
        "alpha": float(estimator.alpha_),
        "classes": names,
        "classes_dtype": dtype,
    }
    arrays: dict[str, Any] = {"coefficients": estimator.coefficients_, "intercept": estimator.intercept_}
    if estimator.kernel == "rbf":
        arrays["landmarks"] = estimator.landmarks
    if isinstance(estimator, LandmarkRidgeClassifier):
        arrays |= {"scale": estimator.scale_, "offsets": estimator.offsets_}
    return facts, {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}


def _average_to(estimator: _Average) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of an average; landmarks that its models have in common are kept once."""
    averaged: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    kept: list[NDArray[Any]] = []
    for number, each in enumerate(estimator.estimators_):
        facts, own = _ridge_to(each)
        landmarks = own.pop("landmarks", None)
        if landmarks is not None:
            place = next((at for at, other in enumerate(kept) if np.array_equal(other, landmarks)), len(kept))
            if place == len(kept):
                kept.append(landmarks)
            facts["landmarks"] = place
        averaged.append(facts)
        arrays |= {f"{number}.{name}": values for name, values in own.items()}
    arrays |= {f"landmarks.{place}": landmarks for place, landmarks in enumerate(kept)}
    return {"form": "average", "weights": estimator.weights_.tolist(), "averaged": averaged}, arrays


def _landmarks(arrays: dict[str, NDArray[Any]], name: str, n_components: int, budget: Budget) -> FloatArray:
    """Return landmarks, which the models of an average may have in common; they leave the mapping."""
    landmarks = Parts({}, arrays, "", budget).table(name, (None, n_components))
    if len(landmarks) > _MOST_LANDMARKS:
        raise too_large(f"has {len(landmarks)} landmarks; {_MOST_LANDMARKS} are allowed")
    return landmarks


def _ridge_from(parts: Parts, landmarks: FloatArray | None, n_components: int) -> _Ridge:
    kernel = parts.choice("kernel", ("linear", "rbf"))
    gamma, alpha = (parts.number(name, least=_LEAST_POSITIVE) for name in ("gamma", "alpha"))
    classes = check_classes(parts.facts.get("classes"), parts.facts.get("classes_dtype"))
    if (landmarks is not None) != (kernel == "rbf"):
        raise bad_predictor("has landmarks, and a kernel that has none, or the other way round")
    n_landmarks = 0 if landmarks is None else len(landmarks)
    n_rows = n_landmarks or n_components
    n_outputs = 1 if classes is None else len(classes)
    # As steps would cost: distances and their exponentials, a product, and probabilities.
    work = _NANOSECONDS_PRODUCT * n_landmarks * n_components + _NANOSECONDS_EXPONENTIAL * n_landmarks
    parts.budget.spend(work + _NANOSECONDS_PRODUCT * n_rows * n_outputs + _NANOSECONDS_EXPONENTIAL * n_outputs, 4)
    each: tuple[int, ...] = ()
    kind: type[_Ridge] = LandmarkRidgeRegressor
    if classes is not None:
        each = (n_outputs,)
        kind = LandmarkRidgeClassifier
    estimator = kind(landmarks, kernel=kernel, gamma=gamma, alphas=(alpha,))
    estimator.coefficients_ = parts.table("coefficients", (n_rows, *each))
    estimator.intercept_ = parts.table("intercept", each)
    estimator.alpha_ = alpha
    estimator.n_features_in_ = n_components
    if isinstance(estimator, LandmarkRidgeClassifier) and classes is not None:
        estimator.classes_ = classes
        # A scale below 0 would turn the model's answers round.
        estimator.scale_ = float(parts.table("scale", (), least=0, most=_MOST_CALIBRATION))
        estimator.offsets_ = parts.table("offsets", each, most=_MOST_CALIBRATION)
    return estimator


def _average_from(
    facts: Mapping[str, Any], arrays: dict[str, NDArray[Any]], n_components: int, budget: Budget
) -> _Average:
    averaged, weights = _check_weights(facts)
    # Landmarks that models have in common are read once, and counted once.
    common: dict[int | None, FloatArray | None] = {None: None}
    estimators = []
    for number, each in enumerate(averaged):
        if not isinstance(each, Mapping) or each.get("form") != "landmark-ridge":
            raise bad_predictor("is an average of other models than landmark ridge ones")
        place = each.get("landmarks")
        if place is not None and (type(place) is not int or not 0 <= place < _MOST_AVERAGED):
            raise bad_predictor("has landmarks that cannot be found")
        if place not in common:
            common[place] = _landmarks(arrays, f"landmarks.{place}", n_components, budget)
        estimators.append(_ridge_from(Parts(each, arrays, f"{number}.", budget), common[place], n_components))
    kinds = {type(each) for each in estimators}
    if len(kinds) > 1:
        raise bad_predictor("is an average of classifiers and regressors")
    if len({each.get("classes_dtype") for each in averaged}) > 1:
        raise bad_predictor("is an average of models whose classes are of different types")
    # An average has all classes of its models, which together may be more than one model may have.
    known = {name for each in averaged for name in each.get("classes") or ()}
    if len(known) > MOST_CLASSES:
        raise too_large(f"is an average of models of {len(known)} classes; {MOST_CLASSES} are allowed")
    budget.spend(len(averaged) * _NANOSECONDS_EACH * len(known), len(averaged))
    if kinds == {LandmarkRidgeClassifier}:
        return AveragedClassifier(estimators, weights)
    return AveragedRegressor(estimators, weights)


def _check_weights(facts: Mapping[str, Any]) -> tuple[list[Any], list[float]]:
    """Return the models of an average, unchecked, and their weights."""
    averaged = facts.get("averaged")
    weights = facts.get("weights")
    if not isinstance(averaged, list) or not isinstance(weights, list) or not 0 < len(averaged) == len(weights):
        raise bad_predictor("does not have one weight for each model that is averaged")
    if len(averaged) > _MOST_AVERAGED:
        raise too_large(f"is the average of {len(averaged)} models; {_MOST_AVERAGED} are allowed")
    # In Python a truth value is a number.
    if any(isinstance(each, bool) or not isinstance(each, float | int) or not 0 <= each <= 1 for each in weights):
        raise bad_predictor("has weights that are not between 0 and 1")
    if abs(sum(weights) - 1) > _ROUNDING:
        raise bad_predictor("has weights that do not add up to one")
    return averaged, weights


def head_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a fitted estimator; the names of the members begin with the stem.

    Raise MODEL_UNSUPPORTED or TOO_LARGE if it cannot be sent.
    """
    level = {}
    if isinstance(estimator, Levelled):
        level = {_LEVEL: np.asarray(estimator.level, dtype=np.float64)}
        estimator = estimator.estimator
    if isinstance(estimator, _Ridge):
        facts, arrays = _ridge_to(estimator)
    elif isinstance(estimator, _Average) and all(isinstance(each, _Ridge) for each in estimator.estimators_):
        facts, arrays = _average_to(estimator)
    else:
        facts, arrays = write_predictor(sendable_form(estimator))
        facts = {"form": "steps"} | facts
    return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays | level)}


def head_from(facts: Any, members: Mapping[str, bytes], stem: str, n_components: int) -> Any:
    """Return the estimator that `head_to` took apart, for rows of so many components, after checks of every part.

    Raise MODEL_MALFORMED or TOO_LARGE.
    """
    if not isinstance(facts, Mapping) or facts.get("form") not in _FORMS:
        raise bad_model("it does not say in which form its estimator is")
    form = facts["form"]
    names = {name for name in members if name.rpartition(".")[0] == stem}
    if names != {f"{stem}.safetensors"}:
        raise bad_model(f"it has the members {sorted(names)!r}, which is not what {form!r} is made of")
    try:
        arrays = bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise bad_model("the numbers of its estimator cannot be read") from None
    level = arrays.pop(_LEVEL, None)
    budget = Budget()
    estimator: Any
    if form == "steps":
        estimator = read_predictor(facts, arrays, n_components)
    elif form == "average":
        estimator = _average_from(facts, arrays, n_components, budget)
    else:
        landmarks = None
        if "landmarks" in arrays:
            landmarks = _landmarks(arrays, "landmarks", n_components, budget)
        estimator = _ridge_from(Parts(facts, arrays, "", budget), landmarks, n_components)
    if arrays and form != "steps":
        raise bad_predictor("has arrays of none of its models")
    if level is None:
        return estimator
    parts = Parts({}, {_LEVEL: level}, "", budget)
    if isinstance(estimator, RegressorMixin):
        return add_level(estimator, parts.table(_LEVEL, ()))
    if not hasattr(estimator, "predict_proba"):
        raise bad_predictor("has a level of its party, which moves probabilities and numbers alone")
    return add_level(estimator, parts.table(_LEVEL, estimator.classes_.shape, most=_MOST_LEVEL))
