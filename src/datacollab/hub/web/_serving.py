"""Running the app as a program, in one process or in several."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from ..rules import Settings
from ..service import Hub, Seen
from ..store import Store
from ._app import SEEN, make_app
from ._watching import JsonLines

__all__ = ["serve", "serve_together"]

_MOST_AT_ONCE = 512
"""Connections of a process; how many of them may bring bodies, `Bodies` says."""

_GRACE = 30
_PATIENCE = 60
"""Seconds without a sign of life until a process is ended and another begun; a busy machine is no reason."""

_TOLD = "DATACOLLAB_HUB_TOLD"
"""In the environment, what a process is to serve; all is the same user's."""

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
    """The same in several processes, which share what they count; one that dies is replaced.

    Parameters
    ----------
    settings : Settings
    data : Path
    database, blobs : str, optional
        As in `Store.located`; the store was opened before, and is what it has to be.
    host : str
    port : int
    n_processes : int
    """
    with tempfile.TemporaryDirectory(prefix="datacollab-hub-") as folder:
        # Where there is the file, all may open it at the same moment.
        Seen(1.0, Path(folder) / SEEN).close()
        told = {"data": str(data), "database": database, "blobs": blobs, "n_processes": n_processes, "shared": folder}
        os.environ[_TOLD] = json.dumps({**told, "settings": asdict(settings)})
        # What the counters' library reads when it is imported, which each process does for itself.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        uvicorn.run(f"{__name__}:one_of_several", factory=True, host=host, port=port, workers=n_processes, **_options())


def one_of_several() -> FastAPI:
    """The app of a process that `serve_together` began."""
    told = json.loads(os.environ.pop(_TOLD))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    store = Store.located(Path(told["data"]), database=told["database"], blobs=told["blobs"])
    hub = Hub(store, Settings(**told["settings"]))
    return make_app(hub, n_processes=told["n_processes"], shared=Path(told["shared"]))


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
