"""Push, pull and withdraw: files between a folder and a remote."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..agreement import read_project
from ..bundle import Limits, read_envelope, sync_folder, write_atomically
from ..errors import ExchangeError
from ._parcels import (
    AGREEMENT,
    KINDS,
    PROJECT_FILE,
    Addressed,
    Entry,
    Kept,
    MemberFolder,
    Remote,
    Tell,
    parcel_of,
    project_of,
    read_address,
    silent,
)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file that was just written, after the disk has it."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


_SUFFIXES = {kind.suffix for kind in KINDS.values()}
_OUTBOX = "outbox"


@dataclass(kw_only=True)
class Pushed:
    """The outcome of a push: kinds of sent files by path, paths by outcome, and errors by path.

    ``there`` were there already, ``withdrawn`` were taken back there and are not sent once more, and ``unsealed`` are
    those that the operator of the remote can read.
    """

    sent: dict[str, str] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)
    refused: dict[str, ExchangeError] = field(default_factory=dict)


def push(
    folder: MemberFolder,
    remote: Remote,
    files: Sequence[Path] = (),
    *,
    withdrawn: Collection[str] = (),
    has: Callable[[str], object] = silent,
    tell: Tell = silent,
) -> Pushed:
    """Send files that the remote lacks, or the named ones; a file that is refused stops none of the others.

    ``withdrawn`` are files, by SHA-256, that were taken back: if the remote does not say so itself, they are sent
    again only if named.  ``has`` takes the SHA-256 of each bundle as soon as the remote says that it has it, since
    later steps may be interrupted; ``tell`` takes the current step.  It raises PROJECT_MISSING and
    REMOTE_UNREACHABLE.
    """
    done = Pushed()
    # Only the owner sends the project file, unless others are named.
    agreement = folder.project_file
    is_wanted = folder.is_owner and (not files or any(file.suffix == ".toml" for file in files))
    if agreement is not None and is_wanted:
        with _note_errors(remote, done.refused, str(agreement)):
            _push_agreement(folder, remote, agreement, done)
    bundles = _list_bundles(folder, files)
    known: dict[str, Entry] = {}
    if bundles:
        # A file that was taken back and sent again is listed twice: the entry that counts comes last.
        listed = sorted(remote.list(folder), key=lambda each: not each.withdrawn)
        known = {each.sha256: each for each in listed}
    for path in bundles:
        tell(f"checking {path.name}")
        with _note_errors(remote, done.refused, str(path)):
            parcel = parcel_of(path, folder)
            entry = known.get(parcel.sha256)
            is_back = not files and parcel.sha256 in withdrawn
            if entry is not None:
                is_back = entry.withdrawn
            if is_back:
                done.withdrawn.append(str(path))
                continue
            if entry is None:
                remote.send(parcel, tell=tell)
                done.sent[str(path)] = parcel.kind.name
            else:
                done.there.append(str(path))
            has(parcel.sha256)
            if not parcel.sealed:
                done.unsealed.append(str(path))
    return done


@contextmanager
def _note_errors(remote: Remote, refused: dict[str, ExchangeError], name: str) -> Iterator[None]:
    """Note an error under a name, unless it would meet each of the other files, too."""
    try:
        yield
    except ExchangeError as error:
        if error.code in remote.stops:
            raise
        refused[name] = error


def _push_agreement(folder: MemberFolder, remote: Remote, path: Path, done: Pushed) -> None:
    project, text = read_project(path)
    there = remote.agreement(folder)
    if there is not None:
        present = project_of(there, f"The project file at {remote.url}")
        # A copy of an earlier revision, on another machine, must not undo a later one.
        project.check_not_older(present, path)
        if present.digest == project.digest:
            done.there.append(str(path))
            return
    remote.agree(project, text)
    done.sent[str(path)] = "agreement"


def _list_bundles(folder: MemberFolder, files: Sequence[Path]) -> list[Path]:
    """Return the named files, or else those of the outbox, and an owner's anchor."""
    if files:
        return [file for file in files if file.suffix != ".toml"]
    bundles = list(folder.path.glob(f"{_OUTBOX}/*.dc*"))
    if folder.is_owner:
        bundles += folder.path.glob("*.dcanchor")
    return sorted(path for path in bundles if path.is_file() and path.suffix in _SUFFIXES)


_PART = re.compile(r"\.[0-9a-f]{64}\.part")


@dataclass(kw_only=True)
class Pulled:
    """The outcome of a pull: kinds of files by path in the inbox, and errors by SHA-256 or "agreement".

    ``older`` files were left out because the inbox has a later one of their sort; ``withdrawn`` ones had come, and
    their sender has taken them back since.
    """

    came: dict[str, str] = field(default_factory=dict)
    older: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    refused: dict[str, ExchangeError] = field(default_factory=dict)


def pull(
    folder: MemberFolder,
    remote: Remote,
    kept: Kept,
    *,
    keep: Callable[[Kept], object],
    done: Pulled | None = None,
    tell: Tell = silent,
) -> tuple[Pulled, Kept]:
    """Fetch files for this folder that did not come before; one that is refused stops none of the others.

    ``keep`` takes the memory so far, after each file; ``done`` is filled and returned, so that a caller knows which
    files came before an interruption; ``tell`` takes the current step.  It raises REMOTE_UNREACHABLE.
    """
    done = done or Pulled()
    folder.inbox.mkdir(mode=0o700, exist_ok=True)
    tell("looking for the project file")
    with _note_errors(remote, done.refused, AGREEMENT):
        folder = _pull_agreement(folder, remote, done)
    if folder.project is None:
        return done, kept
    listed = [each for each in remote.list(folder) if each.is_for(folder)]
    done.withdrawn += [each.sha256 for each in listed if each.withdrawn and each.sha256 in kept.fetched]
    # Files of another revision than the remote's own come only while the folder has one to join.
    wanted = [each for each in listed if not each.withdrawn and (each.is_current or folder.coming is not None)]
    wanted = [each for each in wanted if each.sha256 not in kept.fetched]
    if not wanted:
        _drop_parts(folder)
    for entry in wanted:
        if entry.sha256 in kept.fetched:  # listed twice
            continue
        with _note_errors(remote, done.refused, entry.sha256):
            _pull_bundle(folder, remote, entry, done, tell)
            # Only now: a command that is killed before this line fetches the file once more.
            kept = kept.having(entry.sha256)
            keep(kept)
    return done, kept


def _pull_agreement(folder: MemberFolder, remote: Remote, done: Pulled) -> MemberFolder:
    """Put a new revision into the inbox; the folder's own counts until it is joined."""
    text = remote.agreement(folder)
    if text is None:
        return folder
    project = project_of(text, f"The project file at {remote.url}")
    place = folder.inbox / PROJECT_FILE
    there = folder.project
    if there is not None:
        # A remote could offer the project of another owner, with members of its own.
        if there.owner != project.owner:
            raise ExchangeError(
                "SIGNATURE_INVALID",
                f"The project file at {remote.url} is of {project.owner.fingerprint}, and this folder's project of "
                f"{there.owner.fingerprint}. Do not use it; ask the owner by another way.",
            )
        for version in folder.versions:
            project.check_not_older(version, folder.path)
    if there is not None and there.digest == project.digest:
        return folder
    if not place.is_file() or place.read_bytes() != text:
        write_atomically(place, text, mode=0o600)
        done.came[str(place)] = AGREEMENT
    return MemberFolder.at(folder.path)


def _pull_bundle(folder: MemberFolder, remote: Remote, entry: Entry, done: Pulled, tell: Tell) -> None:
    # Before anything is fetched: a remote could list any size.
    if entry.size > Limits().total_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"A {entry.kind} at {remote.url} has {entry.size} bytes. Ask its sender, by another way."
        )
    part = folder.inbox / f".{entry.sha256}.part"
    # Only one file's part is kept, so that a remote that lists many files does not fill the disk.
    _drop_parts(folder, but=part)
    # The part of an interrupted command goes on where it ended.
    if part.exists() and part.stat().st_size > entry.size:
        part.unlink()
    part.touch(mode=0o600)
    if part.stat().st_size < entry.size:
        try:
            remote.fetch(entry, part, folder=folder, tell=tell)
        finally:
            if part.stat().st_size == 0:
                part.unlink()
    # The name of a file is its hash, so no remote can exchange one.
    if sha256_of(part) != entry.sha256:
        part.unlink()
        raise ExchangeError(
            "HASH_MISMATCH",
            f"A {entry.kind} from {remote.url} is not the file that was listed. Run the command again; if that does "
            "not help, have it sent another way.",
        )
    try:
        place = _check_file(folder, part, entry, remote.url)
    except ExchangeError:
        part.unlink()
        raise
    if place is None:
        part.unlink()
        done.older.append(entry.sha256)
        return
    part.chmod(0o600)
    os.replace(part, place)  # in one step: the inbox never has half a file
    sync_folder(place.parent)
    done.came[str(place)] = entry.kind


def _drop_parts(folder: MemberFolder, but: Path | None = None) -> None:
    for part in folder.inbox.glob(".*.part"):
        if part != but and _PART.fullmatch(part.name):
            part.unlink()


def _check_file(folder: MemberFolder, part: Path, entry: Entry, url: str) -> Path | None:
    """Return the file's place in the inbox; None if a later file lies there."""
    what = f"A {entry.kind} from {url}"
    address = _read_file(part, folder, what)
    # A listing is the remote's word; the file's own kind counts.
    if address.kind.name != entry.kind:
        raise ExchangeError("WRONG_KIND", f"{what} is in truth {address.kind.name}. Do not use it; ask its sender.")
    if folder.key not in address.recipients:
        raise ExchangeError(
            "WRONG_RECIPIENT", f"{what} was made for party {address.party!r}, not for this folder. Ask its sender."
        )
    place = folder.inbox / address.file_name
    if place.is_file():
        try:
            present = _read_file(place, folder, str(place))
        except ExchangeError:
            return place  # of another version of the project, or damaged: nothing to lose
        # A remote may offer old files again, to have a model of earlier rows installed.
        if present.created > address.created:
            return None
    return place


def _read_file(path: Path, folder: MemberFolder, what: str) -> Addressed:
    with open(path, "rb") as file:
        envelope = read_envelope(file, os.fstat(file.fileno()).st_size, what=what)
    return read_address(envelope, folder.version(envelope.facts.get("project_digest")), what)


_FEWEST = 16
"""Letters of a SHA-256, 64 bits, below which one file may be taken for another."""


def withdrawable(folder: MemberFolder, remote: Remote, file: str) -> Entry:
    """Return the entry of a file that this folder sent and has not taken back, or raise NOT_SENT.

    ``file`` is a path, or the first 16 letters or more of the SHA-256.
    """
    wanted = file.lower()
    if Path(file).is_file():
        wanted = sha256_of(Path(file))
    own = [each for each in remote.list(folder) if each.sender == folder.key.fingerprint and not each.withdrawn]
    matching = [each for each in own if len(wanted) >= _FEWEST and each.sha256.startswith(wanted)]
    if len(matching) != 1:
        there = ", ".join(f"{each.kind} {each.sha256[:_FEWEST]}" for each in own) or "nothing"
        raise ExchangeError(
            "NOT_SENT", f"{remote.url} has no such file of this folder; it has {there}. Name one of these."
        )
    return matching[0]
