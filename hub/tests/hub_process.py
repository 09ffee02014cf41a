"""A hub in a process of its own, as its operator runs it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


class HubProcess:
    def __init__(self, folder, port, log, *, database=None, more=()):
        self.folder, self.port, self.log, self.process = folder, port, log, None
        self.url = f"http://127.0.0.1:{port}"
        self.arguments = ["hub", "serve", "--data", str(folder), "--port", str(port), "--rate", "10000", *more]
        self.environment = {
            **os.environ,
            "TMPDIR": str(folder.parent),
            **({"DATACOLLAB_HUB_DATABASE": database} if database else {}),
        }

    def start(self):
        code = "from datacollab.cli import main; main()"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *self.arguments], stdout=log, stderr=log, env=self.environment
            )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"{self.url}/readyz", timeout=5).close()
                return self
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
