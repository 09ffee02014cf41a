"""The app: routes, checks before them, and answers to errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from anyio import CapacityLimiter
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from ..pages import ROUTER as PAGES
from ..service import Hub, Seen
from ._bodies import Bodies
from ._refusals import answer_errors
from ._routes import ROUTER
from ._watching import Numbers, Watch

SEEN = "seen.sqlite"
_DAY = 86_400

_POLLING = 4
"""Threads for what members ask all the time; the others stay free for what they send."""


def make_app(hub: Hub, *, n_processes: int = 1, shared: Path | None = None) -> FastAPI:
    """An ASGI app of a hub.

    Parameters
    ----------
    hub : Hub
    n_processes : int, default=1
        That answer beside one another, this one included.
    shared : Path, optional
        A folder for their common counts; needed where they are several.
    """
    app = FastAPI(
        title="datacollab hub",
        # Pages that describe the API would load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # A redirection would lead to whatever host the request names.
        redirect_slashes=False,
        lifespan=_tidied,
    )
    app.state.hub = hub
    app.state.seen = Seen(hub.settings.requests_per_second, shared and shared / SEEN)
    app.state.bodies = Bodies(n_processes)
    app.state.polling = CapacityLimiter(_POLLING)
    app.state.numbers = Numbers(shared)
    # The first route that fits answers, so those that programs ask come first.
    app.include_router(ROUTER)
    app.include_router(PAGES)
    answer_errors(app)
    # Around all else, so that errors are counted too, and have the headers of other answers.
    app.add_middleware(Watch, numbers=app.state.numbers)
    return app


@contextlib.asynccontextmanager
async def _tidied(app: FastAPI) -> AsyncIterator[None]:
    """Clear away unfinished uploads, at the beginning and once a day; the app ends after requests that were begun."""
    ending = asyncio.Event()
    task = asyncio.create_task(_tidy_daily(app.state.hub, ending))
    yield
    ending.set()
    # A sweep that was begun comes to its end, and is not cut off among its blobs.
    await task


async def _tidy_daily(hub: Hub, ending: asyncio.Event) -> None:
    while not ending.is_set():
        try:
            await run_in_threadpool(hub.store.tidy, hub.clock())
        except Exception as error:
            # A day later it may be better; nothing but room depends on it.
            logging.getLogger("datacollab.hub").error("failed", exc_info=error)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), _DAY)
