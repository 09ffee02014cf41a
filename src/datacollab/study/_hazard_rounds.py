r"""Proportional hazards by rounds, with a baseline of each party that stays at home.

Times are grouped into agreed intervals, as in [Prentice1978]_: a row at risk in interval j of party k has its event
there with the probability :math:`1 - e^{-u}`, where :math:`u = e^{a_{kj} + x^\top \beta}`, whatever the hazard does
within the interval, and whatever times are tied.  A row that leaves within an interval counts for the part before.

In each round the parties add up the score of the coefficients :math:`\beta` so far,

.. math:: U = \sum_j \sum_i x_i e_{ij}, \quad
    e_{ij} = \frac{v(u_{ij})}{e^{u_{ij}} - 1} \text{ for an event, and } -v(u_{ij}) \text{ without}, \quad
    v(u) = \min(u, C_j)

where each party solves :math:`\sum_i e_{ij} = 0` for its :math:`a_{kj}`.  Without the bounds C this is the score of
maximum likelihood.  With them a row that is expected to have many events weighs less, and the score is still 0 in the
mean at the true coefficients, as :math:`(1 - e^{-u}) / (e^u - 1) = e^{-u}`.

Every residual falls as a rises.  So putting a row r' in the place of r moves all others of an interval in one
direction, and together by what r and r' differ: U moves by the sum over j of
:math:`e'_j (x' - c_j) - e_j (x - c_j)`, with c a mean of others' x.  A row has one event at most, whose residual is 1
at most; its others are :math:`-C_j` at least, -C together.  So the weights of x, x' and c that are above 0 add up to
1 + C at most, as do those below, and U moves by 1 + C times the largest distance of two rows at most.

The information is that of x among the rows with events: at the true coefficients these are a sample from those at risk
by their hazards.  Adding a row adds a square of :math:`|x_r - c|^2` at most, and only if it has an event.  As rows
beyond C weigh less, only :math:`W = -\sum e_{ij}` of the events count, over rows without one; a row moves W as it moves
the residuals of others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from .._typing import FloatArray
from ..errors import AgreementError
from ..linalg import largest_noise
from ..sums._statistic import StudyTable, refuse_total
from ._columns import NumberColumn, design
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
_OF_INFORMATION = 0.7
_OF_WEIGHT = 0.02
# The part of C that all intervals share equally, so that noise in events by interval takes none away.
_SHARED_EQUALLY = 0.5
# Of sums of shares, and of events.
_ROUNDING = 1e-6
# Logarithms of expected events at which all rows or none have an event in double precision.
_FARTHEST_BASELINE = 60.0
# Logarithms whose numbers double precision holds.
_LARGEST = 600.0


@dataclass(frozen=True)
class HazardRound(RegressionRound):
    """One round of a regression with proportional hazards and a baseline of each party, which stays there.

    Rows with a missing entry are left out.  Numbers are clipped to their declared ranges.  The model is Cox's with
    parties as strata, of times in equal intervals [Prentice1978]_.

    Parameters
    ----------
    columns, outcome, n_rounds, noise, before
        As of `LogisticRound`; the second level of the outcome is the event.
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

    time: NumberColumn = field(kw_only=True)
    n_intervals: int = field(default=_N_INTERVALS, kw_only=True)

    title: ClassVar[str] = "proportional hazards"
    tells: ClassVar[str] = (
        "how the hazard changes with the other columns, within parties, after each round; events by interval; and more "
        "closely than counts do, how many events each level has"
    )
    of_ratios: ClassVar[str] = "hazard ratio"
    _has_others: ClassVar[bool] = False
    _part_of_information: ClassVar[float] = _OF_INFORMATION
    _part_of_others: ClassVar[float] = _OF_WEIGHT
    _own: ClassVar[str] = "a baseline"

    def __post_init__(self) -> None:
        self._check(self.time.name)
        check_time(self.time, "HazardRound")
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
    def _information_moved(self) -> float:
        # What one row takes and another adds are squares, so that their norms add in squares.
        return math.sqrt(2) * self._diameter_squared

    @property
    def _score_moved(self) -> float:
        return (1 + _MOST_EXPECTED) * math.sqrt(self._diameter_squared)

    @property
    def _of_weight(self) -> float:
        # Adding a row moves W up by its residuals without their signs at most, and taking one away moves it down.
        return self._unit * (1 + _MOST_EXPECTED) / math.sqrt(_OF_WEIGHT)

    @property
    def _spread_of_head(self) -> FloatArray:
        """Return the noise of counts, of events by interval, and of W."""
        n_counts = self._n_counts + self._is_first * self.n_intervals
        return np.append(np.full(n_counts, self.noise_of_rows), self._of_weight)

    @property
    def _counts_moved(self) -> float:
        # An event that comes or goes has an interval; if it moves to another, the number of events stays.
        return super()._counts_moved + 1

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the complete rows themselves, one after the other: baselines follow from all of them.

        Each has x, whether it has the event, and its time, shape (n_complete * (n_coefficients + 2),).
        """
        time_and_event = read_times(self.time, self.outcome, table)
        rows = np.column_stack([design(self.columns, table), time_and_event[:, ::-1]])
        return np.asarray(rows[~np.isnan(rows).any(axis=1)].ravel())

    def finish(self, sums: FloatArray) -> FloatArray:
        """Return a party's counts, in the first round, and W, its information and its score, shape (n_numbers,)."""
        p = len(self.names)
        rows = sums.reshape(-1, p + 2)
        X = rows[:, :p]
        y = rows[:, p]
        intervals = rows[:, p + 1] * self.n_intervals
        # An end belongs to its interval, also if rounding puts it a little beyond.
        place = np.clip(np.ceil(intervals - 1e-9).astype(int) - 1, 0, self.n_intervals - 1)
        eta = X @ self._so_far
        score = np.zeros(p)
        weight = 0.0
        for j, most in enumerate(self._most_expected):
            seen = (place == j) & (y == 1)
            observed = np.where(seen, 1.0, np.clip(intervals - j, 0.0, 1.0))
            residuals = _find_residuals(eta, seen, observed, most)
            score += X.T @ residuals
            weight -= residuals[~seen].sum()
        seen = X[y == 1]
        centred = seen - seen.mean(axis=0) if len(seen) else seen
        information = centred.T @ centred
        counts = self._count(X, y)
        events = np.bincount(place, y, self.n_intervals)[: self._is_first * self.n_intervals]
        return np.concatenate([counts, events, [weight], information[np.triu_indices(p)], score])

    def _part_that_counts(self, head: FloatArray, n_outcomes: float, noise: float) -> float:
        weight = float(head[-1])
        spare = largest_noise(1, noise * math.hypot(self._of_weight, self.noise_of_rows)) + _ROUNDING * (1 + weight)
        if not -spare <= weight <= n_outcomes + spare:
            refuse_total("fewer events count than none, or more than there are", self.title)
        return max(weight, 0.0) / max(n_outcomes, 1.0)

    def _shares(self, head: FloatArray) -> tuple[float, ...]:
        if self.before is not None:
            return self.before.shares
        events = np.maximum(head[self._n_counts : -1], 0.0)
        own = events / max(float(events.sum()), 1.0)
        equal = np.full(self.n_intervals, 1 / self.n_intervals)
        return tuple((_SHARED_EQUALLY * equal + (1 - _SHARED_EQUALLY) * own).tolist())


def _find_residuals(eta: FloatArray, seen: FloatArray, observed: FloatArray, most: float) -> FloatArray:
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
    log_expected = eta[at_risk] + np.log(observed[at_risk])

    def expect(a: float) -> FloatArray:
        u = np.exp(np.clip(a + log_expected, -_LARGEST, _LARGEST))
        v = np.minimum(u, most)
        with np.errstate(over="ignore"):
            return np.where(events, v / np.expm1(u), -v)

    low = -_FARTHEST_BASELINE - float(log_expected.max())
    high = _FARTHEST_BASELINE - float(log_expected.min())
    a = brentq(lambda a: float(expect(a).sum()), low, high, xtol=1e-13)
    residuals[at_risk] = expect(a)
    return residuals
