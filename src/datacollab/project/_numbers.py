"""A column of a table as numbers, whatever the file made of it."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import Any

import numpy as np

from .._typing import FloatArray

__all__ = ["NotNumericError", "as_numbers", "is_missing_text"]


class NotNumericError(Exception):
    """Some entries are no numbers; the words say how many of which kind, and quote none."""


def is_missing_text(value: object) -> bool:
    """Whether an entry is text with nothing in it, which files use for a missing entry."""
    return isinstance(value, str) and not value.strip()


def as_numbers(column: Any) -> FloatArray:
    """The entries of a column in float64; missing ones are NaN.

    Truth values are 0 and 1.

    Parameters
    ----------
    column : Series of length n_rows

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    NotNumericError
        When some entries are text, dates or anything else.
    """
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64))
    if kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind in "Mmc":
        what = {"M": "dates", "m": "durations", "c": "complex numbers"}[kind]
        raise NotNumericError(f"holds {what}")
    return _from_objects(column.astype(object).tolist())


def _from_objects(entries: list[Any]) -> FloatArray:
    converted = np.full(len(entries), np.nan)
    texts, others = [], 0
    for position, entry in enumerate(entries):
        if isinstance(entry, numbers.Real | Decimal | np.bool_):
            try:
                converted[position] = float(entry)
            except (OverflowError, ValueError):
                others += 1
        elif isinstance(entry, str):
            if not is_missing_text(entry):
                texts.append(entry)
        elif not _is_missing(entry):
            others += 1
    if texts or others:
        raise NotNumericError(_words(texts, others, len(entries)))
    return converted


def _is_missing(entry: object) -> bool:
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _words(texts: list[str], others: int, n_rows: int) -> str:
    """What stands there instead of numbers."""
    unread = [text for text in texts if not _is_number(text)]
    if others:
        return f"holds something other than numbers in {others + len(texts)} of {n_rows} rows"
    if not unread:
        return f"holds numbers that were saved as text in {len(texts)} of {n_rows} rows"
    if all(_is_number(text.replace(".", "").replace(",", ".")) for text in unread):
        return f"holds decimal commas instead of points in {len(unread)} of {n_rows} rows"
    return f"holds text in {len(unread)} of {n_rows} rows"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
