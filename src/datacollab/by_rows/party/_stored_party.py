"""A party as it shared rows: its map f_k, the identity of the share, and its rows, in one file of its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...agreement import Anchor
from ...bundle import arrays_to_bytes, bytes_to_arrays, digest
from ...errors import ExchangeError
from ...folder.party import Folder, check_not_forgotten
from ...own import LocalParty, local_party, party_state
from ...party import Party
from ...share import Share, decode_targets, encode_targets

_OWN_ROWS = "own-rows.safetensors"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRows:
    """Rows of the project's matrix, and the position of each shared row in it, unless one is no single row of these."""

    X: FloatArray
    target: NDArray[Any]
    order: NDArray[np.intp] | None
    n_shared: int

    def __repr__(self) -> str:
        return f"OwnRows({len(self.X)} rows, {self.n_shared} shared)"


def own_rows_to(own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members for the state of a party."""
    target_facts, targets = encode_targets("of this folder", own.target, None)
    arrays = {"rows": np.asarray(own.X, dtype=np.float64), **targets}
    if own.order is not None:
        arrays["order"] = own.order.astype(np.int64)
    return {"target": target_facts, "n_shared": own.n_shared}, {_OWN_ROWS: arrays_to_bytes(arrays)}


def own_rows_from(facts: Any, members: Mapping[str, bytes]) -> OwnRows:
    """Return the rows in the state of a party, or raise STATE_DAMAGED."""
    try:
        arrays = bytes_to_arrays(members[_OWN_ROWS], what=_OWN_ROWS)
        rows = arrays.pop("rows")
        order = arrays.pop("order", None)
        target, _ = decode_targets(facts["target"], arrays, len(rows), 0)
        if order is not None:
            order = order.astype(np.intp)
        return OwnRows(X=rows, target=target, order=order, n_shared=int(facts["n_shared"]))
    except (ExchangeError, KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The stored rows of this party cannot be read ({type(error).__name__}). Restore the file from a backup, "
            "or share again.",
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredParty:
    """A party as it shared: its map, the identity of the share, and its rows."""

    party: LocalParty
    share_digest: str
    own: OwnRows = field(repr=False)


def state_of(party: Party, share: Share, anchor: Anchor, own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of the state, after a trial that the map f_k comes back to the last bit."""
    facts, members = party_state(party)
    # Through JSON and back, as it will be read.
    stored = local_party(json.loads(json.dumps(facts)), members)
    if not np.array_equal(stored.obfuscate(anchor.rows), share.anchor_representation):
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {party.name!r}: its obfuscator is not the same after it was stored, so predictions would differ. "
            "Choose another one. Nothing left the party.",
        )
    anchor_digest = digest(np.ascontiguousarray(share.anchor_representation).tobytes())
    own_facts, own_members = own_rows_to(own)
    return {"map": facts, "anchor_representation": anchor_digest, "own": own_facts}, members | own_members


def load_party(folder: Folder) -> StoredParty:
    """Return the map of the last share, or raise why there is none."""
    check_not_forgotten(folder)
    files = folder.files
    if not files.state.exists():
        if folder.log_entries("share"):
            raise ExchangeError(
                "NOT_SHARED",
                f"The log in {files.root} says that it has shared, and {files.state.name}, which holds the map f_k of "
                "that share, is not there. Restore it from a backup; without one, run `datacollab party share` with "
                "--again, and have the analyst integrate anew and send a new model.",
            )
        raise ExchangeError(
            "NOT_SHARED", f"{files.root} holds no map f_k: nothing was shared. Run `datacollab party share` first."
        )
    bundle = folder.read(files.state)
    party = local_party(bundle.facts["map"], bundle.members)
    rows = own_rows_from(bundle.facts.get("own"), bundle.members)
    return StoredParty(party=party, share_digest=str(bundle.facts["share_digest"]), own=rows)
