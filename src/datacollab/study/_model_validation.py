r"""External validation of a published logistic model, from counts of its predictions by outcome.

Each party predicts its own rows, and counts them by outcome and by agreed parts of the probability.  Thresholds between
parts are those at which people decide, about equally far apart on the logit scale: there, a part holds predictions that
differ by about the same odds, also where outcomes are rare.  From the total follow

- the area under the curve, as rows of one part count one half; its variance is that of DeLong et al. [1]_, [2]_;
- the calibration slope, and the intercept at a slope of 1 [3]_, by logistic regression on the means of parts, less the
  intercept that the sum of predictions would have there, which is 0 of exact predictions;
- the net benefit at each threshold [4]_.

Two further sums, of predictions and of their squared errors, give observed over expected events, and the Brier score.

Within a part, predictions are taken to lie as a normal distribution of the linear predictor does, whose mean and
variance the counts give.  So parts have means, also those at the ends.  The distribution says how many rows to expect,
too: in calibration a part weighs less, the more of its count is noise.  Without noise, all parts weigh alike.

References
----------
.. [1] Hanley and McNeil (1982). The meaning and use of the area under a receiver operating characteristic (ROC) curve.
   Radiology 143(1), 29-36.
.. [2] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
   characteristic curves: a nonparametric approach. Biometrics 44(3), 837-845.
.. [3] Van Calster et al. (2016). A calibration hierarchy for risk models was defined: from utopia to empirical data.
   Journal of Clinical Epidemiology 74, 167-176.
.. [4] Vickers and Elkin (2006). Decision curve analysis: a novel method for evaluating prediction models. Medical
   Decision Making 26(6), 565-574.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from .._coefficients import INTERCEPT, coefficients_fault
from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import largest_noise
from ..sums._statistic import COUNT_NOISE, ResultTable, Statistic, StatisticResult, StudyTable, refuse_total
from ._cells import Cells, noisy
from ._columns import CERTAINTY, FEWEST, CategoryColumn, Column, NumberColumn, count_text, number_text
from ._survival import score_interval

THRESHOLDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
# Noise in the rows of an outcome, and in both sums, in units of that of other counts.
#
# Where predictions are near 0, squared errors count events; near 1, they count the other rows, and predictions count
# all.  What these tell of the rows of an outcome, 1/2 + 1/4 + 1/5 over the squared noise, is less than one count tells.
_OF_ROWS = math.sqrt(2)
_OF_SUMS = 2.0
# Rows of each outcome that validation needs (Vergouwe et al. 2005; Collins et al. 2016).
_ADVISED = 100
# Standard deviations of its noise that a number has to be above 0, to divide by it.
_CERTAIN = 3.0
_ROUNDING = 1e-6
# Where parts are few, expectation and maximisation take long.
_STEPS = 1000
# Points within a part, over which predictions are averaged.
_N_EVEN = 20
# Two shares of rows do not tell both the mean and the variance of predictions.
_FEWEST_PARTS = 3
# The most rows, of all, that a normal distribution may have in parts that have none: with three different predictions
# it has half of them there, and slopes were off by .2; with ten a seventh, and by .06.
_MOST_IN_GAPS = 0.25
_Z = float(special.ndtri(0.975))
_HEADS = ("figure", "prediction", "rows", "predicted", "value", "low", "high", "all treated")

_Interval = tuple[float, float, float]
_NOTHING: _Interval = (math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class ModelValidationResult(StatisticResult):
    """How a model's predictions agree with outcomes; each interval is a value and its 95 % limits, noise included.

    Attributes
    ----------
    outcome : str
    levels : tuple
        The outcome's levels: without and with the event.
    thresholds : ndarray of shape (n_parts - 1,)
        Each belongs to the part above.
    n_rows, n_events, noise_of_rows : float
        Complete rows, those with the event, and the noise in the latter.
    least_noise : float
        Standard deviation of the noise with which a count can be read from all counts of the message, at least.
    auc : tuple of float
        Area under the curve; rows in one part count one half.
    lost : float
        By how much the area is smaller than that of exact predictions, to first order.
    slope, intercept : tuple of float
        Of logistic recalibration; the intercept is at a slope of 1.  NaN if noise could decide.
    in_gaps : float
        Part of the rows that a normal distribution of the linear predictor has in parts without any.  With more than
        .25, as of few different predictions, there is no slope.
    ratio : tuple of float
        Observed over expected events.
    brier, scaled_brier : tuple of float, float
        The latter is one less the Brier score over that of the observed share as the prediction for all.
    counts : ndarray of shape (2, n_parts)
        Rows without and with the event, by part.
    predicted : ndarray of shape (n_parts,)
        Mean prediction of each part.
    observed : ndarray of shape (3, n_parts)
        Share of events, and its limits; NaN where a part may have fewer than ten rows.
    net_benefit : ndarray of shape (3, n_parts - 1)
        At each threshold, with limits; NaN if fewer than ten rows may lie above it.
    treat_all : ndarray of shape (n_parts - 1,)
        Net benefit of treating all.
    """

    outcome: str
    levels: tuple[Any, Any]
    thresholds: FloatArray
    n_rows: float
    n_events: float
    noise_of_rows: float
    least_noise: float
    auc: _Interval
    lost: float
    slope: _Interval
    intercept: _Interval
    in_gaps: float
    ratio: _Interval
    brier: _Interval
    scaled_brier: float
    counts: FloatArray
    predicted: FloatArray
    observed: FloatArray
    net_benefit: FloatArray
    treat_all: FloatArray

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, and the standard deviation of its noise."""
        return self.n_rows, math.sqrt(2) * self.noise_of_rows

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return that there are few rows of an outcome, or few different predictions, if so."""
        found = []
        fewest = min(self.n_events, self.n_rows - self.n_events)
        if fewest < _ADVISED:
            found.append(
                f"Only about {fewest:.0f} rows have the rarer outcome of {self.outcome!r}. {_ADVISED} are advised for "
                "a validation: with fewer, its figures change much from sample to sample."
            )
        if self.in_gaps > _MOST_IN_GAPS:
            found.append(
                "Predictions lie in parts with none between, as those of a model with few different ones do. So there "
                "is no calibration slope; the observed shares of parts tell how well predictions agree."
            )
        return tuple(found)

    def table(self) -> ResultTable:
        """Return a line for each figure, for each part with enough rows, and for the net benefit at each threshold."""
        figures = {
            "AUC": self.auc,
            "calibration slope": self.slope,
            "calibration intercept": self.intercept,
            "observed / expected": self.ratio,
            "Brier score": self.brier,
            "scaled Brier score": (self.scaled_brier, math.nan, math.nan),
        }
        rows = [(name, "", "", "", *map(number_text, interval), "") for name, interval in figures.items()]
        edges = [f"{100 * each:g}" for each in (0.0, *self.thresholds, 1.0)]
        parts = [f"{low} to {high} %" for low, high in itertools.pairwise(edges)]
        for k in np.flatnonzero(~np.isnan(self.observed[0])):
            texts = (count_text(self.counts[:, k].sum()), *map(number_text, (self.predicted[k], *self.observed[:, k])))
            rows.append(("observed share", parts[k], *texts, ""))
        for k in np.flatnonzero(~np.isnan(self.net_benefit[0])):
            values = (*self.net_benefit[:, k], self.treat_all[k])
            rows.append(("net benefit", f"from {edges[k + 1]} %", "", "", *map(number_text, values)))
        note = (
            f"A logistic model tried on about {self.n_rows:.0f} complete rows, {self.n_events:.0f} of them with "
            f"{self.outcome} {self.levels[1]} (noise {self.noise_of_rows:.1f}). {noisy(self.least_noise)} Intervals "
            "are of 95 %, and include it. The AUC counts pairs of rows in one part of the predictions as one half, "
            f"which makes it smaller by about {self.lost:.1g}. Well calibrated are a slope of 1, an intercept of 0, "
            "and observed / expected of 1. Parts in which fewer than ten rows may be are left out."
        )
        return ResultTable(_HEADS, rows, note)


@dataclass(frozen=True)
class ModelValidation(Statistic):
    """Counts by which a published logistic model is tried on all parties' rows.

    Rows without the outcome, or without an entry that the model uses, are left out.  Numbers are clipped to their
    declared ranges.

    Parameters
    ----------
    outcome : CategoryColumn
        Of two levels; rows of the second have the event.
    columns : sequence of NumberColumn and CategoryColumn
    coefficients : mapping of str to float
        On the logit scale: ``intercept``, a number's own name, or ``column=level``.  One level of a column, the
        reference, needs none.
    thresholds : sequence of float, default=THRESHOLDS
        Ascending probabilities, two at least, between which rows are counted.
    count_noise : float, default=2
        Standard deviation of the noise in counts of the total, in rows, at least.

    Raises
    ------
    AgreementError
        If the outcome has not two levels, or coefficients or thresholds do not fit.

    Notes
    -----
    The AUC and its variance are those of [DeLong1988]_ with ties.  Calibration is that of [VanCalster2016]_, and net
    benefit that of [Vickers2006]_.  Intervals of shares and of the AUC invert a score test, which holds the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import CategoryColumn, ModelValidation, NumberColumn
    >>> columns = [NumberColumn("age", 0, 100)]
    >>> validation = ModelValidation(CategoryColumn("ill", (0, 1)), columns, {"intercept": -3.0, "age": 0.05})
    >>> table = {"age": np.repeat([30, 60, 90], 100), "ill": np.tile(np.repeat([0, 1], 50), 3)}
    >>> found = validation.result(validation.part(table), n_parties=1, noise=0.0)
    >>> round(found.auc[0], 3), found.n_events
    (0.5, 150.0)
    """

    outcome: CategoryColumn
    columns: Sequence[Column]
    coefficients: Mapping[str, float]
    thresholds: Sequence[float] = THRESHOLDS
    count_noise: float = COUNT_NOISE

    title: ClassVar[str] = "validation"
    tells: ClassVar[str] = (
        "how many rows have the outcome, in all and by parts of the predictions of the project's model, and how well "
        "predictions and outcomes agree"
    )

    def __post_init__(self) -> None:
        if len(self.outcome.levels) != 2:
            raise AgreementError(
                f"ModelValidation: expected an outcome {self.outcome.name!r} of two levels, got "
                f"{len(self.outcome.levels)}. Name the level without the event, then that with it."
            )
        levels = {each.name: () if isinstance(each, NumberColumn) else each.levels for each in self.columns}
        if self.outcome.name in levels:
            raise AgreementError(f"ModelValidation: the outcome {self.outcome.name!r} is among the columns. Remove it.")
        if fault := coefficients_fault(self.coefficients, levels):
            raise AgreementError(f"ModelValidation, coefficients: {fault}")
        edges = np.array([0.0, *self.thresholds, 1.0])
        # Two shares of rows do not tell how far predictions vary.
        if len(edges) < 4 or not (np.diff(edges) > 0).all():
            raise AgreementError(
                "ModelValidation, thresholds: expected probabilities in ascending order, two at least."
            )

    @property
    def _n_parts(self) -> int:
        return len(self.thresholds) + 1

    @property
    def _noises(self) -> tuple[float, float, float]:
        """Return the noise of the rows of an outcome, of the numbers sent for parts, and of both sums."""
        of_counts = self.count_noise * math.sqrt(self.copies)
        return _OF_ROWS * of_counts, Cells.of_levels(self._n_parts).raised * of_counts, _OF_SUMS * of_counts

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        of_rows, of_cells, of_sums = self._noises
        of_outcome = np.r_[of_rows, np.full(self._n_parts - 1, of_cells)]
        return np.concatenate([of_outcome, of_outcome, [of_sums, of_sums]])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        of_rows, of_cells, of_sums = self._noises
        sent = Cells.of_levels(self._n_parts).sent
        # A row leaves a part of one outcome, and enters one of the other; within an outcome it moves a little more of
        # the parts' numbers, 2 at most, and leaves the rows.  A prediction and its squared error move by 1 at most.
        apart = 2 / of_rows**2 + 2 * float((sent**2).sum(axis=0).max()) / of_cells**2
        return math.sqrt(max(apart, 2 / of_cells**2) + 2 / of_sums**2)

    def fewest_shown(self, noise: float) -> float:
        """Return how many rows of an outcome a result shows at least, so that none is recognised, at this noise."""
        of_rows, _, _ = self._noises
        return FEWEST + CERTAINTY * noise * of_rows

    def predict(self, table: StudyTable) -> FloatArray:
        """Return the linear predictor of each row, shape (n_rows,); NaN if an entry that the model uses is missing."""
        eta = np.full(1, float(self.coefficients[INTERCEPT]))
        for column in self.columns:
            names = [column.name]
            if isinstance(column, CategoryColumn):
                names = [f"{column.name}={level}" for level in column.levels]
            own = np.array([self.coefficients.get(name, 0.0) for name in names])
            # A gap in a column that the model does not use loses no row.
            if not own.any():
                continue
            if isinstance(column, NumberColumn):
                eta = eta + own * (column.low + (column.scale(table) + 0.5) * column.width)
            else:
                levels = column.indicators(table)
                eta = eta + np.where(levels.any(axis=1), levels @ own, np.nan)
        return np.asarray(eta)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return, over some rows of a party: rows and numbers of parts by outcome, predictions and squared errors."""
        outcomes = self.outcome.indicators(table)
        p = np.broadcast_to(special.expit(self.predict(table)), len(outcomes))
        complete = outcomes.any(axis=1) & ~np.isnan(p)
        outcomes = outcomes[complete]
        p = p[complete]
        part = np.searchsorted(np.asarray(self.thresholds), p, side="right")
        numbers = np.column_stack([np.ones(self._n_parts), Cells.of_levels(self._n_parts).sent.T])[part]
        squares = (p - outcomes[:, 1]) ** 2
        return np.concatenate([(outcomes.T.astype(np.float64) @ numbers).ravel(), [p.sum(), squares.sum()]])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> ModelValidationResult:
        """Return the validation.

        It raises NumericalError if fewer than ten rows may have the event, or may not have it, and ShareError if no
        rows can give the total.
        """
        of_rows, of_cells, of_sums = (noise * each for each in self._noises)
        groups = total[:-2].reshape(2, self._n_parts)
        cells = Cells.of_levels(self._n_parts)
        counts = np.array([cells.rows(own[1:], own[0]) for own in groups])
        # Counts of either outcome from one number that was sent, in units of its noise.
        units = [cells.rows(np.zeros(self._n_parts - 1), of_rows)]
        units += [cells.rows(each, 0.0) for each in of_cells * np.eye(self._n_parts - 1)]
        scored = _Scored(counts, np.array(units), np.asarray(self.thresholds))
        refuse_total(scored.fault(total[-2:], of_sums), self.title)
        few = min(groups[:, 0])
        if few < self.fewest_shown(noise) - _ROUNDING:
            raise NumericalError(
                f"Validation: about {max(few, 0):.0f} rows have the rarer outcome of {self.outcome.name!r}; expected "
                f"{self.fewest_shown(noise):.0f} or more, so that none is recognised. Agree on more rows."
            )
        n = float(groups[:, 0].sum())
        events = float(groups[1, 0])
        parts = scored.normal_parts()
        # Of a calibrated model, the slope is then 1, whatever the parts.
        log_odds = special.logit(parts.predicted)
        slope = _NOTHING
        if parts.are_enough and parts.in_gaps <= _MOST_IN_GAPS:
            slope = scored.fit_slope(log_odds, parts.rows)
        net_benefit, treat_all = scored.net_benefit()
        share = events / n
        brier = _brier(scored, parts.predicted, float(total[-1]), of_sums)
        return ModelValidationResult(
            outcome=self.outcome.name,
            levels=(self.outcome.levels[0], self.outcome.levels[1]),
            thresholds=np.asarray(self.thresholds),
            n_rows=n,
            n_events=events,
            noise_of_rows=of_rows,
            least_noise=self.count_noise * noise,
            auc=scored.auc(),
            lost=scored.tie_loss(1.0 if math.isnan(slope[0]) else slope[0], parts.deviations),
            slope=slope,
            intercept=scored.fit_intercept(log_odds, float(total[-2]), of_sums),
            in_gaps=parts.in_gaps,
            ratio=_ratio(events, n, float(total[-2]), of_rows, of_sums),
            brier=brier,
            scaled_brier=1 - brier[0] / (share * (1 - share)),
            counts=counts,
            predicted=parts.predicted,
            observed=scored.event_shares(),
            net_benefit=net_benefit,
            treat_all=treat_all,
        )


def _interval(value: float, error: float) -> _Interval:
    return value, value - _Z * error, value + _Z * error


def _ratio(events: float, n: float, expected: float, of_rows: float, of_sums: float) -> _Interval:
    """Return observed over expected events, with limits on the scale of logarithms (Debray et al. 2017)."""
    if expected <= _CERTAIN * of_sums:
        return _NOTHING
    error = math.sqrt((1 - events / n) / events + (of_rows / events) ** 2 + (of_sums / expected) ** 2)
    ratio = events / expected
    return ratio, ratio * math.exp(-_Z * error), ratio * math.exp(_Z * error)


def _brier(scored: _Scored, predicted: FloatArray, squares: float, of_sums: float) -> _Interval:
    """Return the mean squared error, whose variance between rows the means of parts give."""
    n = float(scored.counts.sum())
    brier = squares / n
    fourth = float(scored.counts[0] @ predicted**4 + scored.counts[1] @ (1 - predicted) ** 4)
    of_n = scored.noise(np.ones((2, 1)))
    error = math.sqrt(max(fourth / n - brier**2, 0.0) / n + (of_sums**2 + (brier * of_n) ** 2) / n**2)
    return _interval(brier, error)


class _NormalParts(NamedTuple):
    """Linear predictors within parts, as a normal distribution has them; all of shape (n_parts,)."""

    deviations: FloatArray
    predicted: FloatArray
    """Mean predictions."""
    rows: FloatArray
    """Rows to expect."""
    are_enough: bool
    """Whether as many parts have rows as tell the distribution."""
    in_gaps: float
    """Part of the rows to expect that are in parts without any, where noise does not say so."""


@dataclass(frozen=True, eq=False)
class _Scored:
    """Rows by outcome and part of the predictions.

    `counts` have shape (2, n_parts), and `units`, of shape (n_parts, n_parts), what the noise of each number sent for
    one outcome adds to its counts.
    """

    counts: FloatArray
    units: FloatArray
    thresholds: FloatArray

    def noise(self, weights: FloatArray) -> float:
        """Return the noise of a weighted sum of counts; `weights` have shape (2, n_parts), or (2, 1)."""
        every = np.broadcast_to(weights, self.counts.shape)
        return float(np.linalg.norm(self.units @ every.T))

    @property
    def of_part(self) -> FloatArray:
        """Return the noise in the rows of each part, of one outcome, shape (n_parts,)."""
        return np.asarray(np.linalg.norm(self.units, axis=0))

    def fault(self, sums: FloatArray, of_sums: float) -> str | None:
        """Return why no rows give these counts and sums, if so."""
        if self.counts.min() < -largest_noise(1, float(self.of_part.max())) - _ROUNDING:
            return "a count is far below zero"
        low = np.r_[0.0, self.thresholds]
        high = np.r_[self.thresholds, 1.0]
        # The least and the most that a row of each outcome and part adds to predictions, and to squared errors.
        limits = (([low, low], [high, high]), ([low**2, (1 - high) ** 2], [high**2, (1 - low) ** 2]))
        for name, value, ends in zip(("predictions", "squared errors"), sums.tolist(), limits, strict=True):
            for sign, weights in zip((1, -1), map(np.array, ends), strict=True):
                slack = largest_noise(1, math.hypot(of_sums, self.noise(weights))) + _ROUNDING * self.counts.sum()
                if sign * (value - float((weights * self.counts).sum())) < -slack:
                    return f"the sum of {name} does not fit the counts of their parts"
        return None

    def auc(self) -> _Interval:
        """Return the area under the curve; rows of one part are ties."""
        without, having = self.counts
        n_without, n_having = self.counts.sum(axis=1).tolist()
        # Shares of pairs that a row of each part wins.
        wins = (np.cumsum(without) - without / 2) / n_without
        loses = 1 - (np.cumsum(having) - having / 2) / n_having
        area = min(max(float(having @ wins) / n_having, 0.0), 1.0)
        # Variance of both means of such shares (DeLong et al., equation 6).
        variance = float(having @ (wins - area) ** 2) / n_having / (n_having - 1)
        variance += float(without @ (loses - area) ** 2) / n_without / (n_without - 1)
        noise = self.noise(np.array([(loses - area) / n_without, (wins - area) / n_having]))
        # As many rows would give a share with this variance; without any, the rarer outcome's rows.
        rows = area * (1 - area) / variance if variance > 0 < area < 1 else min(n_without, n_having)
        low, high = score_interval(np.array(area), np.array(rows), np.array(noise), 1.0)
        return area, float(low), float(high)

    def tie_loss(self, slope: float, deviations: FloatArray) -> float:
        """Return by how much ties make the area smaller, if predictions within parts follow the calibration slope.

        Of two rows of a part, that with the event is higher in 1/2 + slope d / 4 of cases, to first order, with d the
        mean difference of two linear predictors: 2 / sqrt(pi) deviations, as of a normal distribution.
        """
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        return float((shares[0] * shares[1]) @ deviations * slope / (2 * math.sqrt(math.pi)))

    def event_shares(self) -> FloatArray:
        """Return the share of events in each part, and its limits, shape (3, n_parts)."""
        rows = self.counts.sum(axis=0)
        shown = rows >= FEWEST - _ROUNDING + CERTAINTY * math.sqrt(2) * self.of_part
        n = np.where(shown, rows, np.nan)
        share = np.clip(self.counts[1] / n, 0.0, 1.0)
        noise = self.of_part * np.hypot(share, 1 - share) / n
        return np.array([share, *score_interval(share, n, noise, 1.0)])

    def net_benefit(self) -> tuple[FloatArray, FloatArray]:
        """Return net benefit with limits at each threshold, shape (3, n_parts - 1), and that of treating all."""
        n = float(self.counts.sum())
        odds = self.thresholds / (1 - self.thresholds)
        found = np.full((3, len(odds)), np.nan)
        for k, weight in enumerate(odds.tolist()):
            above = (np.arange(len(odds) + 1) > k).astype(np.float64)
            # A true positive counts 1, a false one the odds of the threshold less than nothing.
            worth = np.outer([-weight, 1.0], above)
            if (above * self.counts).sum() < FEWEST - _ROUNDING + CERTAINTY * self.noise(np.array([above, above])):
                continue
            benefit = float((worth * self.counts).sum()) / n
            variance = max(float((worth**2 * self.counts).sum()) / n - benefit**2, 0.0) / n
            found[:, k] = _interval(benefit, math.hypot(math.sqrt(variance), self.noise((worth - benefit) / n)))
        share = float(self.counts[1].sum()) / n
        return found, share - (1 - share) * odds

    def normal_parts(self) -> _NormalParts:
        """Return linear predictors and predictions of each part, by a normal distribution of linear predictors.

        Its mean and variance are the most likely ones, by expectation and maximisation over the parts.
        """
        cuts = special.logit(self.thresholds)
        edges = np.r_[-np.inf, cuts, np.inf]
        rows = self.counts.sum(axis=0)
        of_both = math.sqrt(2) * self.of_part
        # Noise of empty parts far from all others would widen the distribution.
        rows = np.where(rows > CERTAINTY * of_both + _ROUNDING, rows, 0.0)
        n = max(float(rows.sum()), 1.0)
        middle = np.r_[cuts[0] - 0.5, (cuts[1:] + cuts[:-1]) / 2, cuts[-1] + 0.5]
        means = middle
        centre = float(rows @ means) / n
        variance = max(float(rows @ (means - centre) ** 2) / n, 0.1)
        for _ in range(_STEPS):
            deviation = math.sqrt(variance)
            z = (edges - centre) / deviation
            density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
            share = np.diff(special.ndtr(z))
            is_there = share > 1e-9
            safe = np.where(is_there, share, 1.0)
            shift = (density[:-1] - density[1:]) / safe
            means = np.where(is_there, centre + deviation * shift, middle)
            tails = np.nan_to_num(z, posinf=0.0, neginf=0.0) * density
            within = variance * np.maximum(1 + (tails[:-1] - tails[1:]) / safe - shift**2, 0.0)
            before = centre
            centre = float(rows @ means) / n
            # If all rows are in one part, the variance would fall to 0, by which deviations are divided.
            variance = max(float(rows @ (np.where(is_there, within, 0.0) + (means - centre) ** 2)) / n, 1e-4)
            if max(abs(centre - before), abs(math.sqrt(variance) - deviation)) < _ROUNDING * deviation:
                break
        # The mean of predictions is not that of the mean linear predictor: over even parts of the probability.
        lower = special.ndtr(z)[:-1, None]
        even = (np.arange(_N_EVEN) + 0.5) / _N_EVEN
        eta = centre + deviation * special.ndtri(np.clip(lower + even * share[:, None], 1e-15, 1 - 1e-15))
        predicted = np.where(is_there, special.expit(eta).mean(axis=1), special.expit(middle))
        expected = share * float(self.counts.sum())
        # Twice the noise at which a part counts as empty.
        is_gap = (rows == 0) & (expected > 2 * CERTAINTY * of_both + 1)
        return _NormalParts(
            deviations=np.sqrt(np.where(is_there, within, 0.0)),
            predicted=np.clip(predicted, np.r_[0.0, self.thresholds], np.r_[self.thresholds, 1.0]),
            rows=expected,
            are_enough=int((rows > 0).sum()) >= _FEWEST_PARTS,
            in_gaps=float(share[is_gap].sum()),
        )

    def fit_intercept(self, log_odds: FloatArray, n_expected: float, of_sums: float) -> _Interval:
        """Return the intercept at a slope of 1, of exact predictions; NaN if noise could decide.

        `log_odds` are those of parts, shape (n_parts,).  These are off where predictions within a part are not as a
        normal distribution has them.  So the intercept at which parts have as many events as were seen is less that at
        which they have as many as were predicted.
        """
        rows = self.counts.sum(axis=0)
        ends = list[tuple[float, float, FloatArray]]()
        for n_events in (float(self.counts[1].sum()), n_expected):
            a = self._find_intercept(log_odds, rows, n_events)
            if a is None:
                return _NOTHING
            p = special.expit(a + log_odds)
            ends.append((a, float(rows @ (p * (1 - p))), p))
        (seen, of_seen, p), (predicted, of_predicted, q) = ends
        curvature = p * (1 - p)
        if of_seen <= _CERTAIN * self.noise(np.tile(curvature, (2, 1))):
            return _NOTHING
        # How both intercepts follow the counts of rows without and with the event.
        weights = q / of_predicted + np.array([-p, 1 - p]) / of_seen
        noise = math.hypot(self.noise(weights), of_sums / of_predicted)
        return _interval(seen - predicted, math.hypot(1 / math.sqrt(of_seen), noise))

    def _find_intercept(self, log_odds: FloatArray, rows: FloatArray, n_events: float) -> float | None:
        """Return the intercept at which parts have so many events, by Newton's steps; None if noise could decide."""
        a = 0.0
        for _ in range(_STEPS):
            p = special.expit(a + log_odds)
            information = float(rows @ (p * (1 - p)))
            if information <= _ROUNDING:
                return None
            step = (n_events - float(rows @ p)) / information
            # Far away, a whole step would overshoot.
            a += step * min(1.0, 2 / max(abs(step), 1e-300))
            if abs(step) < 1e-9:
                return a
        return None

    def fit_slope(self, log_odds: FloatArray, expected: FloatArray) -> _Interval:
        """Return the slope of a logistic regression of the event on log odds; NaN if noise could decide.

        `log_odds` and the rows to expect have the shape (n_parts,).
        """
        X = np.array([np.ones_like(log_odds), log_odds])
        theta = np.zeros(2)
        of_part = self.of_part
        for _ in range(_STEPS):
            p = special.expit(theta @ X)
            # Variances of a part's score by its rows, and by the noise of its counts.
            sampled = expected * p * (1 - p)
            weights = np.ones_like(p)
            if of_part.max() > 0:
                weights = sampled / (sampled + of_part**2 * (p**2 + (1 - p) ** 2))
            score = X @ (weights * (self.counts[1] * (1 - p) - self.counts[0] * p))
            curvature = weights * p * (1 - p)
            rows = self.counts.sum(axis=0)
            information = (X * curvature * rows) @ X.T
            # Less the intercept, the slope has a variance, as in a regression.
            last = np.append(-np.linalg.lstsq(information[:-1, :-1], information[:-1, -1], rcond=None)[0], 1.0)
            left = float(last @ information @ last)
            direction = last @ X
            of_left = self.noise(np.tile(curvature * direction**2, (2, 1)))
            if left <= max(_CERTAIN * of_left, _ROUNDING) or not np.isfinite(theta).all():
                return _NOTHING
            step = np.linalg.solve(information, score)
            # Far away, a whole step would overshoot.
            theta = theta + step * min(1.0, 2 / max(np.abs(step).max(), 1e-300))
            if np.abs(step).max() < 1e-9:
                sampling = float((curvature * weights * np.maximum(rows, 0.0)) @ direction**2)
                noise = self.noise(weights * direction * np.array([-p, 1 - p]))
                return _interval(float(theta[-1]), math.hypot(math.sqrt(sampling), noise) / left)
        return _NOTHING
