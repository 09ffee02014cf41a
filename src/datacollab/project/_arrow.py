"""Reading Parquet and Arrow files in batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._require import require
from ._settled import settled
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

    Raises
    ------
    ExchangeError
        When it is no such file, or is damaged further on.
    """
    pyarrow = require("pyarrow", "tables")
    try:
        with open(path, "rb") as file:
            schema, batches = (_parquet if kind == "Parquet" else _arrow)(file, batch_rows)
            n_batches = 0
            for batch in batches:
                # Offsets that point to nowhere would be followed.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, batch_rows):
                    n_batches += 1
                    yield _frame(batch.slice(start, batch_rows), project)
            if not n_batches:
                yield _frame(schema.empty_table(), project)
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise unreadable(path, kind, error) from None


def _frame(batch: Any, project: Project | None) -> Any:
    """A batch as a data frame, whose types do not depend on whether entries are missing in it."""
    pandas, pyarrow = require("pandas", "cli"), require("pyarrow", "tables")
    nullable = {} if project is None else {pyarrow.from_numpy_dtype(t.numpy_dtype): t for t in _nullable(pandas)}
    frame = settled(batch.to_pandas(types_mapper=nullable.get).reset_index(drop=True), project)
    return frame if project is None else frame.assign(**_carried(batch, project))


def _carried(batch: Any, project: Project) -> dict[str, Any]:
    """Columns of types that pandas has no own for, as they are: a batch without entries would not tell their type.

    Only those that the project does not name, which are at most carried along.
    """
    pandas, pyarrow = require("pandas", "cli"), require("pyarrow", "tables")
    named = {project.task.target, *(column.name for column in project.columns), *project.feature_names}
    is_foreign = (
        pyarrow.types.is_date,
        pyarrow.types.is_time,
        pyarrow.types.is_decimal,
        pyarrow.types.is_binary,
        pyarrow.types.is_large_binary,
        pyarrow.types.is_fixed_size_binary,
        pyarrow.types.is_nested,
    )
    return {
        field.name: pandas.arrays.ArrowExtensionArray(batch.column(at))
        for at, field in enumerate(batch.schema)
        if field.name not in named
        and batch.schema.names.count(field.name) == 1
        and any(is_(field.type) for is_ in is_foreign)
    }


def _nullable(pandas: Any) -> list[Any]:
    whole = [f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    return [getattr(pandas, name)() for name in [*whole, "BooleanDtype"]]


def _parquet(file: Any, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    parquet = require("pyarrow.parquet", "tables").ParquetFile(file)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=batch_rows)


def _arrow(file: Any, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    """The file format, which Feather is as well; it can be read anywhere, so only one batch is in memory."""
    reader = require("pyarrow.ipc", "tables").open_file(file)
    return reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))
