"""Which other unit numbers might be in, when they lie outside the range that was agreed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray

__all__ = ["unit_hint"]

_NEARLY_ALL = 0.9
"""Share of the numbers that must lie outside before another unit is thought of."""

_BROUGHT_INSIDE = 0.95
"""Share of the numbers that a conversion must bring inside to be named."""


@dataclass(frozen=True)
class _Conversion:
    """A conversion, and the units that it leads to, case folded; none where it may lead to any."""

    words: str
    apply: Callable[[FloatArray], FloatArray]
    units: frozenset[str] = frozenset()


def _times(factor: float, words: str = "", *units: str) -> _Conversion:
    described = f"multiplied by {factor:g}{words and f' ({words})'}"
    return _Conversion(described, lambda numbers: numbers * factor, frozenset(units))


def _over(divisor: float, words: str, *units: str) -> _Conversion:
    described = f"divided by {divisor:g} ({words})"
    return _Conversion(described, lambda numbers: numbers / divisor, frozenset(units))


_CONVERSIONS = (
    *(_times(factor) for factor in (10.0, 100.0, 1000.0, 0.1, 0.01, 0.001)),
    _times(2.54, "inches to centimetres", "cm"),
    _over(2.54, "centimetres to inches", "in", "inch", "inches"),
    _times(0.4536, "pounds to kilograms", "kg"),
    _over(0.4536, "kilograms to pounds", "lb", "lbs", "pounds"),
    _times(18.0182, "glucose, mmol/L to mg/dL", "mg/dl"),
    _over(18.0182, "glucose, mg/dL to mmol/L", "mmol/l"),
    _times(38.67, "cholesterol, mmol/L to mg/dL", "mg/dl"),
    _over(38.67, "cholesterol, mg/dL to mmol/L", "mmol/l"),
    _times(88.4, "creatinine, mg/dL to umol/L", "umol/l", "μmol/l"),
    _over(88.4, "creatinine, umol/L to mg/dL", "mg/dl"),
    _Conversion("taken from Fahrenheit to Celsius", lambda f: (f - 32.0) / 1.8, frozenset(("°c", "c", "celsius"))),
    _Conversion("taken from Celsius to Fahrenheit", lambda c: c * 1.8 + 32.0, frozenset(("°f", "f", "fahrenheit"))),
)


def unit_hint(numbers: FloatArray, minimum: float, maximum: float, unit: str) -> str:
    """A sentence on the conversion that would bring the numbers inside; empty where most are inside.

    One is named: of those that lead to the agreed unit, or else of all, that which brings the median nearest to the
    middle of the range.  A conversion is no entry of the data: it tells the unit only.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
        Without NaN.
    minimum, maximum : float
    unit : str
        The agreed one; empty where none is named.
    """
    if np.count_nonzero(_inside(numbers, minimum, maximum)) > (1 - _NEARLY_ALL) * numbers.size:
        return ""
    fitting = []
    for conversion in _CONVERSIONS:
        if unit and conversion.units and unit.casefold() not in conversion.units:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            converted = conversion.apply(numbers)
        n_inside = int(np.count_nonzero(_inside(converted, minimum, maximum)))
        if n_inside >= _BROUGHT_INSIDE * numbers.size:
            distance = abs(float(np.median(converted)) - (minimum + maximum) / 2)
            fitting.append((unit.casefold() not in conversion.units, distance, conversion.words))
    if not fitting:
        return " Nearly all are outside, so the column may be in another unit."
    to_the_unit = [found for found in fitting if not found[0]]
    _, _, words = min(to_the_unit or fitting)
    return (
        f" Nearly all are outside: a mix-up of units? Nearly all would fit if they were {words}. That is a guess by "
        "arithmetic: convert only if that is your unit."
    )


def _inside(numbers: FloatArray, minimum: float, maximum: float) -> NDArray[np.bool_]:
    return (numbers >= minimum) & (numbers <= maximum)
