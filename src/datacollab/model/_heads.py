"""The model h as facts and members of a bundle: plain numbers, each checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ..survival import SurvivalModel
from ._export import sent_form, sent_survival
from ._from_elsewhere import (
    MOST_CLASSES,
    FromElsewhere,
    bad_predictor,
    check_classes,
    class_names,
    malformed,
    too_large,
)
from ._models import (
    AveragedClassifier,
    AveragedRegressor,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
)
from ._received import SURVIVAL_PART, read_predictor, read_survival, write_predictor, write_survival
from ._steps import Budget

_MOST_AVERAGED = 50
_MOST_LANDMARKS = 10_000
_MOST_NUMBER = 1e100
_MOST_CALIBRATION = 1e6
_ROUNDING = 1e-9
_NANOSECONDS_PRODUCT, _NANOSECONDS_EXPONENTIAL, _NANOSECONDS_EACH = 0.25, 20.0, 10.0
"""What one number of a product, one exponential, and one number that is copied or added cost, roughly."""
_KERNELS = ("linear", "rbf")
_RIDGE_ARRAYS = ("coefficients", "intercept", "offsets", "scale")


def ridge_to(
    estimator: LandmarkRidgeClassifier | LandmarkRidgeRegressor,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    classes = getattr(estimator, "classes_", None)
    names, dtype = (None, None) if classes is None else class_names(classes)
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
        arrays |= calibration_to(estimator)
    return facts, {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}


def is_of_ridges(estimator: Any) -> bool:
    """Return whether an estimator is an average of landmark ridge models."""
    return isinstance(estimator, AveragedClassifier | AveragedRegressor) and all(
        isinstance(each, LandmarkRidgeClassifier | LandmarkRidgeRegressor) for each in estimator.estimators_
    )


def average_to(estimator: AveragedClassifier | AveragedRegressor) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of an average; landmarks that its models have in common are kept once."""
    averaged: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    kept: list[NDArray[Any]] = []
    for number, each in enumerate(estimator.estimators_):
        facts, own = ridge_to(each)
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


def ridge_from(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_components: int, budget: Budget
) -> LandmarkRidgeClassifier | LandmarkRidgeRegressor:
    """Return one model; its work is taken from the budget before its numbers are read."""
    kernel = facts.get("kernel")
    if kernel not in _KERNELS:
        raise bad_predictor("has no known kernel")
    gamma, alpha = _positive(facts, "gamma"), _positive(facts, "alpha")
    classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    n_rows = n_components
    names = {"coefficients", "intercept"} | ({"scale", "offsets"} if classes is not None else set())
    if kernel == "rbf":
        names |= {"landmarks"}
        n_rows = _n_landmarks(arrays)
    if arrays.keys() != names:
        raise bad_predictor(f"does not have the arrays {sorted(names)!r}")
    each = () if classes is None else (len(classes),)
    _spend(budget, n_components, n_rows if kernel == "rbf" else 0, len(classes) if classes is not None else 1)
    _check_array(arrays["coefficients"], (n_rows, *each), "coefficients")
    _check_array(arrays["intercept"], each, "intercept")
    landmarks = None
    if kernel == "rbf":
        landmarks = arrays["landmarks"]
        _check_array(landmarks, (n_rows, n_components), "landmarks")
    kind = LandmarkRidgeRegressor if classes is None else LandmarkRidgeClassifier
    estimator = kind(landmarks, kernel=kernel, gamma=gamma, alphas=(alpha,))
    estimator.coefficients_, estimator.intercept_ = arrays["coefficients"], arrays["intercept"]
    estimator.alpha_, estimator.n_features_in_ = alpha, n_components
    if isinstance(estimator, LandmarkRidgeClassifier) and classes is not None:
        estimator.classes_ = classes
        estimator.scale_, estimator.offsets_ = calibration_from(arrays, len(estimator.classes_))
    return estimator


def average_from(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_components: int
) -> AveragedClassifier | AveragedRegressor:
    averaged, weights = facts.get("averaged"), facts.get("weights")
    if not isinstance(averaged, list) or not isinstance(weights, list) or not 0 < len(averaged) == len(weights):
        raise bad_predictor("does not have one weight for each model that is averaged")
    if len(averaged) > _MOST_AVERAGED:
        raise too_large(f"is the average of {len(averaged)} models; {_MOST_AVERAGED} are allowed")
    if any(isinstance(each, bool) or not isinstance(each, float | int) or not 0 <= each <= 1 for each in weights):
        raise bad_predictor("has weights that are not between 0 and 1")
    if abs(sum(weights) - 1) > _ROUNDING:
        raise bad_predictor("has weights that do not add up to one")
    budget = Budget()
    seen: set[str] = set()
    estimators = []
    for number, each in enumerate(averaged):
        if not isinstance(each, Mapping) or each.get("form") != "landmark-ridge":
            raise bad_predictor("is an average of other models than landmark ridge ones")
        own = {f"{number}.{name}": name for name in _RIDGE_ARRAYS} | {_landmarks_name(each): "landmarks"}
        there = own.keys() & arrays.keys()
        seen |= there
        estimators.append(ridge_from(each, {own[name]: arrays[name] for name in there}, n_components, budget))
    if seen != arrays.keys():
        raise bad_predictor("has arrays of none of its models")
    kinds = {type(each) for each in estimators}
    if len(kinds) > 1:
        raise bad_predictor("is an average of classifiers and regressors")
    if len({each.get("classes_dtype") for each in averaged}) > 1:
        raise bad_predictor("is an average of models whose classes are of different types")
    known = {name for each in averaged for name in each.get("classes") or ()}
    if len(known) > MOST_CLASSES:
        raise too_large(f"is an average of models of {len(known)} classes; {MOST_CLASSES} are allowed")
    budget.spend(len(averaged) * _NANOSECONDS_EACH * len(known), len(averaged))
    average = AveragedClassifier if kinds == {LandmarkRidgeClassifier} else AveragedRegressor
    return average.of(estimators, weights)


def _spend(budget: Budget, n_components: int, n_landmarks: int, n_outputs: int) -> None:
    """Spend what steps would: distances and their exponentials, a product, and probabilities."""
    work = _NANOSECONDS_PRODUCT * n_landmarks * n_components + _NANOSECONDS_EXPONENTIAL * n_landmarks
    work += _NANOSECONDS_PRODUCT * (n_landmarks or n_components) * n_outputs + _NANOSECONDS_EXPONENTIAL * n_outputs
    budget.spend(work, 4)


def _landmarks_name(facts: Mapping[str, Any]) -> str:
    place = facts.get("landmarks")
    if place is None:
        return ""
    if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < _MOST_AVERAGED:
        raise bad_predictor("has landmarks that cannot be found")
    return f"landmarks.{place}"


def calibration_to(estimator: LandmarkRidgeClassifier | CalibratedForestClassifier) -> dict[str, Any]:
    return {"scale": np.asarray(float(estimator.scale_)), "offsets": np.asarray(estimator.offsets_, dtype=np.float64)}


def calibration_from(arrays: Mapping[str, NDArray[Any]], n_classes: int) -> tuple[float, FloatArray]:
    _check_array(arrays["scale"], (), "scale", most=_MOST_CALIBRATION)
    _check_array(arrays["offsets"], (n_classes,), "offsets", most=_MOST_CALIBRATION)
    if arrays["scale"] < 0:
        raise bad_predictor("has a scale below 0, which would turn its answers round")
    return float(arrays["scale"]), arrays["offsets"]


def _n_landmarks(arrays: Mapping[str, NDArray[Any]]) -> int:
    landmarks = arrays.get("landmarks")
    if landmarks is None or landmarks.ndim != 2 or len(landmarks) == 0:
        raise bad_predictor("has no landmarks")
    if len(landmarks) > _MOST_LANDMARKS:
        raise too_large(f"has {len(landmarks)} landmarks; {_MOST_LANDMARKS} are allowed")
    return len(landmarks)


def _check_array(array: NDArray[Any], shape: tuple[int, ...], name: str, *, most: float = _MOST_NUMBER) -> None:
    if array.dtype != np.float64 or array.shape != shape:
        raise bad_predictor(f"has {name} of another shape or type than its landmarks, columns and classes want")
    if not (np.abs(array) <= most).all():
        raise bad_predictor(f"has {name} that are not finite, or beyond {most:g}")


def _positive(facts: Mapping[str, Any], name: str) -> float:
    value = facts.get(name)
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value <= _MOST_NUMBER:
        raise bad_predictor(f"has a {name} that is no positive number")
    return float(value)


def head_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a fitted estimator.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    stem : str
        What the names of the members begin with.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, or TOO_LARGE.
    """
    if isinstance(estimator, LandmarkRidgeClassifier | LandmarkRidgeRegressor):
        facts, arrays = ridge_to(estimator)
    elif is_of_ridges(estimator):
        facts, arrays = average_to(estimator)
    elif isinstance(estimator, SurvivalModel):
        facts, arrays = write_survival(sent_survival(estimator))
        facts = {"form": "steps"} | facts
    else:
        facts, arrays = write_predictor(sent_form(estimator))
        facts = {"form": "steps"} | facts
    return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}


def head_from(facts: Any, members: Mapping[str, bytes], stem: str, n_components: int) -> Any:
    """Return the estimator that `head_to` took apart, after checks of every part.

    Parameters
    ----------
    facts : object
        What the bundle says of it.
    members : mapping of str to bytes
        Members of the bundle; only those that begin with the stem are read.
    stem : str
    n_components : int
        Columns that the estimator has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    form = facts.get("form") if isinstance(facts, Mapping) else None
    if not isinstance(form, str) or form not in _FORMS:
        raise malformed("it does not say in which form its estimator is")
    names = {name for name in members if name.rpartition(".")[0] == stem}
    if names != {f"{stem}.safetensors"}:
        raise malformed(f"it has the members {sorted(names)!r}, which is not what {form!r} is made of")
    arrays = _arrays(members, stem)
    if form == "landmark-ridge":
        return ridge_from(facts, arrays, n_components, Budget())
    if form == "average":
        return average_from(facts, arrays, n_components)
    if SURVIVAL_PART in facts:
        return read_survival(facts, arrays, n_components)
    return read_predictor(facts, arrays, n_components)


def estimator_kind(estimator: Any) -> str:
    """Return name of the class that was trained, also where only its steps are there."""
    return estimator.name if isinstance(estimator, FromElsewhere) else type(estimator).__name__


_FORMS = ("average", "landmark-ridge", "steps")


def _arrays(members: Mapping[str, bytes], stem: str) -> dict[str, NDArray[Any]]:
    try:
        return bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise malformed("the numbers of its estimator cannot be read") from None
