"""Tables from files; the words of an error name files and columns, and show no entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["check_numeric", "closed_file", "listed", "read_table", "record_number_questions"]


def read_table(path: Path) -> Any:
    """Read a table into a data frame: Parquet and Arrow files by their names, and CSV.

    Raises
    ------
    ExchangeError
        When it is no such file, or a CSV file without a header.
    MissingExtraError
        When pandas, or for Parquet and Arrow pyarrow, is not installed.
    """
    from ..exchange.project import read_table as read

    return read(path)


def check_numeric(path: Path, table: Any) -> None:
    """Check that all columns of a data frame hold numbers.

    Raises
    ------
    ValueError
        When some do not.
    """
    others = table.select_dtypes(exclude=["number", "bool"]).columns
    if len(others):
        raise ValueError(
            f"{path}: {len(others)} of {table.shape[1]} columns do not hold numbers ({listed(others)}). Encode "
            "categories and drop identifiers first."
        )


def record_number_questions(table: Any, names: Sequence[str], advice: str) -> list[str]:
    """A sentence for each column of numbers that looks like record numbers, with what to do if it is one."""
    from ..exchange.project import like_record_numbers

    return [
        f"Column {name!r} has another whole number in every row. If it is a record number, {advice}."
        for name in like_record_numbers(table, names)
    ]


def listed(names: Iterable[object]) -> str:
    """The first ten names, with commas between, without what would steer a terminal."""
    texts = [_printable(str(name)) for name in names]
    return ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def closed_file(path: Path) -> Path:
    """An empty file that its owner alone can read, to be written to; a file that is there already is closed."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path
