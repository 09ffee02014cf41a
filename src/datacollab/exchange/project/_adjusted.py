"""Entries that were adjusted to a project, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FEW_ENTRIES",
    "MOST_OUTSIDE",
    "Adjustments",
    "ColumnCounts",
    "adjusted_details",
    "adjusted_text",
    "affected_rows",
    "too_many",
]


def affected_rows(rows: NDArray[np.bool_], first_row: int | None, *, earlier: int = 0) -> str:
    """Count rows in the words of a refusal.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Which of them are meant.
    first_row : int or None
        Rows of the file before these; None when these are all.
    earlier : int, default=0
        How many of those are meant, too; where there are any, the first is not named.

    Examples
    --------
    >>> rows = np.array([False, True, True])
    >>> affected_rows(rows, None)
    '2 of 3 rows (the first: row 2)'
    >>> affected_rows(rows, 16384)
    '2 of the first 16387 rows (the first: row 16386)'
    >>> affected_rows(rows, 16384, earlier=5)
    '7 of the first 16387 rows'
    """
    before = first_row or 0
    counted = (
        f"{earlier + np.count_nonzero(rows)} of {'' if first_row is None else 'the first '}{before + rows.size} rows"
    )
    if earlier or (not before and rows.all()):
        return counted
    return f"{counted} (the first: row {before + int(np.argmax(rows)) + 1})"


MOST_OUTSIDE = 0.05
"""Share of a column's entries that may be outside of what was agreed; one entry always may."""
FEW_ENTRIES = 20
"""Below that, one number is more than the share, and may be in another unit as well as an exception."""


@dataclass(frozen=True, kw_only=True)
class ColumnCounts:
    """How many entries of a column became something else.

    Attributes
    ----------
    n_entries : int
        Those that are there.
    clipped_below, clipped_above : int
        Numbers that became the minimum or the maximum.
    set_missing : int
        Numbers or categories that count as missing.
    to_other : int
        Categories that count as "other".
    far_outside : int
        Of the numbers, those farther outside than the range is wide.
    filled : int
        Missing entries that were filled in, with those that were set missing.
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

    def __add__(self, other: ColumnCounts) -> ColumnCounts:
        return ColumnCounts(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )

    def to_dict(self) -> dict[str, int]:
        """The same as JSON holds it; of the counts, those that are not 0."""
        return {name: count for name, count in asdict(self).items() if count or name == "n_entries"}


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """The counts of a table, or of all its batches so far.

    Attributes
    ----------
    n_rows, n_rows_outside : int
        All rows, and those with an entry outside of what was agreed.
    columns : mapping of str to ColumnCounts
        Of all columns.
    """

    n_rows: int = 0
    n_rows_outside: int = 0
    columns: Mapping[str, ColumnCounts] = field(default_factory=dict)

    def of(self, column: str) -> ColumnCounts:
        """The counts of one column."""
        return self.columns.get(column, ColumnCounts())

    def __add__(self, other: Adjustments) -> Adjustments:
        names = dict.fromkeys([*self.columns, *other.columns])
        return Adjustments(
            n_rows=self.n_rows + other.n_rows,
            n_rows_outside=self.n_rows_outside + other.n_rows_outside,
            columns={name: self.of(name) + other.of(name) for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it; columns in which nothing was changed are left out."""
        changed = {name: counts.to_dict() for name, counts in self.columns.items() if counts.n_outside or counts.filled}
        return {"n_rows": self.n_rows, "n_rows_outside": self.n_rows_outside, "columns": changed}


def too_many(counts: ColumnCounts) -> bool:
    """Whether more entries are outside than can be exceptions: more than one, and more than one in twenty.

    Examples
    --------
    >>> too_many(ColumnCounts(n_entries=5, clipped_above=1)), too_many(ColumnCounts(n_entries=5, clipped_above=2))
    (False, True)
    >>> too_many(ColumnCounts(n_entries=200, to_other=10)), too_many(ColumnCounts(n_entries=200, to_other=11))
    (False, True)
    """
    return counts.n_outside > 1 and counts.n_outside / counts.n_entries > MOST_OUTSIDE


def adjusted_text(told: Mapping[str, Any]) -> str:
    """One line for people, of what `Adjustments.to_dict` gave.

    Examples
    --------
    >>> adjusted_text(Adjustments(n_rows=110).to_dict())
    'none'
    >>> clipped = ColumnCounts(n_entries=110, clipped_above=2, far_outside=1)
    >>> adjusted_text(Adjustments(n_rows=110, n_rows_outside=2, columns={"age": clipped}).to_dict())
    '2 of 110 rows in 1 column: 2 numbers clipped; 1 number far outside'
    """
    columns = [ColumnCounts(**counts) for counts in told["columns"].values()]
    total = sum(columns, ColumnCounts())
    parts = []
    if total.n_outside:
        n_columns = sum(counts.n_outside > 0 for counts in columns)
        clipped = total.clipped_below + total.clipped_above
        found = ", ".join([f"{_counted(clipped, 'number')} clipped"] * (clipped > 0) + _words_besides(total))
        parts.append(
            f"{told['n_rows_outside']} of {_counted(told['n_rows'], 'row')} in {_counted(n_columns, 'column')}: {found}"
        )
    if total.far_outside:
        parts.append(f"{_counted(total.far_outside, 'number')} far outside")
    if n_missing := total.filled - total.set_missing:
        n_columns = sum(counts.filled > counts.set_missing for counts in columns)
        entries = "missing entry" if n_missing == 1 else "missing entries"
        parts.append(f"{n_missing} {entries} filled in, in {_counted(n_columns, 'column')}")
    return "; ".join(parts) or "none"


def adjusted_details(told: Mapping[str, Any]) -> list[str]:
    """A line for each column in which something was changed, of what `Adjustments.to_dict` gave.

    Examples
    --------
    >>> clipped = ColumnCounts(n_entries=110, clipped_above=2, filled=3)
    >>> adjusted_details(Adjustments(n_rows=113, n_rows_outside=2, columns={"age": clipped}).to_dict())
    ['age: of 110 entries 2 clipped above; 3 missing filled in']
    """
    lines = []
    for name, found in told["columns"].items():
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
