"""Numbers and lists as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ._metrics import metric_of

__all__ = ["decimal", "grouped", "joined", "percent", "shown"]


def shown(value: float | None, metric: str) -> str:
    """A value in the form of its measure: per cent, or two decimals."""
    return percent(value) if metric_of(metric).is_share else decimal(value)


def percent(value: float | None) -> str:
    """A share in per cent, with one decimal below ten; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{100 * value:.{1 if 0 < 100 * value < 9.95 else 0}f} %"


def decimal(value: float | None) -> str:
    """A number with two decimals and a true minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.2f}"
    return (text[1:] if float(text) == 0 and text.startswith("-") else text).replace("-", "−")


def grouped(count: int) -> str:
    """A count with its thousands set apart."""
    return f"{count:,}"


def joined(items: Sequence[str]) -> str:
    """A list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
