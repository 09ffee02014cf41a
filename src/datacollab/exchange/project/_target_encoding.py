"""The targets of every row, from the columns that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ...targets import effect_target, no_target, survival_target
from ._adjusted import ColumnCounts
from ._affected import affected_rows
from ._column_block import Place, outside_words
from ._labels import MISSING, UNKNOWN, label_codes, spelling_hint
from ._numbers import NotNumericError, as_numbers
from ._refusals import listed
from ._task import Task

__all__ = ["assembled_target", "encode_target", "target_column"]


def encode_target(
    task: Task, columns: Mapping[str, Any], where: str, *, n_rows: int, first_row: int | None = None
) -> NDArray[Any]:
    """Make the targets from their columns, as `encode_table` does; shape (n_rows,).

    Parameters
    ----------
    task : Task
    columns : mapping of str to Series
        By name.
    where : str
        What an error calls the table.
    n_rows : int
    first_row : int, optional
        As in `encode_table`.

    Raises
    ------
    ExchangeError
        TARGET_INVALID.
    """
    encoded = {name: target_column(task, name, columns[name], where, first_row=first_row) for name in task.columns}
    return assembled_target(task, encoded, n_rows)


def assembled_target(task: Task, encoded: Mapping[str, NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """One array of shape (n_rows,) from what `target_column` made of each column."""
    parts = {name: encoded[column] for name, column in task.fields.items()}
    if task.is_single:
        return parts["target"]
    if not parts:
        return no_target(n_rows)
    return effect_target(**parts) if "treatment" in parts else survival_target(**parts)


def target_column(task: Task, name: str, entries: Any, where: str, *, first_row: int | None = None) -> NDArray[Any]:
    """One column of targets: classes, numbers, or 1 and 0 for what was seen or treated and what was not.

    Parameters
    ----------
    task : Task
    name : str
        Of the column, one of `task.columns`.
    entries : Series of length n_rows
    where, first_row
        As in `encode_target`.

    Raises
    ------
    ExchangeError
        TARGET_INVALID.
    """
    place = f"{where}: target {name!r}"
    labels = task.labels[name]
    if not labels:
        return _numbers(task, name, entries, place, first_row)
    codes = _codes(entries, labels, place, first_row)
    if name == task.event:
        return (codes >= len(task.not_seen)).astype(np.int64)
    if name == task.treatment:
        return (codes >= len(task.untreated)).astype(np.int64)
    return task.class_array[codes]


def _numbers(task: Task, name: str, entries: Any, place: str, first_row: int | None) -> FloatArray:
    try:
        values = as_numbers(entries)
    except NotNumericError as error:
        said = error.said(first_row=first_row)
        raise ExchangeError("TARGET_INVALID", f"{place} {said}; numbers are wanted. Correct them.") from None
    _check_there(np.isnan(values), place, first_row)
    assert task.maximum is not None  # a regression, a time and an outcome have a range
    if name == task.time and (low := values <= 0).any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place} is 0 or less in {affected_rows(low, first_row)}. Times begin after 0: correct them; all "
            "parties alike may count an event on the first day as half a day.",
        )
    minimum = 0.0 if task.minimum is None else task.minimum
    outside = (values < minimum) | (values > task.maximum)
    if outside.any():
        bounds, file = (minimum, task.maximum), Place(place, first_row, ColumnCounts())
        found = outside_words(values, outside, bounds, task.unit, file)
        raise ExchangeError("TARGET_INVALID", f"{place} has {found} Correct them, or leave out the rows.")
    return values


def _codes(entries: Any, labels: tuple[str | int, ...], place: str, first_row: int | None) -> NDArray[np.int64]:
    codes = label_codes(entries, labels)
    _check_there(codes == MISSING, place, first_row)
    if (unknown := codes == UNKNOWN).any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place} holds classes that were not agreed in {affected_rows(unknown, first_row)}."
            f"{spelling_hint(entries, labels)} Agreed: {listed(labels)}. Correct them, or leave out the rows.",
        )
    return codes


def _check_there(missing: NDArray[np.bool_], place: str, first_row: int | None) -> None:
    if missing.any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place} has no entry in {affected_rows(missing, first_row)}. Leave out rows without a target.",
        )
