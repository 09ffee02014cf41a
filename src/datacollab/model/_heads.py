"""The model h as facts and members of a bundle: plain numbers where that is possible, else what skops writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._calibrated_forest import CalibratedForestClassifier
from ._estimator_check import check_estimator
from ._landmark_ridge import LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._refusal import malformed
from ._ridge_heads import (
    average_from,
    average_to,
    calibration_from,
    calibration_to,
    is_of_ridges,
    ridge_from,
    ridge_to,
)
from ._skops_file import estimator_from_bytes, estimator_to_bytes

__all__ = ["head_from", "head_to", "needs_scikit_learn"]


def head_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of a fitted estimator.

    Landmark ridge models and averages of them are sent as their numbers, and so is what calibrates a forest; the forest
    itself and all other estimators go as skops archives.

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
        return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}
    if is_of_ridges(estimator):
        facts, arrays = average_to(estimator)
        return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}
    if isinstance(estimator, CalibratedForestClassifier):
        return {"form": "calibrated-forest"}, {
            f"{stem}.skops": estimator_to_bytes(estimator.estimator_),
            f"{stem}.safetensors": arrays_to_bytes(calibration_to(estimator)),
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
        return ridge_from(facts, _arrays(members, stem), n_components)
    if form == "average":
        return average_from(facts, _arrays(members, stem), n_components)
    estimator = estimator_from_bytes(members[f"{stem}.skops"])
    check_estimator(estimator, n_components)
    return estimator if form == "skops" else _forest_from(estimator, _arrays(members, stem))


def needs_scikit_learn(facts: Any) -> bool:
    """Whether an estimator of these facts can be read only with the scikit-learn it was made with."""
    return not (isinstance(facts, Mapping) and facts.get("form") in ("average", "landmark-ridge"))


_MEMBERS = {
    "average": ("safetensors",),
    "calibrated-forest": ("safetensors", "skops"),
    "landmark-ridge": ("safetensors",),
    "skops": ("skops",),
}
"""Endings of the members of each form."""


def _forest_from(forest: Any, arrays: Mapping[str, NDArray[Any]]) -> CalibratedForestClassifier:
    if type(forest) is not RandomForestClassifier:
        raise malformed(f"its calibrated forest is of a {type(forest).__name__}")
    if arrays.keys() != {"scale", "offsets"}:
        raise malformed("its calibrated forest does not have the arrays ['offsets', 'scale']")
    estimator = CalibratedForestClassifier(len(forest.estimators_))
    estimator.estimator_, estimator.classes_ = forest, forest.classes_
    estimator.n_features_in_ = forest.n_features_in_
    estimator.scale_, estimator.offsets_ = calibration_from(arrays, len(forest.classes_))
    return estimator


def _arrays(members: Mapping[str, bytes], stem: str) -> dict[str, NDArray[Any]]:
    try:
        return bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise malformed("the numbers of its estimator cannot be read") from None
