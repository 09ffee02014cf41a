"""An upload from its announcement to its last part: all of it is checked, and it is a file then, or gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from datacollab.bundle import Envelope, Limits, read_envelope
from datacollab.errors import ExchangeError

from ..rules import Kind, Person, Role, check_envelope, check_id, check_open, kind_of, not_found
from ..store import (
    Member,
    NewFile,
    ProjectRow,
    Upload,
    add_chunk,
    add_file,
    append_log,
    chunk_blobs,
    drop_upload,
    file_row,
    find_upload,
    has_live_share,
    last_live,
    members_of,
    n_open_uploads,
    new_upload,
    upload_row,
    used_bytes,
)
from ._hub import Hub, require_agreement, the_project


def recipient_of(kind: Kind, said: str | None, members: Sequence[Member]) -> str:
    """Fingerprint of whom a file is for; empty for all parties.

    Parameters
    ----------
    kind : Kind
    said : str, optional
        Name or fingerprint of a party, if the file is for one.
    members : sequence of Member

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, ``NOT_FOUND``.
    """
    if not kind.names_recipient:
        # Its kind decides who gets it: no sender steers a share to anybody else.
        always = ""
        if not kind.to_all:
            always = next(each.fingerprint for each in members if each.role == kind.to)
        if said not in (None, always):
            raise ExchangeError(
                "REQUEST_MALFORMED",
                f"recipient: a file of the kind {kind.name} goes where it always goes. Leave it out.",
            )
        return always
    for each in members:
        # People know the name, programs the key.
        if each.role == Role.PARTY and said in (each.name, each.fingerprint):
            return each.fingerprint
    if said is None:
        raise ExchangeError("REQUEST_MALFORMED", "recipient: the name of a party of the project is wanted.")
    raise not_found()


_SECOND = {
    "share": "A share of this party is on the hub; two of the same rows tell more than one. Withdraw it first if "
    "another is meant in its place.",
    "sums": "Sums of this party are on the hub, and further ones of the same rows tell more. They are taken once the "
    "analyst's request for a further round, round.dcround, has come after them: ask the analyst to push it. If others "
    "are meant in place of those that are here, withdraw these first.",
}


def is_second(connection: Connection, kind: Kind, project: str, project_digest: str, sender: str) -> bool:
    """Return whether a file that a party sends once is here already, and nobody has asked for another.

    Whoever accepts a file holds the project's row, so that of two uploads at once the later one finds the first.
    """
    if kind.name == "share":
        return has_live_share(connection, project, sender)
    if kind.name != "sums":
        return False
    own = last_live(connection, project, project_digest, "sums", sender)
    asked = last_live(connection, project, project_digest, "round")
    # Ids are in the order in which files came: a request that came after a party's last sums is not answered yet.
    return own is not None and (asked is None or asked < own)


def second_refused(kind: Kind) -> ExchangeError:
    """Return the refusal of a second file of a kind, with the way on."""
    return ExchangeError("ALREADY_SHARED", _SECOND[kind.name])


@dataclass(frozen=True)
class Announced:
    """A sender's announcement of a file.

    Attributes
    ----------
    recipient : str or None
        Name or fingerprint of a party, if the file is for one.
    """

    kind: str
    sha256: str
    size: int
    recipient: str | None


def start_upload(hub: Hub, person: Person, project: str, announced: Announced) -> dict[str, Any]:
    """Begin an upload, or find the one that was begun; where the file is there, say so.

    Returns
    -------
    dict
        ``file`` where it is there; else ``upload`` and ``offset``.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, ``NOT_ALLOWED``, ``AGREEMENT_MISSING``, ``ALREADY_SHARED``, ``DEADLINE_PASSED``,
        ``TOO_LARGE``, ``QUOTA_EXCEEDED``.
    """
    kind = kind_of(announced.kind, person)
    with hub.store.writing() as connection:
        # From the first look on: one announcement twice at once begins one upload.
        row = the_project(connection, project, lock=True)
        digest = require_agreement(row)
        recipient = recipient_of(kind, announced.recipient, members_of(connection, row.id))
        there = file_row(connection, row.id, announced.sha256)
        # Sent before, and the answer was lost: no byte is sent twice.
        if there is not None and there.withdrawn is None:
            # One row cannot tell of two senders, or of two kinds.
            if (there.sender, there.kind, there.recipient) != (person.fingerprint, kind.name, recipient):
                raise ExchangeError("ALREADY_THERE", "The very file was sent in another way. Withdraw it first.")
            _check_size(announced, there.size)
            return {"file": there.sha256}
        wanted = {
            "project": row.id,
            "sender": person.fingerprint,
            "kind": kind.name,
            "sha256": announced.sha256,
            "recipient": recipient,
        }
        # One that was begun goes on; deadlines and quotas were looked at then.
        upload = find_upload(connection, **wanted)
        if upload is not None:
            _check_size(announced, upload.size)
        else:
            _check_once(hub, connection, row, person, kind, digest)
            _check_room(hub, connection, row, person, announced.size)
            upload = new_upload(connection, **wanted, size=announced.size, now=hub.clock())
    if upload.offset == upload.size:
        # Whoever was cut off before the last answer gets it now.
        return finish(hub, person, upload)
    return {"upload": upload.id, "offset": upload.offset}


def _check_size(announced: Announced, size: int) -> None:
    """Refuse another size of one's own file."""
    if announced.size != size:
        raise ExchangeError("REQUEST_MALFORMED", f"size: {size} bytes were announced of this file. Go on with them.")


def _check_once(
    hub: Hub, connection: Connection, row: ProjectRow, person: Person, kind: Kind, project_digest: str
) -> None:
    if kind.name == "share":
        check_open(row.deadline, hub.clock())
    # Early, so that nobody sends gigabytes in vain; the end of the upload decides.
    if is_second(connection, kind, row.id, project_digest, person.fingerprint):
        raise second_refused(kind)


def _check_room(hub: Hub, connection: Connection, row: ProjectRow, person: Person, size: int) -> None:
    settings = hub.settings
    if size > settings.file_bytes:
        raise ExchangeError(
            "TOO_LARGE",
            f"The file has {size} bytes; this hub takes {settings.file_bytes}. Ask its operator, or carry the file by "
            "hand.",
        )
    # In all projects together, as each keeps its parts for a week.
    if n_open_uploads(connection, person.fingerprint) >= settings.open_uploads:
        raise ExchangeError(
            "QUOTA_EXCEEDED",
            f"The key {person.fingerprint} has {settings.open_uploads} unfinished uploads. Finish one, or give one up "
            "with DELETE; after a week they are forgotten.",
        )
    # What others sent does not count: by sizes that still pass anybody could find out how large the anchor is.
    if used_bytes(connection, row.id, person.fingerprint) + size > settings.sender_bytes:
        raise ExchangeError(
            "QUOTA_EXCEEDED",
            f"The files of the key {person.fingerprint} would take more than the {settings.sender_bytes} bytes that "
            "the hub gives it in this project. Withdraw old ones.",
        )


class OffsetDiffersError(ExchangeError):
    """A part does not begin where the last one ended.

    Attributes
    ----------
    offset : int
        Where to go on.
    """

    def __init__(self, offset: int) -> None:
        super().__init__("OFFSET_DIFFERS", f"The hub has {offset} bytes. Go on from there.")
        self.offset = offset


def own_upload(hub: Hub, person: Person, project: str, upload: str) -> Upload:
    """An upload of the one who asks.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``.
    """
    check_id(upload)
    with hub.store.reading() as connection:
        found = upload_row(connection, upload)
    # Somebody else's upload is as good as none.
    if found is None or found.project != project or found.sender != person.fingerprint:
        raise not_found()
    return found


def append_part(hub: Hub, person: Person, upload: Upload, offset: int, body: bytes) -> dict[str, Any]:
    """Take the next part; with the last one, the file.

    Parameters
    ----------
    hub : Hub
    person : Person
    upload : Upload
        The person's own.
    offset : int
        Where the part begins.
    body : bytes
        May be empty at the end, to have the answer again.

    Returns
    -------
    dict
        ``file`` where that was the last part; else ``offset``, from which to go on.

    Raises
    ------
    ExchangeError
        ``OFFSET_DIFFERS``, ``TOO_LARGE``, ``REQUEST_MALFORMED``, ``NOT_FOUND``, and as `finish`.
    """
    # Whoever lost an answer learns here where to go on.
    if offset != upload.offset:
        raise OffsetDiffersError(upload.offset)
    end = offset + len(body)
    if end > upload.size:
        raise ExchangeError(
            "TOO_LARGE", f"The part ends at byte {end}; {upload.size} were announced. Send what was announced."
        )
    least = hub.settings.part_bytes
    if end < upload.size and len(body) < least:
        # Each part is a blob of its own: many small ones would use up what a disk can count.
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"The part has {len(body)} bytes; all but the last have {least} at least. Send the bytes from the offset "
            "on.",
        )
    if body:
        try:
            # Bytes before their row: a kill in between leaves a blob that nobody names, which is swept away.
            blob, _, _ = hub.store.blobs.write(f"uploads/{upload.id}", [body])
        except FileNotFoundError:
            # The upload ended at this moment, and its folder with it.
            raise not_found() from None
        try:
            with hub.store.writing() as connection:
                is_next = add_chunk(connection, upload.id, offset, len(body), blob, hub.clock())
        except BaseException:
            hub.store.blobs.remove(blob)
            raise
        # Another request brought a part for the same place, and the database counted that one in.
        if not is_next:
            hub.store.blobs.remove(blob)
            raise OffsetDiffersError(own_upload(hub, person, upload.project, upload.id).offset)
    if end == upload.size:
        return finish(hub, person, upload)
    return {"offset": end}


def abandon(hub: Hub, upload: Upload) -> None:
    """Give an upload up: it counts no more, and its parts go.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, when it ended meanwhile; ``BUSY``, when it is being finished.
    """
    # Not while it is being finished, or parts would go under the reader's hands.
    with hub.claims.of(upload.id):
        with hub.store.writing() as connection:
            parts = chunk_blobs(connection, upload.id)
            if not drop_upload(connection, upload.id):
                raise not_found()
        # After the transaction: had it been undone, the parts would still be wanted.
        remove_parts(hub, upload, parts)


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
