"""Why a file cannot be read as CSV, and what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import ExchangeError

__all__ = ["check_text_file", "unreadable_csv"]

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_UTF_8 = "is not UTF-8; in Excel: Save as CSV UTF-8."
_BY_CONTENTS = {
    b"PAR1": "is a Parquet file by its contents. Let its name end in .parquet.",
    b"ARROW1": "is an Arrow file by its contents. Let its name end in .arrow.",
    b"\x1f\x8b": "is compressed. Unpack it first.",
}
_NO_TABLE = "is no CSV, Parquet or Arrow file (an Excel file? save it as CSV UTF-8)."


def check_text_file(path: Path) -> None:
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


def unreadable_csv(path: Path, error: ValueError) -> ExchangeError:
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
