"""Opening projects, their members and project files, then and now, and how they stand."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from datacollab.agreement import Project, read_project
from datacollab.bundle import spell
from datacollab.errors import ExchangeError

from ..rules import MEMBERS, Person, check_follows, check_name, not_found
from ..store import (
    AgreementRow,
    Member,
    ProjectRow,
    add_key,
    agreement_text,
    agreements_of,
    append_log,
    count_owned,
    log_entries,
    members_of,
    new_project,
    project_owner,
    project_row,
    projects_of,
    replace_members,
    roles_of,
    set_agreement,
)
from ._hub import Hub, require_agreement, the_project

_LAST_REVISION = 2**31 - 1
"""What a column of numbers holds in PostgreSQL."""


def open_project(hub: Hub, person: Person, name: str) -> dict[str, Any]:
    """Open a project, whose owner is who asks.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, ``QUOTA_EXCEEDED``.
    """
    check_name(name, "name")
    with hub.store.writing() as connection:
        # Counting locks the key's row: two requests at once cannot both be the last that is allowed.
        n_there, _ = count_owned(connection, person.fingerprint)
        if n_there >= hub.settings.projects_per_key:
            raise ExchangeError(
                "QUOTA_EXCEEDED",
                f"The key {person.fingerprint} has opened {n_there} projects, and this hub gives a key "
                f"{hub.settings.projects_per_key}. Ask its operator for more.",
            )
        project = new_project(connection, name, person.fingerprint, hub.clock())
        append_log(connection, project, hub.clock(), person.fingerprint, "opened", {"name": name})
        return _show(connection, project, person)


def own_projects(hub: Hub, person: Person) -> list[dict[str, Any]]:
    """Those that a key is a member of."""
    with hub.store.reading() as connection:
        return [_show(connection, row.id, person) for row in projects_of(connection, person.fingerprint)]


def _show(connection: Connection, project: str, person: Person) -> dict[str, Any]:
    row = project_row(connection, project)
    if row is None:
        raise not_found()
    return _describe(row, roles_of(connection, project, person.fingerprint))


def _describe(row: ProjectRow, roles: Collection[str]) -> dict[str, Any]:
    return {"project": row.id, "name": row.name, "roles": sorted(roles), "revision": row.revision, "digest": row.digest}


def put_agreement(hub: Hub, person: Person, project: str, data: bytes) -> tuple[bool, dict[str, Any]]:
    """Let a project file hold from now on; return whether it is a new one, and the present one.

    Members are then those of the file, and auditors.  Who is none of them any more is no member.

    Raises
    ------
    ExchangeError
        As `read_project`; ``REQUEST_MALFORMED``, when the revision is a number that no database here holds;
        ``NOT_A_MEMBER``, when another key owns it; ``PROJECT_OLDER``; ``QUOTA_EXCEEDED``.
    """
    # Before the transaction: reading a large file takes a while, and writers would wait.
    said = read_agreement(data)
    if said.revision > _LAST_REVISION:
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"revision: {said.revision} was found; a number up to {_LAST_REVISION} is wanted. Sign the project file "
            "again with the number after the one that the hub has.",
        )
    # By the whole key, as a fingerprint is a hash cut short.
    if said.owner != person.key:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The project file's owner is {said.owner.fingerprint}; this project was opened by {person.fingerprint}. "
            "Let that key's owner sign it, or open a project with the other key.",
        )
    with hub.store.writing() as connection:
        row = the_project(connection, project, lock=True)
        there = None
        if row.revision is not None and row.digest is not None:
            there = (row.revision, row.digest)
        is_new = check_follows(said.revision, said.digest, there)
        if is_new:
            # Of a new file alone: the very same one again takes no room.
            _check_room(hub, connection, person, len(data))
            _replace(hub, connection, row, said, data)
            facts = {"digest": said.digest, "revision": said.revision}
            append_log(connection, row.id, hub.clock(), person.fingerprint, "agreement", facts)
        return is_new, _show(connection, row.id, person)


def _check_room(hub: Hub, connection: Connection, person: Person, size: int) -> None:
    """Refuse a project file when those that a key's projects have had would take too much together."""
    _, n_bytes = count_owned(connection, person.fingerprint)
    if n_bytes + size > hub.settings.agreement_bytes:
        raise ExchangeError(
            "QUOTA_EXCEEDED",
            f"All revisions of the project files of the key {person.fingerprint} would take more than the "
            f"{hub.settings.agreement_bytes} bytes that this hub gives a key. Make the file smaller, or ask the hub's "
            "operator.",
        )


def owner_of(hub: Hub, project: str) -> str | None:
    """Who opened a project; None where there is none."""
    with hub.store.reading() as connection:
        return project_owner(connection, project)


def read_agreement(data: bytes) -> Project:
    """The project's own code reads files; where it read this one is nobody's business."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "project.toml"
        path.write_bytes(data)
        try:
            return read_project(path)[0]
        except ExchangeError as error:
            # The sender knows the file by its own name; paths of this machine are none of theirs.
            raise ExchangeError(error.code, str(error).replace(str(path), "project.toml")) from None


def _replace(hub: Hub, connection: Connection, row: ProjectRow, said: Project, data: bytes) -> None:
    new = [Member(said.owner.fingerprint, "owner", "owner"), Member(said.analyst.fingerprint, "analyst", "analyst")]
    new += [Member(key.fingerprint, "party", name) for name, key in said.parties.items()]
    named = {member.fingerprint for member in new}
    # Auditors stay, as no project file names them, unless this one gives the key another role.
    auditors = [member for member in members_of(connection, row.id) if member.role == "auditor"]
    # Keys before members, which refer to them.
    for key in (said.owner, said.analyst, *said.parties.values()):
        add_key(connection, key, hub.clock())
    replace_members(connection, row.id, [*new, *(each for each in auditors if each.fingerprint not in named)])
    set_agreement(
        connection,
        row.id,
        agreement=data,
        digest=said.digest,
        revision=said.revision,
        deadline=said.deadline,
        quorum=said.fewest_parties,
        now=hub.clock(),
    )


def agreement_of(hub: Hub, project: str) -> bytes:
    """The very bytes that the owner sent."""
    with hub.store.reading() as connection:
        row = the_project(connection, project)
    require_agreement(row)
    # Byte for byte: the owner's signature is over this spelling.
    return row.agreement or b""


def project_status(hub: Hub, person: Person, project: str) -> dict[str, Any]:
    """Return how a project stands. It is the same for every member: it tells who sent files, and nothing of them."""
    with hub.store.reading() as connection:
        view = hub.views.of(connection, project)
    seq, head = view.head
    fingerprint = None
    deadline = None
    if view.row.digest is not None:
        fingerprint = spell(bytes.fromhex(view.row.digest), 20)
    if view.row.deadline is not None:
        deadline = view.row.deadline.isoformat()
    return {
        **_describe(view.row, person.roles & MEMBERS),
        "fingerprint": fingerprint,
        "deadline": deadline,
        "quorum": view.row.quorum,
        **view.standing,
        "now": datetime.fromtimestamp(hub.clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "head": {"seq": seq, "digest": head},
    }


def project_log(hub: Hub, project: str, after: int) -> list[dict[str, Any]]:
    """Entries of the log after a number, at most a thousand at once."""
    with hub.store.reading() as connection:
        the_project(connection, project)
        return log_entries(connection, project, after)


def project_members(hub: Hub, project: str) -> list[Member]:
    """All of them: every member may read the project file, which names them, and the log, which names auditors."""
    with hub.store.reading() as connection:
        return members_of(connection, the_project(connection, project).id)


def project_revisions(hub: Hub, project: str) -> list[AgreementRow]:
    """Project files that the hub has, the first one first."""
    with hub.store.reading() as connection:
        return agreements_of(connection, the_project(connection, project).id)


def read_agreed_project(hub: Hub, project: str, revision: int | None = None) -> tuple[Project, bytes]:
    """A project file, its signature verified once more, and its very bytes.

    Parameters
    ----------
    hub : Hub
    project : str
    revision : int, optional
        The one that holds, by default.

    Raises
    ------
    ExchangeError
        ``AGREEMENT_MISSING``, ``NOT_FOUND``, and as `read_project`.
    """
    with hub.store.reading() as connection:
        row = the_project(connection, project)
        require_agreement(row)
        data = row.agreement
        if revision is not None:
            data = agreement_text(connection, row.id, revision)
    if data is None:
        raise not_found()
    # Verified each time it is read: whoever can write to the database could have changed it.
    return read_agreement(data), data
