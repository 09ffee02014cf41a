"""What a party keeps of its share: the map f_k, and whose rows it was made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...bundle import arrays_to_bytes, bytes_to_arrays, digest
from ...errors import ExchangeError
from ...party import LocalParty, Party, local_party, party_state
from ...share import Share, decode_targets, encode_targets
from ..log import AuditLog
from ..project import Anchor, Project, anchor_from_bytes, anchor_to_bytes
from ._commit import has_forgotten
from ._files import Files, OwnFiles

__all__ = [
    "OwnRows",
    "StoredParty",
    "load_anchor",
    "load_party",
    "own_rows_from",
    "own_rows_to",
    "save_anchor",
    "state_of",
]

MEMBER = "own-rows.safetensors"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRows:
    """Rows of the project's matrix, and which of them each shared row is.  They are the table itself.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    target : ndarray of shape (n_rows,)
    order : ndarray of shape (n_shared,) or None
        Position of each shared row, in the order of the share; None where shared rows stand for none of these.
    n_shared : int
    """

    X: FloatArray
    target: NDArray[Any]
    order: NDArray[np.intp] | None
    n_shared: int

    def __repr__(self) -> str:
        return f"OwnRows({len(self.X)} rows, {self.n_shared} shared)"


def own_rows_to(own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members for the state of a party.

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, when targets are neither texts nor numbers.
    """
    target_facts, targets = encode_targets("of this folder", own.target, None)
    arrays = {"rows": np.asarray(own.X, dtype=np.float64), **targets}
    if own.order is not None:
        arrays["order"] = own.order.astype(np.int64)
    return {"target": target_facts, "n_shared": own.n_shared}, {MEMBER: arrays_to_bytes(arrays)}


def own_rows_from(facts: Any, members: Mapping[str, bytes]) -> OwnRows:
    """Return the rows in the state of a party.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED.
    """
    try:
        arrays = bytes_to_arrays(members[MEMBER], what=MEMBER)
        left = {name: array for name, array in arrays.items() if name not in ("rows", "order")}
        target, _ = decode_targets(facts["target"], left, len(arrays["rows"]), 0)
        order = arrays["order"].astype(np.intp) if "order" in arrays else None
        return OwnRows(X=arrays["rows"], target=target, order=order, n_shared=int(facts["n_shared"]))
    except (ExchangeError, KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The stored rows of this party cannot be read ({type(error).__name__}). Restore the file from a backup, "
            "or share again.",
        ) from None


ANCHOR = "anchor.bin"


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredParty:
    """What a party kept when it shared.

    Attributes
    ----------
    party : LocalParty
        Obfuscates and predicts.
    share_digest : str
        Identity of the share whose map this is.
    own : OwnRows
        The rows that were shared.
    """

    party: LocalParty
    share_digest: str
    own: OwnRows = field(repr=False)


def state_of(party: Party, share: Share, anchor: Anchor, own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the state, after a trial that the map f_k comes back to the last bit.

    Parameters
    ----------
    party : Party
        Fitted.
    share : Share
    anchor : Anchor
    own : OwnRows

    Raises
    ------
    ExchangeError
        STATE_UNSUPPORTED, when it does not.
    """
    facts, members = party_state(party)
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


def load_party(files: Files, own: OwnFiles) -> StoredParty:
    """The map of the last share.

    Raises
    ------
    ExchangeError
        NOT_SHARED, FORGOTTEN, STATE_DAMAGED, PASSPHRASE_WRONG or VERSION_MISMATCH.
    """
    if has_forgotten(files):
        raise ExchangeError(
            "FORGOTTEN",
            f"The party in {files.root} has forgotten its map f_k, which sharing and models need. Predict with what "
            "was distilled from anchor predictions; to share again, use a new folder with the same keys.",
        )
    if not files.state.exists():
        if any(entry["event"] == "share" for entry in AuditLog(files.log).entries()):
            raise ExchangeError(
                "NOT_SHARED",
                f"The log in {files.root} says that it has shared, and {files.state.name}, which holds the map f_k of "
                "that share, is not there: no model can be used without it. Restore the file from a backup; without "
                "one, run `datacollab party share` with --again, and have the analyst integrate anew and send a new "
                "model.",
            )
        raise ExchangeError(
            "NOT_SHARED", f"{files.root} holds no map f_k: nothing was shared. Run `datacollab party share` first."
        )
    bundle = own.read(files.state)
    party = local_party(bundle.facts["map"], bundle.members)
    rows = own_rows_from(bundle.facts.get("own"), bundle.members)
    return StoredParty(party=party, share_digest=str(bundle.facts["share_digest"]), own=rows)


def save_anchor(files: Files, own: OwnFiles, anchor: Anchor, project: Project) -> None:
    """Keep the anchor of a project."""
    own.write(files.anchor, {"project_digest": project.digest}, {ANCHOR: anchor_to_bytes(anchor)})


def load_anchor(files: Files, own: OwnFiles, project: Project) -> Anchor:
    """The anchor of the project.

    Raises
    ------
    ExchangeError
        ANCHOR_MISSING, PROJECT_HASH_MISMATCH, STATE_DAMAGED or PASSPHRASE_WRONG.
    """
    if not files.anchor.exists():
        raise ExchangeError(
            "ANCHOR_MISSING",
            f"{files.root} holds no anchor. Join again with the owner's file: datacollab party join "
            f"{files.root / 'project.toml'} anchor.dcanchor -C {files.root}",
        )
    bundle = own.read(files.anchor)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"The anchor in {files.root} belongs to another version of project {project.name!r}. Join again with the "
            "project file and the anchor that the owner sent together.",
        )
    return anchor_from_bytes(bundle.members[ANCHOR])
