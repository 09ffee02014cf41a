"""What can be killed: the hub, the database's server, and clients, each a process as people run it."""

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
from pathlib import Path
from typing import Any

__all__ = ["DAY", "Database", "HubProcess", "client", "find_programs"]

DAY = 86_400
_PATIENCE = 300.0
_MAIN = "from datacollab.cli import main\nmain()"
_WRONG_CLOCK = """import datetime, time
right = time.time
time.time = lambda: right() + {ahead}
class Wrong(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Wrong
"""


def client(folder: Path, verb: str, told: Path, ahead: int = 0) -> subprocess.Popen[bytes]:
    """A client's command; by how many seconds its clock is ahead."""
    words = [*_program(ahead), "remote", verb, "-C", str(folder)]
    with open(told, "ab") as out:
        return subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)


def _program(ahead: int) -> list[str]:
    return [sys.executable, "-c", (_WRONG_CLOCK.format(ahead=ahead) if ahead else "") + _MAIN]


class HubProcess:
    """``datacollab hub serve`` on a folder, behind a line by whose address all know it."""

    def __init__(self, folder: Path, told: Path, url: str, database: str | None) -> None:
        self.folder, self._told, self._url = folder, told, url
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {**os.environ, **({"DATACOLLAB_HUB_DATABASE": database} if database else {})}

    def start(self, ahead: int = 0) -> int:
        """Start it; its port is returned once it answers."""
        port = free_port()
        words = ["hub", "serve", "--data", str(self.folder), "--port", str(port), "--url", self._url]
        with open(self._told, "ab") as out:
            self.process = subprocess.Popen(
                [*_program(ahead), *words, "--rate", "10000"],
                stdout=out,
                stderr=out,
                env=self.environment,
            )
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                return port
            time.sleep(0.05)
        raise RuntimeError(f"The hub did not start; its last words are in {self._told}.")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Database:
    """A PostgreSQL server of one's own; it does not wait for disks, as no power is cut here."""

    def __init__(self, programs: Path) -> None:
        # Short, as names of sockets are; and not where other users cannot enter.
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._programs, self._port = programs, free_port()
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            shutil.chown(self._folder, "postgres")
            self._user = {"user": "postgres", "group": owner.pw_gid, "extra_groups": []}
        making = ["-D", str(self._folder / "data"), "-U", "hub", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"]
        subprocess.run(
            [str(programs / "initdb"), *making], check=True, stdout=subprocess.DEVNULL, cwd="/", **self._user
        )
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://hub@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and again while processes of the one that was killed are still ending."""
        where = ["-h", "127.0.0.1", "-p", str(self._port), "-k", str(self._folder)]
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with open(self._folder / "log", "ab") as told:
                self._server = subprocess.Popen(
                    [str(self._programs / "postgres"), "-D", str(self._folder / "data"), *where, "-F"],
                    stdout=told,
                    stderr=told,
                    cwd="/",
                    **self._user,
                )
            while self._server.poll() is None:
                ready = [str(self._programs / "pg_isready"), "-q", *where[:4]]
                if subprocess.run(ready, check=False).returncode == 0:
                    return
                time.sleep(0.05)
            time.sleep(0.2)
        raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()[-1000:]}")

    def kill(self) -> None:
        """Kill the server and all of its processes at once."""
        parent = self._server.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for process in (parent, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._server.wait()

    def close(self) -> None:
        if self._server.poll() is None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs, if they are on this machine."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    places = [*folders, *([Path(found).parent] if found else [])]
    return next((folder for folder in places if (folder / "postgres").exists()), None)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])
