"""A column of a table as numbers, whatever the file made of it."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._affected import affected_rows

__all__ = ["NotNumericError", "as_numbers", "is_missing_text"]


class NotNumericError(Exception):
    """Some entries are no numbers; the words say how many of which kind, and quote none.

    Parameters
    ----------
    what : str
        What the column holds instead.
    rows : ndarray of shape (n_rows,), optional
        Where; by default everywhere.
    """

    def __init__(self, what: str, rows: NDArray[np.bool_] | None = None) -> None:
        super().__init__(what, rows)
        self.what, self.rows = what, rows

    def __str__(self) -> str:
        return self.said()

    def said(self, *, first_row: int | None = None) -> str:
        """The words, for rows of which `first_row` others of the file came before; None when these are all."""
        return f"holds {self.what}" + ("" if self.rows is None else f" in {affected_rows(self.rows, first_row)}")


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
        raise NotNumericError(what)
    return _from_objects(column.astype(object).tolist())


def _from_objects(entries: list[Any]) -> FloatArray:
    converted = np.full(len(entries), np.nan)
    texts: dict[int, str] = {}
    others: list[int] = []
    for position, entry in enumerate(entries):
        if isinstance(entry, numbers.Real | Decimal | np.bool_):
            try:
                converted[position] = float(entry)
            except (OverflowError, ValueError):
                others.append(position)
        elif isinstance(entry, str):
            if not is_missing_text(entry):
                texts[position] = entry
        elif not _is_missing(entry):
            others.append(position)
    if texts or others:
        raise _not_numeric(texts, others, len(entries))
    return converted


def _is_missing(entry: object) -> bool:
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _not_numeric(texts: dict[int, str], others: list[int], n_rows: int) -> NotNumericError:
    """What stands there instead of numbers, and in which rows."""
    unread = {position: text for position, text in texts.items() if not _is_number(text)}
    if others:
        what, positions = "something other than numbers", [*others, *texts]
    elif not unread:
        what, positions = "numbers that were saved as text", list(texts)
    elif all(_is_number(text.replace(".", "").replace(",", ".")) for text in unread.values()):
        what, positions = "decimal commas instead of points", list(unread)
    else:
        what, positions = "text", list(unread)
    return NotNumericError(what, np.isin(np.arange(n_rows), positions))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
