"""The model h as facts and members of a bundle: plain numbers, each checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ..survival import SurvivalModel
from ._from_elsewhere import FromElsewhere
from ._inference_heads import INFERENCE_FORM, inference_from, inference_to
from ._landmark_ridge import LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._linear_inference import LeastSquaresInference, LogisticInference
from ._refusal import malformed
from ._ridge_heads import (
    average_from,
    average_to,
    is_of_ridges,
    ridge_from,
    ridge_to,
)
from .predictors import (
    SURVIVAL_PART,
    Budget,
    read_predictor,
    read_survival,
    sent_form,
    sent_survival,
    write_predictor,
    write_survival,
)

__all__ = ["estimator_kind", "head_from", "head_to"]


def head_to(estimator: Any, stem: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of a fitted estimator.

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
    elif isinstance(estimator, LeastSquaresInference | LogisticInference):
        facts, arrays = inference_to(estimator)
    elif isinstance(estimator, SurvivalModel):
        facts, arrays = write_survival(sent_survival(estimator))
        facts = {"form": "steps"} | facts
    else:
        facts, arrays = write_predictor(sent_form(estimator))
        facts = {"form": "steps"} | facts
    return facts, {f"{stem}.safetensors": arrays_to_bytes(arrays)}


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
    if form == INFERENCE_FORM:
        return inference_from(facts, arrays, n_components)
    if SURVIVAL_PART in facts:
        return read_survival(facts, arrays, n_components)
    return read_predictor(facts, arrays, n_components)


def estimator_kind(estimator: Any) -> str:
    """Name of the class that was trained, also where only its steps are there."""
    return estimator.name if isinstance(estimator, FromElsewhere) else type(estimator).__name__


_FORMS = ("average", "landmark-ridge", INFERENCE_FORM, "steps")


def _arrays(members: Mapping[str, bytes], stem: str) -> dict[str, NDArray[Any]]:
    try:
        return bytes_to_arrays(members[f"{stem}.safetensors"], what=f"{stem}.safetensors")
    except ExchangeError:
        raise malformed("the numbers of its estimator cannot be read") from None
