"""One column of a table as its part of the matrix, and what becomes of entries that do not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ._adjusted import FEW_ENTRIES, MOST_OUTSIDE, ColumnCounts, too_many
from ._affected import affected_rows
from ._column import OTHER, Column
from ._labels import MISSING, UNKNOWN, label_codes, spelling_hint
from ._numbers import NotNumericError, as_numbers
from ._refusals import listed
from ._units import unit_hint

__all__ = ["Place", "fill_block", "outside_words"]


@dataclass(frozen=True)
class Place:
    """A column in a file: what an error calls it, and what came before in the file."""

    name: str
    first_row: int | None
    before: ColumnCounts

    def affected(self, rows: NDArray[np.bool_], *, earlier: int = 0) -> str:
        """Count rows in the words of a refusal; see `affected_rows`."""
        return affected_rows(rows, self.first_row, earlier=earlier)


def fill_block(block: FloatArray, column: Column, entries: Any, place: Place) -> tuple[NDArray[np.bool_], ColumnCounts]:
    """Write one column's part of the matrix, of shape (n_rows, column.n_features).

    Returns
    -------
    outside : ndarray of shape (n_rows,)
        Where an entry was outside of what was agreed.
    counts : ColumnCounts
    """
    fill = _fill_numbers if column.kind == "number" else _fill_categories
    outside, missing, counts = fill(block, column, entries, place)
    if column.flag_missing:
        block[:, -1] = missing
    return outside, counts


def _fill_numbers(
    block: FloatArray, column: Column, entries: Any, place: Place
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], ColumnCounts]:
    values = _numbers(entries, place.name, place.first_row)
    missing = np.isnan(values)
    _check_missing(missing, column, place)
    low, high = column.minimum, column.maximum
    assert low is not None  # a number has a range
    assert high is not None
    below, above = values < low, values > high
    outside = below | above
    is_clipped = column.outside == "clip"
    counts = ColumnCounts(
        n_entries=values.size - int(np.count_nonzero(missing)),
        clipped_below=int(np.count_nonzero(below)) * is_clipped,
        clipped_above=int(np.count_nonzero(above)) * is_clipped,
        set_missing=int(np.count_nonzero(outside)) * (not is_clipped),
        far_outside=int(np.count_nonzero(_beyond(values, low, high) > high - low)),
    )
    if outside.any():
        _check_outside(values, outside, column, place, place.before + counts)
    if is_clipped:
        values = np.clip(values, low, high)
    else:
        missing |= outside
    block[:, 0] = values if column.fill is None else np.where(missing, column.fill, values)
    return outside, missing, replace(counts, filled=int(np.count_nonzero(missing)))


def _check_outside(
    values: FloatArray, outside: NDArray[np.bool_], column: Column, place: Place, counts: ColumnCounts
) -> None:
    """Refuse numbers outside of the range, but for exceptions where the project allows them."""
    rule, why = _RULE_WORDS.get(column.outside, ""), ""
    if column.outside != "refuse" and too_many(counts):
        why = f" More than {100 * MOST_OUTSIDE:g} % of a column are no exceptions that could be {rule}."
    elif column.outside != "refuse" and counts.far_outside and counts.n_entries < FEW_ENTRIES:
        why = (
            f" It is farther outside than the range is wide, and among fewer than {FEW_ENTRIES} entries nobody can "
            f"tell whether that is an exception, which could be {rule}, or another unit."
        )
    elif column.outside != "refuse":
        return
    minimum, maximum = column.minimum, column.maximum
    assert minimum is not None
    assert maximum is not None
    found = outside_words(values, outside, (minimum, maximum), column.unit, place)
    raise ExchangeError("SCHEMA_RANGE", f"{place.name} has {found}{why} Check the unit; correct or leave out the rows.")


def _beyond(values: FloatArray, low: float, high: float) -> FloatArray:
    """How far each number is outside; NaN where there is none."""
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(low - values, values - high))


_RULE_WORDS = {"clip": "clipped", "missing": "set missing", "other": "counted as other"}


def _fill_categories(
    block: FloatArray, column: Column, entries: Any, place: Place
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], ColumnCounts]:
    codes = label_codes(entries, column.levels)
    missing, unknown = codes == MISSING, codes == UNKNOWN
    _check_missing(missing, column, place)
    n_unknown, is_other = int(np.count_nonzero(unknown)), column.unknown == "other"
    counts = ColumnCounts(
        n_entries=codes.size - int(np.count_nonzero(missing)),
        to_other=n_unknown * is_other,
        set_missing=n_unknown * (not is_other),
    )
    if n_unknown:
        _check_unknown(entries, unknown, column, place, place.before + counts)
    if is_other:
        codes[unknown] = column.levels.index(OTHER) if column.other is None else column.other
    else:
        missing |= unknown
    if isinstance(column.fill, str):
        codes[missing] = column.levels.index(column.fill)
    block[:, : len(column.levels)] = codes[:, np.newaxis] == np.arange(len(column.levels))
    return unknown, missing, replace(counts, filled=int(np.count_nonzero(missing)))


def _check_unknown(
    entries: Any, unknown: NDArray[np.bool_], column: Column, place: Place, counts: ColumnCounts
) -> None:
    """Refuse categories that were not agreed, but for exceptions where the project allows them."""
    why = ""
    if column.unknown != "refuse":
        if not too_many(counts):
            return
        rule = _RULE_WORDS[column.unknown]
        why = f" More than {100 * MOST_OUTSIDE:g} % of a column are no exceptions that could be {rule}."
    raise ExchangeError(
        "SCHEMA_CATEGORY_UNKNOWN",
        f"{place.name} holds categories that were not agreed in "
        f"{place.affected(unknown, earlier=place.before.n_outside)}.{spelling_hint(entries, column.categories)} "
        f"Agreed: {listed(column.categories)}.{why} If they are new, ask the owner to add them to the project and to "
        "sign it again; if they are agreed ones spelt otherwise, write them as agreed.",
    )


def _check_missing(missing: NDArray[np.bool_], column: Column, place: Place) -> None:
    if column.missing == "refuse" and missing.any():
        raise ExchangeError(
            "SCHEMA_MISSING_ENTRY",
            f"{place.name} has no entry in {place.affected(missing)}, and the project fills none in. Fill them "
            "in, or leave out the rows.",
        )


def _numbers(entries: Any, place: str, first_row: int | None) -> FloatArray:
    try:
        return as_numbers(entries)
    except NotNumericError as error:
        raise ExchangeError(
            "SCHEMA_DTYPE",
            f"{place} {error.said(first_row=first_row)}; numbers are wanted. Write numbers with decimal points and "
            "nothing else.",
        ) from None


def outside_words(
    values: FloatArray, outside: NDArray[np.bool_], bounds: tuple[float, float], unit: str, place: Place
) -> str:
    """How many numbers lie outside their range, and why that might be.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
    outside : ndarray of shape (n_rows,)
        Which of them are.
    bounds : (float, float)
    unit : str
    place : Place
    """
    minimum, maximum = bounds
    agreed = f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"
    hint = unit_hint(values[~np.isnan(values)], minimum, maximum, unit)
    affected = place.affected(outside, earlier=place.before.n_outside)
    return f"numbers outside the agreed range, {agreed}, in {affected}.{hint}"
