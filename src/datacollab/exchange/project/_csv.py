"""Reading CSV files to the last digit, whole or in batches, and what to say where that is not possible."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._require import require
from ...errors import ExchangeError
from ._refusals import listed
from ._table_format import settled

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["csv_batches", "read_csv"]

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
