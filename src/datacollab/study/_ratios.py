"""Odds and rate ratios, as a regression gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from .._typing import FloatArray
from ..sums._statistic import ResultTable, StatisticResult
from ._columns import Column, number_text, p_text


@dataclass(frozen=True, eq=False)
class RatioResult(StatisticResult):
    """Coefficients of a logistic or Poisson regression on all rows of the total together, and their ratios.

    Attributes
    ----------
    names : tuple of str
        Of a number the column's name, for one unit more; of a level ``column=level``, against the column's first.
    params, bse : ndarray of shape (n_coefficients,)
        Logarithms of odds ratios, or of rate ratios, and standard errors, which hold the noise of the total.
    covariance : ndarray of shape (n_coefficients, n_coefficients)
    intercept : float or None
        The logarithm of the odds, or of the rate, of the first levels; None if each party has its own.
    tests : mapping of str to (float, int, float)
        Wald's chi-square, its degrees of freedom and the p value of no effect, by column.
    inflation : ndarray of shape (n_coefficients,)
        Standard errors over those without the noise of the total.
    n_rows, noise_of_rows, n_outcomes : float
        Complete rows, the standard deviation of their noise, and outcomes.
    of_ratios : str
        "odds ratio" or "rate ratio".
    note : str
        The outcome, the rows, and how parties may differ, in sentences.
    looks : tuple of str
        Sentences on points to look at first.
    """

    names: tuple[str, ...]
    params: FloatArray
    bse: FloatArray
    covariance: FloatArray = field(repr=False)
    intercept: float | None
    tests: dict[str, tuple[float, int, float]]
    inflation: FloatArray
    n_rows: float
    noise_of_rows: float
    n_outcomes: float
    of_ratios: str
    note: str
    looks: tuple[str, ...] = ()

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, and the standard deviation of its noise."""
        return self.n_rows, self.noise_of_rows

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return sentences on points to look at before the result is used."""
        return self.looks

    @property
    def pvalues(self) -> FloatArray:
        """Return the p values of no effect, by Wald, shape (n_coefficients,)."""
        return np.asarray(2 * scipy.stats.norm.sf(np.abs(self.params) / self.bse))

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Return the ends of intervals of `params`, shape (n_coefficients, 2)."""
        half = scipy.stats.norm.isf(alpha / 2) * self.bse
        return np.column_stack([self.params - half, self.params + half])

    def to_frame(self) -> Any:
        """Return a DataFrame of pandas with a row for each coefficient: ratio, its 95 % interval, params, bse, p."""
        import pandas as pd

        low, high = np.exp(self.conf_int()).T
        columns = {self.of_ratios: np.exp(self.params), "low": low, "high": high, "params": self.params}
        return pd.DataFrame(columns | {"bse": self.bse, "p": self.pvalues}, index=list(self.names))

    def table(self) -> ResultTable:
        """Return a line for each ratio, and one for each test of a column with several coefficients."""
        heads = ("column", self.of_ratios, "low", "high", "coefficient", "standard error", "p")
        ratios = np.exp(np.column_stack([self.params, self.conf_int()]))
        each = zip(self.names, ratios, self.params, self.bse, self.pvalues, strict=True)
        rows = [
            (name, *map(number_text, three), number_text(one), number_text(error), p_text(p))
            for name, three, one, error, p in each
        ]
        # One level's p value depends on the level that is left out; the joint one does not.
        for name, (chi_square, df, p) in self.tests.items():
            if df > 1:
                rows.append((f"{name}: all levels (chi-square {chi_square:.2f}, df {df})", *[""] * 5, p_text(p)))
        of_noise = (
            " Standard errors hold the noise of the total (which made them up to "
            f"{self.inflation.max():.2f} times as large)."
        )
        return ResultTable(heads, rows, self.note + of_noise)


def try_columns(
    columns: Sequence[Column], params: FloatArray, covariance: FloatArray
) -> dict[str, tuple[float, int, float]]:
    """Return Wald's test of no effect of each column: chi-square, degrees of freedom and p value, by name."""
    tests: dict[str, tuple[float, int, float]] = {}
    start = 0
    for column in columns:
        own = slice(start, start + len(column.coefficient_names))
        start = own.stop
        chi_square = float(params[own] @ scipy.linalg.solve(covariance[own, own], params[own], assume_a="pos"))
        df = own.stop - own.start
        tests[column.name] = (chi_square, df, float(scipy.stats.chi2.sf(chi_square, df)))
    return tests
