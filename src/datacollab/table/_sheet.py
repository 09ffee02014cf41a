"""Writing an Excel workbook of one sheet, row by row: numbers as numbers, and texts as texts that nothing computes."""

from __future__ import annotations

import math
import re
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import ExchangeError

_PARTS = tomllib.loads(Path(__file__).with_name("workbook.toml").read_text(encoding="utf-8"))
_START = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
_MOST = {"columns": 16_384, "rows": 1_048_575, "letters in a cell": 32_767, "bytes": 2**31 - 2**24}
"""Limits of a sheet below its header, and the bytes that every program unpacks."""
_EXACT = 10**15
"""From here on Excel rounds whole numbers, so they are written as texts."""
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def sheet_writer(file: BinaryIO, first: Any, stack: ExitStack) -> Callable[[Any], None]:
    """Return a function that writes data frames below one another; the workbook is whole when `stack` ends.

    All bytes go straight into `file`: no copy of the rows lies elsewhere.  More than a sheet holds is TOO_LARGE.
    """
    packed = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
    for name, content in _PARTS.items():
        packed.writestr(name, content)
    sheet = stack.enter_context(packed.open("xl/sheet.xml", "w"))
    stack.callback(sheet.write, b"</sheetData></worksheet>")
    _check("columns", len(first.columns))
    n_rows = 0
    n_bytes = sheet.write(_START)

    def write(rows: Iterable[Iterable[Any]]) -> None:
        nonlocal n_rows, n_bytes
        for row in rows:
            _check("rows", n_rows)
            n_rows += 1
            cells = "".join(_cell(f"{_letters(place)}{n_rows}", entry) for place, entry in enumerate(row))
            n_bytes += sheet.write(f'<row r="{n_rows}">{cells}</row>'.encode())
            _check("bytes", n_bytes)

    write([list(map(str, first.columns))])
    return lambda batch: write(batch.itertuples(index=False, name=None))


def _check(unit: str, number: int) -> None:
    if number > _MOST[unit]:
        message = f"An Excel sheet holds {_MOST[unit]:,} {unit} at most, and this is more: name a file ending in .csv."
        raise ExchangeError("TOO_LARGE", message)


def _letters(place: int) -> str:
    """Return the letters of a column, from A."""
    last = chr(ord("A") + place % 26)
    return _letters(place // 26 - 1) + last if place >= 26 else last


def _cell(place: str, entry: Any) -> str:
    """Return a cell, and none for a missing entry; a text is marked as one, whatever it begins with."""
    # None, NaN, and what pandas has for a missing entry of other types.
    if not isinstance(entry, str) and str(entry) in ("None", "nan", "<NA>", "NaT"):
        return ""
    if type(entry).__name__ in ("bool", "bool_"):
        return f'<c r="{place}" t="b"><v>{int(entry)}</v></c>'
    is_exact = not isinstance(entry, Integral) or abs(int(entry)) < _EXACT
    if isinstance(entry, Real) and math.isfinite(entry) and is_exact:
        return f'<c r="{place}"><v>{entry!s}</v></c>'
    _check("letters in a cell", len(str(entry)))
    text = _NO_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", escape(str(entry), quote=False)).replace("\r", "&#13;")
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
