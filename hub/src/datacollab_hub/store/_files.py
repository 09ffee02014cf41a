"""Files that are there, who has fetched them, and those that were withdrawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ._schema import chunks, fetches, files

__all__ = [
    "FileRow",
    "NewFile",
    "add_fetch",
    "add_file",
    "all_blobs",
    "fetches_of",
    "file_row",
    "files_of",
    "has_live_share",
    "last_live",
    "withdraw_file",
]


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


_COLUMNS = [files.c[name] for name in FileRow.__dataclass_fields__]


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
    query = select(*_COLUMNS).where(files.c.project == project, files.c.sha256 == sha256)
    rows = [FileRow(*row) for row in connection.execute(query.order_by(files.c.id))]
    # At most one is live, as an index holds.
    live = [row for row in rows if row.withdrawn is None]
    return next(iter(live or rows[-1:]), None)


def files_of(connection: Connection, project: str) -> list[FileRow]:
    """All, in the order in which they came."""
    query = select(*_COLUMNS).where(files.c.project == project).order_by(files.c.id)
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
