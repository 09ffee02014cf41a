r"""Times to an event in sums: curves and rates by group, and the log-rank test, stratified by party.

Each party counts events and censored rows by agreed intervals, and makes its own log-rank statistic from exact times.
A row changes that statistic through the risk sets of all earlier events, by up to the cumulative hazard of the party.
So an event counts in full up to a cumulative hazard of 3, where 5 % survive, and less and less up to 5, where its
weight is 0.  The weights depend on earlier times alone, so that the test stays valid.

Why that bounds the change by a row: where a row is added to n at risk, their mean moves by 1/(n+1) of its distance.
Weighted by d, these moves add up to the area below the weights, and one step at most (`WEIGHTS`).  The cumulative
hazard before a time changes by 1/(n+1) at most, as the sum of d/(n(n+1)) over earlier times does not exceed that, and
the row's own event adds no more.  The change of a weight is at most the slope times that, where the hazard is within
1/2 of the slope's ends; so weights change sums of d by the slope times its width, 1, and a step (`WEIGHTS_CHANGE`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from .._typing import FloatArray
from ..errors import AgreementError
from ..linalg import below_zero, largest_noise
from ..sums._statistic import (
    COUNT_NOISE,
    RIDGE_MOVED,
    ResultTable,
    Statistic,
    StatisticResult,
    StudyTable,
    refuse_total,
)
from ._cells import noisy
from ._columns import (
    CERTAINTY,
    FEWEST,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    count_text,
    group_name,
    number_text,
    p_text,
)

# Cumulative hazards of a party up to which an event has weight 1, and from which on it has weight 0.
_FULL = 3.0
_NONE = 5.0
_SLOPE = 1 / (_NONE - _FULL)
WEIGHTS = (_FULL + _NONE) / 2 + 1
"""The most that weights times d/n add up to over a party's event times: the area below the weights, and a step."""
SQUARED_WEIGHTS = _FULL + (_NONE - _FULL) / 3 + 1
"""The same for squared weights."""
WEIGHTS_CHANGE = 1 + 2 * _SLOPE
"""The most that a row changes the weights, times d, over all event times: the cumulative hazard changes by 1/(n+1)."""
SQUARED_WEIGHTS_CHANGE = 1 + 4 * _SLOPE
"""The same for squared weights."""
# How far replacing a row moves counts (2) and centred times within intervals (1/2): squared.
_COUNTS_MOVED = 2.5
# `reach`, `top` and `change` of `Survival._moved`, for two groups and for more.
_OF_TWO = (1.0, 0.25, 1.0)
_OF_MORE = (math.sqrt(2), 1.0, 2 * math.sqrt(2))
# Standard deviations of its noise that a number has to be above 0, to divide by it.
_CERTAIN = 3.0
_Z = float(special.ndtri(0.975))
# Of the number of events, and in events: more than rounding moves a sum.
_ROUNDING = 1e-6


class RiskSets(NamedTuple):
    """The risk sets of one party, by distinct time; `place` is the time's number of each row."""

    times: FloatArray
    place: NDArray[np.intp]
    at_risk: FloatArray
    events: FloatArray
    weights: FloatArray

    def sums(self, values: FloatArray) -> FloatArray:
        """Return sums of rows with each time, shape (n_times, n_columns), from shape (n_rows, n_columns)."""
        totals = np.zeros((len(self.times), values.shape[1]))
        np.add.at(totals, self.place, values)
        return totals

    def sums_at_risk(self, values: FloatArray) -> FloatArray:
        """Return sums over each risk set, shape (n_times, n_columns)."""
        return np.asarray(np.cumsum(self.sums(values)[::-1], axis=0)[::-1])


def risk_sets(time: FloatArray, event: FloatArray) -> RiskSets:
    """Return the risk sets at all times of a party, and the weights of events, which earlier ones decide."""
    times, place = np.unique(time, return_inverse=True)
    at_risk = np.cumsum(np.bincount(place, minlength=len(times))[::-1], dtype=np.float64)[::-1]
    events = np.asarray(np.bincount(place, event, len(times)), dtype=np.float64)
    # The cumulative hazard before each time: a weight must not depend on the event that it is for.
    hazard = np.r_[0.0, np.cumsum(events / at_risk)][: len(times)]
    return RiskSets(times, place, np.asarray(at_risk), events, np.clip((_NONE - hazard) * _SLOPE, 0.0, 1.0))


def read_times(time: NumberColumn, event: CategoryColumn, table: StudyTable) -> FloatArray:
    """Return times over the longest one, and whether an event was seen by then, shape (n_rows, 2); NaN if missing.

    The second level of `event` is that it was seen.
    """
    scaled = time.scale(table) + 0.5
    seen = event.indicators(table)
    beyond = time.numbers(table) > time.high
    return np.column_stack([scaled, np.where(seen.any(axis=1), seen[:, 1] & ~beyond, np.nan)])


def check_time(time: NumberColumn, what: str) -> None:
    """Refuse times that do not begin at 0."""
    if time.low != 0:
        raise AgreementError(f"{what}: expected {time.name!r} to begin at 0, got {time.low:g}. Count times from 0.")


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """One group by interval; NaN where fewer than ten rows may be at risk.

    Attributes
    ----------
    group : object
        Level of the column that groups rows; None for all rows.
    at_risk, events, censored : ndarray of shape (n_intervals,)
        Rows at risk as the interval begins, events, and rows that leave without one.
    person_time : ndarray of shape (n_intervals,)
        In units of time.
    survival, low, high : ndarray of shape (n_intervals,)
        Part without an event at the interval's end, with a 95 % interval.
    rates, rates_low, rates_high : ndarray of shape (n_intervals,)
        Events per unit of time, with 95 % intervals.
    median : tuple of float
        Interpolated median time, and its 95 % interval; NaN if the curve does not reach it.
    noise_of_rows : float
        Standard deviation of the noise in the number of rows of the group.
    """

    group: Any
    at_risk: FloatArray
    events: FloatArray
    censored: FloatArray
    person_time: FloatArray
    survival: FloatArray
    low: FloatArray
    high: FloatArray
    rates: FloatArray
    rates_low: FloatArray
    rates_high: FloatArray
    median: tuple[float, float, float]
    noise_of_rows: float


@dataclass(frozen=True, eq=False)
class SurvivalResult(StatisticResult):
    """Curves by group, and how groups differ within parties.

    Attributes
    ----------
    edges : ndarray of shape (n_intervals + 1,)
        Where intervals begin and end; an end belongs to its interval.
    curves : tuple of SurvivalCurve
    chi_square, degrees_of_freedom, p_value : float
        The log-rank test, stratified by party.  NaN without groups, or if noise could decide.
    hazard_ratio : tuple of float
        That of the second group against the first, and its 95 % interval, stratified by party.  NaN unless there are
        two groups.
    noise, least_noise : float
        Standard deviations of the noise in a count of events, and of that with which a count can be read from all
        counts of the message, at least.
    noise_of_test : float
        Standard deviation of the noise with which the test's sums may tell the events of a small group.
    """

    edges: FloatArray
    curves: tuple[SurvivalCurve, ...]
    chi_square: float
    degrees_of_freedom: int
    p_value: float
    hazard_ratio: tuple[float, float, float]
    noise: float
    least_noise: float
    noise_of_test: float
    by: str | None = None

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return the column and its levels that may have fewer than ten rows."""
        few = [each for each in self.curves if each.at_risk[0] < FEWEST + CERTAINTY * each.noise_of_rows]
        return tuple((self.by, each.group) for each in few if self.by is not None)

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, all groups together, and the standard deviation of its noise."""
        n = sum(float(each.at_risk[0]) for each in self.curves)
        return n, math.hypot(*(each.noise_of_rows for each in self.curves))

    @property
    def fault(self) -> str | None:
        """Return that a count is below zero by more than noise, if one is."""
        # The noise of a count is less than 1.15 times that of its largest part.
        spare = 1.15 * largest_noise(1, self.noise) + 1e-6
        if min(float(min(each.events.min(), each.censored.min())) for each in self.curves) < -spare:
            return "a count is far below zero"
        return None

    def table(self) -> ResultTable:
        """Return a line for each group and interval with enough rows at risk."""
        rows = []
        for each in self.curves:
            group = group_name(each.group)
            for k in np.flatnonzero(~np.isnan(each.survival)):
                counts = (each.at_risk[k], each.events[k], each.censored[k])
                figures = (each.survival[k], each.low[k], each.high[k])
                rates = (each.person_time[k], each.rates[k], each.rates_low[k], each.rates_high[k])
                ends = map(number_text, self.edges[k : k + 2])
                rows.append((group, *ends, *map(count_text, counts), *map(number_text, (*figures, *rates))))
        first = ("group", "from", "to", "at risk", "events", "censored", "survival", "low", "high")
        return ResultTable((*first, "person-time", "rate", "rate low", "rate high"), rows, " ".join(self._sentences()))

    def _sentences(self) -> Iterator[str]:
        yield f"{noisy(self.least_noise)} Intervals include it."
        yield "Curves end where fewer than ten rows may be at risk."
        for each in self.curves:
            whose = "" if each.group is None else f" of {each.group}"
            median, low, high = (number_text(value) or "not reached" for value in each.median)
            if math.isnan(each.median[1]):
                yield f"Median{whose}: not reached, nor is its 95 % interval."
                continue
            yield f"Median{whose}: {median} (95 % interval {low} to {high})."
        if self.by is None:
            return
        yield f"The test's sums may tell the events of a small group with noise of {self.noise_of_test:.2g}."
        if math.isnan(self.p_value):
            yield "No log-rank test: there are too few events for as much noise."
            return
        yield (
            f"Log-rank test, stratified by party: chi-square {self.chi_square:.2f} (df {self.degrees_of_freedom}), "
            f"p {p_text(self.p_value)}."
        )
        if not math.isnan(self.hazard_ratio[0]):
            ratio, low, high = map(number_text, self.hazard_ratio)
            first, second = (each.group for each in self.curves)
            yield f"Hazard ratio of {second} against {first}, within parties: {ratio} ({low} to {high})."


@dataclass(frozen=True)
class Survival(Statistic):
    """Life tables of groups by agreed intervals, and the log-rank test, stratified by party.

    Rows with a missing entry are left out.  A row that is under observation after the longest time leaves then.  A
    censored row counts as at risk for the part of its interval that it was observed; if all times are ends of
    intervals, the curve is that of Kaplan and Meier.

    Parameters
    ----------
    time : NumberColumn
        From 0 to the longest time.
    event : str
        The column that is 1 if an event was seen, and 0 if not.
    by : CategoryColumn, optional
        Groups rows.
    n_intervals : int, default=20
        Equal parts of the longest time.
    noise : float
        Of the log-rank statistic: a row is hidden as well as by this noise in `RidgeSums`.
    count_noise : float, default=2
        Standard deviation of noise, in rows, that would hide a row as well in counts of all intervals.  The noise of
        one interval's count is 1.6 times as large, so that the noise of their sums hardly grows [Fichtenberger2023]_.

    Raises
    ------
    AgreementError
        If times do not begin at 0, or there are fewer than two intervals.

    Notes
    -----
    Intervals of a survival invert the score test, with the rows that Greenwood's variance says are effective
    [Rothman1978]_, and the noise.  The hazard ratio is that of Mantel and Haenszel [Greenland1985]_.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import NumberColumn, Survival
    >>> months = Survival(NumberColumn("month", 0, 24), "died", n_intervals=4)
    >>> table = {"month": np.repeat([6, 12, 24], [20, 30, 50]), "died": np.repeat([1, 1, 0], [20, 30, 50])}
    >>> months.result(months.part(table), n_parties=1, noise=0.0).curves[0].survival
    array([0.8, 0.5, 0.5, 0.5])
    """

    time: NumberColumn
    event: str
    by: CategoryColumn | None = None
    n_intervals: int = 20
    noise: float = USUAL_NOISE
    count_noise: float = COUNT_NOISE

    title: ClassVar[str] = "survival"
    tells: ClassVar[str] = (
        "rows at risk and events by interval, in each group, and how groups differ; and more closely than counts do, "
        "the events of a small group"
    )
    # The noise in all its rows is about twice that of other counts.
    own_copies: ClassVar[float] = 0.5
    keeps_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_time(self.time, "Survival")
        if self.n_intervals < 2:
            raise AgreementError(f"Survival: expected at least two intervals, got {self.n_intervals}.")

    @property
    def _groups(self) -> tuple[Any, ...]:
        return (None,) if self.by is None else tuple(self.by.levels)

    @property
    def _n_compared(self) -> int:
        """Return in how many numbers the observed and expected events of groups are compared."""
        # Of two groups, both parts of one difference, which the hazard ratio needs.
        return max(len(self._groups) - 1, min(len(self._groups), 2))

    @property
    def _counting(self) -> FloatArray:
        r"""Return the matrix that is applied to counts of intervals, shape (n_intervals, n_intervals).

        The square root of the matrix of cumulative sums, with columns of length 1 at most.  With equal noise after it,
        that of cumulative sums grows as the logarithm of n_intervals.
        """
        k = np.arange(1, self.n_intervals)
        root = scipy.linalg.toeplitz(np.r_[1.0, np.cumprod(1 - 1 / (2 * k))], np.zeros(self.n_intervals))
        return np.asarray(root / np.linalg.norm(root[:, 0]))

    @property
    def _moved(self) -> tuple[float, float]:
        """Return how far replacing one row moves the observed less expected events, and their variance, at most.

        A row is an event once, moves the shares p of the groups at risk by 1/(n+1), and the weights.  Groups differ by
        `reach` at most, their variance has norm `top`, and changes by `change` for each unit of p.
        """
        reach, top, change = _OF_TWO if len(self._groups) == 2 else _OF_MORE
        first = reach * (2 + WEIGHTS + 2 * WEIGHTS_CHANGE)
        return first, (top + change) * SQUARED_WEIGHTS + 2 * top + 2 * top * SQUARED_WEIGHTS_CHANGE

    @property
    def _noises(self) -> tuple[float, float]:
        """Return the noise of the compared events, and that on the diagonal of their variance."""
        first, second = self._moved
        return self.noise / RIDGE_MOVED * math.sqrt(2) * first, self.noise / RIDGE_MOVED * math.sqrt(2) * second

    @property
    def _of_counts(self) -> float:
        return self.count_noise * math.sqrt(self.copies)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        counts = np.full(4 * self.n_intervals * len(self._groups), self._of_counts)
        if self.by is None:
            return counts
        i, j = np.triu_indices(len(self._groups) - 1)
        compared, variance = self._noises
        of_variance = np.where(i == j, variance, math.sqrt(0.5) * variance)
        return np.concatenate([counts, np.full(self._n_compared, compared), of_variance])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        counts = math.sqrt(_COUNTS_MOVED) / self._of_counts
        if self.by is None:
            return counts
        return math.hypot(counts, RIDGE_MOVED / self.noise)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the complete rows of a party: time, event and group, shape (n_rows, 2 + n_groups)."""
        rows = read_times(self.time, CategoryColumn(self.event, (0, 1)), table)
        groups = np.ones((len(rows), 1))
        if self.by is not None:
            groups = self.by.indicators(table).astype(np.float64)
        return np.asarray(np.column_stack([rows, groups])[~np.isnan(rows).any(axis=1) & groups.any(axis=1)])

    def join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the rows of both batches: risk sets need all of them."""
        return np.vstack([first, second])

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's counts, times within intervals, and log-rank statistic, shape (n_numbers,)."""
        time = sums[:, 0]
        event = sums[:, 1]
        groups = sums[:, 2:]
        parts = time * self.n_intervals
        # An end belongs to its interval, also if rounding puts it a little beyond.
        place = np.clip(np.ceil(parts - 1e-9).astype(int) - 1, 0, self.n_intervals - 1)
        left = np.clip(place + 1 - parts, 0.0, 1.0) - 0.5
        numbers: list[FloatArray] = []
        for group in groups.T:
            counted = (group * event, group * (1 - event))
            events, censored = (np.bincount(place, each, self.n_intervals) for each in counted)
            # Events add up from the first interval on, and censored rows from the last, to those at risk.
            numbers += [self._counting @ events, self._counting @ censored[::-1]]
            numbers += [np.asarray(np.bincount(place, each * left, self.n_intervals), float) for each in counted]
        if self.by is not None:
            numbers += self._compare_groups(time, event, groups)
        return np.concatenate(numbers)

    def _compare_groups(self, time: FloatArray, event: FloatArray, groups: FloatArray) -> list[FloatArray]:
        """Return observed less expected events of all groups but the first, or both parts of it, and their variance."""
        sets = risk_sets(time, event)
        n = sets.at_risk
        d = sets.events
        w = sets.weights
        # p: shares of the groups at risk, which is how events fall on them by chance.
        p = sets.sums_at_risk(groups)[:, 1:] / n[:, None]
        own = sets.sums(groups * event[:, None])[:, 1:]
        others = d[:, None] - own
        # Tied rows were at risk for half of their interval. The same goes from both parts: their difference, which is
        # tested, stays, and their ratio becomes one of rates; without it, it is one of risks, which tends to one.
        tied = own * others / (2 * n[:, None])
        parts = own * (1 - p) - tied, others * p - tied
        # Of the hypergeometric distribution, for several events at one time.
        scale = w**2 * d * (n - d) / np.maximum(n - 1, 1)
        V = np.diag(scale @ p) - p.T @ (scale[:, None] * p)
        compared = [w @ part for part in parts]
        if len(self._groups) != 2:
            compared = [w @ (parts[0] - parts[1])]
        return [*compared, V[np.triu_indices(len(V))]]

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> SurvivalResult:
        """Return curves and rates, and the test if there are groups."""
        n_counts = 4 * self.n_intervals
        p = len(self._groups) - 1
        counts = total[: n_counts * (p + 1)].reshape(p + 1, n_counts)
        curves = [self._curve(group, own, noise) for group, own in zip(self._groups, counts, strict=True)]
        chi_square = p_value = math.nan
        ratio = (math.nan, math.nan, math.nan)
        if self.by is not None:
            compared = total[counts.size :][: self._n_compared]
            V = np.zeros((p, p))
            V[np.triu_indices(p)] = V.T[np.triu_indices(p)] = total[counts.size + self._n_compared :]
            self._check_compared(compared, V, np.array([each.events.sum() for each in curves]), noise)
            chi_square, p_value = self._test(compared, V, noise)
            if len(self._groups) == 2 and not math.isnan(p_value):
                ratio = self._ratio(compared, float(V[0, 0]), noise)
        edges = np.linspace(0.0, self.time.high, self.n_intervals + 1)
        of_count = float(np.max(self._noise_of_counts[0]))
        noises = (of_count * noise, self.count_noise * noise, self._noises[0] * noise)
        result = SurvivalResult(edges, tuple(curves), chi_square, p, p_value, ratio, *noises)
        return result if self.by is None else replace(result, by=self.by.name)

    def _check_compared(self, compared: FloatArray, V: FloatArray, events: FloatArray, noise: float) -> None:
        """Raise a ShareError if groups differ by more than noise and their `events` explain, shape (n_groups,)."""
        of_compared, of_variance = (each * noise for each in self._noises)
        refuse_total(below_zero(V, of_variance), self.title)
        n_events = float(events.sum())
        # Weights are 1 at most: so neither a difference nor the trace of its variance exceeds the number of events.
        of_group = noise * float(np.linalg.norm(self._noise_of_counts[0][: self.n_intervals].sum(axis=0)))
        of_events = of_group * math.sqrt(len(events))
        spare = largest_noise(1, math.hypot(of_events, of_compared, math.sqrt(len(V)) * of_variance))
        if max(float(np.abs(compared).max()), float(np.trace(V))) > n_events + spare + _ROUNDING * (1 + abs(n_events)):
            refuse_total("groups differ by more events than there are", self.title)
        if len(events) == 2:
            refuse_total(find_contradiction(compared[::-1], events, of_compared, of_group), self.title)

    def _test(self, compared: FloatArray, V: FloatArray, noise: float) -> tuple[float, float]:
        """Return chi-square of the groups' differences, and its p value; NaN if noise could decide."""
        of_compared, of_variance = (each * noise for each in self._noises)
        U = compared
        noise_of_U = of_compared**2
        if len(self._groups) == 2:
            # Both parts of the difference have noise.
            U = compared[:1] - compared[1:]
            noise_of_U *= 2
        if scipy.linalg.eigvalsh(V)[0] <= max(_CERTAIN * of_variance * math.sqrt(2 * len(V)), 1e-10):
            return math.nan, math.nan
        S = V + noise_of_U * np.eye(len(V))
        chi_square = float(U @ scipy.linalg.solve(S, U, assume_a="pos"))
        if not of_variance:
            return chi_square, float(scipy.stats.chi2.sf(chi_square, len(V)))
        # The variance has noise, as that of a sample has.
        freedom = 2 * (scipy.linalg.eigvalsh(S)[0] / of_variance) ** 2
        return chi_square, float(scipy.stats.f.sf(chi_square / len(V), len(V), freedom))

    def _ratio(self, compared: FloatArray, V: float, noise: float) -> tuple[float, float, float]:
        """Return the hazard ratio of two groups and its interval; NaN if noise could decide."""
        of_part = self._noises[0] * noise
        if compared.min() <= _CERTAIN * of_part:
            return math.nan, math.nan, math.nan
        first, second = compared.tolist()
        half = _Z * math.sqrt(V / (first * second) + of_part**2 * (first**-2 + second**-2))
        return first / second, first / second * math.exp(-half), first / second * math.exp(half)

    @property
    def _noise_of_counts(self) -> tuple[FloatArray, FloatArray]:
        """Return the noise of all numbers of a group as a matrix, and how these give rows at risk by interval."""
        m = self.n_intervals
        undo = np.linalg.inv(self._counting)
        noises = self._of_counts * scipy.linalg.block_diag(undo, undo[::-1], np.eye(2 * m))
        later = np.triu(np.ones((m, m)))
        return noises, np.column_stack([later, later, np.zeros((m, 2 * m))])

    def _curve(self, group: Any, own: FloatArray, noise: float) -> SurvivalCurve:
        """Return one group's curve from its numbers, shape (4 * n_intervals,)."""
        m = self.n_intervals
        width = self.time.high / self.n_intervals
        noises, to_risk = self._noise_of_counts
        noises = noises * noise
        events, censored = np.linalg.solve(self._counting, own[: 2 * m].reshape(2, m).T).T
        x = np.r_[events, censored[::-1], own[2 * m :]]
        # Rows leave before an interval's end, on average by the half and what is added to it.
        one = np.eye(m)
        none = np.zeros((m, m))
        to_exposed = to_risk - np.column_stack([none, one / 2, none, one])
        to_time = to_exposed - np.column_stack([one / 2, none, one, none])
        to_events = np.column_stack([one, none, none, none])
        at_risk = to_risk @ x
        exposed = np.maximum(to_exposed @ x, 1.0)
        time = np.maximum(to_time @ x, 1e-9)
        of_risk = np.linalg.norm(to_risk @ noises, axis=1)
        hazard = events / exposed
        rate = events / time
        survival = np.cumprod(1 - hazard)
        # Noise moves the logarithm of the curve by its changes of all hazards so far, to first order.
        moved = (to_events - hazard[:, None] * to_exposed) / (exposed * np.maximum(1 - hazard, 1e-9))[:, None]
        of_survival = np.abs(survival) * np.linalg.norm(np.cumsum(moved @ noises, axis=0), axis=1)
        of_rate = np.linalg.norm((to_events - rate[:, None] * to_time) @ noises, axis=1) / time
        # Greenwood's variance is that of a share among so many rows; with no event, their harmonic mean.
        likely = np.clip(hazard, 0.0, 1 - 1 / (exposed + 1)) + 1e-9
        remain = np.cumprod(1 - likely)
        effective = (1 - remain) / (remain * np.cumsum(likely / (exposed * (1 - likely))))
        low, high = score_interval(survival, effective, of_survival, 1.0)
        rates = np.array([rate, *score_interval(rate, time, of_rate, 0.0)]) / width
        shown = np.logical_and.accumulate(at_risk >= FEWEST + CERTAINTY * of_risk)
        rates[0] = np.maximum(rates[0], 0.0)
        curve = np.where(shown, [survival, low, high, *rates], np.nan)
        if shown.any():
            # Beyond, noise would decide, and change the curve before.
            falling = scipy.optimize.isotonic_regression(survival[shown], increasing=False).x
            curve[0, shown] = np.clip(falling, 0.0, 1.0)
        median = (self._half(curve[0]), self._half(curve[1]), self._half(curve[2]))
        figures: list[Any] = [at_risk, events, censored[::-1], time * width, *curve, median, float(of_risk[0])]
        return SurvivalCurve(group, *figures)

    def _half(self, curve: FloatArray) -> float:
        """Return the time at which a curve falls to one half; NaN if it does not."""
        below = np.flatnonzero(curve <= 0.5)
        if not below.size:
            return math.nan
        end = int(below[0])
        before = np.r_[1.0, curve][end]
        return float((end + (before - 0.5) / (before - curve[end])) * self.time.high / self.n_intervals)


def score_interval(x: FloatArray, n: FloatArray, noise: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of all y with (x - y)² within y (1 - bound y) / n + noise², times the quantile squared.

    They are cut at 0 and 1 / bound, and then half a standard deviation of the noise apart at least.
    """
    # a y² - b y + c = 0 at both ends.
    a = 1 + bound * _Z**2 / n
    b = 2 * x + _Z**2 / n
    root = np.sqrt(np.maximum(b**2 - 4 * a * (x**2 - _Z**2 * noise**2), 0.0))
    low = np.maximum((b - root) / (2 * a), 0.0)
    high = (b + root) / (2 * a)
    if bound:
        low = np.minimum(low, 1 - noise / 2)
        high = np.minimum(high, 1.0)
    return np.maximum(low, 0.0), np.maximum(high, noise / 2)


def find_contradiction(parts: FloatArray, events: FloatArray, of_part: float, of_events: float) -> str | None:
    r"""Return that parts of a hazard ratio contradict the events of their groups, as a sentence's end; None if not.

    Among :math:`n_1 + n_2 = n` rows at risk at a time, :math:`d_1` and :math:`d_2` of two groups have an event.  The
    time adds :math:`d_1 (n_2 - d_2 / 2) / n` to the first part and :math:`d_2 (n_1 - d_1 / 2) / n` to the second, or
    less by its weight.  As no group has more events than rows, these are 0 at least, and :math:`d_1` and :math:`d_2`
    at most.

    Parameters
    ----------
    parts, events : ndarray of shape (2,)
        Of the first group and the second.
    of_part, of_events : float
        Standard deviations of the noise in each part, and in each group's number of events; all are independent.
    """
    rounding = _ROUNDING * (1 + float(np.abs(events).sum()))
    if parts.min() < -largest_noise(1, of_part) - rounding:
        return "a part of the hazard ratio is far below zero"
    of_difference = math.hypot(of_part, of_events)
    excess = parts - events
    if excess.max() > largest_noise(1, of_difference) + rounding:
        return "a part of the hazard ratio has more events than its group"
    # Noise moves the sum of two less than twice as far as one of them: so the sum may be refused if neither is.
    if excess.sum() > largest_noise(1, math.sqrt(2) * of_difference) + rounding:
        return "the hazard ratio has more events than there are"
    return None
