"""Categories and classes: which of the declared ones an entry is, whatever the file made of it."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ._numbers import is_missing_text

__all__ = ["MISSING", "UNKNOWN", "label_codes", "label_text", "spelling_hint"]

MISSING, UNKNOWN = -1, -2
_NO_LABEL = object()

_DECIMAL = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)


def label_codes(column: Any, labels: Sequence[str | int]) -> NDArray[np.int64]:
    """Position of every entry among the labels.

    An entry is a label that it equals as text.  Failing that, numbers are compared as numbers, so that the label "1" is
    found in a file that holds 1, 1.0 or "1.0", and truth values are 1 and 0.

    Parameters
    ----------
    column : Series of length n_rows
    labels : sequence of str or int

    Returns
    -------
    ndarray of shape (n_rows,)
        `MISSING` where there is no entry, `UNKNOWN` where it is none of the labels.
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
    """A sentence where unknown entries differ from labels by capital letters and spaces alone; else nothing."""
    relaxed = column.astype(object).map(lambda entry: _relax(entry) if isinstance(entry, str) else entry)
    unknown = np.count_nonzero(label_codes(column, labels) == UNKNOWN)
    left = np.count_nonzero(
        label_codes(relaxed, list(dict.fromkeys(_relax(str(label)) for label in labels))) == UNKNOWN
    )
    if left == unknown:
        return ""
    return f" {unknown - left} of them differ from agreed ones by capital letters or spaces alone."


def _relax(text: str) -> str:
    return " ".join(text.casefold().split())


def _finder(labels: Sequence[str | int]) -> Callable[[object], int]:
    texts = [str(label) for label in labels]
    exact = {text: position for position, text in enumerate(texts)}
    values: dict[str, int] = {}
    for position, text in enumerate(texts):
        # Labels of one value, such as "1" and "1.0", are told apart as text only.
        value = _value(text)
        values[value] = UNKNOWN if value in values else position

    def find(entry: object) -> int:
        if is_missing_text(entry):
            return MISSING
        text = label_text(entry)
        return exact.get(text, values.get(_value(text), UNKNOWN))

    return find


def label_text(entry: object) -> str:
    """An entry as the text of a label: whole numbers without a point, truth values as 1 and 0."""
    if isinstance(entry, numbers.Integral | np.bool_):
        return str(int(entry))
    if isinstance(entry, float | np.floating | Decimal) and math.isfinite(entry) and int(entry) == entry:
        return str(int(entry))
    return str(entry)


def _value(text: str) -> str:
    """One text for all that say the same number or truth value; 01 is not 1, as leading zeros tell codes apart."""
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    if not _DECIMAL.fullmatch(text):
        return text
    shorter = text.removeprefix("+")
    if "." in shorter:
        shorter = shorter.rstrip("0").rstrip(".")
    return "0" if shorter == "-0" else shorter
