"""Bodies that are being read or worked on: so many at once, of one key, project and owner, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from datacollab.errors import ExchangeError

__all__ = ["Bodies"]

# Of 4 MiB each: 256 MiB of memory at most, in all processes together.
_MOST = 64
# An eighth, a quarter and a half, so that nobody keeps all others out.
_MOST_OF_KEY = 8
_MOST_OF_PROJECT = 16
_MOST_OF_OWNER = 32
_MOST_OF_STRANGERS = 32


class Bodies:
    """Places for bodies, which are held in memory; for the event loop's thread alone.

    Parameters
    ----------
    n_processes : int
        That share the places, an equal number each.
    """

    def __init__(self, n_processes: int = 1) -> None:
        self._of: Counter[tuple[str, str]] = Counter()
        most = {
            "known": _MOST,
            "key": _MOST_OF_KEY,
            "project": _MOST_OF_PROJECT,
            "owner": _MOST_OF_OWNER,
            "strangers": _MOST_OF_STRANGERS,
        }
        # Rounded up, so that each process has a place at least.
        self._most = {name: -(-number // n_processes) for name, number in most.items()}

    @contextmanager
    def held(self, fingerprint: str | None, project: str | None = None, owner: str | None = None) -> Iterator[None]:
        """Take a place, until the request is answered.

        Parameters
        ----------
        fingerprint : str, optional
            Who asks; None for strangers, whose bodies are small, and who take no place of those that are known.
        project : str, optional
            The request's project. Requests about none share the places of one project.
        owner : str, optional
            Who opened the project: one key's projects do not hold all places together.

        Raises
        ------
        ExchangeError
            ``TOO_MANY_REQUESTS``.
        """
        taken = [("strangers", "")]
        if fingerprint is not None:
            taken = [("known", ""), ("key", fingerprint), ("project", project or ""), ("owner", owner or fingerprint)]
        # Refused and not made to wait, as a queue takes memory too.
        if any(self._of[each] >= self._most[each[0]] for each in taken):
            raise ExchangeError("TOO_MANY_REQUESTS", "Too many requests with a body come at once. Wait a second.")
        self._of.update(taken)
        try:
            yield
        finally:
            self._of.subtract(taken)
            for each in taken:
                # Otherwise each key that ever asked would stay in memory.
                if not self._of[each]:
                    del self._of[each]
