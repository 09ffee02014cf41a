"""A party's model as facts and members of a bundle, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .. import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._estimator_check import check_estimator
from ._facts import plain_facts
from ._map_codec import map_from, map_to
from ._maps import IntegrationFunction, KernelMap
from ._onnx_export import OPSET, onnx_of
from ._onnx_model import OnnxPartyModel, onnx_party_model
from ._party_model import PartyModel
from ._refusal import malformed, reason_of
from ._skops_file import estimator_from_bytes, estimator_name, estimator_to_bytes
from ._trial import try_prediction

__all__ = ["MODEL_KIND", "ONNX_MEMBER", "model_contents", "model_from"]

MODEL_KIND = "datacollab.model"

_VERSION = re.compile(r"[0-9]+\.[0-9]+[a-z0-9.+]{0,20}", re.ASCII)
_MAP, _ESTIMATOR, ONNX_MEMBER = "g.safetensors", "h.skops", "model.onnx"


def model_contents(model: PartyModel, *, onnx: bool = False) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a `.dcmodel` file says and holds of a model.

    What is written is read again with all checks, so that the party's program will take it.  Of a search over
    parameters, the best estimator is sent.

    Parameters
    ----------
    model : PartyModel
    onnx : bool, default=False
        Whether to add h∘g_k as an ONNX graph, which other versions of scikit-learn and other languages can run.

    Returns
    -------
    facts : dict of str to object
        For the manifest.
    members : dict of str to bytes

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, ONNX_UNSUPPORTED, or TOO_LARGE.
    """
    estimator = getattr(model.estimator, "best_estimator_", model.estimator)
    g = model.integration_function
    if isinstance(g, KernelMap):
        g = g.to_numpy()
    sent = PartyModel(party=model.party, integration_function=g, estimator=estimator)
    map_facts, arrays = map_to(g)
    classes = getattr(estimator, "classes_", None)
    facts = {
        "party": model.party,
        "integration_function": map_facts,
        "n_intermediate": g.n_intermediate,
        "n_components": g.n_components,
        "estimator": type(estimator).__name__,
        "task": "classification" if is_classifier(estimator) else "regression",
        "classes": None if classes is None else np.asarray(classes).tolist(),
        "onnx": None,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
    }
    members = {_MAP: arrays_to_bytes(arrays), _ESTIMATOR: estimator_to_bytes(estimator)}
    _check_written(facts, members, sent)
    if onnx:
        members[ONNX_MEMBER] = onnx_of(sent)
        facts["onnx"] = {
            "opset": OPSET,
            "classes_dtype": None if classes is None else _dtype_name(classes),
            "probabilities": hasattr(estimator, "predict_proba"),
        }
    return facts, members


def model_from(bundle: Bundle, *, prefer_onnx: bool = False) -> PartyModel:
    """The model in a bundle, after checks of every part; nothing that the bundle brings along is run.

    Parameters
    ----------
    bundle : Bundle
    prefer_onnx : bool, default=False
        Whether to take the ONNX form, where there is one.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, UNTRUSTED_TYPE, VERSION_MISMATCH or MODEL_MALFORMED.
    """
    if bundle.kind != MODEL_KIND:
        raise ExchangeError("WRONG_KIND", f"A model is wanted, but this is a bundle of kind {bundle.kind!r}.")
    facts = plain_facts(bundle)
    if prefer_onnx and ONNX_MEMBER in bundle.members:
        g = _map_of(facts, bundle.members)
        model = onnx_party_model(g, bundle.members[ONNX_MEMBER], facts)
        _check_facts(facts, model, estimator=estimator_name(bundle.members[_ESTIMATOR]))
        return model
    return _model_of(facts, bundle.members)


def _model_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> PartyModel:
    _check_version(facts, ONNX_MEMBER in members)
    g = _map_of(facts, members)
    estimator = estimator_from_bytes(members[_ESTIMATOR])
    check_estimator(estimator, g.n_components)
    model = PartyModel(party=g.party, integration_function=g, estimator=estimator)
    _check_facts(facts, model, estimator=type(estimator).__name__)
    try_prediction(model)
    return model


def _map_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> IntegrationFunction:
    if not {_MAP, _ESTIMATOR} <= members.keys() <= {_MAP, _ESTIMATOR, ONNX_MEMBER}:
        raise malformed(f"it has the members {sorted(members)!r}, where {_MAP!r} and {_ESTIMATOR!r} are wanted")
    party = facts.get("party")
    if isinstance(party, bool) or not isinstance(party, str | int):
        raise malformed("it does not say for which party it is")
    try:
        arrays = bytes_to_arrays(members[_MAP], what=_MAP)
    except ExchangeError:
        raise malformed("the arrays of its integration function cannot be read") from None
    return map_from(party, facts.get("integration_function"), arrays)


def _check_version(facts: Mapping[str, Any], has_onnx: bool) -> None:
    """What scikit-learn keeps in an estimator changes from one minor version to the next."""
    versions = facts.get("versions")
    made_with = versions.get("sklearn") if isinstance(versions, Mapping) else None
    if not isinstance(made_with, str) or not _VERSION.fullmatch(made_with):
        raise malformed("it does not say with which scikit-learn it was made")
    if made_with.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        otherwise = "or take its ONNX form" if has_onnx else "or ask the analyst for the ONNX form"
        raise ExchangeError(
            "VERSION_MISMATCH",
            f"The model was made with scikit-learn {made_with}, but {sklearn.__version__} is installed. Install "
            f"scikit-learn {made_with}, {otherwise}.",
        )


def _check_facts(facts: Mapping[str, Any], model: PartyModel, *, estimator: str | None) -> None:
    classes = getattr(model.estimator, "classes_", None)
    is_graph = isinstance(model, OnnxPartyModel)
    is_classification = classes is not None if is_graph else is_classifier(model.estimator)
    found = {
        "n_intermediate": model.integration_function.n_intermediate,
        "n_components": model.integration_function.n_components,
        "estimator": estimator,
        "task": "classification" if is_classification else "regression",
        "classes": None if classes is None else classes.tolist(),
    }
    wrong = [name for name, value in found.items() if name not in facts or facts[name] != value]
    if wrong:
        raise malformed(f"its manifest says something else than its parts of {wrong!r}")


def _check_written(facts: Mapping[str, Any], members: Mapping[str, bytes], model: PartyModel) -> None:
    """A model that would be refused, or would predict otherwise, is not sent."""
    name = type(model.estimator).__name__
    try:
        read, rows = _model_of(facts, members), try_prediction(model)
    except ExchangeError as error:
        if error.code == "TOO_LARGE":
            raise
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {name} cannot be sent, for the party's program would refuse it ({reason_of(error)}). Train another "
            "kind of model.",
        ) from None
    before, after = model.predict(rows), read.predict(rows)
    same = np.array_equal(before, after) if before.dtype.kind not in "f" else np.allclose(before, after, rtol=1e-9)
    if not same:
        raise ExchangeError(
            "MODEL_UNSUPPORTED", f"The {name} predicts otherwise once written and read. Train another kind of model."
        )


def _dtype_name(classes: NDArray[Any]) -> str:
    return "str" if classes.dtype.kind == "U" else classes.dtype.name
