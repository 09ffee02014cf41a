"""In by a link, out by a button; and the style, which is nobody's secret."""

from __future__ import annotations

import asyncio
import hmac
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from datacollab.errors import ExchangeError
from datacollab.look import STYLE

from .. import service
from ..service import Hub
from ._visit import Visiting, check_origin, clear_cookie, cookie_of, give_cookie, new_router, page_route, show

ROUTER = new_router()
_OWN_STYLE = Path(__file__).parent / "static" / "hub.css"
# Seconds for a form of some hundred bytes.
_PATIENCE = 30


@ROUTER.get("/static/pages.css")
def shared_style() -> Response:
    """Return the stylesheet of all pages of the program."""
    return FileResponse(STYLE, media_type="text/css")


@ROUTER.get("/static/hub.css")
def own_style() -> Response:
    """Return the further stylesheet of the hub's pages."""
    return FileResponse(_OWN_STYLE, media_type="text/css")


@ROUTER.get("/favicon.ico")
def picture() -> Response:
    """Nothing: browsers ask for it by themselves."""
    return Response(status_code=204)


@ROUTER.get("/session/{secret}")
def entrance(request: Request, secret: str) -> Response:
    """A button: whatever looks at links before people open them must not use this one up."""
    hub: Hub = request.app.state.hub
    return show("entrance.html", hub, None, fingerprint=service.link_key(hub, secret))


@ROUTER.post("/session/{secret}")
def sign_in(request: Request, secret: str) -> Response:
    """Sign the browser in; its cookie is a new one, whatever it had before."""
    # Otherwise another site could sign a visitor in as somebody else.
    check_origin(request)
    hub: Hub = request.app.state.hub
    cookie = service.sign_in(hub, secret, before=cookie_of(request))
    # 303: the browser goes on with GET, and loading the page again sends no form.
    response = RedirectResponse("/", 303)
    give_cookie(request, response, cookie)
    return response


@ROUTER.post("/sign-out")
async def sign_out(request: Request, visit: Visiting) -> Response:
    """Sign the browser out."""
    check_origin(request)
    token = await _token(request, page_route(request).most_bytes)
    # In constant time; other sites' pages cannot know the token.
    if not hmac.compare_digest(token.encode(), visit.token.encode()):
        raise ExchangeError("NOT_ALLOWED", "This form is not of this browser's pages. Open the page again.")
    await run_in_threadpool(service.sign_out, visit.hub, visit.cookie)
    response = show("left.html", visit.hub, None)
    clear_cookie(request, response)
    return response


async def _token(request: Request, most: int) -> str:
    """The form's token; empty where there is none."""
    body = bytearray()
    try:
        async with asyncio.timeout(_PATIENCE):
            async for piece in request.stream():
                body += piece
                # Whatever the head announced.
                if len(body) > most:
                    raise ExchangeError("TOO_LARGE", f"The form is too large; at most {most} bytes are taken here.")
        # No form has as many fields; thousands would cost time.
        fields = parse_qs(body.decode(), max_num_fields=10)
    except (TimeoutError, ValueError):
        # No token is a wrong one, as the caller says.
        return ""
    except ClientDisconnect:
        raise ExchangeError(
            "REQUEST_MALFORMED", "The connection ended before the whole form was there. Send the form again."
        ) from None
    return fields.get("token", [""])[0]
