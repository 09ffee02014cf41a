"""The log of a project: its actions, in a chain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from ..requests import LOG_START, hub_entry
from ._schema import log, projects

__all__ = ["append_log", "log_entries", "log_head"]

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
