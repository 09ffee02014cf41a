"""A desk on loopback: nobody on another machine can reach it."""

from __future__ import annotations

import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

__all__ = ["bound_socket", "serve"]

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
