"""Reading Parquet and Arrow files in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..._require import require
from ...errors import ExchangeError
from ._arrow_messages import FIRST_MESSAGE, unpacked_bytes
from ._arrow_size import batch_bytes
from ._parquet import parquet_batches
from ._settled import settled
from ._table_budget import TableBudget
from ._table_format import unreadable

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["arrow_batches", "read_arrow"]


def read_arrow(path: Path, kind: str, project: Project | None) -> Any:
    """Read a Parquet or Arrow file into a data frame.

    Raises
    ------
    ExchangeError
        When it is no such file.
    """
    pandas = require("pandas", "cli")
    return pandas.concat(list(arrow_batches(path, kind, 2**20, project)), ignore_index=True)


def arrow_batches(path: Path, kind: str, batch_rows: int, project: Project | None) -> Iterator[Any]:
    """Read a Parquet or Arrow file in batches of rows; a file without rows is one empty batch.

    What the file takes unpacked is bounded before it is.

    Raises
    ------
    ExchangeError
        When it is no such file, is damaged further on, or takes too much.
    """
    pyarrow = require("pyarrow", "tables")
    try:
        with open(path, "rb") as file:
            budget = TableBudget(path)
            schema, batches = (parquet_batches if kind == "Parquet" else _ipc_batches)(file, batch_rows, budget)
            n_batches = 0
            for batch in batches:
                # Offsets that point to nowhere would be followed.
                batch.validate(full=True)
                budget.take(batch_bytes(batch))
                for start in range(0, batch.num_rows, batch_rows):
                    n_batches += 1
                    yield _frame(_written_out(batch.slice(start, batch_rows), schema), project, path)
            if not n_batches:
                yield _frame(schema.empty_table(), project, path)
    except (ExchangeError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise unreadable(path, kind, error) from None


def _ipc_batches(file: IO[bytes], batch_rows: int, budget: TableBudget) -> tuple[Any, Iterator[Any]]:
    """The Arrow file format, which Feather is as well; one of its batches is in memory at a time."""
    total = 0
    for n_bytes in unpacked_bytes(file):
        total += n_bytes
        budget.check(total)
    # What was counted is what is read: the end of the file could name other places.
    file.seek(FIRST_MESSAGE)
    reader = require("pyarrow.ipc", "tables").open_stream(file)
    return reader.schema, iter(reader)


def _written_out(rows: Any, schema: Any) -> Any:
    """Rows whose texts were left in dictionaries, as the file has them."""
    pyarrow = require("pyarrow", "tables")
    if rows.schema.types == schema.types:
        return rows
    # Arrow makes no views of dictionaries; pandas makes the same of texts.
    fields = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_string_view(field.type) else field for field in schema
    ]
    columns = [column.cast(field.type) for column, field in zip(rows.columns, fields, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(fields, metadata=schema.metadata))


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
