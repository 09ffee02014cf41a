"""The columns of a study that parties agree on, and the texts of figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import join_names
from .._frames import are_missing
from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..sums._recommended import TABLE
from ..sums._statistic import ResultTable, StudyTable, entries_of

USUAL_NOISE = TABLE.noise
FARTHEST = 6.0
"""Standard deviations of noise beyond which a number is not noise."""
FEWEST = 10
"""Each row of a level with fewer rows in a total may be recognised."""
CERTAINTY = 2.0
"""Standard deviations of noise that a level has to be above the fewest rows."""
# Smallest eigenvalue of moments, in units of the largest that noise alone has.
_LEAST_EIGENVALUE = 3.0
# Part of the directions that noise could decide from which a coefficient is named: a tenth of each one's variance.
_INVOLVED = 0.1
# Noise leaves no more digits.
_DIGITS = 4
_SMALL_P = 0.001


def number_text(value: float) -> str:
    """Return a number as people read it, with four digits; nothing if it is NaN."""
    if math.isnan(value):
        return ""
    return f"{value:.{_DIGITS}g}"


def count_text(value: float) -> str:
    """Return a number of rows as people read it; noise may have made it negative."""
    return str(max(0, round(value)))


def group_name(group: Any) -> str:
    """Return the name of a group of rows; None is all rows."""
    return "all" if group is None else str(group)


def p_text(p: float) -> str:
    """Return a p value as people read it."""
    return "<0.001" if p < _SMALL_P else f"{p:.3f}"


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers with a declared range; an AgreementError if it is not finite, or `low` not below `high`."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise AgreementError(f"Column {self.name!r}: expected low below high, got {self.low} and {self.high}.")

    @property
    def width(self) -> float:
        """Return the width of the range."""
        return self.high - self.low

    def numbers(self, table: StudyTable) -> FloatArray:
        """Return the entries, NaN if missing; raise AgreementError if it is not there, or an entry is no number."""
        entries = entries_of(table, self.name)
        try:
            if entries.dtype.kind in "mM":  # Dates would turn into numbers of their own.
                raise TypeError
            return np.asarray(entries, dtype=np.float64)
        except (TypeError, ValueError):
            # numpy's own message quotes an entry.
            raise AgreementError(f"Column {self.name!r}: an entry is no number. Correct it, or make it NaN.") from None

    def scale(self, table: StudyTable) -> FloatArray:
        """Return the entries with the range moved to [-1/2, 1/2], and clipped to it; see `numbers`."""
        return np.clip((self.numbers(table) - self.low) / self.width - 0.5, -0.5, 0.5)

    @property
    def coefficient_names(self) -> list[str]:
        """Return the name of its one coefficient in a regression."""
        return [self.name]

    @property
    def coefficient_widths(self) -> FloatArray:
        """Return the width of the range, shape (1,)."""
        return np.array([self.width])

    def design(self, table: StudyTable) -> FloatArray:
        """Return the scaled entries, shape (n_rows, 1)."""
        return self.scale(table)[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A column of levels that were agreed on; an AgreementError if there are fewer than two, or two are the same."""

    name: str
    levels: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(np.asarray(self.levels).tolist()))
        if len(set(map(str, self.levels))) < max(2, len(self.levels)):
            raise AgreementError(f"Column {self.name!r}: expected at least two different levels.")

    def indicators(self, table: StudyTable) -> NDArray[np.bool_]:
        """Return which level each entry is, shape (n_rows, n_levels); none if it is missing.

        It raises AgreementError if the table lacks the column, or an entry is none of the levels.
        """
        entries = entries_of(table, self.name)
        missing = are_missing(entries)
        # Levels may be numbers or texts: compared as objects, 1 is not "1".
        is_level = entries.astype(object)[:, None] == np.array(self.levels, dtype=object)
        if not (is_level.any(axis=1) | missing).all():
            raise AgreementError(f"Column {self.name!r}: an entry is none of the levels. Correct it, or make it None.")
        return np.asarray(is_level, dtype=np.bool_)

    @property
    def coefficient_names(self) -> list[str]:
        """Return the names of its coefficients in a regression: one for each level but the first."""
        return [f"{self.name}={level}" for level in self.levels[1:]]

    @property
    def coefficient_widths(self) -> FloatArray:
        """Return ones, shape (n_levels - 1,)."""
        return np.ones(len(self.levels) - 1)

    def design(self, table: StudyTable) -> FloatArray:
        """Return the indicators of all levels but the first, shape (n_rows, n_levels - 1); NaN if missing."""
        levels = self.indicators(table)
        return np.where(levels.any(axis=1, keepdims=True), levels, np.nan)[:, 1:]


Column = NumberColumn | CategoryColumn


def coefficient_names(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the name of each coefficient."""
    return tuple(name for column in columns for name in column.coefficient_names)


def coefficient_widths(columns: Sequence[Column]) -> FloatArray:
    """Return the widths of the columns' ranges, 1 for levels, shape (n_coefficients,)."""
    return np.concatenate([column.coefficient_widths for column in columns])


def design(columns: Sequence[Column], table: StudyTable) -> FloatArray:
    """Return scaled numbers and indicators of levels, shape (n_rows, n_coefficients); NaN if missing."""
    return np.column_stack([column.design(table) for column in columns])


def coefficient_table(result: Any, note: str) -> ResultTable:
    """Return a line for each coefficient of a regression: it, its error, its interval and its p value."""
    heads = ("column", "coefficient", "standard error", "95 % low", "95 % high", "p")
    columns = (result.coefficients, result.errors, result.low, result.high)
    each = zip(result.names, map(p_text, result.p_values), *columns, strict=True)
    return ResultTable(heads, [(name, *map(number_text, numbers), p) for name, p, *numbers in each], note)


def refuse_undetermined(
    title: str,
    names: Sequence[str],
    moments: FloatArray,
    sigma: float,
    *,
    way_on: str,
    least: float = _LEAST_EIGENVALUE,
) -> None:
    """Raise NumericalError, with the coefficients that it is about, if noise could decide the inverse of moments.

    `sigma` is the noise on their diagonal, and `least` their smallest eigenvalue in units of the largest of noise.
    """
    values, vectors = np.linalg.eigh(moments)
    largest_of_noise = sigma * math.sqrt(2 * len(moments))
    weak = vectors[:, values <= max(least * largest_of_noise, 1e-10 * float(np.trace(moments)))]
    if not weak.size:
        return
    involved = [name for name, part in zip(names, (weak**2).sum(axis=1), strict=True) if part >= _INVOLVED]
    fault = "hardly varies within parties, or nearly follows from other columns"
    if len(involved) > 1:
        fault = "hardly vary within parties, or nearly follow from each other"
    raise NumericalError(f"{title}: for as much noise {join_names(map(repr, involved))} {fault}. {way_on}")
