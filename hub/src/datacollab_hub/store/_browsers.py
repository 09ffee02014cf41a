"""Browsers that are signed in to the pages: cookies by their hashes."""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import Connection, delete, insert, select

from ._schema import browsers, sessions

__all__ = ["browser_key", "forget_browser", "new_browser", "session_key"]


def _hash(secret: str) -> str:
    # A cookie may be anything that somebody sent.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


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
