"""Routes that members ask all the time; routes are looked up in their order, so these come first."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from .. import service
from ..rules import Person
from ._admission import answer_polled

__all__ = ["ROUTER"]

ROUTER = APIRouter(prefix="/v1/projects/{project}")


# Without a dependency on `Signed`, which would change threads: `answer_polled` admits the request itself.
@ROUTER.get("")
async def status(request: Request) -> Response:
    """How it stands."""
    return await answer_polled(request, service.project_status)


@ROUTER.get("/files")
async def list_files(request: Request) -> Response:
    """Files that the key that asks may see."""
    return await answer_polled(request, _files)


def _files(hub: service.Hub, person: Person, project: str) -> dict[str, Any]:
    return {"files": service.list_files(hub, person, project)}
