"""Running the app as a program, in one process or in several."""

from __future__ import annotations

import contextlib
import json
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import uvicorn
from fastapi import FastAPI

from datacollab.bundle import write_atomically

from ..rules import Settings
from ..service import Hub, Seen
from ..store import Store
from ._app import SEEN, make_app
from ._watching import JsonLines

_MOST_AT_ONCE = 512
"""Connections of a process; how many of them may bring bodies, `Bodies` says."""

_GRACE = 30
_PATIENCE = 20
"""Seconds without a sign of life until a process is ended and another begun; a busy machine is no reason.  Units and
compose files wait for both together."""

# Seconds between attempts to begin a process that cannot begin.
_PAUSE = 5.0
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""In the environment, the folder that processes share: the counters' library reads it when it is imported."""

_TOLD = "told.json"
_HELD = "held"
# More than the counters' files of one process take.
_ROOM = 2**19
_LOGGER = logging.getLogger("datacollab.hub")

_LINES = {"handlers": ["lines"], "level": "INFO", "propagate": False}
_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {"datacollab.hub": _LINES, "uvicorn.error": _LINES},
}


def serve(hub: Hub, *, host: str, port: int) -> None:
    """Answer requests until the process is told to end; those that are being answered then are ended first."""
    uvicorn.run(make_app(hub), host=host, port=port, **_options())


def serve_together(
    settings: Settings, *, data: Path, database: str | None, blobs: str | None, host: str, port: int, n_processes: int
) -> None:
    """Serve in several processes, which share their counts; one that dies is replaced.

    Parameters
    ----------
    settings : Settings
    data : Path
    database, blobs : str, optional
        As in `Store.located`; the store was opened before, and fits.
    host : str
    port : int
    n_processes : int
    """
    with _shared_folder(data) as folder:
        # Where there is the file, all may open it at the same moment.
        Seen(1.0, folder / SEEN).close()
        told = {"data": str(data.absolute()), "database": database, "blobs": blobs, "n_processes": n_processes}
        # Addresses and the token are no matter of an environment, which every process that is begun inherits.
        write_atomically(folder / _TOLD, json.dumps({**told, "settings": asdict(settings)}).encode(), mode=0o600)
        # Before any process is begun.
        os.environ[_FOLDER] = str(folder)
        # By name: each process makes its own app, and shares no connection with this one.
        uvicorn.run(f"{__name__}:one_of_several", factory=True, host=host, port=port, workers=n_processes, **_options())


def one_of_several() -> FastAPI:
    """The app of a process that `serve_together` began."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        folder = Path(os.environ[_FOLDER])
        told = json.loads((folder / _TOLD).read_bytes())
        store = Store.located(Path(told["data"]), database=told["database"], blobs=told["blobs"])
        # Processes that are begun later may find another disk or database.
        store.check()
        hub = Hub(store, Settings(**told["settings"]))
        _check_room(folder)
        app = make_app(hub, n_processes=told["n_processes"], shared=folder)
        # Once the app is made, as its counters make the files.
        _take_room(folder)
    except Exception as error:
        # It is begun anew at once: a full disk, or a database that is away, may need a while.
        _LOGGER.error("failed", exc_info=error)
        time.sleep(_PAUSE)
        sys.exit(1)
    return app


@contextlib.contextmanager
def _shared_folder(data: Path) -> Iterator[Path]:
    """A folder in the hub's own, which only this process clears, when it begins, of files left after a kill."""
    # Elsewhere there are no such locks, and what a kill leaves stays.
    if os.name == "posix":
        for left in data.glob("running-*"):
            with contextlib.suppress(OSError), open(left / _HELD, "rb") as file:
                _hold(file)
                shutil.rmtree(left)
    with (
        tempfile.TemporaryDirectory(prefix="running-", dir=data.absolute()) as folder,
        open(Path(folder) / _HELD, "wb") as file,
    ):
        _hold(file)
        yield Path(folder)


def _hold(file: IO[bytes]) -> None:
    """Mark a file as this process's, as long as it runs; OSError where it is another's."""
    if os.name == "posix":
        import fcntl

        # The system lets go of it when the process ends, in whatever way.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _check_room(folder: Path) -> None:
    """OSError where the disk is too full for the counters' files."""
    room = folder / f"room-{os.getpid()}"
    try:
        room.write_bytes(bytes(_ROOM))
    finally:
        room.unlink(missing_ok=True)


def _take_room(folder: Path) -> None:
    """Fill the counters' files, which are mapped to memory: a disk that is full later would end the process."""
    if hasattr(os, "posix_fallocate"):
        for path in folder.glob(f"*_{os.getpid()}.db"):
            with open(path, "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _end_with_parent() -> None:
    """Whoever was killed ends nobody: its processes would hold the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _options() -> dict[str, Any]:
    return {
        "log_config": _LOGGING,
        "access_log": False,
        "server_header": False,
        # The other parser that the server knows takes heads of any length, and strangers send them.
        "http": "h11",
        # Who asks is in signatures; headers of proxies are not believed.
        "proxy_headers": False,
        "limit_concurrency": _MOST_AT_ONCE,
        "timeout_graceful_shutdown": _GRACE,
        "timeout_worker_healthcheck": _PATIENCE,
    }
