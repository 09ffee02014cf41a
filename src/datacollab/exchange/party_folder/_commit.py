"""Changes of a party's folder in an order that lets a command be killed at any moment.

Whatever is still missing after a kill is done, or what is superfluous removed, by `recover`, which every command runs
first.  All steps are whole files that take another's place, or one line at the end of the log.

*share*

1. ``.share.dcshare.next``: the signed share, beside the secrets, where nobody looks for files to send.
2. ``party.dcstate``: the map f_k together with the digest of that share.  **From here on the party has shared.**
3. ``log.jsonl``: the entry "share" with the digest.
4. ``outbox/NAME.dcshare``: a copy of the file of step 1, which is then removed.

Killed before 2, the file of step 1 has another digest than the state, and is removed: the old state.  Killed after 2,
it has the same, and steps 3 and 4 follow: the new state.  So no share is ever in the outbox, under any name, whose map
was not kept or which the log does not know; whoever sends on what appears there never sends one that the party does
not know of.  The outbox may be on another file system, so nothing is renamed into it.  Where the log was lost, its
entry "share" is written again from the state.

*install*

1. ``.personal.dcstate.next``: what the party has alone, pooled with the model.
2. ``.model.dcmodel.next``: the model, checked.
3. ``log.jsonl``: the entry "install" with its digest.  **From here on it is installed.**
4. ``personal.dcstate``, then ``model.dcmodel``: the files of steps 1 and 2 under their final names.

Killed before 3, the log's last installation has another digest, and the files of steps 1 and 2 are removed.

*learn*

1. ``.learned.dcstate.next``: the answers, and how to learn from them.
2. ``log.jsonl``: the entry "learn" with the digest of that file.  **From here on it is learned.**
3. ``learned.dcstate``: the file of step 1 under its final name.

*forget*

1. ``log.jsonl``: the entry "forget".  **From here on the party has forgotten.**
2. Every file of the map is written over and removed, the share in the outbox among them.

Killed before 1, nothing happened.  Killed after it, or where somebody puts such a file back, the next command removes
what is there.

*join* writes ``project.toml`` after everything else but the log; without it the folder was not set up.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...bundle import unpack, write_atomically
from ...errors import ExchangeError
from ..log import AuditLog
from ._files import Files, OwnFiles
from ._mask_key import erase_file
from ._outbox import open_outbox
from ._sums_commit import recover_sum

__all__ = [
    "commit_distilled",
    "commit_forgetting",
    "commit_model",
    "commit_share",
    "has_forgotten",
    "recover",
]


def commit_share(
    files: Files,
    own: OwnFiles,
    party: str,
    share: bytes,
    *,
    facts: Mapping[str, Any],
    members: Mapping[str, bytes],
) -> Path:
    """Keep the map f_k and put the share into the outbox.

    Parameters
    ----------
    files : Files
    own : OwnFiles
    party : str
    share : bytes
        Of the `.dcshare` file.
    facts : mapping of str to object
        Of the state; "share_digest" is the share's, and "entry" what the log says of it.
    members : mapping of str to bytes
        Of the state.

    Returns
    -------
    Path
        The share in the outbox.
    """
    open_outbox(files, files.share(party))
    write_atomically(files.next_share, share, mode=0o600)
    own.write(files.state, facts, members)
    return _finish_share(files, party, facts)


def commit_model(
    files: Files,
    own: OwnFiles,
    model: bytes,
    entry: Mapping[str, Any],
    *,
    facts: Mapping[str, Any],
    members: Mapping[str, bytes],
) -> None:
    """Install a model.

    Parameters
    ----------
    files : Files
    own : OwnFiles
    model : bytes
        Of the `.dcmodel` file.
    facts, members
        Of what the party pooled with it.
    entry : mapping of str to object
        What the log says of it, with its "digest".
    """
    own.write(files.next_personal, facts, members)
    write_atomically(files.next_model, model, mode=0o600)
    AuditLog(files.log).append("install", **entry)
    _finish_model(files)


def commit_distilled(
    files: Files, own: OwnFiles, entry: Mapping[str, Any], *, facts: Mapping[str, Any], members: Mapping[str, bytes]
) -> None:
    """Keep answers and what was learned from them.

    Parameters
    ----------
    files : Files
    own : OwnFiles
    entry : mapping of str to object
        What the log says of it.
    facts, members
        Of the file.
    """
    own.write(files.next_distilled, facts, members)
    AuditLog(files.log).append("learn", **entry, state=own.read(files.next_distilled).digest)
    _move(files.next_distilled, files.learned)


def commit_forgetting(files: Files, party: str, share_digest: str) -> None:
    """Destroy the map f_k, and all that it left in the folder.

    Parameters
    ----------
    files : Files
    party : str
    share_digest : str
        Identity of the share whose map it is.
    """
    AuditLog(files.log).append("forget", share=share_digest)
    _destroy(files, party)


def has_forgotten(files: Files) -> bool:
    """Whether the last thing done with a map was to forget it."""
    events = [entry["event"] for entry in AuditLog(files.log).entries()]
    return [event for event in events if event in ("share", "forget")][-1:] == ["forget"]


def recover(files: Files, own: OwnFiles, party: str) -> None:
    """Finish or undo what a killed command left; the folder must be locked."""
    recover_sum(files, own)
    if files.next_distilled.exists():
        _finish_distilled(files, own)
    if has_forgotten(files):
        _destroy(files, party)
        return
    if files.next_share.exists():
        facts = own.read(files.state).facts if files.state.exists() else {}
        if _digest(files.next_share) == facts.get("share_digest"):
            _finish_share(files, party, facts)
        else:
            files.next_share.unlink()
    elif files.state.exists() and not any(entry["event"] == "share" for entry in AuditLog(files.log).entries()):
        # The log was lost; that the party has shared must not be.
        _record_share(files, own.read(files.state).facts)
    if files.next_model.exists():
        installed = [
            entry["facts"].get("digest") for entry in AuditLog(files.log).entries() if entry["event"] == "install"
        ]
        if installed[-1:] == [_digest(files.next_model)]:
            _finish_model(files)
        else:
            files.next_model.unlink()
    files.next_personal.unlink(missing_ok=True)


def _finish_share(files: Files, party: str, facts: Mapping[str, Any]) -> Path:
    _record_share(files, facts)
    open_outbox(files, files.share(party))
    write_atomically(files.share(party), files.next_share.read_bytes(), mode=0o600)
    files.next_share.unlink()
    return files.share(party)


def _finish_model(files: Files) -> None:
    # The model last: as long as it waits, a kill in between is noticed.
    if files.next_personal.exists():
        _move(files.next_personal, files.personal)
    _move(files.next_model, files.model)


def _finish_distilled(files: Files, own: OwnFiles) -> None:
    learned = [entry["facts"].get("state") for entry in AuditLog(files.log).entries() if entry["event"] == "learn"]
    if learned[-1:] == [own.read(files.next_distilled).digest]:
        _move(files.next_distilled, files.learned)
    else:
        files.next_distilled.unlink()


def _destroy(files: Files, party: str) -> None:
    """Write over what is there and remove it."""
    for path in files.of_the_map(party):
        erase_file(path)


def _record_share(files: Files, facts: Mapping[str, Any]) -> None:
    log, entry = AuditLog(files.log), facts["entry"]
    known = (each["facts"].get("digest") for each in log.entries() if each["event"] == "share")
    if facts["share_digest"] not in known:
        log.append("share", **entry)


def _digest(path: Path) -> str | None:
    """Identity of a bundle; None where it is none."""
    try:
        return unpack(path).digest
    except ExchangeError:
        return None


def _move(source: Path, target: Path) -> None:
    os.replace(source, target)
    if os.name != "posix":
        return
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
