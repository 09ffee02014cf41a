"""Keys that the hub knows, their roles in projects, and requests that were seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import Connection, Engine, and_, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from datacollab.bundle import PublicKey
from datacollab.errors import ExchangeError

from ._database import transaction
from ._schema import keys, members, nonces

# Reading a key costs more than finding it, and members ask again and again.
_MOST_READ = 4096
_read = lru_cache(_MOST_READ)(PublicKey.from_text)
"""Of the same text comes the same key."""

_THEIRS = and_(members.c.fingerprint == keys.c.fingerprint, members.c.project == bindparam("project"))
_STANDING = (
    select(keys.c.public, keys.c.may_open, members.c.role)
    # Also for a key that is in no project, or asks about none.
    .outerjoin_from(keys, members, _THEIRS)
    .where(keys.c.fingerprint == bindparam("fingerprint"))
)


@dataclass(frozen=True)
class Standing:
    """Roles of a key on the hub, and in a project."""

    key: PublicKey
    may_open: bool
    roles: frozenset[str]


def standing_of(connection: Connection, fingerprint: str, project: str | None) -> Standing | None:
    """All that is to be known of who asks, in one question; None where the key is not known."""
    # No project has an empty id, so nobody has a role there.
    rows = connection.execute(_STANDING, {"fingerprint": fingerprint, "project": project or ""}).all()
    if not rows:
        return None
    return Standing(
        _read(rows[0].public), rows[0].may_open, frozenset(row.role for row in rows if row.role is not None)
    )


def find_key(connection: Connection, fingerprint: str) -> tuple[PublicKey, bool] | None:
    """A key, and whether it may open projects."""
    row = connection.execute(select(keys).where(keys.c.fingerprint == fingerprint)).first()
    if row is None:
        return None
    return _read(row.public), row.may_open


def add_key(connection: Connection, key: PublicKey, now: float) -> None:
    """Know a key from now on.

    Raises
    ------
    ExchangeError
        ``KEY_MALFORMED``, when another key has its fingerprint.
    """
    there = find_key(connection, key.fingerprint)
    if there is None:
        values = {"fingerprint": key.fingerprint, "public": key.text, "may_open": False, "added": int(now)}
        connection.execute(insert(keys).values(**values))
    # Two keys of one fingerprint can be searched for: the first one keeps it.
    elif there[0] != key:
        raise ExchangeError(
            "KEY_MALFORMED",
            f"Another key has the fingerprint {key.fingerprint}. Make new keys with `datacollab keys new`.",
        )


def allow_key(connection: Connection, key: PublicKey, now: float) -> None:
    """Let a key open projects."""
    add_key(connection, key, now)
    connection.execute(update(keys).where(keys.c.fingerprint == key.fingerprint).values(may_open=True))


def roles_of(connection: Connection, project: str, fingerprint: str) -> frozenset[str]:
    """Return the roles of a key in a project; none where there is no such project."""
    query = select(members.c.role).where(members.c.project == project, members.c.fingerprint == fingerprint)
    return frozenset(connection.execute(query).scalars())


def remember_nonce(engine: Engine, fingerprint: str, nonce: str, now: float, until: float) -> None:
    """Take a request once, in a transaction of its own: it was seen, whatever comes of it.

    Raises
    ------
    ExchangeError
        ``REPLAYED``.
    """
    try:
        with transaction(engine) as connection:
            # Expired ones go on the way; the primary key notices a second time.
            connection.execute(delete(nonces).where(nonces.c.until < int(now)))
            connection.execute(insert(nonces).values(fingerprint=fingerprint, nonce=nonce, until=int(until)))
    except IntegrityError:
        raise ExchangeError(
            "REPLAYED",
            "This very request was taken before. Make it anew, so that it is signed anew; if it was not you who sent "
            "it twice, somebody on the way keeps what passes.",
        ) from None
