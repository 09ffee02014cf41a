"""A party's model as facts and members of a bundle, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier

from .._typing import FloatArray, PartyName
from .._version import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import AgreementError, ExchangeError
from ..survival import SurvivalModel
from ._composed import ComposedModel
from ._facts import plain_facts
from ._heads import estimator_kind, head_from, head_to
from ._left_out_codec import check_left_out, left_out_from, left_out_to
from ._map_codec import map_from, map_to
from ._maps import IntegrationFunction, KernelMap
from ._refusal import malformed, reason_of
from ._task import task_of
from ._trial import try_prediction

__all__ = ["MODEL_KIND", "decode_model", "model_contents"]

MODEL_KIND = "datacollab.model"

_MAP, _LEFT_OUT = "g.safetensors", "left-out.safetensors"
_HEAD, _WITHOUT = "h", "h-without"
"""What the names of the members begin with that hold h, and h without the party."""


def model_contents(model: ComposedModel) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a `.dcmodel` file says and holds of a model.

    What is written is read again with all checks, so that the party's program will take it.  Of a search over
    parameters, the best estimator is sent.

    Parameters
    ----------
    model : PartyModel

    Returns
    -------
    facts : dict of str to object
        For the manifest.
    members : dict of str to bytes

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED or TOO_LARGE.
    """
    estimator = _of_party(getattr(model.estimator, "best_estimator_", model.estimator), model.party)
    g = model.integration_function
    if isinstance(g, KernelMap):
        g = g.to_numpy()
    without = model.without_party
    without = getattr(without, "best_estimator_", without)
    sent = ComposedModel(
        party=model.party,
        integration_function=g,
        estimator=estimator,
        left_out=model.left_out,
        without_party=without,
    )
    map_facts, arrays = map_to(g)
    head, members = head_to(estimator, _HEAD)
    without_head, without_members = (None, {}) if without is None else head_to(without, _WITHOUT)
    classes = getattr(estimator, "classes_", None)
    facts = {
        "party": model.party,
        "integration_function": map_facts,
        "n_intermediate": g.n_intermediate,
        "n_components": g.n_components,
        "estimator": estimator_kind(estimator),
        "head": head,
        "without_party": without_head,
        "task": task_of(estimator),
        "classes": None if classes is None else np.asarray(classes).tolist(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
    }
    members |= {_MAP: arrays_to_bytes(arrays)} | without_members
    if model.left_out is not None:
        members[_LEFT_OUT] = left_out_to(model.left_out)
    _check_written(facts, members, sent)
    return facts, members


def _of_party(estimator: Any, party: PartyName) -> Any:
    """A survival model with the baseline of the party alone; any other as it is."""
    if not isinstance(estimator, SurvivalModel) or not hasattr(estimator, "baselines_"):
        return estimator
    try:
        return estimator.for_party(party)
    except AgreementError as error:
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {type(estimator).__name__} cannot be sent to party {party!r}, which gets its own baseline or the "
            f"common one. {error} Train it with the parties as strata, or without strata.",
        ) from None


def decode_model(bundle: Bundle) -> ComposedModel:
    """What `model_from` makes a `ComposedModel` of; its errors are described there."""
    if bundle.kind != MODEL_KIND:
        raise ExchangeError("WRONG_KIND", f"A model is wanted, but this is a bundle of kind {bundle.kind!r}.")
    return _model_of(plain_facts(bundle), bundle.members)


def _model_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> ComposedModel:
    g = _map_of(facts, members)
    estimator = head_from(facts.get("head"), members, _HEAD, g.n_components)
    model = ComposedModel(
        party=g.party,
        integration_function=g,
        estimator=estimator,
        left_out=_left_out_of(members, estimator),
        without_party=_without_party(facts, members, g, estimator),
    )
    _check_facts(facts, model, estimator=estimator_kind(estimator))
    try_prediction(model)
    return model


def _map_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> IntegrationFunction:
    _check_members(facts, members)
    party = facts.get("party")
    if isinstance(party, bool) or not isinstance(party, str | int):
        raise malformed("it does not say for which party it is")
    try:
        arrays = bytes_to_arrays(members[_MAP], what=_MAP)
    except ExchangeError:
        raise malformed("the arrays of its integration function cannot be read") from None
    return map_from(party, facts.get("integration_function"), arrays)


def _check_members(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    known = {_MAP, _LEFT_OUT, f"{_HEAD}.safetensors", f"{_WITHOUT}.safetensors"}
    without = facts.get("without_party") is None and any(name.startswith(f"{_WITHOUT}.") for name in members)
    if _MAP not in members or not members.keys() <= known or without:
        raise malformed(f"it has the members {sorted(members)!r}, which are not those of a model")


def _left_out_of(members: Mapping[str, bytes], estimator: Any) -> FloatArray | None:
    if _LEFT_OUT not in members:
        return None
    if isinstance(estimator, SurvivalModel):
        raise malformed("it is a survival model with predictions for rows left out, which none has")
    left_out = left_out_from(members[_LEFT_OUT])
    check_left_out(left_out, getattr(estimator, "classes_", None))
    return left_out


def _without_party(
    facts: Mapping[str, Any], members: Mapping[str, bytes], g: IntegrationFunction, estimator: Any
) -> Any | None:
    """The model without this party's rows, which has to be one for the same targets."""
    if facts.get("without_party") is None:
        return None
    without = head_from(facts["without_party"], members, _WITHOUT, g.n_components)
    if task_of(without) != task_of(estimator) or isinstance(estimator, SurvivalModel):
        raise malformed("its estimator without the party is for another task")
    if is_classifier(estimator) and not np.isin(without.classes_, estimator.classes_).all():
        raise malformed("its estimator without the party knows classes that the one with it does not")
    try_prediction(ComposedModel(party=g.party, integration_function=g, estimator=without))
    return without


def _check_facts(facts: Mapping[str, Any], model: ComposedModel, *, estimator: str | None) -> None:
    classes = getattr(model.estimator, "classes_", None)
    found = {
        "n_intermediate": model.integration_function.n_intermediate,
        "n_components": model.integration_function.n_components,
        "estimator": estimator,
        "task": task_of(model.estimator),
        "classes": None if classes is None else classes.tolist(),
    }
    wrong = [name for name, value in found.items() if name not in facts or facts[name] != value]
    if wrong:
        raise malformed(f"its manifest says something else than its parts of {wrong!r}")


def _check_written(facts: Mapping[str, Any], members: Mapping[str, bytes], model: ComposedModel) -> None:
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
    pairs = [(model, read)]
    if model.without_party is not None:
        pairs.append((_with(model, model.without_party), _with(read, read.without_party)))
    if not all(_predict_alike(before, after, rows) for before, after in pairs):
        raise ExchangeError(
            "MODEL_UNSUPPORTED", f"The {name} predicts otherwise once written and read. Train another kind of model."
        )


def _with(model: ComposedModel, estimator: Any) -> ComposedModel:
    return ComposedModel(party=model.party, integration_function=model.integration_function, estimator=estimator)


def _predict_alike(first: ComposedModel, second: ComposedModel, rows: FloatArray) -> bool:
    before, after = first.predict(rows), second.predict(rows)
    if isinstance(first.estimator, SurvivalModel) and not _survive_alike(first, second, rows):
        return False
    same = np.array_equal(before, after) if before.dtype.kind not in "f" else np.allclose(before, after, rtol=1e-9)
    if same and hasattr(first.estimator, "predict_proba"):
        return bool(np.allclose(first.predict_proba(rows), second.predict_proba(rows), rtol=1e-9, atol=1e-12))
    return bool(same)


def _survive_alike(first: ComposedModel, second: ComposedModel, rows: FloatArray) -> bool:
    times = second.estimator.baseline.times
    before, after = first.predict_survival(rows, times), second.predict_survival(rows, times)
    return bool(np.allclose(before, after, rtol=1e-9, atol=1e-12))
