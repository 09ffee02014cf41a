"""Counts of entries that became something else on their way into the matrix, and their words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_OUTSIDE = ("clipped_below", "clipped_above", "set_missing", "to_other")
_COUNTS = ("n_entries", *_OUTSIDE, "far_outside", "filled", "respelt")
"""Of a column; far outside is farther than the range is wide, filled are those that were set missing, too, and respelt
those that are an agreed category but for capital letters and blanks."""


def n_outside(counts: Mapping[str, int]) -> int:
    """Return the number of entries of a column that were outside of what was agreed."""
    return sum(counts.get(name, 0) for name in _OUTSIDE)


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Counts of a table's entries that became something else, or of those in all its batches so far."""

    n_rows: int = 0
    n_rows_outside: int = 0
    """Rows with an entry outside of what was agreed."""
    columns: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Of each column: all entries, those outside by their new kind, those far outside, and those filled in."""

    def __add__(self, other: Adjustments) -> Adjustments:
        names = dict.fromkeys([*self.columns, *other.columns])
        none = Counter[str]()
        return Adjustments(
            n_rows=self.n_rows + other.n_rows,
            n_rows_outside=self.n_rows_outside + other.n_rows_outside,
            columns={name: self.columns.get(name, none) + other.columns.get(name, none) for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON, without the columns in which nothing was changed."""
        columns = {
            name: {each: counts[each] for each in _COUNTS if counts[each] or each == "n_entries"}
            for name, counts in self.columns.items()
            if n_outside(counts) or counts["filled"] or counts["respelt"]
        }
        return {"n_rows": self.n_rows, "n_rows_outside": self.n_rows_outside, "columns": columns}


def adjustments_text(counts: Mapping[str, Any]) -> str:
    """Return the result of `Adjustments.to_dict` as one line for people."""
    columns = [Counter(each) for each in counts["columns"].values()]
    total = sum(columns, Counter[str]())
    parts = []
    if n_outside(total):
        n_columns = sum(n_outside(each) > 0 for each in columns)
        words = _other_words(total)
        if n_clipped := total["clipped_below"] + total["clipped_above"]:
            words.insert(0, f"{_count(n_clipped, 'number')} clipped")
        rows = f"{counts['n_rows_outside']} of {_count(counts['n_rows'], 'row')}"
        parts.append(f"{rows} in {_count(n_columns, 'column')}: {', '.join(words)}")
    if total["far_outside"]:
        parts.append(f"{_count(total['far_outside'], 'number')} far outside")
    # Entries that were set missing are filled in as well, and were counted above.
    if n_missing := total["filled"] - total["set_missing"]:
        n_columns = sum(each["filled"] > each["set_missing"] for each in columns)
        entries = "missing entry" if n_missing == 1 else "missing entries"
        parts.append(f"{n_missing} {entries} filled in, in {_count(n_columns, 'column')}")
    if total["respelt"]:
        parts.append(f"{total['respelt']} spelt otherwise than agreed")
    return "; ".join(parts) or "none"


def adjustments_lines(counts: Mapping[str, Any]) -> list[str]:
    """Return a line for each column in which something was changed, from the result of `Adjustments.to_dict`."""
    return [f"{name}: {'; '.join(_column_parts(Counter(each)))}" for name, each in counts["columns"].items()]


def _column_parts(counts: Counter[str]) -> list[str]:
    parts = []
    words = [f"{counts[f'clipped_{side}']} clipped {side}" for side in ("below", "above") if counts[f"clipped_{side}"]]
    words += _other_words(counts)
    if words:
        parts.append(f"of {counts['n_entries']} entries {', '.join(words)}")
    if counts["far_outside"]:
        parts.append(f"{counts['far_outside']} far outside")
    if n_missing := counts["filled"] - counts["set_missing"]:
        parts.append(f"{n_missing} missing filled in")
    if counts["respelt"]:
        parts.append(f"{counts['respelt']} spelt otherwise than agreed")
    return parts


def _other_words(counts: Mapping[str, int]) -> list[str]:
    """Return the words for entries outside that were not clipped."""
    words = {"set_missing": "set missing", "to_other": "counted as other"}
    return [f"{counts[name]} {each}" for name, each in words.items() if counts[name]]


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
