"""Reading a party's table, whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._arrow import arrow_batches, read_arrow
from ._csv import csv_batches, read_csv
from ._table_format import table_format

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["read_table", "table_batches"]


def read_table(path: Path, *, project: Project | None = None) -> Any:
    """Read a CSV, Parquet or Arrow (Feather) file into a data frame, numbers to the last digit.

    Parameters
    ----------
    path : Path
        What ends in none of .parquet, .pq, .arrow, .feather and .ipc is read as CSV.
    project : Project, optional
        Says which columns of a CSV file are text: its categories, and what it does not name.  Without, pandas guesses,
        and 007 may become 7.

    Raises
    ------
    ExchangeError
        When the file is not what its name says.  The message quotes no entry.
    MissingExtraError
        When pandas, or for Parquet and Arrow pyarrow, is not installed.
    """
    kind = table_format(path, default="CSV")
    return read_csv(path, project) if kind == "CSV" else read_arrow(path, kind, project)


def table_batches(path: Path, *, batch_rows: int = 16384, project: Project | None = None) -> Iterator[Any]:
    """Read a table in batches of rows, so that it need not fit into memory.

    Every batch has the same columns, and with a project of the same types.  A table without rows is one empty batch.

    Parameters
    ----------
    path, project
        As `read_table` takes them.
    batch_rows : int, default=16384
        The most rows of a batch.

    Raises
    ------
    ExchangeError, MissingExtraError
        As `read_table` does; also after some batches, where a later row is malformed.
    """
    kind = table_format(path, default="CSV")
    return csv_batches(path, batch_rows, project) if kind == "CSV" else arrow_batches(path, kind, batch_rows, project)
