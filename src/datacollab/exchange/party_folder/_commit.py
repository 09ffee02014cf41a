"""Changes of a party's folder in an order that lets a command be killed at any moment.

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

1. ``.sum.dcstate.next``: the message's bytes, signed by the party, and what belongs to them.
2. ``ledger.json``: the sum's entry.  **From here on the party has shared.**
3. ``sum.dcstate``: the file of step 1 under its final name, to be sent again.
4. ``mask.dcstate``: the mask key, renamed, written over and removed; ``public.key`` without its card.
5. ``log.jsonl``: the entry "share" with the message's digest.
6. ``outbox/NAME.dcsum``: the message; then the file of step 1 is removed.

Killed before 2, the ledger does not know the sum, and the file of step 1 is removed.  Killed after 2, steps 3 to 6
follow, with the same bytes.

*install*: ``.personal.dcstate.next``, the combined own models, and ``.model.dcmodel.next``, the model; the entry
"install" with its digest, **from which on it is installed**; then both under their final names.  Killed before the
entry, the log's last installation has another digest, and both are removed.

*distil*: ``.learned.dcstate.next``, the predictions and how to distil them; the entry "learn" with its digest, **from
which on it is distilled**; then ``learned.dcstate``.

*forget*: the entry "forget", **from which on the party has forgotten**; then every file of the map is written over and
removed, the share in the outbox among them.  The next command removes such a file that is put back.

*join* writes ``project.toml`` after everything else but the log; without it the folder was not set up.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...bundle import Bundle, sync_folder, unpack, write_atomically
from ...errors import ExchangeError
from ..ledger import Ledger
from ..log import locked as lock
from ..project import Anchor, Project, load_project
from ._folder import Folder, erase_file, has_forgotten, load_mask_key

PATIENCE = 10.0
"""Seconds for which an entry waits for another command."""
_MESSAGE = "message.bin"


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Lock the folder for this command, after `recover`."""
    try:
        with lock(folder.path), folder.log.held():
            recover(folder)
            yield
    except PermissionError as error:
        place = Path(str(error.filename)).parent
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
        if error.code != "BUSY":
            raise


def record(folder: Folder, event: str, **facts: Any) -> None:
    """Write into the log, never data; raise BUSY if another command works in the folder for ten seconds."""
    last = time.monotonic() + PATIENCE
    while True:
        try:
            with locked(folder):
                folder.log.append(event, **facts)
            return
        except ExchangeError as error:
            if error.code != "BUSY" or time.monotonic() > last:
                raise
        time.sleep(0.05)


def last_share(folder: Folder) -> dict[str, Any] | None:
    """Return the log's last entry "share" of this project, or None."""
    shares = [entry for entry in folder.log.entries() if entry["event"] == "share"]
    ours = [entry for entry in shares if entry["facts"].get("project_digest") == folder.project.digest]
    return ours[-1] if ours else None


def check_logged(folder: Folder, share_digest: str | None) -> None:
    """Raise if the log does not know a share that the analyst's model names."""
    if not any(entry["facts"].get("digest") == share_digest for entry in folder.log.entries()):
        raise ExchangeError(
            "LOG_BROKEN",
            f"{folder.log.path} does not know of the share that the model was made of: entries are missing. Keep the "
            "file, and compare it with a copy.",
        )


def check_unchanged(folder: Folder, anchor: Anchor) -> None:
    """Raise if project or anchor have changed since the command read them; the folder must be locked."""
    project = folder.project
    if load_project(folder.files.project).digest != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{folder.path} was joined to another project, or another version of it, while this command ran. Nothing "
            "left; run it again.",
        )
    if folder.anchor.commitment(project) != anchor.commitment(project):
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


def commit_forgetting(folder: Folder, share_digest: str) -> None:
    """Destroy the map of a share, and all that it left in the folder."""
    folder.log.append("forget", share=share_digest)
    _destroy(folder)


def commit_sum(folder: Folder, ledger: Ledger, data: bytes, facts: Mapping[str, Any], rows: Any, void: Any) -> Path:
    """Release the file of a message of sums; the folder must be locked.  If the ledger refuses, nothing happened.

    The facts beside it have "party", "context", "mask_public", "ledger", and "entry", the log's.
    """
    files, project = folder.files, folder.project
    folder.write(files.next_sum, facts, {_MESSAGE: data})
    try:
        ledger.enter(
            rows,
            context=facts["context"],
            purpose=f"{project.name}, run {project.sharing.run if project.sharing else 1}",
            statistic=facts["entry"]["statistic"],
            noise=facts["entry"]["noise"],
            agreement=project.digest,
            parties={party: key.text for party, key in project.parties.items()},
            void=void,
        )
    except ExchangeError:
        files.next_sum.unlink()
        raise
    return _finish_sum(folder)


def kept_sum(folder: Folder, project: Project) -> Bundle | None:
    """Return what is kept of the message that was released in a project, or None."""
    if not folder.files.sum.exists():
        return None
    bundle = folder.read(folder.files.sum)
    return bundle if bundle.facts.get("project_digest") == project.digest else None


def send_again(folder: Folder) -> Path | None:
    """Put a released message into the outbox once more, the same bytes; return its path, or None without one."""
    kept = kept_sum(folder, folder.project)
    if kept is None:
        return None
    path = folder.files.sum_file(kept.facts["party"])
    if not path.exists() or path.read_bytes() != kept.members[_MESSAGE]:
        open_outbox(folder, path)
        folder.log.append("share-again", digest=kept.facts["entry"]["digest"])
        write_atomically(path, kept.members[_MESSAGE], mode=0o600)
    return path


def recover(folder: Folder) -> None:
    """Finish or undo what a killed command left; the folder must be locked."""
    files = folder.files
    _recover_sum(folder)
    if files.next_distilled.exists():
        if _last_is(folder, "learn", state=folder.read(files.next_distilled).digest):
            _move(files.next_distilled, files.learned)
        else:
            files.next_distilled.unlink()
    if has_forgotten(folder):
        _destroy(folder)
        return
    if files.next_share.exists():
        facts = folder.read(files.state).facts if files.state.exists() else {}
        if _digest(files.next_share) == facts.get("share_digest"):
            _finish_share(folder, facts)
        else:
            files.next_share.unlink()
    elif files.state.exists() and not any(entry["event"] == "share" for entry in folder.log.entries()):
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
        return
    facts = folder.read(files.next_sum).facts
    kept = folder.read(files.sum).facts if files.sum.exists() else {}
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
        files.next_sum.unlink()


def _finish_sum(folder: Folder) -> Path:
    """Do steps 3 to 6, or what is left of them."""
    files = folder.files
    bundle = folder.read(files.next_sum)
    facts = bundle.facts
    write_atomically(files.sum, files.next_sum.read_bytes(), mode=0o600)
    mask_key = load_mask_key(folder)
    if mask_key is not None and mask_key.public.hex() == facts["mask_public"]:
        mask_key.erase()
        os.replace(files.mask, files.spent_mask)
        sync_folder(files.root)
    erase_file(files.spent_mask)
    if files.public.exists() and not files.mask.exists():
        write_atomically(files.public, folder.public_text().encode())
    if facts["entry"]["digest"] not in (each["facts"].get("digest") for each in folder.log.entries()):
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


def _destroy(folder: Folder) -> None:
    for path in folder.files.of_the_map(folder.name):
        erase_file(path)


def _record_share(folder: Folder, facts: Mapping[str, Any]) -> None:
    known = (each["facts"].get("digest") for each in folder.log.entries() if each["event"] == "share")
    if facts["share_digest"] not in known:
        folder.log.append("share", **facts["entry"])


def _last_is(folder: Folder, event: str, **fact: Any) -> bool:
    """Return whether the log's last entry of a kind has a fact."""
    entries = [each["facts"] for each in folder.log.entries() if each["event"] == event]
    return bool(entries) and fact.items() <= entries[-1].items()


def _digest(path: Path) -> str | None:
    """Return the identity of a bundle; None if it is none."""
    try:
        return unpack(path).digest
    except ExchangeError:
        return None


def _move(source: Path, target: Path) -> None:
    os.replace(source, target)
    sync_folder(target.parent)
