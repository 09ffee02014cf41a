"""What one process remembers: requests that it has answered, and how often each key asks."""

from __future__ import annotations

import math
import threading

from ...errors import ExchangeError

__all__ = ["Seen"]

_BURST = 4
_MOST_KEYS = 10_000


class Seen:
    """Nonces until they expire, and a bucket of requests for each key.

    Parameters
    ----------
    per_second : float
        Requests of a key in the long run.
    """

    def __init__(self, per_second: float) -> None:
        self._rate, self._most = per_second, per_second * _BURST
        self._nonces: dict[tuple[str, str], float] = {}
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._next_purge = -math.inf

    def take(self, fingerprint: str, nonce: str, now: float, until: float) -> None:
        """Take a request once.

        Raises
        ------
        ExchangeError
            ``REPLAYED``.
        """
        with self._lock:
            if now >= self._next_purge:
                self._nonces = {each: end for each, end in self._nonces.items() if end >= now}
                self._next_purge = now + 60
            if (fingerprint, nonce) in self._nonces:
                raise ExchangeError("REPLAYED", "This very request was answered before. Make it anew.")
            self._nonces[fingerprint, nonce] = until

    def count(self, fingerprint: str, now: float) -> None:
        """Count a request.

        Raises
        ------
        ExchangeError
            ``TOO_MANY_REQUESTS``.
        """
        with self._lock:
            left, then = self._buckets.get(fingerprint, (self._most, now))
            left = min(self._most, left + max(0.0, now - then) * self._rate)
            if left < 1:
                raise ExchangeError(
                    "TOO_MANY_REQUESTS",
                    f"The key {fingerprint} asks more than {self._rate:g} times a second. Wait a second.",
                )
            # The one that asked last comes last; who has not asked for longest is forgotten first.
            self._buckets.pop(fingerprint, None)
            if len(self._buckets) >= _MOST_KEYS:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[fingerprint] = (left - 1, now)
