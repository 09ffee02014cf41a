"""Reading CSV files to the last digit, whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._require import require
from ...errors import ExchangeError
from ._csv_refusals import check_text_file, unreadable_csv
from ._csv_rows import check_rows
from ._refusals import listed
from ._settled import settled

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["csv_batches", "read_csv"]

_MISSING_TEXTS = frozenset(
    ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)
"""What stands for a missing entry in a CSV file."""


def read_csv(path: Path, project: Project | None) -> Any:
    """Read a CSV file into a data frame.

    Raises
    ------
    ExchangeError
        When it is no CSV file with a header.
    """
    pandas = require("pandas", "cli")
    options = _options(path, project)
    check_rows(path)
    try:
        table = pandas.read_csv(path, low_memory=False, compression=None, **options)
    except ValueError as error:
        raise unreadable_csv(path, error) from None
    return settled(table, project)


def csv_batches(path: Path, batch_rows: int, project: Project | None) -> Iterator[Any]:
    """Read a CSV file in batches of rows; a file without rows is one empty batch.

    All rows are counted through before the first batch, so that nothing is made of a file that was cut off.

    Raises
    ------
    ExchangeError
        When it is no CSV file with a header, or its rows are not whole.
    """
    pandas = require("pandas", "cli")
    options = _options(path, project)
    check_rows(path)
    try:
        with pandas.read_csv(path, chunksize=batch_rows, low_memory=False, compression=None, **options) as chunks:
            for chunk in chunks:
                yield settled(chunk.reset_index(drop=True), project)
    except ValueError as error:
        raise unreadable_csv(path, error) from None


def _options(path: Path, project: Project | None) -> dict[str, Any]:
    """What pandas is told, so that an entry is read alike in every batch and by every version."""
    pandas = require("pandas", "cli")
    names = _header(path)
    # A copy of a row must stay one on its way through a file: numbers are read to the last digit, as pandas 3.1 does.
    is_exact = tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1)
    options: dict[str, Any] = {} if is_exact else {"float_precision": "round_trip"}
    if project is None:
        return options
    labels: dict[str, Sequence[str | int]] = {column.name: column.categories for column in project.columns}
    labels |= project.task.labels
    numeric = {name for name, each in labels.items() if not each} | (set(project.feature_names) - set(labels))
    # Text stays as it is, in columns that the project does not know as well: 007 is not 7.
    options["dtype"] = {name: str for name in names if name not in numeric}
    # A category may have a name that elsewhere means that there is no entry: NA is Namibia, too.
    if any(_MISSING_TEXTS.intersection(map(str, each)) for each in labels.values()):
        options["keep_default_na"] = False
        options["na_values"] = {name: _MISSING_TEXTS.difference(map(str, labels.get(name, ()))) for name in names}
    return options


def _header(path: Path) -> list[str]:
    """Names of the columns, as they stand in the file."""
    pandas = require("pandas", "cli")
    check_text_file(path)
    try:
        first = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, compression=None)
    except ValueError as error:
        raise unreadable_csv(path, error) from None
    names = [str(name) for name in first.iloc[0]]
    if len(names) == 1 and any(mark in names[0] for mark in (";", "\t")):
        raise ExchangeError(
            "TABLE_UNREADABLE",
            f"{path} has semicolons or tabs between its columns; commas are wanted, and decimal points.",
        )
    if _is_row_of_numbers(names):
        raise ExchangeError(
            "TABLE_UNREADABLE",
            f"{path} has no header: its first row holds numbers. Add a row with the columns' names.",
        )
    # Without a header these would be entries, so their places are told. Columns without a name hold nothing as a rule.
    if repeated := [place for place, name in enumerate(names, start=1) if name and names.count(name) > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{path}: columns {listed(repeated)} share names with others. Rename or remove them."
        )
    return [name for name in names if name]


def _is_row_of_numbers(names: list[str]) -> bool:
    """Whether column names are rather the first row of a table.  0, 1, 2, ... are names."""
    if names == [str(position) for position in range(len(names))]:
        return False
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return True
