"""Files that are there: seeing, fetching and withdrawing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from datacollab.errors import ExchangeError

from ..rules import Person, check_sha256, may_fetch, may_see, not_found
from ..store import FileRow, ProjectRow, add_fetch, append_log, file_row, withdraw_file
from ._hub import Hub, the_project
from ._views import facts_of


@dataclass(frozen=True)
class Fetched:
    """A file that may be read.

    Attributes
    ----------
    is_senders : bool
        Whether it is the sender who reads it.
    """

    id: int
    sha256: str
    size: int
    blob: str
    is_senders: bool


def list_files(hub: Hub, person: Person, project: str) -> list[Mapping[str, Any]]:
    """Facts of the files that a person may see."""
    with hub.store.reading() as connection:
        view = hub.views.of(connection, project)
    # The view is common to all readers; this is where each gets theirs.
    return [shown for facts, shown in view.listed if may_see(person, facts)]


def _find(connection: Connection, person: Person, row: ProjectRow, sha256: str) -> FileRow:
    """A file that a person may see."""
    file = file_row(connection, row.id, check_sha256(sha256))
    # One answer for a file that is not there and for one that is not theirs to see.
    if file is None or not may_see(person, facts_of(file, row)):
        raise not_found()
    return file


def fetch(hub: Hub, person: Person, project: str, sha256: str) -> Fetched:
    """A file for its recipients and its sender, and for nobody else.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, ``NOT_ALLOWED``.
    """
    with hub.store.reading() as connection:
        row = the_project(connection, project)
        file = _find(connection, person, row, sha256)
    # Whoever got here sees the file, so the refusal tells nothing new.
    if not may_fetch(person, facts_of(file, row)):
        raise ExchangeError(
            "NOT_ALLOWED", "Files are for their recipients and their sender alone. Ask one of them for a copy."
        )
    if file.withdrawn is not None:
        raise not_found()
    return Fetched(file.id, file.sha256, file.size, file.blob, file.sender == person.fingerprint)


def note_fetched(hub: Hub, person: Person, project: str, file: Fetched) -> None:
    """Note, before any byte leaves, that a recipient is given a file or a range of it; once for each."""
    # A sender who reads their own file gives it to nobody.
    if file.is_senders:
        return
    with hub.store.writing() as connection:
        # Locked before the log's last number is read.
        the_project(connection, project, lock=True)
        # Ranges of one download are one fetch.
        if add_fetch(connection, file.id, person.fingerprint, hub.clock()):
            append_log(connection, project, hub.clock(), person.fingerprint, "fetched", {"sha256": file.sha256})


def read_pieces(hub: Hub, file: Fetched, start: int, end: int) -> Iterator[bytes]:
    """A file's bytes from one position to before another.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, when it was withdrawn at this moment.
    """
    try:
        return hub.store.blobs.read(file.blob, start, end)
    except FileNotFoundError:
        raise not_found() from None


def withdraw(hub: Hub, person: Person, project: str, sha256: str) -> dict[str, Any]:
    """Remove a file's bytes, by its sender; that it was there stays known.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, ``NOT_ALLOWED``.
    """
    with hub.store.writing() as connection:
        row = the_project(connection, project, lock=True)
        file = _find(connection, person, row, sha256)
        if file.sender != person.fingerprint:
            raise ExchangeError("NOT_ALLOWED", "Only its sender withdraws a file. Ask them.")
        # Asked once more after a lost answer, it changes nothing and logs nothing.
        if withdraw_file(connection, file.id, hub.clock()):
            facts = {"kind": file.kind, "sha256": file.sha256}
            append_log(connection, row.id, hub.clock(), person.fingerprint, "withdrawn", facts)
    # Last of all: a withdrawal that was undone must not have lost the bytes.
    if file.blob:
        hub.store.blobs.remove(file.blob)
    return {"file": file.sha256, "withdrawn": True}
