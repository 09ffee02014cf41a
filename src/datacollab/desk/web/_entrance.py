"""Who is let in: sessions, what a request must have, and the page of the first visit."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...bundle import write_atomically
from ...look import HEADERS
from ._forms import DeskFiles

__all__ = ["ENTRANCE", "STYLE_PATH", "Guard", "Session", "door_page", "entrance"]


class Session:
    """The secrets of one desk, drawn anew each time it is opened."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.port = host.rpartition(":")[2]
        self.cookie_name = f"datacollab-desk-{self.port}"
        self.cookie = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self.when_redeemed: Callable[[], None] = lambda: None
        self._secret: str | None = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    @property
    def secret(self) -> str | None:
        """What lets one browser in; None once it was used."""
        return self._secret

    @property
    def link(self) -> str | None:
        """The link that lets one browser in; None once it was used."""
        return None if self._secret is None else f"{self.origin}/enter/{self._secret}"

    def redeem(self, secret: str) -> bool:
        """Return whether this is the link's secret, and let it be used once."""
        with self._lock:
            if self._secret is None or not _equal(secret, self._secret):
                return False
            self._secret = None
        self.when_redeemed()
        return True

    def knows(self, cookie: str | None) -> bool:
        """Return whether a cookie is that of the browser that was let in."""
        return cookie is not None and _equal(cookie, self.cookie)

    def is_own(self, token: str | None) -> bool:
        """Return whether a form's token is this session's."""
        return token is not None and _equal(token, self.token)


def _equal(given: str, wanted: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


ENTRANCE, STYLE_PATH = "/enter", "/static/desk.css"
MOST_BYTES = 2 * 2**30
"""Bytes of an upload; tables and files of the exchange are smaller."""
MOST_TO_ENTER = 4096
"""Bytes of a body from a browser that is not let in yet."""
_HEADERS = {**HEADERS, "Referrer-Policy": "same-origin"}
_CHANGING = ("POST",)
_READING = ("GET", "HEAD")


class Guard:
    """Refuses requests before any page sees them, and puts the desk's headers on every answer."""

    def __init__(self, app: ASGIApp, session: Session, *, most_bytes: int = MOST_BYTES) -> None:
        self._app, self._session, self._most = app, session, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            # There are no web sockets here, and nothing to be done at the start.
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, sent)
            return
        await self._app(scope, _limited(receive, self._most_of(scope)), sent)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self._session.host]:
            # A name elsewhere that was pointed at this machine would otherwise reach the desk.
            return PlainTextResponse(f"This desk answers to http://{self._session.host} alone.", 421)
        if scope["method"] not in (*_READING, *_CHANGING):
            return PlainTextResponse("This desk knows GET and POST alone.", 405)
        if scope["method"] in _CHANGING:
            # The page on the disk has no origin; somebody who knows the secret may come from anywhere.
            if scope["path"] != ENTRANCE and headers.get("origin", self._session.origin) != self._session.origin:
                return PlainTextResponse("This form comes from another page than the desk's.", 403)
            most = self._most_of(scope)
            if _too_long(headers.get("content-length"), most):
                return PlainTextResponse(f"TOO_LARGE: at most {most} bytes can be sent at once.", 413)
        if _is_open(scope["path"]):
            return None
        if not self._session.knows(_cookie(headers, self._session.cookie_name)):
            return PlainTextResponse(
                "This desk is open in another browser, or was opened anew. `datacollab desk` prints a link that lets "
                "one browser in, once: stop it and start it again for another.",
                401,
            )
        return None

    def _most_of(self, scope: Scope) -> int:
        return min(self._most, MOST_TO_ENTER) if _is_open(scope["path"]) else self._most


def _is_open(path: str) -> bool:
    """Return whether a path is for browsers that were not let in, too."""
    secret = path.removeprefix(f"{ENTRANCE}/")
    return path in (ENTRANCE, STYLE_PATH) or (secret != path and secret != "" and "/" not in secret)


def _limited(receive: Receive, most: int) -> Receive:
    """Return the same, but cut off after as many bytes as are allowed, for any length in the headers."""
    left = most

    async def counted() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return counted


def _too_long(length: str | None, most: int) -> bool:
    if length is None:
        return False
    return not (length.isascii() and length.isdigit() and int(length[:20]) <= most)


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


# Programs' arguments can be read by every user of a machine, and addresses stay in a browser's history: neither has the
# secret.  Where scripts are off, the button does the same.
_DOOR = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>datacollab desk</title>
<form method="post" action="{action}">
<input type="hidden" name="secret" value="{secret}">
<p>The desk opens by itself, or by this button: <button>Open the desk</button></p>
</form>
<script>document.forms[0].submit()</script>
"""
# No redirection: a browser that comes from elsewhere would not send the cookie on it, which is SameSite=Strict.
_INSIDE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=/">
<title>datacollab desk</title>
<p><a href="/">The desk is open.</a></p>
"""


@contextmanager
def door_page(session: Session, folder: Path) -> Iterator[Path]:
    """Yield a page that only its owner can read and that lets a browser in; it is there until it was used."""
    # Of desks that are open at once, each has a port of its own.
    page = DeskFiles(folder).made() / f"enter-{session.port}.html"
    filled = _DOOR.format(action=f"{session.origin}{ENTRANCE}", secret=session.secret)
    write_atomically(page, filled.encode(), mode=0o600)
    session.when_redeemed = lambda: page.unlink(missing_ok=True)
    try:
        yield page
    finally:
        page.unlink(missing_ok=True)


def entrance(session: Session) -> list[Route]:
    """Return the routes of the entrance."""

    def let_in(secret: str) -> Response:
        if not session.redeem(secret):
            return PlainTextResponse("This link was used, or is of another desk. Start `datacollab desk` again.", 403)
        answer = HTMLResponse(_INSIDE)
        answer.set_cookie(session.cookie_name, session.cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def by_link(request: Request) -> Response:
        if session.knows(request.cookies.get(session.cookie_name)):
            return RedirectResponse("/", 303)
        # A program that only looks whether a link is there does not use it up.
        return let_in(request.path_params["secret"] if request.method == "GET" else "")

    async def by_page(request: Request) -> Response:
        try:
            async with request.form(max_files=0, max_fields=1) as form:
                return let_in(str(form.get("secret", "")))
        except (HTTPException, ClientDisconnect):
            return PlainTextResponse("This form could not be read: it is damaged or too large.", 400)

    return [
        Route(f"{ENTRANCE}/{{secret}}", by_link, methods=["GET"]),
        Route(ENTRANCE, by_page, methods=["POST"]),
    ]
