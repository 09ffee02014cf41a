"""Files, with the facts and checks that the hub has of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Response

from .. import service
from ..rules import KINDS, check_sha256, not_found
from ..service import Member
from ._visit import Visiting, new_router

ROUTER = new_router()
KIND_WORDS = {
    "anchor": "Anchor",
    "share": "Share",
    "sums": "Sums under masks",
    "round": "Request for a round",
    "model": "Model",
    "sums-model": "Model of sums",
    "answers": "Anchor predictions",
}
"""What people call kinds of files."""


@ROUTER.get("/projects/{project}/files")
def list_files(visit: Visiting, project: str) -> Response:
    """Those that the key that signed in may see."""
    names = names_of(service.project_members(visit.hub, project))
    files = service.list_files(visit.hub, visit.person, project)
    return visit.show(
        "files.html",
        project=service.project_status(visit.hub, visit.person, project),
        here="files",
        files=sorted(files, key=lambda each: -each["received"]),
        names=names,
        words=KIND_WORDS,
        kinds=KINDS,
    )


@ROUTER.get("/projects/{project}/files/{sha256}")
def file(visit: Visiting, project: str, sha256: str) -> Response:
    """One of them."""
    check_sha256(sha256)
    files = [each for each in service.list_files(visit.hub, visit.person, project) if each["sha256"] == sha256]
    if not files:
        raise not_found()
    # The last one that came, where it was withdrawn and sent again.
    found: Mapping[str, Any] = files[-1]
    return visit.show(
        "file.html",
        project=service.project_status(visit.hub, visit.person, project),
        here="files",
        file=found,
        names=names_of(service.project_members(visit.hub, project)),
        words=KIND_WORDS,
        kind=KINDS[found["kind"]],
    )


def names_of(members: Sequence[Member]) -> dict[str, str]:
    """Return a name for each key: a party's name before a role."""
    # Parties last, as the last name of a key is the one that stays.
    by_role = sorted(members, key=lambda each: each.role == "party")
    return {each.fingerprint: each.name for each in by_role}
