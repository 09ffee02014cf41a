"""The layout of a text table: encoding, separator, lines before the header, names; decided from the whole file."""

from __future__ import annotations

import codecs
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
from ._numbers import is_any_number

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
_HEAD_LINES, _MOST_TITLES = 400, 50
_BY_CONTENTS = {
    b"PAR1": "is a Parquet file by its contents. Let its name end in .parquet.",
    b"ARROW1": "is an Arrow file by its contents. Let its name end in .arrow.",
    b"\x1f\x8b": "is compressed. Unpack it first.",
    b"PK\x03\x04": "is an Excel workbook or an archive by its contents. Let the name of a workbook end in .xlsx.",
    b"<": "is a web page or XML by its contents. Save it as CSV or .xlsx.",
    b"\xd0\xcf\x11\xe0": "is a workbook of an old Excel. Save it as .xlsx.",
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
_COMMA_NUMBER = re.compile(r'"\s*[+-]?[\d.]*,\d')


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a text table looks like."""

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
        return [SEPARATORS[self.separator] if len(self.names) > 1 else "one column", _ENCODINGS[self.encoding]]

    @property
    def said(self) -> list[str]:
        """What else is not usual, in words."""
        header = [f"header in line {self.line}"] * (self.line > 1)
        return header + [f"{self.n_hollow} empty rows left out"] * (self.n_hollow > 0)

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

    def has_leading_zeros(self) -> bool:
        """Return whether any entry may begin with a zero before another digit; for one byte per letter."""
        is_edge = np.zeros(256, dtype=bool)
        is_edge[[*b' "\r\n', ord(self.separator)]] = True
        with open(self.path, "rb") as file:
            file.seek(self.start)
            before = b"\n"
            while block := file.read(1 << 20):
                entries = np.frombuffer(before + block, dtype=np.uint8)
                zeros = np.flatnonzero(entries[1:-1] == ord("0"))
                zeros = zeros[(entries[zeros + 2] - np.uint8(ord("0"))) < 10]
                if is_edge[entries[zeros]].any():
                    return True
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
    for magic, sentence in _BY_CONTENTS.items():
        if start.startswith(magic):
            raise unreadable(path, sentence)
    mark = next((each for each in _MARKS if start.startswith(each)), b"")
    encoding = _MARKS.get(mark, "utf-8")
    if "16" not in encoding and _CONTROL.search(start):
        raise unreadable(path, "is no text, and no Excel, Parquet or Arrow file by its name.")
    try:
        return _laid_out(path, encoding, len(mark))
    except UnicodeDecodeError:
        if mark:
            raise unreadable(path, f"begins as {_ENCODINGS[encoding]} and is something else. Save it again.") from None
    try:
        return _laid_out(path, "cp1252", 0)
    except UnicodeDecodeError:
        raise ambiguous(path, _OTHER_PAGE) from None


_OTHER_PAGE = (
    "is not UTF-8, and it may be Windows-1252 or a code page of other letters. Save it as UTF-8 (in Excel: CSV UTF-8)."
)


def _laid_out(path: Path, encoding: str, n_mark: int) -> Layout:
    with _opened(path, encoding, n_mark) as file:
        lines = list(islice(file, _HEAD_LINES))
    n_before = 0
    given = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    if given is not None:
        if given[1] not in SEPARATORS:
            raise unreadable(path, f"names a separator in line 1; expected one of {', '.join(SEPARATORS.values())}.")
        n_before, lines = 1, lines[1:]
    separator, line, names = _found_in(path, lines, given and given[1], n_before)
    reader = csv.reader(lines[line - 1 - n_before :], delimiter=separator)
    next(reader)
    end = line - 1 + reader.line_num
    repeated = "".join(lines[line - 1 - n_before : end - n_before]).rstrip("\r\n")
    if len(names) == 1 or all(map(is_any_number, names)):
        repeated = ""  # which may be a row as well
    with _opened(path, encoding, n_mark) as file:
        start = n_mark + sum(len(each.encode(encoding)) for each in islice(file, end))
        n_rows, n_hollow, has_comma_numbers = 0, 0, False
        for at, n_entries, is_hollow, comma in _rows(
            path, file, separator, end + 1, is_checked=encoding == "cp1252", repeated=repeated
        ):
            if n_entries != len(names):
                raise _uneven(path, at, n_entries, len(names), separator)
            n_rows += 1
            n_hollow += is_hollow
            has_comma_numbers |= comma
    if encoding == "cp1252" and any(map(_FOREIGN.search, names)):
        raise ambiguous(path, _OTHER_PAGE)
    return Layout(
        path=path,
        encoding=encoding,
        separator=separator,
        names=tuple(names),
        line=line,
        start=start,
        n_rows=n_rows - n_hollow,
        n_hollow=n_hollow,
        has_comma_numbers=has_comma_numbers,
    )


def _opened(path: Path, encoding: str, n_mark: int) -> IO[str]:
    file = open(path, encoding=encoding, newline="")  # noqa: SIM115 - its readers close it
    if n_mark:
        file.read(1)
    return file


def _head_rows(lines: Sequence[str], separator: str, first: int = 1) -> list[tuple[int, list[str]]]:
    """Return the line in which each row of the head begins, and its entries; blank lines are no rows."""
    reader, rows, at = csv.reader(lines, delimiter=separator), [], first
    try:
        for entries in reader:
            if any(entry.strip() for entry in entries):
                rows.append((at, entries))
            at = first + reader.line_num
    except csv.Error:
        pass  # a quotation mark that is not closed, which the count of all rows finds
    # The last row may go on below the head.
    return rows if len(lines) < _HEAD_LINES - 1 else rows[:-1]


def header_place(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the position of the header among the first rows of a table, and the number of columns.

    Above it stand titles: rows of one entry, or of two in a table of at least four columns.
    """
    widths = Counter(map(len, rows))
    width = max(widths, key=lambda each: (widths[each], each))
    filled = [sum(bool(entry.strip()) for entry in row) for row in rows]
    n_titles = 0
    while n_titles < min(len(rows) - 1, _MOST_TITLES) and width > 1:
        n_filled, most = filled[n_titles], max(filled[n_titles + 1 :])
        row = rows[n_titles]
        is_single = n_filled == 1 < most and bool(row[0].strip()) and (width > 2 or len(row) < width)
        if not (is_single or (n_filled <= 2 < most and width >= 4)):
            break
        n_titles += 1
    return n_titles, width


def _found_in(path: Path, lines: Sequence[str], given: str | None, n_before: int) -> tuple[str, int, list[str]]:
    """Return the separator, the line of the header and its entries, from the first lines."""
    found, best = [], (0.0, given or ",")
    for separator in [given] if given else SEPARATORS:
        rows = _head_rows(lines, separator, n_before + 1)
        if not rows:
            raise unreadable(path, "is empty.")
        n_titles, width = header_place([entries for _, entries in rows])
        of_table = rows[n_titles:]
        part = sum(len(entries) == width for _, entries in of_table) / len(of_table)
        if width > 1 or given:
            best = max(best, (part, separator), key=lambda each: each[0])
            if part == 1:
                found.append((n_titles, separator))
    found = [each for each in found if each[0] == min(found)[0]]
    if len(found) > 1:
        words = " or ".join(SEPARATORS[separator] for _, separator in found)
        advice = "Put names that hold one of these into quotation marks."
        raise ambiguous(path, f"can be read with {words} between its columns. {advice}")
    separator = found[0][1] if found else best[1]
    rows = _head_rows(lines, separator, n_before + 1)
    n_titles, _ = header_place([entries for _, entries in rows])
    line, names = rows[n_titles]
    if n_titles and any(map(is_any_number, names)):
        raise ambiguous(
            f"{path}: line {rows[0][0]}",
            f"has fewer entries than line {line}, which holds numbers: a title, the header of fewer columns, or one "
            "column with decimal commas? Name every column in one line; put entries with commas into quotation marks.",
        )
    return separator, line, names


def _rows(
    path: Path, file: Iterable[str], separator: str, number: int, *, is_checked: bool, repeated: str
) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield for each row the line in which it begins, the number of entries, and whether two things are so.

    The first is that all entries are empty, the second that one in quotation marks may be a number with a comma.
    Blank lines are no rows.
    """
    lines, blank = iter(file), " \t\r\n".replace(separator, "")
    hollow = blank + separator
    for line in lines:
        if is_checked and not line.isascii() and _FOREIGN.search(line):
            raise ambiguous(f"{path}: line {number}", _OTHER_PAGE)
        if repeated and line.rstrip("\r\n") == repeated:
            raise unreadable(f"{path}: line {number}", "repeats the header. Remove it, or save the tables one by one.")
        # Counting separators takes a quarter of the time, and most lines have no quotation mark.
        if '"' not in line:
            if line.strip(hollow):
                yield number, line.count(separator) + 1, False, False
            elif line.strip(blank):
                yield number, line.count(separator) + 1, True, False
            number += 1
            continue
        reader = csv.reader(chain((line,), lines), delimiter=separator)
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
    return unreadable(
        f"{path}: line {line}",
        f"has {n_entries} of {width} entries; the file may be cut off. Export it again, with as many entries in every "
        "row."
        if n_entries < width
        else f"has {n_entries} entries, and the header names {width} columns. Name every column, and put entries with "
        f"{SEPARATORS[separator]} into quotation marks.",
    )


def _not_parsed(path: Path, error: ValueError, before: int) -> ExchangeError:
    """Return the error for a file that pandas cannot read; its own words may quote an entry, so a number is taken."""
    found = re.search(r"\b(line|row) (\d+)", str(error))
    # The C parser counts rows from 0.
    line = f" in line {before + int(found[2]) + (found[1] == 'row')}" if found else ""
    if "EOF inside string" in str(error):
        return unreadable(path, f"has a quotation mark{line} that is not closed; the file may be cut off. Export it.")
    sentence = f"cannot be read as a text table{line} ({type(error).__name__}). Expected a header, and as many entries"
    return unreadable(path, f"{sentence} in every row.")
