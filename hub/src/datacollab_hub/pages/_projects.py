"""A key's projects, how one stands, and who asks to join it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from fastapi import Response

from .. import service
from ..rules import Role
from ..service import Member
from ._visit import Visit, Visiting, new_router

ROUTER = new_router()


@dataclass(frozen=True)
class _Shown:
    """A key among the members, with all that it is.

    Attributes
    ----------
    shared : bool or None
        Of a party, whether its share is here; None where nobody waits for one.
    """

    name: str
    roles: tuple[str, ...]
    fingerprint: str
    is_you: bool
    shared: bool | None


@ROUTER.get("/")
def own_projects(visit: Visiting) -> Response:
    """Projects of the key that signed in."""
    return visit.show("projects.html", projects=service.own_projects(visit.hub, visit.person))


@ROUTER.get("/projects/{project}")
def overview(visit: Visiting, project: str) -> Response:
    """Show how a project stands, and the reader's next steps."""
    status = service.project_status(visit.hub, visit.person, project)
    members = service.project_members(visit.hub, project)
    return visit.show(
        "overview.html",
        project=status,
        here="overview",
        members=_show(members, status, visit),
        days_left=_days_left(status["deadline"], visit.hub.clock()),
        now=int(visit.hub.clock()),
        steps=_next_steps(visit, status, members),
    )


@ROUTER.get("/projects/{project}/requests")
def waiting_keys(visit: Visiting, project: str) -> Response:
    """Keys that were presented, for the owner."""
    return visit.show(
        "requests.html",
        project=service.project_status(visit.hub, visit.person, project),
        here="requests",
        requests=service.waiting_keys(visit.hub, project),
    )


def _days_left(deadline: str | None, now: float) -> int | None:
    """Whole days until the last one; negative after it."""
    if deadline is None:
        return None
    # In UTC, as `check_open` counts.
    return (date.fromisoformat(deadline) - datetime.fromtimestamp(now, UTC).date()).days


def _show(members: Sequence[Member], status: dict[str, Any], visit: Visit) -> list[_Shown]:
    by_key: dict[str, list[Member]] = {}
    for member in members:
        by_key.setdefault(member.fingerprint, []).append(member)
    found = []
    for fingerprint, its in by_key.items():
        # Of a party that owns the project, its own name.
        name = next((each.name for each in its if each.role == Role.PARTY), its[0].name)
        is_awaited = name in status["parties"] and any(each.role == Role.PARTY for each in its)
        roles = tuple(sorted((each.role for each in its), key=_rank))
        is_you = fingerprint == visit.person.fingerprint
        shared = None
        if is_awaited:
            shared = name in status["shared"]
        found.append(_Shown(name, roles, fingerprint, is_you, shared))
    return sorted(found, key=lambda each: (_rank(each.roles[0]), each.name))


def _rank(role: str) -> int:
    return (Role.OWNER, Role.ANALYST, Role.PARTY, Role.AUDITOR).index(Role(role))


def _next_steps(visit: Visit, status: dict[str, Any], members: Sequence[Member]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the reader's next steps, each with its commands."""
    roles = visit.person.roles
    steps: list[tuple[str, tuple[str, ...]]] = []
    if Role.OWNER in roles:
        asked = [each for each in service.waiting_keys(visit.hub, status["project"]) if each["state"] == "waiting"]
        if asked:
            text = f"{len(asked)} asked to join and wait for you: see Requests."
            steps.append((text, ("datacollab remote requests",)))
        if status["digest"] is None:
            steps.append(("The project file is not here yet. Send it.", ("datacollab remote push",)))
    own = {each.name for each in members if each.fingerprint == visit.person.fingerprint and each.role == Role.PARTY}
    is_missing = bool(own & {*status["missing"]})
    is_asked_again = is_missing and status["rounds"] > 0
    if is_asked_again:
        making = ("datacollab remote pull", "datacollab party share TABLE --round inbox/round.dcround")
        text = "The analyst asks for a further round. Answer with the same table, and send the answer."
        steps.append((text, (*making, "datacollab remote push")))
    elif is_missing:
        making = ("datacollab party share TABLE", "datacollab remote push")
        steps.append(("Your share is not here yet. Make it, and send it.", making))
    if own & {*status["waiting"]} and not is_asked_again:
        steps.append(("What the analyst made for you lies here. Fetch it.", ("datacollab remote pull",)))
    # From fewer parties the agreement allows no model.
    if Role.ANALYST in roles and status["digest"] is not None and len(status["shared"]) >= status["quorum"]:
        training = ("datacollab remote pull", "datacollab analyst integrate")
        steps.append(("Enough parties have shared for a model.", training))
    return steps
