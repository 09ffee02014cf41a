"""A party's folder on disk: its files, log and key, and changes that let a command be killed at any moment.

`recover`, which every command runs first, finishes or removes what a killed command left.  Each step is a whole file
that replaces another, or one line at the end of the log.

*share*

1. ``.share.dcshare.next``: the signed share, beside the secrets, where nobody looks for files to send.
2. ``party.dcstate``: the map f_k together with the digest of that share.  **From here on the party has shared.**
3. ``log.jsonl``: the entry "share" with the digest.
4. ``outbox/NAME.dcshare``: a copy of the file of step 1, which is then removed.

Killed before 2, the file of step 1 has another digest than the state, and is removed.  Killed after 2, it has the same,
and steps 3 and 4 follow.  So every share in the outbox has its map and its entry in the log.  The outbox may be on
another file system, so nothing is renamed into it.  If the log was lost, its entry "share" is written again from the
state.

*share* of sums

1. ``.own.dcstate.next``: the party's own model, of the same rows, or why there is none; then ``.sum.dcstate.next``: the
   message's bytes, signed by the party, and what belongs to them.
2. ``ledger.json``: the sum's entry.  **From here on the party has shared.**
3. ``sum.dcstate`` and ``own.dcstate``: the files of step 1 under their final names, the first to be sent again.
4. ``mask.dcstate``: the mask key is erased; ``public.key`` without its card.
5. ``log.jsonl``: the entry "share" with the message's digest.
6. ``outbox/NAME.dcsum``: the message; then ``.sum.dcstate.next`` is removed.

Killed before 2, the ledger does not know the sum, and the files of step 1 are removed.  Killed after 2, steps 3 to 6
follow, with the same bytes.  If there is no own model, a later ``share`` makes one and nothing else.

*install*: ``.personal.dcstate.next``, the combined own models, and ``.model.dcmodel.next``, the model; the entry
"install" with its digest, **from which on it is installed**; then both under their final names.  Killed before the
entry, the log's last installation has another digest, and both are removed.

*distil*: ``.learned.dcstate.next``, the predictions and how to distil them; the entry "learn" with its digest, **from
which on it is distilled**; then ``learned.dcstate``.

*forget*: the entry "forget", **from which on the party has forgotten**; then every file of the map is erased, the share
in the outbox among them.  The next command removes such a file that is put back.

*withdraw*: the run is closed in ``ledger.json``, **from which on the party has left**; then the message in the outbox,
the mask key and the own model are erased; the entry "withdraw"; last the signed withdrawal, without which the others do
not go on.  Killed in between, the command is to be run again.

To erase is to rename to ``.NAME.spent``, to write over, and to remove, so that no file is ever half written over under
its own name.

*join* writes ``project.toml`` after everything else but the log; without it the folder was not set up.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ...agreement import Anchor, Project, anchor_from_bytes, load_project
from ...bundle import (
    Bundle,
    KeyPair,
    decrypt,
    encrypt,
    is_encrypted,
    key_with_proof,
    pack,
    sync_folder,
    unpack,
    write_atomically,
)
from ...errors import AgreementError, ExchangeError
from ...sums import MaskKey, mask_card
from ...table import EncodedTable, encode_table, read_table, table_source
from ..ledger import Ledger, LedgerEntry
from ..log import AuditLog
from ..log import locked as lock
from ._policy import Policy, load_policy

PATIENCE = 10.0
"""Seconds for which an entry waits for another command."""
SEALED = "sealed.bin"
"""The member of a bundle that is sealed to its recipient."""
_STATE_KIND = "datacollab.party-state"
ANCHOR = "anchor.bin"
_MASK_KEY = "mask-key.bin"
_MESSAGE = "message.bin"
_PIECE = 2**20
"""Bytes of a file that are written over at a time."""
_SPENT = ".spent"


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
        self.personal = root / "personal.dcstate"
        self.next_personal = root / ".personal.dcstate.next"
        self.next_share = root / ".share.dcshare.next"  # not in the outbox, so that nobody sends it yet
        self.model = root / "model.dcmodel"
        self.next_model = root / ".model.dcmodel.next"
        self.learned = root / "learned.dcstate"
        self.next_distilled = root / ".learned.dcstate.next"
        self.mask = root / "mask.dcstate"  # an unused mask key
        self.sum = root / "sum.dcstate"  # the message, to be sent again
        self.next_sum = root / ".sum.dcstate.next"
        # The own model beside the common one of sums, as sensitive as the table; or the reason why there is none.
        self.own = root / "own.dcstate"
        self.next_own = root / ".own.dcstate.next"
        self.heard = root / "heard.dcstate"  # whose fingerprints other institutions read out

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
            *(self.next_share, self.share(party), self.own, self.next_own),
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
        """The project that was agreed on."""
        return load_project(self.files.project)

    @cached_property
    def name(self) -> str:
        """The party's, by its key."""
        for name, public in self.project.parties.items():
            if public == self.key.public:
                return name
        whose = "none of the parties'"
        way_on = "Send the owner the file public.key, and ask for a new project file"
        if self.key.public == self.project.analyst:
            whose = "the analyst's"
            way_on = "This is a party's step: name the party's folder with -C"
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key in this folder ({self.key.public.fingerprint}) is {whose} in project {self.project.name!r}. "
            f"{way_on}.",
        )

    @property
    def outbox(self) -> Path:
        """The folder of files that may be sent."""
        return self.files.outbox

    @property
    def policy(self) -> Policy:
        """The party's own rules, as they are now."""
        return load_policy(self.files.policy)

    @property
    def anchor(self) -> Anchor:
        """The anchor, which stays with the parties."""
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
            # These are no damage: another version, or the right passphrase, reads the file.
            if error.code in ("FORMAT_TOO_NEW", "PASSPHRASE_WRONG"):
                raise
            raise ExchangeError(
                "STATE_DAMAGED", f"{path} is not as this party wrote it ({error.code}). Restore it from a backup."
            ) from None

    def public_text(self) -> str:
        """Return the text of ``public.key``: with a third line if the folder holds an unused mask key."""
        text = key_with_proof(self.key)
        if (mask_key := load_mask_key(self)) is not None:
            text += f"{mask_card(mask_key, self.key)}\n"
        return text

    def log_entries(self, *events: str) -> list[dict[str, Any]]:
        """Return the log's entries of these kinds, or all."""
        return [entry for entry in self.log.entries() if not events or entry["event"] in events]


def encode(folder: Folder, table: Any, *, where: str | None = None) -> EncodedTable:
    """Encode a table with targets, as `PartyFolder.prepare` takes it, as the project's matrix; see `where` there."""
    source = table_source(table, where or "the table")
    return encode_table(folder.project, read_table(source, schema=folder.project), where=where or str(source))


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
    # Another version of the project may have another matrix, and its anchor other columns.
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"The anchor in {files.root} belongs to another version of project {project.name!r}. Join again with the "
            "project file and the anchor that the owner sent together.",
        )
    return anchor_from_bytes(bundle.members[ANCHOR])


def has_forgotten(folder: Folder) -> bool:
    """Return whether the party forgot its last map."""
    return [entry["event"] for entry in folder.log_entries("share", "forget")][-1:] == ["forget"]


def check_not_forgotten(folder: Folder) -> None:
    if has_forgotten(folder):
        raise ExchangeError(
            "FORGOTTEN",
            f"The party in {folder.path} has forgotten its map f_k, which sharing and models need. Predict with what "
            "was distilled from anchor predictions; to share again, use a new folder with the same keys.",
        )


def make_mask_key(folder: Path, *, passphrase: str | None = None) -> str:
    """Make a mask key in a party's folder, write its card as the third line of ``public.key``, and return the card.

    An unused key that is there already stays.  The passphrase is that of the folder's keys, and encrypts this one, too.
    """
    here = Folder(folder, passphrase=passphrase)
    # An interrupted share may have used up the key that is still there.
    with locked(here):
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
    try:
        bundle = folder.read(files.mask)
        mask_key = MaskKey(bundle.members[_MASK_KEY])
        if mask_key.public.hex() != bundle.facts["public"]:
            raise ValueError
    except (KeyError, ValueError, AgreementError, ExchangeError) as error:
        if isinstance(error, ExchangeError) and error.code != "STATE_DAMAGED":
            raise
        # Never from a backup: a key that was used once would hide two messages.
        raise ExchangeError(
            "STATE_DAMAGED",
            f"{files.mask} holds no mask key. Remove the file, make a new key with `datacollab keys mask`, and send "
            "public.key to the project's owner.",
        ) from None
    return mask_key


def erase_file(path: Path) -> None:
    """Write over a file and remove it; copies that a disk or file system keeps elsewhere are out of reach.

    The folder must be locked: the next command looks for what a killed one left under the name ``.NAME.spent``.
    """
    if not path.exists():
        return
    if path.suffix != _SPENT:
        spent = path.with_name(f".{path.name.removeprefix('.')}{_SPENT}")
        _move(path, spent)
        path = spent
    # A file system may store zeros as a hole, and random bytes not; they are on the disk before the name goes.
    with open(path, "r+b") as file:
        left = path.stat().st_size
        while left > 0:
            left -= file.write(os.urandom(min(left, _PIECE)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


@contextmanager
def locked(folder: Folder, *, patience: float = 0.0) -> Iterator[None]:
    """Lock the folder for this command, after `recover`."""
    try:
        with lock(folder.path, patience=patience), folder.log.held():
            recover(folder)
            yield
    except PermissionError as error:
        place = Path(str(error.filename)).parent
        # Of other places, as the ledger's folder, the error's own words say more.
        if not place.is_relative_to(folder.path):
            raise
        raise PermissionError(
            f"{place} cannot be written to, or a file in it is closed to you. Run as its owner, or make it yours: "
            f"chmod -R u+rwX {folder.path}. Then run the command again."
        ) from None


def settle(folder: Folder) -> None:
    """Put in order what a killed command left, unless another command works here."""
    try:
        with locked(folder):
            pass
    except ExchangeError as error:
        # The command at work recovers the folder itself; reading goes on beside it.
        if error.code != "BUSY":
            raise


def record(folder: Folder, event: str, **facts: Any) -> None:
    """Write into the log, never data; raise BUSY if another command works in the folder for ten seconds."""
    with locked(folder, patience=PATIENCE):
        folder.log.append(event, **facts)


def last_share(folder: Folder) -> dict[str, Any] | None:
    """Return the log's last entry "share" of this project, or None."""
    agreed = folder.project.digest
    ours = [entry for entry in folder.log_entries("share") if entry["facts"].get("project_digest") == agreed]
    if not ours:
        return None
    return ours[-1]


def digest_of(share: dict[str, Any] | None) -> str | None:
    """Return the identity in a log's entry "share", or None without one."""
    if share is None:
        return None
    return str(share["facts"]["digest"])


def check_logged(folder: Folder, share_digest: str | None) -> None:
    """Raise if the log does not know a share that the analyst's model names."""
    if share_digest not in _digests_of(folder.log_entries()):
        raise ExchangeError(
            "LOG_BROKEN",
            f"{folder.log.path} does not know of the share that the model was made of: entries are missing. Keep the "
            "file, and compare it with a copy.",
        )


def _digests_of(entries: list[dict[str, Any]]) -> list[Any]:
    return [entry["facts"].get("digest") for entry in entries]


def check_unchanged(folder: Folder, anchor: Anchor | None) -> None:
    """Raise if project or anchor have changed since the command read them; the folder must be locked."""
    project = folder.project
    if load_project(folder.files.project).digest != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{folder.path} was joined to another project, or another version of it, while this command ran. Nothing "
            "left; run it again.",
        )
    if anchor is not None and folder.anchor.commitment(project) != anchor.commitment(project):
        raise ExchangeError(
            "BUSY", f"Another command opened another anchor in {folder.path} while this one ran. Run this one again."
        )


def open_outbox(folder: Folder, path: Path) -> None:
    """Make the outbox, and raise PermissionError if `path` cannot be written there: before the party has shared."""
    outbox = folder.files.outbox
    outbox.mkdir(mode=0o700, exist_ok=True)  # an empty one may have been tidied away
    if not os.access(outbox, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def commit_share(folder: Folder, share: bytes, *, facts: Mapping[str, Any], members: Mapping[str, bytes]) -> Path:
    """Keep the map f_k, and put the share into the outbox.

    In the state's facts "share_digest" is the share's, and "entry" is the log's entry of it.
    """
    open_outbox(folder, folder.files.share(folder.name))
    write_atomically(folder.files.next_share, share, mode=0o600)
    folder.write(folder.files.state, facts, members)
    return _finish_share(folder, facts)


def commit_model(
    folder: Folder, model: bytes, entry: Mapping[str, Any], *, facts: Mapping[str, Any], members: Mapping[str, bytes]
) -> None:
    """Install a model, and the own models combined with it; `entry` is the log's."""
    folder.write(folder.files.next_personal, facts, members)
    write_atomically(folder.files.next_model, model, mode=0o600)
    folder.log.append("install", **entry)
    _finish_model(folder)


def commit_distilled(
    folder: Folder, entry: Mapping[str, Any], *, facts: Mapping[str, Any], members: Mapping[str, bytes]
) -> None:
    """Keep answers and how to learn from them; `entry` is the log's."""
    folder.write(folder.files.next_distilled, facts, members)
    folder.log.append("learn", **entry, state=folder.read(folder.files.next_distilled).digest)
    _move(folder.files.next_distilled, folder.files.learned)


def commit_sum(
    folder: Folder,
    ledger: Ledger,
    data: bytes,
    facts: Mapping[str, Any],
    total: LedgerEntry,
    fewest: int,
    void: Collection[str],
    own: tuple[Mapping[str, Any], Mapping[str, bytes]] | None,
) -> Path:
    """Release the file of a message of sums; the folder must be locked.  If the ledger refuses, nothing happened.

    The facts beside it have "party", "context", "ledger", "entry", the log's, and "mask_public", the mask key that is
    used up: empty if a further round needs it.  `own` are facts and members of the own model's file, if the project has
    one.
    """
    files = folder.files
    if own is not None:
        folder.write(files.next_own, *own)
    folder.write(files.next_sum, facts, {_MESSAGE: data})
    try:
        ledger.enter(total, fewest=fewest, void=void)
    except ExchangeError:
        # It refused before it wrote anything: the party has not shared.
        _undo_sum(files)
        raise
    return _finish_sum(folder)


def read_sum(folder: Folder, project: Project) -> Bundle | None:
    """Return the message that was released in a project, with its facts, or None."""
    if not folder.files.sum.exists():
        return None
    bundle = folder.read(folder.files.sum)
    # A folder whose project was revised still has the message of the run before.
    if bundle.facts.get("project_digest") != project.digest:
        return None
    return bundle


def send_again(folder: Folder) -> Path | None:
    """Put a released message into the outbox once more, the same bytes; return its path, or None without one."""
    kept = read_sum(folder, folder.project)
    if kept is None:
        return None
    path = folder.files.sum_file(kept.facts["party"])
    # A file that somebody changed, or put there from elsewhere, is replaced.
    if not path.exists() or path.read_bytes() != kept.members[_MESSAGE]:
        open_outbox(folder, path)
        folder.log.append("share-again", digest=kept.facts["entry"]["digest"])
        write_atomically(path, kept.members[_MESSAGE], mode=0o600)
    return path


def recover(folder: Folder) -> None:
    """Finish or undo what a killed command left; the folder must be locked."""
    files = folder.files
    for spent in [*files.root.glob(f".*{_SPENT}"), *files.outbox.glob(f".*{_SPENT}")]:
        # Renamed, and perhaps half written over: there is no way back.
        erase_file(spent)
    _recover_sum(folder)
    if files.next_distilled.exists():
        if _last_is(folder, "learn", state=folder.read(files.next_distilled).digest):
            _move(files.next_distilled, files.learned)
        else:
            files.next_distilled.unlink()
    if has_forgotten(folder):
        destroy_map(folder)
        return
    if files.next_share.exists():
        facts = _facts_of(folder, files.state)
        if _digest(files.next_share) == facts.get("share_digest"):
            _finish_share(folder, facts)
        else:
            files.next_share.unlink()
    elif files.state.exists() and not folder.log_entries("share"):
        # The log was lost; that the party has shared must not be.
        _record_share(folder, folder.read(files.state).facts)
    if files.next_model.exists():
        if _last_is(folder, "install", digest=_digest(files.next_model)):
            _finish_model(folder)
        else:
            files.next_model.unlink()
    files.next_personal.unlink(missing_ok=True)


def _recover_sum(folder: Folder) -> None:
    files = folder.files
    if not files.next_sum.exists():
        erase_file(files.next_own)
        return
    facts = folder.read(files.next_sum).facts
    kept = _facts_of(folder, files.sum)
    ledger = Path(facts["ledger"])
    if not ledger.parent.is_dir():
        raise ExchangeError(
            "STATE_DAMAGED",
            f"A share was interrupted, and the folder of its ledger, {ledger.parent}, is not there: nobody can say "
            "whether it was made. Bring the folder back, then run the command again.",
        )
    # The ledger is read without its key: entries are known by their context.
    entries = Ledger(ledger, key=bytes(32)).entries
    if kept.get("context") == facts["context"] or any(entry.context == facts["context"] for entry in entries):
        _finish_sum(folder)
    else:
        _undo_sum(files)


def _facts_of(folder: Folder, path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    return folder.read(path).facts


def _undo_sum(files: Files) -> None:
    files.next_sum.unlink()
    erase_file(files.next_own)


def _finish_sum(folder: Folder) -> Path:
    """Do steps 3 to 6, or what is left of them."""
    files = folder.files
    bundle = folder.read(files.next_sum)
    facts = bundle.facts
    write_atomically(files.sum, files.next_sum.read_bytes(), mode=0o600)
    if files.next_own.exists():
        _move(files.next_own, files.own)
    mask_key = load_mask_key(folder)
    if mask_key is not None and mask_key.public.hex() == facts["mask_public"]:
        mask_key.erase()
        erase_file(files.mask)
    if files.public.exists() and not files.mask.exists():
        write_atomically(files.public, folder.public_text().encode())
    if facts["entry"]["digest"] not in _digests_of(folder.log_entries()):
        folder.log.append("share", **facts["entry"])
    path = files.sum_file(facts["party"])
    open_outbox(folder, path)
    write_atomically(path, bundle.members[_MESSAGE], mode=0o600)
    files.next_sum.unlink()
    return path


def _finish_share(folder: Folder, facts: Mapping[str, Any]) -> Path:
    _record_share(folder, facts)
    path = folder.files.share(folder.name)
    open_outbox(folder, path)
    write_atomically(path, folder.files.next_share.read_bytes(), mode=0o600)
    folder.files.next_share.unlink()
    return path


def _finish_model(folder: Folder) -> None:
    files = folder.files
    # The model last: as long as it waits, a kill in between is noticed.
    if files.next_personal.exists():
        _move(files.next_personal, files.personal)
    _move(files.next_model, files.model)


def destroy_map(folder: Folder) -> None:
    """Destroy all that a share left in the folder, once the log says that it is forgotten."""
    for path in folder.files.of_the_map(folder.name):
        erase_file(path)


def _record_share(folder: Folder, facts: Mapping[str, Any]) -> None:
    if facts["share_digest"] not in _digests_of(folder.log_entries("share")):
        folder.log.append("share", **facts["entry"])


def _last_is(folder: Folder, event: str, **fact: Any) -> bool:
    """Return whether the log's last entry of a kind has a fact."""
    entries = folder.log_entries(event)
    return bool(entries) and fact.items() <= entries[-1]["facts"].items()


def _digest(path: Path) -> str | None:
    """Return the identity of a bundle; None if it is none."""
    try:
        return unpack(path).digest
    except ExchangeError:
        return None


def _move(source: Path, target: Path) -> None:
    os.replace(source, target)
    sync_folder(target.parent)
