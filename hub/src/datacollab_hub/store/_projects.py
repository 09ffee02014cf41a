"""Projects, their members, and the project file that holds."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, delete, func, insert, select, update

from ._schema import agreements, keys, members, projects

__all__ = [
    "Member",
    "ProjectRow",
    "add_member",
    "all_projects",
    "count_owned",
    "members_of",
    "new_project",
    "project_owner",
    "project_row",
    "projects_of",
    "remove_member",
    "replace_members",
    "set_agreement",
]


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
) -> None:
    """Keep the very bytes that the owner signed, and the facts that the hub needs."""
    values = {
        "agreement": agreement,
        "digest": digest,
        "revision": revision,
        "deadline": deadline,
        "quorum": quorum,
    }
    connection.execute(update(projects).where(projects.c.id == project).values(**values))


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
