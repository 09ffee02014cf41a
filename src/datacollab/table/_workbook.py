"""Excel's own files: the sheet that holds a table, as rows of text, within limits."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._require import require
from ..errors import ExchangeError
from ._limits import ambiguous, unreadable

_CELL_BYTES = 64
"""Of an empty cell in the reader's grid."""
_CELL = re.compile(rb"<(?:\w+:)?c[\s>/]")
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["']""")
_NOT_COMPUTED = re.compile(
    rb"""<c\s(?![^>]*\bt=["']str)[^>]*><f(?:\s[^>]*)?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>"""
)
_ERROR = re.compile(rb"""<(?:\w+:)?c\s[^>]*\bt=["']e["']""")
_HIDDEN = re.compile(rb"""<(?:\w+:)?(?:row|col)\s[^>]*\bhidden=["'](?:1|true)["']""")
_VALUE = re.compile(rb"<(?:\w+:)?v>(\d{1,9})</")
_STRING = re.compile(rb"<(?:\w+:)?si[\s>/]")


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
            cells = sheet.to_python(skip_empty_area=False)
            merged = sheet.merged_cell_ranges or []
            return Sheet(
                rows=[list(map(_cell_text, row)) for row in cells],
                last_merged=max((end[0] for _, end in merged), default=-1),
                remarks=remarks,
                pointed={place for row in cells for place, each in enumerate(row) if type(each) is float and each % 1},
            )
    except ExchangeError:
        raise
    # The reader's own words may quote entries, and it fails in many ways.
    except Exception as error:
        raise unreadable(
            path, f"cannot be read as an Excel workbook ({type(error).__name__}). Save it again."
        ) from None


def _only_sheet(path: Path, book: Any) -> Any:
    """Return the only visible sheet with contents, or refuse the workbook."""
    hidden = [each.name for each in book.sheets_metadata if str(each.visible) != "SheetVisibleEnum.Visible"]
    sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names if name not in hidden}
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


def _pack_again(path: Path, check: Callable[[int], None]) -> tuple[bytes, list[str]]:
    """Unpack a workbook within limits and pack it again, as sizes and places that a file states may be wrong."""
    contents, n_unpacked = _unpack(path, check)
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
            # Pictures and programs are of no use here.
            if not member.filename.lower().endswith((".xml", ".rels")):
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
        raise unreadable(path, "has formulas without results. Open it in Excel or LibreOffice and save it.")
    n_columns = max((_column_number(each) for each in {letters for letters, _ in places}), default=0)
    n_rows = max((int(row) for _, row in places), default=0)
    # A short text may be used a million times, and each use is a copy.
    uses = np.bincount(np.array([0, *map(int, _VALUE.findall(content))]).clip(max=len(lengths)))
    return _CELL_BYTES * n_columns * n_rows + int(uses[: len(lengths)] @ lengths[: len(uses)])


def _column_number(letters: bytes) -> int:
    """Return the number of a column, from 1, by its letters."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _cell_text(entry: Any) -> str:
    """Return a cell as the text that a file of text would hold."""
    if isinstance(entry, bool):
        return str(entry)
    if isinstance(entry, float):
        # From 1e15 on, Excel rounds whole numbers.
        if entry.is_integer() and abs(entry) < 1e15:
            return str(int(entry))
        return repr(entry)
    if isinstance(entry, datetime) and entry.time() == time():
        return entry.date().isoformat()
    return entry.isoformat() if isinstance(entry, date | time) else str(entry)
