r"""Least squares on a table's own columns, with an intercept for each party, from sums over rows.

Each party centres its rows, so that intercepts of parties drop out, and adds up :math:`\sum u u^\top` with u = [x; y].
The total gives the coefficients and classical standard errors that all rows in one place would give, with a dummy
column for each party (Frisch, Waugh and Lovell).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import stats

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ._plan import (
    RIDGE_MOVED,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    ResultTable,
    Statistic,
    StatisticResult,
    StudyTable,
    number_text,
)

__all__ = ["LeastSquares", "LeastSquaresResult"]

_ROWS_PER_COEFFICIENT = 10
_SMALL = 0.001
_LEAST_EIGENVALUE = 3.0
"""Smallest eigenvalue of the moments, in units of the largest that noise alone has."""


@dataclass(frozen=True, eq=False)
class LeastSquaresResult(StatisticResult):
    """Coefficients of a linear regression, within parties.

    Attributes
    ----------
    names : tuple of str
        A number's own name, or ``column=level`` against the column's first level.
    coefficients, errors : ndarray of shape (n_coefficients,)
        In units of the outcome over those of the column.  Standard errors suppose equal variance of residuals, and
        hold the noise of the total.
    covariance : ndarray of shape (n_coefficients, n_coefficients)
    low, high : ndarray of shape (n_coefficients,)
        Ends of 95 % intervals by Student's distribution.
    p_values : ndarray of shape (n_coefficients,)
        Of no effect.
    n_rows : float
        Complete rows, with noise.
    degrees_of_freedom : float
        Rows less coefficients and parties.
    residual_deviation : float
        In the unit of the outcome.
    inflation : ndarray of shape (n_coefficients,)
        Standard errors over those without the noise of the total.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    errors: FloatArray
    covariance: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    n_rows: float
    degrees_of_freedom: float
    residual_deviation: float
    inflation: FloatArray

    def table(self) -> ResultTable:
        """Return a line for each coefficient."""
        columns = (self.coefficients, self.errors, self.low, self.high)
        p_values = ["<0.001" if p < _SMALL else f"{p:.3f}" for p in self.p_values]
        each = zip(self.names, p_values, *columns, strict=True)
        rows = [(name, *map(number_text, numbers), p) for name, p, *numbers in each]
        note = (
            f"Least squares with an intercept for each party, on about {self.n_rows:.0f} complete rows. Standard "
            "errors are classical: they suppose one variance of all residuals, and hold the noise of the total (which "
            f"made them up to {self.inflation.max():.2f} times as large)."
        )
        heads = ("column", "coefficient", "standard error", "95 % low", "95 % high", "p")
        return ResultTable(heads, rows, note)


@dataclass(frozen=True)
class LeastSquares(Statistic):
    """The moments of a linear regression with an intercept for each party.

    Rows with a missing entry are left out.  Numbers are clipped to their declared ranges.

    Parameters
    ----------
    outcome : NumberColumn
    columns : sequence of NumberColumn and CategoryColumn
        A category has a coefficient for each level but the first.
    noise : float
        A row is hidden as well as by this noise in `RidgeSums`.

    Raises
    ------
    AgreementError
        If the outcome is one of the columns, or there is none.
    """

    outcome: NumberColumn
    columns: Sequence[NumberColumn | CategoryColumn]
    noise: float = USUAL_NOISE

    title: ClassVar[str] = "least squares"

    def __post_init__(self) -> None:
        if not self.columns or self.outcome.name in [column.name for column in self.columns]:
            raise AgreementError(f"LeastSquares: expected columns other than the outcome {self.outcome.name!r}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each coefficient."""
        names: list[str] = []
        for column in self.columns:
            if isinstance(column, NumberColumn):
                names.append(column.name)
            else:
                names += [f"{column.name}={level}" for level in column.levels[1:]]
        return tuple(names)

    @property
    def _size(self) -> int:
        return len(self.names) + 1

    @property
    def _moved(self) -> float:
        """Return how far replacing one row moves the moments at most, in the Frobenius norm.

        A row moves the centred moments by n/(n+1) times the outer product of its distance to the mean with itself.
        Each number is at most 1 from the mean, as are all levels of a category but for a factor of two together.
        """
        square = sum(1.0 if isinstance(column, NumberColumn) else 2.0 for column in self.columns) + 1.0
        return float(math.sqrt(2) * square)

    @property
    def _noise(self) -> float:
        """Return the noise on the diagonal of the moments."""
        return self.noise / RIDGE_MOVED * self._moved

    @property
    def _noise_of_rows(self) -> float:
        return self.noise / RIDGE_MOVED

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        i, j = np.triu_indices(self._size)
        return np.asarray(np.r_[self._noise_of_rows, np.where(i == j, self._noise, self._noise / math.sqrt(2))])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        return math.hypot(1 / self._noise_of_rows, self._moved / self._noise)

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return {
            "outcome": asdict(self.outcome),
            "columns": [asdict(column) for column in self.columns],
            "noise": self.noise,
        }

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return moments over some rows of a party: the matrix of [1, x, y], shape ((n_coefficients + 2) ** 2,)."""
        blocks: list[NDArray[Any]] = []
        for column in self.columns:
            if isinstance(column, NumberColumn):
                blocks.append(column.scaled(table)[:, None])
            else:
                levels = column.indicators(table).astype(np.float64)
                levels[~levels.any(axis=1)] = np.nan
                blocks.append(levels[:, 1:])
        u = np.column_stack([*blocks, self.outcome.scaled(table)])
        u = np.column_stack([np.ones(len(u)), u])[~np.isnan(u).any(axis=1)]
        return np.asarray((u.T @ u).ravel())

    def finish(self, sums: FloatArray) -> FloatArray:
        """Return a party's complete rows, and their centred moments, shape (n_numbers,)."""
        M = sums.reshape(self._size + 1, self._size + 1)
        centred = M[1:, 1:] - np.outer(M[0, 1:], M[0, 1:]) / max(M[0, 0], 1.0)
        return np.asarray(np.r_[M[0, 0], centred[np.triu_indices(self._size)]])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> LeastSquaresResult:
        """Return the regression.

        Raises
        ------
        NumericalError
            If there are fewer than ten rows for each coefficient, or columns so alike, or so constant, that noise
            could decide.
        """
        p, n, sigma = len(self.names), float(total[0]), self._noise * noise
        df = n - p - n_parties
        if df < 1 or n < _ROWS_PER_COEFFICIENT * p - 3 * self._noise_of_rows * noise:
            raise NumericalError(
                f"Least squares: {n:.0f} complete rows for {p} coefficients and {n_parties} parties; expected "
                f"{_ROWS_PER_COEFFICIENT} rows for each coefficient. Agree on fewer columns, or on more rows."
            )
        M = np.zeros((p + 1, p + 1))
        M[np.triu_indices(p + 1)] = total[1:]
        M += np.triu(M, 1).T
        A, c, square = M[:p, :p], M[:p, p], M[p, p]
        least = scipy.linalg.eigvalsh(A)[0]
        if least <= max(_LEAST_EIGENVALUE * sigma * math.sqrt(2 * p), 1e-10 * np.trace(A)):
            raise NumericalError(
                "Least squares: a column hardly varies within parties, or nearly follows from others, for as much "
                "noise. Leave out or merge such columns and levels, or agree on more rows."
            )
        inverse = scipy.linalg.inv(A)
        beta = inverse @ c
        variance = max(square - c @ beta, 0.0) / df
        exact = variance * inverse
        # Noise E in A and f in c moves the coefficients by inv(A) (f - E beta), to first order.
        moved = sigma**2 / 2 * ((1 + beta @ beta) * np.eye(p) + np.outer(beta, beta))
        covariance = exact + inverse @ moved @ inverse
        unit = self.outcome.width / self._widths
        errors = unit * np.sqrt(np.diag(covariance))
        half = stats.t.ppf(0.975, df) * errors
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = 2 * stats.t.sf(np.abs(unit * beta) / errors, df)
            inflation = errors / (unit * np.sqrt(np.diag(exact)))
        return LeastSquaresResult(
            names=self.names,
            coefficients=unit * beta,
            errors=errors,
            covariance=np.outer(unit, unit) * covariance,
            low=unit * beta - half,
            high=unit * beta + half,
            p_values=p_values,
            n_rows=n,
            degrees_of_freedom=df,
            residual_deviation=math.sqrt(variance) * self.outcome.width,
            inflation=inflation,
        )

    @property
    def _widths(self) -> FloatArray:
        """Return the widths of the columns' ranges, 1 for levels, shape (n_coefficients,)."""
        widths: list[float] = []
        for column in self.columns:
            widths += [column.width] if isinstance(column, NumberColumn) else [1.0] * (len(column.levels) - 1)
        return np.array(widths)
