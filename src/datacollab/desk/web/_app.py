"""Pages and actions as an application, and serving it."""

from __future__ import annotations

import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...look import STYLE
from ._entrance import STYLE_PATH, Guard, Session, entrance
from ._jobs import Jobs, Refusal, refusal_of
from ._pages import Pages

__all__ = ["Action", "Page", "bound_socket", "create_app", "serve"]

_PATIENCE = 1.0
"""Seconds for which the page of the work waits: short work then needs no second look."""


@dataclass(frozen=True)
class Page:
    """What is shown at a path."""

    path: str
    show: Callable[[Request], Response]


@dataclass(frozen=True)
class Action:
    """What a form at a path does; it answers with a redirection, or with a page."""

    path: str
    act: Callable[[FormData], Response]
    most_files: int = 1


def create_app(session: Session, pages: Pages, jobs: Jobs, parts: Iterable[Page | Action]) -> ASGIApp:
    """Put a desk together.

    Parameters
    ----------
    session : Session
    pages : Pages
    jobs : Jobs
    parts : iterable of Page or Action
        The role's.
    """

    def refused(error: BaseException, part: Page | Action) -> Response:
        refusal, step = refusal_of(error), f"/{part.path.split('/')[1]}"
        # Of a form, back to its page; a step's own page would refuse again.
        back = "/" if isinstance(part, Page) and part.path == step else step
        try:
            return pages.page("refusal.html", path=step, status=refusal.status, refusal=refusal, back=back)
        except Exception:
            # A folder that cannot be read has no list of steps either.
            return PlainTextResponse(f"{refusal.code}: {refusal.message}", refusal.status)

    def shown(page: Page) -> Route:
        async def answer(request: Request) -> Response:
            try:
                return await run_in_threadpool(page.show, request)
            except Exception as error:
                return refused(error, page)

        return Route(page.path, answer, methods=["GET"])

    def acted(action: Action) -> Route:
        async def answer(request: Request) -> Response:
            try:
                async with request.form(max_files=action.most_files, max_fields=100) as form:
                    token = form.get("token")
                    if not session.is_own(token if isinstance(token, str) else None):
                        return PlainTextResponse("This form is not the desk's own, or is of an earlier one.", 403)
                    return await run_in_threadpool(action.act, form)
            except (HTTPException, ClientDisconnect):
                return PlainTextResponse(
                    "This form could not be read: it is damaged, too large or has too many files.", 400
                )
            except Exception as error:
                return refused(error, action)

        return Route(action.path, answer, methods=["POST"])

    def style(request: Request) -> Response:
        return FileResponse(STYLE, media_type="text/css")

    def nothing_here(request: Request, error: Exception) -> Response:
        if not session.knows(request.cookies.get(session.cookie_name)):
            return PlainTextResponse("There is no such page on this desk.", 404)
        missing = Refusal(code="404", message="There is no such page on this desk.")
        return pages.page("refusal.html", path="/", status=404, refusal=missing, back="/")

    return Guard(
        Starlette(
            routes=[
                *entrance(session),
                Route(STYLE_PATH, style, methods=["GET"]),
                # Browsers ask for it by themselves.
                Route("/favicon.ico", lambda request: Response(status_code=204), methods=["GET"]),
                shown(Page("/work", lambda request: _work(pages, jobs))),
                *(shown(part) if isinstance(part, Page) else acted(part) for part in parts),
            ],
            exception_handlers={404: nothing_here},
        ),
        session,
    )


def _work(pages: Pages, jobs: Jobs) -> Response:
    job = jobs.last
    if job is None:
        return RedirectResponse("/", 303)
    job.wait(_PATIENCE)
    if job.refusal is not None:
        return pages.page("refusal.html", path=job.where, refusal=job.refusal, back=job.where)
    if job.is_done or job.question is not None:
        return RedirectResponse(job.where, 303)
    return pages.page("work.html", path=job.where, job=job, lines=list(job.lines), working=True)


LOOPBACK = "127.0.0.1"
_GRACE = 2


def bound_socket(port: int = 0) -> tuple[socket.socket, str]:
    """A socket of this machine alone, and what a browser calls it.

    Parameters
    ----------
    port : int, default=0
        One that is free, by default.

    Raises
    ------
    OSError
        When it is taken.
    """
    try:
        bound = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise OSError(
            error.errno, f"Port {port} of this machine is taken ({error.strerror}). Name another, or none."
        ) from None
    return bound, f"{LOOPBACK}:{bound.getsockname()[1]}"


def serve(app: ASGIApp, bound: socket.socket, scratch: Path) -> None:
    """Answer until somebody interrupts.

    Parameters
    ----------
    app : ASGI application
    bound : socket
    scratch : Path
        Folder for uploads on their way, so that no private table touches another disk.
    """
    tempfile.tempdir = str(scratch)
    # No access log: the link that lets a browser in would be in it.
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="critical",
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    with _ended_in_order():
        uvicorn.Server(config).run(sockets=[bound])


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let every way of ending the program be like Ctrl-C, after which no upload is left."""
    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [(each, signal.signal(each, signal.default_int_handler)) for each in others]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)
