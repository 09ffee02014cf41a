r"""Least squares on a table's own columns, with an intercept for each party, from sums over rows.

Each party centres its rows, so that intercepts of parties drop out, and adds up :math:`\sum u u^\top` with u = [x; y].
The total gives the coefficients that all rows in one place would give, with a dummy column for each party (Frisch,
Waugh and Lovell).

Robust standard errors need more than the total.  Each party deals its rows, or whole clusters, secretly at random to
ten groups, and adds up each group's part by itself.  The analyst reads ten more totals, and how much they differ is all
that standard errors clustered by group [1]_ need.

These totals only tell how far coefficients scatter.  So rows need not count in full: in groups, each is compared with
others of its party, and differences are shortened [2]_.  Then one row moves them by little, and they need little noise.
The noise of all groups together is that of the one total, so that their scatter has the noise of the coefficients, too.

References
----------
.. [1] Cameron and Miller (2015). A practitioner's guide to cluster-robust inference. Journal of Human Resources 50,
   317-372.
.. [2] Visuri, Koivunen and Oja (2000). Sign and rank covariance matrices. Journal of Statistical Planning and Inference
   91(2), 557-575.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import scipy

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
    refuse_undetermined,
)
from ._compared_rows import compare_rows
from ._groups import alone, deal, shuffle
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
# The squared length to which differences of rows are shortened is a sum of these parts.
#
# A number with a deviation of a sixth of its range has 1/18 on average.  With a part for far rows, robust errors are up
# to 2 % too small if normal columns have as large a deviation and residuals grow with one of them, and else exact.
_FAR = 5 / 16
_FAR_OF_NUMBER = 1 / 16
# Categories of two levels have up to 1/2 on average, those of more about 1.  Half of that serves: if most differences
# are shortened alike, there is a little more noise, but no bias.
_FAR_OF_PAIR = 1 / 4
_FAR_OF_CATEGORY = 1 / 2
# Residuals of groups and of all rows are compared after so many times their noise is added to both: noise alone then
# hardly changes their ratio, which is raised to a power.  With many rows it is nothing beside residuals.
_SURE = 4.0
# Variances of coefficients shrink by more than the square of the part of residuals that weights keep, as these depend
# on columns, too.  With this power, errors without noise are 0.94 to 1.33 times those of all rows in one place, on
# average over 60 simulations with 3 to 50 % yes, 1,500 rows and a normal, uniform, skewed or two-valued column.  They
# are up to 1.7 times as large if the column nearly decides the outcome.
_KEPT_POWER = 2.3
# Degrees of freedom, as of four groups.
_FEWEST_DEGREES = 3.0


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
        A row is hidden about as well as by this noise in `RidgeSums`.  However small it is, moments hide a row as well
        as 0.1 does with classical errors, 0.058 with robust ones, and 0.034 with clusters.
    errors : {"robust", "classical"}, default="robust"
        Robust errors hold where residuals vary unequally; their intervals are about a fifth wider, by groups and noise.
        They are too small if residuals are skewed and grow steeply with a skewed column.
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
        return N_GROUPS if self.errors == "robust" else 0

    @property
    def _kinds(self) -> tuple[int, int, int]:
        """Return how many columns, with the outcome, are numbers, categories of two levels, and of more."""
        n_levels = [len(each.levels) for each in self.columns if isinstance(each, CategoryColumn)]
        pairs = n_levels.count(2)
        return len(self.columns) + 1 - len(n_levels), pairs, len(n_levels) - pairs

    @property
    def _reach(self) -> float:
        """Return the squared length to which the difference of two rows is shortened in the groups' moments."""
        numbers, pairs, categories = self._kinds
        return _FAR + numbers * _FAR_OF_NUMBER + pairs * _FAR_OF_PAIR + categories * _FAR_OF_CATEGORY

    @property
    def _told(self) -> float:
        """Return how many times as closely groups and all rows together tell a level's rows as all rows do.

        Rows of different levels differ by 1 at least, and are shortened to `_reach`.
        """
        return math.hypot(1.0, min(1.0, self._reach)) if self.errors == "robust" else 1.0

    @property
    def _moved(self) -> float:
        r"""Return how far replacing one row moves the moments of all rows at most, in the Frobenius norm.

        Replacing a row u by v moves the moments by :math:`b b^\top - a a^\top` with a and b their distances from the
        mean of the other rows.  Two numbers, which differ by 1 at most, share a block of this matrix of norm 1 at most;
        a number and a category one of :math:`\sqrt 2`, two categories one of :math:`\sqrt 6`.
        """
        numbers, pairs, categories = self._kinds
        numbers += pairs
        return math.sqrt(numbers**2 + 4 * numbers * categories + 6 * categories**2)

    @property
    def _moved_groups(self) -> float:
        r"""Return the same for the moments of all groups together.

        With r the `_reach`, any product P of a shortened difference with itself has norm r at most, and two such differ
        by :math:`A = \sqrt 2 r` at most.  In a block of b rows let E be the change of :math:`\sum_j P_{ij} / b` over
        the row's differences to others, and :math:`Q_g` that over the others in group g alone, a part f_g of the block.
        Then :math:`\sum_g Q_g = E`, :math:`\|E\| \le A` and :math:`\|Q_g\| \le f_g A`.  Moments of
        the row's group o change by :math:`E + Q_o`, those of others by Q_g, and all less a twentieth of their sum by

        .. math:: \|0.9 E + Q_o\|^2 + \sum_{g \ne o} \|Q_g - 0.1 E\|^2
            = 0.7 \|E\|^2 + 2 \langle E, Q_o \rangle + \sum_g \|Q_g\|^2.

        Rows by themselves fill groups alike, so that this is A² at most (for all b).  A cluster may fill a group: then
        it is 3.7 A² at most.  If the row's cluster changes, its differences leave one group and others enter another,
        each with norm r at most, and it is :math:`(2 + \sqrt 2) A^2` at most.
        """
        if self.errors == "classical":
            return 0.0
        crowded = 1.0 if self.cluster is None else 3.7
        return math.sqrt(2 * crowded) * self._reach

    @property
    def _moved_together(self) -> float:
        """Return how far it moves both, if those of each group are taken as often as there are groups."""
        return math.hypot(self._moved, math.sqrt(self._n_groups) * self._moved_groups)

    @property
    def _noise(self) -> float:
        """Return the noise on the diagonal of the moments of all rows, and of those of all groups together.

        As both have the same, how groups differ holds the noise of the coefficients, too.  The moments of all rows have
        the usual noise at least: otherwise, somebody who knows all other rows could read the only row of a level.
        """
        return max(self.noise * self._moved_together, USUAL_NOISE * self._moved) / RIDGE_MOVED

    @property
    def _noises_of_rows(self) -> FloatArray:
        """Return the noise in the number of all rows and in the weights of groups, shape (1 + n_groups,).

        Where no difference weighs less, weights tell rows, too: a row counts twice in the sum over groups, as it is
        compared with others, and they with it.  Of both together the best reading has `noise_of_rows`.
        """
        if self.errors == "classical":
            return np.array([self.noise_of_rows])
        by_groups = 2**2 / self._n_groups
        return np.asarray(self.noise_of_rows * np.r_[1 / math.sqrt(1 - by_groups), np.ones(self._n_groups)])

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        i, j = np.triu_indices(self._size)
        noises = self._noise * np.sqrt(np.r_[1, np.full(self._n_groups, 1 / N_GROUPS)])
        moments = np.outer(noises, np.where(i == j, 1.0, math.sqrt(0.5)))
        return np.asarray(np.column_stack([self._noises_of_rows, moments]).ravel())

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise.

        It moves the number of all rows by 1, and weights of groups as it moves a product of norm 1: by (1 + f_o)² and
        the squares of f_g.  That is 1.3 at most, or 4 with clusters.
        """
        if self.errors == "classical":
            counts = math.sqrt(2) / self.noise_of_rows
        else:
            all_rows, groups = self._noises_of_rows[:2]
            counts = math.hypot(1 / all_rows, math.sqrt(1.3 if self.cluster is None else 4.0) / groups)
        return math.hypot(counts, self._moved_together / self._noise)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the matrix of [1, x, y] over some rows of a party, and the rows and moments of each group."""
        u = np.column_stack([design(self.columns, table), self.outcome.scale(table)])
        complete = ~np.isnan(u).any(axis=1)
        whole = np.column_stack([np.ones(len(u)), u])[complete]
        if self.errors == "classical":
            return (whole.T @ whole).ravel()
        # Rows are dealt before those with gaps are left out: no row's group depends on another row.
        labels = None if self.cluster is None else entries_of(table, self.cluster)
        groups = deal(len(u), N_GROUPS, secret, labels)
        weights, M = compare_rows(u, groups, shuffle(len(u), secret), n_groups=N_GROUPS, reach=self._reach)
        return np.concatenate([(whole.T @ whole).ravel(), weights, M.ravel()])

    def _parts(self, sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the matrix of all rows, the rows of each group, and moments of shape (n_groups, size, size)."""
        whole, n, M = np.split(sums, np.cumsum([(self._size + 1) ** 2, self._n_groups]))
        size = self._size
        return whole.reshape(size + 1, size + 1), n, M.reshape(self._n_groups, size, size)

    def fault(self, sums: FloatArray) -> str | None:
        """Return that clusters are so few that a group's total might be that of one party, if they are."""
        return alone(self._parts(sums)[1], self.cluster)

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's complete rows and centred moments, of all rows and by group, shape (n_numbers,)."""
        whole, n, M = self._parts(sums)
        own = whole[1:, 1:] - np.outer(whole[0, 1:], whole[0, 1:]) / max(whole[0, 0], 1.0)
        # A row is also what others in all groups are compared with: taken off, groups add up to moments of rows.
        M = M - M.sum(axis=0) / (2 * N_GROUPS)
        i, j = np.triu_indices(self._size)
        parts = np.concatenate([own[None], M])[:, i, j]
        return np.asarray(np.column_stack([np.r_[whole[0, 0], n], parts]).ravel())

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> LeastSquaresResult:
        """Return the regression.

        It raises NumericalError if there are fewer than ten rows for each coefficient or for a level, or in which
        levels of two columns differ; if columns are so alike, or so constant, that noise could decide; or if clusters
        are large and few.
        """
        p = len(self.names)
        sigma = self._noise * noise
        of_rows = float(self._noises_of_rows[0]) * noise
        parts = total.reshape(1 + self._n_groups, -1)
        rows = parts[:, 0]
        M = np.zeros((len(parts), p + 1, p + 1))
        i, j = np.triu_indices(p + 1)
        M[:, i, j] = M[:, j, i] = parts[:, 1:]
        whole = M[0]
        n = float(rows[0])
        refuse_total(below_zero(whole, sigma), self.title)
        if self.errors == "robust":
            refuse_total(_wrong_weights(rows, self._noises_of_rows * noise), self.title)
            _refuse_groups(whole, M[1:], sigma, self.title)
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
        inverse = _invert(A, sigma, self.names)
        beta = inverse @ c
        variance = max(square - c @ beta, 0.0) / left
        noise_in_beta = inverse @ _noise_in_scores(beta, sigma) @ inverse
        if self.errors == "classical":
            df = left
            covariance = variance * inverse + noise_in_beta
        else:
            covariance, noise_in_groups, residuals, df = _compare_groups(M[1:], rows[1:], sigma, self.names)
            # The usual correction for many coefficients.
            covariance *= (n - 1) / left
            # If outcomes are far apart, as those of yes and no, weights take part of the residuals off.
            usual = variance * left * float(rows[1:].sum()) / n
            kept = min(1.0, (max(residuals, 0.0) + _SURE * sigma) / (usual + _SURE * sigma)) ** _KEPT_POWER
            covariance = _exchange_noise(covariance / kept, noise_in_groups / kept, variance * inverse, noise_in_beta)
        unit = self.outcome.width / coefficient_widths(self.columns)
        errors = unit * np.sqrt(np.diag(covariance))
        half = scipy.stats.t.ppf(0.975, df) * errors
        with np.errstate(divide="ignore", invalid="ignore"):
            p_values = 2 * scipy.stats.t.sf(np.abs(unit * beta) / errors, df)
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
            noise_of_levels=sigma / (_OF_LEVEL * self._told),
            degrees_of_freedom=df,
            residual_deviation=math.sqrt(variance) * self.outcome.width,
            noise_errors=unit * np.sqrt(np.diag(noise_in_beta)),
            kind=self.errors,
            cluster=self.cluster,
        )


def _wrong_weights(rows: FloatArray, noises: FloatArray) -> str | None:
    """Return that no rows give the weights of groups beside the number of all rows, as a sentence's end; None if not.

    Both arguments have the shape (1 + n_groups,), with all rows first.
    """
    if rows[1:].min() < -largest_noise(1, noises[1]):
        return "the weight of a group is far below zero"
    # A row's differences to all others weigh 1 together at most.
    if rows[1:].sum() > rows[0] * (1 + 1e-6) + largest_noise(1, float(np.linalg.norm(noises))):
        return "groups weigh more than there are rows"
    return None


def _refuse_groups(whole: FloatArray, M: FloatArray, sigma: float, title: str) -> None:
    """Raise a ShareError if no rows give the moments of groups M, shape (n_groups, size, size), beside those of all."""
    together = M.sum(axis=0)
    # Half of the sum of products of differences was taken off, a tenth of that from each group: with it, M are sums of
    # squares and products, with 1.1² + 9 · 0.1² times as much noise, squared.
    refuse_total(below_zero(M + together / N_GROUPS, sigma * math.sqrt(1.3 / N_GROUPS)), title)
    # They add up to no more than moments around the mean, as differences only weigh less.
    refuse_total(below_zero(whole - together, math.sqrt(2) * sigma), title)


def _invert(A: FloatArray, sigma: float, names: Sequence[str]) -> FloatArray:
    """Return the inverse of moments with noise `sigma` on their diagonal; NumericalError if noise could decide."""
    way_on = "Leave out or merge such columns and levels, or agree on more rows or on classical errors."
    refuse_undetermined("Least squares", names, A, sigma, way_on=way_on)
    return np.asarray(scipy.linalg.inv(A))


def _noise_in_scores(beta: FloatArray, sigma: float) -> FloatArray:
    """Return the variance of f - E beta, of noise E in A and f in c, which moves the coefficients by inv(A) times it.

    To first order; `sigma` is the noise on the diagonal.
    """
    return np.asarray(sigma**2 / 2 * ((1 + beta @ beta) * np.eye(len(beta)) + np.outer(beta, beta)))


def _exchange_noise(
    covariance: FloatArray, noise_in_groups: FloatArray, classical: FloatArray, noise_in_beta: FloatArray
) -> FloatArray:
    """Return the covariance with the noise of the coefficients in place of that in the groups' own.

    If far rows count less in groups, noise moves their coefficients farther.  It is taken to stand beside the rest of
    the variance, which is the classical one at least: a difference of both would vary too much.
    """
    least = np.maximum(np.diag(classical), np.finfo(float).tiny)
    beside = np.maximum(least, np.diag(covariance) - noise_in_groups)
    factor = np.sqrt((beside + np.diag(noise_in_beta)) / (beside + noise_in_groups))
    return np.asarray(covariance * np.outer(factor, factor))


def _compare_groups(
    M: FloatArray, rows: FloatArray, sigma: float, names: Sequence[str]
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return the covariance of coefficients as groups tell it [1]_, noise in variances, residuals, degrees of freedom.

    It is that of a regression on the moments of all groups, in which far rows count less.  M are these moments, shape
    (n_groups, size, size), `rows` their numbers, and `sigma` is the noise of their sum.
    """
    p = M.shape[1] - 1
    whole = M.sum(axis=0)
    inverse = _invert(whole[:p, :p], sigma, names)
    beta = inverse @ whole[:p, p]
    # Scores of groups differ by residuals and by noise: the variance of both is in their squares.
    scores = M[:, :p, p] - M[:, :p, :p] @ beta
    middle = scores.T @ scores
    # Noise is the same in all groups, residuals go by their rows.
    moved = _noise_in_scores(beta, sigma)
    noisy = min(1.0, float(np.trace(moved) / max(np.trace(middle), np.finfo(float).tiny)))
    # Without any weight, of rows that are all alone in their blocks, no group tells anything.
    n_weights = float(rows.sum())
    df = 0.0
    if n_weights > 0:
        shares = (1 - noisy) * rows / n_weights + noisy / N_GROUPS
        df = 1 / float(shares @ shares) - 1
    if df < _FEWEST_DEGREES:
        raise NumericalError(
            f"Least squares: most rows are in {df + 1:.0f} of {N_GROUPS} groups. Agree on clusters that are "
            "smaller and more, or on none."
        )
    # The usual correction for few groups.
    covariance = inverse @ middle @ inverse * (df + 1) / df
    residuals = float(whole[p, p] - whole[:p, p] @ beta)
    return covariance, np.diag(inverse @ moved @ inverse), residuals, df
