"""The line between clients and the hub: it can be cut, and can send requests twice, late, or all of them again."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable

__all__ = ["COPIES", "Line"]

COPIES = ("before", "beside", "late")
"""When a second copy of a request arrives: before it, beside it, or after the one that follows it."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
_PIECE = 2**16


class Line:
    """Listens on a port of this machine, and passes requests on to `target`.

    Attributes
    ----------
    target : int
        Port of the hub.
    cut : tuple of (int or None, int or None)
        After how many bytes upwards and downwards the next connections break off, once.
    copies : str or None
        One of `COPIES`.
    passed : list of bytes
        Requests since `begin`.
    statuses : list of bytes
        Of answers to copies.
    """

    def __init__(self) -> None:
        self.target = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.begin()
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self) -> None:
        """Forget what passed, and all faults."""
        self.cut: tuple[int | None, int | None] = (None, None)
        self.copies: str | None = None
        self.passed: list[bytes] = []
        self.statuses: list[bytes] = []
        self.n_cut = 0
        self._up = self._down = 0
        self._waiting: tuple[str, int, threading.Event] | None = None

    def reaches(self, way: str, n_bytes: int) -> threading.Event:
        """Is set when so many bytes went "up" or "down"."""
        reached = threading.Event()
        self._waiting = (way, n_bytes, reached)
        return reached

    def replay(self, order: Callable[[list[bytes]], None]) -> None:
        """Send all that passed once more, in an order of its own."""
        again = list(self.passed)
        order(again)
        for request in again:
            self._copy(request)

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self.target)) as hub:
            threading.Thread(target=self._answers, args=(hub, client), daemon=True).start()
            late: bytes | None = None
            while request := _request(client):
                self.passed.append(request)
                # Where each is overtaken, nobody gets through; one of three is what a bad line does.
                if self.copies == "before" and len(self.passed) % 3 == 0:
                    self._copy(request)
                if not self._send(request, hub):
                    break
                if self.copies == "beside":
                    self._copy(request)
                if self.copies == "late":
                    if late is not None:
                        self._copy(late)
                    late = request
            for each in (client, hub):
                each.shutdown(socket.SHUT_RDWR)

    def _send(self, request: bytes, hub: socket.socket) -> bool:
        for start in range(0, len(request), _PIECE):
            piece = request[start : start + _PIECE]
            limit = self.cut[0]
            if limit is not None and self._up + len(piece) > limit:
                hub.sendall(piece[: max(0, limit - self._up)])
                self._cut()
                return False
            hub.sendall(piece)
            self._up += len(piece)
            self._tell("up", self._up)
        return True

    def _answers(self, hub: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := hub.recv(_PIECE):
                limit = self.cut[1]
                if limit is not None and self._down + len(piece) > limit:
                    client.sendall(piece[: max(0, limit - self._down)])
                    self._cut()
                    break
                client.sendall(piece)
                self._down += len(piece)
                self._tell("down", self._down)
        for each in (client, hub):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _cut(self) -> None:
        self.cut = (None, None)
        self.n_cut += 1

    def _tell(self, way: str, n_bytes: int) -> None:
        if self._waiting is not None and self._waiting[0] == way and n_bytes >= self._waiting[1]:
            self._waiting[2].set()

    def _copy(self, request: bytes) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target), timeout=60) as hub:
            hub.sendall(request)
            status = _STATUS.match(hub.recv(_PIECE))
            self.statuses.append(status[1] if status else b"none")


def _request(client: socket.socket) -> bytes:
    """The next request, head and body; empty where there is none, or half of one."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        piece = client.recv(_PIECE)
        if not piece:
            return b""
        data += piece
    length = _LENGTH.search(data[:end])
    body = bytearray(data)
    while len(body) < end + 4 + (int(length[1]) if length else 0):
        piece = client.recv(_PIECE)
        if not piece:
            return b""
        body += piece
    return bytes(body)
