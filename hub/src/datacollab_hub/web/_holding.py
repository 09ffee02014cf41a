"""Bodies that are being read or worked on: so many at once, of one key and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from datacollab.errors import ExchangeError

__all__ = ["Bodies"]

_MOST, _MOST_OF_KEY, _MOST_OF_STRANGERS = 64, 8, 32


class Bodies:
    """Places for bodies, which are held in memory; for the event loop's thread alone.

    Parameters
    ----------
    n_processes : int
        That share the places, an equal number each.
    """

    def __init__(self, n_processes: int = 1) -> None:
        self._of: Counter[str] = Counter()
        self._most, self._most_of_key, self._most_of_strangers = (
            -(-most // n_processes) for most in (_MOST, _MOST_OF_KEY, _MOST_OF_STRANGERS)
        )

    @contextmanager
    def held(self, fingerprint: str | None) -> Iterator[None]:
        """Take a place, until the request is answered.

        Parameters
        ----------
        fingerprint : str, optional
            Who asks; None for strangers, whose bodies are small, and who take no place of those that are known.

        Raises
        ------
        ExchangeError
            ``TOO_MANY_REQUESTS``.
        """
        who = fingerprint or ""
        n_known = self._of.total() - self._of[""]
        if self._of[who] >= (self._most_of_key if who else self._most_of_strangers) or (who and n_known >= self._most):
            raise ExchangeError("TOO_MANY_REQUESTS", "Too many requests with a body come at once. Wait a second.")
        self._of[who] += 1
        try:
            yield
        finally:
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]
