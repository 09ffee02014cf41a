"""A PostgreSQL server of one's own, where its programs are found."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def find_programs():
    """The folder with initdb and postgres; None where there is none, or nobody who may run them."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    for folder in [*folders, *([Path(found).parent] if found else [])]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder if os.geteuid() or _other_user() else None
    return None


def _other_user():
    """The server refuses to be run by root."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


ON_ONE_DATABASE = pytest.mark.parametrize(
    "database", ["sqlite" if find_programs() is None else "postgresql"], indirect=True
)
"""What takes long is tried with PostgreSQL where it is found, and elsewhere with SQLite."""


@contextlib.contextmanager
def run_server(programs):
    user = None if os.geteuid() else _other_user()
    as_user = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    # Not under pytest's folders, which other users cannot enter; and short, as names of sockets are.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        folder.chmod(0o700)
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": "/", **as_user}
        making = [
            programs / "initdb",
            "-D",
            folder / "data",
            *("-U", "hub", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"),
        ]
        subprocess.run(making, check=True, **quiet)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-h 127.0.0.1 -p {port} -k {folder} -F"
        control = [programs / "pg_ctl", "-D", folder / "data", "-w"]
        # Its output goes to a file: a pipe would stay open as long as the server runs.
        subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], check=True,
                       **{**quiet, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})  # fmt: skip
        try:
            yield f"postgresql://hub@127.0.0.1:{port}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=False, **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
