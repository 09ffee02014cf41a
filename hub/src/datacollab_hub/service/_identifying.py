"""Whose request it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datacollab.bundle import PublicKey

from ..requests import CLOCK_WINDOW, Verified, check_body, check_signed, verify_head, verify_request
from ..rules import Person, Role
from ..store import Standing, has_invitation, remember_nonce, standing_of
from ._hub import Hub
from ._joining import invitation_invalid
from ._seen import Seen

__all__ = ["Identified", "check_signed", "identify", "identify_invited"]

_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Identified:
    """Who asks, before the body was read.

    Attributes
    ----------
    person : Person
    verified : Verified
        The request that they signed.
    """

    person: Person
    verified: Verified

    def check_body(self, body: bytes) -> None:
        """Refuse another body than the one that was signed.

        Raises
        ------
        ExchangeError
            ``SIGNATURE_INVALID``.
        """
        check_body(self.verified, body)


def identify(
    hub: Hub, seen: Seen, method: str, target: str, headers: Mapping[str, str], *, project: str | None
) -> Identified:
    """Verify a request before its body is read, take it once, and find the roles of its key.

    Parameters
    ----------
    hub : Hub
    seen : Seen
        Requests that this process has answered.
    method : str
    target : str
        Path and query as they came.
    headers : mapping of str to str
    project : str, optional
        That the request is about.

    Raises
    ------
    ExchangeError
        As `verify_head`, and ``REPLAYED``, ``TOO_MANY_REQUESTS``.
    """
    now = hub.clock()
    standing: Standing | None = None

    def key_of(name: str) -> PublicKey | None:
        nonlocal standing
        with hub.store.reading() as connection:
            standing = standing_of(connection, name, project)
        return None if standing is None else standing.key

    found = verify_head(method, hub.settings.url + target, headers, key_of, now)
    seen.count(found.key.fingerprint, now)
    _take_once(hub, seen, found, method, now)
    roles = set() if standing is None else {*map(Role, standing.roles), *({Role.OPENER} if standing.may_open else ())}
    return Identified(Person(found.key, frozenset({Role.KNOWN, *roles})), found)


def identify_invited(
    hub: Hub,
    seen: Seen,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    project: str | None,
    presented: PublicKey,
    secret: str,
) -> Person:
    """Verify a request to join, which brings its key along; nothing is kept of one without an invitation.

    Raises
    ------
    ExchangeError
        As `verify_request`, and ``INVITATION_INVALID``, ``REPLAYED``, ``TOO_MANY_REQUESTS``.
    """
    now = hub.clock()
    found = verify_request(method, hub.settings.url + target, headers, body, lambda _: presented, now)
    fingerprint = found.key.fingerprint
    seen.count(fingerprint, now)
    with hub.store.reading() as connection:
        if project is None or not has_invitation(connection, project, secret, fingerprint, now):
            raise invitation_invalid()
    _take_once(hub, seen, found, method, now)
    return Person(found.key, frozenset({Role.INVITED}))


def _take_once(hub: Hub, seen: Seen, found: Verified, method: str, now: float) -> None:
    """Requests that change nothing are remembered by the process alone, as answering one again does no harm."""
    until = found.created + CLOCK_WINDOW + 1
    if method in _READING:
        seen.take(found.key.fingerprint, found.nonce, now, until)
    else:
        remember_nonce(hub.store.engine, found.key.fingerprint, found.nonce, now, until)
