"""Tables as parties would encode them: from declarations, and never from private rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Column:
    """The declaration of a column, which everybody knows before there are rows.

    Attributes
    ----------
    low, high : float
        Declared range of a number; numbers outside are clipped to it.
    log : bool
        Whether a number is taken as log(1 + x): amounts over several powers of ten.
    levels : tuple of str
        Declared levels of a category; empty for a number.
    missing : bool
        Whether entries may be missing; these get an indicator.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    levels: tuple[str, ...] = ()
    missing: bool = False

    @property
    def middle(self) -> float:
        """The substitute of a missing number where there are no public rows."""
        if self.log:
            return float(np.expm1((np.log1p(self.low) + np.log1p(self.high)) / 2))
        return (self.low + self.high) / 2

    @property
    def width(self) -> int:
        """Columns of the matrix: one of a number or two levels, otherwise one a level; and the indicator."""
        return (len(self.levels) if len(self.levels) > 2 else 1) + self.missing


def fills(columns: Sequence[Column], public: pd.DataFrame) -> dict[str, float]:
    """Return substitutes of missing numbers: medians of the public rows, the declared middle where these have none."""
    medians = {column.name: public[column.name].median() for column in columns if column.missing and not column.levels}
    middles = {column.name: column.middle for column in columns}
    return {name: middles[name] if np.isnan(median) else float(median) for name, median in medians.items()}


def encode(columns: Sequence[Column], rows: pd.DataFrame, fill: Mapping[str, float]) -> Array:
    """Matrix of some rows, shape (n_rows, sum of widths).

    Numbers are centred at the middle of their range and divided by a quarter of it, so that scales are comparable
    without a look at private rows; categories are 0 and 1.

    Raises
    ------
    ValueError
        When a category has a level that was not declared, or an entry is missing that may not be.
    """
    return np.column_stack([_encode(column, rows[column.name], fill.get(column.name)) for column in columns])


def _encode(column: Column, values: pd.Series[Any], fill: float | None) -> Array:
    missing = values.isna().to_numpy()
    if missing.any() and not column.missing:
        raise ValueError(f"Column {column.name!r} has {missing.sum()} missing entries, but none were declared.")
    indicator = [missing.astype(float)][: column.missing]
    if not column.levels:
        if fill is None:
            fill = column.middle
        numbers = values.astype(float).fillna(fill).to_numpy()
        return np.column_stack([_standardise(column, numbers), *indicator])
    # A missing category has no level: all its columns are 0, and its indicator is 1.
    text = values.astype("string").fillna("").to_numpy(dtype=object)
    unknown = set(text[~missing]) - set(column.levels)
    if unknown:
        raise ValueError(f"Column {column.name!r} has {len(unknown)} levels that were not declared.")
    levels = column.levels
    # Of two levels one column says all.
    if len(levels) == 2:
        levels = levels[1:]
    return np.column_stack([*((text == level).astype(float) for level in levels), *indicator])


def _standardise(column: Column, numbers: Array) -> Array:
    low = column.low
    high = column.high
    # Private numbers beyond the declared range would tell that they are extreme.
    numbers = np.clip(numbers, low, high)
    if column.log:
        low = np.log1p(low)
        high = np.log1p(high)
        numbers = np.log1p(numbers)
    scaled: Array = (numbers - (low + high) / 2) / ((high - low) / 4)
    return scaled


def bounds(column: Column) -> Array:
    """Least and largest entry of a column's part of the matrix, shape (2, width)."""
    # Numbers are in quarters of their declared range, about its middle.
    ends = np.array([[-2.0], [2.0]])
    if column.levels:
        ends = np.array([[0.0], [1.0]]) * np.ones(column.width - column.missing)
    if column.missing:
        return np.column_stack([ends, [0.0, 1.0]])
    return ends


def uniform(columns: Sequence[Column], n_rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Rows from the declaration alone: numbers uniform on their (logarithmic) range, levels equally frequent.

    A tenth of a column that may have missing entries is missing.
    """
    made = {column.name: _draw_column(column, n_rows, generator) for column in columns}
    return pd.DataFrame(made)


def _draw_column(column: Column, n_rows: int, generator: np.random.Generator) -> pd.Series[Any]:
    if column.levels:
        drawn = pd.Series(generator.choice(np.array(column.levels, dtype=object), n_rows))
    elif column.log:
        drawn = pd.Series(np.expm1(generator.uniform(np.log1p(column.low), np.log1p(column.high), n_rows)))
    else:
        drawn = pd.Series(generator.uniform(column.low, column.high, n_rows))
    if column.missing:
        # The declaration says that entries may be missing, not how many: a tenth stands for it.
        return drawn.mask(generator.random(n_rows) < 0.1)
    return drawn
