"""Workbooks: reading the sheet that holds a table, as rows of text, and writing an Excel workbook of one sheet."""

from __future__ import annotations

import io
import math
import re
import struct
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from .._require import require
from ..errors import ExchangeError
from ._limits import ambiguous, unreadable

_BINARY_SHEET = 0x019C
_BINARY_MERGED = 0x01B0
"""Kinds of records: the name of a sheet, and merged cells (MS-XLSB, 2.4.304 and 2.4.677)."""
_RELATION = re.compile(r"<Relationship\s[^>]*>")
_CELL_BYTES = 64
"""Of an empty cell in the reader's grid."""
_CELL = re.compile(rb"<(?:\w+:)?c[\s>/]")
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["']""")
_NOT_COMPUTED = re.compile(
    rb"""<c\s(?![^>]*\bt=["']str)[^>]*><f(?:\s[^>]*)?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>"""
)
_ERROR = re.compile(rb"""<(?:\w+:)?c\s[^>]*\bt=["']e["']|<table:table-cell\s[^>]*\bcalcext:value-type=["']error["']""")
_HIDDEN = re.compile(
    rb"""<(?:\w+:)?(?:row|col)\s[^>]*\bhidden=["'](?:1|true)["']"""
    rb"""|<table:table-(?:row|column)\s[^>]*\bvisibility=["'](?:collapse|filter)["']"""
)
_VALUE = re.compile(rb"<(?:\w+:)?v>(\d{1,9})</")
_STRING = re.compile(rb"<(?:\w+:)?si[\s>/]")
_OLD = b"\xd0\xcf\x11\xe0"
"""The first bytes of an Excel file before 2007, which is no archive; its sheets have 65,536 rows and 256 columns."""
_LOCKED = re.compile(re.escape("EncryptedPackage".encode("utf-16-le")) + rb"|\x09\x08\x10\x00.{16}\x2f\x00", re.DOTALL)
"""An encrypted workbook has a part of this name, and an old one a record 2f behind its first (MS-XLS, 2.4.117)."""
_NO_RESULTS = "has formulas without results. Open it in Excel or LibreOffice and save it."
_PASSWORD = "is protected by a password. Open it in Excel or LibreOffice, and save it without one."
_OPEN_NOT_COMPUTED = re.compile(rb"<table:table-cell\s(?![^>]*value-type)[^>]*\btable:formula=")
_OPEN_ROW = re.compile(rb"<table:table-row[\s>].*?(?=<table:table-row[\s>]|</table:table>)", re.DOTALL)
_OPEN_CELL = re.compile(rb"<table:(?:covered-)?table-cell\b([^>]*)>")
_OPEN_ROWS = re.compile(rb"""number-rows-repeated=["'](\d{1,9})""")
_OPEN_MERGED = re.compile(rb"""number-(?:columns|rows)-spanned=["'](?!1["'])""")
_OPEN_DURATION = re.compile(r"PT(\d+)H(\d+)M(\d+(?:\.\d+)?)S")
_OPEN_COLUMNS = re.compile(rb"""number-columns-repeated=["'](\d{1,9})""")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The only visible sheet of a workbook with contents."""

    rows: list[list[str]]
    """Numbers are as Python writes them, whole ones without a point; dates and times are as in ISO 8601."""
    last_merged: int
    """The last row with merged cells; -1 if there is none."""
    remarks: list[str]
    pointed: set[int]
    """Columns with numbers that have decimals: in these a point is one, whatever stands in texts."""


def read_sheet(path: Path, check: Callable[[int], None]) -> Sheet:
    """Return the only visible sheet with contents, as text.

    It raises TABLE_AMBIGUOUS if several sheets have contents, TABLE_UNREADABLE if it is no workbook, and the error of
    `check` for the bytes that it would take in memory.
    """
    calamine = require("python_calamine", "tables")
    try:
        data, remarks = _pack_again(path, check)
        with calamine.CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            sheet = _only_sheet(path, book)
            # An object of Python for each cell takes more than the reader's own.
            check(_CELL_BYTES * sheet.height * sheet.width)
            cells = sheet.to_python(skip_empty_area=False)
            return Sheet(
                rows=[list(map(cell_text, row)) for row in cells],
                last_merged=_last_merged(data, book, sheet),
                remarks=remarks,
                pointed={place for row in cells for place, each in enumerate(row) if type(each) is float and each % 1},
            )
    except ExchangeError:
        raise
    # The reader's own words may quote entries, and it fails in many ways.
    except Exception as error:
        sentence = f"cannot be read as a workbook ({type(error).__name__}). Open it in Excel or LibreOffice"
        raise unreadable(path, f"{sentence}, and save it as .xlsx.") from None


def _only_sheet(path: Path, book: Any) -> Any:
    """Return the only visible sheet with contents, or refuse the workbook."""
    hidden = [each.name for each in book.sheets_metadata if str(each.visible) != "SheetVisibleEnum.Visible"]
    # Some sheets are charts, which have no cells.
    tables = [each.name for each in book.sheets_metadata if str(each.typ) == "SheetTypeEnum.WorkSheet"]
    sheets = {name: book.get_sheet_by_name(name) for name in tables if name not in hidden}
    filled = [name for name, sheet in sheets.items() if sheet.end is not None]
    # A sheet that somebody has hidden is not meant to be read.
    if not filled:
        raise unreadable(path, "has no visible sheet with contents.")
    if len(filled) > 1:
        raise ambiguous(
            path,
            f"has {len(filled)} sheets with contents: {', '.join(map(repr, filled))}. Save the one with the table as "
            "a workbook of its own, or hide the others.",
        )
    return sheets[filled[0]]


def _last_merged(data: bytes, book: Any, sheet: Any) -> int:
    """Return the last row with merged cells, from 0; -1 for none.

    The reader knows them of Excel's older and newer workbooks, and not of binary ones and of OpenDocument tables.
    """
    if data.startswith(_OLD):
        return max((end[0] for _, end in sheet.merged_cell_ranges or []), default=-1)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        names = packed.namelist()
        if "content.xml" in names:
            place = book.sheet_names.index(sheet.name)
            return _open_merged(packed.read("content.xml").split(b"<table:table ")[1:][place])
        if "xl/workbook.bin" in names:
            return _binary_merged(packed.read(_binary_part(packed, sheet.name)))
    return max((end[0] for _, end in sheet.merged_cell_ranges or []), default=-1)


def _pack_again(path: Path, check: Callable[[int], None]) -> tuple[bytes, list[str]]:
    """Unpack a workbook within limits and pack it again, as sizes and places that a file states may be wrong."""
    data = path.read_bytes()
    if data.startswith(_OLD):
        if _LOCKED.search(data):
            raise unreadable(path, _PASSWORD)
        return data, []
    contents, n_unpacked = _unpack(path, check)
    if b"encryption-data" in contents.get("META-INF/manifest.xml", b""):
        raise unreadable(path, _PASSWORD)
    # An OpenDocument table repeats cells and rows, and a binary sheet may have a cell anywhere.
    for name, content in contents.items():
        if name == "content.xml":
            check(n_unpacked + _CELL_BYTES * _open_cells(content))
            if _OPEN_NOT_COMPUTED.search(content):
                raise unreadable(path, _NO_RESULTS)
        elif name.endswith(".bin") and "sheet" in name:
            check(n_unpacked + _CELL_BYTES * _binary_cells(content))
    # The shared texts are the member with most of them, whatever its name.
    strings = max(contents.values(), key=lambda content: len(_STRING.findall(content)), default=b"")
    lengths = np.diff([*(found.start() for found in _STRING.finditer(strings)), len(strings)])
    # By contents, as a sheet may have any name.
    sheets = [content for content in contents.values() if b"sheetData" in content]
    for content in sheets:
        check(n_unpacked + _grid_bytes(path, content, lengths))
    clean = io.BytesIO()
    with zipfile.ZipFile(clean, "w") as stored:
        for name, content in contents.items():
            stored.writestr(name, content)
    remarks = []
    sheets.append(contents.get("content.xml", b""))
    if any(map(_ERROR.search, sheets)):
        remarks.append("cells with an error count as empty")
    if any(map(_HIDDEN.search, sheets)):
        remarks.append("hidden rows or columns are read, too")
    return clean.getvalue(), remarks


def _unpack(path: Path, check: Callable[[int], None]) -> tuple[dict[str, bytes], int]:
    """Return the members of a workbook, and their bytes in all, which are checked while they come."""
    contents: dict[str, bytes] = {}
    n_unpacked = 0
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            # Pictures are of no use here.
            if not member.filename.lower().endswith((".xml", ".rels", ".bin", "mimetype")):
                continue
            parts = []
            with packed.open(member) as file:
                while part := file.read(1 << 20):
                    n_unpacked += len(part)
                    check(n_unpacked)
                    parts.append(part)
            contents[member.filename] = b"".join(parts)
    return contents, n_unpacked


def _grid_bytes(path: Path, content: bytes, lengths: NDArray[Any]) -> int:
    """Return the bytes that a sheet takes in the reader: a full grid, and a copy of the text of each cell.

    `lengths` are those of the workbook's shared texts.
    """
    places = _PLACE.findall(content)
    if sum(1 for _ in _CELL.finditer(content)) > len(places):
        raise unreadable(path, "has cells without a place. Save it again with Excel or LibreOffice.")
    if _NOT_COMPUTED.search(content):
        raise unreadable(path, _NO_RESULTS)
    n_columns = max((_column_number(each) for each in {letters for letters, _ in places}), default=0)
    n_rows = max((int(row) for _, row in places), default=0)
    # A short text may be used a million times, and each use is a copy.
    uses = np.bincount(np.array([0, *map(int, _VALUE.findall(content))]).clip(max=len(lengths)))
    return _CELL_BYTES * n_columns * n_rows + int(uses[: len(lengths)] @ lengths[: len(uses)])


def _open_cells(content: bytes) -> int:
    """Return the number of cells of the grids of an OpenDocument table, up to the last ones with contents."""
    n_cells = 0
    for table in content.split(b"<table:table ")[1:]:
        n_rows = 0
        height = 0
        width = 0
        for row in _OPEN_ROW.findall(table):
            repeated = _OPEN_ROWS.search(row[: row.index(b">")])
            n_rows += int(repeated[1]) if repeated else 1
            place = 0
            for about in _OPEN_CELL.findall(row):
                many = _OPEN_COLUMNS.search(about)
                place += int(many[1]) if many else 1
                # Formatted cells without contents fill up a sheet.
                if b"value-type" in about:
                    width = max(width, place)
                    height = n_rows
        n_cells += height * width
    return n_cells


def _open_merged(table: bytes) -> int:
    """Return the last row with merged cells of an OpenDocument table, from 0; -1 for none."""
    n_rows = 0
    last = -1
    for row in _OPEN_ROW.findall(table):
        repeated = _OPEN_ROWS.search(row[: row.index(b">")])
        if _OPEN_MERGED.search(row):
            last = n_rows
        n_rows += int(repeated[1]) if repeated else 1
    return last


def _binary_part(packed: zipfile.ZipFile, name: str) -> str:
    """Return the member that holds a sheet of a binary workbook, by its name."""
    about = packed.read("xl/_rels/workbook.bin.rels").decode()
    for kind, record in _records(packed.read("xl/workbook.bin")):
        if kind == _BINARY_SHEET:
            (n_letters,) = struct.unpack_from("<I", record, 8)
            relation = record[12 : 12 + 2 * n_letters].decode("utf-16-le")
            if record[16 + 2 * n_letters :].decode("utf-16-le") == name:
                (tag,) = (each for each in _RELATION.findall(about) if f'Id="{relation}"' in each)
                target = tag.partition('Target="')[2].partition('"')[0]
                return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
    raise KeyError(name)


def _binary_merged(content: bytes) -> int:
    """Return the last row with merged cells of a binary sheet, from 0; -1 for none."""
    ends = (struct.unpack_from("<I", record, 4)[0] for kind, record in _records(content) if kind == _BINARY_MERGED)
    return max(ends, default=-1)


def _binary_cells(content: bytes) -> int:
    """Return the number of cells of the grid of a sheet of Excel's binary workbook."""
    row = 0
    height = 0
    width = 0
    for kind, record in _records(content):
        number = int.from_bytes(record[:4], "little")
        if kind == 0:
            row = number
        # 1 is a cell without contents.
        elif 2 <= kind <= 11:
            height = max(height, row + 1)
            width = max(width, number + 1)
    return height * width


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and contents of each record of a part of a binary workbook (MS-XLSB, 2.1.4)."""
    position = 0
    while position < len(content) - 1:
        kind = content[position]
        position += 1
        if kind > 127:
            kind += content[position] << 8
            position += 1
        size = 0
        # Seven bits in each byte, the lowest first.
        for shift in (0, 7, 14, 21):
            part = content[position]
            position += 1
            size |= (part & 127) << shift
            if part < 128:
                break
        yield kind, content[position : position + size]
        position += size


def _column_number(letters: bytes) -> int:
    """Return the number of a column, from 1, by its letters."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def cell_text(entry: Any, *, exact: float = 1e15) -> str:
    """Return a cell as the text that a file of text would hold; from `exact` on, whole numbers may be rounded."""
    if isinstance(entry, bool):
        return str(entry)
    if isinstance(entry, float):
        # Excel keeps 15 digits.
        if entry.is_integer() and abs(entry) < exact:
            return str(int(entry))
        return repr(entry)
    if isinstance(entry, datetime) and entry.time() == time():
        return entry.date().isoformat()
    if isinstance(entry, timedelta):
        return clock_text(entry)
    # OpenDocument's duration of a day or more.
    if isinstance(entry, str) and (match := _OPEN_DURATION.fullmatch(entry)):
        hours, minutes, seconds = map(float, match.groups())
        return clock_text(timedelta(hours=hours, minutes=minutes, seconds=seconds))
    return entry.isoformat() if isinstance(entry, date | time) else str(entry)


def clock_text(elapsed: timedelta) -> str:
    """Return a duration in hours, minutes and seconds, as a time of day is written."""
    minutes, seconds = divmod(abs(elapsed), timedelta(minutes=1))
    fraction = f".{seconds.microseconds:06d}" if seconds.microseconds else ""
    sign = "-" if elapsed < timedelta() else ""
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds.seconds:02d}{fraction}"


_WRITTEN_PARTS = tomllib.loads(Path(__file__).with_name("workbook.toml").read_text(encoding="utf-8"))
_SHEET_START = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
_MOST_HELD = {"columns": 16_384, "rows": 1_048_575, "letters in a cell": 32_767, "bytes": 2**31 - 2**24}
"""Limits of a sheet below its header, and the bytes that every program unpacks."""
_EXACT = 10**15
"""From here on Excel rounds whole numbers, so they are written as texts."""
_SHOWN = re.compile(r"-?\d{1,11}(?:\.\d+)?", re.ASCII)
"""Numbers that a cell shows with all digits before the point, and no power of ten."""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def sheet_writer(file: BinaryIO, first: Any, stack: ExitStack) -> Callable[[Any], None]:
    """Return a function that writes data frames below one another; the workbook is whole when `stack` ends.

    All bytes go straight into `file`: no copy of the rows lies elsewhere.  More than a sheet holds is TOO_LARGE.
    """
    packed = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
    for name, content in _WRITTEN_PARTS.items():
        packed.writestr(name, content)
    sheet = stack.enter_context(packed.open("xl/sheet.xml", "w"))
    stack.callback(sheet.write, b"</sheetData></worksheet>")
    _check_limit("columns", len(first.columns))
    n_rows = 0
    n_bytes = sheet.write(_SHEET_START)

    def write(rows: Iterable[Iterable[Any]]) -> None:
        nonlocal n_rows, n_bytes
        for row in rows:
            _check_limit("rows", n_rows)
            n_rows += 1
            cells = "".join(_cell_xml(f"{_column_letters(place)}{n_rows}", entry) for place, entry in enumerate(row))
            n_bytes += sheet.write(f'<row r="{n_rows}">{cells}</row>'.encode())
            _check_limit("bytes", n_bytes)

    write([list(map(str, first.columns))])
    kept = [name in first.attrs.get("kept", ()) for name in first.columns]
    return lambda batch: write(map(_show_alike, row, kept) for row in batch.itertuples(index=False, name=None))


def _show_alike(entry: Any, is_kept: bool) -> Any:
    """Return a kept text as a number if a cell shows it alike: it may have been one, and formulas look for numbers."""
    if not (is_kept and isinstance(entry, str) and _SHOWN.fullmatch(entry)):
        return entry
    number = float(entry)
    # Read from a cell, 007 would be 7, and 1.50 would be 1.5.
    return number if cell_text(number) == entry else entry


def _check_limit(unit: str, number: int) -> None:
    if number > _MOST_HELD[unit]:
        raise ExchangeError(
            "TOO_LARGE",
            f"An Excel sheet holds {_MOST_HELD[unit]:,} {unit} at most, and this is more: name a file ending in .csv.",
        )


def _column_letters(place: int) -> str:
    """Return the letters of a column, from A."""
    last = chr(ord("A") + place % 26)
    return _column_letters(place // 26 - 1) + last if place >= 26 else last


def _cell_xml(place: str, entry: Any) -> str:
    """Return a cell, and none for a missing entry; a text is marked as one, whatever it begins with."""
    # None, NaN, and what pandas has for a missing entry of other types.
    if not isinstance(entry, str) and str(entry) in ("None", "nan", "<NA>", "NaT"):
        return ""
    if type(entry).__name__ in ("bool", "bool_"):
        return f'<c r="{place}" t="b"><v>{int(entry)}</v></c>'
    is_exact = not isinstance(entry, Integral) or abs(int(entry)) < _EXACT
    if isinstance(entry, Real) and math.isfinite(entry) and is_exact:
        return f'<c r="{place}"><v>{entry!s}</v></c>'
    _check_limit("letters in a cell", len(str(entry)))
    text = _NO_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", escape(str(entry), quote=False)).replace("\r", "&#13;")
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
