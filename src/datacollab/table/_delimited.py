"""The layout of a text table: encoding, separator, lines before the header, names; decided from the whole file."""

from __future__ import annotations

import codecs
import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._require import require
from ..errors import ExchangeError
from ._limits import ambiguous, unreadable
from ._values import is_any_number

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
_HEAD_LINES = 400
"""Lines in which separator and header are looked for."""
_MOST_TITLES = 50
"""Rows above the header; more are a table of another kind."""
_BY_CONTENTS = {
    b"PAR1": "is a Parquet file by its contents. Let its name end in .parquet.",
    b"ARROW1": "is an Arrow file by its contents. Let its name end in .arrow.",
    b"\x1f\x8b": "is compressed. Unpack it first; in R, write a table of .rds as .csv or .parquet.",
    b"PK\x03\x04": "is an Excel workbook or an archive by its contents. Let the name of a workbook end in .xlsx.",
    b"$FL": "is an SPSS file by its contents. Let its name end in .sav.",
    b"<stata_dta>": "is a Stata file by its contents. Let its name end in .dta.",
    b"HEADER RECORD": "is a SAS transport file by its contents. Let its name end in .xpt.",
    b"<": "is a web page or XML by its contents. Save it as CSV or .xlsx.",
    b"\xd0\xcf\x11\xe0": "is a workbook of an old Excel. Let its name end in .xls.",
}
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ENCODINGS = {"utf-8": "UTF-8", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
_SIGNS = "\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u201c\u201d\u0178¡-¦¨-¬®¯±-³¶¸-¿"
_FOREIGN = re.compile(
    f"[a-zA-ZÀ-ÿ][{_SIGNS}][a-zà-ÿ]|[À-ÿ]{{3}}|(?<![a-zA-ZÀ-ÿ])(?:[£¥¦¨¬¯´¸¹][a-zà-ÿ]{{2}}|[À-ÿ]{{2}}(?![a-zA-ZÀ-ÿ]))"
)
"""Text of another code page, read as Windows-1252: signs between letters or before them, or accented letters alone."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_COMMA_NUMBER = re.compile(r'"\s*[+-]?[\d.\'\u2019\s]*,\d')


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a text table."""

    path: Path
    encoding: str
    separator: str
    names: tuple[str, ...]
    """As they stand in the file; empty if a column has none."""
    line: int
    """Line of the header, from 1."""
    start: int
    """Position of the first byte after the header."""
    n_rows: int
    n_hollow: int
    """Rows of separators alone."""
    has_comma_numbers: bool
    """Whether an entry in quotation marks may be a number with a comma."""

    @property
    def words(self) -> list[str]:
        """Separator and encoding in words."""
        if len(self.names) == 1:
            return ["one column", _ENCODINGS[self.encoding]]
        return [SEPARATORS[self.separator], _ENCODINGS[self.encoding]]

    @property
    def remarks(self) -> list[str]:
        """Everything else that is not usual, in words."""
        remarks = []
        if self.line > 1:
            remarks.append(f"header in line {self.line}")
        if self.n_hollow:
            remarks.append(f"{self.n_hollow} empty rows left out")
        return remarks

    def chunks(self, n_rows: int | None, **options: Any) -> Iterator[Any]:
        """Read the rows below the header in frames of rows, or in one frame, with numbered columns."""
        pandas = require("pandas", "cli")
        options = {"encoding": self.encoding, "sep": self.separator, "low_memory": False, **options}
        options |= {"header": None, "names": list(range(len(self.names))), "index_col": False, "compression": None}
        # A copy of a row must stay one on its way through a file: numbers are read to the last digit, as by pandas 3.1.
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):
            options["float_precision"] = "round_trip"
        if not self.n_rows + self.n_hollow:
            yield pandas.DataFrame(columns=range(len(self.names)), dtype=object)
            return
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start)
                if n_rows is None:
                    yield pandas.read_csv(file, **options)
                else:
                    with pandas.read_csv(file, chunksize=n_rows, **options) as chunks:
                        for chunk in chunks:
                            yield chunk.reset_index(drop=True)
        except ValueError as error:
            raise _not_parsed(self.path, error, self.line) from None

    def may_have(self, *, codes: bool) -> bool:
        """Return whether an entry may be a mark such as .a; or, of codes, begin with a zero, or be as 1E30.

        It tells for one byte per letter.
        """
        # Looked for in bytes: a parser would take many times as long.
        is_edge = np.zeros(256, dtype=bool)
        is_edge[[*b' "\r\n', ord(self.separator)]] = True
        with open(self.path, "rb") as file:
            file.seek(self.start)
            before = b"\n"
            # The last entry may end with the file.
            while block := file.read(1 << 20):
                entries = np.frombuffer(before + block + b"\n", dtype=np.uint8)
                is_digit = (entries - np.uint8(ord("0"))) < 10
                middle = entries[1:-1]
                begins = is_edge[entries[:-2]]
                if ((middle == ord(".")) & begins & ~is_digit[2:]).any():
                    return True
                if codes and ((middle == ord("0")) & is_digit[2:] & begins).any():
                    return True
                if codes and (((middle | 32) == ord("e")) & is_digit[2:] & is_digit[:-2]).any():
                    return True
                # An entry may lie across two blocks.
                before = block[-2:]
        return False


def layout_of(path: Path) -> Layout:
    """Return the layout of a text table; every row is counted, with one of them in memory.

    It raises TABLE_UNREADABLE if it is no table, or a row has too few or too many entries, and TABLE_AMBIGUOUS if there
    are two readings.  Both show lines and no entry.
    """
    with open(path, "rb") as file:
        start = file.read(4096)
    if not start:
        raise unreadable(path, "is empty.")
    # A name says nothing of the contents: a workbook is often called .csv.
    for magic, sentence in _BY_CONTENTS.items():
        if start.startswith(magic):
            raise unreadable(path, sentence)
    # UTF-16 is only recognised by its mark; UTF-8 is tried without one.
    mark = next((each for each in _MARKS if start.startswith(each)), b"")
    encoding = _MARKS.get(mark, "utf-8")
    if "16" not in encoding and _CONTROL.search(start):
        raise unreadable(
            path,
            "is no text, as it holds control characters, and no Excel, Parquet or Arrow file by its name. If it is "
            "text all the same, take them out, or export it again.",
        )
    try:
        return _lay_out(path, encoding, len(mark))
    except UnicodeDecodeError:
        if mark:
            raise unreadable(path, f"begins as {_ENCODINGS[encoding]} and is something else. Save it again.") from None
    try:
        return _lay_out(path, "cp1252", 0)
    except UnicodeDecodeError:
        raise ambiguous(path, _OTHER_PAGE) from None


_OTHER_PAGE = (
    "is not UTF-8, and it may be Windows-1252 or a code page of other letters. Save it as UTF-8 (in Excel: CSV UTF-8)."
)


def _lay_out(path: Path, encoding: str, n_mark: int) -> Layout:
    with _open_text(path, encoding, n_mark) as file:
        lines = list(islice(file, _HEAD_LINES))
    head = _read_head(path, lines)
    with _open_text(path, encoding, n_mark) as file:
        # pandas reads from this byte on, so no line above the header can mislead it.
        start = n_mark + sum(len(each.encode(encoding)) for each in islice(file, head.end))
        n_rows, n_hollow, has_comma_numbers = _count_rows(path, file, head, is_checked=encoding == "cp1252")
    # Nearly every file is text in Windows-1252, so that signs of another page decide.
    if encoding == "cp1252" and any(map(_FOREIGN.search, head.names)):
        raise ambiguous(path, _OTHER_PAGE)
    return Layout(
        path=path,
        encoding=encoding,
        separator=head.separator,
        names=tuple(head.names),
        line=head.line,
        start=start,
        n_rows=n_rows - n_hollow,
        n_hollow=n_hollow,
        has_comma_numbers=has_comma_numbers,
    )


@dataclass(frozen=True, kw_only=True)
class _Head:
    """The header of a table, and the lines up to it."""

    separator: str
    line: int
    """The line in which the header begins, from 1."""
    names: list[str]
    end: int
    """The number of lines up to the end of the header."""
    repeated: str
    """The header's text, which no row may have; empty if a row may."""


def _read_head(path: Path, lines: list[str]) -> _Head:
    """Find the header among the first lines; a line such as "sep=;" may name the separator."""
    declared = None
    n_before = 0
    if lines and (match := _SEPARATOR_LINE.fullmatch(lines[0])) is not None:
        declared = match[1]
        if declared not in SEPARATORS:
            raise unreadable(path, f"names a separator in line 1; expected one of {', '.join(SEPARATORS.values())}.")
        n_before = 1
        lines = lines[1:]
    # The first lines decide, and all rows are held against them.
    separator, line, names = _find_header(path, lines, declared, n_before)
    reader = csv.reader(lines[line - 1 - n_before :], delimiter=separator)
    next(reader)
    end = line - 1 + reader.line_num
    repeated = "".join(lines[line - 1 - n_before : end - n_before]).rstrip("\r\n")
    # One name, or numbers, may be a row as well.
    if len(names) == 1 or all(map(is_any_number, names)):
        repeated = ""
    return _Head(separator=separator, line=line, names=names, end=end, repeated=repeated)


def _count_rows(path: Path, file: IO[str], head: _Head, *, is_checked: bool) -> tuple[int, int, bool]:
    """Return the number of rows, of those of separators alone, and whether an entry may be a number with a comma."""
    n_rows = 0
    n_hollow = 0
    has_comma_numbers = False
    width = len(head.names)
    for line, n_entries, is_hollow, may_be_comma in _scan_rows(path, file, head, is_checked=is_checked):
        # A file that was cut off, or shifted columns, must not become a table.
        if n_entries != width:
            raise _uneven(path, line, n_entries, width, head.separator)
        n_rows += 1
        n_hollow += is_hollow
        has_comma_numbers |= may_be_comma
    return n_rows, n_hollow, has_comma_numbers


def _open_text(path: Path, encoding: str, n_mark: int) -> IO[str]:
    file = open(path, encoding=encoding, newline="")  # noqa: SIM115 - its readers close it
    if n_mark:
        file.read(1)
    return file


def _head_rows(lines: Sequence[str], separator: str, first: int = 1) -> list[tuple[int, list[str]]]:
    """Return the line in which each row of the head begins, and its entries; blank lines are no rows."""
    reader = csv.reader(lines, delimiter=separator)
    rows: list[tuple[int, list[str]]] = []
    line = first
    # A quotation mark that is not closed is found by the count of all rows.
    with contextlib.suppress(csv.Error):
        for entries in reader:
            if any(entry.strip() for entry in entries):
                rows.append((line, entries))
            line = first + reader.line_num
    # The last row may go on below the head.
    return rows if len(lines) < _HEAD_LINES - 1 else rows[:-1]


def header_place(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the position of the header among the first rows of a table, and the number of columns.

    Above it stand titles: rows of one entry, or of two in a table of at least four columns.
    """
    # Most rows have the table's width; of equally frequent ones the larger.
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda each: (widths[each], each))
    filled = [sum(bool(entry.strip()) for entry in row) for row in rows]
    n_titles = 0
    while n_titles < min(len(rows) - 1, _MOST_TITLES) and width > 1:
        row = rows[n_titles]
        n_filled = filled[n_titles]
        most = max(filled[n_titles + 1 :])
        is_single = n_filled == 1 < most and bool(row[0].strip()) and (width > 2 or len(row) < width)
        # A title over two columns only counts where the table is clearly wider.
        if not (is_single or (n_filled <= 2 < most and width >= 4)):
            break
        n_titles += 1
    return n_titles, width


def _find_header(path: Path, lines: Sequence[str], declared: str | None, n_before: int) -> tuple[str, int, list[str]]:
    """Return the separator, the line of the header and its entries, from the first lines."""
    candidates = []
    best = (0.0, declared or ",")
    for separator in [declared] if declared else SEPARATORS:
        rows = _head_rows(lines, separator, n_before + 1)
        if not rows:
            raise unreadable(path, "is empty.")
        n_titles, width = header_place([entries for _, entries in rows])
        of_table = rows[n_titles:]
        part = sum(len(entries) == width for _, entries in of_table) / len(of_table)
        if width > 1 or declared:
            # Without a separator that fits all lines, the one that fits most names the faulty line.
            best = max(best, (part, separator), key=lambda each: each[0])
            if part == 1:
                candidates.append((n_titles, separator))
    # Fewer titles explain the same lines with less.
    candidates = [each for each in candidates if each[0] == min(candidates)[0]]
    if len(candidates) > 1:
        words = " or ".join(SEPARATORS[separator] for _, separator in candidates)
        advice = "Put names that hold one of these into quotation marks."
        raise ambiguous(path, f"can be read with {words} between its columns. {advice}")
    separator = best[1]
    if candidates:
        separator = candidates[0][1]
    rows = _head_rows(lines, separator, n_before + 1)
    n_titles, _ = header_place([entries for _, entries in rows])
    line, names = rows[n_titles]
    # A header of numbers below titles: lines above it may be the real header.
    if n_titles and any(map(is_any_number, names)):
        raise ambiguous(
            f"{path}: line {rows[0][0]}",
            f"has fewer entries than line {line}, which holds numbers: a title, the header of fewer columns, or one "
            "column with decimal commas? Name every column in one line; put entries with commas into quotation marks.",
        )
    return separator, line, names


def _scan_rows(
    path: Path, file: Iterable[str], head: _Head, *, is_checked: bool
) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield for each row the line in which it begins, the number of entries, and whether two things are so.

    The first is that all entries are empty, the second that one in quotation marks may be a number with a comma.
    Blank lines are no rows.
    """
    lines = iter(file)
    number = head.end + 1
    blank = " \t\r\n".replace(head.separator, "")
    hollow = blank + head.separator
    for line in lines:
        if is_checked and not line.isascii() and _FOREIGN.search(line):
            raise ambiguous(f"{path}: line {number}", _OTHER_PAGE)
        if head.repeated and line.rstrip("\r\n") == head.repeated:
            raise unreadable(f"{path}: line {number}", "repeats the header. Remove it, or save the tables one by one.")
        # Counting separators takes a quarter of the time, and most lines have no quotation mark.
        if '"' not in line:
            if line.strip(hollow):
                yield number, line.count(head.separator) + 1, False, False
            elif line.strip(blank):
                yield number, line.count(head.separator) + 1, True, False
            number += 1
            continue
        reader = csv.reader(chain((line,), lines), delimiter=head.separator)
        try:
            entries = next(reader)
        except csv.Error:
            most = csv.field_size_limit()
            sentence = f"is not closed within {most} characters. Close it, or export the file again."
            raise unreadable(f"{path}: a quotation mark in line {number}", sentence) from None
        is_hollow = len(entries) > 1 and not any(entry.strip() for entry in entries)
        yield number, len(entries), is_hollow, reader.line_num > 1 or _COMMA_NUMBER.search(line) is not None
        number += reader.line_num


def _uneven(path: Path, line: int, n_entries: int, width: int, separator: str) -> ExchangeError:
    if n_entries < width:
        sentence = (
            f"has {n_entries} of {width} entries; the file may be cut off. Export it again, with as many entries in "
            "every row."
        )
    else:
        sentence = (
            f"has {n_entries} entries, and the header names {width} columns. Name every column, and put entries with "
            f"{SEPARATORS[separator]} into quotation marks."
        )
    return unreadable(f"{path}: line {line}", sentence)


def _not_parsed(path: Path, error: ValueError, before: int) -> ExchangeError:
    """Return the error for a file that pandas cannot read; its own words may quote an entry, so a number is taken."""
    line = ""
    if match := re.search(r"\b(line|row) (\d+)", str(error)):
        # The C parser counts rows from 0.
        line = f" in line {before + int(match[2]) + (match[1] == 'row')}"
    if "EOF inside string" in str(error):
        return unreadable(path, f"has a quotation mark{line} that is not closed; the file may be cut off. Export it.")
    sentence = f"cannot be read as a text table{line} ({type(error).__name__}). Expected a header, and as many entries"
    return unreadable(path, f"{sentence} in every row.")
