"""Reading and writing a party's own tables, whole or in batches, within limits of memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, BinaryIO

from .._notices import notice
from .._require import require
from ..bundle import replaced
from ..errors import ExchangeError
from ._arrow_frames import NAMELESS_INDEX, is_stream, stream_frames, to_frame
from ._column import Schema
from ._databases import DATABASES, Query, needs_query, query_frames
from ._exports import tell_concepts
from ._limits import check_memory, check_size, unreadable
from ._statistics import STATISTICS
from ._text import text_frames
from ._workbook import sheet_writer

_WRITTEN = {
    ".csv": "CSV",
    ".xlsx": "Excel",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}
_READ = _WRITTEN | dict.fromkeys((".xlsm", ".xls", ".xlsb", ".ods"), "Excel") | STATISTICS
_READ |= dict.fromkeys((".jsonl", ".ndjson"), "JSON")
"""Formats by the end of a file's name; any other is text."""


def table_format(path: Path) -> str:
    """Return CSV, Excel, Parquet or Arrow, by the end of the name of a file to write; refuse an unknown end."""
    kind = _WRITTEN.get(path.suffix.lower())
    if kind is None:
        raise unreadable(path, f"ends in {path.suffix!r}; name it with one of {', '.join(_WRITTEN)}.")
    return kind


def read_table(source: Any, *, schema: Schema | None = None) -> Any:
    """Read a table of text, a workbook, a Parquet or Arrow file, or one of SPSS, Stata or SAS into a data frame.

    It may also be a `Query` of a database, or anything with ``__arrow_c_stream__``; a data frame is returned itself.

    The end of the name is the format, and one that is not known is text: separators, decimal marks, encoding and lines
    above the header are found from the whole file.  A notice says them, and labels of codes (`notices_to`).

    A schema determines which columns are numbers; all others are text, and words such as NA are no entry where a
    category is expected.  Without a schema a column is numbers if every entry is one in one reading, without leading
    zeros, and words such as NA stay in columns of text.  Columns without a name are left out.

    Raises
    ------
    ExchangeError
        TABLE_UNREADABLE if the file is not of its format, TABLE_AMBIGUOUS if there are two readings.  The message
        quotes no entry.
    MissingExtraError
        If pandas, or for all but text the extra `tables`, is not installed.
    """
    source = table_source(source)
    if type(source) is Frame and not is_stream(source.table):
        return source.table
    if isinstance(source, Path) and (kind := _READ.get(source.suffix.lower(), "CSV")) not in _COLUMNAR:
        return next(text_frames(source, kind, batch_rows=None, schema=schema))
    # Without a schema a column of a query has its type by all rows.
    n_rows = _ALL_ROWS if isinstance(source, Query) and schema is None else _ROWS_AT_ONCE
    batches = list(table_batches(source, batch_rows=n_rows, schema=schema))
    return require("pandas", "cli").concat(batches, ignore_index=True)


def table_batches(source: Any, *, batch_rows: int = 16384, schema: Schema | None = None) -> Iterator[Any]:
    """Read a table as `read_table` does, in batches of rows, so that it need not fit into memory.

    Every batch has the same columns, and with a schema the same types.  A table without rows is one empty batch.
    Errors may come after some batches, if a later row is malformed.  A workbook is in memory as a whole.
    """
    source = table_source(source)
    if isinstance(source, Query):
        return query_frames(source, batch_rows=batch_rows, schema=schema)
    if isinstance(source, Frame):
        return source.frames(batch_rows, schema)
    kind = _READ.get(source.suffix.lower(), "CSV")
    if kind not in _COLUMNAR:
        return text_frames(source, kind, batch_rows=batch_rows, schema=schema)
    return _arrow_batches(source, kind, batch_rows, schema)


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """A table in memory, or a stream of one; as text it is its name, and never its rows."""

    table: Any
    name: str = "the table"
    path: Path | None = None

    def __str__(self) -> str:
        return self.name

    def frames(self, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
        """Yield data frames of so many rows."""
        if is_stream(self.table):
            return stream_frames(self.table, self.name, batch_rows=batch_rows, schema=schema)
        starts = range(0, max(len(self.table), 1), batch_rows)
        return (self.table.iloc[start : start + batch_rows] for start in starts)


@dataclass(frozen=True, eq=False, repr=False)
class Watched(Frame):
    """A source whose first rows stay in `head` when it is read, as a second reading of a database may find others."""

    heads: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, table: str | Path | Query | Frame) -> Watched:
        """Return the source of a table to watch."""
        source = table_source(table)
        return cls(source, source.name, table_file(source))

    @property
    def head(self) -> Any:
        """The first rows as a data frame, once the source was read."""
        return self.heads[-1]

    def __str__(self) -> str:
        return str(self.table)

    def frames(self, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
        """Yield data frames of so many rows, and keep the first one."""
        for place, frame in enumerate(table_batches(self.table, batch_rows=batch_rows, schema=schema)):
            if not place:
                self.heads.append(frame)
            yield frame


def table_source(table: Any, name: str = "the table") -> Path | Query | Frame:
    """Return where a table is read from: a file, the query of a database, or what is in memory, by its name."""
    if isinstance(table, Query | Frame):
        return table
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        if path.suffix.lower() in DATABASES:
            raise needs_query(path)
        return path
    return Frame(table, name)


def is_read(table: Any) -> bool:
    """Return whether a table is read in batches, as files, queries and streams of Arrow are."""
    return isinstance(table, str | os.PathLike | Query | Frame) or is_stream(table)


def table_file(source: Path | Query | Frame) -> Path | None:
    """Return the file that a table is read from, if it is one."""
    return source if isinstance(source, Path) else source.path


def is_same_file(output: Path, source: Path | Query | Frame) -> bool:
    """Return whether an output that is there is what a table is read from, even under another name."""
    file = table_file(source)
    return file is not None and file.exists() and output.samefile(file)


_COLUMNAR = ("Parquet", "Arrow")
_ROWS_AT_ONCE = 2**14
_ALL_ROWS = 2**31 - 1
"""The most that a driver may be asked for at once."""
_CELLS_AT_ONCE = 2**20
_OBJECT = 8
"""Bytes of a reference, which an object of Python takes at least."""


def _arrow_batches(path: Path, kind: str, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
    """Read a Parquet or Arrow file in batches of rows; a file without rows is one empty batch.

    Memory is counted before a frame is made of a batch, so a small file cannot fill it batch by batch.
    """
    pyarrow = require("pyarrow", "tables")
    try:
        with open(path, "rb") as file:
            # Of the open file, so that nobody can swap it between check and reading.
            n_bytes = os.fstat(file.fileno()).st_size
            check_size(path, n_bytes)
            opened = _open_arrow(file, kind, batch_rows)
            # Before a single page is unpacked; what it declares may be false, so batches are counted too.
            check_memory(path, opened.n_declared, n_bytes)
            names = opened.schema.names
            n_indices = sum(NAMELESS_INDEX.fullmatch(name) is not None for name in names)
            if n_indices:
                line = f"{len(names) - n_indices} columns; {kind}; an index without a name is left out"
                notice(f"{path.name}: {line}", is_plain=False)
            tell_concepts(path.name, names, schema)
            taken = 0
            is_empty = True
            for batch in opened.batches:
                # Offsets that point to nowhere would be followed.
                batch.validate(full=True)
                taken += _memory_of(batch)
                check_memory(path, taken, n_bytes)
                for start in range(0, batch.num_rows, batch_rows):
                    is_empty = False
                    yield to_frame(batch.slice(start, batch_rows), schema, path)
            if is_empty:
                yield to_frame(opened.schema.empty_table(), schema, path)
    except (ExchangeError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise ExchangeError(
            "TOO_LARGE", f"{path} does not fit into memory. Read it where there is more, or save the table as CSV."
        ) from None
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise _unreadable_arrow(path, error) from None


@dataclass(frozen=True, kw_only=True)
class _Arrow:
    """An open Parquet or Arrow file."""

    schema: Any
    batches: Iterator[Any]
    n_declared: int
    """Bytes of all pages unpacked, as the file declares them; 0 if it does not."""


def _open_arrow(file: BinaryIO, kind: str, batch_rows: int) -> _Arrow:
    if kind == "Parquet":
        # Buffered beforehand, the whole file would be in memory.
        parquet = require("pyarrow.parquet", "tables").ParquetFile(file, pre_buffer=False)
        about = parquet.metadata
        n_declared = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
        # Many rows of few columns, as every batch takes time for each column; few rows of many, which take memory.
        n_rows = max(_ROWS_AT_ONCE // 16, _CELLS_AT_ONCE // max(len(parquet.schema_arrow), 1))
        batches = parquet.iter_batches(batch_size=min(batch_rows, n_rows))
        return _Arrow(schema=parquet.schema_arrow, batches=batches, n_declared=n_declared)
    arrow = require("pyarrow.ipc", "tables").open_file(file)
    batches = map(arrow.get_batch, range(arrow.num_record_batches))
    return _Arrow(schema=arrow.schema, batches=batches, n_declared=0)


def _without_points(batch: Any, kept: Collection[str]) -> Any:
    """Return a batch in which kept whole numbers have no point: files have doubles for those beside gaps."""
    series = require("pandas", "cli").Series
    doubles = {name: batch[name] for name in kept if batch[name].dtype.kind == "f"}
    shown = {name: [*map(_show_whole, column.astype(object))] for name, column in doubles.items()}
    return batch.assign(**{name: series(each, index=batch.index, dtype=object) for name, each in shown.items()})


def _show_whole(entry: Any) -> Any:
    return int(float(entry)) if isinstance(entry, Real) and float(entry).is_integer() else entry


def _unreadable_arrow(path: Path, error: BaseException) -> ExchangeError:
    """Return the error for a Parquet or Arrow file, without the reader's words, which may quote data."""
    sort = "a Parquet" if table_format(path) == "Parquet" else "an Arrow or Feather"
    sentence = f"cannot be read as {sort} file ({type(error).__name__}). Export it again, or save the table as CSV."
    return unreadable(path, sentence)


def _memory_of(batch: Any) -> int:
    """Return the bytes of a batch as a data frame; one more for each row."""
    types = require("pyarrow", "tables").types
    # These take next to nothing in Arrow, at any length.
    n_short = sum(types.is_null(kind) or types.is_run_end_encoded(kind) for kind in batch.schema.types)
    return int(batch.nbytes + batch.num_rows * (1 + _OBJECT * n_short))


def write_table(path: Path, batches: Iterable[Any], *, mode: int = 0o666) -> int:
    """Write data frames one after another into a CSV, Excel, Parquet or Arrow file, and return how many rows.

    There is at least one frame, and all have the same columns.  The end of the name is the format; an unknown one is
    refused.  A CSV file has commas and points, or the style in ``attrs["style"]`` of the first frame: semicolons and
    decimal commas if the frame was read from such a table, and no points in whole numbers of columns of
    ``attrs["kept"]``.  An Excel sheet holds 1,048,575 rows below its header, and numbers for texts that it shows alike
    in these columns.

    The file appears when all of it is on the disk; if anything goes wrong, an earlier file is unchanged. Its
    permissions are `mode`, less the umask, from the first moment on.
    """
    path = Path(path)
    kind = table_format(path)
    n_rows = 0
    # Written beside it and moved: a crash leaves the earlier file.
    with replaced(path, mode=mode) as file, contextlib.ExitStack() as stack:
        write: Callable[[Any], object] | None = None
        for batch in batches:
            write = write or _writer(file, kind, batch, stack)
            write(batch)
            n_rows += len(batch)
        if write is None:
            raise ValueError(f"There is nothing to write into {path}: no batch, not even one without rows.")
    return n_rows


def _writer(file: BinaryIO, kind: str, first: Any, stack: contextlib.ExitStack) -> Callable[[Any], object]:
    """Return a function that writes one batch after another, with the columns and types of the first."""
    if kind == "CSV":
        style = first.attrs.get("style", {})
        how = {"index": False, "lineterminator": "\n", **style}
        # An Excel that writes semicolons takes text for UTF-8 if a mark says so.
        encoding = "utf-8-sig" if style else "utf-8"
        file.write(first.iloc[:0].to_csv(**how).encode(encoding))
        kept = first.attrs.get("kept", ())
        return lambda batch: file.write(_without_points(batch, kept).to_csv(header=False, **how).encode())
    if kind == "Excel":
        return sheet_writer(file, first, stack)
    pyarrow = require("pyarrow", "tables")
    types = pyarrow.Schema.from_pandas(first, preserve_index=False)
    if kind == "Parquet":
        opened = require("pyarrow.parquet", "tables").ParquetWriter(file, types)
    else:
        opened = require("pyarrow.ipc", "tables").new_file(file, types)
    writer = stack.enter_context(opened)
    # Later batches are forced into the first one's types, or refused.
    return lambda batch: writer.write_table(pyarrow.Table.from_pandas(batch, schema=types, preserve_index=False))
