"""Excel's own files: the sheet that holds a table, as rows of text, within limits."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from .._require import require
from ..errors import ExchangeError
from ._limits import ambiguous, unreadable

_CELL_BYTES = 64
_CELL, _PLACE = re.compile(rb"<(?:\w+:)?c[\s>/]"), re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["']""")
_NOT_COMPUTED = re.compile(
    rb"""<c\s(?![^>]*\bt=["']str)[^>]*><f(?:\s[^>]*)?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>"""
)
_ERROR = re.compile(rb"""<(?:\w+:)?c\s[^>]*\bt=["']e["']""")
_HIDDEN = re.compile(rb"""<(?:\w+:)?(?:row|col)\s[^>]*\bhidden=["'](?:1|true)["']""")
_VALUE, _STRING = re.compile(rb"<(?:\w+:)?v>(\d{1,9})</"), re.compile(rb"<(?:\w+:)?si[\s>/]")


def sheet_rows(path: Path, check: Callable[[int], None]) -> tuple[list[list[str]], int, list[str], set[int]]:
    """Return the rows of the only visible sheet with contents as text, and three facts on it.

    The facts are the last row with merged cells, or -1, what is to be said of the sheet, and the columns with numbers
    that have decimals: in these a point is one, whatever stands in texts.
    Numbers are as Python writes them, whole ones without a point; dates and times are as in ISO 8601.

    It raises TABLE_AMBIGUOUS if several sheets have contents, TABLE_UNREADABLE if it is no workbook, and what `check`
    raises for the bytes that it would take in memory.
    """
    calamine = require("python_calamine", "tables")
    try:
        data, said = _packed_anew(path, check)
        with calamine.CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            hidden = [each.name for each in book.sheets_metadata if str(each.visible) != "SheetVisibleEnum.Visible"]
            sheets = {name: book.get_sheet_by_name(name) for name in book.sheet_names if name not in hidden}
            filled = [name for name, sheet in sheets.items() if sheet.end is not None]
            if len(filled) != 1:
                if not filled:
                    raise unreadable(path, "has no visible sheet with contents.")
                raise ambiguous(
                    path,
                    f"has {len(filled)} sheets with contents: {', '.join(map(repr, filled))}. Save the one with the "
                    "table as a workbook of its own, or hide the others.",
                )
            sheet = sheets[filled[0]]
            cells = sheet.to_python(skip_empty_area=False)
            pointed = {place for row in cells for place, each in enumerate(row) if type(each) is float and each % 1}
            rows = [list(map(_text, row)) for row in cells]
            merged = [] if sheet.merged_cell_ranges is None else [end[0] for _, end in sheet.merged_cell_ranges]
    except ExchangeError:
        raise
    # The reader's own words may quote entries, and it fails in many ways.
    except Exception as error:
        raise unreadable(
            path, f"cannot be read as an Excel workbook ({type(error).__name__}). Save it again."
        ) from None
    return rows, max(merged, default=-1), said, pointed


def _packed_anew(path: Path, check: Callable[[int], None]) -> tuple[bytes, list[str]]:
    """Unpack a workbook within limits and pack it again, as sizes and places that a file states may be wrong."""
    contents: dict[str, bytes] = {}
    taken, has_errors, is_hidden = 0, False, False
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            # Pictures and programs are of no use here.
            if not member.filename.lower().endswith((".xml", ".rels")):
                continue
            parts = []
            with packed.open(member) as file:
                while part := file.read(1 << 20):
                    taken += len(part)
                    check(taken)
                    parts.append(part)
            contents[member.filename] = b"".join(parts)
    strings = max(contents.values(), key=lambda content: len(_STRING.findall(content)), default=b"")
    lengths = np.diff([*(found.start() for found in _STRING.finditer(strings)), len(strings)])
    for content in contents.values():
        if b"sheetData" in content:
            places = _PLACE.findall(content)
            if sum(1 for _ in _CELL.finditer(content)) > len(places):
                raise unreadable(path, "has cells without a place. Save it again with Excel or LibreOffice.")
            if _NOT_COMPUTED.search(content):
                raise unreadable(path, "has formulas without results. Open it in Excel or LibreOffice and save it.")
            has_errors |= _ERROR.search(content) is not None
            is_hidden |= _HIDDEN.search(content) is not None
            # The reader makes a full grid, and a copy of the text of each cell.
            n_columns = max((_column(each) for each in {letters for letters, _ in places}), default=0)
            held = _CELL_BYTES * n_columns * max((int(row) for _, row in places), default=0)
            used = np.bincount(np.array([0, *map(int, _VALUE.findall(content))]).clip(max=len(lengths)))
            check(taken + held + int(used[: len(lengths)] @ lengths[: len(used)]))
    clean = io.BytesIO()
    with zipfile.ZipFile(clean, "w") as stored:
        for name, content in contents.items():
            stored.writestr(name, content)
    said = ["cells with an error count as empty"] * has_errors
    return clean.getvalue(), said + ["hidden rows or columns are read, too"] * is_hidden


def _column(letters: bytes) -> int:
    """Return the number of a column, from 1, by its letters."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _text(entry: Any) -> str:
    """Return a cell as the text that a file of text would hold."""
    if isinstance(entry, bool):
        return str(entry)
    if isinstance(entry, float):
        return str(int(entry)) if entry.is_integer() and abs(entry) < 1e15 else repr(entry)
    if isinstance(entry, datetime) and entry.time() == time():
        return entry.date().isoformat()
    return entry.isoformat() if isinstance(entry, date | time) else str(entry)
