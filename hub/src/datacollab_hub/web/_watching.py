"""An operator's view of requests: a line of JSON each, and numbers.  No body, no secret, no query."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOGGER = logging.getLogger("datacollab.hub")
_FAILURES = ("UNAVAILABLE", "STORE_FULL", "other")
"""Codes of what is the hub's own trouble; and whatever nobody foresaw."""
# Answers are for programs: no browser keeps them, guesses their type, or runs what is in them.
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)


class JsonLines(logging.Formatter):
    """A log record as a line of JSON; an exception by its type and the places that it went through."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time_ = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said: dict[str, Any] = {"time": time_, "level": record.levelname.lower(), "event": record.getMessage()}
        said |= getattr(record, "facts", {})
        if record.exc_info and record.exc_info[0]:
            # By its type, as its words may name paths and values.
            said["error"] = record.exc_info[0].__name__
            said["where"] = _places(record.exc_info[2])
        # No letter ends the line early, or steers a terminal.
        return json.dumps(said, ensure_ascii=True)


def _places(traceback: Any) -> list[str]:
    """Return files and lines, without their text: an error's own words may quote a path or a statement's values."""
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    # The innermost ones; before them stands the framework.
    return places[-12:]


class Numbers:
    """Counters for /metrics.

    Parameters
    ----------
    shared : Path, optional
        A folder where several processes count together; it has to be in ``PROMETHEUS_MULTIPROC_DIR`` when the process
        begins.

    Attributes
    ----------
    registry : CollectorRegistry
        Numbers that are shown.
    """

    def __init__(self, shared: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        own: CollectorRegistry | None = self.registry
        if shared is not None:
            # Each process counts in files of its own, which are added up when somebody asks.
            MultiProcessCollector(self.registry, str(shared))  # type: ignore[no-untyped-call]
            own = None
        labels = ("method", "route", "status")
        self.requests = Counter("datacollab_hub_requests", "Requests answered.", labels, registry=own)
        self.failures = Counter("datacollab_hub_failures", "Requests that failed.", ("code",), registry=own)
        for code in _FAILURES:
            # There from the start, so that the first one is an increase.
            self.failures.labels(code)
        self.sent = Counter("datacollab_hub_sent_bytes", "Bytes of answers.", registry=own)
        self.seconds = Histogram("datacollab_hub_seconds", "Time to answer.", ("method",), registry=own)


class Watch:
    """Middleware that notes how each request ended, and adds headers that all answers have."""

    def __init__(self, app: ASGIApp, numbers: Numbers) -> None:
        self._app = app
        self._numbers = numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        # Stays where no answer begins, as after an error that nobody foresaw.
        status = 500
        sent = 0

        async def note_when_sent(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                own = list(message.get("headers", ()))
                # Pages may show their own style, which answers to programs need not.
                named = {name.lower() for name, _ in own}
                message = {**message, "headers": [*own, *(each for each in _HEADERS if each[0] not in named)]}
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        state = scope.setdefault("state", {})
        try:
            await self._app(scope, receive, note_when_sent)
        finally:
            self._note(scope, state, status, sent, time.perf_counter() - begun)

    def _note(self, scope: Scope, state: dict[str, Any], status: int, sent: int, seconds: float) -> None:
        # Path and method as they are written in the program: what came instead may be anything.
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"]
        if method not in getattr(scope.get("route"), "methods", ()):
            method = "other"
        self._numbers.requests.labels(method, route, status).inc()
        code = "other" if status == 500 else state.get("code")
        if code in _FAILURES:
            self._numbers.failures.labels(code).inc()
        self._numbers.sent.inc(sent)
        self._numbers.seconds.labels(method).observe(seconds)
        # Cut short, as a stranger may send any word as a method.
        facts = {"method": scope["method"][:16], "route": route, "status": status, "bytes": sent}
        facts |= {"ms": round(seconds * 1000, 1)}
        facts |= {name: state[name] for name in ("who", "code") if name in state}
        _LOGGER.info("request", extra={"facts": facts})
