"""The coefficients of a published logistic model, held against the columns that it is tried on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ._entries import join_names

INTERCEPT = "intercept"
"""The name under which coefficients hold the intercept."""


def coefficients_fault(coefficients: Mapping[str, float], levels: Mapping[str, Sequence[object]]) -> str | None:
    """Return why coefficients do not fit columns, and the way on, as sentences; None if they fit.

    `levels` are those of each column, and empty for a column of numbers.  The coefficient of a number has the column's
    name, and that of a level is called ``column=level``.  One level of each column may have none: the reference.
    """
    if INTERCEPT in levels:
        return f"a column is called {INTERCEPT!r}, as the model's constant is. Rename the column."
    if INTERCEPT not in coefficients:
        return f"{INTERCEPT} is missing. Add the constant of the linear predictor; if it has none, {INTERCEPT} = 0.0."
    known = [INTERCEPT]
    missing: list[str] = []
    for column, each in levels.items():
        names = [f"{column}={level}" for level in each] or [column]
        absent = [name for name in names if name not in coefficients]
        known += names
        # Publications choose any level as the reference; a second one without a coefficient may have been forgotten.
        if not each or len(absent) > 1:
            missing += absent
    strange = join_names(map(repr, (name for name in coefficients if name not in known)))
    if strange:
        return (
            f"{strange} is no column or level of the project; these are {join_names(known)}. Correct the spelling, or "
            "declare the column or level."
        )
    if missing:
        return (
            f"{join_names(map(repr, missing))} has no coefficient. Add it, with 0.0 if the model does not use the "
            "column. Only one level of a column may have none: the reference."
        )
    infinite = join_names(map(repr, (name for name, value in coefficients.items() if not math.isfinite(value))))
    return f"the coefficient of {infinite} is not finite. Correct it." if infinite else None
