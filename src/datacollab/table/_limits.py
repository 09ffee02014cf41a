"""Refusals of tables, and how much memory one may take."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExchangeError

_MOST_BYTES = 2**35
"""The largest Parquet, Arrow or Excel file."""
_LEAST_MEMORY = 2**29
_MOST_UNPACKED = 100
"""A table may take 100 times the bytes of its file, and 512 MiB in any case."""


def unreadable(place: object, sentence: str) -> ExchangeError:
    """Return the error for a table that cannot be read."""
    return ExchangeError("TABLE_UNREADABLE", f"{place} {sentence}")


def ambiguous(place: object, sentence: str) -> ExchangeError:
    """Return the error for a table with two readings; the sentence says what decides."""
    return ExchangeError("TABLE_AMBIGUOUS", f"{place} {sentence}")


def check_size(path: Path, n_bytes: int) -> None:
    """Refuse a file that is too large."""
    if n_bytes > _MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"{path} has {n_bytes:,} bytes; {_MOST_BYTES:,} are allowed. Split it, or save it as CSV."
        )


def check_memory(path: Path, taken: int, n_bytes: int) -> None:
    """Refuse a file of so many bytes if its contents take too much."""
    limit = max(_LEAST_MEMORY, _MOST_UNPACKED * n_bytes)
    if taken > limit:
        raise ExchangeError(
            "TOO_LARGE",
            f"{path} would take at least {taken:,} bytes in memory; {limit:,} are allowed for a file of its size. "
            "Check where it comes from. If it is right, save the table as CSV.",
        )
