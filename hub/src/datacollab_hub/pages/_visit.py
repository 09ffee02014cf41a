"""Pages from templates, a page's reader by the cookie of a browser that is signed in, and errors, which are pages."""

from __future__ import annotations

import hashlib
import hmac
import logging
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from jinja2 import Environment
from markupsafe import Markup, escape
from sqlalchemy.exc import SQLAlchemyError

from datacollab.errors import ExchangeError
from datacollab.look import HEADERS, templates_in
from datacollab.plugins import all_codes

from ..rules import ROUTES, Person, Route, Settings, check_may, is_id, not_found
from ..service import BROWSER_SECONDS, Hub, visitor

_KIB = 1024
_ROLES = {"owner": "the owner", "analyst": "the analyst", "party": "a party", "auditor": "an auditor"}


def show(
    template: str,
    hub: Hub,
    visit: Visit | None,
    *,
    status: int = 200,
    project: dict[str, Any] | None = None,
    here: str = "",
    **context: Any,
) -> HTMLResponse:
    """Answer with a page.

    Parameters
    ----------
    template : str
        Name of its file.
    hub : Hub
    visit : optional
        Whose page it is; None where nobody is signed in.
    status : int, default=200
    project : dict, optional
        That it is about, as `project_status` tells of it.
    here : str
        Of the project's pages, the one that it is.
    **context
        Values of the template.
    """
    rendered = (
        _environment()
        .get_template(template)
        .render(**context, host=urlsplit(hub.settings.url).netloc, visit=visit, project=project, here=here)
    )
    return HTMLResponse(rendered, status_code=status)


@cache
def _environment() -> Environment:
    environment = templates_in(Path(__file__).parent / "templates")
    environment.filters |= {
        "mark_commands": mark_commands,
        "day": day,
        "moment": moment,
        "role_words": role_words,
        "size": size,
    }
    # Macros that all pages use.
    environment.globals["parts"] = environment.get_template("parts.html").module
    return environment


def moment(seconds: int | None) -> Markup | str:
    """A time by the hub's clock.

    Examples
    --------
    >>> str(moment(1_800_000_000))
    '<time datetime="2027-01-15T08:00:00Z">15 January 2027, 08:00 UTC</time>'
    """
    if seconds is None:
        return "not known"
    then = datetime.fromtimestamp(seconds, UTC)
    words = f"{then.day} {then:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(then.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


def day(iso: str) -> Markup:
    """A day, in words.

    Examples
    --------
    >>> str(day("2027-01-31"))
    '<time datetime="2027-01-31">31 January 2027</time>'
    """
    then = date.fromisoformat(iso)
    return Markup('<time datetime="{}">{} {:%B %Y}</time>').format(iso, then.day, then)


def role_words(roles: Sequence[str]) -> str:
    """Describe roles in words.

    Examples
    --------
    >>> role_words(["owner", "party"])
    'the owner and a party'
    """
    return " and ".join(_ROLES[role] for role in roles)


def mark_commands(text: str) -> Markup:
    """A sentence in which commands stand between backticks.

    Examples
    --------
    >>> str(mark_commands("Run `a <b>`, then c."))
    'Run <code>a &lt;b&gt;</code>, then c.'
    """
    # Every second part stands between backticks.
    parts = text.split("`")
    shown = [Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)]
    return Markup("").join(shown)


def size(n_bytes: int) -> str:
    """How large something is.

    Examples
    --------
    >>> size(900), size(5_000), size(3 * 2**20)
    ('900 bytes', '4.9 KiB', '3.0 MiB')
    """
    if n_bytes < _KIB:
        return f"{n_bytes} bytes"
    for unit, power in (("KiB", 1), ("MiB", 2)):
        n_bytes_in = n_bytes / _KIB**power
        if n_bytes_in < _KIB:
            return f"{n_bytes_in:.1f} {unit}"
    return f"{n_bytes / _KIB**3:.1f} GiB"


# A hash of the cookie for any other purpose would be another.
_DOMAIN = b"datacollab hub form 1"
_PORTS = {"http": 80, "https": 443}


def _name(settings: Settings) -> str:
    """With TLS a name that no other host, path or plain connection can set; else with the port, as all share cookies.

    Examples
    --------
    >>> _name(Settings(url="https://hub.example")), _name(Settings(url="http://127.0.0.1:8000"))
    ('__Host-datacollab-hub', 'datacollab-hub-8000')
    """
    parts = urlsplit(settings.url)
    if parts.scheme == "https":
        return "__Host-datacollab-hub"
    return f"datacollab-hub-{_port(parts)}"


def cookie_of(request: Request) -> str | None:
    """Return the cookie that the browser sent."""
    return request.cookies.get(_name(request.app.state.hub.settings))


def give_cookie(request: Request, response: Response, cookie: str) -> None:
    """Let the browser keep a cookie, which no script can read and no other site has sent."""
    settings: Settings = request.app.state.hub.settings
    response.set_cookie(
        _name(settings),
        cookie,
        max_age=BROWSER_SECONDS,
        path="/",
        secure=settings.url.startswith("https:"),
        # No script reads it, and no other site's link or form carries it along.
        httponly=True,
        samesite="strict",
    )


def clear_cookie(request: Request, response: Response) -> None:
    """Have the browser forget it."""
    settings: Settings = request.app.state.hub.settings
    response.delete_cookie(
        _name(settings), path="/", secure=settings.url.startswith("https:"), httponly=True, samesite="strict"
    )


def form_token(cookie: str) -> str:
    """Return the token of this browser's forms. It is a hash of the cookie, which other pages do not know."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), _DOMAIN, hashlib.sha256).hexdigest()


def check_origin(request: Request) -> None:
    """Refuse a form that another site's page sends.

    Raises
    ------
    ExchangeError
        ``NOT_ALLOWED``.
    """
    said = request.headers.get("origin")
    # Old browsers send none; the form's token, or the link's secret, guards there.
    if said is not None and _origin(said) != _origin(request.app.state.hub.settings.url):
        raise ExchangeError("NOT_ALLOWED", "This form comes from another page than the hub's. Open the hub's own page.")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, _port(parts)
    except ValueError:
        # What is no address is the origin of nothing.
        return "", None, None


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)


STATUS = {
    **dict.fromkeys(("REQUEST_MALFORMED",), 400),
    **dict.fromkeys(("NOT_SIGNED_IN",), 401),
    **dict.fromkeys(("NOT_ALLOWED", "INVITATION_INVALID"), 403),
    **dict.fromkeys(("NOT_FOUND", "AGREEMENT_MISSING"), 404),
    "TOO_LARGE": 413,
    "TOO_MANY_REQUESTS": 429,
}
"""Of codes; all others are 422."""

_LOGGER = logging.getLogger("datacollab.hub")
_BY_NAME = {(route.method, route.path): route for route in ROUTES if route.is_page}
_UNAVAILABLE = 503
_HEADERS = {
    **HEADERS,
    # Forms say where they come from, and no other page learns a path.
    "Referrer-Policy": "strict-origin",
}


@dataclass(frozen=True)
class Visit:
    """A browser that is signed in, at a page that is for its key."""

    hub: Hub
    person: Person
    cookie: str

    @property
    def token(self) -> str:
        """The token that forms of its pages carry."""
        return form_token(self.cookie)

    def show(self, template: str, **context: Any) -> HTMLResponse:
        """Answer with a page; all else is as in `show`."""
        return show(template, self.hub, self, **context)


def page_route(request: Request) -> Route:
    """The row of the table that a request is about."""
    return _BY_NAME[request.method, request.scope["route"].path]


def _visiting(request: Request) -> Visit:
    hub: Hub = request.app.state.hub
    project: str | None = request.path_params.get("project")
    if project is not None and not is_id(project):
        # What is no id is looked up nowhere.
        project = None
    cookie = cookie_of(request)
    person = visitor(hub, request.app.state.seen, cookie, project=project)
    visit = Visit(hub, person, cookie or "")
    request.state.who = person.fingerprint
    # Before the permission, as the page of a refusal shows who is signed in.
    request.state.visit = visit
    check_may(page_route(request), person)
    return visit


Visiting = Annotated[Visit, Depends(_visiting)]
"""What a page asks for, to be shown to those alone whom it is for."""


class _PageRoute(APIRoute):
    """A route whose refusals are pages, and whose answers have the headers of pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with errors put into words."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handler(request)
            except ExchangeError as error:
                response = _refuse(request, error, STATUS.get(error.code, 422))
            except RequestValidationError:
                # The framework's own words would repeat what was sent.
                wrong = ExchangeError("REQUEST_MALFORMED", "The address's query is wrong: numbers from 0 are wanted.")
                response = _refuse(request, wrong, 400)
            except (OSError, SQLAlchemyError, sqlite3.Error) as error:
                # Words of the system name paths, so they go to the hub's log alone.
                _LOGGER.error("failed", exc_info=error)
                request.state.code = "UNAVAILABLE"
                response = _page_of(request, "UNAVAILABLE", "The hub cannot reach what it keeps.", "", _UNAVAILABLE)
            response.headers.update(_HEADERS)
            return response

        return answer


def new_router() -> APIRouter:
    """A router for pages."""
    return APIRouter(route_class=_PageRoute, default_response_class=Response)


def missing_page(request: Request) -> Response:
    """Answer a browser that asks for an address which does not exist."""
    response = _page_of(request, "NOT_FOUND", str(not_found()), "", 404)
    response.headers.update(_HEADERS)
    return response


def _refuse(request: Request, error: ExchangeError, status: int) -> Response:
    request.state.code = error.code
    return _page_of(request, error.code, str(error), all_codes()[error.code].remedy, status)


def _page_of(request: Request, code: str, message: str, remedy: str, status: int) -> Response:
    visit = getattr(request.state, "visit", None)
    hub: Hub = request.app.state.hub
    return show("refusal.html", hub, visit, status=status, code=code, message=message, remedy=remedy)
