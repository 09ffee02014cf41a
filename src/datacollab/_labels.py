"""Entries of tables as labels: which spellings are one."""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np

__all__ = ["MISSING", "MOST_OUTSIDE", "UNKNOWN", "label_finder", "label_text", "relax"]

MISSING, UNKNOWN = -1, -2
MOST_OUTSIDE = 0.05
"""The largest share of a column's entries that may be outside of what was agreed; one entry always may."""
_DECIMAL = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


def relax(text: str) -> str:
    """Return one text for all spellings that differ by capital letters, blanks or the form of Unicode alone."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def label_finder(labels: Sequence[str | int], relaxed: bool) -> Callable[[object], int]:
    """Return what gives the position of an entry among the labels, `MISSING` for a blank, `UNKNOWN` for no label."""
    exact = {unicodedata.normalize("NFC", str(label)): position for position, label in enumerate(labels)}
    values: dict[str, int] = {}
    spellings: dict[str, int] = {}
    for position, label in enumerate(labels):
        # Labels of one value, such as "1" and "1.0", differ as text only.
        for found, key in ((values, _value(str(label))), (spellings, relax(str(label)))):
            found[key] = UNKNOWN if key in found else position

    def find(entry: object) -> int:
        if isinstance(entry, str) and not entry.strip():
            return MISSING
        text = unicodedata.normalize("NFC", label_text(entry))
        position = exact.get(text, values.get(_value(text), UNKNOWN))
        return spellings.get(relax(text), UNKNOWN) if relaxed and position == UNKNOWN else position

    return find


def label_text(entry: object) -> str:
    """Return an entry as the text of a label: whole numbers without a point, truth values as 1 and 0."""
    if isinstance(entry, numbers.Integral | np.bool_):
        return str(int(entry))
    if isinstance(entry, float | np.floating | Decimal) and math.isfinite(entry) and int(entry) == entry:
        return str(int(entry))
    return str(entry)


def _value(text: str) -> str:
    """Return one text for all spellings of a number or truth value; 01 is not 1, as leading zeros tell codes apart."""
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    if not _DECIMAL.fullmatch(text):
        return text
    shorter = text.removeprefix("+")
    if "." in shorter:
        shorter = shorter.rstrip("0").rstrip(".")
    return "0" if shorter == "-0" else shorter
