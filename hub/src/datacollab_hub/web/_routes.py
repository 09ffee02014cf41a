"""All routes of the API. They are looked up in their order, so those come first that members ask all the time."""

from __future__ import annotations

import hmac
import ipaddress
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy.exc import SQLAlchemyError

from datacollab.errors import ExchangeError

from .. import service
from ..rules import Person, not_found
from ..service import Hub
from ._admission import Signed, answer_polled
from ._bodies import Approval, Invitation, Joining, NewProject, Nothing, Starting, parse_body

ROUTER = APIRouter()
_PROJECT = "/v1/projects/{project}"


# Without a dependency on `Signed`, which would change threads: `answer_polled` admits the request itself.
@ROUTER.get(_PROJECT)
async def status(request: Request) -> Response:
    """How it stands."""
    return await answer_polled(request, service.project_status)


@ROUTER.get(_PROJECT + "/files")
async def list_files(request: Request) -> Response:
    """Files that the key that asks may see."""
    return await answer_polled(request, _files)


def _files(hub: service.Hub, person: Person, project: str) -> dict[str, Any]:
    return {"files": service.list_files(hub, person, project)}


# Headers by which proxies say that they ask for another.
_PASSED_ON = ("forwarded", "x-forwarded-for", "via")


@ROUTER.get("/healthz")
def alive() -> dict[str, str]:
    """That the process answers."""
    return {"status": "alive"}


@ROUTER.get("/readyz")
def ready(request: Request) -> Response:
    """Answer that it reaches its store."""
    hub: Hub = request.app.state.hub
    try:
        hub.store.check()
    except (SQLAlchemyError, OSError, ExchangeError):
        # No word on the reason: anybody may ask, and errors name machines and paths.
        request.state.code = "UNAVAILABLE"
        return JSONResponse({"code": "UNAVAILABLE", "message": "The hub cannot reach what it keeps."}, 503)
    return JSONResponse({"status": "ready"})


@ROUTER.get("/metrics")
def metrics(request: Request) -> Response:
    """Numbers, for the holder of the token, or without one for whoever asks from the same machine."""
    if not _may_read(request):
        # As where there is no such route.
        raise not_found()
    return Response(generate_latest(request.app.state.numbers.registry), media_type=CONTENT_TYPE_LATEST)


def _may_read(request: Request) -> bool:
    token = request.app.state.hub.settings.metrics_token
    if token is not None:
        given = request.headers.get("authorization", "")
        # In constant time, which tells nothing of the token.
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    # A proxy on this machine asks for others.
    if request.client is None or any(name in request.headers for name in _PASSED_ON):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


@ROUTER.post("/v1/sessions", status_code=201)
def new_session(call: Signed) -> dict[str, Any]:
    """A link that signs a browser in."""
    parse_body(Nothing, call.body)
    return service.new_browser_session(call.hub, call.person)


@ROUTER.get("/v1/projects")
def own_projects(call: Signed) -> dict[str, Any]:
    """Projects of the key that asks."""
    return {"projects": service.own_projects(call.hub, call.person)}


@ROUTER.post("/v1/projects", status_code=201)
def open_project(call: Signed) -> dict[str, Any]:
    """Open a project."""
    return service.open_project(call.hub, call.person, parse_body(NewProject, call.body).name)


@ROUTER.post(_PROJECT + "/invitations", status_code=201)
def invite(call: Signed, project: str) -> dict[str, Any]:
    """A link for one key."""
    body = parse_body(Invitation, call.body)
    return service.invite(call.hub, call.person, project, name=body.name, role=body.role, days=body.days)


# 202, as whether the key gets in is decided later, by the owner.
@ROUTER.post(_PROJECT + "/join", status_code=202)
def join(call: Signed, project: str) -> dict[str, Any]:
    """Present a key with an invitation."""
    body = parse_body(Joining, call.body)
    return service.join(call.hub, call.person, project, body.secret, body.public_key)


@ROUTER.get(_PROJECT + "/requests")
def waiting_keys(call: Signed, project: str) -> dict[str, Any]:
    """Keys that were presented."""
    return {"requests": service.waiting_keys(call.hub, project)}


@ROUTER.post(_PROJECT + "/requests/{fingerprint}")
def decide(call: Signed, project: str, fingerprint: str) -> dict[str, Any]:
    """Approve or refuse one."""
    approve = parse_body(Approval, call.body).approve
    return service.decide(call.hub, call.person, project, fingerprint, approve=approve)


@ROUTER.put(_PROJECT + "/agreement")
def put_agreement(call: Signed, project: str, response: Response) -> dict[str, Any]:
    """Send the project file; 200 where the hub had this very one."""
    is_new, shown = service.put_agreement(call.hub, call.person, project, call.body)
    response.status_code = 201 if is_new else 200
    return shown


@ROUTER.get(_PROJECT + "/agreement")
def agreement(call: Signed, project: str) -> Response:
    """The project file."""
    return Response(service.agreement_of(call.hub, project), media_type="application/toml")


@ROUTER.get(_PROJECT + "/log")
def log(call: Signed, project: str, after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0) -> dict[str, Any]:
    """Entries after a number."""
    return {"entries": service.project_log(call.hub, project, after)}


# One range, of numbers that 64 bits hold.
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first byte, and the one after the last; None where there are no such bytes.

    Several ranges at once, and malformed ones, count as none: all is sent, as the standard allows.

    Examples
    --------
    >>> byte_range("bytes=2-3", 10), byte_range("bytes=-4", 10), byte_range("bytes=7-", 10), byte_range(None, 10)
    ((2, 4), (6, 10), (7, 10), (0, 10))
    >>> byte_range("bytes=10-", 10) is None
    True
    """
    found = _RANGE.fullmatch(header or "")
    if found is None or found[0] == "bytes=-":
        return 0, size
    first = found[1]
    last = found[2]
    if not first:
        # RFC 9110, section 14.1.2: the last so many bytes, of which zero are no range.
        if int(last) == 0:
            return None
        return max(0, size - int(last)), size
    start = int(first)
    end = size
    if last:
        # The standard's last byte is part of the range.
        end = min(int(last) + 1, size)
    if last and int(last) < start:
        return 0, size
    if start >= size:
        return None
    return start, end


# As many digits as 64 bits hold of any kind.
_OFFSET = re.compile(r"\d{1,18}")


@ROUTER.post(_PROJECT + "/uploads")
def start(call: Signed, project: str, response: Response) -> dict[str, Any]:
    """Begin or resume an upload; 200 where the file is there."""
    body = parse_body(Starting, call.body)
    announced = service.Announced(body.kind, body.sha256, body.size, body.recipient)
    found = service.start_upload(call.hub, call.person, project, announced)
    response.status_code = 200 if "file" in found else 201
    return found


@ROUTER.head(_PROJECT + "/uploads/{upload}")
def offset(call: Signed, project: str, upload: str) -> Response:
    """Where to go on."""
    found = service.own_upload(call.hub, call.person, project, upload)
    return Response(headers={"Upload-Offset": str(found.offset)})


@ROUTER.patch(_PROJECT + "/uploads/{upload}")
def append(call: Signed, project: str, upload: str, upload_offset: Annotated[str, Header()] = "") -> Response:
    """Send a part."""
    own = service.own_upload(call.hub, call.person, project, upload)
    if not _OFFSET.fullmatch(upload_offset):
        raise ExchangeError("REQUEST_MALFORMED", "The header Upload-Offset is wanted: where the part begins, in bytes.")
    found = service.append_part(call.hub, call.person, own, int(upload_offset), call.body)
    if "file" in found:
        return JSONResponse(found, 201, {"Upload-Offset": str(own.size)})
    return Response(status_code=204, headers={"Upload-Offset": str(found["offset"])})


@ROUTER.delete(_PROJECT + "/uploads/{upload}", status_code=204)
def abandon(call: Signed, project: str, upload: str) -> Response:
    """Give an upload up."""
    service.abandon(call.hub, service.own_upload(call.hub, call.person, project, upload))
    return Response(status_code=204)


@ROUTER.get(_PROJECT + "/files/{sha256}")
def fetch(
    call: Signed, project: str, sha256: str, wanted: Annotated[str | None, Header(alias="range")] = None
) -> Response:
    """A file, or a range of its bytes."""
    file = service.fetch(call.hub, call.person, project, sha256)
    # As an attachment: no browser shows, as a page of the hub, what a member has sent.
    headers = {"Accept-Ranges": "bytes", "ETag": f'"{file.sha256}"', "Content-Disposition": "attachment"}
    found = byte_range(wanted, file.size)
    if found is None:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{file.size}"})
    start, end = found
    # Opened first: of a file that went at this moment, no fetch is noted.
    pieces = service.read_pieces(call.hub, file, start, end)
    # Whoever leaves out the last byte has read the file all the same.
    service.note_fetched(call.hub, call.person, project, file)
    status = 200
    if end - start < file.size:
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    return StreamingResponse(
        pieces,
        status_code=status,
        headers={**headers, "Content-Length": str(end - start)},
        media_type="application/octet-stream",
    )


@ROUTER.delete(_PROJECT + "/files/{sha256}")
def withdraw(call: Signed, project: str, sha256: str) -> dict[str, Any]:
    """Withdraw a file."""
    return service.withdraw(call.hub, call.person, project, sha256)
