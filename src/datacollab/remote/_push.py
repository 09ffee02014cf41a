"""What leaves a folder for a remote: what lies in the outbox, and an owner's project file and anchor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ExchangeError
from ..exchange.project import read_project
from ._base import Remote, Tell, silent
from ._entry import Entry
from ._folder import Folder
from ._kinds import KINDS
from ._parcel import parcel_of
from ._project_text import project_of

__all__ = ["Pushed", "push"]

_SUFFIXES = {kind.suffix for kind in KINDS.values()}
_OUTBOX = "outbox"


@dataclass(kw_only=True)
class Pushed:
    """What became of each file.

    Attributes
    ----------
    sent : dict of str to str
        Kind by path, of what the remote has now and had not.
    there : list of str
        Paths of what it had already.
    withdrawn : list of str
        Paths of what was taken back there, and is not sent once more.
    unsealed : list of str
        Of those that lie there, files that whoever runs the remote can read.
    refused : dict of str to ExchangeError
        By path.
    """

    sent: dict[str, str] = field(default_factory=dict)
    there: list[str] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)
    refused: dict[str, ExchangeError] = field(default_factory=dict)


def push(
    folder: Folder,
    remote: Remote,
    files: Sequence[Path] = (),
    *,
    withdrawn: Collection[str] = (),
    has: Callable[[str], object] = silent,
    tell: Tell = silent,
) -> Pushed:
    """Send what the remote has not; a file that is refused stops none of the others.

    Parameters
    ----------
    folder : Folder
    remote : Remote
    files : sequence of Path
        Instead of all that may be sent: bundles, and the project file.
    withdrawn : collection of str
        SHA-256 of files that were taken back: where a remote itself does not tell, they are sent again only if named.
    has : callable
        Takes the SHA-256 of each bundle that the remote says to have from here, as soon as it says so: what follows
        may be interrupted.
    tell : callable
        Takes what is going on.

    Raises
    ------
    ExchangeError
        PROJECT_MISSING, REMOTE_UNREACHABLE.
    """
    done = Pushed()
    agreement = _agreement(folder, files)
    if agreement is not None:
        _each(agreement, remote, done, lambda: _push_agreement(folder, remote, agreement, done))
    bundles = _bundles(folder, files)
    # What was taken back and sent again is listed twice.
    listed = sorted(remote.list(folder), key=lambda each: not each.withdrawn) if bundles else []
    known = {each.sha256: each for each in listed}
    back = () if files else withdrawn
    for path in bundles:
        tell(f"checking {path.name}")
        _each(path, remote, done, lambda path=path: _push_bundle(folder, remote, path, known, back, done, has, tell))  # type: ignore[misc]
    return done


def _each(path: Path, remote: Remote, done: Pushed, step: Callable[[], None]) -> None:
    try:
        step()
    except ExchangeError as error:
        if error.code in remote.stops:
            raise
        done.refused[str(path)] = error


def _push_agreement(folder: Folder, remote: Remote, path: Path, done: Pushed) -> None:
    project, text = read_project(path)
    there = remote.agreement(folder)
    if there is not None:
        lies = project_of(there, f"The project file at {remote.url}")
        project.check_not_older(lies, path)
        if lies.digest == project.digest:
            done.there.append(str(path))
            return
    remote.agree(project, text)
    done.sent[str(path)] = "agreement"


def _push_bundle(
    folder: Folder,
    remote: Remote,
    path: Path,
    known: Mapping[str, Entry],
    withdrawn: Collection[str],
    done: Pushed,
    has: Callable[[str], object],
    tell: Tell,
) -> None:
    parcel = parcel_of(path, folder)
    entry = known.get(parcel.sha256)
    if entry.withdrawn if entry is not None else parcel.sha256 in withdrawn:
        done.withdrawn.append(str(path))
        return
    if entry is None:
        remote.send(parcel, tell=tell)
        done.sent[str(path)] = parcel.kind.name
    else:
        done.there.append(str(path))
    has(parcel.sha256)
    if not parcel.sealed:
        done.unsealed.append(str(path))


def _agreement(folder: Folder, files: Sequence[Path]) -> Path | None:
    """The owner's project file, where it is to be sent."""
    if files and not any(file.suffix == ".toml" for file in files):
        return None
    return folder.project_file if folder.is_owner else None


def _bundles(folder: Folder, files: Sequence[Path]) -> list[Path]:
    if files:
        return [file for file in files if file.suffix != ".toml"]
    found = [*folder.path.glob(f"{_OUTBOX}/*.dc*"), *(folder.path.glob("*.dcanchor") if folder.is_owner else ())]
    return sorted(path for path in found if path.is_file() and path.suffix in _SUFFIXES)
