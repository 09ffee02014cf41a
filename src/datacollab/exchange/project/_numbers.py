"""Entries of a table as numbers: labels, numbers, and units that do not fit."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ..._typing import FloatArray

__all__ = ["MISSING", "UNKNOWN", "NotNumericError", "affected_rows", "as_numbers", "is_number", "label_codes"]
__all__ += ["label_text", "range_words", "spelling_hint", "unit_hint"]

MISSING, UNKNOWN = -1, -2
_NO_LABEL = object()
_DECIMAL = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


def affected_rows(rows: NDArray[np.bool_], first_row: int | None, *, earlier: int = 0) -> str:
    """Count the rows that are True, in the words of a refusal.

    `first_row` rows of the file came before, None if these are all; `earlier` of them are counted too.
    """
    before = first_row or 0
    counted = (
        f"{earlier + np.count_nonzero(rows)} of {'' if first_row is None else 'the first '}{before + rows.size} rows"
    )
    if earlier or (not before and rows.all()):
        return counted
    return f"{counted} (the first: row {before + int(np.argmax(rows)) + 1})"


def range_words(minimum: float | None, maximum: float | None, unit: str) -> str:
    """Return a range in words."""
    return f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"


def label_codes(column: Any, labels: Sequence[str | int]) -> NDArray[np.int64]:
    """Return the position of every entry among the labels, `MISSING` for no entry, `UNKNOWN` for no label.

    An entry is a label that it equals as text.  Failing that, numbers are compared as numbers, so that the label "1" is
    found in a file that holds 1, 1.0 or "1.0", and truth values are 1 and 0.
    """
    pandas = require("pandas", "cli")
    if type(column.dtype).__name__ == "CategoricalDtype":
        column = column.astype(object)
    try:
        codes, found = pandas.factorize(column, use_na_sentinel=True)
    except TypeError:
        # Lists and the like have no place in a table; they are no label either.
        codes, found = pandas.factorize(column.map(lambda entry: entry if isinstance(entry, Hashable) else _NO_LABEL))
    positions = np.array([*map(_finder(labels), found), MISSING], dtype=np.int64)
    return positions[np.asarray(codes, dtype=np.int64)]


def spelling_hint(column: Any, labels: Sequence[str | int]) -> str:
    """Return a sentence if unknown entries differ from labels by capital letters and spaces alone."""
    relaxed = column.astype(object).map(lambda entry: _relax(entry) if isinstance(entry, str) else entry)
    found = label_codes(column, labels), label_codes(relaxed, [*{_relax(str(label)) for label in labels}])
    unknown, left = (np.count_nonzero(codes == UNKNOWN) for codes in found)
    alike = f" {unknown - left} of them differ from agreed ones by capital letters or spaces alone."
    return alike if left != unknown else ""


def _relax(text: str) -> str:
    return " ".join(text.casefold().split())


def _finder(labels: Sequence[str | int]) -> Callable[[object], int]:
    exact = {str(label): position for position, label in enumerate(labels)}
    values: dict[str, int] = {}
    for position, label in enumerate(labels):
        # Labels of one value, such as "1" and "1.0", differ as text only.
        value = _value(str(label))
        values[value] = UNKNOWN if value in values else position

    def find(entry: object) -> int:
        if isinstance(entry, str) and not entry.strip():
            return MISSING
        text = label_text(entry)
        return exact.get(text, values.get(_value(text), UNKNOWN))

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


class NotNumericError(Exception):
    """Some entries are no numbers; the words count them, and quote none."""

    def __init__(self, what: str, rows: NDArray[np.bool_] | None = None) -> None:
        super().__init__(what, rows)
        self.what, self.rows = what, rows

    def __str__(self) -> str:
        return self.words(None)

    def words(self, first_row: int | None) -> str:
        """Return the words, for rows that came after `first_row` others of the file; None if these are all."""
        return f"holds {self.what}" + ("" if self.rows is None else f" in {affected_rows(self.rows, first_row)}")


def as_numbers(column: Any) -> FloatArray:
    """Return the entries of a column in float64, missing ones as NaN and truth values as 0 and 1.

    A NotNumericError is raised if some entries are text, dates or anything else.
    """
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        missing = {} if isinstance(column.dtype, np.dtype) else {"na_value": np.nan}
        return np.asarray(column.to_numpy(dtype=np.float64, **missing))
    if kind in "Mmc":
        raise NotNumericError({"M": "dates", "m": "durations", "c": "complex numbers"}[kind])
    entries = column.astype(object).tolist()
    converted = np.full(len(entries), np.nan)
    texts: dict[int, str] = {}
    others: list[int] = []
    for position, entry in enumerate(entries):
        if isinstance(entry, str):
            if entry.strip():
                texts[position] = entry
        elif isinstance(entry, numbers.Real | Decimal | np.bool_):
            try:
                converted[position] = float(entry)
            except (OverflowError, ValueError):
                others.append(position)
        elif entry is not None and type(entry).__name__ not in ("NAType", "NaTType"):
            others.append(position)
    if not (texts or others):
        return converted
    unread = {position: text for position, text in texts.items() if not is_number(text)}
    if others:
        what, positions = "something other than numbers", [*others, *texts]
    elif not unread:
        what, positions = "numbers that were saved as text", list(texts)
    elif all(is_number(text.replace(".", "").replace(",", ".")) for text in unread.values()):
        what, positions = "decimal commas instead of points", list(unread)
    else:
        what, positions = "text", list(unread)
    raise NotNumericError(what, np.isin(np.arange(len(entries)), positions))


def is_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


_NEARLY_ALL, _BROUGHT_INSIDE = 0.9, 0.95
"""Share of the numbers outside from which another unit is considered, and that a conversion must bring inside."""
_CONVERSIONS: tuple[tuple[str, str, Callable[[FloatArray], FloatArray]], ...] = (
    *((f"multiplied by {factor:g}", "", partial(np.multiply, factor)) for factor in (10.0, 100.0, 1000.0)),
    *((f"multiplied by {factor:g}", "", partial(np.multiply, factor)) for factor in (0.1, 0.01, 0.001)),
    ("multiplied by 2.54 (inches to centimetres)", "cm", lambda x: x * 2.54),
    ("divided by 2.54 (centimetres to inches)", "in inch inches", lambda x: x / 2.54),
    ("multiplied by 0.4536 (pounds to kilograms)", "kg", lambda x: x * 0.4536),
    ("divided by 0.4536 (kilograms to pounds)", "lb lbs pounds", lambda x: x / 0.4536),
    ("multiplied by 18.0182 (glucose, mmol/L to mg/dL)", "mg/dl", lambda x: x * 18.0182),
    ("divided by 18.0182 (glucose, mg/dL to mmol/L)", "mmol/l", lambda x: x / 18.0182),
    ("multiplied by 38.67 (cholesterol, mmol/L to mg/dL)", "mg/dl", lambda x: x * 38.67),
    ("divided by 38.67 (cholesterol, mg/dL to mmol/L)", "mmol/l", lambda x: x / 38.67),
    ("multiplied by 88.4 (creatinine, mg/dL to umol/L)", "umol/l \u03bcmol/l", lambda x: x * 88.4),
    ("divided by 88.4 (creatinine, umol/L to mg/dL)", "mg/dl", lambda x: x / 88.4),
    ("taken from Fahrenheit to Celsius", "\u00b0c c celsius", lambda x: (x - 32.0) / 1.8),
    ("taken from Celsius to Fahrenheit", "\u00b0f f fahrenheit", lambda x: x * 1.8 + 32.0),
)
"""Conversions, and the units that each leads to, case folded; none if it may lead to any."""


def unit_hint(numbers: FloatArray, minimum: float, maximum: float, unit: str) -> str:
    """Return a sentence on the conversion that would bring the numbers inside; empty if most are inside.

    Among the conversions to the agreed unit, or else among all, it names the one that brings the median nearest to the
    middle of the range.  A conversion is no entry of the data: it tells the unit only.
    """
    if _n_inside(numbers, minimum, maximum) > (1 - _NEARLY_ALL) * numbers.size:
        return ""
    fitting = []
    for words, units, convert in _CONVERSIONS:
        leads_to_unit = unit.casefold() in units.split()
        if unit and units and not leads_to_unit:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            converted = convert(numbers)
        if _n_inside(converted, minimum, maximum) >= _BROUGHT_INSIDE * numbers.size:
            distance = abs(float(np.median(converted)) - (minimum + maximum) / 2)
            fitting.append((not leads_to_unit, distance, words))
    if not fitting:
        return " Nearly all are outside, so the column may be in another unit."
    return (
        f" Nearly all are outside: a mix-up of units? Nearly all would fit if they were {min(fitting)[2]}. That is a "
        "guess by arithmetic: convert only if that is your unit."
    )


def _n_inside(numbers: FloatArray, minimum: float, maximum: float) -> int:
    return int(np.count_nonzero((numbers >= minimum) & (numbers <= maximum)))
