"""Projects, their members, every project file that held, and the log."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from ..requests import LOG_START, hub_entry
from ._schema import agreements, keys, log, members, projects


@dataclass(frozen=True)
class Member:
    """A key in a project; one that has two roles is there twice."""

    fingerprint: str
    role: str
    name: str


@dataclass(frozen=True)
class ProjectRow:
    """A project; facts of the project file are None where there is none yet."""

    id: str
    name: str
    owner: str
    agreement: bytes | None
    digest: str | None
    revision: int | None
    deadline: date | None
    quorum: int | None


_COLUMNS = [projects.c[name] for name in ProjectRow.__dataclass_fields__]


def new_project(connection: Connection, name: str, owner: str, now: float) -> str:
    """Open a project; its id tells nobody anything."""
    project = secrets.token_hex(16)
    connection.execute(insert(projects).values(id=project, name=name, owner=owner, opened=int(now)))
    add_member(connection, project, Member(owner, "owner", name="owner"))
    return project


def project_row(connection: Connection, project: str, *, lock: bool = False) -> ProjectRow | None:
    """A project, and where it is locked nobody else's to write to until the transaction ends."""
    query = select(*_COLUMNS).where(projects.c.id == project)
    if lock:
        # SQLite leaves this out, as its writers come one at a time anyway.
        query = query.with_for_update()
    row = connection.execute(query).first()
    if row is None:
        return None
    return ProjectRow(*row)


def project_owner(connection: Connection, project: str) -> str | None:
    """Who opened a project; None where there is none."""
    return connection.execute(select(projects.c.owner).where(projects.c.id == project)).scalar()


def count_owned(connection: Connection, owner: str) -> tuple[int, int]:
    """How many projects a key has opened, and bytes of all revisions of their files.

    Nobody else can count for the same key until the transaction ends.
    """
    # A project that is not there yet cannot be locked, so the key's row stands for it.
    connection.execute(select(keys.c.fingerprint).where(keys.c.fingerprint == owner).with_for_update())
    theirs = select(projects.c.id).where(projects.c.owner == owner)
    n_projects = connection.execute(select(func.count()).select_from(theirs.subquery())).scalar_one()
    # The sum of no rows is NULL.
    size = select(func.coalesce(func.sum(func.length(agreements.c.agreement)), 0))
    n_bytes = connection.execute(size.where(agreements.c.project.in_(theirs))).scalar_one()
    return n_projects, int(n_bytes)


def all_projects(connection: Connection) -> list[str]:
    """Ids, for whoever keeps the hub."""
    return list(connection.execute(select(projects.c.id).order_by(projects.c.opened, projects.c.id)).scalars())


def projects_of(connection: Connection, fingerprint: str) -> list[ProjectRow]:
    """Those that a key is a member of, in the order of their names."""
    theirs = select(members.c.project).where(members.c.fingerprint == fingerprint)
    query = select(*_COLUMNS).where(projects.c.id.in_(theirs)).order_by(projects.c.name, projects.c.id)
    return [ProjectRow(*row) for row in connection.execute(query)]


def set_agreement(
    connection: Connection,
    project: str,
    *,
    agreement: bytes,
    digest: str,
    revision: int,
    deadline: date | None,
    quorum: int,
    now: float,
) -> None:
    """Keep the very bytes that the owner signed, the facts that the hub needs, and the file beside earlier ones."""
    values = {"agreement": agreement, "digest": digest, "revision": revision}
    holds = update(projects).where(projects.c.id == project)
    connection.execute(holds.values(**values, deadline=deadline, quorum=quorum))
    connection.execute(insert(agreements).values(**values, project=project, received=int(now)))


def members_of(connection: Connection, project: str) -> list[Member]:
    """All members, in the order of their names."""
    query = select(members.c.fingerprint, members.c.role, members.c.name).where(members.c.project == project)
    return [Member(*row) for row in connection.execute(query.order_by(members.c.name, members.c.role))]


def add_member(connection: Connection, project: str, member: Member) -> None:
    """Give a key a role, unless it has it."""
    # Removed first, as the database refuses a second row.
    remove_member(connection, project, member.fingerprint, member.role)
    values = {"project": project, "fingerprint": member.fingerprint, "role": member.role, "name": member.name}
    connection.execute(insert(members).values(**values))


def remove_member(connection: Connection, project: str, fingerprint: str, role: str) -> None:
    """Take a role from a key."""
    where = (members.c.project == project, members.c.fingerprint == fingerprint, members.c.role == role)
    connection.execute(delete(members).where(*where))


def replace_members(connection: Connection, project: str, new: Iterable[Member]) -> None:
    """Let these be all members."""
    connection.execute(delete(members).where(members.c.project == project))
    for member in new:
        add_member(connection, project, member)


@dataclass(frozen=True)
class AgreementRow:
    """A revision of a project file; when it came is None where that was before the hub kept them."""

    revision: int
    digest: str
    received: int | None


def agreements_of(connection: Connection, project: str) -> list[AgreementRow]:
    """All of a project, the first one first."""
    # Without the files themselves: a list of revisions would read megabytes.
    columns = [agreements.c[name] for name in AgreementRow.__dataclass_fields__]
    query = select(*columns).where(agreements.c.project == project).order_by(agreements.c.revision)
    return [AgreementRow(*row) for row in connection.execute(query)]


def agreement_text(connection: Connection, project: str, revision: int) -> bytes | None:
    """The bytes of one; None where there is none."""
    where = (agreements.c.project == project, agreements.c.revision == revision)
    return connection.execute(select(agreements.c.agreement).where(*where)).scalar()


# Made once, as every poll asks it.
_HEAD = select(log.c.seq, log.c.digest).where(log.c.project == bindparam("project")).order_by(log.c.seq.desc()).limit(1)


def append_log(
    connection: Connection, project: str, now: float, who: str, action: str, facts: Mapping[str, Any]
) -> None:
    """Add an entry, in the transaction of the action: both are there, or neither.

    It never tells how large something is, for all members read it.
    """
    # Whoever writes to the project waits here for whoever does already.
    connection.execute(select(projects.c.id).where(projects.c.id == project).with_for_update())
    seq, previous = log_head(connection, project)
    # In seconds and of one length, as digests cover the text.
    time = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = hub_entry(project, seq + 1, time, who, action, facts, previous)
    connection.execute(insert(log).values(project=project, **entry))


def log_head(connection: Connection, project: str) -> tuple[int, str]:
    """Number and digest of the last entry."""
    row = connection.execute(_HEAD, {"project": project}).first()
    if row is None:
        return 0, LOG_START
    return row.seq, row.digest


def log_entries(connection: Connection, project: str, after: int = 0, most: int = 1000) -> list[dict[str, Any]]:
    """Entries after a number, the earliest first."""
    query = select(log).where(log.c.project == project, log.c.seq > after).order_by(log.c.seq).limit(most)
    rows = connection.execute(query).mappings()
    # As they were hashed: the project is in the digest, and not in the entry.
    return [{name: value for name, value in row.items() if name != "project"} for row in rows]
