"""Running the app as a program."""

from __future__ import annotations

import logging
import sys

import uvicorn

from ..service import Hub
from ._app import make_app
from ._watching import JsonLines

__all__ = ["serve"]

_MOST_AT_ONCE = 512
"""Connections; how many of them may bring bodies, `Bodies` says."""

_GRACE = 30


def serve(hub: Hub, *, host: str, port: int) -> None:
    """Answer requests until the process is told to end; those that are being answered then are ended first."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("datacollab.hub", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    uvicorn.run(
        make_app(hub),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        # The other parser that the server knows takes heads of any length, and strangers send them.
        http="h11",
        # Who asks is in signatures; headers of proxies are not believed.
        proxy_headers=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_GRACE,
    )
