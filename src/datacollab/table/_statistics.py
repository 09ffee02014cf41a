"""Files of SPSS, Stata and SAS as rows of text: gaps, codes, labels and dates as their programs mean them."""

from __future__ import annotations

import re
import struct
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .._entries import join_names
from .._require import require
from ..errors import ExchangeError
from ._limits import ambiguous, check_memory, check_size, unreadable
from ._workbook import cell_text, clock_text

STATISTICS = {
    ".sav": "SPSS",
    ".zsav": "SPSS",
    ".por": "SPSS",
    ".dta": "Stata",
    ".sas7bdat": "SAS",
    ".xpt": "SAS",
}
"""Programs by the end of the name of their files, which are read and not written."""
_READERS = {".zsav": "read_sav", ".xpt": "read_xport"}
_TAGS = (".dta", ".sas7bdat")
"""In these the reader shows marks of gaps such as .a; in the others it makes plain gaps of them."""
_AT_ONCE = 2**26
"""Bytes of the rows that are read at once: each further part skips all rows before it."""
_NUMBER = 8
"""Bytes of an entry as a number."""
_OBJECT = 40
"""Bytes of a number as an object of Python with its reference."""
_MOST_SHOWN = 6
"""Labels of a column in a notice."""
_EXACT = 2.0**53
_DAY = 86400.0
"""Seconds."""
_STARTS = {"SPSS": datetime(1582, 10, 14), "Stata": datetime(1960, 1, 1), "SAS": datetime(1960, 1, 1)}
_PERIODS = {"w": 52, "m": 12, "q": 4, "h": 2}
"""Parts of a year that Stata counts from 1960 on; its 52nd week has eight or nine days."""
_STATA_TIME = re.compile(r"%-?(?:t(?P<unit>[cCdwmqhb])|(?P<old>d))(?P<rest>.*)")
_LEAP_DAYS = """
    1972-07-01 1973-01-01 1974-01-01 1975-01-01 1976-01-01 1977-01-01 1978-01-01 1979-01-01 1980-01-01 1981-07-01
    1982-07-01 1983-07-01 1985-07-01 1988-01-01 1990-01-01 1991-01-01 1992-07-01 1993-07-01 1994-07-01 1996-01-01
    1997-07-01 1999-01-01 2006-01-01 2009-01-01 2012-07-01 2015-07-01 2017-01-01
"""
"""Days before which a second was put in; Stata's %tC counts these seconds, and no calendar does."""
_LEAPS = [
    (datetime.fromisoformat(day) - datetime(1960, 1, 1)).total_seconds() + n_before
    for n_before, day in enumerate(_LEAP_DAYS.split())
]
_STATA_CLOCK = re.compile(r"(?:[Hh]{1,2}|MM|SS|[.:_s+]|am|AM|a\.m\.|A\.M\.)+")
_SPSS_TIME = re.compile(r"(?P<moment>[AEJS]?DATE|DATETIME|YMDHMS|MOYR|QYR|WKYR)[\d.]*|(?P<clock>[DM]?TIME)[\d.]*")
_SAS_TIME = re.compile(
    r"""(?:
    (?P<moment>DATETIME|DATEAMPM|MDYAMPM|DT(?:DATE|MONYY|WKDATX|YEAR|YYQC)|(?:E8601|B8601|IS8601)(?:D[TNXZ]|LX)|NLDATM\w*?
        |[A-Z]{3}DFDT)
    |(?P<clock>TIME|TIMEAMPM|HHMM|HOUR|MMSS|(?:E8601|B8601|IS8601)(?:T[MXZ]|LZ)|NLTIM(?:E|AP))
    |(?P<daytime>TOD)
    |(?P<day>(?:DDMMYY|MMDDYY|YYMMDD|MMYY|YYMM|YYQ|YYQR)[BCDNPSZ]?|DATE|(?:WEEK|WORD)DAT[EX]|MONYY|YYMON|JULIAN|JULDAY
        |PDJUL[GI]|YEAR|MONTH|MONNAME|QTRR?|DAY|DOWNAME|WEEKDAY|(?:YY)?WEEK[UVW]|(?:E8601|B8601|IS8601)DA|NLDATE\w*?
        |[A-Z]{3}DF(?:D[DEN]|DWN|M[NY]|W[DK]X)|H(?:EB)?DATE|MINGUO|NENGO)
    )\d*(?:\.\d+)?""",
    re.VERBOSE,
)
"""SAS counts days, or seconds, from 1960 on, even where a format shows a part of the date."""
_RECORD = 80
_TRANSPORT_HEADER = re.compile(rb"HEADER RECORD\*{7}(MEMB|OBS)(?:ER|V\d)? +HEADER RECORD!{7}")
"""Headers of a table and of its rows in a transport file; version 8 has MEMBV8 and OBSV8."""


@dataclass(frozen=True, kw_only=True)
class TextRows:
    """A table of a foreign format, as rows of text."""

    names: list[str]
    chunks: Callable[[int], Iterator[Any]]
    """Return frames of text of a number of rows, with numbered columns."""
    n_rows: int
    pointed: set[int]
    """Columns of numbers that have decimals: a point is one in these."""
    remarks: list[str] = field(default_factory=list)
    coded: set[int] = field(default_factory=set)
    """Columns in which every entry has a label: their numbers are codes of categories."""


def read_statistics(path: Path, known: Collection[str] | None = None) -> TextRows:
    """Return the table of a file of SPSS, Stata or SAS as text, read in parts of bounded size.

    A date out of reach is refused in the `known` columns; None means all.

    Raises
    ------
    ExchangeError
        TABLE_UNREADABLE if it is no such file, TABLE_AMBIGUOUS if the file has weights or several tables, TOO_LARGE
        beyond the limits.  The message quotes no entry.
    """
    suffix = path.suffix.lower()
    read = getattr(require("pyreadstat", "tables"), _READERS.get(suffix, f"read_{suffix[1:]}"))
    n_bytes = path.stat().st_size
    check_size(path, n_bytes)
    about = _call(path, read, metadataonly=True)[1]
    if STATISTICS[suffix] == "SPSS":
        _refuse_weights(path, about.column_names)
    if suffix == ".xpt":
        _check_transport(path, sum(about.variable_storage_width.values()))
    is_numeric = [about.readstat_variable_types[name] != "string" for name in about.column_names]
    row_bytes = sum(_OBJECT + (about.variable_storage_width.get(name) or 0) for name in about.column_names)
    # Files of transport do not tell their rows; they are read in parts all the same.
    check_memory(path, _NUMBER * len(is_numeric) * (about.number_rows or 0), n_bytes)
    names = {_plain_name(name) for name in known or ()}
    texts = [
        _text_maker(path, STATISTICS[suffix], about, name, is_known=known is None or _plain_name(name) in names)
        for name in about.column_names
    ]

    @lru_cache(maxsize=1)
    def read_part(start: int) -> dict[str, list[Any]]:
        options: dict[str, Any] = {"user_missing": True} if suffix in _TAGS else {}
        options |= {"row_offset": start, "row_limit": n_rows, "output_format": "dict"}
        part = _call(path, read, disable_datetime_conversion=True, **options)[0]
        return dict(part)

    n_rows = max(1, _AT_ONCE // max(1, row_bytes))
    found = _look_at(read_part, n_rows, about, is_numeric)
    labelled = about.variable_value_labels
    coded = {place for place, name in enumerate(about.column_names) if name in labelled and place not in found.bare}
    remarks = _tell_declared_gaps(path, read, suffix, about) + found.remarks + _tell_catalogs(path)
    for place, name in enumerate(about.column_names):
        if name in labelled:
            kind = "is a category of codes"
            if place in found.bare:
                kind = f"has {'numbers' if is_numeric[place] else 'texts'}, and labels for some"
            remarks.append(f"{name!r} {kind}: {_label_words(labelled[name], texts[place])}")
    return TextRows(
        names=list(about.column_names),
        chunks=partial(_chunks, read_part, n_rows, found.n_rows, texts),
        n_rows=found.n_rows,
        remarks=remarks,
        pointed=found.pointed,
        coded=coded,
    )


def _call(path: Path, read: Callable[..., Any], **options: Any) -> Any:
    """Call the reader, whose own words may quote entries."""
    try:
        return read(str(path), **options)
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except MemoryError:
        raise ExchangeError("TOO_LARGE", f"{path} does not fit into memory. Save the table as CSV.") from None
    except Exception as error:
        sentence = f"cannot be read as a file of {STATISTICS[path.suffix.lower()]} ({type(error).__name__})."
        raise unreadable(path, f"{sentence} Save it again with that program, or save the table as CSV.") from None


@dataclass(kw_only=True)
class _Found:
    """All that whole columns tell."""

    n_rows: int = 0
    pointed: set[int]
    bare: set[int]
    """Columns with an entry that has no label."""
    tagged: set[int]
    remarks: list[str]


def _look_at(read_part: Callable[[int], Any], n_rows: int, about: Any, is_numeric: Sequence[bool]) -> _Found:
    """Return the number of rows, and columns with decimals, with entries without a label, and with marks of gaps."""
    found = _Found(pointed=set(), bare=set(), tagged=set(), remarks=[])
    labels = [about.variable_value_labels.get(name, {}) for name in about.column_names]
    while True:
        part = read_part(found.n_rows)
        columns = [part[name] for name in about.column_names]
        for place, entries in enumerate(columns):
            present = set(entries) - {None, ""}
            if is_numeric[place]:
                numbers = {each for each in present if not isinstance(each, str)}
                if any(each % 1 for each in numbers):
                    found.pointed.add(place)
                if len(numbers) < len(present):
                    found.tagged.add(place)
                present = numbers
            if not present <= labels[place].keys():
                found.bare.add(place)
        n_read = len(columns[0]) if columns else 0
        found.n_rows += n_read
        if n_read < n_rows:
            break
    if found.tagged:
        names = join_names(repr(about.column_names[place]) for place in sorted(found.tagged))
        found.remarks.append(f"marks such as .a are gaps in {names}")
    return found


def _tell_declared_gaps(path: Path, read: Callable[..., Any], suffix: str, about: Any) -> list[str]:
    """Say which columns have entries that SPSS counts as missing."""
    if suffix not in (".sav", ".zsav"):
        return []
    declared = _call(path, read, metadataonly=True, user_missing=True)[1].missing_ranges
    names = [repr(name) for name in about.column_names if name in declared]
    return [f"entries that SPSS counts as missing are gaps in {join_names(names)}"] if names else []


def _tell_catalogs(path: Path) -> list[str]:
    """Say that labels in a catalog of SAS are not read: what a file means must not depend on others beside it."""
    names = sorted(each.name for each in path.parent.glob("*.sas7bcat")) if path.suffix.lower() == ".sas7bdat" else []
    return [f"labels in {join_names(names)} are not read"] if names else []


def _label_words(labels: dict[Any, str], text: Callable[[Any], str]) -> str:
    """Return codes with their labels; a mark of a gap may have one, too."""
    shown = [f"{text(code)} = {label}" for code, label in labels.items() if text(code)]
    return ", ".join(shown[:_MOST_SHOWN] + ["..."] * (len(shown) > _MOST_SHOWN))


def _chunks(
    read_part: Callable[[int], Any],
    n_at_once: int,
    n_rows: int,
    texts: Sequence[Callable[[Any], str]],
    n_wanted: int,
) -> Iterator[Any]:
    """Yield frames of text, each of `n_wanted` rows at most; a file without rows is one empty frame."""
    pandas = require("pandas", "cli")
    for start in range(0, max(n_rows, 1), n_at_once):
        columns = list(read_part(start).values())
        for first in range(0, max(len(columns[0]), 1), n_wanted):
            frame = {}
            for place, (entries, text) in enumerate(zip(columns, texts, strict=True)):
                of_chunk = np.empty(len(entries[first : first + n_wanted]), dtype=object)
                of_chunk[:] = entries[first : first + n_wanted]
                # Each different entry is converted once; the code of a gap, -1, takes the last text.
                codes, different = pandas.factorize(of_chunk)
                frame[place] = np.array([*map(text, different), ""], dtype=object)[codes]
            yield pandas.DataFrame(frame)


def _plain_name(name: str) -> str:
    """Return a name in the form of Unicode in which a file's and a project's names are compared."""
    return unicodedata.normalize("NFC", name)


def _text_maker(path: Path, program: str, about: Any, name: str, *, is_known: bool) -> Callable[[Any], str]:
    """Return the function that gives an entry of a column as the text that a file of text would hold."""
    stored = about.readstat_variable_types[name]
    if stored == "string":
        return lambda entry: str(entry) if entry.strip() else ""
    kind, unit = _time_of(program, about.original_variable_types[name] or "")
    if kind == "business" and is_known:
        raise unreadable(
            f"{path}: column {name!r}",
            "counts days of a business calendar. Turn them into dates (in Stata: generate day = dofb(...)).",
        )

    def make(entry: Any) -> str:
        # A mark such as .a among numbers.
        if isinstance(entry, str):
            return ""
        if not kind:
            # The shortest text that gives the same number, as 0.1 is no 0.10000000149.
            return cell_text(float(str(np.float32(entry))) if stored == "float" else float(entry), exact=_EXACT)
        try:
            return _time_text(kind, float(entry) * unit, _STARTS[program])
        except OverflowError:
            # A column that nobody asked for must not stop the others.
            if not is_known:
                return ""
            sentence = "has dates outside the years 1 to 9999. Correct them, or leave the column out of the file."
            raise unreadable(f"{path}: column {name!r}", sentence) from None

    return make


def _time_of(program: str, style: str) -> tuple[str, float]:
    """Return the kind of time that a display format makes of a number, and its unit in seconds; "" for a number."""
    if program == "Stata":
        match = _STATA_TIME.fullmatch(style)
        if match is None:
            return "", 1.0
        unit = match["unit"] or "d"
        if unit in _PERIODS:
            return unit, 1.0
        if unit == "b":
            return "business", 1.0
        if unit == "d":
            return "moment", _DAY
        if unit == "C":
            return "leaping", 0.001
        return "daytime" if _STATA_CLOCK.fullmatch(match["rest"]) else "moment", 0.001
    match = (_SPSS_TIME if program == "SPSS" else _SAS_TIME).fullmatch(style)
    if match is None:
        return "", 1.0
    if match.lastgroup == "day":
        return "moment", _DAY
    return str(match.lastgroup), 1.0


def _time_text(kind: str, number: float, start: datetime) -> str:
    """Return a date, time or duration of seconds as in ISO 8601, and a period as Stata shows it: 2026m3."""
    if kind in _PERIODS:
        year, part = divmod(int(number), _PERIODS[kind])
        return f"{1960 + year}{kind}{part + 1}"
    if kind == "daytime":
        # A format may show the time alone of what is a date, too.
        kind = "clock" if 0 <= number < _DAY else "moment"
    if kind == "leaping":
        number -= bisect_right(_LEAPS, number)
    # A number of seconds since 1582 has few digits below a millisecond.
    elapsed = timedelta(milliseconds=round(1000 * number))
    return clock_text(elapsed) if kind == "clock" else cell_text(start + elapsed)


def _check_transport(path: Path, width: int) -> None:
    """Refuse a transport file that holds several tables, or was cut off; the reader notices neither.

    It has records of 80 bytes, and blanks behind the last row (SAS's note TS-140); each row has `width` bytes.
    """
    tables = []
    start = _RECORD
    n_bytes = 0
    with open(path, "rb") as file:
        while block := file.read(_RECORD * 2**14):
            for found in _TRANSPORT_HEADER.finditer(block):
                place = n_bytes + found.start()
                # Elsewhere these letters are an entry.
                if place % _RECORD:
                    continue
                if found[1] == b"MEMB":
                    tables.append(place)
                else:
                    start = place + _RECORD
            n_bytes += len(block)
        if len(tables) > 1:
            names = [_read_at(file, place + 2 * _RECORD + 8, 8).decode("latin-1").strip() for place in tables]
            words = f"has {len(tables)} tables: {', '.join(map(repr, names))}."
            raise ambiguous(path, f"{words} Save the one that is meant in a file of its own.")
        n_left = (n_bytes - start) % max(width, 1)
        # Since version 8 of SAS the header tells the number of rows; before, it has zeros.
        n_told = _read_at(file, start - _RECORD + 48, 32).strip()
        is_short = n_told.isdigit() and int(n_told) * width > n_bytes - start
        if is_short or n_bytes % _RECORD or n_left >= _RECORD or _read_at(file, n_bytes - n_left, n_left).strip(b" "):
            raise unreadable(path, "was cut off: its last row is not whole. Copy it again, or save it again with SAS.")


def _read_at(file: Any, place: int, n_bytes: int) -> bytes:
    file.seek(place)
    return bytes(file.read(n_bytes))


def _refuse_weights(path: Path, names: Sequence[str]) -> None:
    """Refuse a file in which SPSS weights rows: here each row is one person."""
    with open(path, "rb") as file:
        weight = _portable_weight(file.read(4096)) if path.suffix.lower() == ".por" else _weight_of(file)
    if not weight:
        return
    # The dictionary has short names, in capital letters.
    name = next((each for each in names if each.upper() == weight.upper()), weight)
    raise ExchangeError(
        "TABLE_AMBIGUOUS",
        f"{path} has weights for its rows, in column {name!r}, and here each row is one person. If it is so, turn "
        "them off and save the file again (in SPSS: WEIGHT OFF). If not, repeat each row by its weight.",
    )


def _weight_of(file: Any) -> str:
    """Return the short name of the column that weights the rows of a .sav file, by its dictionary; "" for none."""
    header = file.read(176)
    order = "<" if header[64:68] in (b"\2\0\0\0", b"\3\0\0\0") else ">"
    if len(header) < 176:
        return ""
    (place,) = struct.unpack_from(f"{order}i", header, 76)
    for position in range(1, place + 1):
        record = file.read(32)
        if len(record) < 32:
            return ""
        has_label, n_missing = struct.unpack_from(f"{order}2i", record, 8)
        if position == place:
            return str(record[24:32], "ascii", "replace").strip()
        if has_label == 1:
            (length,) = struct.unpack(f"{order}i", file.read(4))
            file.seek(-(-length // 4) * 4, 1)
        file.seek(8 * abs(n_missing), 1)
    return ""


def _portable_weight(head: bytes) -> str:
    """Return the name of the column that weights the rows of a .por file; "" for none."""
    # Lines have 80 letters; a number ends with a slash, and a text begins with its length.
    match = re.search(rb"4[0-9A-T]+/(?:5[0-9A-T]+/)?6([1-8])/([A-Z@#$][\w@#$.]*)", re.sub(rb"\r?\n", b"", head[456:]))
    return match[2][: int(match[1])].decode() if match else ""
