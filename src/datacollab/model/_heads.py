"""The model h as facts and members of a bundle: plain numbers, or, where both ends ask for it, what skops writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ..survival import SurvivalModel
from ._calibrated_forest import CalibratedForestClassifier
from ._from_elsewhere import FromElsewhere
from ._inference_heads import INFERENCE_FORM, inference_from, inference_to
from ._landmark_ridge import LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._linear_inference import LeastSquaresInference, LogisticInference
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
from ._skops_file import estimator_to_bytes
from .predictors import (
    SURVIVAL_PART,
    ReceivedClassifier,
    ReceivedRegressor,
    read_predictor,
    read_survival,
    sent_form,
    sent_survival,
    write_predictor,
    write_survival,
)

__all__ = ["estimator_kind", "head_from", "head_to", "needs_scikit_learn"]


def head_to(estimator: Any, stem: str, *, objects: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of a fitted estimator.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    stem : str
        What the names of the members begin with.
    objects : bool, default=False
        Whether to keep the estimator as the object of scikit-learn that it is, in a skops archive, rather than what it
        computes.  Landmark ridge models, their averages, survival models and linear models with a covariance are
        numbers in either case.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, or TOO_LARGE.
    """
    if isinstance(estimator, LandmarkRidgeClassifier | LandmarkRidgeRegressor):
        facts, arrays = ridge_to(estimator)
    elif is_of_ridges(estimator):
        facts, arrays = average_to(estimator)
    elif isinstance(estimator, LeastSquaresInference | LogisticInference):
        facts, arrays = inference_to(estimator)
    elif isinstance(estimator, SurvivalModel):
        facts, arrays = write_survival(sent_survival(estimator))
        facts = {"form": "steps"} | facts
    elif objects and not isinstance(estimator, ReceivedClassifier | ReceivedRegressor):
        return _objects_to(estimator, stem)
    else:
        facts, arrays = write_predictor(sent_form(estimator))
        facts = {"form": "steps"} | facts
    return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}


def _objects_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    if isinstance(estimator, CalibratedForestClassifier):
        return {"form": "calibrated-forest"}, {
            f"{stem}.skops": estimator_to_bytes(estimator.estimator_),
            f"{stem}.safetensors": arrays_to_bytes(calibration_to(estimator)),
        }
    return {"form": "skops"}, {f"{stem}.skops": estimator_to_bytes(estimator)}


def head_from(
    facts: Any,
    members: Mapping[str, bytes],
    stem: str,
    n_components: int,
    *,
    read_objects: Callable[[bytes, int], Any] | None = None,
) -> Any:
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
    read_objects : callable, optional
        From what skops wrote and the number of columns to an estimator.  Objects are refused without.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, OBJECTS_REFUSED or TOO_LARGE, and what `read_objects` raises.
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
    if form == INFERENCE_FORM:
        return inference_from(facts, _arrays(members, stem), n_components)
    if form == "steps" and SURVIVAL_PART in facts:
        return read_survival(facts, _arrays(members, stem), n_components)
    if form == "steps":
        return read_predictor(facts, _arrays(members, stem), n_components)
    if read_objects is None:
        raise ExchangeError(
            "OBJECTS_REFUSED",
            "The model is made of objects of scikit-learn rather than of plain numbers, and was written by an earlier "
            "version or where someone asked for it. Ask the analyst to export it anew, as numbers. Or take it all the "
            "same, to be run in a process without files and network: `datacollab party install --objects`, or "
            "objects=True in Python.",
        )
    estimator = read_objects(members[f"{stem}.skops"], n_components)
    return estimator if form == "skops" else _forest_from(estimator, _arrays(members, stem))


def estimator_kind(estimator: Any) -> str:
    """Name of the class that was trained, also where only its steps are there."""
    return estimator.name if isinstance(estimator, FromElsewhere) else type(estimator).__name__


def needs_scikit_learn(facts: Any) -> bool:
    """Whether an estimator of these facts can be read only with the scikit-learn it was made with."""
    return not (isinstance(facts, Mapping) and facts.get("form") in _NUMBERS)


_MEMBERS = {
    "average": ("safetensors",),
    "calibrated-forest": ("safetensors", "skops"),
    "landmark-ridge": ("safetensors",),
    INFERENCE_FORM: ("safetensors",),
    "skops": ("skops",),
    "steps": ("safetensors",),
}
"""Endings of the members of each form."""
_NUMBERS = {form for form, endings in _MEMBERS.items() if endings == ("safetensors",)}


def _forest_from(forest: Any, arrays: Mapping[str, NDArray[Any]]) -> CalibratedForestClassifier:
    if estimator_kind(forest) != "RandomForestClassifier" or not hasattr(forest, "predict_proba"):
        raise malformed(f"its calibrated forest is of a {estimator_kind(forest)}")
    if arrays.keys() != {"scale", "offsets"}:
        raise malformed("its calibrated forest does not have the arrays ['offsets', 'scale']")
    estimator = CalibratedForestClassifier()
    estimator.estimator_, estimator.classes_ = forest, forest.classes_
    estimator.n_features_in_ = forest.n_features_in_
    estimator.scale_, estimator.offsets_ = calibration_from(arrays, len(forest.classes_))
    return estimator


def _arrays(members: Mapping[str, bytes], stem: str) -> dict[str, NDArray[Any]]:
    try:
        return bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise malformed("the numbers of its estimator cannot be read") from None
