"""Uploads that a request of this process is ending: finishing, or giving up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from datacollab.errors import ExchangeError

__all__ = ["Claims"]


class Claims:
    """One request at a time for each upload; others are told to ask again, as finishing reads all of a file."""

    def __init__(self) -> None:
        # In memory, so of this process alone; between processes the database decides, which drops an upload once.
        self._held: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, upload: str) -> Iterator[None]:
        """Hold an upload.

        Raises
        ------
        ExchangeError
            ``BUSY``.
        """
        with self._lock:
            # Refused and not made to wait: a thread that waits answers nobody.
            if upload in self._held:
                raise ExchangeError("BUSY", "Another request is just completing this upload. Ask again in a moment.")
            self._held.add(upload)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(upload)
