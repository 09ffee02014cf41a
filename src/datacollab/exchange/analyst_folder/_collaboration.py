"""The fitted collaboration: kept, and exported as a model or anchor predictions for each party."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ..._validation import require
from ...bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, pack, seal, unpack
from ...errors import ExchangeError
from ...model import (
    MODEL_KIND,
    PREDICTIONS_KIND,
    PartyModel,
    anchor_predictions,
    estimator_kind,
    head_from,
    head_to,
    map_from,
    map_to,
    model_contents,
    predictions_contents,
)
from ...survival import SurvivalModel
from ..project import Project
from ._integration import Integration
from ._received import SEALED

if TYPE_CHECKING:
    from ...analyst import Collaboration

COLLABORATION_KIND = "datacollab.collaboration"
_MAPS, _LEFT_OUT, _WITHOUT = "maps.safetensors", "left-out.safetensors", "without.bin"
_OWN = "own.bin"
_HEAD = "h"
_OBJECT = f"{_HEAD}.skops"
_LIBRARIES = ("numpy", "scipy", "sklearn")
"""Libraries whose types may be in an estimator that is no plain numbers."""


def pack_collaboration(collaboration: Collaboration, result: Integration) -> bytes:
    """Pack all parties' g_k, h once, and for each party what its own model says besides; no representation."""
    facts: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    left_out: dict[str, NDArray[Any]] = {}
    without: list[bytes] = []
    own: list[bytes] = []
    for number, party in enumerate(collaboration.parties):
        model = collaboration.party_model(party)
        map_facts, map_arrays = map_to(model.integration_function)
        arrays |= {f"{number}.{name}": array for name, array in map_arrays.items()}
        if model.left_out is not None:
            left_out[f"{number}"] = np.asarray(model.left_out, dtype=np.float64)
        # Members of a bundle are few, and parties may be many: so their models follow one another in one member.
        without.append(_packed_head(model.without_party))
        facts.append({"party": party, "map": map_facts, "without_bytes": len(without[-1])})
        if isinstance(model.estimator, SurvivalModel):
            own.append(_packed_head(model.estimator.for_party(party)))
            facts[-1]["own_bytes"] = len(own[-1])
    if own:
        # Each party has a baseline of its own, and gets no other.
        head, members = None, {_OWN: b"".join(own)}
    else:
        head, members = _written_head(collaboration.estimator_)
    members |= {
        _MAPS: arrays_to_bytes(arrays),
        _LEFT_OUT: arrays_to_bytes(left_out),
        _WITHOUT: b"".join(without),
    }
    return pack(COLLABORATION_KIND, {"integration": result.facts(), "maps": facts, "head": head}, members)


def unpack_collaboration(data: bytes, *, where: str) -> tuple[dict[str, PartyModel], Integration]:
    """Return models by party, and what is known of them."""
    try:
        bundle = unpack(data, kind=COLLABORATION_KIND)
        return dict(_models(bundle)), Integration.from_facts(bundle.facts["integration"])
    # What this program wrote is not checked entry by entry; it is not read from elsewhere.
    except (ExchangeError, KeyError, TypeError, ValueError):
        raise ExchangeError("STATE_DAMAGED", f"{where} is damaged. Run `datacollab analyst integrate` again.") from None


def _models(bundle: Bundle) -> Iterator[tuple[str, PartyModel]]:
    arrays = bytes_to_arrays(bundle.members[_MAPS], what=_MAPS)
    left_out = bytes_to_arrays(bundle.members[_LEFT_OUT], what=_LEFT_OUT)
    head, without = bundle.facts["head"], bundle.members[_WITHOUT]
    own = bundle.members.get(_OWN, b"")
    estimator = None
    start = own_start = 0
    for number, entry in enumerate(bundle.facts["maps"]):
        party, end = entry["party"], start + entry["without_bytes"]
        g = map_from(party, entry["map"], _of(arrays, number))
        if head is None:
            own_end = own_start + entry["own_bytes"]
            estimator, own_start = _opened_head(own[own_start:own_end], g.n_components), own_end
        elif estimator is None:
            estimator = _read_head(head, bundle.members, g.n_components)
        yield (
            party,
            PartyModel(
                party=party,
                integration_function=g,
                estimator=estimator,
                left_out=left_out.get(f"{number}"),
                without_party=_opened_head(without[start:end], g.n_components),
            ),
        )
        start = end


def _packed_head(estimator: Any | None) -> bytes:
    if estimator is None:
        return b""
    head, members = _written_head(estimator)
    return pack(COLLABORATION_KIND, {"head": head}, members)


def _opened_head(data: bytes, n_components: int) -> Any | None:
    if not data:
        return None
    bundle = unpack(data, kind=COLLABORATION_KIND)
    return _read_head(bundle.facts["head"], bundle.members, n_components)


def _written_head(estimator: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Write an estimator as numbers, or as skops does if no numbers describe it; of a search, the best estimator."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    try:
        return head_to(estimator, _HEAD)
    except ExchangeError as unsupported:
        if unsupported.code != "MODEL_UNSUPPORTED" or isinstance(estimator, SurvivalModel):
            raise
        skops_io = require("skops.io", "exchange")
        try:
            data: bytes = skops_io.dumps(estimator)
            _trusted(data)
        # Skops and what it calls raise many kinds of errors for objects that it cannot take apart.
        except Exception:
            raise unsupported from None
        return {"form": "object"}, {_OBJECT: data}


def _read_head(facts: Any, members: Mapping[str, bytes], n_components: int) -> Any:
    """Read the estimator that `_written_head` wrote, in this program and on this disk."""
    if facts["form"] != "object":
        return head_from(facts, members, _HEAD, n_components)
    data = members[_OBJECT]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return require("skops.io", "exchange").loads(data, trusted=_trusted(data))
    # Skops raises many kinds of errors for what it did not write, and may quote it.
    except Exception as error:
        raise ValueError(f"the object cannot be read ({type(error).__name__})") from None


def _trusted(data: bytes) -> list[str]:
    """Return the types that skops does not know by itself, all of them of `_LIBRARIES`."""
    types: list[str] = require("skops.io", "exchange").get_untrusted_types(data=data)
    if any(name.partition(".")[0] not in _LIBRARIES for name in types):
        raise ValueError("objects of other libraries than scikit-learn, SciPy and NumPy")
    return types


def _of(arrays: Mapping[str, NDArray[Any]], number: int) -> dict[str, NDArray[Any]]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def signed_model(model: PartyModel, result: Integration, project: Project, key: KeyPair) -> bytes:
    """Write a `.dcmodel` file for one party, sealed to it: a kernel map holds its representation of the anchor."""
    inner, members = model_contents(model)
    party = str(model.party)
    purpose = f"model of {party} in {project.digest}"
    sealed = seal(pack(MODEL_KIND, inner, members), [project.parties[party]], purpose=purpose)
    return pack(
        MODEL_KIND,
        {name: inner[name] for name in ("task", "n_components", "estimator", "versions")}
        | _about(party, result, project)
        | {"parameters": result.parameters, "row_lint": {"found": False, "overridden_by": None}},
        {SEALED: sealed},
        key=key,
    )


def signed_predictions(
    model: PartyModel, anchor_representation: FloatArray, result: Integration, project: Project, key: KeyPair
) -> bytes:
    """Write a `.dcanswers` file for one party, sealed to it: its model's predictions for the anchor."""
    party = str(model.party)
    try:
        inner, members = predictions_contents(anchor_predictions(model, anchor_representation))
    except (TypeError, ArithmeticError) as error:
        raise ExchangeError("MODEL_UNSUPPORTED", f"{error} Integrate with another model.") from None
    purpose = f"answers for {party} in {project.digest}"
    sealed = seal(pack(PREDICTIONS_KIND, inner, members), [project.parties[party]], purpose=purpose)
    facts = {name: inner[name] for name in ("task", "n_anchors", "versions")} | _about(party, result, project)
    return pack(PREDICTIONS_KIND, facts | {"estimator": estimator_kind(model.estimator)}, {SEALED: sealed}, key=key)


def _about(party: str, result: Integration, project: Project) -> dict[str, Any]:
    """Return what stands outside the seal of all that goes back."""
    return {
        "party": party,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "project": project.name,
        "project_digest": project.digest,
        "share_digest": result.share_digests[party],
        "method": result.method,
        "n_parties": len(result.share_digests),
        "n_rows": result.n_rows,
    }
