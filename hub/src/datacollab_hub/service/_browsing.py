"""A browser that reads: signed in by a link of its key, and out again."""

from __future__ import annotations

from datacollab.errors import ExchangeError

from ..rules import Person, Role
from ..store import browser_key, find_key, forget_browser, new_browser, roles_of, session_key
from ._hub import Hub
from ._joining import redeem_browser_session
from ._seen import Seen

__all__ = ["BROWSER_SECONDS", "link_key", "sign_in", "sign_out", "visitor"]

BROWSER_SECONDS = 4 * 3600
"""After these a browser has to sign in again, whatever it did meanwhile."""


def link_key(hub: Hub, secret: str) -> str:
    """Fingerprint of whose link it is; the link stays unused.

    Raises
    ------
    ExchangeError
        ``INVITATION_INVALID``.
    """
    with hub.store.reading() as connection:
        fingerprint = session_key(connection, secret, hub.clock())
    if fingerprint is None:
        raise ExchangeError(
            "INVITATION_INVALID",
            "The link was used, or is older than two minutes. Run `datacollab remote dashboard` for another.",
        )
    return fingerprint


def sign_in(hub: Hub, secret: str, *, before: str | None) -> str:
    """Use a link up; the cookie of a browser that is let in.

    Parameters
    ----------
    hub : Hub
    secret : str
        Of the link.
    before : str, optional
        The cookie that the browser had, which is of no use from now on.

    Raises
    ------
    ExchangeError
        ``INVITATION_INVALID``.
    """
    fingerprint = redeem_browser_session(hub, secret)
    now = hub.clock()
    with hub.store.writing() as connection:
        if before is not None:
            forget_browser(connection, before)
        return new_browser(connection, fingerprint, now, now + BROWSER_SECONDS)


def sign_out(hub: Hub, cookie: str) -> None:
    """Let a browser in no more."""
    with hub.store.writing() as connection:
        forget_browser(connection, cookie)


def visitor(hub: Hub, seen: Seen, cookie: str | None, *, project: str | None) -> Person:
    """Return the reader, and the key's present roles in the project that they read about.

    Raises
    ------
    ExchangeError
        ``NOT_SIGNED_IN``, ``TOO_MANY_REQUESTS``.
    """
    now = hub.clock()
    with hub.store.reading() as connection:
        fingerprint = None if cookie is None else browser_key(connection, cookie, now)
        known = None if fingerprint is None else find_key(connection, fingerprint)
        if fingerprint is None or known is None:
            raise ExchangeError(
                "NOT_SIGNED_IN",
                "This browser is not signed in, or was signed in more than four hours ago. Run `datacollab remote "
                "dashboard` in your folder, which opens these pages.",
            )
        roles = {Role(role) for role in roles_of(connection, project, fingerprint)} if project else set()
    seen.count(fingerprint, now)
    return Person(known[0], frozenset({Role.KNOWN, *roles, *({Role.OPENER} if known[1] else ())}))
