"""The beginning of an upload: its announcement is checked before any byte comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from datacollab.errors import ExchangeError

from ..rules import Kind, Person, check_open, kind_of
from ..store import (
    ProjectRow,
    file_row,
    find_upload,
    members_of,
    n_open_uploads,
    new_upload,
    used_bytes,
)
from ._addressing import recipient_of
from ._finishing import finish
from ._hub import Hub, require_agreement, the_project
from ._once import is_second, second_refused

__all__ = ["Announced", "start_upload"]


@dataclass(frozen=True)
class Announced:
    """A sender's announcement of a file.

    Attributes
    ----------
    kind, sha256 : str
    size : int
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
