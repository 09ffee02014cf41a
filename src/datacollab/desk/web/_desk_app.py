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
from dataclasses import dataclass, field, replace
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
from ...folder.step_table import STEPS, Input, Step
from ...look import HEADERS, STYLE, templates_in
from ._forms import DeskFiles, files_in, read_inputs, remote_commands, take_file, take_optional_file
from ._jobs import Job, Jobs, Refusal, refusal_of


class Session:
    """The secrets of one desk, drawn anew each time it is opened."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.port = host.rpartition(":")[2]
        self.cookie_name = f"datacollab-desk-{self.port}"
        self.cookie = secrets.token_urlsafe(32)
        # A second secret, in forms: a page elsewhere could have the browser send the cookie, and not this.
        self.token = secrets.token_urlsafe(32)
        self.when_redeemed: Callable[[], None] = lambda: None
        self.secret: str | None = secrets.token_urlsafe(32)
        """The secret that lets one browser in; None once it was used."""
        self._lock = threading.Lock()

    @property
    def link(self) -> str | None:
        """The link that lets one browser in; None once it was used."""
        return self.secret and f"{self.origin}/enter/{self.secret}"

    def redeem(self, secret: str) -> bool:
        """Return whether this is the link's secret, and let it be used once."""
        # Two requests at once with the same link must not both get in.
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


def _equal(text: str, secret: str) -> bool:
    # In constant time: how long it takes says nothing of how many letters fit.
    return compare_digest(text.encode("utf-8", "surrogatepass"), secret.encode())


ENTRANCE = "/enter"
STYLE_PATH = "/static/desk.css"
MOST_BYTES = 2 * 2**30
"""Bytes of an upload; tables and files of the exchange are smaller."""
MOST_TO_ENTER = 4096
"""Bytes of a body from a browser that is not let in yet."""
_HEADERS = {**HEADERS, "Referrer-Policy": "same-origin"}


class Guard:
    """Refuses requests before any page sees them, and puts the desk's headers on every answer."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session
        self._most = MOST_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            # There are no web sockets here, and nothing to be done at the start.
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refuse(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        await self._app(scope, _limit(receive, self._most_of(scope)), send_with_headers)

    def _refuse(self, scope: Scope) -> PlainTextResponse | None:
        """Return the answer to a request that no page may see; None for others."""
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
            # 20 digits are more than any size, and few enough to be read quickly.
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
        if _is_open(scope["path"]):
            return min(self._most, MOST_TO_ENTER)
        return self._most


def _is_open(path: str) -> bool:
    """Return whether a path is for browsers that were not let in, too."""
    secret = path.removeprefix(f"{ENTRANCE}/")
    return path in (ENTRANCE, STYLE_PATH) or (secret != path and secret != "" and "/" not in secret)


def _limit(receive: Receive, most: int) -> Receive:
    """Return a function that receives at most so many bytes, for any length in the headers, and then hangs up."""
    n_left = most

    async def receive_some() -> Message:
        nonlocal n_left
        message = await receive()
        n_left -= len(message.get("body", b""))
        if n_left < 0:
            return {"type": "http.disconnect"}
        return message

    return receive_some


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    if cookie is None:
        return None
    return cookie.value


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
    page = DeskFiles(folder).make_folder() / f"enter-{session.port}.html"
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
        # No script can read it, and no page elsewhere has it sent along.
        answer.set_cookie(session.cookie_name, session.cookie, path="/", httponly=True, samesite="strict")
        return answer

    async def by_link(request: Request) -> Response:
        if session.knows(request.cookies.get(session.cookie_name)):
            return RedirectResponse("/", 303)
        if request.method != "GET":
            # A program that only looks whether a link is there does not use it up.
            return let_in("")
        return let_in(request.path_params["secret"])

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
    """A page at a path: an answer, or a template and the values that it shows besides the desk itself."""

    path: str
    show: Callable[[Request], Response | dict[str, Any]] = lambda request: {}
    template: str = ""


@dataclass(frozen=True)
class Action:
    """The work of a form at a path; it answers with a page, a path to go to, or None if work has begun."""

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
class StepPlace:
    """A step in the list beside every page: where it is, and how far it is in few words."""

    path: str
    name: str
    note: str = ""
    is_done: bool = False
    is_beside: bool = False


@dataclass(frozen=True, kw_only=True)
class StepForm:
    """The form of a step: its page, the file and fields that it takes, and the files that its work writes."""

    verb: str
    path: str
    file: str = ""
    """Input that is the step's file; empty if it takes none."""
    also: str = ""
    """Input that is a second file, which may be left out."""
    fields: tuple[str, ...] = ()
    check: Callable[[dict[str, Any]], None] = lambda options: None
    writes: tuple[str, ...] = ()
    doing: str = ""
    """Name of the work, if it is another than the step's."""
    shown: str = ""
    """Page that shows the results, if it is another than the form's."""


class Desk:
    """A role's desk: a folder, its files, work in the background, and in ``done`` its results."""

    role: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.files = DeskFiles(self.path)
        self.jobs = Jobs()
        self.done: dict[str, Any] = {}
        self.fields: dict[str, list[Input]] = {}
        """Fields of the page at a path."""

    def command(self, verb: str, *words: object) -> str:
        """Return the command that does the same; words that are a shell's already stay as they are."""
        quoted = [shlex.quote(str(word)) if isinstance(word, Path) else str(word) for word in words if word]
        return " ".join([f"datacollab {self.role}", verb, *quoted, "-C", shlex.quote(str(self.path))])

    def remove(self, verb: str, names: Iterable[str]) -> None:
        """Remove the results of a step, and its files."""
        self.done.pop(verb, None)
        for name in names:
            (self.files.path / name).unlink(missing_ok=True)

    def form(self, of: StepForm, work: Callable[..., Any]) -> Action:
        """Return the form of a step: its fields and files are read, and ``done`` keeps the result of the work.

        ``work`` takes the job, the file if the form has one, and by their names the fields and the second file.
        """
        step = STEPS[f"{self.role} {of.verb}"]
        results = of.shown or of.path
        self.fields |= {page: [step[name] for name in of.fields] for page in (of.path, results)}

        def act(form: FormData) -> None:
            options = read_inputs(form, step, of.fields)
            of.check(options)
            paths = []
            # Uploads are removed when the work ends, or here if it cannot begin.
            with ExitStack() as taken:
                if of.file:
                    file = take_file(form, self.files, step[of.file], as_name=of.file)
                    taken.callback(file.discard)
                    paths.append(file.path)
                if of.also:
                    name = of.also
                    second = take_optional_file(form, self.files, step[name], as_name=name, prefix=f"{name}_")
                    if second is not None:
                        taken.callback(second.discard)
                        options[name] = second.path
                discard = taken.pop_all().close

            def begin(job: Job) -> None:
                # Results of an earlier file must not stand beside the name of this one.
                self.remove(of.verb, of.writes)
                self.done[of.verb] = work(job, *paths, **options)

            self.jobs.start(of.doing or step.doing, results, begin, at_end=discard)

        return Action(of.path, act, most_files=1 + bool(of.also))


@dataclass(frozen=True)
class LastForm:
    """The form that was sent last: its page, the texts in it, and the work that it began."""

    path: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    begun: Job | None = None


_AGAIN: ContextVar[Mapping[str, str]] = ContextVar("again")
"""Texts in a form that was refused, by the fields' names: nobody has to write them twice."""
_OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")


class Pages:
    """Renders templates of the desk and of one role, which are of its files."""

    def __init__(
        self,
        session: Session,
        jobs: Jobs,
        templates: Path,
        title: Callable[[], str],
        places: Callable[[], Sequence[StepPlace]],
        *,
        desk: Desk,
        **shared: Any,
    ) -> None:
        self._desk = desk
        place = desk.files.path
        self._upload = re.compile(f"({re.escape(str(place))}|{re.escape(str(place.absolute()))})/upload-\\w+/")
        self.last_form = LastForm()
        self._environment = templates_in(templates, Path(__file__).parent / "templates")
        self._jobs = jobs
        self._title = title
        self._places = places
        self._environment.globals |= {"token": session.token, "steps_of": STEPS, "files_in": files_in, **shared}
        self._environment.globals |= {"remote_commands": remote_commands, "quoted": shlex.quote, "desk": desk}
        self._environment.globals["again"] = lambda name, usual="": _AGAIN.get().get(name, usual)
        self._environment.globals["put_labels"] = self.put_labels
        self._environment.tests["finite"] = math.isfinite
        self._environment.globals["parts"] = self._environment.get_template("parts.html").module

    def page(self, template: str, *, path: str, status: int = 200, **context: Any) -> HTMLResponse:
        """Answer with a page of the step at a path."""
        failed = None
        notice = ""
        last = self._jobs.last
        if last is not None and last.is_done and last.where == path:
            failed = last.refusal and self._hide_paths(last.refusal, path)
            notice = last.notice
        form = self.last_form
        texts: Mapping[str, str] = {}
        if form.path == path and (form.begun is None or form.begun.refusal is not None):
            texts = form.texts
        _AGAIN.set(texts)
        if isinstance(refusal := context.get("refusal"), Refusal):
            # A page that shows a refusal has no second one.
            failed = None
            context["refusal"] = self._hide_paths(refusal, path)
        rendered = self._environment.get_template(template).render(
            **context,
            path=path,
            desk_title=self._title(),
            steps=self._places(),
            running=self._jobs.running,
            failed=failed,
            notice=notice,
        )
        return HTMLResponse(rendered, status_code=status)

    def _hide_paths(self, refusal: Refusal, path: str) -> Refusal:
        """Return the refusal with names of uploads in place of their paths, and labels in place of options."""
        # The folder of an upload has a name drawn by chance, which says nothing to a reader.
        message = self.put_labels(self._upload.sub("", refusal.message), path)
        return replace(refusal, message=message, remedy=self.put_labels(refusal.remedy, path))

    def put_labels(self, sentence: str, path: str) -> str:
        """Return a sentence of a command for the page at a path: labels of its fields in the place of options."""
        fields = {f"--{each.field.replace('_', '-')}": each for each in self._desk.fields.get(path, ())}
        labels = {option: f"“{each.off or each.label or each.words}”" for option, each in fields.items()}
        return _OPTION.sub(lambda match: labels.get(match[0], match[0]), sentence)


# Its branches are those of the routes that are defined within.
def create_app(session: Session, pages: Pages, jobs: Jobs, parts: Iterable[Page | Action]) -> ASGIApp:  # noqa: C901
    """Put a desk together."""

    def refuse(error: BaseException, part: Page | Action) -> Response:
        refusal = refusal_of(error)
        step = f"/{part.path.split('/')[1]}"
        back = step
        if isinstance(part, Page) and part.path == step:
            back = "/"  # The step's own page would refuse again.
        try:
            return pages.page("refusal.html", path=step, status=refusal.status, refusal=refusal, back=back)
        except Exception:
            # A folder that cannot be read has no list of steps either.
            return PlainTextResponse(f"{refusal.code}: {refusal.message}", refusal.status)

    # Pages and forms read tables and keys: in a thread, so that the desk answers meanwhile.
    def route_page(page: Page) -> Route:
        async def answer(request: Request) -> Response:
            try:
                values = await run_in_threadpool(page.show, request)
                if isinstance(values, Response):
                    return values
                return await run_in_threadpool(lambda: pages.page(page.template, path=page.path, **values))
            except Exception as error:
                return refuse(error, page)

        return Route(page.path, answer, methods=["GET"])

    def route_action(action: Action) -> Route:
        async def answer(request: Request) -> Response:
            try:
                async with request.form(max_files=action.most_files, max_fields=100) as form:
                    token = form.get("token")
                    if not isinstance(token, str) or not session.is_own(token):
                        return PlainTextResponse("This form is not the desk's own, or is of an earlier one.", 403)
                    return await _act(action, form, pages, jobs)
            except (HTTPException, ClientDisconnect):
                return PlainTextResponse(
                    "This form could not be read: it is damaged, too large or has too many files.", 400
                )
            except Exception as error:
                return refuse(error, action)

        return Route(action.path, answer, methods=["POST"])

    def route(part: Page | Action) -> Route:
        if isinstance(part, Page):
            return route_page(part)
        return route_action(part)

    def style(request: Request) -> Response:
        return FileResponse(STYLE, media_type="text/css")

    def nothing_here(request: Request, error: Exception) -> Response:
        if not session.knows(request.cookies.get(session.cookie_name)):
            # The page of a refusal lists the steps, which are nobody else's to read.
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
                route(Page("/work", lambda request: _work(pages, jobs))),
                *map(route, parts),
            ],
            exception_handlers={404: nothing_here},
        ),
        session,
    )


async def _act(action: Action, form: FormData, pages: Pages, jobs: Jobs) -> Response:
    """Do the work of a form; its texts are kept for its page, in case that it is refused."""
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    sent = LastForm(f"/{action.path.split('/')[1]}", texts)
    pages.last_form = sent  # stays if the next line raises
    answer = await run_in_threadpool(action.act, form)
    if answer is None:
        # Work has begun, which may refuse the form later.
        pages.last_form = replace(sent, begun=jobs.last)
        return RedirectResponse("/work", 303)
    pages.last_form = LastForm()
    if isinstance(answer, Response):
        return answer
    return RedirectResponse(answer, 303)


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
"""Seconds for answers under way once the desk is to close."""


def bind_socket(port: int = 0) -> tuple[socket.socket, str]:
    """Return a socket of this machine alone, and its name for a browser; port 0 is one that is free."""
    try:
        # Loopback alone: nobody else on the network can even knock.
        bound = socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise OSError(
            error.errno, f"Port {port} of this machine is taken ({error.strerror}). Name another, or none."
        ) from None
    return bound, f"{LOOPBACK}:{bound.getsockname()[1]}"


def serve(app: ASGIApp, bound: socket.socket, scratch: Path) -> None:
    """Answer until somebody interrupts; uploads on their way are in the folder ``scratch``."""
    # Uploads are rows: a shared folder for temporary files is no place for them.
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
    with _end_in_order():
        uvicorn.Server(config).run(sockets=[bound])


@contextmanager
def _end_in_order() -> Iterator[None]:
    """Let every way of ending the program be like Ctrl-C, after which no upload is left."""
    # A shell that is closed, or a system that shuts down.
    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [(each, signal.signal(each, signal.default_int_handler)) for each in others]
    try:
        yield
    finally:
        for each, handler in before:
            signal.signal(each, handler)
