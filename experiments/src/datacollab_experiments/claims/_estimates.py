"""From rows to estimates: rows that belong together, and their means."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datacollab.party import OBFUSCATORS

from ..paper import BASELINES, METHODS, Row
from ._statistics import Interval, by_seed, interval

_DATASETS = ("mnist", "fashion-mnist", "slice-localization", "ujiindoorloc")
_ORDER = (*BASELINES, *METHODS, "LR", "MLP", "PINV", *OBFUSCATORS, *_DATASETS)


@dataclass(frozen=True)
class Estimate:
    """Mean over seeds with its interval; None where no row has a value.  Failed rows are counted beside."""

    interval: Interval | None
    n_failed: int = 0


def in_order(names: Iterable[str]) -> list[str]:
    """Distinct names: those of the paper in its order, then all others by the alphabet."""
    return sorted(set(names), key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def by_axes(rows: Iterable[Row], *axes: str) -> dict[tuple[Any, ...], list[Row]]:
    """Group rows by settings of their conditions, in the order of the settings."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row.condition, axis) for axis in axes), []).append(row)
    return {key: groups[key] for key in sorted(groups, key=lambda key: [_rank(value) for value in key])}


def estimate(rows: Sequence[Row], measure: str) -> Estimate:
    """Mean and interval of one method under one condition."""
    values = by_seed(rows, measure)
    found = interval(values[seed] for seed in sorted(values)) if values else None
    return Estimate(found, sum(row.error is not None for row in rows))


def slope(rows: Sequence[Row], axis: str, measure: str) -> Interval | None:
    """Slope of log(measure) over log(axis): least squares for each seed that has all points, then the mean."""
    points = {key[0]: by_seed(group, measure) for key, group in by_axes(rows, axis).items()}
    points = {at: values for at, values in points.items() if values}
    if len(points) < 2:
        return None
    whole = set.intersection(*(set(values) for values in points.values()))
    # A slope is paired by seed, so a seed with a gap says nothing of it.
    lines = [[values[seed] for values in points.values()] for seed in sorted(whole)]
    slopes = [float(np.polyfit(np.log(list(points)), np.log(line), 1)[0]) for line in lines if min(line) > 0]
    if slopes:
        return interval(slopes)
    return None


def anchor_series(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split one data set's rows into the series over anchor sizes and the one over source rows.

    The condition where both series meet is of the second one, unless nothing is left to compare in the first.
    """
    sources = _most_varied(rows, lambda row: row.condition.n_sources, lambda row: row.condition.n_anchors)
    size = _most_varied(rows, lambda row: row.condition.n_anchors, lambda row: row.condition.n_sources)
    quality = [row for row in rows if row.condition.n_anchors == size]
    if len({row.condition.n_sources for row in quality}) < 2:
        return [row for row in rows if row.condition.n_sources == sources], []
    quantity = [row for row in rows if row.condition.n_sources == sources]
    apart = [row for row in quantity if row.condition.n_anchors != size]
    # Without the condition where both series meet, one size alone would be no series.
    if len({row.condition.n_anchors for row in apart}) > 1:
        quantity = apart
    return quantity, quality


def _most_varied(rows: Sequence[Row], fixed: Callable[[Row], Any], varied: Callable[[Row], Any]) -> Any:
    """Value of the first setting under which the second takes most values."""
    found: dict[Any, set[Any]] = {}
    for row in rows:
        found.setdefault(fixed(row), set()).add(varied(row))
    return max(found, key=lambda value: (len(found[value]), value or 0), default=None)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers by size and None after them, names in the order of the paper."""
    if isinstance(value, str):
        if value in _ORDER:
            return (_ORDER.index(value), "")
        return (len(_ORDER), value)
    if value is None:
        return (1, 0)
    return (0, value)
