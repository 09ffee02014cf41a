"""A fitted collaboration on the analyst's disk, between integration and export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...bundle import Bundle, arrays_to_bytes, bytes_to_arrays, pack, unpack
from ...errors import ExchangeError
from ...model import PartyModel, estimator_from_bytes, head_from, head_to, map_from, map_to
from ...survival import SurvivalModel
from ._integration import Integration

if TYPE_CHECKING:
    from ...analyst import Collaboration

__all__ = ["COLLABORATION_KIND", "pack_collaboration", "unpack_collaboration"]

COLLABORATION_KIND = "datacollab.collaboration"
_MAPS, _LEFT_OUT, _WITHOUT = "maps.safetensors", "left-out.safetensors", "without.bin"
_OWN = "own.bin"
_HEAD = "h"
_OLD_HEAD = {"form": "skops"}
"""Of version 1, which had one form of estimator and nothing besides."""


def pack_collaboration(collaboration: Collaboration, result: Integration) -> bytes:
    """All parties' g_k, h once, and for each party what its own model says besides; no collaboration representation.

    h stays the object that was trained, of which an ONNX form can be made; this file is its writer's own.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, where a map or the model cannot be written.
    """
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
        head, members = head_to(_best(collaboration.estimator_), _HEAD, objects=True)
    members |= {
        _MAPS: arrays_to_bytes(arrays),
        _LEFT_OUT: arrays_to_bytes(left_out),
        _WITHOUT: b"".join(without),
    }
    return pack(COLLABORATION_KIND, {"integration": result.facts(), "maps": facts, "head": head}, members)


def unpack_collaboration(data: bytes, *, where: str) -> tuple[dict[str, PartyModel], Integration]:
    """Models by party, and what is known of them.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED.
    """
    try:
        bundle = unpack(data, kind=COLLABORATION_KIND)
        return dict(_models(bundle)), Integration.from_facts(bundle.facts["integration"])
    # What this program wrote is not checked entry by entry; it is not read from elsewhere.
    except (ExchangeError, KeyError, TypeError, ValueError):
        raise ExchangeError("STATE_DAMAGED", f"{where} is damaged. Run `datacollab analyst integrate` again.") from None


def _models(bundle: Bundle) -> Iterator[tuple[str, PartyModel]]:
    arrays = bytes_to_arrays(bundle.members[_MAPS], what=_MAPS)
    left_out = bytes_to_arrays(bundle.members[_LEFT_OUT], what=_LEFT_OUT) if _LEFT_OUT in bundle.members else {}
    head, without = bundle.facts.get("head", _OLD_HEAD), bundle.members.get(_WITHOUT, b"")
    own = bundle.members.get(_OWN, b"")
    estimator = None
    start = own_start = 0
    for number, entry in enumerate(bundle.facts["maps"]):
        party, end = entry["party"], start + entry.get("without_bytes", 0)
        g = map_from(party, entry["map"], _of(arrays, number))
        if head is None:
            own_end = own_start + entry["own_bytes"]
            estimator, own_start = _opened_head(own[own_start:own_end], g.n_components), own_end
        elif estimator is None:
            estimator = head_from(head, bundle.members, _HEAD, g.n_components, read_objects=_own)
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
    head, members = head_to(_best(estimator), _HEAD, objects=True)
    return pack(COLLABORATION_KIND, {"head": head}, members)


def _opened_head(data: bytes, n_components: int) -> Any | None:
    if not data:
        return None
    bundle = unpack(data, kind=COLLABORATION_KIND)
    return head_from(bundle.facts["head"], bundle.members, _HEAD, n_components, read_objects=_own)


def _own(data: bytes, n_components: int) -> Any:
    """The object that this program wrote."""
    return estimator_from_bytes(data)


def _best(estimator: Any) -> Any:
    """Of a search over parameters the best estimator, which alone is sent."""
    return getattr(estimator, "best_estimator_", estimator)


def _of(arrays: Mapping[str, NDArray[Any]], number: int) -> dict[str, NDArray[Any]]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
