"""Reading a party's own table, whole or in batches: CSV, and Parquet and Arrow within limits of size and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..._require import require
from ...errors import ExchangeError
from ._csv import csv_batches, read_csv
from ._table_format import settled, table_format, unreadable

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["read_table", "table_batches"]

_MOST_BYTES = 2**35
"""Of a Parquet or Arrow file."""

_LEAST_MEMORY, _MOST_UNPACKED = 2**29, 100
"""A table may take 100 times the bytes of its file, and 512 MiB in any case."""

_ROWS_AT_ONCE = 2**14
_OBJECT = 8


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
    return read_csv(path, project) if kind == "CSV" else _read_arrow(path, kind, project)


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
    return csv_batches(path, batch_rows, project) if kind == "CSV" else _arrow_batches(path, kind, batch_rows, project)


def _read_arrow(path: Path, kind: str, project: Project | None) -> Any:
    pandas = require("pandas", "cli")
    return pandas.concat(list(_arrow_batches(path, kind, _ROWS_AT_ONCE, project)), ignore_index=True)


def _arrow_batches(path: Path, kind: str, batch_rows: int, project: Project | None) -> Iterator[Any]:
    """Read a Parquet or Arrow file in batches of rows; a file without rows is one empty batch.

    What was read is counted before a frame is made of it, so a small file cannot fill the memory batch by batch.
    """
    pyarrow = require("pyarrow", "tables")
    try:
        with open(path, "rb") as file:
            limit = _memory_limit(path, os.fstat(file.fileno()).st_size)
            schema, batches, taken = (_parquet_batches if kind == "Parquet" else _ipc_batches)(file, batch_rows)
            _check_memory(path, taken, limit)
            taken = n_batches = 0
            for batch in batches:
                # Offsets that point to nowhere would be followed.
                batch.validate(full=True)
                taken += _memory_of(batch)
                _check_memory(path, taken, limit)
                for start in range(0, batch.num_rows, batch_rows):
                    n_batches += 1
                    yield _frame(batch.slice(start, batch_rows), project, path)
            if not n_batches:
                yield _frame(schema.empty_table(), project, path)
    except (ExchangeError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise ExchangeError(
            "TOO_LARGE", f"{path} does not fit into memory. Read it where there is more, or save the table as CSV."
        ) from None
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise unreadable(path, kind, error) from None


def _parquet_batches(file: IO[bytes], batch_rows: int) -> tuple[Any, Iterator[Any], int]:
    """The columns of a Parquet file, batches of its rows, and the bytes that it says its pages take unpacked."""
    opened = require("pyarrow.parquet", "tables").ParquetFile(file)
    about = opened.metadata
    n_bytes = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
    return opened.schema_arrow, opened.iter_batches(batch_size=min(batch_rows, _ROWS_AT_ONCE)), n_bytes


def _ipc_batches(file: IO[bytes], batch_rows: int) -> tuple[Any, Iterator[Any], int]:
    """The same of the Arrow file format, which Feather is as well; the file says how large its batches are."""
    opened = require("pyarrow.ipc", "tables").open_file(file)
    return opened.schema, map(opened.get_batch, range(opened.num_record_batches)), 0


def _memory_limit(path: Path, n_bytes: int) -> int:
    """Return the bytes that the table of a file may take, after a look at the file's own size."""
    if n_bytes > _MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"{path} has {n_bytes:,} bytes; {_MOST_BYTES:,} are allowed. Split it, or save it as CSV."
        )
    return max(_LEAST_MEMORY, _MOST_UNPACKED * n_bytes)


def _memory_of(batch: Any) -> int:
    """Return the bytes of a batch as a data frame; one more for each row."""
    types = require("pyarrow", "tables").types
    # These take next to nothing in Arrow, whatever their length.
    n_short = sum(types.is_null(kind) or types.is_run_end_encoded(kind) for kind in batch.schema.types)
    return int(batch.nbytes + batch.num_rows * (1 + _OBJECT * n_short))


def _check_memory(path: Path, taken: int, limit: int) -> None:
    if taken > limit:
        raise ExchangeError(
            "TOO_LARGE",
            f"{path} would take at least {taken:,} bytes in memory; {limit:,} are allowed for a file of its size. "
            "Check where it comes from. If it is right, save the table as CSV.",
        )


def _frame(batch: Any, project: Project | None, path: Path) -> Any:
    """A batch as a data frame, whose types do not depend on whether entries are missing in it."""
    pandas, pyarrow = require("pandas", "cli"), require("pyarrow", "tables")
    nullable = {} if project is None else {pyarrow.from_numpy_dtype(t.numpy_dtype): t for t in _nullable(pandas)}
    carried = _carried(batch, project, path)
    # Objects of Python would take many times as much.
    others = batch.select([at for at in range(batch.num_columns) if at not in carried])
    frame = settled(_to_pandas(others, nullable, path).reset_index(drop=True), project)
    for at, array in carried.items():
        frame.insert(min(at, frame.shape[1]), batch.schema.names[at], array)
    return frame


def _to_pandas(batch: Any, nullable: dict[Any, Any], path: Path) -> Any:
    try:
        return batch.to_pandas(types_mapper=nullable.get)
    # What a file says of the frame that it was written from may be anything, and is believed.
    except (AttributeError, KeyError, TypeError) as error:
        raise unreadable(path, "Parquet or Arrow", error) from None


def _carried(batch: Any, project: Project | None, path: Path) -> dict[int, Any]:
    """Columns of types that pandas has no own for, as they are: a batch without entries would not tell their type.

    Only those that the project does not name, which are at most carried along.
    """
    pandas, pyarrow = require("pandas", "cli"), require("pyarrow", "tables")
    is_foreign = (
        pyarrow.types.is_date,
        pyarrow.types.is_time,
        pyarrow.types.is_decimal,
        pyarrow.types.is_binary,
        pyarrow.types.is_large_binary,
        pyarrow.types.is_fixed_size_binary,
    )
    named = (
        () if project is None else (*project.task.columns, *(c.name for c in project.columns), *project.feature_names)
    )
    carried = {}
    for at, field in enumerate(batch.schema):
        is_nested = pyarrow.types.is_nested(field.type)
        if is_nested and field.name in named:
            raise ExchangeError(
                "SCHEMA_DTYPE",
                f"{path}: column {field.name!r} holds lists or records; numbers or texts are wanted, one in each row.",
            )
        is_carried = project is not None and field.name not in named and any(is_(field.type) for is_ in is_foreign)
        if (is_nested or is_carried) and batch.schema.names.count(field.name) == 1:
            carried[at] = pandas.arrays.ArrowExtensionArray(batch.column(at))
    return carried


def _nullable(pandas: Any) -> list[Any]:
    whole = [f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    return [getattr(pandas, name)() for name in [*whole, "BooleanDtype"]]
