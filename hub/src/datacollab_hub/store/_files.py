"""Files that are there or on their way, who has fetched them, and those that were withdrawn."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ._schema import chunks, fetches, files, uploads


@dataclass(frozen=True)
class NewFile:
    """A file that is to be accepted; ``recipient`` is empty where it is for all parties."""

    project: str
    kind: str
    sha256: str
    size: int
    sender: str
    recipient: str
    project_digest: str
    blob: str


@dataclass(frozen=True)
class FileRow(NewFile):
    """An accepted file, and when it was received and withdrawn."""

    id: int
    received: int
    withdrawn: int | None


_FILE_COLUMNS = [files.c[name] for name in FileRow.__dataclass_fields__]


def add_file(connection: Connection, file: NewFile, now: float) -> bool:
    """Accept a file; False where the index does not: it is there, or the party has a live share."""
    try:
        # A savepoint, as PostgreSQL goes on with no transaction in which a statement was refused.
        with connection.begin_nested():
            connection.execute(insert(files).values(**asdict(file), received=int(now)))
    except IntegrityError:
        return False
    return True


def file_row(connection: Connection, project: str, sha256: str) -> FileRow | None:
    """The live file of a hash, or else the last that was withdrawn."""
    query = select(*_FILE_COLUMNS).where(files.c.project == project, files.c.sha256 == sha256)
    rows = [FileRow(*row) for row in connection.execute(query.order_by(files.c.id))]
    # At most one is live, as an index holds.
    live = [row for row in rows if row.withdrawn is None]
    return next(iter(live or rows[-1:]), None)


def files_of(connection: Connection, project: str) -> list[FileRow]:
    """All, in the order in which they came."""
    query = select(*_FILE_COLUMNS).where(files.c.project == project).order_by(files.c.id)
    return [FileRow(*row) for row in connection.execute(query)]


def has_live_share(connection: Connection, project: str, sender: str) -> bool:
    """Whether a party's share is there."""
    mine = (files.c.project == project, files.c.sender == sender, files.c.kind == "share")
    return connection.execute(select(files.c.id).where(*mine, files.c.withdrawn.is_(None))).first() is not None


def last_live(
    connection: Connection, project: str, project_digest: str, kind: str, sender: str | None = None
) -> int | None:
    """Return the id of the last live file of a kind under a project file, from one sender or anybody; or None."""
    query = select(func.max(files.c.id)).where(
        files.c.project == project,
        files.c.project_digest == project_digest,
        files.c.kind == kind,
        files.c.withdrawn.is_(None),
    )
    if sender is not None:
        query = query.where(files.c.sender == sender)
    return connection.execute(query).scalar()


def withdraw_file(connection: Connection, file: int, now: float) -> bool:
    """Leave the facts of a file alone; False where it was withdrawn before."""
    where = (files.c.id == file, files.c.withdrawn.is_(None))
    # The condition decides between two requests at once: one of them changes the row.
    return connection.execute(update(files).where(*where).values(withdrawn=int(now), blob="")).rowcount == 1


def add_fetch(connection: Connection, file: int, fingerprint: str, now: float) -> bool:
    """Note that a key was given a file; False where it was before."""
    try:
        with connection.begin_nested():
            connection.execute(insert(fetches).values(file=file, fingerprint=fingerprint, time=int(now)))
    except IntegrityError:
        return False
    return True


def fetches_of(connection: Connection, project: str) -> dict[int, dict[str, int]]:
    """When each file of a project was first given to whom."""
    query = select(fetches).join(files).where(files.c.project == project)
    found: dict[int, dict[str, int]] = {}
    for row in connection.execute(query):
        found.setdefault(row.file, {})[row.fingerprint] = row.time
    return found


def all_blobs(connection: Connection) -> set[str]:
    """Names that count."""
    names = connection.execute(select(files.c.blob).where(files.c.blob != "")).scalars()
    # Parts of unfinished uploads count as well, or a sweep would take them.
    return {*names, *connection.execute(select(chunks.c.blob)).scalars()}


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


_UPLOAD_COLUMNS = [uploads.c[name] for name in Upload.__dataclass_fields__]


def new_upload(
    connection: Connection, *, project: str, sender: str, kind: str, sha256: str, size: int, recipient: str, now: float
) -> Upload:
    """Begin."""
    upload = Upload(secrets.token_hex(16), project, sender, kind, sha256, size, recipient, 0)
    connection.execute(insert(uploads).values(**vars(upload), touched=int(now)))
    return upload


def upload_row(connection: Connection, upload: str) -> Upload | None:
    """An upload by its id."""
    row = connection.execute(select(*_UPLOAD_COLUMNS).where(uploads.c.id == upload)).first()
    if row is None:
        return None
    return Upload(*row)


def find_upload(
    connection: Connection, *, project: str, sender: str, kind: str, sha256: str, recipient: str
) -> Upload | None:
    """Find an upload by its file."""
    wanted = {"project": project, "sender": sender, "kind": kind, "sha256": sha256, "recipient": recipient}
    row = connection.execute(select(*_UPLOAD_COLUMNS).filter_by(**wanted)).first()
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
