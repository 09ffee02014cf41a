r"""Additive hazards with a baseline of each party's own, from sums over rows.

The hazard of a row is :math:`\lambda_{0k}(t) + \beta^\top z`, with any baseline of party k.  Lin and Ying (1994) solve
:math:`A \beta = b`, where each party centres within its own risk sets:
:math:`A = \sum_i \int Y_i (z_i - \bar z)(z_i - \bar z)^\top dt`, :math:`b = \sum_i \int (z_i - \bar z)\, dN_i`; with
:math:`B = \sum_i \int (z_i - \bar z)(z_i - \bar z)^\top dN_i` the covariance is :math:`A^{-1} B A^{-1}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import below_zero, largest_noise
from ..sums._statistic import RIDGE_MOVED, ResultTable, Statistic, StatisticResult, StudyTable, refuse_total
from ._columns import (
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    coefficient_names,
    coefficient_table,
    coefficient_widths,
    design,
    refuse_undetermined,
)
from ._survival import (
    SQUARED_WEIGHTS,
    SQUARED_WEIGHTS_CHANGE,
    WEIGHTS,
    WEIGHTS_CHANGE,
    check_time,
    read_times,
    risk_sets,
)

# A rule of thumb for regressions on events.
_EVENTS_PER_COEFFICIENT = 10
# Standard deviations of its noise that a coefficient's variance has to be above 0.
_LEAST_VARIANCE = 2.0
# How the noise of a row is dealt to A, b and B: squares add up to 1.
_PARTS = np.sqrt([0.15, 0.3, 0.55])


@dataclass(frozen=True, eq=False)
class AdditiveHazardsResult(StatisticResult):
    """Coefficients of additive hazards, within parties.

    Attributes
    ----------
    names : tuple of str
        A number's own name, or ``column=level`` against the column's first level.
    coefficients, errors : ndarray of shape (n_coefficients,)
        Events per unit of time and unit of the column, with robust standard errors that hold the noise of the total.
    low, high : ndarray of shape (n_coefficients,)
        Ends of 95 % intervals.
    p_values : ndarray of shape (n_coefficients,)
        Of no effect.
    n_rows, n_events, noise_of_rows : float
        Complete rows and events, with noise, and its standard deviation in each.
    noise_of_levels : float
        Standard deviation of the noise with which A may tell the rows of a level, as moments of `LeastSquares` do.
    inflation : ndarray of shape (n_coefficients,)
        Standard errors over those without the noise of the total.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    errors: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    n_rows: float
    n_events: float
    noise_of_rows: float
    noise_of_levels: float
    inflation: FloatArray

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, and the standard deviation of its noise."""
        return self.n_rows, self.noise_of_rows

    def table(self) -> ResultTable:
        """Return a line for each coefficient."""
        return coefficient_table(
            self,
            f"Additive hazards with a baseline for each party, on about {self.n_rows:.0f} complete rows and "
            f"{self.n_events:.0f} events (noise {self.noise_of_rows:.1f} each). A coefficient is in events per unit of "
            "time. Standard errors are robust, and hold the noise of the total (which made them up to "
            f"{self.inflation.max():.2f} times as large). Sums may tell the rows of a level with noise of "
            f"{self.noise_of_levels:.2g} rows.",
        )


@dataclass(frozen=True)
class AdditiveHazards(Statistic):
    """The sums of a regression with additive hazards and a baseline for each party [Lin1994]_.

    Rows with a missing entry are left out.  Numbers are clipped to their declared ranges.  Events count less where few
    of a party survive, as in `Survival`.

    Parameters
    ----------
    time : NumberColumn
        From 0 to the longest time.
    event : str
        The column that is 1 if an event was seen, and 0 if not.
    columns : sequence of NumberColumn and CategoryColumn
        A category has a coefficient for each level but the first.
    noise : float
        A row is hidden as well as by this noise in `RidgeSums`.

    Raises
    ------
    AgreementError
        If times do not begin at 0, time or event is one of the columns, or there is none.
    """

    time: NumberColumn
    event: str
    columns: Sequence[NumberColumn | CategoryColumn]
    noise: float = USUAL_NOISE

    title: ClassVar[str] = "additive hazards"
    tells: ClassVar[str] = (
        "how events become more or less frequent with each column, within parties; and more closely than counts do, "
        "how many rows each level has"
    )
    # Rows and events.
    own_copies: ClassVar[float] = 0.35
    keeps_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time(self.time, "AdditiveHazards")
        if not self.columns or {self.time.name, self.event} & {column.name for column in self.columns}:
            raise AgreementError(f"AdditiveHazards: expected columns other than {self.time.name!r} and {self.event!r}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each coefficient."""
        return coefficient_names(self.columns)

    @property
    def _moved(self) -> FloatArray:
        """Return how far replacing one row moves A, b and B at most, in the Frobenius norm.

        A row is an event once, moves the mean of a risk set by 1/(n+1) times its distance, and the weights.  Rows are
        at most the square root of `square` apart, and have variances of at most `variance` together.
        """
        categories = sum(isinstance(column, CategoryColumn) and len(column.levels) > 2 for column in self.columns)
        numbers = len(self.columns) - categories
        square = numbers + 2.0 * categories
        variance = numbers / 4 + categories
        moved_A = math.sqrt(2) * square + (WEIGHTS_CHANGE - 1) * variance
        moved_b = math.sqrt(square) * (2 + WEIGHTS + 2 * WEIGHTS_CHANGE)
        moved_B = square * (math.sqrt(2) + 2 * SQUARED_WEIGHTS + 2 * SQUARED_WEIGHTS_CHANGE)
        return np.array([moved_A, moved_b, moved_B])

    @property
    def _noises(self) -> FloatArray:
        """Return the noise on the diagonal of A, of b, and on the diagonal of B."""
        return np.asarray(self.noise / RIDGE_MOVED * self._moved / _PARTS)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        p = len(self.names)
        i, j = np.triu_indices(p)
        of_A, of_b, of_B = self._noises
        matrix = np.where(i == j, 1.0, math.sqrt(0.5))
        return np.concatenate([[self.noise_of_rows] * 2, of_A * matrix, np.full(p, of_b), of_B * matrix])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        # The number of rows stays as it is, and that of events changes by one at most.
        return math.hypot(1 / self.noise_of_rows, RIDGE_MOVED / self.noise)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the complete rows of a party: time, event and columns, shape (n_rows, 2 + n_coefficients)."""
        times = read_times(self.time, CategoryColumn(self.event, (0, 1)), table)
        rows = np.column_stack([times, design(self.columns, table)])
        return np.asarray(rows[~np.isnan(rows).any(axis=1)])

    def join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the rows of both batches: risk sets need all of them."""
        return np.vstack([first, second])

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's rows, events, A, b and B, shape (n_numbers,)."""
        time = sums[:, 0]
        event = sums[:, 1]
        Z = sums[:, 2:]
        if len(Z):
            # Any constant drops out; around the mean rounding is least.
            Z = Z - Z.mean(axis=0)
        sets = risk_sets(time, event)
        means = sets.sums_at_risk(Z) / sets.at_risk[:, None]
        # Time between events counts as events at its end do.
        lengths = np.diff(sets.times, prepend=0.0) * sets.weights
        observed = np.cumsum(lengths)[sets.place]
        A = (Z * observed[:, None]).T @ Z - (means * (lengths * sets.at_risk)[:, None]).T @ means
        seen = event == 1
        own = (Z[seen] - means[sets.place[seen]]) * sets.weights[sets.place[seen]][:, None]
        upper = np.triu_indices(len(A))
        counts = np.array([len(sums), event.sum()])
        return np.concatenate([counts, A[upper], own.sum(axis=0), (own.T @ own)[upper]])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> AdditiveHazardsResult:
        """Return the regression.

        It raises NumericalError if there are fewer than ten events for each coefficient, or columns so alike, or so
        constant, or so few events, that noise could decide.
        """
        p = len(self.names)
        of_count = self.noise_of_rows * noise
        of_A, of_b, of_B = (self._noises * noise).tolist()
        n_rows, n_events = total[:2].tolist()
        upper = np.triu_indices(p)
        n = p * (p + 1) // 2
        A = np.zeros((p, p))
        A[upper] = A.T[upper] = total[2 : 2 + n]
        b = total[2 + n : 2 + n + p]
        B = np.zeros((p, p))
        B[upper] = B.T[upper] = total[2 + n + p :]
        # A is a sum of squares and products over rows at risk.
        refuse_total(below_zero(A, of_A), self.title)
        # B, b and the number of events are sums of squares and products over events, with 1 beside their own numbers.
        of_each = max(of_count, of_B, math.sqrt(2) * of_b)
        refuse_total(below_zero(np.block([[B, b[:, None]], [b, n_events]]), of_each), self.title)
        if n_events > n_rows + largest_noise(1, math.sqrt(2) * of_count) + 1e-6 * n_events:
            refuse_total("it has more events than rows", self.title)
        if n_events < _EVENTS_PER_COEFFICIENT * p - 3 * of_count:
            raise NumericalError(
                f"Additive hazards: {n_events:.0f} events for {p} coefficients; expected {_EVENTS_PER_COEFFICIENT} for "
                "each coefficient. Agree on fewer columns, or on more rows."
            )
        way_on = "Leave out or merge such columns and levels, or agree on more rows."
        refuse_undetermined("Additive hazards", self.names, A, of_A, way_on=way_on)
        inverse = scipy.linalg.inv(A)
        beta = inverse @ b
        exact = np.diag(inverse @ B @ inverse)
        # Noise F in B moves the variance with inverse's column a by a'Fa.
        of_variance = of_B * (inverse**2).sum(axis=0)
        if (exact <= _LEAST_VARIANCE * of_variance).any():
            raise NumericalError(
                "Additive hazards: there are too few events for as much noise, which could decide a standard error. "
                "Agree on fewer columns, or on more rows."
            )
        # Noise E in A and f in b moves the coefficients by inv(A) (f - E beta), to first order.
        moved = of_b**2 * np.eye(p) + of_A**2 / 2 * ((beta @ beta) * np.eye(p) + np.outer(beta, beta))
        variance = exact + np.diag(inverse @ moved @ inverse)
        # Noise in the variance leaves it as many degrees of freedom (Satterthwaite).
        with np.errstate(divide="ignore"):
            freedom = np.minimum(2 * (variance / of_variance) ** 2, 1e9)
        unit = 1 / (self.time.high * coefficient_widths(self.columns))
        errors = unit * np.sqrt(variance)
        half = scipy.stats.t.ppf(0.975, freedom) * errors
        return AdditiveHazardsResult(
            names=self.names,
            coefficients=unit * beta,
            errors=errors,
            low=unit * beta - half,
            high=unit * beta + half,
            p_values=2 * scipy.stats.t.sf(np.abs(unit * beta) / errors, freedom),
            n_rows=n_rows,
            n_events=n_events,
            noise_of_rows=of_count,
            noise_of_levels=of_A / math.sqrt(3),
            inflation=np.sqrt(variance / exact),
        )
