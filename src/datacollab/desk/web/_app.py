"""Pages from templates, actions of forms, and serving them."""

from __future__ import annotations

import shlex
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...exchange.steps import STEPS
from ...look import STYLE, templates_in
from ._entrance import STYLE_PATH, Guard, Session, entrance
from ._forms import files_in, remote_commands
from ._jobs import Jobs, Refusal, refusal_of

__all__ = ["Action", "Page", "Pages", "Place", "bound_socket", "create_app", "serve"]

_PATIENCE = 1.0
"""Seconds for which the page of the work waits: short work then needs no second look."""


@dataclass(frozen=True)
class Page:
    """What is shown at a path: an answer, or a template and what it shows besides the desk itself."""

    path: str
    show: Callable[[Request], Response | dict[str, Any]] = lambda request: {}
    template: str = ""


@dataclass(frozen=True)
class Action:
    """What a form at a path does; it answers with a page, a path to go to, or None if work has begun."""

    path: str
    act: Callable[[FormData], Response | str | None]
    most_files: int = 1


@dataclass(frozen=True, kw_only=True)
class Place:
    """A step in the list beside every page: where it is, and how far it is in few words."""

    path: str
    name: str
    note: str = ""
    is_done: bool = False
    is_beside: bool = False


class Pages:
    """Renders templates of the desk and of one role."""

    def __init__(
        self,
        session: Session,
        jobs: Jobs,
        templates: Path,
        title: Callable[[], str],
        places: Callable[[], Sequence[Place]],
        **shared: Any,
    ) -> None:
        self._environment = templates_in(templates, Path(__file__).parent / "templates")
        self._jobs, self._title, self._places = jobs, title, places
        self._environment.globals |= {"token": session.token, "steps_of": STEPS, "files_in": files_in, **shared}
        self._environment.globals |= {"remote_commands": remote_commands, "quoted": shlex.quote}
        self._environment.globals["parts"] = self._environment.get_template("parts.html").module

    def page(self, template: str, *, path: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Answer with a page of the step at a path."""
        last = self._jobs.last
        ended = last if last is not None and last.is_done and last.where == path else None
        rendered = self._environment.get_template(template).render(
            **context,
            path=path,
            desk_title=self._title(),
            steps=self._places(),
            running=self._jobs.running,
            # A page that shows a refusal has no second one.
            failed=ended.refusal if ended and not isinstance(context.get("refusal"), Refusal) else None,
            notice=ended.notice if ended else "",
        )
        return HTMLResponse(rendered, status_code=status)


def create_app(session: Session, pages: Pages, jobs: Jobs, parts: Iterable[Page | Action]) -> ASGIApp:
    """Put a desk together."""

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
                found = await run_in_threadpool(page.show, request)
                if isinstance(found, Response):
                    return found
                return await run_in_threadpool(lambda: pages.page(page.template, path=page.path, **found))
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
                    found = await run_in_threadpool(action.act, form)
                    return found if isinstance(found, Response) else RedirectResponse(found or "/work", 303)
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
    """Return a socket of this machine alone, and what a browser calls it; port 0 is one that is free."""
    try:
        bound = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise OSError(
            error.errno, f"Port {port} of this machine is taken ({error.strerror}). Name another, or none."
        ) from None
    return bound, f"{LOOPBACK}:{bound.getsockname()[1]}"


def serve(app: ASGIApp, bound: socket.socket, scratch: Path) -> None:
    """Answer until somebody interrupts; uploads on their way are in the folder ``scratch``."""
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
