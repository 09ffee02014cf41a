"""Files that are on their way: which parts of each are there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from ._schema import chunks, files, uploads

__all__ = [
    "Upload",
    "add_chunk",
    "chunk_blobs",
    "drop_upload",
    "find_upload",
    "n_open_uploads",
    "new_upload",
    "old_uploads",
    "upload_row",
    "used_bytes",
]


@dataclass(frozen=True)
class Upload:
    """A file of which the first ``offset`` bytes are there."""

    id: str
    project: str
    sender: str
    kind: str
    sha256: str
    size: int
    recipient: str
    offset: int


_COLUMNS = [uploads.c[name] for name in Upload.__dataclass_fields__]


def new_upload(
    connection: Connection, *, project: str, sender: str, kind: str, sha256: str, size: int, recipient: str, now: float
) -> Upload:
    """Begin."""
    upload = Upload(secrets.token_hex(16), project, sender, kind, sha256, size, recipient, 0)
    connection.execute(insert(uploads).values(**vars(upload), touched=int(now)))
    return upload


def upload_row(connection: Connection, upload: str) -> Upload | None:
    """An upload by its id."""
    row = connection.execute(select(*_COLUMNS).where(uploads.c.id == upload)).first()
    if row is None:
        return None
    return Upload(*row)


def find_upload(
    connection: Connection, *, project: str, sender: str, kind: str, sha256: str, recipient: str
) -> Upload | None:
    """Find an upload by its file."""
    wanted = {"project": project, "sender": sender, "kind": kind, "sha256": sha256, "recipient": recipient}
    row = connection.execute(select(*_COLUMNS).filter_by(**wanted)).first()
    if row is None:
        return None
    return Upload(*row)


def add_chunk(connection: Connection, upload: str, start: int, size: int, blob: str, now: float) -> bool:
    """Count a part in; False where another one was faster."""
    where = (uploads.c.id == upload, uploads.c.offset == start)
    # The old offset is the condition: of two parts for one place, one is counted in.
    moved = connection.execute(update(uploads).where(*where).values(offset=start + size, touched=int(now)))
    if moved.rowcount != 1:
        return False
    connection.execute(insert(chunks).values(upload=upload, start=start, size=size, blob=blob))
    return True


def chunk_blobs(connection: Connection, upload: str) -> list[str]:
    """Blobs of an upload's parts, in order."""
    query = select(chunks.c.blob).where(chunks.c.upload == upload).order_by(chunks.c.start)
    return list(connection.execute(query).scalars())


def drop_upload(connection: Connection, upload: str) -> bool:
    """Forget an upload; whether it was there.  Its blobs are the caller's to remove."""
    # Chunks first, as they refer to the upload.
    connection.execute(delete(chunks).where(chunks.c.upload == upload))
    return connection.execute(delete(uploads).where(uploads.c.id == upload)).rowcount == 1


def n_open_uploads(connection: Connection, sender: str) -> int:
    """Of a key, in all projects."""
    query = select(func.count()).select_from(uploads).where(uploads.c.sender == sender)
    return int(connection.execute(query).scalar_one())


def used_bytes(connection: Connection, project: str, sender: str) -> int:
    """Return the bytes of a key's files in a project, with those that it announced."""
    sent = (files.c.project == project, files.c.sender == sender, files.c.withdrawn.is_(None))
    announced = (uploads.c.project == project, uploads.c.sender == sender)
    kept = select(func.coalesce(func.sum(files.c.size), 0)).where(*sent)
    # In full from the announcement on, or many begun at once would all fit.
    coming = select(func.coalesce(func.sum(uploads.c.size), 0)).where(*announced)
    return int(connection.execute(kept).scalar_one()) + int(connection.execute(coming).scalar_one())


def old_uploads(connection: Connection, before: float) -> list[str]:
    """Uploads that nobody went on with."""
    return list(connection.execute(select(uploads.c.id).where(uploads.c.touched < int(before))).scalars())
