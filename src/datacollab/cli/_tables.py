"""Reading CSV files; the words of an error name files and columns, and show no entry."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["check_numeric", "listed", "read_table"]


def read_table(path: Path) -> Any:
    """Read a CSV file into a data frame.

    Raises
    ------
    ValueError
        When it is no CSV file with a header.
    MissingExtraError
        When pandas is not installed.
    """
    from .._validation import require

    pandas = require("pandas", "cli")
    # A copy of a row must stay one on its way through a file: numbers are read to the last digit, as pandas 3.1 does.
    is_exact = tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1)
    options = {} if is_exact else {"float_precision": "round_trip"}
    try:
        table = pandas.read_csv(path, low_memory=False, **options)
    except ValueError as error:
        # pandas's own message may quote an entry, so it is dropped.
        raise ValueError(
            f"{path} cannot be read as a CSV file ({type(error).__name__}). Wanted: UTF-8 text, commas between "
            "columns, a header, and as many entries in every row."
        ) from None
    if table.shape[1] == 1 and any(mark in str(table.columns[0]) for mark in (";", "\t")):
        raise ValueError(f"{path} has semicolons or tabs between its columns; commas are wanted, and decimal points.")
    if _is_row_of_numbers(table.columns):
        raise ValueError(f"{path} has no header: its first row holds numbers. Add a row with the columns' names.")
    return table


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


def listed(names: Iterable[object]) -> str:
    """The first ten names, with commas between."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")


def _is_row_of_numbers(names: Iterable[str]) -> bool:
    """Whether column names are rather the first row of a table.  0, 1, 2, ... are names."""
    names = list(names)
    if names == [str(position) for position in range(len(names))]:
        return False
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return True
