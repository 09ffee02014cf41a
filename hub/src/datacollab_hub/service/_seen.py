"""The common memory of one hub's processes: requests that they have answered, and how often each key asks."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from pathlib import Path

from datacollab.errors import ExchangeError

# Seconds' worth of requests that may come at once: a command asks several times in a row.
_BURST = 4
# Seconds that a process waits for the others' turns at the file.
_WAIT = 30.0
_EVERY = 1.0
"""Seconds until what has expired is cleared away again."""

_SLACK = 60.0
"""Seconds that a nonce is kept longer: requests wait, and those that came later may be faster."""

_PORTION = 500
_PORTIONS = 40
"""Rows that are cleared away in one transaction, as its journal takes room too; and how many of these at a time."""

_TABLES = """
CREATE TABLE IF NOT EXISTS requests (digest BLOB PRIMARY KEY, until REAL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_time ON requests (until);
CREATE TABLE IF NOT EXISTS keys (fingerprint TEXT PRIMARY KEY, left REAL, asked REAL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_time ON keys (asked);
"""
# Question and answer in one statement: of two equal requests at the same moment one inserts.
_TAKE = "INSERT OR IGNORE INTO requests VALUES (?, ?)"
# A bucket that fills at the rate, up to the burst; a clock that was set back takes nothing away.
_LEFT = "min(:most, left + max(0, :now - asked) * :rate)"
# A request that was overtaken by a later one gives nobody the time between both again; a clock may be set back.
_ASKED = f"CASE WHEN asked - :now < {_SLACK} THEN max(asked, :now) ELSE :now END"
# A refused request changes nothing, so whoever was too fast need not fear to have asked.
_COUNT = f"""
INSERT INTO keys VALUES (:fingerprint, :most - 1, :now)
ON CONFLICT (fingerprint) DO UPDATE SET left = {_LEFT} - 1, asked = {_ASKED} WHERE {_LEFT} >= 1
"""
_EXPIRED = (
    "DELETE FROM requests WHERE digest IN (SELECT digest FROM requests WHERE until < ? ORDER BY until LIMIT ?)",
    "DELETE FROM keys WHERE fingerprint IN (SELECT fingerprint FROM keys WHERE asked < ? ORDER BY asked LIMIT ?)",
)


class Seen:
    """Nonces until they expire, and a bucket of requests for each key.

    All of it may be lost: it lasts as long as the hub runs, and is in no backup.

    Parameters
    ----------
    per_second : float
        Requests of a key in the long run.
    place : Path, optional
        A file for several processes; None for one process, in memory.
    """

    def __init__(self, per_second: float, place: Path | None = None) -> None:
        self._rate = per_second
        # One at least, or a rate below a quarter would let nobody in.
        self._most = max(1.0, per_second * _BURST)
        self._lock = threading.Lock()
        self._next = 0.0
        # Statements that each are a transaction.
        self._database = sqlite3.connect(
            place or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        # A process that is killed leaves the file whole; whether the machine's end does is of no consequence.
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;" + _TABLES)

    def take(self, fingerprint: str, nonce: str, now: float, until: float) -> None:
        """Take a request once.

        Raises
        ------
        ExchangeError
            ``REPLAYED``.
        """
        # There are hundreds of thousands where many ask.
        digest = hashlib.sha256(f"{fingerprint} {nonce}".encode("ascii")).digest()[:20]
        with self._lock:
            self._clear_away(now)
            is_new = self._database.execute(_TAKE, (digest, until)).rowcount == 1
        if not is_new:
            raise ExchangeError("REPLAYED", "This very request was answered before. Make it anew.")

    def count(self, fingerprint: str, now: float) -> None:
        """Count a request.

        Raises
        ------
        ExchangeError
            ``TOO_MANY_REQUESTS``.
        """
        values = {"fingerprint": fingerprint, "most": self._most, "rate": self._rate, "now": now}
        with self._lock:
            self._clear_away(now)
            may_ask = self._database.execute(_COUNT, values).rowcount == 1
        if not may_ask:
            raise ExchangeError(
                "TOO_MANY_REQUESTS",
                f"The key {fingerprint} asks more than {self._rate:g} times a second. Wait a second.",
            )

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _clear_away(self, now: float) -> None:
        """Forget, once a second, expired requests, and keys that have all their requests again."""
        # The lower bound notices a clock that was set back, which would put clearing off for long.
        if self._next - _EVERY <= now < self._next:
            return
        self._next = now + _EVERY
        # A key that was silent for this long has a full bucket, and needs no row.
        for statement, before in zip(_EXPIRED, (now - _SLACK, now - self._most / self._rate), strict=True):
            for _ in range(_PORTIONS):
                if self._database.execute(statement, (before, _PORTION)).rowcount < _PORTION:
                    break
