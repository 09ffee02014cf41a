"""A fitted collaboration on the analyst's disk, between integration and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bundle import arrays_to_bytes, bytes_to_arrays, pack, unpack
from ..errors import ExchangeError
from ..model import PartyModel, estimator_from_bytes, estimator_to_bytes, map_from, map_to
from ._integration import Integration

if TYPE_CHECKING:
    from ..analyst import Collaboration

__all__ = ["COLLABORATION_KIND", "pack_collaboration", "unpack_collaboration"]

COLLABORATION_KIND = "datacollab.collaboration"
_MAPS, _ESTIMATOR = "maps.safetensors", "h.skops"


def pack_collaboration(collaboration: Collaboration, result: Integration) -> bytes:
    """All parties' g_k, and h once; no collaboration representation.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, where a map or the model cannot be written.
    """
    facts: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for number, party in enumerate(collaboration.parties):
        g = collaboration.party_model(party).integration_function
        map_facts, map_arrays = map_to(g)
        facts.append({"party": party, "map": map_facts})
        arrays |= {f"{number}.{name}": array for name, array in map_arrays.items()}
    members = {_MAPS: arrays_to_bytes(arrays), _ESTIMATOR: estimator_to_bytes(collaboration.estimator_)}
    return pack(COLLABORATION_KIND, {"integration": result.facts(), "maps": facts}, members)


def unpack_collaboration(data: bytes, *, where: str) -> tuple[dict[str, PartyModel], Integration]:
    """Models by party, and what is known of them.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED.
    """
    try:
        bundle = unpack(data, kind=COLLABORATION_KIND)
        arrays = bytes_to_arrays(bundle.members[_MAPS], what=_MAPS)
        estimator = estimator_from_bytes(bundle.members[_ESTIMATOR])
    except ExchangeError:
        raise ExchangeError("STATE_DAMAGED", f"{where} is damaged. Run `datacollab analyst integrate` again.") from None
    models = {}
    for number, entry in enumerate(bundle.facts["maps"]):
        party = entry["party"]
        g = map_from(party, entry["map"], _of(arrays, number))
        models[party] = PartyModel(party=party, integration_function=g, estimator=estimator)
    return models, Integration.from_facts(bundle.facts["integration"])


def _of(arrays: dict[str, NDArray[np.generic]], number: int) -> dict[str, NDArray[np.generic]]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
