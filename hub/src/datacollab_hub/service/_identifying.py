"""Whose request it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datacollab.bundle import PublicKey

from ..requests import CLOCK_WINDOW, Verified, check_body, verify_head, verify_request
from ..rules import Person, Role
from ..store import Standing, has_invitation, remember_nonce, standing_of
from ._hub import Hub
from ._joining import invitation_invalid
from ._seen import Seen

# Methods that are safe by RFC 9110, section 9.2.1.
_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class Head:
    """A request without its body, as it came.

    Attributes
    ----------
    target : str
        Path and query.
    project : str or None
        The project that the request is about.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    project: str | None


@dataclass(frozen=True)
class Identified:
    """Who asks, before the body was read.

    Attributes
    ----------
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


def identify(hub: Hub, seen: Seen, head: Head) -> Identified:
    """Verify a request before its body is read, take it once, and find the roles of its key.

    Parameters
    ----------
    hub : Hub
    seen : Seen
        Requests that this process has answered.
    head : Head

    Raises
    ------
    ExchangeError
        As `verify_head`, and ``REPLAYED``, ``TOO_MANY_REQUESTS``.
    """
    now = hub.clock()
    standing: Standing | None = None

    def key_of(name: str) -> PublicKey | None:
        nonlocal standing
        # Key and roles by one question, as every request asks it.
        with hub.store.reading() as connection:
            standing = standing_of(connection, name, head.project)
        if standing is None:
            return None
        return standing.key

    found = verify_head(head.method, hub.settings.url + head.target, head.headers, key_of, now)
    # By the key that signed: naming another's uses up none of theirs.
    seen.count(found.key.fingerprint, now)
    # After the count: who asks too often must not fill the memory of nonces.
    _take_once(hub, seen, found, head.method, now)
    return Identified(Person(found.key, _roles(standing)), found)


def _roles(standing: Standing | None) -> frozenset[Role]:
    roles = {Role.KNOWN}
    if standing is not None:
        roles.update(map(Role, standing.roles))
        if standing.may_open:
            roles.add(Role.OPENER)
    return frozenset(roles)


def identify_invited(hub: Hub, seen: Seen, head: Head, body: bytes, *, presented: PublicKey, secret: str) -> Person:
    """Verify a request to join, which brings its key along; nothing is kept of one without an invitation.

    Raises
    ------
    ExchangeError
        As `verify_request`, and ``INVITATION_INVALID``, ``REPLAYED``, ``TOO_MANY_REQUESTS``.
    """
    now = hub.clock()
    found = verify_request(head.method, hub.settings.url + head.target, head.headers, body, lambda _: presented, now)
    fingerprint = found.key.fingerprint
    seen.count(fingerprint, now)
    with hub.store.reading() as connection:
        # Before the nonce is kept: without an invitation a stranger leaves no row.
        if head.project is None or not has_invitation(connection, head.project, secret, fingerprint, now):
            raise invitation_invalid()
    _take_once(hub, seen, found, head.method, now)
    return Person(found.key, frozenset({Role.INVITED}))


def _take_once(hub: Hub, seen: Seen, found: Verified, method: str, now: float) -> None:
    """Requests that change nothing are remembered by the process alone, as answering one again does no harm."""
    # A second more, as times are rounded: beyond it the clock refuses the request.
    until = found.created + CLOCK_WINDOW + 1
    if method in _READING:
        seen.take(found.key.fingerprint, found.nonce, now, until)
    else:
        remember_nonce(hub.store.engine, found.key.fingerprint, found.nonce, now, until)
