"""What comes from a remote into a folder's inbox: checked, and neither joined, added nor installed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..bundle import Limits, read_envelope, sync_folder, write_atomically
from ..errors import ExchangeError
from ..exchange.project import Project
from ._addressed import Addressed, addressed
from ._base import Remote, Tell, silent
from ._entry import Entry
from ._folder import PROJECT_FILE, Folder
from ._kept import Kept
from ._kinds import AGREEMENT
from ._project_text import project_of
from ._sha256 import sha256_of

__all__ = ["Pulled", "pull"]

_PART = re.compile(r"\.[0-9a-f]{64}\.part")


@dataclass(kw_only=True)
class Pulled:
    """What became of each file.

    Attributes
    ----------
    came : dict of str to str
        Kind by path in the inbox.
    older : list of str
        SHA-256 of what was made before what the inbox has of its sort, and left out.
    withdrawn : list of str
        SHA-256 of what had come and its sender has taken back since.
    refused : dict of str to ExchangeError
        By SHA-256, or "agreement".
    """

    came: dict[str, str] = field(default_factory=dict)
    older: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    refused: dict[str, ExchangeError] = field(default_factory=dict)


def pull(
    folder: Folder,
    remote: Remote,
    kept: Kept,
    *,
    keep: Callable[[Kept], object],
    done: Pulled | None = None,
    tell: Tell = silent,
) -> tuple[Pulled, Kept]:
    """Fetch what is for this folder and did not come before; what is refused stops nothing else.

    Parameters
    ----------
    folder : Folder
    remote : Remote
    kept : Kept
        What came before.
    keep : callable
        Takes what came by now, after each file.
    done : Pulled, optional
        Filled, and returned; so a caller knows what came before an interruption.
    tell : callable
        Takes what is going on.

    Returns
    -------
    tuple of Pulled and Kept

    Raises
    ------
    ExchangeError
        REMOTE_UNREACHABLE.
    """
    done = Pulled() if done is None else done
    folder.inbox.mkdir(mode=0o700, exist_ok=True)
    tell("looking for the project file")
    try:
        folder = _pull_agreement(folder, remote, done)
    except ExchangeError as error:
        if error.code in remote.stops:
            raise
        done.refused[AGREEMENT] = error
    if folder.project is None:
        return done, kept
    listed = [each for each in remote.list(folder) if each.is_for(folder)]
    done.withdrawn += [each.sha256 for each in listed if each.withdrawn and each.sha256 in kept.fetched]
    wanted = [each for each in listed if not each.withdrawn and (each.is_current or folder.coming is not None)]
    wanted = [each for each in wanted if each.sha256 not in kept.fetched]
    if not wanted:
        _drop_parts(folder)
    for entry in wanted:
        if entry.sha256 in kept.fetched:
            continue
        try:
            _pull_bundle(folder, remote, entry, done, tell)
        except ExchangeError as error:
            if error.code in remote.stops:
                raise
            done.refused[entry.sha256] = error
        else:
            kept = kept.having(entry.sha256)
            keep(kept)
    return done, kept


def _pull_agreement(folder: Folder, remote: Remote, done: Pulled) -> Folder:
    """A new revision is put into the inbox; the folder's own counts until it is joined."""
    text = remote.agreement(folder)
    if text is None:
        return folder
    project = project_of(text, f"The project file at {remote.url}")
    place = folder.inbox / PROJECT_FILE
    there = folder.project
    if there is not None:
        _check_same_owner(there, project, remote.url)
        for version in folder.versions:
            project.check_not_older(version, folder.path)
    if there is not None and there.digest == project.digest:
        return folder
    if not place.is_file() or place.read_bytes() != text:
        write_atomically(place, text, mode=0o600)
        done.came[str(place)] = AGREEMENT
    return Folder.at(folder.path)


def _check_same_owner(there: Project, new: Project, url: str) -> None:
    if there.owner != new.owner:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"The project file at {url} is of {new.owner.fingerprint}, and this folder's project of "
            f"{there.owner.fingerprint}. Do not use it; ask the owner by another way.",
        )


def _pull_bundle(folder: Folder, remote: Remote, entry: Entry, done: Pulled, tell: Tell) -> None:
    if entry.size > Limits().total_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"A {entry.kind} at {remote.url} has {entry.size} bytes. Ask its sender, by another way."
        )
    part = folder.inbox / f".{entry.sha256}.part"
    # Of one file alone a part is kept: whatever a remote lists, the disk holds no more of what came to nothing.
    _drop_parts(folder, but=part)
    if part.exists() and part.stat().st_size > entry.size:
        part.unlink()
    part.touch(mode=0o600)
    if part.stat().st_size < entry.size:
        try:
            remote.fetch(entry, part, folder=folder, tell=tell)
        finally:
            if part.stat().st_size == 0:
                part.unlink()
    if sha256_of(part) != entry.sha256:
        part.unlink()
        raise ExchangeError(
            "HASH_MISMATCH",
            f"A {entry.kind} from {remote.url} is not the file that was listed. Run the command again; if that does "
            "not help, have it sent another way.",
        )
    try:
        place = _checked(folder, part, entry, remote.url)
    except ExchangeError:
        part.unlink()
        raise
    if place is None:
        part.unlink()
        done.older.append(entry.sha256)
        return
    part.chmod(0o600)
    os.replace(part, place)
    sync_folder(place.parent)
    done.came[str(place)] = entry.kind


def _drop_parts(folder: Folder, but: Path | None = None) -> None:
    for part in folder.inbox.glob(".*.part"):
        if part != but and _PART.fullmatch(part.name):
            part.unlink()


def _checked(folder: Folder, part: Path, entry: Entry, url: str) -> Path | None:
    """Where it is to lie; None where what lies there was made later."""
    what = f"A {entry.kind} from {url}"
    found = _addressed_file(part, folder, what)
    if found.kind.name != entry.kind:
        raise ExchangeError("WRONG_KIND", f"{what} is in truth {found.kind.name}. Do not use it; ask its sender.")
    if folder.key not in found.recipients:
        raise ExchangeError(
            "WRONG_RECIPIENT", f"{what} was made for party {found.party!r}, not for this folder. Ask its sender."
        )
    place = folder.inbox / found.file_name
    if place.is_file():
        try:
            lies = _addressed_file(place, folder, str(place))
        except ExchangeError:
            return place  # of another version of the project, or damaged: nothing to lose
        if lies.created > found.created:
            return None
    return place


def _addressed_file(path: Path, folder: Folder, what: str) -> Addressed:
    with open(path, "rb") as file:
        envelope = read_envelope(file, os.fstat(file.fileno()).st_size, what=what)
    return addressed(envelope, folder.version(envelope.facts.get("project_digest")), what)
