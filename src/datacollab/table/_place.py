"""A column's place in a file, with the refusals of its entries: they count rows, and quote no entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import join_names
from .._typing import FloatArray
from ..errors import ExchangeError
from ._adjustments import n_outside
from ._values import NotNumericError, as_numbers, count_affected, spelling_hint

_NEARLY_ALL = 0.9
"""Share of the numbers outside from which another unit is considered: a few exceptions do not tell a unit."""
_BROUGHT_INSIDE = 0.95
"""Share of the numbers that a conversion must bring inside: as many as the rules let pass."""
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


def range_words(minimum: float | None, maximum: float | None, unit: str) -> str:
    """Return a range in words."""
    return f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"


@dataclass(frozen=True)
class ColumnPlace:
    """A column in a file: its name in errors, how many rows of the file came before, and their counts."""

    name: str
    first_row: int | None = None
    before: Counter[str] = field(default_factory=Counter)

    def refuse(self, code: str, rows: NDArray[np.bool_], fault: str, advice: str, *, earlier: int = 0) -> None:
        """Raise the error if any row is True; the message counts them, and the earlier ones of the file."""
        if rows.any():
            affected = count_affected(rows, self.first_row, earlier=earlier)
            raise ExchangeError(code, f"{self.name} {fault} in {affected}{advice}")

    def numbers(self, entries: Any, code: str) -> FloatArray:
        """Return the entries as numbers, or refuse them with the code."""
        try:
            return as_numbers(entries)
        except NotNumericError as error:
            raise ExchangeError(
                code,
                f"{self.name} {error.words(self.first_row)}; expected numbers. Write numbers with decimal points and "
                "nothing else; the owner can name words for missing entries in missing_words.",
            ) from None

    def refuse_numbers(
        self, code: str, rows: NDArray[np.bool_], values: FloatArray, limits: tuple[float, float, str], advice: str
    ) -> None:
        """Refuse numbers outside of least and largest, in a unit, with a possible reason."""
        if rows.any():
            hint = _unit_hint(values[~np.isnan(values)], *limits)
            fault = f"has numbers outside the agreed range, {range_words(*limits)},"
            self.refuse(code, rows, fault, f".{hint}{advice}", earlier=n_outside(self.before))

    def refuse_labels(
        self, code: str, rows: NDArray[np.bool_], entries: Any, labels: Sequence[str | int], noun: str, advice: str
    ) -> None:
        """Refuse labels that were not agreed, with a possible reason."""
        if rows.any():
            fault = f"holds {noun} that were not agreed"
            advice = f".{spelling_hint(entries[rows], labels)} Agreed: {join_names(labels)}.{advice}"
            self.refuse(code, rows, fault, advice, earlier=n_outside(self.before))


def _unit_hint(numbers: FloatArray, minimum: float, maximum: float, unit: str) -> str:
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
