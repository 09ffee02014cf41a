"""How one browser gets in: by a link that somebody pastes, or by a page on the disk that sends the secret itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ...bundle import write_atomically
from ._files import DeskFiles
from ._guard import ENTRANCE
from ._session import Session

__all__ = ["door_page", "entrance"]

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
    """A page that only its owner can read, which lets whoever opens it in; it is there until it was used.

    Parameters
    ----------
    session : Session
    folder : Path
        The role's.

    Yields
    ------
    Path
        Of the page.  It may be given to a program that opens it: its name tells nothing.
    """
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
    """What answers at the entrance.

    Parameters
    ----------
    session : Session
    """

    def let_in(secret: str) -> Response:
        if not session.redeem(secret):
            return PlainTextResponse("This link was used, or is of another desk. Start `datacollab desk` again.", 403)
        answer = HTMLResponse(_INSIDE)
        answer.set_cookie(session.cookie_name, session.cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def by_link(request: Request) -> Response:
        if session.knows(request.cookies.get(session.cookie_name)):
            return RedirectResponse("/", 303)
        # Whoever only looks whether a link is there does not use it up.
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
