"""Who is let in, pages from templates, actions of forms, and serving them."""

from __future__ import annotations

import math
import re
import secrets
import shlex
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...bundle import write_atomically
from ...exchange.steps import STEPS, Input, Step
from ...look import HEADERS, STYLE, templates_in
from ._forms import DeskFiles, chosen_file, files_in, given, perhaps_file, remote_commands
from ._jobs import Job, Jobs, Refusal, refusal_of


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
        self.secret: str | None = secrets.token_urlsafe(32)
        """What lets one browser in; None once it was used."""
        self._lock = threading.Lock()

    @property
    def link(self) -> str | None:
        """The link that lets one browser in; None once it was used."""
        return None if self.secret is None else f"{self.origin}/enter/{self.secret}"

    def redeem(self, secret: str) -> bool:
        """Return whether this is the link's secret, and let it be used once."""
        with self._lock:
            if self.secret is None or not _equal(secret, self.secret):
                return False
            self.secret = None
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


class Guard:
    """Refuses requests before any page sees them, and puts the desk's headers on every answer."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app, self._session, self._most = app, session, MOST_BYTES

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
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("This desk knows GET and POST alone.", 405)
        if scope["method"] == "POST":
            # The page on the disk has no origin; somebody who knows the secret may come from anywhere.
            if scope["path"] != ENTRANCE and headers.get("origin", self._session.origin) != self._session.origin:
                return PlainTextResponse("This form comes from another page than the desk's.", 403)
            most = self._most_of(scope)
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit() and int(length[:20]) <= most):
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

    return [Route(f"{ENTRANCE}/{{secret}}", by_link, methods=["GET"]), Route(ENTRANCE, by_page, methods=["POST"])]


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


@dataclass(frozen=True)
class Commands:
    """Commands that a desk runs in its folder, such as ``keys new``."""

    steps: Mapping[str, Step]
    run: Callable[..., list[str]]
    """Takes the command's name and its inputs; returns the lines that it prints."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A step in the list beside every page: where it is, and how far it is in few words."""

    path: str
    name: str
    note: str = ""
    is_done: bool = False
    is_beside: bool = False


class Desk:
    """What the desks of both roles have: a folder, its files, work in the background, and in ``done`` its results."""

    role: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.files = DeskFiles(self.path)
        self.jobs = Jobs()
        self.done: dict[str, Any] = {}
        self.fields: dict[str, list[Input]] = {}
        """Those of the page at a path."""

    def command(self, verb: str, *words: object) -> str:
        """Return the command that does the same; words that are a shell's already stay as they are."""
        quoted = (shlex.quote(str(word)) if isinstance(word, Path) else str(word) for word in words if word)
        return " ".join([f"datacollab {self.role}", verb, *quoted, "-C", shlex.quote(str(self.path))])

    def remove(self, verb: str, names: Iterable[str]) -> None:
        """Remove what a step gave, and its files."""
        self.done.pop(verb, None)
        for name in names:
            (self.files.path / name).unlink(missing_ok=True)

    def form(
        self,
        verb: str,
        work: Callable[..., Any],
        *,
        path: str,
        file: str = "",
        also: str = "",
        fields: Iterable[str] = (),
        check: Callable[[dict[str, Any]], None] = lambda options: None,
        writes: Iterable[str] = (),
        doing: str = "",
        shown: str = "",
    ) -> Action:
        """Return the form of a step: its fields and file are read, and ``done`` keeps what the work gives.

        ``work`` takes the job, the file if the form has one, and by their names the fields and the file ``also``,
        which may be left out. The page at ``shown``, or
        else the form's, shows what comes of it.
        """
        step, fields = STEPS[f"{self.role} {verb}"], tuple(fields)
        self.fields |= {page: [step[name] for name in fields] for page in (path, shown or path)}

        def act(form: FormData) -> None:
            options = given(form, step, fields)
            check(options)
            with ExitStack() as taken:
                chosen = [chosen_file(form, self.files, step[file], as_name=file)] if file else []
                for each in chosen:
                    taken.callback(each.discard)
                if also and (more := perhaps_file(form, self.files, step[also], as_name=also, prefix=f"{also}_")):
                    options[also] = more.path
                    taken.callback(more.discard)
                discard = taken.pop_all().close

            def begin(job: Job) -> None:
                self.remove(verb, writes)
                self.done[verb] = work(job, *(each.path for each in chosen), **options)

            self.jobs.start(doing or step.doing, shown or path, begin, at_end=discard)

        return Action(path, act, most_files=2 if also else 1)


_AGAIN: ContextVar[Mapping[str, str]] = ContextVar("again")
"""What was written into a form that was refused, by the fields' names."""


_OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")


class Pages:
    """Renders templates of the desk and of one role, which are of its files."""

    def __init__(
        self,
        session: Session,
        jobs: Jobs,
        templates: Path,
        title: Callable[[], str],
        places: Callable[[], Sequence[Place]],
        *,
        desk: Desk,
        **shared: Any,
    ) -> None:
        self._desk, place = desk, desk.files.path
        self._upload = re.compile(f"({re.escape(str(place))}|{re.escape(str(place.absolute()))})/upload-\\w+/")
        self.entered: tuple[str, Mapping[str, str], Job | None] = "", {}, None
        """The page of the form that was sent last, what was written into it, and the work that it began."""
        self._environment = templates_in(templates, Path(__file__).parent / "templates")
        self._jobs, self._title, self._places = jobs, title, places
        self._environment.globals |= {"token": session.token, "steps_of": STEPS, "files_in": files_in, **shared}
        self._environment.globals |= {"remote_commands": remote_commands, "quoted": shlex.quote, "desk": desk}
        self._environment.globals["again"] = lambda name, usual="": _AGAIN.get().get(name, usual)
        self._environment.globals["labelled"] = self.labelled
        self._environment.tests["finite"] = math.isfinite
        self._environment.globals["parts"] = self._environment.get_template("parts.html").module

    def page(self, template: str, *, path: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Answer with a page of the step at a path."""
        last = self._jobs.last
        ended = last if last is not None and last.is_done and last.where == path else None
        failed, (where, written, begun) = ended.refusal if ended else None, self.entered
        is_refused = begun is None or begun.refusal is not None
        _AGAIN.set(written if where == path and is_refused else {})
        if isinstance(refusal := context.get("refusal"), Refusal):
            # A page that shows a refusal has no second one.
            failed, context["refusal"] = None, self._named(refusal, path)
        rendered = self._environment.get_template(template).render(
            **context,
            path=path,
            desk_title=self._title(),
            steps=self._places(),
            running=self._jobs.running,
            failed=failed and self._named(failed, path),
            notice=ended.notice if ended else "",
        )
        return HTMLResponse(rendered, status_code=status)

    def _named(self, refusal: Refusal, path: str) -> Refusal:
        """Return the refusal with names of uploads in place of their paths, and labels in place of options."""
        message = self.labelled(self._upload.sub("", refusal.message), path)
        return replace(refusal, message=message, remedy=self.labelled(refusal.remedy, path))

    def labelled(self, sentence: str, path: str) -> str:
        """Return a sentence of a command for the page at a path: labels of its fields in the place of options."""
        fields = {f"--{each.field.replace('_', '-')}": each for each in self._desk.fields.get(path, ())}
        labels = {option: f"“{each.off or each.label or each.words}”" for option, each in fields.items()}
        return _OPTION.sub(lambda found: labels.get(found[0], found[0]), sentence)


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
                    written = {name: value for name, value in form.items() if isinstance(value, str)}
                    pages.entered = f"/{action.path.split('/')[1]}", written, None
                    found = await run_in_threadpool(action.act, form)
                    pages.entered = (pages.entered[0], written, jobs.last) if found is None else ("", {}, None)
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
