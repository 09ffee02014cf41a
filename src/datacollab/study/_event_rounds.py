r"""Rates and hazards by rounds, with an intercept or a baseline of each party that stays at home.

In each round the parties add up the score of the coefficients :math:`\beta` so far, :math:`U = \sum_{ij} x_i e_{ij}`,
over rows i and intervals j of time.  Rates have one interval.

*Hazards.*  Times are grouped into agreed intervals, as in [Prentice1978]_: a row at risk in an interval has its event
there with the probability :math:`1 - e^{-u}`, where :math:`u = e^{a + x^\top \beta}`, whatever the hazard does within
the interval, and whatever times are tied.  A row that leaves within one counts for the part before.

.. math:: e = \frac{v(u)}{e^{u} - 1} \text{ for an event, and } -v(u) \text{ without}, \quad v(u) = \min(u, C_j)

Without the bounds C this is the score of maximum likelihood.  With them a row that is expected to have many events
weighs less, and the score is still 0 in the mean at the true coefficients, as
:math:`(1 - e^{-u}) / (e^u - 1) = e^{-u}`.

*Rates.*  With :math:`u = t e^{a + x^\top \beta}` after a time t of observation, an event counts by a weight w(u) that
falls from 1 to 0 around C: :math:`e = w(u) y - \int_0^u w`.  The weight of a moment depends on what was before it, so
that the score is 0 in the mean here, too.

Each party solves :math:`\sum_i e_{ij} = 0` for a, one for each interval.  Every residual falls as a rises.  So putting
a row r' in the place of r moves all others of an interval in one direction, and together by what r and r' differ: U
moves by the sum over j of :math:`e'_j (x' - c_j) - e_j (x - c_j)`, with c a mean of others' x.  A row has one event at
most, whose residual is 1 at most; its others are :math:`-C_j` at least, -C together.  So the weights of x, x' and c
that are above 0 add up to 1 + C at most, as do those below, and U moves by 1 + C times the largest distance of two rows
at most.

The information is that of x among the rows with events: at the true coefficients, those of one time in one party are a
sample of the rows at risk by their hazards.  It is a sum over differences of events that are near each other, in time
and else in a random order,

.. math:: I = \frac{1}{2 h} \sum_{i, j} \min(1, r / |x_i - x_j|^2) (x_i - x_j)(x_i - x_j)^\top.

Replacing a row in its place moves it by :math:`\sqrt 2 r` at most, wherever others lie.  Of a party with few events all
are near; where its rows at risk then change much with time, errors are too small.  As rows beyond C weigh less, a part
of the events counts, W of all parties together: parties whose events differ much in this share one part.

A row that leaves within an interval is taken to have a steady hazard there, which with ten intervals matters little.
Where a column's effect is not log-linear, bounds give weight to rows at lower risk, and its ratio is more theirs than
in Cox's regression.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from .._typing import FloatArray
from ..errors import AgreementError
from ..linalg import largest_noise
from ..sums import key_stream
from ..sums._statistic import StudyTable, refuse_total
from ._columns import CategoryColumn, NumberColumn, design
from ._rounds import RegressionRound
from ._survival import check_time, read_times

# With more intervals, each party's have few events, which moves ratios away from 1; with fewer, rows that leave within
# one are less exact.
_N_INTERVALS = 10
# C: the events that a row counts for at most.  Where 30 % of rows have the event, nearly all count in full, and more
# would need more noise in the score.
_MOST_EXPECTED = 2.0
# The parts of a round's budget that information and W get.  With less for the information, intervals are a little
# narrower, and studies with some 100 events are refused more often.
_OF_INFORMATION = 0.5
_OF_WEIGHT = 0.02
# Of rows or events in a level, from which on its variance is no longer noise.
_LEAST_SHARE = 0.02
# The part of C that all intervals share equally, so that noise in events by interval takes none away.
_SHARED_EQUALLY = 0.5
# Squared differences of two rows that are usual, for a number whose range is six standard deviations or more, for two
# levels, and for more levels: longer ones weigh less, and with few columns all are longer at times.
_USUAL_OF_NUMBER = 1 / 8
_USUAL_OF_PAIR = 1 / 2
_USUAL_OF_LEVELS = 1.0
# Widths of a range that may hold few whole numbers alone.  With five or more, rows are nearer to each other.
_FEW_WHOLE = (1, 2, 3, 4)
_SPARE = 1 / 2
# Events on either side that an event is compared with: with more, the information is hardly more precise, and events
# are farther in time, when other rows are at risk.
_NEAR = 10
# Over C, where the weight of an event in a regression of rates begins to fall, and where it is 0.
_FALLS = 0.8
_ENDS = 1.2
# Of sums of shares, and of events.
_ROUNDING = 1e-6
# Logarithms of expected events at which all rows or none have an event in double precision.
_FARTHEST_BASELINE = 60.0
# Logarithms whose numbers double precision holds.
_LARGEST = 600.0


@dataclass(frozen=True)
class _EventRound(RegressionRound):
    """A round of a regression on events by time under observation."""

    time: NumberColumn = field(kw_only=True)

    _has_others: ClassVar[bool] = False
    _part_of_information: ClassVar[float] = _OF_INFORMATION
    _part_of_others: ClassVar[float] = _OF_WEIGHT
    # Differences of a column from its neighbours in any order, squared, are twice its variance at most.
    _most_of_information: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        self._check(self.time.name)
        check_time(self.time, type(self).__name__)

    @property
    def _reach(self) -> float:
        """Return the squared length from which on the difference of two rows weighs less."""
        return _SPARE + math.fsum(map(_usual_square, self.columns))

    @property
    def _information_moved(self) -> float:
        # What one row takes and another adds are means of squares, so that their norms add in squares.
        return math.sqrt(2) * self._reach

    @property
    def _score_moved(self) -> float:
        return (1 + _MOST_EXPECTED) * math.sqrt(self._diameter_squared)

    @property
    def _of_weight(self) -> float:
        # Adding a row moves W up by its residuals without their signs at most, and taking one away moves it down.
        return self._unit * (1 + _MOST_EXPECTED) / math.sqrt(_OF_WEIGHT)

    @property
    def _spread_of_head(self) -> FloatArray:
        return np.append(super()._spread_of_head, self._of_weight)

    def _read_times(self, table: StudyTable) -> FloatArray:
        """Return times over the longest one, and whether an event was seen by then, shape (n_rows, 2)."""
        return read_times(self.time, self.outcome, table)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the complete rows themselves, one after the other: what stays at a party follows from all of them.

        Each has x, time, whether it has the event, and its place in a random order, which no entry decides; shape
        (n_complete * (n_coefficients + 3),).
        """
        times = self._read_times(table)
        places = key_stream(secret, len(times)) / 2.0**64
        rows = np.column_stack([design(self.columns, table), times, places])
        return np.asarray(rows[~np.isnan(rows).any(axis=1)].ravel())

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's counts, in the first round, and W, its information and its score, shape (n_numbers,)."""
        p = len(self.names)
        rows = sums.reshape(-1, p + 3)
        X = rows[:, :p]
        time, y, places = rows[:, p:].T
        residuals, weight = self._find_residuals(X @ self._so_far, time, y == 1)
        order = np.lexsort((places, self._place(time)))
        information = _compare_neighbours(X[order][y[order] == 1], self._reach)
        counts = np.concatenate([self._count(X, y), self._count_by_interval(time, y)])
        return np.concatenate([counts, [weight], information[np.triu_indices(p)], X.T @ residuals])

    def _place(self, time: FloatArray) -> NDArray[np.intp]:
        """Return the interval of each time, shape (n_rows,)."""
        return np.zeros(len(time), dtype=np.intp)

    def _count_by_interval(self, time: FloatArray, y: FloatArray) -> FloatArray:
        """Return events by interval, in the first round, shape (n_of_intervals,)."""
        return np.zeros(0)

    @abstractmethod
    def _find_residuals(self, eta: FloatArray, time: FloatArray, seen: NDArray[np.bool_]) -> tuple[FloatArray, float]:
        """Return the residual of each row, over all intervals, shape (n_rows,), and the events that count."""

    def _at_mean_ratio(self, head: FloatArray, information: FloatArray) -> FloatArray:
        """Return the information half way to the ratios, for the first step.

        The information is that of rows with events.  At ratios of 1 a level varies as it does among all rows; on the
        way from there to the ratios it does so by the mean of both, to second order.
        """
        if not self._is_first:
            return information
        n_rows, n_events, *of_levels = head[: self._n_counts]
        rows, events = np.reshape(of_levels, (2, -1))
        shares = np.clip(np.array([rows / n_rows, events / max(n_events, 1.0)]), _LEAST_SHARE, 1 - _LEAST_SHARE)
        of_rows, of_events = shares * (1 - shares)
        factors = np.ones(len(information))
        factors[self._are_levels] = np.sqrt((of_rows + of_events) / (2 * of_events))
        return information * np.outer(factors, factors)

    def _outcomes_text(self, rarer: float, n_outcomes: float) -> str:
        # Where all count, noise may make it more.
        if rarer >= n_outcomes:
            return f"about {n_outcomes:.0f} outcomes"
        return (
            f"about {n_outcomes:.0f} outcomes, which count as {rarer:.0f} (a row counts for {_MOST_EXPECTED:g} "
            "expected events at most)"
        )

    def _part_that_counts(self, head: FloatArray, n_outcomes: float, noise: float) -> float:
        weight = float(head[-1])
        spare = largest_noise(1, noise * math.hypot(self._of_weight, self.noise_of_rows)) + _ROUNDING * (1 + weight)
        if not -spare <= weight <= n_outcomes + spare:
            refuse_total("fewer events count than none, or more than there are", self.title)
        return max(weight, 0.0) / max(n_outcomes, 1.0)


@dataclass(frozen=True)
class PoissonRound(_EventRound):
    """One round of a Poisson regression of events by time under observation, with an intercept of each party.

    Rows with a missing entry, or without time under observation, are left out.  A row has one event at most.  Where two
    events of a row are expected, it hardly counts further.

    Parameters
    ----------
    columns, outcome, noise, before
        As of `LogisticRound`; the second level of the outcome is the event.
    n_rounds : int, default=2
        With two, coefficients are within a third of a standard error of the maximum likelihood, or a half where a ratio
        is 5; more share its noise.
    time : NumberColumn
        Time under observation from 0 to its declared longest; of a longer one this part counts, without its event.

    Raises
    ------
    AgreementError
        As of `LogisticRound`, or if times do not begin at 0.
    """

    title: ClassVar[str] = "poisson regression"
    tells: ClassVar[str] = (
        "how the rate of events changes with the other columns, within parties, after each round; and more closely "
        "than counts do, how many events each level has"
    )
    of_ratios: ClassVar[str] = "rate ratio"

    def _read_times(self, table: StudyTable) -> FloatArray:
        times = super()._read_times(table)
        return np.where(times[:, :1] > 0, times, np.nan)

    def _find_residuals(self, eta: FloatArray, time: FloatArray, seen: NDArray[np.bool_]) -> tuple[FloatArray, float]:
        falls = _FALLS * _MOST_EXPECTED
        ends = _ENDS * _MOST_EXPECTED
        # Without events, the intercept is infinite.
        if not seen.any():
            return np.zeros(len(eta)), 0.0

        def expect(u: FloatArray) -> FloatArray:
            beyond = np.clip(u - falls, 0.0, ends - falls)
            weights = 1 - beyond / (ends - falls)
            expected = np.minimum(u, falls) + beyond * (1 + weights) / 2
            return np.asarray(np.where(seen, weights, 0.0) - expected)

        residuals, u = _balance(expect, eta + np.log(time))
        return residuals, float(np.clip((ends - u[seen]) / (ends - falls), 0.0, 1.0).sum())


@dataclass(frozen=True)
class HazardRound(_EventRound):
    """One round of a regression with proportional hazards and a baseline of each party, which stays there.

    Rows with a missing entry are left out.  Numbers are clipped to their declared ranges.  The model is Cox's with
    parties as strata, of times in equal intervals [Prentice1978]_.

    Parameters
    ----------
    columns, outcome, n_rounds, noise, before
        As of `PoissonRound`.
    time : NumberColumn
        From 0 to the longest time.  A row that is under observation after it leaves then.
    n_intervals : int, default=10
        Equal parts of the longest time.

    Raises
    ------
    AgreementError
        As of `LogisticRound`, or if times do not begin at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import CategoryColumn, HazardRound, NumberColumn
    >>> drug, died, month = CategoryColumn("drug", ["old", "new"]), CategoryColumn("died", [0, 1]), ("month", 0, 10)
    >>> table = {"drug": np.repeat(["old", "new"], 200), "died": np.repeat([1, 0, 1, 0], [100, 100, 50, 150])}
    >>> table["month"] = np.repeat([1, 10, 1, 10], [100, 100, 50, 150])
    >>> round = HazardRound([drug], died, n_rounds=1, time=NumberColumn(*month))
    >>> round.names
    ('drug=new',)
    >>> bool(np.exp(round.result(round.part(table), n_parties=1, noise=0.0).params) < 0.6)
    True
    """

    n_intervals: int = field(default=_N_INTERVALS, kw_only=True)

    title: ClassVar[str] = "proportional hazards"
    tells: ClassVar[str] = (
        "how the hazard changes with the other columns, within parties, after each round; events by interval; and more "
        "closely than counts do, how many events each level has"
    )
    of_ratios: ClassVar[str] = "hazard ratio"
    _own: ClassVar[str] = "a baseline"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_intervals < 1:
            raise AgreementError(f"HazardRound: expected at least one interval, got {self.n_intervals}.")
        if self.before is not None:
            shares = np.array(self.before.shares)
            if len(shares) != self.n_intervals or not (shares >= 0).all() or shares.sum() > 1 + _ROUNDING:
                raise AgreementError(f"HazardRound: expected shares of {self.n_intervals} intervals, 1 together.")

    @property
    def _most_expected(self) -> FloatArray:
        """Return C of each interval, shape (n_intervals,)."""
        if self.before is None:
            return np.full(self.n_intervals, _MOST_EXPECTED / self.n_intervals)
        return _MOST_EXPECTED * np.array(self.before.shares)

    @property
    def _spread_of_head(self) -> FloatArray:
        by_interval = np.full(self._is_first * self.n_intervals, self.noise_of_rows)
        head = super()._spread_of_head
        return np.concatenate([head[:-1], by_interval, head[-1:]])

    @property
    def _information_moved(self) -> float:
        # If the time changes, so does the place: around both, other rows become nearer or farther by half a row each.
        return 1.5 * super()._information_moved

    @property
    def _counts_moved(self) -> float:
        # An event that comes or goes has an interval; if it moves to another, the number of events stays.
        return super()._counts_moved + 1

    def _place(self, time: FloatArray) -> NDArray[np.intp]:
        """Return the interval of each time, shape (n_rows,): an end belongs to its interval."""
        # Also if rounding puts it a little beyond.
        return np.clip(np.ceil(time * self.n_intervals - 1e-9).astype(np.intp) - 1, 0, self.n_intervals - 1)

    def _count_by_interval(self, time: FloatArray, y: FloatArray) -> FloatArray:
        events = np.bincount(self._place(time), y, self.n_intervals)
        return np.asarray(events[: self._is_first * self.n_intervals], dtype=np.float64)

    def _find_residuals(self, eta: FloatArray, time: FloatArray, seen: NDArray[np.bool_]) -> tuple[FloatArray, float]:
        place = self._place(time)
        total = np.zeros(len(eta))
        weight = 0.0
        for j, most in enumerate(self._most_expected):
            own = seen & (place == j)
            observed = np.where(own, 1.0, np.clip(time * self.n_intervals - j, 0.0, 1.0))
            residuals = _find_grouped_residuals(eta, own, observed, most)
            total += residuals
            weight += float(residuals[own].sum())
        return total, weight

    def _shares(self, head: FloatArray) -> tuple[float, ...]:
        if self.before is not None:
            return self.before.shares
        events = np.maximum(head[self._n_counts : -1], 0.0)
        own = events / max(float(events.sum()), 1.0)
        equal = np.full(self.n_intervals, 1 / self.n_intervals)
        return tuple((_SHARED_EQUALLY * equal + (1 - _SHARED_EQUALLY) * own).tolist())


def _find_grouped_residuals(eta: FloatArray, seen: NDArray[np.bool_], observed: FloatArray, most: float) -> FloatArray:
    """Return the residual of each row in an interval, with the baseline at which they add up to 0, shape (n_rows,).

    Parameters
    ----------
    eta : ndarray of shape (n_rows,)
        Logarithms of relative hazards.
    seen : ndarray of bool of shape (n_rows,)
        Which rows have their event in the interval.
    observed : ndarray of shape (n_rows,)
        The part of the interval that a row was at risk; 1 with an event.
    most : float
        The events that a row counts for at most.
    """
    residuals = np.zeros(len(eta))
    at_risk = observed > 0
    events = seen[at_risk]
    # Without an event, or without a row that has none, the baseline is infinite, and all residuals are 0.
    if not events.any() or events.all():
        return residuals

    def expect(u: FloatArray) -> FloatArray:
        v = np.minimum(u, most)
        with np.errstate(over="ignore"):
            return np.asarray(np.where(events, v / np.expm1(u), -v))

    residuals[at_risk], _ = _balance(expect, eta[at_risk] + np.log(observed[at_risk]))
    return residuals


def _balance(expect: Callable[[FloatArray], FloatArray], log_expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return residuals that add up to 0, and the expected events u at which they do, each of shape (n_rows,).

    Parameters
    ----------
    expect : callable
        Returns residuals, which fall with expected events: some are above 0 for the fewest, and none for the most.
    log_expected : ndarray of shape (n_rows,)
        Logarithms of expected events, but for what stays at the party.
    """

    def shift(a: float) -> FloatArray:
        return np.asarray(np.exp(np.clip(a + log_expected, -_LARGEST, _LARGEST)))

    low = -_FARTHEST_BASELINE - float(log_expected.max())
    high = _FARTHEST_BASELINE - float(log_expected.min())
    a = scipy.optimize.brentq(lambda a: float(expect(shift(a)).sum()), low, high, xtol=1e-13, maxiter=500)
    u = shift(a)
    return expect(u), u


def _usual_square(column: NumberColumn | CategoryColumn) -> float:
    """Return the squared difference of two rows in a column that is usual, in units of its range."""
    if isinstance(column, CategoryColumn):
        return _USUAL_OF_PAIR if len(column.levels) == 2 else _USUAL_OF_LEVELS
    # Few whole numbers, as 0 and 1 for no and yes, fill their range: so far apart are two of equally frequent ones.
    # If that were not usual, columns that go together would seem to do so less, and steps lead to other ratios.
    width = column.high - column.low
    return (width + 2) / (6 * width) if width in _FEW_WHOLE else _USUAL_OF_NUMBER


def _compare_neighbours(X: FloatArray, reach: float) -> FloatArray:
    """Return the number of rows times their covariance, from differences of rows that are near each other.

    Rows lie in a circle, and each is compared with ten on either side; of fewer rows, all are.  A difference whose
    squared length is above `reach` weighs less in proportion.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_coefficients)

    Returns
    -------
    ndarray of shape (n_coefficients, n_coefficients)
    """
    n = len(X)
    total = np.zeros((X.shape[1], X.shape[1]))
    # Among as few rows, each difference comes twice, from either side.
    is_small = n <= 2 * _NEAR
    n_near = n - 1 if is_small else _NEAR
    for k in range(1, n_near + 1):
        apart = X - np.roll(X, k, axis=0)
        weights = reach / np.maximum((apart**2).sum(axis=1), reach)
        total += (apart * weights[:, None]).T @ apart
    return total / max(2 * n_near, 1)
