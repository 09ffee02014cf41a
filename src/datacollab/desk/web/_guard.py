"""Who may ask for anything: the browser that opened the link, by the desk's own name, from the desk's own pages."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...look import HEADERS
from ._session import Session

__all__ = ["ENTRANCE", "STYLE_PATH", "Guard"]

ENTRANCE, STYLE_PATH = "/enter", "/static/desk.css"
MOST_BYTES = 2 * 2**30
"""Of an upload; tables and files of the exchange are smaller."""
MOST_TO_ENTER = 4096
"""Of whoever is not let in yet."""
_HEADERS = {**HEADERS, "Referrer-Policy": "same-origin"}
_CHANGING = ("POST",)
_READING = ("GET", "HEAD")


class Guard:
    """Refuses requests before any page sees them, and puts the desk's headers on every answer.

    Parameters
    ----------
    app : ASGI application
    session : Session
    most_bytes : int
        Of a request's body.
    """

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
            # The page on the disk is of no origin; whoever knows the secret may come from anywhere.
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
    """Whether it is for browsers that were not let in, too."""
    secret = path.removeprefix(f"{ENTRANCE}/")
    return path in (ENTRANCE, STYLE_PATH) or (secret != path and secret != "" and "/" not in secret)


def _limited(receive: Receive, most: int) -> Receive:
    """The same, but no more bytes than allowed, whatever the length was said to be."""
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
