"""A party's folder on disk: its files, its log and its key, and what it keeps of its share."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...bundle import (
    Bundle,
    KeyPair,
    arrays_to_bytes,
    bytes_to_arrays,
    decrypt,
    digest,
    encrypt,
    is_encrypted,
    key_with_proof,
    pack,
    unpack,
    write_atomically,
)
from ...errors import AgreementError, ExchangeError
from ...party import LocalParty, Party, local_party, party_state
from ...share import Share, decode_targets, encode_targets
from ...sums import MaskKey, mask_card
from ..log import AuditLog, locked
from ..project import Anchor, Project, anchor_from_bytes, anchor_to_bytes, load_project
from ._policy import Policy, load_policy

SEALED = "sealed.bin"
"""The member of a bundle that is sealed to its recipient."""
_STATE_KIND = "datacollab.party-state"
_ANCHOR, _OWN_ROWS, _MASK_KEY = "anchor.bin", "own-rows.safetensors", "mask-key.bin"
_PIECE = 2**20


class Files:
    """Paths in the folder of a party."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.keys = root / "keys.json"
        self.public = root / "public.key"  # for the project's owner: the public key, and the card of the mask key
        self.project = root / "project.toml"
        self.policy = root / "policy.toml"
        self.log = root / "log.jsonl"
        self.outbox = root / "outbox"  # files that may be sent
        self.anchor = root / "anchor.dcstate"
        # The secret map f_k, and the own models combined with the installed one: as sensitive as the raw table.
        self.state = root / "party.dcstate"
        self.personal, self.next_personal = root / "personal.dcstate", root / ".personal.dcstate.next"
        self.next_share = root / ".share.dcshare.next"  # not in the outbox, so that nobody sends it yet
        self.model, self.next_model = root / "model.dcmodel", root / ".model.dcmodel.next"
        self.learned, self.next_distilled = root / "learned.dcstate", root / ".learned.dcstate.next"
        self.mask = root / "mask.dcstate"  # an unused mask key
        self.spent_mask = root / ".mask.dcstate.spent"  # a mask key that is being erased
        self.sum, self.next_sum = root / "sum.dcstate", root / ".sum.dcstate.next"  # the message, to be sent again

    def share(self, party: str) -> Path:
        return self.outbox / f"{party}.dcshare"

    def sum_file(self, party: str) -> Path:
        return self.outbox / f"{party}.dcsum"

    def withdrawal(self, party: str) -> Path:
        return self.outbox / f"{party}.dcwithdrawal"

    def of_the_map(self, party: str) -> list[Path]:
        """Return all files that hold f_k, results of it, or the rows themselves."""
        return [
            *(self.state, self.personal, self.next_personal, self.model, self.next_model),
            *(self.next_share, self.share(party)),
        ]


class Folder:
    """A folder with a party's key: its files, its log, and the signed files that only this party may write.

    The passphrase is that of the keys, and encrypts these files; a project may be given in place of the folder's.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None, project: Project | None = None) -> None:
        self.path = Path(path)
        self.files = Files(self.path)
        self.key = KeyPair.load(self.files.keys, passphrase)
        self.log = AuditLog(self.files.log)
        self._passphrase = passphrase
        if project is not None:
            self.project = project

    @cached_property
    def project(self) -> Project:
        """What was agreed."""
        return load_project(self.files.project)

    @cached_property
    def name(self) -> str:
        """The party's, by its key."""
        return _member(self.project, self.key)

    @property
    def outbox(self) -> Path:
        """Folder of what may be sent."""
        return self.files.outbox

    @property
    def policy(self) -> Policy:
        """The party's own rules, as they are now."""
        return load_policy(self.files.policy)

    @property
    def anchor(self) -> Anchor:
        """The anchor, which stays with the parties.

        Raises
        ------
        ExchangeError
            ANCHOR_MISSING, PROJECT_HASH_MISMATCH, STATE_DAMAGED or PASSPHRASE_WRONG.
        """
        return load_anchor(self, self.project)

    def write(self, path: Path, facts: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
        """Write a file that only its owner may read, whole or not at all."""
        data = pack(_STATE_KIND, facts, members, key=self.key)
        if self._passphrase is not None:
            data = encrypt(data, self._passphrase)
        write_atomically(path, data, mode=0o600)

    def read(self, path: Path) -> Bundle:
        """Read a file that this party wrote; raise STATE_DAMAGED, PASSPHRASE_WRONG or FORMAT_TOO_NEW."""
        data = path.read_bytes()
        try:
            if is_encrypted(data):
                if self._passphrase is None:
                    raise ExchangeError(
                        "PASSPHRASE_WRONG", f"{path} is encrypted. Give the passphrase that it was written with."
                    )
                data = decrypt(data, self._passphrase, what=str(path))
            return unpack(data, kind=_STATE_KIND, signed_by=self.key.public, what=str(path))
        except ExchangeError as error:
            if error.code in ("FORMAT_TOO_NEW", "PASSPHRASE_WRONG"):
                raise
            raise ExchangeError(
                "STATE_DAMAGED",
                f"{path} is not as this party wrote it ({error.code}). Restore it from a backup.",
            ) from None

    def public_text(self) -> str:
        """Return the text of ``public.key``: with a third line if the folder holds an unused mask key."""
        mask_key = load_mask_key(self)
        return key_with_proof(self.key) + ("" if mask_key is None else f"{mask_card(mask_key, self.key)}\n")


def _member(project: Project, key: KeyPair) -> str:
    """Return which party the key belongs to."""
    for name, public in project.parties.items():
        if public == key.public:
            return name
    if key.public == project.analyst:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key in this folder ({key.public.fingerprint}) is the analyst's in project {project.name!r}, and this "
            "is a party's step. Name the party's folder with -C.",
        )
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in this folder ({key.public.fingerprint}) is none of the parties' in project {project.name!r}. Send "
        "the owner the file public.key, and ask for a new project file.",
    )


def check_shares_rows(project: Project) -> None:
    """Refuse a step that belongs to projects that share rows."""
    if project.sharing is not None:
        raise AgreementError(
            f"Project {project.name!r} shares sums, and this step is for projects that share rows: there is no map f_k "
            "and no row that leaves. `datacollab party check` and `share` show what would leave."
        )


def save_anchor(folder: Folder, anchor: Anchor, project: Project) -> None:
    folder.write(folder.files.anchor, {"project_digest": project.digest}, {_ANCHOR: anchor_to_bytes(anchor)})


def load_anchor(folder: Folder, project: Project) -> Anchor:
    """Return the anchor of a project."""
    files = folder.files
    if not files.anchor.exists():
        raise ExchangeError(
            "ANCHOR_MISSING",
            f"{files.root} holds no anchor. Join again with the owner's file: datacollab party join {files.project} "
            f"anchor.dcanchor -C {files.root}",
        )
    bundle = folder.read(files.anchor)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"The anchor in {files.root} belongs to another version of project {project.name!r}. Join again with the "
            "project file and the anchor that the owner sent together.",
        )
    return anchor_from_bytes(bundle.members[_ANCHOR])


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRows:
    """Rows of the project's matrix, the table itself, and the position of each shared row in it.

    The order, in that of the share, is None if a shared row is no single row of these.
    """

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


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredParty:
    """What a party kept when it shared: its map, the identity of the share, and its rows."""

    party: LocalParty
    share_digest: str
    own: OwnRows = field(repr=False)


def state_of(party: Party, share: Share, anchor: Anchor, own: OwnRows) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of the state, after a trial that the map f_k comes back to the last bit."""
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


def load_party(folder: Folder) -> StoredParty:
    """Return the map of the last share, or raise why there is none."""
    check_not_forgotten(folder)
    files = folder.files
    if not files.state.exists():
        if any(entry["event"] == "share" for entry in folder.log.entries()):
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
    bundle = folder.read(files.state)
    party = local_party(bundle.facts["map"], bundle.members)
    rows = own_rows_from(bundle.facts.get("own"), bundle.members)
    return StoredParty(party=party, share_digest=str(bundle.facts["share_digest"]), own=rows)


def has_forgotten(folder: Folder) -> bool:
    """Return whether the party forgot its last map."""
    events = [entry["event"] for entry in folder.log.entries()]
    return [event for event in events if event in ("share", "forget")][-1:] == ["forget"]


def check_not_forgotten(folder: Folder) -> None:
    if has_forgotten(folder):
        raise ExchangeError(
            "FORGOTTEN",
            f"The party in {folder.path} has forgotten its map f_k, which sharing and models need. Predict with what "
            "was distilled from anchor predictions; to share again, use a new folder with the same keys.",
        )


def make_mask_key(folder: Path, *, passphrase: str | None = None) -> str:
    """Make a mask key in a party's folder, write its card as the third line of ``public.key``, and return the card.

    An unused key that is there already stays, and its card is written again.

    Parameters
    ----------
    folder : Path
        Holds the party's keys.
    passphrase : str, optional
        Of the keys; the mask key is encrypted with it, too.

    Raises
    ------
    ExchangeError
        BUSY, STATE_DAMAGED, and what reading keys may raise.
    """
    here = Folder(folder, passphrase=passphrase)
    with locked(here.path):
        mask_key = load_mask_key(here)
        if mask_key is None:
            mask_key = MaskKey.generate()
            here.write(here.files.mask, {"public": mask_key.public.hex()}, {_MASK_KEY: mask_key.secret})
        write_atomically(here.files.public, here.public_text().encode())
        return mask_card(mask_key, here.key)


def public_key_text(folder: Path, passphrase: str | None = None) -> str:
    """Return the text of ``public.key`` for a folder with keys: with a third line if it holds an unused mask key."""
    return Folder(folder, passphrase=passphrase).public_text()


def load_mask_key(folder: Folder) -> MaskKey | None:
    """Return the unused mask key of a folder, or None if there is none."""
    files = folder.files
    if not files.mask.exists():
        return None
    bundle = folder.read(files.mask)
    try:
        mask_key = MaskKey(bundle.members[_MASK_KEY])
        if mask_key.public.hex() != bundle.facts["public"]:
            raise ValueError
    except (KeyError, ValueError, AgreementError):
        raise ExchangeError(
            "STATE_DAMAGED",
            f"{files.mask} holds no mask key. Remove the file, make a new key with `datacollab keys mask`, and send "
            "public.key to the project's owner.",
        ) from None
    return mask_key


def erase_file(path: Path) -> None:
    """Write over a file and remove it; copies that a disk or file system keeps elsewhere are out of reach."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        left = path.stat().st_size
        while left > 0:
            left -= file.write(os.urandom(min(left, _PIECE)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
