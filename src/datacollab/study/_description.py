"""A study's first table: counts of levels, and what columns are like, overall and by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..linalg import below_zero, largest_noise
from ._plan import (
    CERTAINTY,
    FARTHEST,
    FEWEST,
    RIDGE_MOVED,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    ResultTable,
    Statistic,
    StatisticResult,
    StudyTable,
    count_text,
    number_text,
)

COUNT_NOISE = 2.0
_ENTRY_MOVED = 1 + 1 / 4 + 1 / 16
"""How far adding a row moves the entries of numbers from -1/2 to 1/2, their sum and that of squares: squared.

Replacing one moves them no farther among all rows, and twice as far if it changes its group.
"""
_OUTER_MOVED = 2.0
"""How far replacing a row moves the counts of levels, and their squares around the party's means: squared, each.

Those squares, c - c^2 / n, change for two levels, by 1 at most for each.
"""
_SPREAD_MOVED = 2 + 5 / 16
"""How far replacing a row moves entries, their sum, that of squares, and that of squares around the mean: squared.

If the old and new values a and b are d apart, and m and m' the party's means, it moves these by 0, d, d (a + b) and
d (a + b - m - m').  As |a + b| <= 1 - d and |m + m'| <= 1, the squares add up to 2 at most.  A value in place of a
missing one moves them by 1, 1/2, 1/4 and 1 at most.
"""
_ALIKE = 0.15
"""Largest share of the variance between parties that different patients explain: about half a standard deviation."""
_OF_SHARE = 7 / 4
"""Noise in squares of numbers less those within parties, in units of the noise of each sum, at most."""
_VAGUE = 0.25
_QUARTILES = "Quartiles are interpolated in agreed parts of the range. An sd that noise decides is left out."
_MEAN, _MEDIAN = "mean (sd)", "median [q1, q3]"
_LEAST_NOISE = 0.4
"""In widths of a range.  With it, not even somebody who knows all other rows reads a number; means hardly suffer."""
_QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class CountsResult(StatisticResult):
    """Rows by level and by part of a range, with noise; and how much parties differ.

    Attributes
    ----------
    counts : mapping of str to mapping
        Rows of each level, by column of categories.
    bins : mapping of str to ndarray of shape (n_bins,)
        Rows in equal parts of the declared range, by column of numbers.
    missing : mapping of str to float
        Rows without an entry, by column.
    between : mapping
        Share of the variance that lies between parties, by column and level (None for a number): 0 if their means are
        equal, near 1 if one of them uses another unit; and the standard deviation of its noise.
    ranges : mapping of str to tuple of float
        Declared ranges of the columns of numbers.
    noise : float
        Standard deviation of the noise in each count.
    """

    counts: dict[str, dict[Any, float]]
    bins: dict[str, FloatArray]
    missing: dict[str, float]
    between: dict[tuple[str, Any], tuple[float, float]]
    ranges: dict[str, tuple[float, float]]
    noise: float

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels whose count is not above ten by twice the noise."""
        least = FEWEST + CERTAINTY * self.noise
        return tuple((name, level) for name, each in self.counts.items() for level, n in each.items() if n < least)

    @property
    def unlike(self) -> tuple[str, ...]:
        """Return the columns in which parties differ more than different patients are likely to explain.

        More than .15 of the variance lies between parties, and that is no noise.  docs/study.md says what this finds.
        """
        clearly = (name for (name, _), (share, noise) in self.between.items() if share - 3 * noise > _ALIKE)
        return tuple(dict.fromkeys(clearly))

    @property
    def size(self) -> tuple[float, float]:
        """Return the rows by the column with the fewest counts, and the standard deviation of its noise."""
        found = {name: [*each.values()] for name, each in self.counts.items()}
        found |= {name: each.tolist() for name, each in self.bins.items()}
        name, counts = min(found.items(), key=lambda each: len(each[1]))
        return sum(counts) + self.missing[name], self.noise * math.sqrt(len(counts) + 1)

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero by more than noise, if one is."""
        counts = [*self.missing.values(), *(n for each in self.counts.values() for n in each.values())]
        lowest = min([*counts, *(float(each.min()) for each in self.bins.values())])
        return "a count is far below zero" if lowest < -FARTHEST * self.noise else None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return what to do about columns that look as if parties coded them differently."""
        unit, code = ("unit", "mean"), ("code", "rows of each level")
        each = ((name, *(unit if name in self.bins else code)) for name in self.unlike)
        return tuple(
            f"{name!r}: parties differ more than different patients explain. One may use another {what}: have each "
            f"compare its own {figure} with what the project says. If patients do differ as much, keep the column."
            for name, what, figure in each
        )

    def table(self) -> ResultTable:
        """Return the rows of each level and column, and how much parties differ."""
        rows, bars = list[tuple[str, ...]](), {}
        for name, missing in self.missing.items():
            if name in self.bins:
                low, high = self.ranges[name]
                bars[len(rows), 1] = self.bins[name]
                levels = {f"{low:g} to {high:g}": float(self.bins[name].sum())}
            else:
                levels = self.counts[name]
            for place, (level, n) in enumerate(levels.items()):
                share, noise = self.between[name, None if name in self.bins else level]
                apart = f"{share:.2f}" if noise < _VAGUE else ""
                gaps = count_text(missing) if not place else ""
                rows.append((name, str(level), count_text(n), gaps, apart))
        note = (
            f"{_noisy(self.noise)} The last figure is the share of the variance that lies between parties: 0 if they "
            "are alike, near 1 if one uses another unit; empty if noise decides it."
        )
        return ResultTable(("column", "level or range", "rows", "missing", "between"), rows, note, bars, self.noise)


@dataclass(frozen=True)
class Counts(Statistic):
    """The rows of each level and part of a range, and how much parties differ: what goes first in a study.

    Each party adds, for each level and number, the squares of its entries around its own mean.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
    noise : float
        Of the sums of numbers: a row is hidden as well as by this noise in `RidgeSums`.
    count_noise : float, default=2
        Standard deviation of the noise in each count of the total, in rows.
    n_bins : int, default=10
        Equal parts of a declared range, whose rows are counted.
    """

    columns: Sequence[NumberColumn | CategoryColumn]
    noise: float = USUAL_NOISE
    count_noise: float = COUNT_NOISE
    n_bins: int = 10

    title: ClassVar[str] = "counts"
    tells: ClassVar[str] = "rows of each level and part of a range, rows missing, and how much parties differ"

    @property
    def _sizes(self) -> list[tuple[int, int]]:
        """Return how many counts and sums each column has: rows missing, and squares within parties, among them."""
        return [
            (1 + self.n_bins, 4) if isinstance(column, NumberColumn) else (1 + 2 * len(column.levels), 0)
            for column in self.columns
        ]

    @property
    def _noise_of_sums(self) -> float:
        return max(self.noise / RIDGE_MOVED * math.sqrt(_SPREAD_MOVED * max(1, _n_numbers(self.columns))), _LEAST_NOISE)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        parts = ([self.count_noise] * counts + [self._noise_of_sums] * sums for counts, sums in self._sizes)
        return np.concatenate([*map(np.array, parts)])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        p = _n_numbers(self.columns)
        counts = _OUTER_MOVED * p + 2 * _OUTER_MOVED * (len(self.columns) - p)
        return math.sqrt(counts / self.count_noise**2 + _SPREAD_MOVED * p / self._noise_of_sums**2)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return rows missing, counts, entries, and sums of numbers and of their squares, over some rows of a party."""
        found = []
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                levels = column.indicators(table)
                found.append(np.column_stack([~levels.any(axis=1), levels]).sum(axis=0, dtype=np.float64))
            else:
                there, in_bin, z = _in_bins(column, table, self.n_bins)
                found.append(np.column_stack([~there, in_bin, there, z, z**2]).sum(axis=0, dtype=np.float64))
        return np.concatenate(found)

    def finish(self, sums: FloatArray) -> FloatArray:
        """Return what a party masks: its sums, and the squares of each level and number around the party's mean."""
        found, start = list[FloatArray](), 0
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                own = sums[start : start + 1 + len(column.levels)]
                within = own[1:] * (1 - own[1:] / max(own[1:].sum(), 1.0))
            else:
                own = sums[start : start + 4 + self.n_bins]
                within = own[-1:] - own[-2] ** 2 / max(own[-3], 1.0)
            found += [own, within]
            start += len(own)
        return np.concatenate(found)

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> CountsResult:
        """Return the counts, which levels may be rare, and how much parties differ."""
        found = CountsResult({}, {}, {}, {}, {}, self.count_noise * noise)
        ends = np.cumsum([sum(sizes) for sizes in self._sizes])
        for column, own in zip(self.columns, np.split(total, ends[:-1]), strict=True):
            name, found.missing[column.name] = column.name, float(own[0])
            if isinstance(column, NumberColumn):
                found.bins[name], found.ranges[name] = own[1:-4], (column.low, column.high)
                n, first, second, within = own[-4:].tolist()
                noise_apart = _OF_SHARE * self._noise_of_sums * noise
                found.between[name, None] = _between(second - first**2 / max(n, 1.0), within, noise_apart)
                continue
            counts, spreads = np.split(own[1:], 2)
            n = max(float(counts.sum()), 1.0)
            found.counts[name] = dict(zip(column.levels, counts.tolist(), strict=True))
            for level, count, within in zip(column.levels, counts.tolist(), spreads.tolist(), strict=True):
                p = min(max(count / n, 0.0), 1.0)
                noise_apart = found.noise * math.sqrt(1 + (1 - p) ** 4 + (len(column.levels) - 1) * p**4)
                found.between[name, level] = _between(count * (1 - count / n), within, noise_apart)
        return found


def _between(square: float, within: float, noise: float) -> tuple[float, float]:
    """Return the share of the squares around the mean that is not within parties, and its noise."""
    whole = max(square, noise, 1e-12)
    return min(max((square - within) / whole, 0.0), 1.0), noise / whole


def _n_numbers(columns: Sequence[NumberColumn | CategoryColumn]) -> int:
    return sum(isinstance(column, NumberColumn) for column in columns)


def _in_bins(
    column: NumberColumn, table: StudyTable, n_bins: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], FloatArray]:
    """Return which entries are there, in which part of the range each is, and the scaled entries, 0 if missing."""
    z = column.scaled(table)
    there = ~np.isnan(z)
    z = np.where(there, z, 0.0)
    bins = np.minimum(((z + 0.5) * n_bins).astype(int), n_bins - 1)
    return there, (bins[:, None] == np.arange(n_bins)) & there[:, None], z


@dataclass(frozen=True)
class ColumnDescription:
    """What one column is like in one group.

    Attributes
    ----------
    column : str
    group : object
        Level of the column that groups rows; None for all rows.
    level : object
        Of a category; None for a number.
    n : float
        Rows with an entry, or of the level.
    missing : float
        Rows without an entry.
    share : float
        Rows of the level, as a part of those with an entry; NaN for a number.
    mean, deviation : float
        Of a number, in its own unit; the standard deviation has n - 1 in its denominator, and is NaN if noise decides
        it.  NaN for a category.
    quarters : tuple of float
        First quartile, median and third quartile, which are interpolated within agreed bins.
    noise_of_n, noise_of_mean : float
        Standard deviations of the noise in `n` and in `mean`.
    bins : ndarray of shape (n_bins,) or None
        Rows in equal parts of the declared range of a number.
    extent : str
        That range in words.
    is_beyond : bool
        Whether no numbers in that range have these sums, whatever the noise is.
    """

    column: str
    group: Any
    level: Any
    n: float
    missing: float
    share: float = math.nan
    mean: float = math.nan
    deviation: float = math.nan
    quarters: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    noise_of_n: float = 0.0
    noise_of_mean: float = math.nan
    bins: FloatArray | None = None
    extent: str = ""
    is_beyond: bool = False


@dataclass(frozen=True)
class DescriptionResult(StatisticResult):
    """All rows of the table, by column and group.

    Attributes
    ----------
    n_rows : mapping
        Rows of each group, and of all under None.
    entries : tuple of ColumnDescription
    count_noise : float
        Standard deviation of the noise in counts of rows, of levels and of parts of a range.
    by : str or None
        The column that groups rows.
    """

    n_rows: dict[Any, float]
    entries: tuple[ColumnDescription, ...]
    count_noise: float
    by: str | None = None

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.n_rows[None], self.count_noise

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels whose count is not above ten by twice the noise."""
        counts = {(self.by, group): n for group, n in self.n_rows.items() if group is not None}
        counts |= {
            (each.column, each.level): each.n for each in self.entries if each.group is None and each.bins is None
        }
        least = FEWEST + CERTAINTY * self.count_noise
        return tuple((name, level) for (name, level), n in counts.items() if name is not None and n < least)

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero, or sums beyond a range, by more than noise, if so."""
        least = min(min(each.n, each.missing) for each in self.entries)
        if least < -2 * FARTHEST * self.count_noise * len(self.entries):
            return "a count is far below zero"
        beyond = [each.column for each in self.entries if each.is_beyond]
        return f"the sums of {beyond[0]!r} are beyond its declared range" if beyond else None

    def table(self) -> ResultTable:
        """Return a line for each number, and for each level, in each group."""
        rows, bars = list[tuple[str, ...]](), {}
        for each in self.entries:
            if each.bins is not None:
                bars[len(rows), 2] = each.bins
            group, level = ("all" if each.group is None else str(each.group)), each.level
            figures = map(number_text, (each.share, each.mean, each.noise_of_mean, each.deviation, *each.quarters))
            counts = (count_text(each.n), count_text(each.missing))
            rows.append((each.column, group, "" if level is None else str(level), *counts, *figures))
        heads = ("column", "group", "level", "rows", "missing", "share", "mean", "noise", "sd", "q1", "median", "q3")
        note = f"{_noisy(self.count_noise)} {_QUARTILES} The noise of a mean is beside it."
        return ResultTable(heads, rows, note, bars, self.count_noise)

    def printed(self) -> ResultTable:
        """Return a column of figures for each group: means, quartiles and rows of each level."""
        groups = (None, *(group for group in self.n_rows if group is not None))
        gaps = {each.column for each in self.entries if each.group is None and each.missing > 4 * self.count_noise}
        lines: dict[tuple[str, str], dict[Any, ColumnDescription]] = {}
        for each in self.entries:
            labels = (str(each.level),) if each.bins is None else (_MEAN, _MEDIAN, f"in {each.extent}")
            for label in (*labels, *(["missing"] if each.column in gaps else [])):
                lines.setdefault((each.column, label), {})[each.group] = each
        columns = [*dict.fromkeys(each.column for each in self.entries)]
        names = sorted(lines, key=lambda name: (columns.index(name[0]), name[1] == "missing"))
        bars: dict[tuple[int, int], Any] = {
            (row, place + 2): lines[name][group].bins
            for row, name in enumerate(names, start=1)
            for place, group in enumerate(groups)
            if name[1].startswith("in ")
        }
        rows = [("rows", "", *(count_text(self.n_rows[group]) for group in groups))]
        rows += [
            (*name, *(_cell(lines[name][group], name[1]) if group in lines[name] else "" for group in groups))
            for name in names
        ]
        heads = ("column", "", *("all" if group is None else str(group) for group in groups))
        return ResultTable(heads, rows, f"{_noisy(self.count_noise)} {_QUARTILES}", bars, self.count_noise)


def _cell(found: ColumnDescription, label: str) -> str:
    """Return what an article prints of a column in one group."""
    if label == "missing":
        return count_text(found.missing)
    if label == _MEAN:
        return f"{number_text(found.mean)} ({number_text(found.deviation) or '–'})"
    if label == _MEDIAN:
        low, median, high = map(number_text, found.quarters)
        return f"{median} [{low}, {high}]"
    return count_text(found.n) if found.bins is not None else f"{count_text(found.n)} ({100 * found.share:.1f} %)"


def _noisy(noise: float) -> str:
    return f"Counts have noise with a standard deviation of {noise:.1f} rows."


@dataclass(frozen=True)
class Description(Statistic):
    """Counts, means, standard deviations, quartiles and missing entries, overall and by group.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
    by : CategoryColumn, optional
        Groups rows; rows without an entry there count overall alone.
    noise : float
        Of the sums of numbers: a row is hidden at least as well as by this noise in `RidgeSums`, or by 0.7 times as
        much if there are groups.
    count_noise : float, default=2
        Standard deviation of the noise in each count of the total, in rows.
    n_bins : int, default=20
        Equal parts of a declared range, whose rows are counted for the quartiles.
    """

    columns: Sequence[NumberColumn | CategoryColumn]
    by: CategoryColumn | None = None
    noise: float = USUAL_NOISE
    count_noise: float = COUNT_NOISE
    n_bins: int = 20

    title: ClassVar[str] = "description"
    tells: ClassVar[str] = "means, standard deviations, quartiles and rows of each level, in all and in each group"

    @property
    def _sizes(self) -> list[tuple[int, int]]:
        """Return how many counts and sums each column has, in one group."""
        return [
            (self.n_bins, 3) if isinstance(column, NumberColumn) else (len(column.levels), 0) for column in self.columns
        ]

    @property
    def _groups(self) -> tuple[Any, ...]:
        return (None,) if self.by is None else (*self.by.levels, None)

    @property
    def _noise_of_sums(self) -> float:
        """Return the noise of each sum: a row is in the more of them, the more columns and groups there are."""
        moved = max(1.0, self._copies / 2) * _ENTRY_MOVED * max(1, _n_numbers(self.columns))
        return max(self.noise / RIDGE_MOVED * math.sqrt(moved), _LEAST_NOISE)

    @property
    def _copies(self) -> int:
        """Return in how many groups replacing a row changes sums, if all rows count as one."""
        return 1 if self.by is None else 3

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        one = [self.count_noise]
        for counts, sums in self._sizes:
            one += [self.count_noise] * counts + [self._noise_of_sums] * sums
        return np.tile(one, len(self._groups))

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        p = _n_numbers(self.columns)
        counts = (1 if self.by is None else 2) * _OUTER_MOVED * (1 + len(self.columns))
        return math.sqrt(counts / self.count_noise**2 + self._copies * _ENTRY_MOVED * p / self._noise_of_sums**2)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the sums over some rows of a party, shape (n_numbers,)."""
        found = []
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                found.append(column.indicators(table).astype(np.float64))
                continue
            there, in_bin, z = _in_bins(column, table, self.n_bins)
            found.append(np.column_stack([in_bin, there, z, z**2]).astype(np.float64))
        n_rows = len(found[0])
        rows = np.column_stack([np.ones(n_rows), *found])
        if self.by is None:
            return np.asarray(rows.sum(axis=0))
        groups = np.column_stack([self.by.indicators(table), np.ones(n_rows)])
        return np.asarray((groups.T @ rows).ravel())

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> DescriptionResult:
        """Return the table."""
        by_group = total.reshape(len(self._groups), -1)
        n_rows = dict(zip(self._groups, by_group[:, 0].tolist(), strict=True))
        ends = 1 + np.cumsum([sum(sizes) for sizes in self._sizes])
        entries: list[ColumnDescription] = []
        for column, end, sizes in zip(self.columns, ends, self._sizes, strict=True):
            for group, numbers in zip(self._groups, by_group, strict=True):
                if column == self.by and group is not None:
                    continue  # A group has one level of it.
                own = numbers[end - sum(sizes) : end]
                if isinstance(column, CategoryColumn):
                    entries += self._levels(column, group, own, n_rows[group], noise)
                else:
                    entries.append(self._number(column, group, own, n_rows[group], noise))
        by = None if self.by is None else self.by.name
        return DescriptionResult(n_rows, tuple(entries), self.count_noise * noise, by)

    def _levels(
        self, column: CategoryColumn, group: Any, own: FloatArray, n_rows: float, noise: float
    ) -> Iterator[ColumnDescription]:
        n = max(float(own.sum()), 1.0)
        for level, count in zip(column.levels, own.tolist(), strict=True):
            yield ColumnDescription(
                column=column.name,
                group=group,
                level=level,
                n=count,
                missing=n_rows - float(own.sum()),
                share=min(max(count / n, 0.0), 1.0),
                noise_of_n=self.count_noise * noise,
            )

    def _number(
        self, column: NumberColumn, group: Any, own: FloatArray, n_rows: float, noise: float
    ) -> ColumnDescription:
        bins, (n, first, second) = np.maximum(own[:-3], 0.0), own[-3:].tolist()
        entries = max(n, 1.0)
        mean = first / entries
        square = second - entries * mean**2
        of_sums = self._noise_of_sums * noise
        least = 3 * math.hypot(1, 2 * mean, mean**2) * of_sums
        # Rows, entries and their squares are sums of products of [1, z], with z from -1/2 to 1/2.
        is_beyond = below_zero(np.array([[n, first], [first, second]]), math.sqrt(2) * of_sums) is not None
        is_beyond |= second > n / 4 + largest_noise(1, 2 * of_sums)
        below = np.r_[0.0, np.cumsum(bins)] / max(float(bins.sum()), 1.0)
        edges = np.linspace(column.low, column.high, self.n_bins + 1)
        low, median, high = (float(np.interp(part, below, edges)) for part in _QUARTERS)
        return ColumnDescription(
            column=column.name,
            group=group,
            level=None,
            n=n,
            missing=n_rows - n,
            mean=float(column.low + (mean + 0.5) * column.width),
            deviation=math.sqrt(square / (n - 1)) * column.width if n > 1 and square > least else math.nan,
            quarters=(low, median, high),
            noise_of_n=of_sums,
            noise_of_mean=math.hypot(1, mean) * of_sums / entries * column.width,
            bins=own[:-3],
            extent=f"{column.low:g} to {column.high:g}",
            is_beyond=is_beyond,
        )
