"""Routes about projects, their members, their project file and their log."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from .. import service
from ._admission import Signed
from ._bodies import Approval, Invitation, Joining, NewProject, Nothing, parse_body

__all__ = ["ROUTER"]

ROUTER = APIRouter(prefix="/v1")


@ROUTER.post("/sessions", status_code=201)
def new_session(call: Signed) -> dict[str, Any]:
    """A link that signs a browser in."""
    parse_body(Nothing, call.body)
    return service.new_browser_session(call.hub, call.person)


@ROUTER.get("/projects")
def own_projects(call: Signed) -> dict[str, Any]:
    """Projects of the key that asks."""
    return {"projects": service.own_projects(call.hub, call.person)}


@ROUTER.post("/projects", status_code=201)
def open_project(call: Signed) -> dict[str, Any]:
    """Open a project."""
    return service.open_project(call.hub, call.person, parse_body(NewProject, call.body).name)


@ROUTER.post("/projects/{project}/invitations", status_code=201)
def invite(call: Signed, project: str) -> dict[str, Any]:
    """A link for one key."""
    body = parse_body(Invitation, call.body)
    return service.invite(call.hub, call.person, project, name=body.name, role=body.role, days=body.days)


# 202, as whether the key gets in is decided later, by the owner.
@ROUTER.post("/projects/{project}/join", status_code=202)
def join(call: Signed, project: str) -> dict[str, Any]:
    """Present a key with an invitation."""
    body = parse_body(Joining, call.body)
    return service.join(call.hub, call.person, project, body.secret, body.public_key)


@ROUTER.get("/projects/{project}/requests")
def waiting_keys(call: Signed, project: str) -> dict[str, Any]:
    """Keys that were presented."""
    return {"requests": service.waiting_keys(call.hub, project)}


@ROUTER.post("/projects/{project}/requests/{fingerprint}")
def decide(call: Signed, project: str, fingerprint: str) -> dict[str, Any]:
    """Approve or refuse one."""
    approve = parse_body(Approval, call.body).approve
    return service.decide(call.hub, call.person, project, fingerprint, approve=approve)


@ROUTER.put("/projects/{project}/agreement")
def put_agreement(call: Signed, project: str, response: Response) -> dict[str, Any]:
    """Send the project file; 200 where the hub had this very one."""
    is_new, shown = service.put_agreement(call.hub, call.person, project, call.body)
    response.status_code = 201 if is_new else 200
    return shown


@ROUTER.get("/projects/{project}/agreement")
def agreement(call: Signed, project: str) -> Response:
    """The project file."""
    return Response(service.agreement_of(call.hub, project), media_type="application/toml")


@ROUTER.get("/projects/{project}/log")
def log(call: Signed, project: str, after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0) -> dict[str, Any]:
    """Entries after a number."""
    return {"entries": service.project_log(call.hub, project, after)}
