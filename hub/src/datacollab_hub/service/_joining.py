"""Inviting, joining, approving; and a browser that reads, signed in by a link of its key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from datacollab.agreement import is_device_name
from datacollab.bundle import MASK_CARD_PREFIX, PublicKey
from datacollab.errors import ExchangeError

from ..rules import Person, Role, check_fingerprint, check_invited, check_name, is_id, not_found
from ..store import (
    Member,
    add_key,
    add_member,
    add_request,
    append_log,
    browser_key,
    decide_request,
    find_key,
    forget_browser,
    join_requests,
    new_browser,
    new_invitation,
    new_session,
    project_row,
    redeem_session,
    remove_member,
    roles_of,
    session_key,
    use_invitation,
)
from ._hub import Hub, the_project
from ._seen import Seen

# Whoever opened the project owns it; nobody is invited to that.
_INVITED = (Role.PARTY, Role.ANALYST, Role.AUDITOR)
# Long enough to open a link, too short for whoever finds it in a history.
_SESSION_SECONDS = 120
_DAY = 86_400


def invite(hub: Hub, person: Person, project: str, *, name: str, role: str, days: int) -> dict[str, Any]:
    """A link with which one key can ask to become a member.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``.
    """
    check_name(name, "name")
    if role not in _INVITED:
        raise ExchangeError("REQUEST_MALFORMED", f"role: one of {', '.join(_INVITED)} is wanted.")
    # Files are named by their party, on members' machines of every system.
    if role == Role.PARTY and is_device_name(name):
        raise ExchangeError(
            "REQUEST_MALFORMED", "name: on Windows it names a device, and no file can. Invite the party by another."
        )
    with hub.store.writing() as connection:
        row = the_project(connection, project, lock=True)
        secret = new_invitation(connection, row.id, name=name, role=role, expires=hub.clock() + days * _DAY)
        append_log(connection, row.id, hub.clock(), person.fingerprint, "invited", {"name": name, "role": role})
    # Behind the hash sign, as browsers send that part to no server.
    return {"link": f"{hub.settings.url}/v1/projects/{row.id}/join#{secret}"}


def read_presented_key(text: str) -> PublicKey:
    """The key of a request to join, which its owner has signed; the card of a mask key may follow.

    Raises
    ------
    ExchangeError
        ``KEY_MALFORMED``.
    """
    word, *proofs = text.split() or [""]
    key = PublicKey.from_text(word, what="public_key")
    if len(proofs) == 2 and proofs[1].startswith(MASK_CARD_PREFIX):
        # Whether the party has signed it, the owner's program sees when it drafts the project.
        del proofs[1]
    # The proof ties both halves together: nobody joins with half of another's key.
    if len(proofs) != 1 or not key.is_proven_by(proofs[0]):
        raise ExchangeError(
            "KEY_MALFORMED",
            "public_key: its owner's signature is missing, or not theirs. Send all lines of public.key, as "
            "`datacollab keys public` writes it.",
        )
    return key


def join(hub: Hub, person: Person, project: str, secret: str, public_key: str) -> dict[str, Any]:
    """Use an invitation up, and wait for the owner; the same one again with the same key says how it stands.

    Raises
    ------
    ExchangeError
        ``INVITATION_INVALID``, whether the project is there or not.
    """
    with hub.store.writing() as connection:
        row = None
        found = None
        if is_id(project):
            row = project_row(connection, project, lock=True)
        if row is not None:
            add_key(connection, person.key, hub.clock())
            found = use_invitation(connection, row.id, secret, person.fingerprint, hub.clock())
        if row is None or found is None:
            # All that was written is undone: strangers leave nothing behind.
            raise invitation_invalid()
        role, name, is_first = found
        # A second invitation must not bring a role that excludes the first.
        check_invited(Role(role), [Role(each) for each in roles_of(connection, row.id, person.fingerprint)])
        asking = (row.id, person.fingerprint, _lines(public_key), role, name)
        # After a lost answer it asks again, and waits only once.
        if is_first and add_request(connection, *asking, hub.clock()):
            facts = {"name": name, "role": role}
            append_log(connection, row.id, hub.clock(), person.fingerprint, "asked", facts)
        asked = next(each for each in join_requests(connection, row.id) if each.fingerprint == person.fingerprint)
    return {"project": row.id, "name": row.name, "role": asked.role, "state": asked.state}


def invitation_invalid() -> ExchangeError:
    """One sentence for all invitations that are of no use."""
    return ExchangeError(
        "INVITATION_INVALID",
        "The invitation was used by another key, has expired, or is none. Ask the project's owner for another.",
    )


def _lines(public_key: str) -> str:
    """A key, its proof and a card as ``public.key`` has them."""
    return "".join(f"{word}\n" for word in public_key.split())


def waiting_keys(hub: Hub, project: str) -> list[dict[str, Any]]:
    """Return keys that asked to join, and the decision on each."""
    with hub.store.reading() as connection:
        the_project(connection, project)
        return [
            {
                "fingerprint": each.fingerprint,
                "public_key": each.public,
                "name": each.name,
                "role": each.role,
                "asked": each.asked,
                "state": each.state,
            }
            for each in join_requests(connection, project)
        ]


def decide(hub: Hub, person: Person, project: str, fingerprint: str, *, approve: bool) -> dict[str, Any]:
    """Approve or refuse a key.

    Where there is a project file already, parties and analyst are those that it names: the owner puts the key into it.
    """
    check_fingerprint(fingerprint)
    with hub.store.writing() as connection:
        row = the_project(connection, project, lock=True)
        asked = next((each for each in join_requests(connection, row.id) if each.fingerprint == fingerprint), None)
        if asked is None:
            raise not_found()
        state = "approved" if approve else "refused"
        before = roles_of(connection, row.id, fingerprint)
        if approve:
            role = Role(asked.role)
            check_invited(role, [Role(each) for each in before])
            # Once there is a project file, its signature says who is in; auditors it does not name.
            if role == Role.AUDITOR or row.digest is None:
                add_member(connection, row.id, Member(fingerprint, role, asked.name))
        elif asked.role == Role.AUDITOR or row.digest is None:
            # Whoever was let in before is put out by the same route.
            remove_member(connection, row.id, fingerprint, asked.role)
        decide_request(connection, row.id, fingerprint, state)
        # Whoever was approved may have been left out since, and is a member again now: members read of that too.
        if state != asked.state or roles_of(connection, row.id, fingerprint) != before:
            facts = {"key": fingerprint, "name": asked.name, "role": asked.role}
            append_log(connection, row.id, hub.clock(), person.fingerprint, state, facts)
    return {"fingerprint": fingerprint, "name": asked.name, "role": asked.role, "state": state}


def new_browser_session(hub: Hub, person: Person) -> dict[str, Any]:
    """A link that signs a browser in as this key, once and within two minutes."""
    with hub.store.writing() as connection:
        secret = new_session(connection, person.fingerprint, hub.clock(), hub.clock() + _SESSION_SECONDS)
    return {"link": f"{hub.settings.url}/session/{secret}"}


def redeem_browser_session(hub: Hub, secret: str) -> str:
    """Whose link it is; for the pages that sign a browser in.

    Raises
    ------
    ExchangeError
        ``INVITATION_INVALID``.
    """
    with hub.store.writing() as connection:
        fingerprint = redeem_session(connection, secret, hub.clock())
    if fingerprint is None:
        raise ExchangeError("INVITATION_INVALID", "The link was used, or is older than two minutes. Ask for another.")
    return fingerprint


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
