"""What a table may take once it is unpacked: a file of a few kilobytes can ask for more than there is memory."""

from __future__ import annotations

from pathlib import Path

from ...errors import ExchangeError

__all__ = ["TableBudget"]

LEAST_BYTES = 2**29
MOST_UNPACKED = 100


class TableBudget:
    """Bytes that a file's table may take in memory: 100 times the file's, and 512 MiB in any case.

    Parameters
    ----------
    path : Path
        Whom an error names.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._n_bytes = path, path.stat().st_size
        self.limit = max(LEAST_BYTES, MOST_UNPACKED * self._n_bytes)
        self._taken = 0

    def take(self, n_bytes: int) -> None:
        """Count what is about to be made of the file, besides what was made before.

        Raises
        ------
        ExchangeError
            ``TOO_LARGE``.
        """
        self._taken += n_bytes
        self.check(self._taken)

    def check(self, n_bytes: int) -> None:
        """Refuse a file that takes so many bytes unpacked.

        Raises
        ------
        ExchangeError
            ``TOO_LARGE``.
        """
        if n_bytes > self.limit:
            raise ExchangeError(
                "TOO_LARGE",
                f"{self.path} has {self._n_bytes:,} bytes, and its table would take at least {n_bytes:,} in memory; "
                f"{self.limit:,} are allowed. Check where it comes from. If it is right, save the table as CSV.",
            )
