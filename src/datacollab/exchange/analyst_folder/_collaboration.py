"""A fitted collaboration on the analyst's disk, between integration and export."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import require
from ...bundle import Bundle, arrays_to_bytes, bytes_to_arrays, pack, unpack
from ...errors import ExchangeError
from ...model import PartyModel, head_from, head_to, map_from, map_to
from ...survival import SurvivalModel
from ._integration import Integration

if TYPE_CHECKING:
    from ...analyst import Collaboration

__all__ = ["COLLABORATION_KIND", "pack_collaboration", "unpack_collaboration"]

COLLABORATION_KIND = "datacollab.collaboration"
_MAPS, _LEFT_OUT, _WITHOUT = "maps.safetensors", "left-out.safetensors", "without.bin"
_OWN = "own.bin"
_HEAD = "h"
_OBJECT = f"{_HEAD}.skops"
_LIBRARIES = ("numpy", "scipy", "sklearn")
"""Whose types may be in an estimator that is no plain numbers."""


def pack_collaboration(collaboration: Collaboration, result: Integration) -> bytes:
    """All parties' g_k, h once, and for each party what its own model says besides; no collaboration representation.

    An h that no numbers describe is kept as an object, for this file is its writer's own: the analyst can send
    answers of it.

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
        head, members = _written_head(collaboration.estimator_)
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
    """An estimator as numbers, or where none describe it as skops writes it; of a search, the best estimator."""
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
    """The estimator that `_written_head` wrote, in this program and on this disk."""
    if facts["form"] != "object":
        return head_from(facts, members, _HEAD, n_components)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require("skops.io", "exchange").loads(members[_OBJECT], trusted=_trusted(members[_OBJECT]))


def _trusted(data: bytes) -> list[str]:
    """Types that skops does not know by itself, all of them of `_LIBRARIES`."""
    types: list[str] = require("skops.io", "exchange").get_untrusted_types(data=data)
    if any(name.partition(".")[0] not in _LIBRARIES for name in types):
        raise ValueError("objects of other libraries than scikit-learn, SciPy and NumPy")
    return types


def _of(arrays: Mapping[str, NDArray[Any]], number: int) -> dict[str, NDArray[Any]]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
