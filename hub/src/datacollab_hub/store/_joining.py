"""Invitations, keys that wait to be approved, and browsers that are signed in."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from ._schema import browsers, invitations, requests, sessions


@dataclass(frozen=True)
class JoinRequest:
    """A key that was presented with an invitation."""

    fingerprint: str
    public: str
    role: str
    name: str
    asked: int
    state: str


def _hash(secret: str) -> str:
    # Fast and without salt, as nobody guesses 256 random bits; a cookie may be anything that somebody sent.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def new_invitation(connection: Connection, project: str, *, name: str, role: str, expires: float) -> str:
    """Keep an invitation by the hash of its secret, which is returned and nowhere else."""
    secret = secrets.token_urlsafe(32)
    connection.execute(
        insert(invitations).values(
            id=secrets.token_hex(16),
            project=project,
            name=name,
            role=role,
            secret_sha256=_hash(secret),
            expires=int(expires),
        )
    )
    return secret


def has_invitation(connection: Connection, project: str, secret: str, fingerprint: str, now: float) -> bool:
    """Whether `use_invitation` would give a key something."""
    mine = (invitations.c.project == project, invitations.c.secret_sha256 == _hash(secret))
    free = and_(invitations.c.used_by.is_(None), invitations.c.expires >= int(now))
    # The key that used it may ask again how it stands.
    query = select(invitations.c.id).where(*mine, or_(free, invitations.c.used_by == fingerprint))
    return connection.execute(query).first() is not None


def use_invitation(
    connection: Connection, project: str, secret: str, fingerprint: str, now: float
) -> tuple[str, str, bool] | None:
    """Role and name of an invitation that this key uses, and whether for the first time; None where it cannot.

    Of two keys that present the secret at once, one gets it.
    """
    mine = (invitations.c.project == project, invitations.c.secret_sha256 == _hash(secret))
    free = (invitations.c.used_by.is_(None), invitations.c.expires >= int(now))
    # Changed first and read then: of two keys at once the condition lets one through.
    used = connection.execute(update(invitations).where(*mine, *free).values(used_by=fingerprint))
    query = select(invitations.c.role, invitations.c.name).where(*mine, invitations.c.used_by == fingerprint)
    row = connection.execute(query).first()
    if row is None:
        return None
    return row.role, row.name, used.rowcount == 1


def add_request(
    connection: Connection, project: str, fingerprint: str, public_key: str, role: str, name: str, now: float
) -> bool:
    """Let a key wait for approval, in place of its earlier request; False where it waits or is approved."""
    where = (requests.c.project == project, requests.c.fingerprint == fingerprint)
    there = connection.execute(select(requests.c.state, requests.c.role).where(*where)).first()
    # Whoever was refused, or is invited to another role, may ask anew.
    if there is not None and there.role == role and there.state != "refused":
        return False
    connection.execute(delete(requests).where(*where))
    values = {"project": project, "fingerprint": fingerprint, "public_key": public_key, "role": role, "name": name}
    connection.execute(insert(requests).values(**values, asked=int(now), state="waiting"))
    return True


def join_requests(connection: Connection, project: str) -> list[JoinRequest]:
    """Keys that asked, the first one first."""
    columns = (requests.c.fingerprint, requests.c.public_key, requests.c.role, requests.c.name)
    query = select(*columns, requests.c.asked, requests.c.state).where(requests.c.project == project)
    return [JoinRequest(*row) for row in connection.execute(query.order_by(requests.c.asked, requests.c.fingerprint))]


def decide_request(connection: Connection, project: str, fingerprint: str, state: str) -> None:
    """Keep the decision on a request."""
    where = (requests.c.project == project, requests.c.fingerprint == fingerprint)
    connection.execute(update(requests).where(*where).values(state=state))


def new_session(connection: Connection, fingerprint: str, now: float, expires: float) -> str:
    """A secret that signs a browser in once."""
    secret = secrets.token_urlsafe(32)
    connection.execute(delete(sessions).where(sessions.c.expires < int(now)))
    values = {"secret_sha256": _hash(secret), "fingerprint": fingerprint, "expires": int(expires)}
    connection.execute(insert(sessions).values(**values))
    return secret


def redeem_session(connection: Connection, secret: str, now: float) -> str | None:
    """Whose secret it is, once; None where it was used, has expired, or is none."""
    where = (sessions.c.secret_sha256 == _hash(secret), sessions.c.expires >= int(now))
    # Read and deleted by one statement: of two that open the link at once, one is let in.
    return connection.execute(delete(sessions).where(*where).returning(sessions.c.fingerprint)).scalar()


def new_browser(connection: Connection, fingerprint: str, now: float, expires: float) -> str:
    """Let a browser in; its cookie, which is drawn anew and kept by its hash alone."""
    # 256 random bits; a copy of the database signs nobody in.
    cookie = secrets.token_urlsafe(32)
    # Expired ones go on the way, so that nothing has to wake for them.
    connection.execute(delete(browsers).where(browsers.c.expires < int(now)))
    values = {"cookie_sha256": _hash(cookie), "fingerprint": fingerprint, "expires": int(expires)}
    connection.execute(insert(browsers).values(**values))
    return cookie


def browser_key(connection: Connection, cookie: str, now: float) -> str | None:
    """Fingerprint of whoever signed the browser in; None where none did, or too long ago."""
    query = select(browsers.c.fingerprint).where(
        browsers.c.cookie_sha256 == _hash(cookie), browsers.c.expires >= int(now)
    )
    return connection.execute(query).scalar()


def forget_browser(connection: Connection, cookie: str) -> None:
    """Let a browser in no more."""
    connection.execute(delete(browsers).where(browsers.c.cookie_sha256 == _hash(cookie)))


def session_key(connection: Connection, secret: str, now: float) -> str | None:
    """Whose link would sign a browser in; it stays unused."""
    query = select(sessions.c.fingerprint).where(
        sessions.c.secret_sha256 == _hash(secret), sessions.c.expires >= int(now)
    )
    return connection.execute(query).scalar()
