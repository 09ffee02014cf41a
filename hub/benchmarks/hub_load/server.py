"""A PostgreSQL server and a hub of one's own, both as an operator runs them."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["Hub", "find_programs", "free_port", "postgresql", "running_hub"]

_PATIENCE = 120


def find_programs() -> Path | None:
    """The folder with initdb and postgres, or None."""
    found = shutil.which("initdb")
    folders = [
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        *([Path(found).parent] if found else []),
    ]
    return next((each for each in folders if (each / "initdb").exists() and (each / "postgres").exists()), None)


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@contextlib.contextmanager
def postgresql(programs: Path) -> Iterator[tuple[str, int]]:
    """Address and process of a server with the settings that it comes with, that is, one that loses nothing."""
    # The server refuses to be run by root.
    user = None if os.geteuid() else pwd.getpwnam("postgres" if _has_user("postgres") else "nobody")
    as_user = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if user is not None:
            shutil.chown(folder, user.pw_uid, user.pw_gid)
        folder.chmod(0o700)
        making = [programs / "initdb", "-D", folder / "data", "-U", "hub", "-A", "trust", "--no-locale", "-E", "UTF8"]
        subprocess.run(making, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", **as_user)
        port = free_port()
        with open(os.devnull, "wb") as nowhere:
            arguments = [programs / "postgres", "-D", folder / "data", "-h", "127.0.0.1", "-p", str(port), "-k", folder]
            # In a session of its own: Ctrl-C is for the benchmark, which ends it last.
            server = subprocess.Popen(
                arguments, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True, **as_user
            )
        try:
            _until(lambda: _is_ready(programs, port), server)
            yield f"postgresql://hub@127.0.0.1:{port}/postgres", server.pid
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=_PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_user(name: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


def _is_ready(programs: Path, port: int) -> bool:
    asked = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "hub", "-d", "postgres"]
    return subprocess.run(asked, check=False).returncode == 0


class Hub:
    """A hub's process.

    Attributes
    ----------
    host : str
    port, pid : int
    """

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.host, self.port, self.pid = "127.0.0.1", port, process.pid


@contextlib.contextmanager
def running_hub(folder: Path, database: str, log: Path, more: Sequence[str] = ()) -> Iterator[Hub]:
    """`datacollab hub serve` with its own settings, whose lines of log go to a file."""
    port = free_port()
    code = "from datacollab.cli import main; main()"
    arguments = [sys.executable, "-c", code, "hub", "serve", "--data", str(folder), "--port", str(port), *more]
    environment = {**os.environ, "DATACOLLAB_HUB_DATABASE": database}
    with open(log, "wb") as lines:
        process = subprocess.Popen(arguments, stdout=lines, stderr=lines, env=environment, start_new_session=True)
    try:
        _until(lambda: _answers(port), process)
        yield Hub(port, process)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=_PATIENCE)


def _answers(port: int) -> bool:
    with contextlib.suppress(urllib.error.URLError, OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
        return True
    return False


def _until(is_there: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _PATIENCE
    while not is_there():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"A program does not start (exit status {process.returncode}): {process.args}")
        time.sleep(0.1)
