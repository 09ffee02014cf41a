"""A study's first table: counts of levels, and descriptions of columns, overall and by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..linalg import below_zero, largest_noise
from ..sums._statistic import COUNT_NOISE, RIDGE_MOVED, ResultTable, Statistic, StatisticResult, StudyTable, entries_of
from ._cells import Cells, noisy
from ._columns import (
    CERTAINTY,
    FARTHEST,
    FEWEST,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    count_text,
    group_name,
    number_text,
)

# How far replacing a row moves the sum of numbers from -1/2 to 1/2, and that of their squares, of one column:
# squared.
#
# If the old and new values a and b are d apart, these move by d and d (a + b), and |a + b| <= 1 - d. In another group
# than before, or if missing, each value moves them by 1/2 and 1/4 at most.
_SUMS_MOVED = 1.0
# How far replacing a row moves the counts of one column's cells, or their squares around the party's means: squared.
#
# It leaves one cell and enters another. Squares, c - c^2 / n, change for two levels, by 1 at most for each.
_OUTER_MOVED = 2.0
# How far replacing a row moves the sum of numbers, that of squares, and that of squares around the mean: squared.
#
# If the old and new values a and b are d apart, and m and m' the party's means, it moves these by d, d (a + b) and d
# (a + b - m - m'). As |a + b| <= 1 - d and |m + m'| <= 1, the squares add up to 2 at most. A value in place of a
# missing one moves them by 1/2, 1/4 and 1 at most.
_SPREAD_MOVED = 2.0
_OF_LEVELS = math.sqrt(1.5)
# Noise in counts of levels, and in their squares at least, in units of that of other counts.
#
# A rare level's squares around the mean are nearly its count. What both tell of it, one over their squared noise,
# adds up to about that of one other count.
_OF_SQUARES = 2.0
# The most that all levels' squares tell of the number of rows, in units of what one count tells.
_TOLD_OF_ROWS = 0.4
# Largest share of the variance between parties that different patients explain: about half a standard deviation.
_ALIKE = 0.15
_VAGUE = 0.25
_QUARTILES = "Quartiles are interpolated in agreed parts of the range. An sd that noise decides is left out."
# Sums of a number: of its entries, of their squares, and of squares around the party's mean.
_N_SUMS = 3
_MEAN = "mean (sd)"
_MEDIAN = "median [q1, q3]"
_ROUNDING = 1e-6
# In widths of a range. With it, not even somebody who knows all other rows reads a number; means hardly suffer.
_LEAST_NOISE = 0.4
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
    n_rows, noise_of_rows : float
        All rows, and the standard deviation of their noise.
    noise : float
        Standard deviation of the noise in parts of a range, except the middle.
    noise_of_levels : mapping of str to float
        Standard deviation of the noise in the rows of each level, by column of categories.
    least_noise : float
        Standard deviation of the noise with which a count can be read from all counts of the message, at least.
    """

    counts: dict[str, dict[Any, float]]
    bins: dict[str, FloatArray]
    missing: dict[str, float]
    between: dict[tuple[str, Any], tuple[float, float]]
    ranges: dict[str, tuple[float, float]]
    n_rows: float
    noise_of_rows: float
    noise: float
    noise_of_levels: dict[str, float]
    least_noise: float

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels whose count is not above ten by twice the noise."""
        least = {name: FEWEST + CERTAINTY * noise for name, noise in self.noise_of_levels.items()}
        return tuple((name, one) for name, each in self.counts.items() for one, n in each.items() if n < least[name])

    @property
    def unlike(self) -> tuple[str, ...]:
        """Return the columns in which parties differ more than different patients are likely to explain.

        More than .15 of the variance lies between parties, and that is no noise; see docs/study.md.
        """
        clearly = (name for (name, _), (share, noise) in self.between.items() if share - 3 * noise > _ALIKE)
        return tuple(dict.fromkeys(clearly))

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.n_rows, self.noise_of_rows

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero by more than noise, if one is."""
        counts = [*self.missing.values(), *(n for each in self.counts.values() for n in each.values())]
        lowest = min([*counts, *(float(each.min()) for each in self.bins.values())])
        most = max([self.noise_of_rows, *self.noise_of_levels.values()])
        # Middle parts of a range, and rows missing, have up to 1.5 times as much noise as that.
        if lowest < -1.5 * FARTHEST * most - _ROUNDING:
            return "a count is far below zero"
        return None

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return advice on columns that look as if parties coded them differently."""
        sentences = []
        for name in self.unlike:
            differs, figure = ("unit", "mean") if name in self.bins else ("code", "rows of each level")
            sentences.append(
                f"{name!r}: parties differ more than different patients explain. One may use another {differs}: have "
                f"each compare its own {figure} with what the project says. If patients do differ as much, keep the "
                "column."
            )
        return tuple(sentences)

    def table(self) -> ResultTable:
        """Return the rows of each level and column, and how much parties differ."""
        rows = list[tuple[str, ...]]()
        bars = dict[tuple[int, int], FloatArray]()
        for name, missing in self.missing.items():
            # Rows missing stand beside the first level alone.
            gaps = count_text(missing)
            if name in self.bins:
                low, high = self.ranges[name]
                bars[len(rows), 1] = self.bins[name]
                n = float(self.bins[name].sum())
                rows.append((name, f"{low:g} to {high:g}", count_text(n), gaps, self._apart(name, None)))
                continue
            for level, n in self.counts[name].items():
                rows.append((name, str(level), count_text(n), gaps, self._apart(name, level)))
                gaps = ""
        note = (
            f"{noisy(self.least_noise)} The last figure is the share of the variance that lies between parties: 0 if "
            "they are alike, near 1 if one uses another unit; empty for a first level, or if noise decides it."
        )
        return ResultTable(("column", "level or range", "rows", "missing", "between"), rows, note, bars, self.noise)

    def _apart(self, name: str, level: Any) -> str:
        """Return the share of the variance that lies between parties; empty for a first level, or if noise decides."""
        share, noise = self.between.get((name, level), (math.nan, math.inf))
        return f"{share:.2f}" if noise < _VAGUE else ""


@dataclass(frozen=True)
class Counts(Statistic):
    """The rows of each level and part of a range, and how much parties differ: the first message of a study.

    Each party adds, for each level but the first and each number, the squares of its entries around its own mean.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
    noise : float
        Of the sums of numbers: a row is hidden as well as by this noise in `RidgeSums`.
    count_noise : float, default=2
        Standard deviation of the noise in counts of the total, in rows, at least.
    n_bins : int, default=10
        Equal parts of a declared range, whose rows are counted.
    """

    columns: Sequence[NumberColumn | CategoryColumn]
    noise: float = USUAL_NOISE
    count_noise: float = COUNT_NOISE
    n_bins: int = 10

    title: ClassVar[str] = "counts"
    tells: ClassVar[str] = "rows of each level and part of a range, rows missing, and how much parties differ"
    # A new row of a level is counted in all and in the level.
    own_copies: ClassVar[float] = 1.3

    @property
    def _noises(self) -> tuple[float, float, float]:
        """Return the noise of counts, of squares of levels, and of sums of numbers."""
        of_counts = self.count_noise * math.sqrt(self.copies)
        told = math.sqrt(sum(map(_rows_in_squares, self.columns)) / _TOLD_OF_ROWS)
        moved = math.sqrt(_SPREAD_MOVED * max(1, _n_numbers(self.columns)))
        of_sums = max(self.noise / RIDGE_MOVED * moved, _LEAST_NOISE)
        return of_counts, max(_OF_SQUARES, told) * of_counts, of_sums

    def _noise_of_rows(self, *columns: NumberColumn | CategoryColumn) -> float:
        """Return the noise in rows that squares of these columns tell, too: together they tell as much as one count."""
        of_counts, of_squares, _ = self._noises
        return 1 / math.sqrt(1 / of_counts**2 - sum(map(_rows_in_squares, columns)) / of_squares**2)

    def _noise_of_cells(self, column: NumberColumn | CategoryColumn, cells: Cells) -> float:
        """Return the noise in each number that is sent of a column's counts."""
        noise = cells.raised * self._noises[0]
        return noise if isinstance(column, NumberColumn) else noise * _OF_LEVELS

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        _, of_squares, of_sums = self._noises
        parts = [self._noise_of_rows(*self.columns)]
        for column in self.columns:
            cells = _cells_of(column, self.n_bins)
            n_sent = len(cells.sent)
            parts += [self._noise_of_rows(column), *[self._noise_of_cells(column, cells)] * n_sent]
            parts += [of_sums] * _N_SUMS if isinstance(column, NumberColumn) else [of_squares] * n_sent
        return np.array(parts)

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        _, of_squares, of_sums = self._noises
        moved = _SPREAD_MOVED * _n_numbers(self.columns) / of_sums**2
        for column in self.columns:
            cells = _cells_of(column, self.n_bins)
            moved += cells.move_by_row(self._noise_of_cells(column, cells), self._noise_of_rows(column))
            if isinstance(column, CategoryColumn):
                moved += min(_OUTER_MOVED, len(cells.sent)) / of_squares**2
        return math.sqrt(moved)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return rows, and for each column rows missing, of cells, and sums of numbers and of their squares."""
        found = list[NDArray[Any]]()
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                levels = column.indicators(table)
                found.append(np.column_stack([~levels.any(axis=1), levels]).sum(axis=0, dtype=np.float64))
            else:
                there, in_bin, z = _in_bins(column, table, self.n_bins)
                found.append(np.column_stack([~there, in_bin, z, z**2]).sum(axis=0, dtype=np.float64))
        return np.concatenate([[float(len(entries_of(table, self.columns[0].name)))], *found])

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return the numbers that a party masks: sums, and squares of each level and number around the party's mean."""
        found = [sums[:1]]
        start = 1
        for column in self.columns:
            cells = _cells_of(column, self.n_bins)
            own = sums[start : start + 1 + len(cells.alike) + 2 * isinstance(column, NumberColumn)]
            counts = own[1 : 1 + len(cells.alike)]
            n = max(float(counts.sum()), 1.0)
            if isinstance(column, CategoryColumn):
                squares = (counts * (1 - counts / n))[1:]
            else:
                squares = np.array([own[-2], own[-1], own[-1] - own[-2] ** 2 / n])
            found += [own[:1], cells.sent @ counts, squares]
            start += len(own)
        return np.concatenate(found)

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> CountsResult:
        """Return the counts, which levels may be rare, and how much parties differ."""
        of_counts, of_squares, of_sums = (noise * each for each in self._noises)
        of_rows = self._noise_of_rows(*self.columns) * noise
        found = CountsResult(
            counts={},
            bins={},
            missing={},
            between={},
            ranges={},
            n_rows=float(total[0]),
            noise_of_rows=of_rows,
            noise=of_counts,
            noise_of_levels={},
            least_noise=self.count_noise * noise,
        )
        start = 1
        for column in self.columns:
            name = column.name
            cells = _cells_of(column, self.n_bins)
            n_sent = len(cells.sent)
            n_squares = _N_SUMS if isinstance(column, NumberColumn) else n_sent
            missing = float(total[start])
            sent, squares = np.split(total[start + 1 : start + 1 + n_sent + n_squares], [n_sent])
            start += 1 + n_sent + n_squares
            found.missing[name] = missing
            of_entries = math.hypot(of_rows, self._noise_of_rows(column) * noise)
            counts = cells.rows(sent, found.n_rows - missing)
            n = max(found.n_rows - missing, 1.0)
            if isinstance(column, NumberColumn):
                found.bins[name] = counts
                found.ranges[name] = (column.low, column.high)
                first, second, within = squares.tolist()
                mean = min(max(first / n, -0.5), 0.5)
                noise_apart = math.hypot(of_sums * math.sqrt(2 + 4 * mean**2), mean**2 * of_entries)
                found.between[name, None] = _between(second - first**2 / n, within, noise_apart)
                continue
            found.counts[name] = dict(zip(column.levels, counts.tolist(), strict=True))
            of_level = float(cells.noise(self._noise_of_cells(column, cells) * noise, of_entries)[0])
            found.noise_of_levels[name] = of_level
            for level, count, within in zip(column.levels[1:], counts[1:].tolist(), squares.tolist(), strict=True):
                p = min(max(count / n, 0.0), 1.0)
                noise_apart = math.hypot(of_squares, abs(1 - 2 * p) * of_level + p**2 * of_entries)
                found.between[name, level] = _between(count * (1 - count / n), within, noise_apart)
        return found


def _between(square: float, within: float, noise: float) -> tuple[float, float]:
    """Return the share of the squares around the mean that is not within parties, and its noise."""
    whole = max(square, noise, 1e-12)
    return min(max((square - within) / whole, 0.0), 1.0), noise / whole


def _cells_of(column: NumberColumn | CategoryColumn, n_bins: int) -> Cells:
    if isinstance(column, NumberColumn):
        return Cells.of_parts(n_bins)
    return Cells.of_levels(len(column.levels))


def _rows_in_squares(column: NumberColumn | CategoryColumn) -> float:
    """Return how far a new row, spread evenly over the levels, moves their squares around the mean at most: squared.

    By 1 / n for each of n levels, all but the first, if that is rare; if a level has nearly all rows, by 1 - 1 / n.
    """
    if isinstance(column, NumberColumn):
        return 0.0
    return 1 - (len(column.levels) + 1) / len(column.levels) ** 2


def _n_numbers(columns: Sequence[NumberColumn | CategoryColumn]) -> int:
    return sum(isinstance(column, NumberColumn) for column in columns)


def _in_bins(
    column: NumberColumn, table: StudyTable, n_bins: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], FloatArray]:
    """Return which entries are there, in which part of the range each is, and the scaled entries, 0 if missing."""
    z = column.scale(table)
    there = ~np.isnan(z)
    z = np.where(there, z, 0.0)
    bins = np.minimum(((z + 0.5) * n_bins).astype(int), n_bins - 1)
    return there, (bins[:, None] == np.arange(n_bins)) & there[:, None], z


@dataclass(frozen=True)
class ColumnDescription:
    """The description of one column in one group.

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
    count_noise, noise_of_all : float
        Standard deviations of the noise in the rows of a group, and of all groups.
    least_noise : float
        Standard deviation of the noise with which a count can be read from all counts of the message, at least.
    by : str or None
        The column that groups rows.
    """

    n_rows: dict[Any, float]
    entries: tuple[ColumnDescription, ...]
    count_noise: float
    noise_of_all: float
    least_noise: float
    by: str | None = None

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.n_rows[None], self.noise_of_all

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels whose count is not above ten by twice the noise."""
        groups = [(self.by, group, n, self.count_noise) for group, n in self.n_rows.items() if self.by is not None]
        groups += [
            (each.column, each.level, each.n, each.noise_of_n)
            for each in self.entries
            if each.group is None and each.bins is None and each.column != self.by
        ]
        return tuple(
            (name, one) for name, one, n, noise in groups if n < FEWEST + CERTAINTY * noise and one is not None
        )

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero, or sums beyond a range, by more than noise, if so."""
        # Rows missing have no more noise than rows of a level or rows with an entry.
        least = min(min(each.n, each.missing) + FARTHEST * each.noise_of_n for each in self.entries)
        if least < -_ROUNDING:
            return "a count is far below zero"
        beyond = [each.column for each in self.entries if each.is_beyond]
        if beyond:
            return f"the sums of {beyond[0]!r} are beyond its declared range"
        return None

    def table(self) -> ResultTable:
        """Return a line for each number, and for each level, in each group."""
        rows = list[tuple[str, ...]]()
        bars = dict[tuple[int, int], FloatArray]()
        for each in self.entries:
            level = str(each.level)
            if each.bins is not None:
                bars[len(rows), 2] = each.bins
                level = ""
            figures = map(number_text, (each.share, each.mean, each.noise_of_mean, each.deviation, *each.quarters))
            counts = (count_text(each.n), count_text(each.missing))
            rows.append((each.column, group_name(each.group), level, *counts, *figures))
        heads = ("column", "group", "level", "rows", "missing", "share", "mean", "noise", "sd", "q1", "median", "q3")
        note = f"{noisy(self.least_noise)} {_QUARTILES} The noise of a mean is beside it."
        return ResultTable(heads, rows, note, bars, self.noise_of_all)

    def article_table(self) -> ResultTable:
        """Return a column of figures for each group: means, quartiles and rows of each level."""
        groups = (None, *(group for group in self.n_rows if group is not None))
        gaps = {each.column for each in self.entries if each.group is None and each.missing > 4 * self.noise_of_all}
        lines: dict[tuple[str, str], dict[Any, ColumnDescription]] = {}
        for each in self.entries:
            labels = [str(each.level)]
            if each.bins is not None:
                labels = [_MEAN, _MEDIAN, f"in {each.extent}"]
            if each.column in gaps:
                labels.append("missing")
            for label in labels:
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
        rows += [(*name, *(_cell(lines[name].get(group), name[1]) for group in groups)) for name in names]
        heads = ("column", "", *map(group_name, groups))
        return ResultTable(heads, rows, f"{noisy(self.least_noise)} {_QUARTILES}", bars, self.noise_of_all)


def _cell(description: ColumnDescription | None, label: str) -> str:
    """Return the text in an article of a column in one group; empty if it is not described there."""
    if description is None:
        return ""
    if label == "missing":
        return count_text(description.missing)
    if label == _MEAN:
        return f"{number_text(description.mean)} ({number_text(description.deviation) or '–'})"
    if label == _MEDIAN:
        low, median, high = map(number_text, description.quarters)
        return f"{median} [{low}, {high}]"
    if description.bins is not None:
        return count_text(description.n)
    return f"{count_text(description.n)} ({100 * description.share:.1f} %)"


@dataclass(frozen=True)
class Description(Statistic):
    """Counts, means, standard deviations, quartiles and missing entries, overall and by group.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
    by : CategoryColumn, optional
        Groups rows; rows without an entry there count overall alone.  All rows are the sum of groups, and have the
        noise of all of these.
    noise : float
        Of the sums of numbers: a row is hidden at least as well as by this noise in `RidgeSums`.
    count_noise : float, default=2
        Standard deviation of the noise in counts of the total, in rows, at least.
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
    def _grouped(self) -> list[NumberColumn | CategoryColumn]:
        """Return the columns that are described in each group, which has one level of the column that groups rows."""
        return [column for column in self.columns if column != self.by]

    @property
    def _n_groups(self) -> int:
        """Return how many groups rows are in; those without an entry are one."""
        return 1 if self.by is None else len(self.by.levels) + 1

    @property
    def _noises(self) -> tuple[float, float]:
        """Return the noise of each count, and of each sum: the more columns, the more sums a row is in."""
        of_sums = self.noise / RIDGE_MOVED * math.sqrt(_SUMS_MOVED * max(1, _n_numbers(self.columns)))
        return self.count_noise * math.sqrt(self.copies), max(of_sums, _LEAST_NOISE)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        of_counts, of_sums = self._noises
        one = [of_counts]
        for column in self._grouped:
            cells = _cells_of(column, self.n_bins)
            one += [of_counts, *[cells.raised * of_counts] * len(cells.sent)]
            if isinstance(column, NumberColumn):
                one += [of_sums, of_sums]
        return np.tile(one, self._n_groups)

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        of_counts, of_sums = self._noises
        counts = _OUTER_MOVED * (len(self._grouped) + (self.by is not None))
        return math.sqrt(counts / of_counts**2 + _SUMS_MOVED * _n_numbers(self.columns) / of_sums**2)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the sums over some rows of a party, shape (n_numbers,)."""
        n_rows = len(entries_of(table, self.columns[0].name))
        blocks: list[NDArray[Any]] = [np.ones((n_rows, 1))]
        for column in self._grouped:
            cells = _cells_of(column, self.n_bins)
            if isinstance(column, CategoryColumn):
                levels = column.indicators(table)
                blocks.append(np.column_stack([~levels.any(axis=1), levels @ cells.sent.T]))
            else:
                there, in_bin, z = _in_bins(column, table, self.n_bins)
                blocks.append(np.column_stack([~there, in_bin @ cells.sent.T, z, z**2]))
        groups = np.ones((n_rows, 1))
        if self.by is not None:
            levels = self.by.indicators(table)
            groups = np.column_stack([levels, ~levels.any(axis=1)]).astype(np.float64)
        return np.asarray((groups.T @ np.hstack(blocks)).ravel())

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> DescriptionResult:
        """Return the table."""
        by_group = total.reshape(self._n_groups, -1)
        groups: dict[Any, tuple[FloatArray, float]] = {}
        if self.by is not None:
            # The last group has rows without an entry, and is shown in all rows alone.
            groups = {level: (own, noise) for level, own in zip(self.by.levels, by_group[:-1], strict=True)}
        groups[None] = by_group.sum(axis=0), noise * math.sqrt(self._n_groups)
        entries = list[ColumnDescription]()
        start = 1
        of_counts = self._noises[0] * noise
        for column in self.columns:
            if column == self.by:
                assert isinstance(column, CategoryColumn)
                entries += self._levels(column, None, by_group[:-1, 0], float(by_group[-1, 0]), of_counts)
                continue
            cells = _cells_of(column, self.n_bins)
            stop = start + 1 + len(cells.sent)
            for group, (own, of_group) in groups.items():
                missing = float(own[start])
                of_count = self._noises[0] * of_group
                counts = cells.rows(own[start + 1 : stop], float(own[0]) - missing)
                if isinstance(column, CategoryColumn):
                    of_level = float(cells.noise(cells.raised * of_count, math.sqrt(2) * of_count)[0])
                    entries += self._levels(column, group, counts, missing, of_level)
                else:
                    entries.append(self._number(column, group, counts, own[stop : stop + 2], missing, of_group))
            start = stop + 2 * isinstance(column, NumberColumn)
        n_rows = {group: float(own[0]) for group, (own, _) in groups.items()}
        return DescriptionResult(
            n_rows=n_rows,
            entries=tuple(entries),
            count_noise=of_counts,
            noise_of_all=of_counts * math.sqrt(self._n_groups),
            least_noise=self.count_noise * noise,
            by=None if self.by is None else self.by.name,
        )

    def _levels(
        self, column: CategoryColumn, group: Any, counts: FloatArray, missing: float, noise: float
    ) -> Iterator[ColumnDescription]:
        n = max(float(counts.sum()), 1.0)
        for level, count in zip(column.levels, counts.tolist(), strict=True):
            yield ColumnDescription(
                column=column.name,
                group=group,
                level=level,
                n=count,
                missing=missing,
                share=min(max(count / n, 0.0), 1.0),
                noise_of_n=noise,
            )

    def _number(
        self, column: NumberColumn, group: Any, counts: FloatArray, sums: FloatArray, missing: float, noise: float
    ) -> ColumnDescription:
        bins = np.maximum(counts, 0.0)
        n = float(counts.sum())
        first, second = sums.tolist()
        entries = max(n, 1.0)
        mean = first / entries
        square = second - entries * mean**2
        # Rows with an entry are rows less those missing.
        of_entries = math.sqrt(2) * self._noises[0] * noise
        of_sums = self._noises[1] * noise
        least = 3 * math.hypot(of_sums, 2 * mean * of_sums, mean**2 * of_entries)
        # Rows, entries and their squares are sums of products of [1, z], with z from -1/2 to 1/2.
        of_each = max(of_entries, math.sqrt(2) * of_sums)
        is_beyond = below_zero(np.array([[n, first], [first, second]]), of_each) is not None
        is_beyond |= second > n / 4 + largest_noise(1, math.hypot(of_sums, of_entries / 4))
        deviation = math.nan
        if n > 1 and square > least:
            deviation = math.sqrt(square / (n - 1)) * column.width
        # Quartiles: the parts' rows as a distribution, even within each part.
        below = np.r_[0.0, np.cumsum(bins)] / max(float(bins.sum()), 1.0)
        edges = np.linspace(column.low, column.high, self.n_bins + 1)
        low, median, high = (float(np.interp(part, below, edges)) for part in _QUARTERS)
        return ColumnDescription(
            column=column.name,
            group=group,
            level=None,
            n=n,
            missing=missing,
            mean=float(column.low + (mean + 0.5) * column.width),
            deviation=deviation,
            quarters=(low, median, high),
            noise_of_n=of_entries,
            noise_of_mean=math.hypot(of_sums, mean * of_entries) / entries * column.width,
            bins=counts,
            extent=f"{column.low:g} to {column.high:g}",
            is_beyond=is_beyond,
        )
