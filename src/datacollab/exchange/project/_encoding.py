"""From a table to the matrix that a project makes of it, with a count of the entries that its rules changed."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ...targets import effect_target, no_target, survival_target
from ._column import OTHER, Column
from ._entries import listed
from ._numbers import (
    MISSING,
    UNKNOWN,
    NotNumericError,
    affected_rows,
    as_numbers,
    label_codes,
    range_words,
    spelling_hint,
    unit_hint,
)
from ._project import Project
from ._task import Task

__all__ = [
    "MOST_OUTSIDE",
    "Adjustments",
    "EncodedTable",
    "Place",
    "adjusted_details",
    "adjusted_text",
    "encode_table",
    "target_column",
]

MOST_OUTSIDE = 0.05
"""The largest share of a column's entries that may be outside of what was agreed; one entry always may."""
_FEW_ENTRIES = 20
"""Below that, one number is more than the share, and may be in another unit as well as an exception."""
_RULE_WORDS = {"clip": "clipped", "missing": "set missing", "other": "counted as other"}


@dataclass(frozen=True, kw_only=True)
class ColumnCounts:
    """Counts of a column's entries, and of those that became something else.

    `far_outside` counts the numbers that are farther outside than the range is wide, `filled` all missing entries that
    were filled in, with those that were set missing.
    """

    n_entries: int = 0
    clipped_below: int = 0
    clipped_above: int = 0
    set_missing: int = 0
    to_other: int = 0
    far_outside: int = 0
    filled: int = 0

    @property
    def n_outside(self) -> int:
        """Entries outside of what was agreed."""
        return self.clipped_below + self.clipped_above + self.set_missing + self.to_other

    @property
    def are_too_many(self) -> bool:
        """Whether more entries are outside than can be exceptions: more than one, and more than one in twenty."""
        return self.n_outside > 1 and self.n_outside / self.n_entries > MOST_OUTSIDE

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        return ColumnCounts(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )

    def to_dict(self) -> dict[str, int]:
        """Return the counts that are not 0, for JSON."""
        return {name: count for name, count in asdict(self).items() if count or name == "n_entries"}


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Counts of a table's entries that became something else, or of those in all its batches so far.

    Attributes
    ----------
    n_rows, n_rows_outside : int
        All rows, and those with an entry outside of what was agreed.
    columns : mapping of str to ColumnCounts
        Counts by column.
    """

    n_rows: int = 0
    n_rows_outside: int = 0
    columns: Mapping[str, ColumnCounts] = field(default_factory=dict)

    def of(self, column: str) -> ColumnCounts:
        """Return the counts of one column."""
        return self.columns.get(column, ColumnCounts())

    def __add__(self, other: Adjustments) -> Adjustments:
        names = dict.fromkeys([*self.columns, *other.columns])
        return Adjustments(
            n_rows=self.n_rows + other.n_rows,
            n_rows_outside=self.n_rows_outside + other.n_rows_outside,
            columns={name: self.of(name) + other.of(name) for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON, without the columns in which nothing was changed."""
        changed = {name: counts.to_dict() for name, counts in self.columns.items() if counts.n_outside or counts.filled}
        return {"n_rows": self.n_rows, "n_rows_outside": self.n_rows_outside, "columns": changed}


def adjusted_text(counted: Mapping[str, Any]) -> str:
    """Return the result of `Adjustments.to_dict` as one line for people."""
    columns = [ColumnCounts(**counts) for counts in counted["columns"].values()]
    total = sum(columns, ColumnCounts())
    parts = []
    if total.n_outside:
        n_columns = sum(counts.n_outside > 0 for counts in columns)
        clipped = total.clipped_below + total.clipped_above
        found = ", ".join([f"{_counted(clipped, 'number')} clipped"] * (clipped > 0) + _words_besides(total))
        rows = f"{counted['n_rows_outside']} of {_counted(counted['n_rows'], 'row')}"
        parts.append(f"{rows} in {_counted(n_columns, 'column')}: {found}")
    if total.far_outside:
        parts.append(f"{_counted(total.far_outside, 'number')} far outside")
    if n_missing := total.filled - total.set_missing:
        n_columns = sum(counts.filled > counts.set_missing for counts in columns)
        entries = "missing entry" if n_missing == 1 else "missing entries"
        parts.append(f"{n_missing} {entries} filled in, in {_counted(n_columns, 'column')}")
    return "; ".join(parts) or "none"


def adjusted_details(counted: Mapping[str, Any]) -> list[str]:
    """Return a line for each column in which something was changed, from the result of `Adjustments.to_dict`."""
    lines = []
    for name, found in counted["columns"].items():
        counts, parts = ColumnCounts(**found), []
        clipped = [(counts.clipped_below, "clipped below"), (counts.clipped_above, "clipped above")]
        if words := [f"{count} {word}" for count, word in clipped if count] + _words_besides(counts):
            parts.append(f"of {counts.n_entries} entries {', '.join(words)}")
        if counts.far_outside:
            parts.append(f"{counts.far_outside} far outside")
        if n_missing := counts.filled - counts.set_missing:
            parts.append(f"{n_missing} missing filled in")
        lines.append(f"{name}: {'; '.join(parts)}")
    return lines


def _words_besides(counts: ColumnCounts) -> list[str]:
    found = [(counts.set_missing, "set missing"), (counts.to_other, "counted as other")]
    return [f"{count} {word}" for count, word in found if count]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True)
class Place:
    """A column in a file: its name in errors, how many rows of the file came before, and their counts."""

    name: str
    first_row: int | None = None
    before: ColumnCounts = field(default_factory=ColumnCounts)

    def affected(self, rows: NDArray[np.bool_], *, earlier: int = 0) -> str:
        """Count rows in the words of a refusal."""
        return affected_rows(rows, self.first_row, earlier=earlier)

    def numbers(self, entries: Any, code: str) -> FloatArray:
        """Return the entries as numbers, or refuse them with the code."""
        try:
            return as_numbers(entries)
        except NotNumericError as error:
            raise ExchangeError(
                code,
                f"{self.name} {error.words(self.first_row)}; expected numbers. Write numbers with decimal points and "
                "nothing else.",
            ) from None

    def outside_words(self, values: FloatArray, outside: NDArray[np.bool_], low: float, high: float, unit: str) -> str:
        """Count the numbers outside their range, with a possible reason."""
        hint = unit_hint(values[~np.isnan(values)], low, high, unit)
        affected = self.affected(outside, earlier=self.before.n_outside)
        return f"numbers outside the agreed range, {range_words(low, high, unit)}, in {affected}.{hint}"


def _fill_numbers(
    block: FloatArray, column: Column, entries: Any, place: Place
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], ColumnCounts]:
    values = place.numbers(entries, "SCHEMA_DTYPE")
    missing = np.isnan(values)
    _check_missing(missing, column, place)
    low, high = column.minimum, column.maximum
    assert low is not None  # a number has a range
    assert high is not None
    below, above = values < low, values > high
    outside = below | above
    is_clipped = column.outside == "clip"
    with np.errstate(over="ignore"):
        beyond = np.maximum(low - values, values - high)
    counts = ColumnCounts(
        n_entries=values.size - int(np.count_nonzero(missing)),
        clipped_below=int(np.count_nonzero(below)) * is_clipped,
        clipped_above=int(np.count_nonzero(above)) * is_clipped,
        set_missing=int(np.count_nonzero(outside)) * (not is_clipped),
        far_outside=int(np.count_nonzero(beyond > high - low)),
    )
    if outside.any() and (why := _why_refused(column.outside, place.before + counts)) is not None:
        found = place.outside_words(values, outside, low, high, column.unit)
        raise ExchangeError(
            "SCHEMA_RANGE", f"{place.name} has {found}{why} Check the unit; correct or leave out the rows."
        )
    if is_clipped:
        values = np.clip(values, low, high)
    else:
        missing |= outside
    block[:, 0] = values if column.fill is None else np.where(missing, column.fill, values)
    return outside, missing, replace(counts, filled=int(np.count_nonzero(missing)))


def _fill_categories(
    block: FloatArray, column: Column, entries: Any, place: Place
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], ColumnCounts]:
    codes = label_codes(entries, column.levels)
    missing, unknown = codes == MISSING, codes == UNKNOWN
    _check_missing(missing, column, place)
    n_unknown, is_other = int(np.count_nonzero(unknown)), column.unknown == OTHER
    counts = ColumnCounts(
        n_entries=codes.size - int(np.count_nonzero(missing)),
        to_other=n_unknown * is_other,
        set_missing=n_unknown * (not is_other),
    )
    if n_unknown and (why := _why_refused(column.unknown, place.before + counts)) is not None:
        raise ExchangeError(
            "SCHEMA_CATEGORY_UNKNOWN",
            f"{place.name} holds categories that were not agreed in "
            f"{place.affected(unknown, earlier=place.before.n_outside)}.{spelling_hint(entries, column.categories)} "
            f"Agreed: {listed(column.categories)}.{why} If they are new, ask the owner to add them to the project and "
            "to sign it again; if they are agreed ones spelt otherwise, write them as agreed.",
        )
    if is_other:
        codes[unknown] = column.levels.index(OTHER) if column.other is None else column.other
    else:
        missing |= unknown
    if isinstance(column.fill, str):
        codes[missing] = column.levels.index(column.fill)
    block[:, : len(column.levels)] = codes[:, np.newaxis] == np.arange(len(column.levels))
    return unknown, missing, replace(counts, filled=int(np.count_nonzero(missing)))


def _why_refused(rule: str, counts: ColumnCounts) -> str | None:
    """Return a sentence on why entries outside are refused in spite of the rule; None if they are exceptions."""
    if rule == "refuse":
        return ""
    if counts.are_too_many:
        return f" More than {100 * MOST_OUTSIDE:g} % of a column are no exceptions that could be {_RULE_WORDS[rule]}."
    if counts.far_outside and counts.n_entries < _FEW_ENTRIES:
        return (
            f" It is farther outside than the range is wide, and among fewer than {_FEW_ENTRIES} entries nobody can "
            f"tell whether that is an exception, which could be {_RULE_WORDS[rule]}, or another unit."
        )
    return None


def _check_missing(missing: NDArray[np.bool_], column: Column, place: Place) -> None:
    if column.missing == "refuse" and missing.any():
        raise ExchangeError(
            "SCHEMA_MISSING_ENTRY",
            f"{place.name} has no entry in {place.affected(missing)}, and the project fills none in. Fill them "
            "in, or leave out the rows.",
        )


def target_column(task: Task, name: str, entries: Any, place: Place) -> NDArray[Any]:
    """Return one column of targets, shape (n_rows,): classes, numbers, or 1 for seen or treated and 0 for not."""
    labels = task.labels[name]
    if not labels:
        return _target_numbers(task, name, entries, place)
    codes = label_codes(entries, labels)
    _check_target_there(codes == MISSING, place)
    if (unknown := codes == UNKNOWN).any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place.name} holds classes that were not agreed in {place.affected(unknown)}."
            f"{spelling_hint(entries, labels)} Agreed: {listed(labels)}. Correct them, or leave out the rows.",
        )
    if name in (task.event, task.treatment):
        return (codes >= len(task.not_seen if name == task.event else task.untreated)).astype(np.int64)
    return task.class_of_label[codes]


def _target_numbers(task: Task, name: str, entries: Any, place: Place) -> FloatArray:
    values = place.numbers(entries, "TARGET_INVALID")
    _check_target_there(np.isnan(values), place)
    if name == task.time and (low := values <= 0).any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place.name} is 0 or less in {place.affected(low)}. Times begin after 0: correct them; all parties alike "
            "may count an event on the first day as half a day.",
        )
    minimum, maximum = 0.0 if task.minimum is None else task.minimum, task.maximum
    assert maximum is not None  # a regression, a time and an outcome have a range
    outside = (values < minimum) | (values > maximum)
    if outside.any():
        found = place.outside_words(values, outside, minimum, maximum, task.unit)
        raise ExchangeError("TARGET_INVALID", f"{place.name} has {found} Correct them, or leave out the rows.")
    return values


def _check_target_there(missing: NDArray[np.bool_], place: Place) -> None:
    if missing.any():
        raise ExchangeError(
            "TARGET_INVALID",
            f"{place.name} has no entry in {place.affected(missing)}. Leave out rows without a target.",
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
        times to events, effects and if there is nothing to predict; None if it was not asked for.
    n_rows : int
    adjusted : Adjustments
        Counts of the entries that became something else, in this table and the batches before it.
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

    Numbers stay as they are, and a category becomes columns of zeros and ones in the declared order.  Entries that are
    missing, outside their range or unknown are changed by the project's rules, each row by itself.  Columns that the
    project does not name are left out.

    All is refused if more than one entry of a column, and more than one in twenty, is outside of what was agreed, or
    one in so few that nobody can tell an exception from another unit.

    Parameters
    ----------
    project : Project
    table : DataFrame
    where : str
        Name of the table in errors: its file.
    with_target : bool, default=True
        Whether targets are encoded; for predictions they are not.
    first_row : int, optional
        How many rows of a file came before, if the table is a batch of it, so that an error counts them too and names
        the row of the file.  Rows count from 1, without the header.
    before : Adjustments, optional
        Counts of the batches before, if the table is one.

    Raises
    ------
    ExchangeError
        If a column is missing or holds something that the project does not allow.  The message counts rows and names
        columns, and quotes no entry.

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
        fill = _fill_numbers if column.kind == "number" else _fill_categories
        place = Place(f"{where}: column {column.name!r}", first_row, before.of(column.name))
        try:
            entries = table.iloc[:, position_of[column.name]]
            outside, missing, counts[column.name] = fill(block, column, entries, place)
        except ExchangeError as error:
            refused.append((column.name, error))
            continue
        if column.flag_missing:
            block[:, -1] = missing
        outside_rows |= outside
    parts: dict[str, NDArray[Any]] = {}
    for part, name in project.task.fields.items() if with_target else ():
        try:
            place = Place(f"{where}: target {name!r}", first_row)
            parts[part] = target_column(project.task, name, table.iloc[:, position_of[name]], place)
        except ExchangeError as error:
            refused.append((name, error))
    if refused:
        # The other columns are named too, so that all can be mended at once.
        first, others = refused[0][1], [name for name, _ in refused[1:]]
        more = f" Look at these columns too: {listed(others)}." if others else ""
        raise ExchangeError(first.code, f"{first}{more}")
    target = _assembled(project.task, parts, len(table)) if with_target else None
    here = Adjustments(n_rows=len(table), n_rows_outside=int(np.count_nonzero(outside_rows)), columns=counts)
    return EncodedTable(X=X, target=target, n_rows=len(table), adjusted=before + here)


def _assembled(task: Task, parts: Mapping[str, NDArray[Any]], n_rows: int) -> NDArray[Any]:
    if task.is_single:
        return parts["target"]
    if not parts:
        return no_target(n_rows)
    return effect_target(**parts) if "treatment" in parts else survival_target(**parts)


def _positions(project: Project, table: Any, where: str, with_target: bool) -> dict[str, int]:
    expected = [column.name for column in project.columns]
    expected += project.task.columns if with_target else ()
    found = [str(name) for name in table.columns]
    if lacking := [name for name in expected if name not in set(found)]:
        raise ExchangeError("SCHEMA_MISSING_COLUMN", _missing_columns(where, lacking, found, expected))
    counts = Counter(found)
    if repeated := [name for name in expected if counts[name] > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{where} has more than one column named {listed(repeated)}. Rename or remove them."
        )
    return {name: position for position, name in enumerate(found)}


def _missing_columns(where: str, lacking: Sequence[str], found: Sequence[str], expected: Sequence[str]) -> str:
    """Return the sentence on missing columns, with their possible names in the table."""
    taken = set(expected)
    candidates = {_plain(name): name for name in reversed(found) if name not in taken}
    described = []
    for name in lacking:
        near = difflib.get_close_matches(_plain(name), candidates, n=1, cutoff=0.7)
        described.append(f"{name!r} (there is {candidates[near[0]]!r})" if near else repr(name))
    return (
        f"{where} lacks {len(lacking)} of {len(expected)} columns of the project: {listed(described, most=20)}. Add or "
        "rename them."
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
