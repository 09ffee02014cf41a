"""The program `datacollab`, loaded once: a server that does each command in a child of its own, and what asks it.

Loading takes longer than most commands.  A child has the folder, environment, streams and words of whoever asks.
Run as a program it is the server, which says "ready"; forests that are made to choose among have few trees there.
"""

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path

ASKING = """#!{python} -SE
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect({place!r})
said = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(asked, [json.dumps(said).encode()], [0, 1, 2])
code = asked.recv(1)
sys.exit(code[0] if code else 137)
"""
LOADED = ("cli", "own", "party", "analyst", "risk.audit", "steps.party", "steps.analyst", "effects")
LOADED += ("by_rows.party", "by_rows.analyst")


@contextmanager
def loaded_program():
    """Give a folder for the PATH, in which there is a `datacollab`."""
    with tempfile.TemporaryDirectory() as folder:
        place, program = Path(folder) / "socket", Path(folder) / "datacollab"
        program.write_text(ASKING.format(python=sys.executable, place=str(place)))
        program.chmod(0o700)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
        server = subprocess.Popen([sys.executable, __file__, place], env=environment, stdout=subprocess.PIPE)
        try:
            assert server.stdout.readline() == b"ready\n"
            yield folder
        finally:
            server.terminate()
            server.communicate()


def main(place):
    """Serve until the end, at the latest that of the process that began this one."""
    for room in LOADED:
        package = importlib.import_module(f"datacollab.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("datacollab.own._personal_model").N_TREES = 10
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as waiting:
        waiting.bind(place)
        waiting.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.write(1, b"ready\n")
        waiting.settimeout(5)
        asking = os.getppid()
        while os.getppid() == asking:
            try:
                asked, _ = waiting.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                waiting.close()
                code = 1
                try:
                    code = do(asked)
                except BaseException:
                    traceback.print_exc()
                sys.stdout.flush()
                sys.stderr.flush()
                asked.send(bytes([code]))
                os._exit(0)
            asked.close()


def do(asked):
    """Do a command, and return what it exits with."""
    said, streams, _, _ = socket.recv_fds(asked, 2**20, 3)
    said = json.loads(said)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(said["environment"])
    os.chdir(said["folder"])
    sys.argv = ["datacollab", *said["words"]]
    from datacollab.cli import main as program

    try:
        program()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main(sys.argv[1])
