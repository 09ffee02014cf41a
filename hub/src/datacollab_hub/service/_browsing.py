"""A browser that reads: signed in by a link of its key, and out again."""

from __future__ import annotations

from sqlalchemy import Connection

from datacollab.bundle import PublicKey
from datacollab.errors import ExchangeError

from ..rules import Person, Role
from ..store import browser_key, find_key, forget_browser, new_browser, roles_of, session_key
from ._hub import Hub
from ._joining import redeem_browser_session
from ._seen import Seen

__all__ = ["BROWSER_SECONDS", "link_key", "sign_in", "sign_out", "visitor"]

# Half a working day, as a browser may be left open where others pass.
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
    # In a transaction of its own: whatever fails afterwards, the link works no second time.
    fingerprint = redeem_browser_session(hub, secret)
    now = hub.clock()
    with hub.store.writing() as connection:
        # A cookie that somebody planted in the browser beforehand must not become a signed-in one.
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
    roles = {Role.KNOWN}
    with hub.store.reading() as connection:
        known = _find_reader(connection, cookie, now)
        if known is None:
            raise ExchangeError(
                "NOT_SIGNED_IN",
                "This browser is not signed in, or was signed in more than four hours ago. Run `datacollab remote "
                "dashboard` in your folder, which opens these pages.",
            )
        key, may_open = known
        if may_open:
            roles.add(Role.OPENER)
        if project:
            # Anew for each page: whoever left the project reads no more of it from then on.
            roles.update(map(Role, roles_of(connection, project, key.fingerprint)))
    # A browser's requests count with those of its key's programs.
    seen.count(key.fingerprint, now)
    return Person(key, frozenset(roles))


def _find_reader(connection: Connection, cookie: str | None, now: float) -> tuple[PublicKey, bool] | None:
    """The key that signed a browser in, and whether it may open projects; None where none did."""
    if cookie is None:
        return None
    fingerprint = browser_key(connection, cookie, now)
    if fingerprint is None:
        return None
    return find_key(connection, fingerprint)
