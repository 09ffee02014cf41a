"""Reading and writing a party's own tables, whole or in batches: CSV, and Parquet and Arrow within limits."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..._require import require
from ...errors import ExchangeError
from ._refusals import listed

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
    """CSV, Parquet or Arrow.

    Raises
    ------
    ExchangeError
        When the end of the name is none of the known ones, and there is no default.
    """
    found = _FORMATS.get(path.suffix.lower(), default)
    if found is None:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{path} ends in {path.suffix!r}; name it with one of {', '.join(_FORMATS)}."
        )
    return found


def unreadable(path: Path, kind: str, error: BaseException) -> ExchangeError:
    """The error for a Parquet or Arrow file that cannot be read, without the reader's words, which may quote data."""
    wanted = "an Arrow or Feather file" if kind == "Arrow" else f"a {kind} file"
    return ExchangeError(
        "TABLE_UNREADABLE",
        f"{path} cannot be read as {wanted} ({type(error).__name__}). Export it again, or save the table as CSV.",
    )


def settled(table: Any, project: Project | None) -> Any:
    """Make numbers of the project float64, lest a type change after a first batch that has whole ones only.

    What holds no numbers stays, for `encode_table` to refuse.
    """
    if project is None:
        return table
    numeric = {column.name for column in project.columns if column.kind == "number"}
    numeric |= {name for name, labels in project.task.labels.items() if not labels}
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items() if name in numeric}
    return table.astype({name: "float64" for name, kind in kinds.items() if kind in "biu"})


_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_UTF_8 = "is not UTF-8; in Excel: Save as CSV UTF-8."
_BY_CONTENTS = {
    b"PAR1": "is a Parquet file by its contents. Let its name end in .parquet.",
    b"ARROW1": "is an Arrow file by its contents. Let its name end in .arrow.",
    b"\x1f\x8b": "is compressed. Unpack it first.",
}
_NO_TABLE = "is no CSV, Parquet or Arrow file (an Excel file? save it as CSV UTF-8)."
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
    _check_rows(path)
    try:
        table = pandas.read_csv(path, low_memory=False, compression=None, **options)
    except ValueError as error:
        raise _unreadable_csv(path, error) from None
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
    _check_rows(path)
    try:
        with pandas.read_csv(path, chunksize=batch_rows, low_memory=False, compression=None, **options) as chunks:
            for chunk in chunks:
                yield settled(chunk.reset_index(drop=True), project)
    except ValueError as error:
        raise _unreadable_csv(path, error) from None


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
    _check_text_file(path)
    try:
        first = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, compression=None)
    except ValueError as error:
        raise _unreadable_csv(path, error) from None
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


def _check_rows(path: Path) -> None:
    """Check that every row has as many entries as the header; one pass, in which a single row is in memory.

    Raises
    ------
    ExchangeError
        With the line of the first row that has fewer or more; also when the file is not UTF-8.
    """
    try:
        _check_widths(path)
    except UnicodeDecodeError as error:
        raise _unreadable_csv(path, error) from None


def _check_widths(path: Path) -> None:
    width = None
    with open(path, encoding="utf-8-sig", newline="") as file:
        for line, n_entries in _rows(path, file):
            if width is None:
                width = n_entries
            if n_entries < width:
                raise ExchangeError(
                    "TABLE_UNREADABLE",
                    f"{path}: line {line} has {n_entries} of {width} entries; the file may be cut off. Export it "
                    "again, with as many entries in every row.",
                )
            if n_entries > width:
                raise ExchangeError(
                    "TABLE_UNREADABLE",
                    f"{path}: line {line} has {n_entries} entries, and the header names {width} columns. Name every "
                    "column, and put entries with commas into quotation marks.",
                )


def _rows(path: Path, file: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The line in which each row begins, from 1, and how many entries it has; blank lines are no rows."""
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
            raise ExchangeError(
                "TABLE_UNREADABLE",
                f"{path}: a quotation mark in line {number} is not closed within {csv.field_size_limit()} characters. "
                "Close it, or export the file again.",
            ) from None
        yield number, len(entries)
        number += reader.line_num


def _check_text_file(path: Path) -> None:
    """Look at the first bytes, which tell most files that hold no text.

    Raises
    ------
    ExchangeError
        When there are none, or they are no text.
    """
    with open(path, "rb") as file:
        start = file.read(4096)
    if not start:
        raise _refusal(path, "is empty.")
    if start.startswith(_UTF_16):
        raise _refusal(path, _NO_UTF_8)
    for magic, sentence in _BY_CONTENTS.items():
        if start.startswith(magic):
            raise _refusal(path, sentence)
    if start.startswith(b"PK\x03\x04") or b"\0" in start:
        raise _refusal(path, _NO_TABLE)


def _unreadable_csv(path: Path, error: ValueError) -> ExchangeError:
    """The error for a file that pandas cannot read; its own words may quote an entry, so only a number is taken."""
    if isinstance(error, UnicodeDecodeError):
        return _refusal(path, _NO_UTF_8)
    kind = type(error).__name__
    if kind == "EmptyDataError":
        return _refusal(path, "is empty.")
    line = _line(str(error))
    if "EOF inside string" in str(error):
        return _refusal(
            path,
            f"has a quotation mark{line} that is not closed; the file may be cut off. Export it again, or close it.",
        )
    return _refusal(
        path,
        f"cannot be read as a CSV file{line} ({kind}). Wanted: UTF-8 text, commas between columns, a header, and as "
        "many entries in every row.",
    )


def _line(words: str) -> str:
    """The line that the C parser names; its rows count from 0, the header's included."""
    found = re.search(r"\b(line|row) (\d+)", words)
    return f" in line {int(found[2]) + (found[1] == 'row')}" if found else ""


def _refusal(path: Path, sentence: str) -> ExchangeError:
    return ExchangeError("TABLE_UNREADABLE", f"{path} {sentence}")


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


def write_table(path: Path, batches: Iterable[Any], *, mode: int = 0o666) -> int:
    """Write data frames one after another into a CSV, Parquet or Arrow file, by the end of its name.

    The file appears when all of it is on the disk; if anything goes wrong, what was there before is still there.

    Parameters
    ----------
    path : Path
    batches : iterable of DataFrame
        At least one, with the same columns each.
    mode : int, default=0o666
        Permissions from the first moment on; the umask takes away from them.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    ExchangeError
        When the end of the name is unknown.
    MissingExtraError
        When pyarrow is wanted and not installed.
    """
    path = Path(path)
    open_writer = {"CSV": _csv_writer, "Parquet": _parquet_writer, "Arrow": _arrow_writer}[table_format(path)]
    part = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.part")
    n_rows = 0
    try:
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            _claim(file)
            with contextlib.ExitStack() as stack:
                write: Callable[[Any], None] | None = None
                for batch in batches:
                    write = write or open_writer(file, batch, stack)
                    write(batch)
                    n_rows += len(batch)
                if write is None:
                    raise ValueError(f"There is nothing to write into {path}: no batch, not even one without rows.")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        if error.filename != str(part):
            raise
        # The name in the error is to be the one that was asked for.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return n_rows


def _claim(file: IO[bytes]) -> None:
    """Keep other commands from taking the file for what a killed one left behind; see `exchange.log.locked`."""
    if os.name == "posix":
        import fcntl

        # Some file systems know no locks; there, nobody else may work in the folder.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _csv_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    file.write(first.iloc[:0].to_csv(index=False, lineterminator="\n").encode())
    return lambda batch: _discard(file.write(batch.to_csv(index=False, header=False, lineterminator="\n").encode()))


def _parquet_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    parquet, schema = require("pyarrow.parquet", "tables"), _schema(first)
    writer = stack.enter_context(parquet.ParquetWriter(file, schema))
    return lambda batch: writer.write_table(_arrow_table(batch, schema))


def _arrow_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    ipc, schema = require("pyarrow.ipc", "tables"), _schema(first)
    writer = stack.enter_context(ipc.new_file(file, schema))
    return lambda batch: writer.write_table(_arrow_table(batch, schema))


def _schema(first: Any) -> Any:
    return require("pyarrow", "tables").Schema.from_pandas(first, preserve_index=False)


def _arrow_table(batch: Any, schema: Any) -> Any:
    return require("pyarrow", "tables").Table.from_pandas(batch, schema=schema, preserve_index=False)


def _discard(_: object) -> None:
    pass
