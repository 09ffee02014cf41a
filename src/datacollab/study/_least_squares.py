r"""Least squares on a table's own columns, with an intercept for each party, from sums over rows.

Each party centres its rows, so that intercepts of parties drop out, and adds up :math:`\sum u u^\top` with u = [x; y].
The total gives the coefficients that all rows in one place would give, with a dummy column for each party (Frisch,
Waugh and Lovell).

Robust standard errors need more than the total.  Each party deals its rows, or whole clusters, secretly at random to
ten groups, and adds up each group's part by itself.  The analyst reads ten totals, and how much they differ is all that
standard errors clustered by group [1]_ need.  The noise of the totals is part of these differences.

References
----------
.. [1] Cameron and Miller (2015). A practitioner's guide to cluster-robust inference. Journal of Human Resources 50,
   317-372.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import scipy.linalg
from scipy import stats

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import below_zero, largest_noise
from ..sums._statistic import RIDGE_MOVED, ResultTable, Statistic, StatisticResult, StudyTable, entries_of, refuse_total
from ._columns import (
    FEWEST,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    coefficient_names,
    coefficient_table,
    coefficient_widths,
    design,
)
from ._groups import alone, deal
from ._rare_levels import too_few

Errors = Literal["robust", "classical"]

N_GROUPS = 10
# A rule of thumb for regressions.
_ROWS_PER_COEFFICIENT = 10
# How many times as closely as one moment all of them may tell the rows of a rare level.
#
# Its square around the mean is about this number of rows; if nearly all rows have another level of the same column,
# so is its product with that, which stands twice in the matrix of moments.
_OF_LEVEL = math.sqrt(3)
# Degrees of freedom, as of four groups.
_FEWEST_DEGREES = 3.0
# Smallest eigenvalue of the moments, in units of the largest that noise alone has.
_LEAST_EIGENVALUE = 3.0


@dataclass(frozen=True, eq=False)
class LeastSquaresResult(StatisticResult):
    r"""Coefficients of a linear regression, within parties.

    Attributes
    ----------
    names : tuple of str
        A number's own name, or ``column=level`` against the column's first level.
    coefficients, errors : ndarray of shape (n_coefficients,)
        In units of the outcome over those of the column.  Standard errors hold the noise of the total.
    covariance : ndarray of shape (n_coefficients, n_coefficients)
    low, high : ndarray of shape (n_coefficients,)
        Ends of 95 % intervals by Student's distribution.
    p_values : ndarray of shape (n_coefficients,)
        Of no effect.
    n_rows, noise_of_rows : float
        Complete rows, with noise, and its standard deviation.
    noise_of_levels : float
        Standard deviation of the noise with which moments may tell the rows of a level.
    degrees_of_freedom : float
        Of Student's distribution.  For classical errors rows less coefficients and parties.  For robust ones the
        number of groups less one; groups with unequal parts w of the variance count as fewer, :math:`1 / \sum w^2 - 1`.
    residual_deviation : float
        In the unit of the outcome.
    noise_errors : ndarray of shape (n_coefficients,)
        Standard errors that the noise of the total has by itself, to first order.
    kind : str
        "robust" or "classical".
    cluster : str or None
        The column whose levels hold rows that depend on each other.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    errors: FloatArray
    covariance: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    n_rows: float
    noise_of_rows: float
    noise_of_levels: float
    degrees_of_freedom: float
    residual_deviation: float
    noise_errors: FloatArray
    kind: Errors
    cluster: str | None

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, and the standard deviation of its noise."""
        return self.n_rows, self.noise_of_rows

    def table(self) -> ResultTable:
        """Return a line for each coefficient."""
        noise = min(1.0, ((self.noise_errors / self.errors) ** 2).max())
        supposed = {
            "robust": "robust: residuals may vary unequally",
            "classical": "classical: they suppose that all residuals vary alike, and that rows are independent",
        }
        within = ""
        if self.cluster is not None:
            within = f", and depend on each other within each {self.cluster}"
        return coefficient_table(
            self,
            f"Least squares with an intercept for each party, on about {self.n_rows:.0f} complete rows (noise "
            f"{self.noise_of_rows:.1f}). Standard errors are {supposed[self.kind]}{within}. Of their squares up to "
            f"{noise:.0%} is noise of the total. Moments may tell rows, and rows of a level, with noise of "
            f"{self.noise_of_levels:.2g} rows.",
        )


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
        A row is hidden about as well as by this noise in `RidgeSums`; with classical errors, as by 0.1 at least.
    errors : {"robust", "classical"}, default="robust"
        Robust errors hold where residuals vary unequally, and make the noise of the coefficients three times as large.
        Classical ones suppose that residuals vary alike and rows are independent.
    cluster : str, optional
        A column of labels: rows with the same label at one party, such as patients of one doctor, may depend on each
        other.  For robust errors.  A party with fewer than about ten clusters cannot take part: a group's total might
        be its own.

    Raises
    ------
    AgreementError
        If the outcome is one of the columns, or there is none; or if `errors` and `cluster` do not fit.
    """

    outcome: NumberColumn
    columns: Sequence[NumberColumn | CategoryColumn]
    noise: float = USUAL_NOISE
    errors: Errors = "robust"
    cluster: str | None = None

    title: ClassVar[str] = "least squares"
    tells: ClassVar[str] = (
        "how the outcome changes with the other columns, within parties; and more closely than counts do, how many "
        "rows each level has"
    )
    own_copies: ClassVar[float] = 0.25

    def __post_init__(self) -> None:
        if not self.columns or self.outcome.name in [column.name for column in self.columns]:
            raise AgreementError(f"LeastSquares: expected columns other than the outcome {self.outcome.name!r}.")
        if self.errors not in get_args(Errors) or (self.cluster is not None and self.errors != "robust"):
            raise AgreementError(
                f"LeastSquares: expected errors from {get_args(Errors)}, and robust ones for clusters; got "
                f"{self.errors!r} with cluster {self.cluster!r}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each coefficient."""
        return coefficient_names(self.columns)

    @property
    def _size(self) -> int:
        return len(self.names) + 1

    @property
    def _n_groups(self) -> int:
        return N_GROUPS if self.errors == "robust" else 1

    @property
    def _moved(self) -> float:
        r"""Return how far replacing one row moves the moments of all groups at most, in the Frobenius norm.

        Replacing a row u by v in a group moves the moments by :math:`b b^\top - a a^\top` with a and b their distances
        from the mean of the other rows, and the means move, too.  Two numbers, which differ by 1 at most, share a block
        of this matrix of norm 1 at most; a number and a category one of :math:`\sqrt 2`, two categories one of
        :math:`\sqrt 6`.  If the row's cluster changes, it leaves one group and enters another.
        """
        n_levels = [len(column.coefficient_names) for column in self.columns]
        categories = sum(n > 1 for n in n_levels)
        numbers = len(n_levels) + 1 - categories
        if self.cluster is not None:
            return math.sqrt(2) * (numbers + 2 * categories)
        return math.sqrt(numbers**2 + 4 * numbers * categories + 6 * categories**2)

    @property
    def _unit(self) -> float:
        """Return the noise of one total for moments that a row moves by 1.

        A single total has the usual noise at least, about that of ten totals together with the least noise of a
        project: otherwise, somebody who knows all other rows could read the only row of a level.
        """
        noise = self.noise
        if self.errors == "classical":
            noise = max(noise, USUAL_NOISE)
        return noise / RIDGE_MOVED

    @property
    def _noise(self) -> float:
        """Return the noise on the diagonal of one group's moments."""
        return self._unit * self._moved

    @property
    def _noise_of_rows(self) -> float:
        """Return the noise in the number of one group's rows."""
        return self.noise_of_rows / math.sqrt(self._n_groups)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        i, j = np.triu_indices(self._size)
        one = np.r_[self._noise_of_rows, np.where(i == j, self._noise, self._noise / math.sqrt(2))]
        return np.tile(one, self._n_groups)

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        return math.hypot(math.sqrt(2) / self._noise_of_rows, self._moved / self._noise)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return moments over some rows of a party: for each group the matrix of [1, x, y], one after the other."""
        u = np.column_stack([design(self.columns, table), self.outcome.scale(table)])
        # Rows are dealt before those with gaps are left out: no row's group depends on another row.
        labels = None if self.cluster is None else entries_of(table, self.cluster)
        groups = deal(len(u), self._n_groups, secret, labels)
        complete = ~np.isnan(u).any(axis=1)
        u = np.column_stack([np.ones(len(u)), u])
        of_groups = (u[complete & (groups == place)] for place in range(self._n_groups))
        return np.concatenate([(rows.T @ rows).ravel() for rows in of_groups])

    def fault(self, sums: FloatArray) -> str | None:
        """Return that clusters are so few that a group's total might be that of one party, if they are."""
        return alone(sums.reshape(self._n_groups, -1)[:, 0], self.cluster)

    def finish(self, sums: FloatArray) -> FloatArray:
        """Return a party's complete rows and centred moments, by group, shape (n_numbers,)."""
        M = sums.reshape(self._n_groups, self._size + 1, self._size + 1)
        n = M[:, 0, 0]
        first = M[:, 0, 1:]
        # Groups are centred at the party's mean, so that its intercept drops out of each.
        mean = first.sum(axis=0) / max(n.sum(), 1.0)
        crossed = first[:, :, None] * mean
        centred = M[:, 1:, 1:] - crossed - np.swapaxes(crossed, 1, 2) + n[:, None, None] * np.outer(mean, mean)
        i, j = np.triu_indices(self._size)
        return np.asarray(np.column_stack([n, centred[:, i, j]]).ravel())

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> LeastSquaresResult:
        """Return the regression.

        It raises NumericalError if there are fewer than ten rows for each coefficient or for a level, or in which
        levels of two columns differ; if columns are so alike, or so constant, that noise could decide; or if clusters
        are large and few.
        """
        p = len(self.names)
        parts = total.reshape(self._n_groups, -1)
        sigma, of_rows = (each * noise * math.sqrt(self._n_groups) for each in (self._noise, self._noise_of_rows))
        rows = parts[:, 0]
        M = np.zeros((self._n_groups, p + 1, p + 1))
        i, j = np.triu_indices(p + 1)
        M[:, i, j] = M[:, j, i] = parts[:, 1:]
        n = float(rows.sum())
        whole = M.sum(axis=0)
        # Each group's moments around its parties' means are sums of squares and products over its rows.
        refuse_total(below_zero(M, self._noise * noise), self.title)
        # In a range of width 1, numbers have a variance of 1/4 at most, and so have indicators.
        widest = float(np.diag(whole).max())
        if widest > n / 4 + largest_noise(1, math.hypot(sigma, of_rows / 4)) + 1e-6 * widest:
            refuse_total("a column varies more than its declared range allows", self.title)
        left = n - p - n_parties
        if left < 1 or n < _ROWS_PER_COEFFICIENT * p - 3 * of_rows:
            raise NumericalError(
                f"Least squares: {n:.0f} complete rows for {p} coefficients and {n_parties} parties; expected "
                f"{_ROWS_PER_COEFFICIENT} rows for each coefficient. Agree on fewer columns, or on more rows."
            )
        A = whole[:p, :p]
        c = whole[:p, p]
        square = whole[p, p]
        # A level varies at least as ten rows of it do in one party.
        enough = FEWEST * (1 - FEWEST / n)
        if few := too_few(self.columns, A, enough, sigma):
            raise NumericalError(f"Least squares: {few}.")
        if scipy.linalg.eigvalsh(A)[0] <= max(_LEAST_EIGENVALUE * sigma * math.sqrt(2 * p), 1e-10 * np.trace(A)):
            raise NumericalError(
                "Least squares: a column hardly varies within parties, or nearly follows from others, for as much "
                "noise. Leave out or merge such columns and levels, or agree on more rows or on classical errors."
            )
        inverse = scipy.linalg.inv(A)
        beta = inverse @ c
        variance = max(square - c @ beta, 0.0) / left
        # Noise E in A and f in c moves the coefficients by inv(A) (f - E beta), to first order.
        moved = sigma**2 / 2 * ((1 + beta @ beta) * np.eye(p) + np.outer(beta, beta))
        if self.errors == "classical":
            df = left
            middle = variance * A + moved
        else:
            # Scores of groups differ by residuals and by noise: the variance of both is in their squares [1]_.
            scores = M[:, :p, p] - M[:, :p, :p] @ beta
            middle = scores.T @ scores
            # Noise is the same in all groups, residuals go by their rows.
            noisy = min(1.0, float(np.trace(moved) / max(np.trace(middle), np.finfo(float).tiny)))
            shares = (1 - noisy) * rows / n + noisy / N_GROUPS
            df = 1 / float(shares @ shares) - 1
            if df < _FEWEST_DEGREES:
                raise NumericalError(
                    f"Least squares: most rows are in {df + 1:.0f} of {N_GROUPS} groups. Agree on clusters that are "
                    "smaller and more, or on none."
                )
            # The usual correction for few groups and many coefficients.
            middle *= (df + 1) / df * (n - 1) / left
        covariance = inverse @ middle @ inverse
        unit = self.outcome.width / coefficient_widths(self.columns)
        errors = unit * np.sqrt(np.diag(covariance))
        half = stats.t.ppf(0.975, df) * errors
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = 2 * stats.t.sf(np.abs(unit * beta) / errors, df)
        return LeastSquaresResult(
            names=self.names,
            coefficients=unit * beta,
            errors=errors,
            covariance=np.outer(unit, unit) * covariance,
            low=unit * beta - half,
            high=unit * beta + half,
            p_values=p_values,
            n_rows=n,
            noise_of_rows=of_rows,
            noise_of_levels=sigma / _OF_LEVEL,
            degrees_of_freedom=df,
            residual_deviation=math.sqrt(variance) * self.outcome.width,
            noise_errors=unit * np.sqrt(np.diag(inverse @ moved @ inverse)),
            kind=self.errors,
            cluster=self.cluster,
        )
