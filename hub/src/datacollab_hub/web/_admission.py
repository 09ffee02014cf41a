"""Checks of every request before its route: signature, replay, role; then size and digest of its body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from datacollab.errors import ExchangeError

from ..rules import ROUTES, Person, Role, Route, check_may, is_id
from ..service import Head, Hub, Identified, check_signed, identify, identify_invited, owner_of, read_presented_key
from ._bodies import Bodies, Joining, parse_body

_BY_NAME = {(route.method, route.path): route for route in ROUTES}
# The largest body, of 4 MiB, takes 512 of these seconds at the least rate.
_PATIENCE = 600
_PATIENCE_WITH_STRANGERS = 10
"""Seconds until a body has to be there."""

_WINDOW = 10
"""Seconds over which the rate of a body is looked at."""


@dataclass(frozen=True)
class Call:
    """A request that passed."""

    hub: Hub
    person: Person
    body: bytes


async def _admit(request: Request) -> AsyncIterator[Call]:
    """Identify the sender first, then read the body: strangers' bodies are not read, but for small ones to join."""
    route = _BY_NAME[request.method, request.scope["route"].path]
    # By the head alone, before a signature costs any work.
    _check_announced(request, route.most_bytes)
    if Role.INVITED in route.roles:
        # A stranger's body is read only where it says at least that it is signed.
        check_signed(request.headers)
        # Strangers have places of their own, so that they keep no member out.
        with _bodies(request).held(None):
            body = await _body(request, route.most_bytes, _PATIENCE_WITH_STRANGERS)
            yield await run_in_threadpool(_identify_invited, request, body)
        return
    found = await run_in_threadpool(_identify, request, route)
    if not route.most_bytes:
        yield _without_body(request, found)
        return
    project = _project(request)
    hub = request.app.state.hub
    owner = None
    if project is not None:
        # Places count by owner too, or one key's many projects would hold all of them.
        owner = await run_in_threadpool(owner_of, hub, project)
    with _bodies(request).held(found.person.fingerprint, project, owner):
        body = await _body(request, route.most_bytes, _PATIENCE, hub.settings.least_bytes_per_second)
        # In a thread, as everybody else would wait for the hash of megabytes.
        await run_in_threadpool(found.check_body, body)
        # From here on a wrong signature is that of a file within, and is answered as such.
        request.state.is_whole = True
        yield Call(request.app.state.hub, found.person, body)


async def answer_polled(request: Request, answer: Callable[[Hub, Person, str], Any]) -> JSONResponse:
    """Admit and answer a request without a body about a project, in one step of one thread.

    Members poll all the time: to change threads between both costs as much as to answer, and threads that wait
    for one another's turn at the interpreter cost more than they bring.
    """
    route = _BY_NAME[request.method, request.scope["route"].path]
    _check_announced(request, route.most_bytes)

    def both() -> JSONResponse:
        call = _without_body(request, _identify(request, route))
        return JSONResponse(answer(call.hub, call.person, request.path_params["project"]))

    return await to_thread.run_sync(both, limiter=request.app.state.polling)


def _without_body(request: Request, found: Identified) -> Call:
    found.check_body(b"")
    request.state.is_whole = True
    return Call(request.app.state.hub, found.person, b"")


def _identify(request: Request, route: Route) -> Identified:
    state = request.app.state
    found = identify(state.hub, state.seen, _head(request))
    request.state.who = found.person.fingerprint
    check_may(route, found.person)
    return found


def _identify_invited(request: Request, body: bytes) -> Call:
    state = request.app.state
    joining = parse_body(Joining, body)
    key = read_presented_key(joining.public_key)
    person = identify_invited(state.hub, state.seen, _head(request), body, presented=key, secret=joining.secret)
    request.state.who = person.fingerprint
    request.state.is_whole = True
    return Call(state.hub, person, body)


def _bodies(request: Request) -> Bodies:
    bodies: Bodies = request.app.state.bodies
    return bodies


def _project(request: Request) -> str | None:
    project: str | None = request.path_params.get("project")
    if project is None or not is_id(project):
        # What is no id is looked up nowhere.
        return None
    return project


def _head(request: Request) -> Head:
    """Path and query as they came, before anything in them was decoded."""
    path = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    target = f"{path}?{query}" if query else path
    # Lines of one name are joined, as the standard wants them.
    headers = {name: ", ".join(request.headers.getlist(name)) for name in request.headers}
    return Head(request.method, target, headers, _project(request))


def _check_announced(request: Request, most: int) -> None:
    """Refuse a body that says itself that it is too large, or that has no business to be there."""
    said = request.headers.get("content-length", "0")
    # A body that does not tell its length may come where bodies are taken: `_body` counts it.
    if (said.isdecimal() and int(said) > most) or (most == 0 and "transfer-encoding" in request.headers):
        raise _too_large(most)


async def _body(request: Request, most: int, patience: float, rate: int = 0) -> bytes:
    """The body, of which no more is taken than the route allows; whoever sends it too slowly loses its place.

    Parameters
    ----------
    request : Request
    most : int
    patience : float
        Seconds for all of it.
    rate : int
        Least bytes a second, over each window of time.
    """
    loop = asyncio.get_running_loop()
    body = bytearray()
    seen = 0
    last = loop.time() + patience
    try:
        # Two limits: one for all of the body, and one for each window, which enough bytes move on.
        async with asyncio.timeout_at(min(last, loop.time() + _WINDOW)) as until:
            async for piece in request.stream():
                body += piece
                # Whatever the head announced, or did not.
                if len(body) > most:
                    raise _too_large(most)
                if len(body) - seen >= rate * _WINDOW:
                    seen = len(body)
                    until.reschedule(min(last, loop.time() + _WINDOW))
    except TimeoutError:
        raise ExchangeError(
            "TOO_SLOW",
            f"The request's body came too slowly: of {patience} seconds in all, and {rate} bytes a second over each "
            f"{_WINDOW} seconds. Send it again, in smaller parts or by a faster line; or ask the hub's operator.",
        ) from None
    except ClientDisconnect:
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"The connection ended after {len(body)} bytes of the request's body; all of it is wanted. Ask again.",
        ) from None
    return bytes(body)


def _too_large(most: int) -> ExchangeError:
    return ExchangeError("TOO_LARGE", f"The request's body is too large; at most {most} bytes are taken here.")


Signed = Annotated[Call, Depends(_admit)]
"""What a route asks for, to be given requests that passed alone."""
