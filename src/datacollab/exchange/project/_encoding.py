"""From a table to the matrix that a project makes of it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ...targets import effect_target, no_target, survival_target
from ._adjusted import FEW_ENTRIES, MOST_OUTSIDE, Adjustments, ColumnCounts, affected_rows, too_many
from ._column import OTHER, Column
from ._numbers import MISSING, UNKNOWN, NotNumericError, as_numbers, label_codes, spelling_hint, unit_hint
from ._project import Project
from ._refusals import listed
from ._task import Task

__all__ = ["EncodedTable", "encode_table", "encode_target"]


def missing_columns(where: str, lacking: Sequence[str], found: Sequence[str], wanted: Sequence[str]) -> str:
    """The sentence on missing columns, with what each might be called in the table.

    Parameters
    ----------
    where : str
        What the table is called.
    lacking : sequence of str
        Columns that are missing.
    found, wanted : sequence of str
        All columns of the table, and of the project.
    """
    taken = set(wanted)
    candidates = {_plain(name): name for name in reversed(found) if name not in taken}
    described = []
    for name in lacking:
        near = difflib.get_close_matches(_plain(name), candidates, n=1, cutoff=0.7)
        described.append(f"{name!r} (there is {candidates[near[0]]!r})" if near else repr(name))
    return (
        f"{where} lacks {len(lacking)} of {len(wanted)} columns of the project: {listed(described, most=20)}. Add or "
        "rename them."
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


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
        return _target_numbers(task, name, entries, place, first_row)
    codes = _codes(entries, labels, place, first_row)
    if name == task.event:
        return (codes >= len(task.not_seen)).astype(np.int64)
    if name == task.treatment:
        return (codes >= len(task.untreated)).astype(np.int64)
    return task.class_array[codes]


def _target_numbers(task: Task, name: str, entries: Any, place: str, first_row: int | None) -> FloatArray:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """A table as the project's matrix.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        In float64, in the order of `Project.feature_names`.
    target : ndarray of shape (n_rows,) or None
        Classes as declared, text or int64; float64 for a regression; with the fields of `datacollab.targets` for
        times to events, effects and where there is nothing to predict; None where it was not wanted.
    n_rows : int
    adjusted : Adjustments
        How many entries became something else, in this table and the batches before it.
    """

    X: FloatArray = field(repr=False)
    target: NDArray[Any] | None = field(repr=False)
    n_rows: int
    adjusted: Adjustments = field(default_factory=Adjustments, repr=False)


def encode_table(
    project: Project,
    table: Any,
    *,
    where: str,
    with_target: bool = True,
    first_row: int | None = None,
    before: Adjustments | None = None,
) -> EncodedTable:
    """Make the project's matrix from a table; nothing is learnt from its rows.

    Numbers stay as they are, a category becomes columns of zeros and ones in the declared order, and entries that are
    missing, outside their range or unknown become what the project says: what a row becomes depends on no other row.
    Columns that the project does not name are left out.

    Where more than one entry of a column, and more than one in twenty, is outside of what was agreed, or one in so few
    that nobody can tell an exception from another unit, all is refused: that is no exception.

    Parameters
    ----------
    project : Project
    table : DataFrame
    where : str
        What an error calls the table: its file.
    with_target : bool, default=True
        Whether the target is wanted; for predictions it is not.
    first_row : int, optional
        Where the table is a batch of a file: how many rows of it came before, so that an error counts them too and
        names the row of the file.  Rows count from 1, the header not included.
    before : Adjustments, optional
        Where the table is a batch: what was adjusted in those before it.

    Raises
    ------
    ExchangeError
        When a column is missing or holds what the project does not allow.  The message counts rows and names columns,
        and quotes no entry.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.bundle import KeyPair
    >>> from datacollab.exchange.project import draft_project, encode_table
    >>> public = pd.DataFrame({"age": [20, 60, 40], "ward": ["north", "south", "north"], "ill": ["no", "yes", "no"]})
    >>> a, b, analyst = (KeyPair.generate().public for _ in range(3))
    >>> project = draft_project(
    ...     public, name="example", purpose="Shows.", target="ill", owner=a, analyst=analyst, parties={"a": a, "b": b}
    ... )
    >>> encode_table(project, public, where="public.csv").X
    array([[20.,  1.,  0.,  0.],
           [60.,  0.,  1.,  0.],
           [40.,  1.,  0.,  0.]])
    >>> project.feature_names
    ('age', 'ward=north', 'ward=south', 'ward=other')
    """
    position_of = _positions(project, table, where, with_target)
    X = np.empty((len(table), project.n_features))
    before = before or Adjustments()
    counts: dict[str, ColumnCounts] = {}
    outside_rows = np.zeros(len(table), dtype=bool)
    start, refused = 0, []
    for column in project.columns:
        block = X[:, start : start + column.n_features]
        start += column.n_features
        try:
            entries = table.iloc[:, position_of[column.name]]
            file = Place(f"{where}: column {column.name!r}", first_row, before.of(column.name))
            outside, counts[column.name] = fill_block(block, column, entries, file)
            outside_rows |= outside
        except ExchangeError as error:
            refused.append((column.name, error))
    parts: dict[str, NDArray[Any]] = {}
    for name in project.task.columns if with_target else ():
        try:
            entries = table.iloc[:, position_of[name]]
            parts[name] = target_column(project.task, name, entries, where, first_row=first_row)
        except ExchangeError as error:
            refused.append((name, error))
    if refused:
        raise _all_refused(refused)
    target = assembled_target(project.task, parts, len(table)) if with_target else None
    here = Adjustments(n_rows=len(table), n_rows_outside=int(np.count_nonzero(outside_rows)), columns=counts)
    return EncodedTable(X=X, target=target, n_rows=len(table), adjusted=before + here)


def _positions(project: Project, table: Any, where: str, with_target: bool) -> dict[str, int]:
    wanted = [column.name for column in project.columns]
    wanted += project.task.columns if with_target else ()
    found = [str(name) for name in table.columns]
    if lacking := [name for name in wanted if name not in set(found)]:
        raise ExchangeError("SCHEMA_MISSING_COLUMN", missing_columns(where, lacking, found, wanted))
    counts = Counter(found)
    if repeated := [name for name in wanted if counts[name] > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{where} has more than one column named {listed(repeated)}. Rename or remove them."
        )
    return {name: position for position, name in enumerate(found)}


def _all_refused(refused: list[tuple[str, ExchangeError]]) -> ExchangeError:
    """The first refusal, which also names the other columns, so that all can be mended at once."""
    _, first = refused[0]
    others = [name for name, _ in refused[1:]]
    more = f" Look at these columns too: {listed(others)}." if others else ""
    return ExchangeError(first.code, f"{first}{more}")
