"""The model h as facts and members of a bundle: plain numbers where that is possible, else what skops writes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from .._typing import FloatArray
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._calibrated_forest import CalibratedForestClassifier
from ._class_names import check_classes, class_names
from ._estimator_check import check_estimator
from ._landmark_ridge import LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._refusal import malformed, too_large
from ._skops_file import estimator_from_bytes, estimator_to_bytes

__all__ = ["head_from", "head_to", "needs_scikit_learn"]

_MOST_LANDMARKS = 10_000
_MOST_NUMBER = 1e100
_MOST_CALIBRATION = 1e6
_KERNELS = ("linear", "rbf")


def head_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of a fitted estimator.

    Landmark ridge models are sent as their numbers, and so is what calibrates a forest; the forest itself and all
    other estimators go as skops archives.

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
        facts, arrays = _ridge_to(estimator)
        return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}
    if isinstance(estimator, CalibratedForestClassifier):
        return {"form": "calibrated-forest"}, {
            f"{stem}.skops": estimator_to_bytes(estimator.estimator_),
            f"{stem}.safetensors": arrays_to_bytes(_calibration_of(estimator)),
        }
    return {"form": "skops"}, {f"{stem}.skops": estimator_to_bytes(estimator)}


def head_from(facts: Any, members: Mapping[str, bytes], stem: str, n_components: int) -> Any:
    """The estimator that `head_to` took apart, after checks of every part.

    Parameters
    ----------
    facts : object
        What the bundle says of it.
    members : mapping of str to bytes
        Of the bundle; others than those that begin with the stem are not looked at.
    stem : str
    n_components : int
        Columns that the estimator has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, UNTRUSTED_TYPE or TOO_LARGE.
    """
    form = facts.get("form") if isinstance(facts, Mapping) else None
    if not isinstance(form, str) or form not in _MEMBERS:
        raise malformed("it does not say in which form its estimator is")
    names = {name for name in members if name.rpartition(".")[0] == stem}
    if names != {f"{stem}.{ending}" for ending in _MEMBERS[form]}:
        raise malformed(f"it has the members {sorted(names)!r}, which is not what {form!r} is made of")
    if form == "landmark-ridge":
        return _ridge_from(facts, _arrays(members, stem), n_components)
    estimator = estimator_from_bytes(members[f"{stem}.skops"])
    check_estimator(estimator, n_components)
    return estimator if form == "skops" else _forest_from(estimator, _arrays(members, stem))


def needs_scikit_learn(facts: Any) -> bool:
    """Whether an estimator of these facts can be read only with the scikit-learn it was made with."""
    return not (isinstance(facts, Mapping) and facts.get("form") == "landmark-ridge")


_MEMBERS = {
    "calibrated-forest": ("safetensors", "skops"),
    "landmark-ridge": ("safetensors",),
    "skops": ("skops",),
}
"""Endings of the members of each form."""


def _ridge_to(
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
    arrays = {"coefficients": estimator.coefficients_, "intercept": estimator.intercept_}
    if estimator.kernel == "rbf":
        arrays["landmarks"] = estimator.landmarks
    if isinstance(estimator, LandmarkRidgeClassifier):
        arrays |= _calibration_of(estimator)
    return facts, {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}


def _calibration_of(estimator: LandmarkRidgeClassifier | CalibratedForestClassifier) -> dict[str, Any]:
    return {"scale": np.asarray(float(estimator.scale_)), "offsets": np.asarray(estimator.offsets_, dtype=np.float64)}


def _ridge_from(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_components: int
) -> LandmarkRidgeClassifier | LandmarkRidgeRegressor:
    kernel, gamma, alpha = facts.get("kernel"), facts.get("gamma"), facts.get("alpha")
    if kernel not in _KERNELS or not (_is_positive(gamma) and _is_positive(alpha)):
        raise _malformed("has no known kernel, or an impossible width or penalty")
    classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    n_rows = n_components
    names = {"coefficients", "intercept"} | ({"scale", "offsets"} if classes is not None else set())
    if kernel == "rbf":
        names |= {"landmarks"}
        n_rows = _n_landmarks(arrays)
    if arrays.keys() != names:
        raise _malformed(f"does not have the arrays {sorted(names)!r}")
    each = () if classes is None else (len(classes),)
    _check_array(arrays["coefficients"], (n_rows, *each), "coefficients")
    _check_array(arrays["intercept"], each, "intercept")
    landmarks = None
    if kernel == "rbf":
        landmarks = arrays["landmarks"]
        _check_array(landmarks, (n_rows, n_components), "landmarks")
    kind = LandmarkRidgeRegressor if classes is None else LandmarkRidgeClassifier
    estimator = kind(landmarks, kernel=kernel, gamma=float(gamma), alphas=(float(alpha),))
    estimator.coefficients_, estimator.intercept_ = arrays["coefficients"], arrays["intercept"]
    estimator.alpha_, estimator.n_features_in_ = float(alpha), n_components
    if isinstance(estimator, LandmarkRidgeClassifier):
        estimator.classes_ = classes
        estimator.scale_, estimator.offsets_ = _calibration(arrays, len(estimator.classes_))
    return estimator


def _forest_from(forest: Any, arrays: Mapping[str, NDArray[Any]]) -> CalibratedForestClassifier:
    if type(forest) is not RandomForestClassifier:
        raise malformed(f"its calibrated forest is of a {type(forest).__name__}")
    if arrays.keys() != {"scale", "offsets"}:
        raise malformed("its calibrated forest does not have the arrays ['offsets', 'scale']")
    estimator = CalibratedForestClassifier(len(forest.estimators_))
    estimator.estimator_, estimator.classes_ = forest, forest.classes_
    estimator.n_features_in_ = forest.n_features_in_
    estimator.scale_, estimator.offsets_ = _calibration(arrays, len(forest.classes_))
    return estimator


def _calibration(arrays: Mapping[str, NDArray[Any]], n_classes: int) -> tuple[float, FloatArray]:
    _check_array(arrays["scale"], (), "scale", most=_MOST_CALIBRATION)
    _check_array(arrays["offsets"], (n_classes,), "offsets", most=_MOST_CALIBRATION)
    if arrays["scale"] < 0:
        raise _malformed("has a scale below 0, which would turn its answers round")
    return float(arrays["scale"]), arrays["offsets"]


def _n_landmarks(arrays: Mapping[str, NDArray[Any]]) -> int:
    landmarks = arrays.get("landmarks")
    if landmarks is None or landmarks.ndim != 2 or len(landmarks) == 0:
        raise _malformed("has no landmarks")
    if len(landmarks) > _MOST_LANDMARKS:
        raise too_large(f"has {len(landmarks)} landmarks; {_MOST_LANDMARKS} are allowed")
    return len(landmarks)


def _arrays(members: Mapping[str, bytes], stem: str) -> dict[str, NDArray[Any]]:
    try:
        return bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise malformed("the numbers of its estimator cannot be read") from None


def _check_array(array: NDArray[Any], shape: tuple[int, ...], name: str, *, most: float = _MOST_NUMBER) -> None:
    if array.dtype != np.float64 or array.shape != shape:
        raise _malformed(f"has {name} of another shape or type than its landmarks, columns and classes want")
    if not (np.abs(array) <= most).all():
        raise _malformed(f"has {name} that are not finite, or beyond {most:g}")


def _is_positive(value: Any) -> bool:
    return type(value) in (float, int) and math.isfinite(value) and 0 < value <= _MOST_NUMBER


def _malformed(what: str) -> ExchangeError:
    return malformed(f"its estimator {what}")
