"""A page's reader, and its errors: the rules are those of signed requests, the answers are pages."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError

from datacollab.errors import ExchangeError
from datacollab.look import HEADERS
from datacollab.plugins import all_codes

from ..rules import ROUTES, Person, Route, check_may, is_id, not_found
from ..service import Hub, visitor
from ._cookie import cookie_of, form_token
from ._showing import show

__all__ = ["Visit", "Visiting", "missing_page", "new_router", "page_route"]

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
    """A browser that is signed in, at a page that is for its key.

    Attributes
    ----------
    hub : Hub
    person : Person
    cookie : str
    """

    hub: Hub
    person: Person
    cookie: str

    @property
    def token(self) -> str:
        """The token that forms of its pages carry."""
        return form_token(self.cookie)


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
