"""Tables from files; the words of an error name files and columns, and show no entry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["check_numeric", "closed_file", "listed"]


def check_numeric(path: Path, table: Any) -> None:
    """Raise a ValueError if a column of a data frame does not hold numbers."""
    others = table.select_dtypes(exclude=["number", "bool"]).columns
    if len(others):
        raise ValueError(
            f"{path}: {len(others)} of {table.shape[1]} columns do not hold numbers ({listed(others)}). Encode "
            "categories and drop identifiers first."
        )


def listed(names: Iterable[object]) -> str:
    """Return the first ten names, with commas between, without what could steer a terminal."""
    unknown = "\N{REPLACEMENT CHARACTER}"
    texts = ["".join(letter if letter.isprintable() else unknown for letter in str(name)) for name in names]
    return ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")


def closed_file(path: Path) -> Path:
    """Make an empty file that its owner alone can read; a file that is there already is closed."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path
