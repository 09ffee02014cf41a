"""From rows to estimates, beside the numbers that the paper prints: intervals and tests over seeds."""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from scipy import stats

from datacollab.party import OBFUSCATORS

from ..paper import BASELINES, METHODS, Row


@dataclass(frozen=True, kw_only=True)
class PublishedValue:
    """One cell of a table of the paper.

    Attributes
    ----------
    table : str
        LaTeX label of the table; for a number in the text, of the figure or table beside it.
    obfuscator : str or None
        None where the value does not depend on it.
    n_components, n_parties : int or None
        None where the table does not vary it.
    name : str
        Name of the method; "reconstruction" for reconstruction accuracies.
    half_width : float or None
        Half the 95 % confidence interval of the mean; None where none is printed.
    attack : str or None
        The attack with the highest reconstruction accuracy, whose value this is.
    """

    table: str
    dataset: str
    obfuscator: str | None = None
    n_components: int | None = None
    n_parties: int | None = None
    name: str
    measure: str
    mean: float
    half_width: float | None = None
    attack: str | None = None
    n_trials: int


@cache
def published_values() -> tuple[PublishedValue, ...]:
    """Every number of the paper that a run can be held against, in the order of its tables."""
    text = resources.files(__package__).joinpath("published.toml").read_text(encoding="utf-8")
    return tuple(value for table in tomllib.loads(text)["table"] for value in _values_of(table))


def find_published(
    table: str,
    *,
    dataset: str,
    name: str,
    obfuscator: str | None = None,
    n_components: int | None = None,
    n_parties: int | None = None,
) -> PublishedValue | None:
    """Look up the printed counterpart of one condition's number.

    Parameters
    ----------
    obfuscator, n_components, n_parties : optional
        Settings of the condition.  Those that the printed value does not depend on may have any value.

    Returns
    -------
    PublishedValue or None
        None where the paper prints none.
    """
    wanted = {"obfuscator": obfuscator, "n_components": n_components, "n_parties": n_parties}
    for value in published_values():
        if (value.table, value.dataset, value.name) == (table, dataset, name) and all(
            getattr(value, axis) in (None, of_condition) for axis, of_condition in wanted.items()
        ):
            return value
    return None


def _values_of(table: dict[str, Any]) -> Iterator[PublishedValue]:
    """Cells of one entry of the file: rows x blocks x columns."""
    for row in table["row"]:
        where = {axis: row[axis] for axis in ("dataset", "obfuscator") if axis in row}
        for block, cells in zip(table["blocks"], row["cells"], strict=True):
            for column, cell in zip(table["columns"], cells, strict=True):
                # Cells have a mean, and where they are printed a half width and an attack.
                numbers = dict(zip(("mean", "half_width", "attack"), cell, strict=False))
                yield PublishedValue(
                    table=table["label"], n_trials=table["n_trials"], **where, **block, **column, **numbers
                )


_LEVEL = 0.95
# Seeds that a test needs.
FEWEST = 3

# Relative size below which a difference is one of floating-point arithmetic.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and its 95 % confidence interval.

    Attributes
    ----------
    mean : float
        NaN over no seed.
    half_width : float
        NaN over fewer than two seeds.
    """

    mean: float
    half_width: float
    n: int

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN over fewer than two seeds."""
        return _standard_error(self.half_width, self.n)


def interval(values: Iterable[float]) -> Interval:
    """Mean and Student's t interval of values, one per seed."""
    array = np.array(list(values), dtype=np.float64)
    if len(array) < 2:
        return Interval(float(array[0]) if len(array) else math.nan, math.nan, len(array))
    half_width = _quantile(len(array)) * array.std(ddof=1) / math.sqrt(len(array))
    return Interval(float(array.mean()), float(half_width), len(array))


def by_seed(rows: Iterable[Row], measure: str) -> dict[int, float]:
    """Return values of one method, or attack, in one condition, in the order of the seeds; failed rows have none.

    The measure is a key of ``Row.scores`` or of ``Row.seconds``.

    Raises
    ------
    ValueError
        When two rows of a seed have the measure: they are of several methods or conditions, or the same result twice.
    """
    values: dict[int, float] = {}
    for row in rows:
        measured = {} if row.error is not None else {**row.seconds, **row.scores}
        # A failed row has no value, and enters no mean.
        if measure not in measured:
            continue
        if row.seed in values:
            raise ValueError(
                f"{row.name!r} of experiment {row.experiment!r}: seed {row.seed} has a second row with {measure!r}, "
                "where one is wanted. Give the rows of one method in one condition, each result once."
            )
        values[row.seed] = float(measured[measure])
    return dict(sorted(values.items()))


def standardise_difference(ours: Interval, published: PublishedValue) -> float:
    """Difference to a printed value in standard errors of the difference.

    The published standard error follows from the printed half width as a Student's t interval over the published number
    of trials; a printed half width of zero counts as zero.

    Returns
    -------
    float
        NaN where either standard error is unknown, ours is one of fewer than three seeds, or both are zero.
    """
    if ours.n < FEWEST:
        return math.nan
    printed = math.nan if published.half_width is None else published.half_width
    # Ours and theirs are independent, so their variances add up.
    error = math.hypot(ours.standard_error, _standard_error(printed, published.n_trials))
    if error > 0:
        return (ours.mean - published.mean) / error
    return math.nan


def p_above(values: Sequence[float], threshold: float = 0.0) -> float:
    """p-value of the one-sided t-test that the mean is above a threshold.

    Returns
    -------
    float
        1 for fewer than three values, which may agree by chance.  Values that do not vary decide by their side of the
        threshold: 0 above it, 1 else.
    """
    if len(values) < FEWEST:
        return 1.0
    # Equal values have no spread but rounding, and no t-value.
    excess = np.asarray(values, dtype=np.float64) - threshold
    mean = float(excess.mean())
    spread = float(excess.std(ddof=1))
    rounding = _ROUNDING * max(abs(threshold), float(np.abs(values).max()))
    if spread <= rounding:
        if mean > rounding:
            return 0.0
        return 1.0
    return float(stats.t.sf(math.sqrt(len(excess)) * mean / spread, len(excess) - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm's step-down method, in the order given."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    # Holm: the smallest p-value times n, the next times n - 1, and so on, never falling.
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted


def partial_conjunction(p_values: Sequence[float], n_true: int) -> float:
    r"""p-value of at least ``n_true`` of several statements being true.

    :math:`\min(1, (n - u + 1)\, p_{(u)})` with the u-th smallest of n p-values, however they depend on each other: with
    fewer than u true statements there are n - u + 1 false ones, and of any n - u + 1 p-values one is among the u
    smallest.  For u = n it is the largest p-value, the intersection-union test; for u = 1 it is Bonferroni's, and below
    a level just when some statement passes Holm's method at that level.
    """
    return min(1.0, (len(p_values) - n_true + 1) * sorted(p_values)[n_true - 1])


def _quantile(n: int) -> float:
    return float(stats.t.ppf((1 + _LEVEL) / 2, n - 1))


def _standard_error(half_width: float, n: int) -> float:
    if n > 1:
        return half_width / _quantile(n)
    return math.nan


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
