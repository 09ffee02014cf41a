"""How long to wait before a hub is asked again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["AGAIN", "Patience"]

AGAIN = frozenset({408, 429, 502, 503, 504})
"""Statuses of answers that may be others a little later."""

# Seconds of one pause, whatever a hub asks for.
_LONGEST = 60.0


@dataclass(frozen=True)
class Patience:
    """Waits twice as long each time, and somewhat at random, so that many who wait do not come back at once.

    Attributes
    ----------
    attempts : int
        How often something is tried in all.
    first : float
        Seconds to wait after the first failure.
    sleep : callable
    """

    # Seven attempts last half a minute together, in which a hub can be begun anew.
    attempts: int = 7
    first: float = 0.5
    sleep: Callable[[float], None] = time.sleep

    def wait(self, n_failed: int, wanted: str | None = None) -> None:
        """Wait after so many failures.

        Parameters
        ----------
        n_failed : int
            One or more.
        wanted : str, optional
            Seconds that the hub asks for.
        """
        seconds = self.first * 2.0 ** (n_failed - 1) * random.uniform(0.5, 1.0)
        # Retry-After may be a date too (RFC 9110, section 10.2.3), and then counts for nothing.
        if wanted is not None and wanted.isdecimal() and len(wanted) < 6:
            seconds = max(seconds, float(wanted))
        self.sleep(min(seconds, _LONGEST))
