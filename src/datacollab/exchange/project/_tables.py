"""Reading and writing a party's own tables, whole or in batches: CSV, and Parquet and Arrow within limits."""

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..._require import require
from ...bundle import replaced
from ...errors import ExchangeError
from ._encoding import is_number
from ._entries import listed

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["read_table", "table_batches", "table_format", "write_table"]

_FORMATS = {
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}


def table_format(path: Path, *, default: str | None = None) -> str:
    """Return CSV, Parquet or Arrow, by the end of a file's name, or the default; refuse an unknown end without one."""
    found = _FORMATS.get(path.suffix.lower(), default)
    if found is None:
        raise _unreadable(path, f"ends in {path.suffix!r}; name it with one of {', '.join(_FORMATS)}.")
    return found


def read_table(path: Path, *, project: Project | None = None) -> Any:
    """Read a CSV, Parquet or Arrow (Feather) file into a data frame, numbers to the last digit.

    A name that ends in none of .parquet, .pq, .arrow, .feather and .ipc is read as CSV.  A project determines the
    columns of a CSV file that are text: its categories, and those it does not name.  Without it, pandas guesses, and
    007 may become 7.

    Raises
    ------
    ExchangeError
        If the file is not of the format that its name says.  The message quotes no entry.
    MissingExtraError
        If pandas, or for Parquet and Arrow pyarrow, is not installed.
    """
    pandas, kind = require("pandas", "cli"), table_format(path, default="CSV")
    if kind == "CSV":
        return next(_csv_frames(path, None, project))
    return pandas.concat(list(_arrow_batches(path, kind, _ROWS_AT_ONCE, project)), ignore_index=True)


def table_batches(path: Path, *, batch_rows: int = 16384, project: Project | None = None) -> Iterator[Any]:
    """Read a table as `read_table` does, in batches of rows, so that it need not fit into memory.

    Every batch has the same columns, and with a project the same types.  A table without rows is one empty batch.
    Errors may come after some batches, if a later row is malformed.
    """
    kind = table_format(path, default="CSV")
    return _csv_frames(path, batch_rows, project) if kind == "CSV" else _arrow_batches(path, kind, batch_rows, project)


def _labels(project: Project) -> dict[str, Sequence[str | int]]:
    """Return the possible entries of each column that the project names; none if it holds numbers."""
    return {**{column.name: column.categories for column in project.columns}, **project.task.labels}


def _settled(table: Any, project: Project | None) -> Any:
    """Make numbers of the project float64, or a type could change after a first batch that has whole ones only."""
    if project is None:
        return table
    # Other entries stay, for `encode_table` to refuse.
    numeric = {name for name, labels in _labels(project).items() if not labels}
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items() if name in numeric}
    return table.astype({name: "float64" for name, kind in kinds.items() if kind in "biu"})


def _unreadable(place: object, sentence: str) -> ExchangeError:
    return ExchangeError("TABLE_UNREADABLE", f"{place} {sentence}")


_NO_UTF_8 = "is not UTF-8; in Excel: Save as CSV UTF-8."
_NO_TABLE = "is no CSV, Parquet or Arrow file (an Excel file? save it as CSV UTF-8)."
_BY_CONTENTS = {
    b"\xff\xfe": _NO_UTF_8,
    b"\xfe\xff": _NO_UTF_8,
    b"PAR1": "is a Parquet file by its contents. Let its name end in .parquet.",
    b"ARROW1": "is an Arrow file by its contents. Let its name end in .arrow.",
    b"\x1f\x8b": "is compressed. Unpack it first.",
    b"PK\x03\x04": _NO_TABLE,
}
_MISSING_TEXTS = frozenset(
    ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)
"""Texts for a missing entry in a CSV file."""


def _csv_frames(path: Path, batch_rows: int | None, project: Project | None) -> Iterator[Any]:
    """Read a CSV file in batches of rows, or at once; a file without rows is one empty batch.

    All rows are counted before the first batch, so that nothing is made of a file that was cut off.
    """
    pandas = require("pandas", "cli")
    try:
        options = _options(path, project)
        _check_widths(path)
        if batch_rows is None:
            yield _settled(pandas.read_csv(path, **options), project)
            return
        with pandas.read_csv(path, chunksize=batch_rows, **options) as chunks:
            for chunk in chunks:
                yield _settled(chunk.reset_index(drop=True), project)
    except ExchangeError:
        raise
    except ValueError as error:
        raise _unreadable_csv(path, error) from None


def _options(path: Path, project: Project | None) -> dict[str, Any]:
    """Return options for pandas with which an entry is read alike in every batch and by every version."""
    pandas = require("pandas", "cli")
    names = _header(path)
    options: dict[str, Any] = {"low_memory": False, "compression": None}
    # A copy of a row must stay one on its way through a file: numbers are read to the last digit, as pandas 3.1 does.
    if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"
    if project is None:
        return options
    labels = _labels(project)
    numeric = {name for name, each in labels.items() if not each} | (set(project.feature_names) - set(labels))
    # Text stays as it is, in columns that the project does not know as well: 007 is not 7.
    options["dtype"] = {name: str for name in names if name not in numeric}
    # A category may have a name that elsewhere means that there is no entry: NA is Namibia, too.
    if any(_MISSING_TEXTS.intersection(map(str, each)) for each in labels.values()):
        options["keep_default_na"] = False
        options["na_values"] = {name: _MISSING_TEXTS.difference(map(str, labels.get(name, ()))) for name in names}
    return options


def _header(path: Path) -> list[str]:
    """Return the names of the columns, as they stand in the file, after a look at its first bytes."""
    with open(path, "rb") as file:
        start = file.read(4096)
    if not start:
        raise _unreadable(path, "is empty.")
    for magic, sentence in _BY_CONTENTS.items():
        if start.startswith(magic):
            raise _unreadable(path, sentence)
    if b"\0" in start:
        raise _unreadable(path, _NO_TABLE)
    pandas = require("pandas", "cli")
    first = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, compression=None)
    names = [str(name) for name in first.iloc[0]]
    if len(names) == 1 and any(mark in names[0] for mark in (";", "\t")):
        raise _unreadable(path, "has semicolons or tabs between its columns; expected commas, and decimal points.")
    # 0, 1, 2, ... are names.
    if all(map(is_number, names)) and names != [str(position) for position in range(len(names))]:
        raise _unreadable(path, "has no header: its first row holds numbers. Add a row with the columns' names.")
    # Without a header these would be entries, so only their places are shown. Nameless columns are empty as a rule.
    if repeated := [place for place, name in enumerate(names, start=1) if name and names.count(name) > 1]:
        raise _unreadable(f"{path}:", f"columns {listed(repeated)} share names with others. Rename or remove them.")
    return [name for name in names if name]


def _check_widths(path: Path) -> None:
    """Check that every row has as many entries as the header; one pass, in which a single row is in memory."""
    width = None
    with open(path, encoding="utf-8-sig", newline="") as file:
        for line, n_entries in _rows(path, file):
            width = n_entries if width is None else width
            if n_entries != width:
                raise _unreadable(
                    f"{path}: line {line}",
                    f"has {n_entries} of {width} entries; the file may be cut off. Export it again, with as many "
                    "entries in every row."
                    if n_entries < width
                    else f"has {n_entries} entries, and the header names {width} columns. Name every column, and put "
                    "entries with commas into quotation marks.",
                )


def _rows(path: Path, file: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the line in which each row begins, from 1, and its number of entries; blank lines are no rows."""
    number, lines = 1, iter(file)
    for line in lines:
        # Counting commas takes a quarter of the time, and most lines have no quotation mark.
        if '"' not in line:
            if line.strip(" \t\r\n"):
                yield number, line.count(",") + 1
            number += 1
            continue
        reader = csv.reader(chain((line,), lines))
        try:
            entries = next(reader)
        except csv.Error:
            most = csv.field_size_limit()
            sentence = f"is not closed within {most} characters. Close it, or export the file again."
            raise _unreadable(f"{path}: a quotation mark in line {number}", sentence) from None
        yield number, len(entries)
        number += reader.line_num


def _unreadable_csv(path: Path, error: ValueError) -> ExchangeError:
    """Return the error for a file that pandas cannot read; its own words may quote an entry, so a number is taken."""
    kind = type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return _unreadable(path, _NO_UTF_8)
    if kind == "EmptyDataError":
        return _unreadable(path, "is empty.")
    # The C parser counts rows from 0, the header's included.
    found = re.search(r"\b(line|row) (\d+)", str(error))
    line = f" in line {int(found[2]) + (found[1] == 'row')}" if found else ""
    if "EOF inside string" in str(error):
        return _unreadable(path, f"has a quotation mark{line} that is not closed; the file may be cut off. Export it.")
    return _unreadable(
        path,
        f"cannot be read as a CSV file{line} ({kind}). Expected UTF-8 text, commas between columns, a header, and as "
        "many entries in every row.",
    )


_MOST_BYTES = 2**35
"""The largest Parquet or Arrow file."""
_LEAST_MEMORY, _MOST_UNPACKED = 2**29, 100
"""A table may take 100 times the bytes of its file, and 512 MiB in any case."""
_ROWS_AT_ONCE = 2**14
_OBJECT = 8
_NULLABLE = {f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NULLABLE["bool"] = "boolean"
"""Types of pandas in which entries may be missing, by those of Arrow."""


def _arrow_batches(path: Path, kind: str, batch_rows: int, project: Project | None) -> Iterator[Any]:
    """Read a Parquet or Arrow file in batches of rows; a file without rows is one empty batch.

    What was read is counted before a frame is made of it, so a small file cannot fill the memory batch by batch.
    """
    pyarrow = require("pyarrow", "tables")
    try:
        with open(path, "rb") as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if n_bytes > _MOST_BYTES:
                raise ExchangeError(
                    "TOO_LARGE",
                    f"{path} has {n_bytes:,} bytes; {_MOST_BYTES:,} are allowed. Split it, or save it as CSV.",
                )
            taken = n_batches = 0
            if kind == "Parquet":
                opened = require("pyarrow.parquet", "tables").ParquetFile(file)
                about, schema = opened.metadata, opened.schema_arrow
                # As declared, of all pages unpacked.
                taken = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
                batches = opened.iter_batches(batch_size=min(batch_rows, _ROWS_AT_ONCE))
            else:
                opened = require("pyarrow.ipc", "tables").open_file(file)
                schema, batches = opened.schema, map(opened.get_batch, range(opened.num_record_batches))
            _check_memory(path, taken, n_bytes)
            taken = 0
            for batch in batches:
                # Offsets that point to nowhere would be followed.
                batch.validate(full=True)
                taken += _memory_of(batch)
                _check_memory(path, taken, n_bytes)
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
        raise _unreadable_arrow(path, error) from None


def _unreadable_arrow(path: Path, error: BaseException) -> ExchangeError:
    """Return the error for a Parquet or Arrow file, without the reader's words, which may quote data."""
    sort = "a Parquet" if table_format(path) == "Parquet" else "an Arrow or Feather"
    sentence = f"cannot be read as {sort} file ({type(error).__name__}). Export it again, or save the table as CSV."
    return _unreadable(path, sentence)


def _memory_of(batch: Any) -> int:
    """Return the bytes of a batch as a data frame; one more for each row."""
    types = require("pyarrow", "tables").types
    # These take next to nothing in Arrow, at any length.
    n_short = sum(types.is_null(kind) or types.is_run_end_encoded(kind) for kind in batch.schema.types)
    return int(batch.nbytes + batch.num_rows * (1 + _OBJECT * n_short))


def _check_memory(path: Path, taken: int, n_bytes: int) -> None:
    if taken > (limit := max(_LEAST_MEMORY, _MOST_UNPACKED * n_bytes)):
        raise ExchangeError(
            "TOO_LARGE",
            f"{path} would take at least {taken:,} bytes in memory; {limit:,} are allowed for a file of its size. "
            "Check where it comes from. If it is right, save the table as CSV.",
        )


def _frame(batch: Any, project: Project | None, path: Path) -> Any:
    """Return a batch as a data frame, whose types do not depend on whether entries are missing in it."""
    pandas, types = require("pandas", "cli"), require("pyarrow", "tables").types
    if project is not None:
        named = {*_labels(project), *project.feature_names}
        if nested := [each.name for each in batch.schema if each.name in named and types.is_nested(each.type)]:
            raise ExchangeError(
                "SCHEMA_DTYPE",
                f"{path}: column {nested[0]!r} holds lists or records; expected a number or text in each row.",
            )
    # Types that pandas lacks stay as they are: objects of Python take many times as much, and tell no type if empty.
    foreign = [types.is_date, types.is_time, types.is_decimal]
    foreign += [types.is_binary, types.is_large_binary, types.is_fixed_size_binary]

    def mapped(kind: Any) -> Any:
        if project is not None and str(kind) in _NULLABLE:
            return pandas.api.types.pandas_dtype(_NULLABLE[str(kind)])
        is_kept = types.is_nested(kind) or (project is not None and any(is_(kind) for is_ in foreign))
        return pandas.ArrowDtype(kind) if is_kept else None

    try:
        frame = batch.to_pandas(types_mapper=mapped)
    # A file's description of the frame that it was written from may be anything, and is believed.
    except (AttributeError, KeyError, TypeError) as error:
        raise _unreadable_arrow(path, error) from None
    return _settled(frame.reset_index(drop=True), project)


def write_table(path: Path, batches: Iterable[Any], *, mode: int = 0o666) -> int:
    """Write data frames one after another into a CSV, Parquet or Arrow file, and return the number of rows.

    There is at least one frame, and all have the same columns.  The end of the name is the format; an unknown one is
    refused.  The file appears when all of it is on the disk; if anything goes wrong, an earlier file is unchanged.  Its
    permissions are `mode`, less the umask, from the first moment on.
    """
    path, n_rows = Path(path), 0
    kind = table_format(path)
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
        file.write(first.iloc[:0].to_csv(index=False, lineterminator="\n").encode())
        return lambda batch: file.write(batch.to_csv(index=False, header=False, lineterminator="\n").encode())
    pyarrow = require("pyarrow", "tables")
    schema = pyarrow.Schema.from_pandas(first, preserve_index=False)
    if kind == "Parquet":
        writer = stack.enter_context(require("pyarrow.parquet", "tables").ParquetWriter(file, schema))
    else:
        writer = stack.enter_context(require("pyarrow.ipc", "tables").new_file(file, schema))
    return lambda batch: writer.write_table(pyarrow.Table.from_pandas(batch, schema=schema, preserve_index=False))
