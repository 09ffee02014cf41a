"""Files to a hub and from it, continued where the line was cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from datacollab.errors import ExchangeError
from datacollab.remote import Entry, Parcel, Tell

from ._http import HubClient, Interrupted

PIECE = 4 * 2**20
"""Most bytes of one request, as hubs take them."""

# The hub's word becomes part of an address, where nothing else may stand.
_UPLOAD = re.compile(r"[A-Za-z0-9_-]{1,128}")
_RANGE = re.compile(r"bytes (\d{1,15})-\d{1,15}/(\d{1,15}|\*)")
_PART = 2**16


def upload(client: HubClient, project: str, parcel: Parcel, *, tell: Tell) -> None:
    """Send a file in pieces; the hub says each time how much it has."""
    failed = 0
    furthest = -1
    most = parcel.size
    # Asked anew after each failure, as only the hub knows how much arrived.
    while (begun := _begin(client, project, parcel)) is not None:
        place, offset = begun
        # Progress forgives failures; a hub that goes back and forth does not keep us forever.
        if offset > furthest:
            failed = 0
            furthest = offset
        try:
            while True:
                tell(f"sending {parcel.path.name}", offset / most)
                piece = parcel.piece(offset, PIECE)
                headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}
                answer = client.once("PATCH", place, body=piece, headers=headers, ok=(201, 204, 404, 409))
                if answer.status == 201:
                    tell(f"sending {parcel.path.name}", 1.0)
                    return
                # Also 404 and 409: the upload has ended, or stands elsewhere than we believe.
                if answer.status != 204:
                    raise Interrupted(f"status {answer.status}")
                offset += len(piece)
                # All was sent, and the hub does not say that it has it: it is asked once more.
                if not piece or offset >= most:
                    raise Interrupted("the hub wants more than there is")
                if offset > furthest:
                    failed = 0
                    furthest = offset
        except Interrupted as interrupted:
            failed += 1
            client.wait(failed, interrupted)


def _begin(client: HubClient, project: str, parcel: Parcel) -> tuple[str, int] | None:
    """Where to send it, and how much of it is there; None where all of it is.

    An upload that was begun is found again by its hash, and one whose end was accepted while the line was cut, too.
    """
    said: dict[str, Any] = {"kind": parcel.kind.name, "sha256": parcel.sha256, "size": parcel.size}
    if parcel.recipient is not None:
        said["recipient"] = parcel.recipient
    answer = client.ask("POST", f"/v1/projects/{project}/uploads", json=said, ok=(200, 201))
    if answer.status == 200:
        return None
    name = answer.field("upload", str)
    offset = answer.field("offset", int)
    if not _UPLOAD.fullmatch(name) or not 0 <= offset < parcel.size:
        raise ExchangeError(
            "REMOTE_REFUSED", f"{answer.what} answers with an upload that cannot be. Look whether that is a hub."
        )
    return f"/v1/projects/{project}/uploads/{name}", offset


def download(client: HubClient, project: str, entry: Entry, part: Path, *, tell: Tell) -> None:
    """Write the rest of a file after the beginning that `part` holds."""
    failed = 0
    furthest = part.stat().st_size if part.exists() else 0
    while True:
        try:
            # Appended to: what came before is not fetched again.
            with open(part, "ab") as target:
                _continue(client, project, entry, target, tell)
            return
        except Interrupted as interrupted:
            size = part.stat().st_size
            failed += 1
            if size > furthest:
                failed = 1
                furthest = size
            client.wait(failed, interrupted)


def _continue(client: HubClient, project: str, entry: Entry, target: Any, tell: Tell) -> None:
    done = target.tell()
    headers: dict[str, str] = {}
    if done:
        # RFC 9110, section 14.1.2: from this byte to the end.
        headers["Range"] = f"bytes={done}-"
    path = f"/v1/projects/{project}/files/{entry.sha256}"
    with client.streamed("GET", path, headers=headers, ok=(200, 206, 416)) as (response, what):
        begins = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        if response.status_code != 206 or begins is None or int(begins[1]) != done:
            # The hub sends all of it, or what we have is none of it.
            target.truncate(0)
            done = 0
            if response.status_code != 200:
                raise Interrupted("the hub has no such part")
        for piece in response.iter_bytes(_PART):
            done += len(piece)
            # A hub that does not stop must not fill the disk.
            if done > entry.size:
                raise ExchangeError("TOO_LARGE", f"{what} gives more bytes than it listed. Run the command again.")
            target.write(piece)
            tell(f"fetching {entry.kind}", done / entry.size)
    if done < entry.size:
        raise Interrupted("the line was cut")
