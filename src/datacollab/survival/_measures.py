"""Kaplan and Meier's curve, measures of survival models, and figures of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from scipy.stats import chi2

from .._require import require
from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ._survival_rows import check_survival, check_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier:
    """A survival curve that falls in steps.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        All different times of rows, ascending.
    survival : ndarray of shape (n_times,)
        Probability of no event up to and at each time.
    variance : ndarray of shape (n_times,)
        Greenwood's, of `survival`.
    at_risk, events : ndarray of shape (n_times,)
        Weights of the rows observed until each time, and of those with their event then.
    """

    times: FloatArray
    survival: FloatArray
    variance: FloatArray
    at_risk: FloatArray
    events: FloatArray

    def __call__(self, times: ArrayLike) -> FloatArray:
        """Return the curve at these times, shape (n_times,); beyond the last time it stays where it was."""
        return _at(self.times, self.survival, check_times(times))

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        r"""Return bounds of the survival at each time by products of beta variables, shapes (n_times,).

        With n rows at risk and d events, the survival falls by a factor that is Beta(n − d + 1, d).  The true curve
        lies below the product of these, and above it times one more factor, Beta(n, 1), of the rows that are left
        ([Fay2013]_).  The bounds are quantiles of an even mixture of both, their "mid-P" interval, with products
        replaced by the beta variables that have their first two moments.  Without censoring it is the mid-P interval
        of a proportion.  It has a width where there was no event yet.
        """
        left = self.at_risk - self.events
        after: FloatArray = np.append(self.at_risk[1:], 0.0)  # those who are watched beyond the time
        # First and second moments of a product of independent beta variables are products of theirs.
        first = np.asarray(np.cumprod((left + 1) / (self.at_risk + 1)), dtype=np.float64)
        second = np.asarray(
            np.cumprod((left + 1) * (left + 2) / ((self.at_risk + 1) * (self.at_risk + 2))), dtype=np.float64
        )
        upper = _beta_of(first, second)
        lower = _beta_of(first * after / (after + 1), second * after / (after + 2))

        def quantile(level: float) -> FloatArray:
            low = np.zeros(len(left))
            high = np.ones(len(left))
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                is_below = (_share_below(upper, middle) + _share_below(lower, middle)) / 2 < level
                low = np.where(is_below, middle, low)
                high = np.where(is_below, high, middle)
            return np.asarray((low + high) / 2)

        return quantile((1 - confidence) / 2), quantile((1 + confidence) / 2)

    def __repr__(self) -> str:
        return f"KaplanMeier(n_times={len(self.times)})"


def kaplan_meier(y: ArrayLike, sample_weight: ArrayLike | None = None) -> KaplanMeier:
    r"""Return Kaplan and Meier's estimate ([Kaplan1958]_), :math:`S(t) = \prod_{t_j \le t} (1 - d_j / n_j)`.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    sample_weight : array-like of shape (n_rows,), optional
        From 0 on.  The variance takes weights as numbers of rows.
    """
    event, time = check_survival(y)
    if sample_weight is None:
        sample_weight = np.ones(len(time))
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != time.shape or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise ValueError("sample_weight must have one finite number from 0 on per row, and one above 0.")
    kept = weight > 0
    times, place = np.unique(time[kept], return_inverse=True)
    events = np.bincount(place, weights=(weight * event)[kept], minlength=len(times)).astype(np.float64)
    ending = np.bincount(place, weights=weight[kept], minlength=len(times)).astype(np.float64)
    at_risk = np.cumsum(ending[::-1])[::-1]
    survival = np.cumprod(1 - events / at_risk)
    left = at_risk - events
    # After a time that nobody survives the curve is 0, and so is its variance.
    terms = np.divide(events, at_risk * left, out=np.zeros(len(times)), where=left > 0)
    variance = np.asarray(survival**2 * np.cumsum(terms))
    return KaplanMeier(times, np.asarray(survival), variance, at_risk, events)


_HALVINGS = 50


def _beta_of(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the parameters of beta variables with these moments; (inf, 0) for the constant 1, and (0, inf) for 0."""
    spread = np.maximum(second - first**2, np.finfo(np.float64).tiny)
    size = np.where((first > 0) & (first < 1), first * (1 - first) / spread - 1, np.inf)
    with np.errstate(invalid="ignore"):
        return np.where(first > 0, first * size, 0.0), np.where(first < 1, (1 - first) * size, 0.0)


def _share_below(parameters: tuple[FloatArray, FloatArray], x: FloatArray) -> FloatArray:
    a, b = parameters
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(a), 0.0, np.where(np.isinf(b), 1.0, betainc(a, b, x)))


def _at(times: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Return values of a curve that falls in steps, and is 1 before the first."""
    return np.append(1.0, values)[np.searchsorted(times, at, side="right")]


def risk_groups(risk: ArrayLike, n_groups: int = 3, *, reference: ArrayLike | None = None) -> NDArray[np.int64]:
    """Divide rows into groups of about equally many by risk, from 0, the lowest; shape (n_rows,).

    Parameters
    ----------
    risk : array-like of shape (n_rows,)
    n_groups : int, default=3
    reference : array-like of shape (n_reference,), optional
        Risks whose quantiles bound the groups; those of the rows by default.  With risks of rows that all parties
        have, such as the anchor's, a group means the same everywhere.
    """
    if n_groups < 2:
        raise ValueError(f"n_groups must be 2 or more; got {n_groups}.")
    values = np.asarray(risk, dtype=np.float64)
    if reference is None:
        reference = values
    bounds = np.quantile(np.asarray(reference, dtype=np.float64), np.arange(1, n_groups) / n_groups)
    # A row at a bound belongs below it, in any order of the rows.
    return np.searchsorted(bounds, values, side="left").astype(np.int64)


@dataclass(frozen=True)
class LogRank:
    """A test of whether groups have one survival curve, by χ²."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def log_rank_test(y: ArrayLike, groups: ArrayLike) -> LogRank:
    """Test by Mantel's log-rank test ([Mantel1966]_) whether two or more groups differ.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    groups : array-like of shape (n_rows,)

    Raises
    ------
    AgreementError
        If there are fewer than two groups, or not one label per row.
    """
    event, time = check_survival(y)
    labels = np.asarray(groups)
    if labels.shape != time.shape:
        raise AgreementError(f"Expected one group per row, shape {time.shape}, got shape {labels.shape}.")
    names, group = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise AgreementError("Expected two groups or more; all rows are of one.")
    times, place = np.unique(time, return_inverse=True)
    member = group[:, None] == np.arange(len(names))
    left, events = np.zeros((2, len(times), len(names)))
    np.add.at(left, place, member)
    np.add.at(events, place, member & event[:, None])
    at_risk = np.cumsum(left[::-1], axis=0)[::-1]
    n = at_risk.sum(axis=1)
    d = events.sum(axis=1)
    part = at_risk / n[:, None]
    expected = (d[:, None] * part).sum(axis=0)
    difference = events.sum(axis=0) - expected
    # Hypergeometric: how d events spread over the groups if all are alike.  One row alone has no choice.
    factor = np.divide(d * (n - d), n - 1, out=np.zeros(len(times)), where=n > 1)
    covariance = np.diag(factor @ part) - (part * factor[:, None]).T @ part
    # The differences add up to 0, so one of them is left out.
    statistic = float(difference[:-1] @ np.linalg.pinv(covariance[:-1, :-1], hermitian=True) @ difference[:-1])
    # A group that was not watched at any event has no say.
    degrees = max(1, int((expected > 0).sum()) - 1)
    return LogRank(statistic, degrees, float(chi2.sf(statistic, degrees)))


_TIED = 1e-8
"""Risks no farther apart are equal, as in scikit-survival: batches of rows change the last digits."""


def concordance_index(y: ArrayLike, risk: ArrayLike) -> float:
    """Return Harrell's C ([Harrell1996]_): the part of the pairs of known order that the risk puts in that order.

    The order of a pair is known if the earlier time is an event, or if times are equal and one is an event and the
    other is not.  Equal risks count one half.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    risk : array-like of shape (n_rows,)
        The higher, the sooner.

    Raises
    ------
    NumericalError
        If the order of no pair is known.
    """
    event, time = check_survival(y)
    scores = np.asarray(risk, dtype=np.float64)
    if scores.shape != time.shape or not np.isfinite(scores).all():
        raise ValueError(f"risk must have one finite number per row, shape {time.shape}; got shape {scores.shape}.")
    concordant = 0.0
    pairs = 0
    # A loop over events needs no n x n array.
    for earlier in np.flatnonzero(event):
        later = (time > time[earlier]) | ((time == time[earlier]) & ~event)
        # The earlier event should have the higher risk.
        difference = scores[earlier] - scores[later]
        tied = np.abs(difference) <= _TIED
        concordant += np.count_nonzero(~tied & (difference > 0)) + 0.5 * np.count_nonzero(tied)
        pairs += len(difference)
    if pairs == 0:
        raise NumericalError("No two rows have times whose order is known. Take more events, or earlier ones.")
    return float(concordant / pairs)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Groups of rows by their predicted survival to one time.

    Attributes
    ----------
    time : float
    predicted : ndarray of shape (n_groups,)
        Mean of the predictions.
    observed : ndarray of shape (n_groups,)
        Kaplan and Meier's estimate; NaN if no row of the group was watched until `time`.
    low, high : ndarray of shape (n_groups,)
        Its interval of 95 %; see `KaplanMeier.interval`.
    n_rows : ndarray of shape (n_groups,)
    """

    time: float
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    n_rows: NDArray[np.int64]


def calibration(y: ArrayLike, survival: ArrayLike, time: float, n_groups: int = 5) -> Calibration:
    """Compare predicted with observed survival to a time, in groups of about equally many rows.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    survival : array-like of shape (n_rows,)
        Predicted probabilities of no event up to `time`.
    time : float
    n_groups : int, default=5
        Empty groups, which equal predictions leave, are left out.

    Raises
    ------
    AgreementError
        If predictions are not one probability per row, or no row was observed until `time`.
    """
    _, ends = check_survival(y)
    target = np.asarray(y)
    predicted = np.asarray(survival, dtype=np.float64)
    if predicted.shape != ends.shape or not ((predicted >= 0) & (predicted <= 1)).all():
        raise AgreementError(f"Expected one probability per row, shape {ends.shape}, got shape {predicted.shape}.")
    if not (ends >= time).any():
        raise AgreementError(
            "No row was observed until the time that calibration is asked for. Ask for an earlier one."
        )
    # Groups of equal size, not of equal width: predictions crowd together.
    groups = risk_groups(predicted, n_groups)
    columns = []
    for group in np.unique(groups):
        rows = groups == group
        curve = kaplan_meier(target[rows])
        at = [
            _at(curve.times, values, np.array([time], dtype=np.float64))[0]
            for values in (curve.survival, *curve.interval())
        ]
        if not (ends[rows] >= time).any() and curve.survival[-1] > 0:
            at = [np.nan] * 3  # Where the curve would go on from here nobody has seen.
        columns.append((predicted[rows].mean(), *at, rows.sum()))
    means, observed, low, high, n_rows = np.array(columns).T
    return Calibration(float(time), means, observed, low, high, n_rows.astype(np.int64))


_COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "0.35")
"""Okabe and Ito's, which the colour-blind can tell apart."""


def plot_kaplan_meier(y: ArrayLike, groups: ArrayLike, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw Kaplan and Meier's curves of groups with intervals of 95 %, and test by log-rank whether they differ.

    Parameters are those of `log_rank_test`, which raises the same errors, the unit of the times, such as "months", and
    axes to draw on.
    """
    test = log_rank_test(y, groups)
    axes = _axes(ax)
    labels = np.asarray(groups)
    target = np.asarray(y)
    for number, name in enumerate(np.unique(labels)):
        curve = kaplan_meier(target[labels == name])
        colour = _COLOURS[number % len(_COLOURS)]
        low, high = curve.interval()
        times = np.append(0.0, curve.times)
        axes.step(
            times,
            np.append(1.0, curve.survival),
            where="post",
            color=colour,
            label=f"{name} (n = {int((labels == name).sum())})",
        )
        axes.fill_between(
            times, np.append(1.0, low), np.append(1.0, high), step="post", color=colour, alpha=0.15, linewidth=0
        )
    p = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.3f}"
    axes.set_title(f"log-rank test: {p}", fontsize=9, loc="left")
    axes.legend(title="group", frameon=False, fontsize=8, title_fontsize=8, loc="best")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time in {unit}" if unit else "time", fontsize=9)
    axes.set_ylabel("without event", fontsize=9)
    axes.grid(axis="y", alpha=0.3, linewidth=0.6)
    return axes


def plot_calibration(groups: Calibration, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw predicted against observed survival of groups; on the diagonal they agree."""
    axes = _axes(ax, width=4.4)
    sides = np.vstack([groups.observed - groups.low, groups.high - groups.observed])
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    axes.errorbar(groups.predicted, groups.observed, yerr=np.maximum(sides, 0), fmt="o", color=_COLOURS[0], capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel(f"predicted survival to {groups.time:g} {unit}".rstrip(), fontsize=9)
    axes.set_ylabel("observed (Kaplan–Meier, 95 % interval)", fontsize=9)
    return axes


def _axes(ax: Axes | None, width: float = 5.6) -> Axes:
    figure = require("matplotlib.figure", "plots").Figure
    axes: Axes = ax or figure(figsize=(width, 4.0), layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return axes
