"""HTTP/1.1 over connections that stay open, in as few steps as will do."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from datacollab.bundle import KeyPair

from .signing import signature_lines

__all__ = ["Answer", "Asker", "Pool"]

_IDLE = 2.0
"""Seconds after which a connection is made anew; the hub ends those that are idle for five."""


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes
    ----------
    status : int
    headers : dict of str to str
        By names in small letters.
    body : bytes
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Asker:
    """Somebody with a key."""

    def __init__(self, key: KeyPair) -> None:
        self.key, self.fingerprint = key, key.public.fingerprint

    def message(self, method: str, authority: str, path: str, body: bytes = b"", lines: str = "") -> bytes:
        """A signed request as it goes over the line."""
        signed = signature_lines(
            method,
            authority,
            path,
            body,
            self.key,
            fingerprint=self.fingerprint,
            created=int(time.time()),
            nonce=secrets.token_urlsafe(16),
        )
        length = f"Content-Length: {len(body)}\r\n" if body or method in ("POST", "PUT", "PATCH") else ""
        return f"{method} {path} HTTP/1.1\r\nHost: {authority}\r\n{length}{lines}{signed}\r\n".encode() + body


class _Line(asyncio.Protocol):
    """A connection with one request on its way at most."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[Answer] | None = None
        self._pieces: list[bytes] = []
        self._head: tuple[int, Mapping[str, str]] | None = None
        self._missing = 0
        self._answered = time.monotonic()
        self.is_open = False

    @property
    def is_fresh(self) -> bool:
        return self.is_open and time.monotonic() - self._answered < _IDLE

    def connection_made(self, transport: Any) -> None:
        self._transport, self.is_open = transport, True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError("the line was closed before the answer was whole"))

    def close(self) -> None:
        self.is_open = False
        self._transport.close()

    async def ask(self, message: bytes) -> Answer:
        self._waiting = asyncio.get_running_loop().create_future()
        self._pieces, self._head, self._missing = [], None, 0
        self._transport.write(message)
        return await self._waiting

    def data_received(self, data: bytes) -> None:
        if self._head is None:
            data = b"".join([*self._pieces, data])
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._pieces = [data]
                return
            first, *lines = data[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            self._head = int(first.split(" ", 2)[1]), headers
            self._pieces, data = [], data[end + 4 :]
            self._missing = int(headers.get("content-length", 0))
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing <= 0 and self._waiting is not None and not self._waiting.done():
            status, headers = self._head
            self._answered = time.monotonic()
            self._waiting.set_result(Answer(status, headers, b"".join(self._pieces)))


class Pool:
    """Connections to a hub, used in turn, as those of a proxy in front of it are.

    Parameters
    ----------
    host, port
    size : int
        The most that are open at once; whoever finds none free waits.
    """

    def __init__(self, host: str, port: int, size: int) -> None:
        self.authority, self._host, self._port = f"{host}:{port}", host, port
        self._free: deque[_Line | None] = deque([None] * size)
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def ask(
        self, asker: Asker, method: str, path: str, body: bytes = b"", *, lines: str = "", patience: float = 30.0
    ) -> Answer:
        """A signed request and its answer.

        Raises
        ------
        TimeoutError, ConnectionError
        """
        async with asyncio.timeout(patience), self._line() as line:
            return await line.ask(asker.message(method, self.authority, path, body, lines))

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[_Line]:
        while not self._free:
            place = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        line = self._free.popleft()
        try:
            if line is not None and not line.is_fresh:
                line.close()
                line = None
            if line is None:
                _, line = await asyncio.get_running_loop().create_connection(_Line, self._host, self._port)
            yield line
        except BaseException:
            # An answer that comes later must not be taken for the next one's.
            if line is not None:
                line.close()
            line = None
            raise
        finally:
            self._free.append(line)
            while self._waiting and self._waiting[0].done():
                self._waiting.popleft()
            if self._waiting:
                self._waiting.popleft().set_result(None)

    def close(self) -> None:
        for line in self._free:
            if line is not None and line.is_open:
                line.close()
