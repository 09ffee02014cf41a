"""Routes about files and uploads."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import JSONResponse, StreamingResponse

from datacollab.errors import ExchangeError

from .. import service
from ._admission import Signed
from ._bodies import Starting, parse_body
from ._ranges import byte_range

__all__ = ["ROUTER"]

ROUTER = APIRouter(prefix="/v1/projects/{project}")

# As many digits as 64 bits hold of any kind.
_OFFSET = re.compile(r"\d{1,18}")


@ROUTER.post("/uploads")
def start(call: Signed, project: str, response: Response) -> dict[str, Any]:
    """Begin or resume an upload; 200 where the file is there."""
    body = parse_body(Starting, call.body)
    announced = service.Announced(body.kind, body.sha256, body.size, body.recipient)
    found = service.start_upload(call.hub, call.person, project, announced)
    response.status_code = 200 if "file" in found else 201
    return found


@ROUTER.head("/uploads/{upload}")
def offset(call: Signed, project: str, upload: str) -> Response:
    """Where to go on."""
    found = service.own_upload(call.hub, call.person, project, upload)
    return Response(headers={"Upload-Offset": str(found.offset)})


@ROUTER.patch("/uploads/{upload}")
def append(call: Signed, project: str, upload: str, upload_offset: Annotated[str, Header()] = "") -> Response:
    """Send a part."""
    own = service.own_upload(call.hub, call.person, project, upload)
    if not _OFFSET.fullmatch(upload_offset):
        raise ExchangeError("REQUEST_MALFORMED", "The header Upload-Offset is wanted: where the part begins, in bytes.")
    found = service.append_part(call.hub, call.person, own, int(upload_offset), call.body)
    if "file" in found:
        return JSONResponse(found, 201, {"Upload-Offset": str(own.size)})
    return Response(status_code=204, headers={"Upload-Offset": str(found["offset"])})


@ROUTER.delete("/uploads/{upload}", status_code=204)
def abandon(call: Signed, project: str, upload: str) -> Response:
    """Give an upload up."""
    service.abandon(call.hub, service.own_upload(call.hub, call.person, project, upload))
    return Response(status_code=204)


@ROUTER.get("/files/{sha256}")
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


@ROUTER.delete("/files/{sha256}")
def withdraw(call: Signed, project: str, sha256: str) -> dict[str, Any]:
    """Withdraw a file."""
    return service.withdraw(call.hub, call.person, project, sha256)
