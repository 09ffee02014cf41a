"""A study's first table: counts of levels, and what columns are like, overall and by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from .._typing import FloatArray
from ._plan import (
    FARTHEST,
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

__all__ = ["COUNT_NOISE", "ColumnDescription", "Counts", "CountsResult", "Description", "DescriptionResult"]

COUNT_NOISE = 2.0
_FEWEST = 10
"""Each row of a level with fewer rows in a total may be recognised."""
_CERTAINTY = 2.0
"""Standard deviations of noise that a level has to be above the fewest rows."""
_SQUARE_MOVED = 1 + 1 / 16
"""How far replacing a row moves a sum of numbers from -1/2 to 1/2, and that of their squares: squared."""
_OUTER_MOVED = 2.0
"""How far replacing a row moves the counts of levels: squared."""
_QUARTERS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class CountsResult(StatisticResult):
    """Rows of each level, with noise, and the levels that may have fewer than ten rows.

    Attributes
    ----------
    counts : mapping of str to mapping
        Rows of each level, by column.
    noise : float
        Standard deviation of the noise in each count.
    """

    counts: dict[str, dict[Any, float]]
    noise: float

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels whose count is not above ten by twice the noise."""
        least = _FEWEST + _CERTAINTY * self.noise
        return tuple((name, level) for name, each in self.counts.items() for level, n in each.items() if n < least)

    @property
    def size(self) -> tuple[float, float]:
        """Return the rows of the column with the most entries, and the standard deviation of its noise."""
        most = max(self.counts.values(), key=lambda each: sum(each.values()))
        return sum(most.values()), self.noise * math.sqrt(len(most))

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero by more than noise, if one is."""
        lowest = min(n for each in self.counts.values() for n in each.values())
        return "a count is far below zero" if lowest < -FARTHEST * self.noise else None

    def table(self) -> ResultTable:
        """Return the rows of each level."""
        rows = [(name, str(level), count_text(n)) for name, each in self.counts.items() for level, n in each.items()]
        return ResultTable(("column", "level", "rows"), rows, _noisy(self.noise))


@dataclass(frozen=True)
class Counts(Statistic):
    """The rows of each level, which go first where a level may be rare.

    Parameters
    ----------
    columns : sequence of CategoryColumn
    noise : float, default=2
        Standard deviation of the noise in each count of the total, in rows.
    """

    columns: Sequence[CategoryColumn]
    noise: float = COUNT_NOISE

    title: ClassVar[str] = "counts"

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        return np.full(sum(len(column.levels) for column in self.columns), float(self.noise))

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        return math.sqrt(_OUTER_MOVED * len(self.columns)) / self.noise

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return {"columns": [asdict(column) for column in self.columns], "noise": self.noise}

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the counts over some rows of a party, shape (n_numbers,)."""
        return np.concatenate([column.indicators(table).sum(axis=0, dtype=np.float64) for column in self.columns])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> CountsResult:
        """Return the counts, and which levels may be rare."""
        numbers = iter(total.tolist())
        counts = {column.name: dict(zip(column.levels, numbers, strict=False)) for column in self.columns}
        return CountsResult(counts, self.noise * noise)


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
        Of a number, in its own unit; the standard deviation has n - 1 in its denominator.  NaN for a category.
    quarters : tuple of float
        First quartile, median and third quartile, which are interpolated within agreed bins.
    noise_of_n, noise_of_mean : float
        Standard deviations of the noise in `n` and in `mean`.
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


@dataclass(frozen=True)
class DescriptionResult(StatisticResult):
    """All rows of the table, by column and group.

    Attributes
    ----------
    n_rows : mapping
        Rows of each group, and of all under None.
    entries : tuple of ColumnDescription
    """

    n_rows: dict[Any, float]
    entries: tuple[ColumnDescription, ...]

    @property
    def _noise(self) -> float:
        """Return the standard deviation of the noise in each count."""
        return max(each.noise_of_n for each in self.entries)

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.n_rows[None], self._noise

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero by more than noise, if one is."""
        least = min(min(each.n, each.missing) for each in self.entries)
        return "a count is far below zero" if least < -2 * FARTHEST * self._noise * len(self.entries) else None

    def table(self) -> ResultTable:
        """Return a line for each number, and for each level, in each group."""
        rows = []
        for each in self.entries:
            group, level = ("all" if each.group is None else str(each.group)), each.level
            figures = map(number_text, (each.share, each.mean, each.deviation, *each.quarters))
            counts = (count_text(each.n), count_text(each.missing))
            rows.append((each.column, group, "" if level is None else str(level), *counts, *figures))
        heads = ("column", "group", "level", "rows", "missing", "share", "mean", "sd", "q1", "median", "q3")
        return ResultTable(heads, rows, f"{_noisy(self._noise)} Quartiles lie within agreed bins.")


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
        Of the sums of numbers: a row is hidden as well as by this noise in `RidgeSums`.
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

    @property
    def _numbers(self) -> int:
        return sum(isinstance(column, NumberColumn) for column in self.columns)

    @property
    def _sizes(self) -> list[tuple[int, int]]:
        """Return how many counts and sums each column has, in one group."""
        return [
            (1 + self.n_bins, 2) if isinstance(column, NumberColumn) else (len(column.levels), 0)
            for column in self.columns
        ]

    @property
    def _groups(self) -> tuple[Any, ...]:
        return (None,) if self.by is None else (*self.by.levels, None)

    @property
    def _noise_of_sums(self) -> float:
        """Return the noise of each sum: that of one row is the more, the more columns there are."""
        return self.noise / RIDGE_MOVED * math.sqrt(_SQUARE_MOVED * max(1, self._numbers))

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
        p = self._numbers
        counts = 2 + 4 * p + _OUTER_MOVED * (len(self.columns) - p)
        moved = counts / self.count_noise**2 + _SQUARE_MOVED * p / self._noise_of_sums**2
        # A row is in the numbers of all rows, and in those of its group.
        return math.sqrt(moved * (1 if self.by is None else 2))

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return {
            "columns": [asdict(column) for column in self.columns],
            "by": None if self.by is None else asdict(self.by),
            "noise": self.noise,
            "count_noise": self.count_noise,
            "n_bins": self.n_bins,
        }

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the sums over some rows of a party, shape (n_numbers,)."""
        found = []
        for column in self.columns:
            if isinstance(column, CategoryColumn):
                found.append(column.indicators(table).astype(np.float64))
                continue
            z = column.scaled(table)
            there = ~np.isnan(z)
            z = np.where(there, z, 0.0)
            bins = np.minimum(((z + 0.5) * self.n_bins).astype(int), self.n_bins - 1)
            in_bin = (bins[:, None] == np.arange(self.n_bins)) & there[:, None]
            found.append(np.column_stack([there, in_bin, z, z**2]).astype(np.float64))
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
        return DescriptionResult(n_rows, tuple(entries))

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
        n, bins, (first, second) = float(own[0]), np.maximum(own[1:-2], 0.0), own[-2:]
        entries = max(n, 1.0)
        mean = first / entries
        square = max((second - entries * mean**2) / max(entries - 1, 1.0), 0.0)
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
            deviation=float(math.sqrt(square) * column.width),
            quarters=(low, median, high),
            noise_of_n=self.count_noise * noise,
            noise_of_mean=float(self._noise_of_sums * noise / entries * column.width),
        )
