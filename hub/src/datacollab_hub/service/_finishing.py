"""The end of an upload: all of it is checked, and it is a file then, or gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from datacollab.bundle import Envelope, Limits, read_envelope
from datacollab.errors import ExchangeError

from ..rules import Kind, Person, Role, check_envelope, check_open, kind_of, not_found
from ..store import (
    NewFile,
    Upload,
    add_file,
    append_log,
    chunk_blobs,
    drop_upload,
    file_row,
    members_of,
)
from ._addressing import recipient_of
from ._hub import Hub, require_agreement, the_project
from ._once import is_second, second_refused

__all__ = ["finish", "remove_parts"]


def finish(hub: Hub, person: Person, upload: Upload) -> dict[str, Any]:
    """Put an upload's parts together, check the file, and accept it; one request at a time for each upload.

    A refused upload leaves nothing behind.  Where the hub itself fails, a full disk say, the upload stays as it was.

    Raises
    ------
    ExchangeError
        ``HASH_MISMATCH``, as `read_envelope`, as `check_envelope`, ``DEADLINE_PASSED``, ``ALREADY_SHARED``,
        ``NOT_ALLOWED``; ``BUSY``, when another request is at it.
    """
    with hub.claims.of(upload.id):
        return _finish(hub, person, upload)


def _finish(hub: Hub, person: Person, upload: Upload) -> dict[str, Any]:
    blobs = hub.store.blobs
    with hub.store.reading() as connection:
        parts = chunk_blobs(connection, upload.id)
    # A request at the same moment has finished it, or dropped it.
    if not parts:
        return _answer_finished_meanwhile(hub, upload)
    try:
        blob, size, sha256 = blobs.write("files", _join(hub, parts))
    except FileNotFoundError:
        return _answer_finished_meanwhile(hub, upload)
    try:
        # Before anything reads it: what arrived has to be what was announced.
        if (size, sha256) != (upload.size, upload.sha256):
            raise ExchangeError(
                "HASH_MISMATCH", "The file that arrived is not the one that was announced. Send it again."
            )
        with blobs.opened(blob) as file:
            # The operator's limit let it in, so the reader's own must not refuse it.
            limits = Limits(total_bytes=max(size, Limits.total_bytes), member_bytes=max(size, Limits.member_bytes))
            envelope = read_envelope(file, size, signed_by=person.key, limits=limits, what="The file")
        accepted = _accept(hub, person, upload, envelope, blob)
    except ExchangeError:
        # Sent again it would be refused again, so nothing of it is kept.
        with hub.store.writing() as connection:
            gone = drop_upload(connection, upload.id)
        blobs.remove(blob)
        # Otherwise another request has ended it, and removes the parts itself.
        if gone:
            remove_parts(hub, upload, parts)
        raise
    except BaseException:
        # The hub's own failure, as a full disk: the parts stay, and it can be asked again.
        blobs.remove(blob)
        raise
    # Only now that the file counts: before, the parts were its only copy.
    remove_parts(hub, upload, parts)
    if not accepted:
        blobs.remove(blob)
        return _answer_finished_meanwhile(hub, upload)
    return {"file": upload.sha256}


def remove_parts(hub: Hub, upload: Upload, parts: list[str]) -> None:
    """Remove the blobs of an upload that is no more."""
    hub.store.blobs.remove(*parts)
    hub.store.blobs.remove_folder(f"uploads/{upload.id}")


def _join(hub: Hub, parts: list[str]) -> Iterator[bytes]:
    for part in parts:
        yield from hub.store.blobs.read(part)


def _answer_finished_meanwhile(hub: Hub, upload: Upload) -> dict[str, Any]:
    """Answer where another request for the same upload was faster."""
    with hub.store.reading() as connection:
        there = file_row(connection, upload.project, upload.sha256)
    # Others than its sender must not learn by their own upload that the file is there.
    if there is None or there.withdrawn is not None or there.sender != upload.sender:
        raise not_found()
    return {"file": there.sha256}


def _accept(hub: Hub, person: Person, upload: Upload, envelope: Envelope, blob: str) -> bool:
    """Make it a file; False where another request has just made this very one."""
    with hub.store.writing() as connection:
        # From here on nobody else writes to the project, so what is checked stays true.
        row = the_project(connection, upload.project, lock=True)
        # Another process may have ended it since its parts were read, and what it made of them be withdrawn by now.
        if not drop_upload(connection, upload.id):
            return False
        digest = require_agreement(row)
        members = members_of(connection, row.id)
        # Another project file may hold by now than when the request was let in, or the upload was begun.
        roles = frozenset(Role(each.role) for each in members if each.fingerprint == person.fingerprint)
        kind = kind_of(upload.kind, Person(person.key, roles))
        parties = {each.fingerprint: each.name for each in members if each.role == Role.PARTY}
        check_envelope(kind, envelope, project_digest=digest, party=_party(kind, upload, parties))
        recipient = upload.recipient
        if not kind.names_recipient:
            # The analyst may be another than when the upload was begun.
            recipient = recipient_of(kind, None, members)
        # The moment at which it is whole counts, and not its beginning.
        if kind.name == "share":
            check_open(row.deadline, hub.clock())
        file = NewFile(
            project=row.id,
            kind=kind.name,
            sha256=upload.sha256,
            size=upload.size,
            sender=upload.sender,
            recipient=recipient,
            project_digest=digest,
            blob=blob,
        )
        is_new = not is_second(connection, kind, row.id, digest, upload.sender)
        if is_new and add_file(connection, file, hub.clock()):
            facts = {"kind": kind.name, "sha256": upload.sha256, "recipient": recipient or None}
            append_log(connection, row.id, hub.clock(), person.fingerprint, "received", facts)
            return True
        # The very file is there, or another one of the party that may be there once.
        there = file_row(connection, row.id, upload.sha256)
        if there is None or there.withdrawn is not None:
            raise second_refused(kind)
    return False


def _party(kind: Kind, upload: Upload, parties: dict[str, str]) -> str | None:
    """Name of the party that a file has to be about."""
    if kind.to_all:
        return None
    # What parties send is about themselves, what the analyst sends is about who gets it.
    key = upload.sender
    if kind.names_recipient:
        key = upload.recipient
    if key not in parties:
        raise ExchangeError(
            "WRONG_RECIPIENT", f"The project file that holds now names no party with the key {key}. Send it to another."
        )
    return parties[key]
