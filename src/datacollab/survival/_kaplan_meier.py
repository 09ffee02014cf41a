"""Kaplan and Meier's survival curve, for events and, in reverse, for the ends of observations.

Groups of risk, and whether groups differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from .._typing import FloatArray
from ..errors import AgreementError
from ._rows import check_survival, check_times

__all__ = ["KaplanMeier", "LogRank", "censoring_curve", "kaplan_meier", "log_rank_test", "risk_groups", "step_values"]


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
        """The curve at these times, shape (n_times,); beyond the last time it stays where it was."""
        return step_values(self.times, self.survival, check_times(times), before=1.0)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Bounds of the survival at each time, on the scale of log(-log S), shapes (n_times,).

        There is none where no or every row had its event, and both bounds are then the survival itself.
        """
        S, inner = self.survival, (self.survival > 0) & (self.survival < 1)
        deviation = np.zeros(len(S))
        deviation[inner] = np.sqrt(self.variance[inner]) / (S[inner] * -np.log(S[inner]))
        factor = np.exp(NormalDist().inv_cdf((1 + confidence) / 2) * deviation)
        return S**factor, S ** (1 / factor)

    def median(self) -> float:
        """The first time at which half or more had the event; infinity where fewer did."""
        reached = np.flatnonzero(self.survival <= 0.5)
        return float(self.times[reached[0]]) if len(reached) else np.inf

    def __repr__(self) -> str:
        return f"KaplanMeier(n_times={len(self.times)})"


def kaplan_meier(y: ArrayLike, sample_weight: ArrayLike | None = None) -> KaplanMeier:
    r"""Kaplan and Meier's estimate ([Kaplan1958]_), :math:`S(t) = \prod_{t_j \le t} (1 - d_j / n_j)`.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    sample_weight : array-like of shape (n_rows,), optional
        From 0 on.  The variance takes weights as numbers of rows.

    Examples
    --------
    >>> from datacollab.survival import kaplan_meier
    >>> from datacollab.targets import survival_target
    >>> kaplan_meier(survival_target([1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0])).survival
    array([0.75 , 0.75 , 0.375, 0.   ])
    """
    event, time = check_survival(y)
    weight = np.ones(len(time)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != time.shape or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise ValueError("sample_weight must have one finite number from 0 on per row, and one above 0.")
    times, events, at_risk = _counted(time[weight > 0], event[weight > 0], weight[weight > 0])
    survival = np.cumprod(1 - events / at_risk)
    left = at_risk - events
    # After a time that nobody survives the curve is 0, and so is its variance.
    terms = np.divide(events, at_risk * left, out=np.zeros(len(times)), where=left > 0)
    variance = np.asarray(survival**2 * np.cumsum(terms))
    return KaplanMeier(times, np.asarray(survival), variance, at_risk, events)


def censoring_curve(event: NDArray[np.bool_], time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times, and the probability G(t) of being observed beyond each.

    Whose event is at a time is not at risk of leaving then: events come before ends of observations.  So
    S(t) G(t) is the part of the rows with times after t.
    """
    times, events, at_risk = _counted(time, event, np.ones(len(time)))
    ended = np.append(at_risk[1:], 0.0)
    exposed = at_risk - events
    return times, np.cumprod(np.divide(ended, exposed, out=np.ones(len(times)), where=exposed > 0))


def step_values(
    times: FloatArray, values: FloatArray, at: FloatArray, *, before: float, left: bool = False
) -> FloatArray:
    """Values of a curve in steps, or with `left` its limits from the left."""
    place = np.searchsorted(times, at, side="left" if left else "right")
    return np.append(before, values)[place]


def _counted(
    time: FloatArray, event: NDArray[np.bool_], weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    times, place = np.unique(time, return_inverse=True)
    events = np.bincount(place, weights=weight * event, minlength=len(times)).astype(np.float64)
    ending = np.bincount(place, weights=weight, minlength=len(times)).astype(np.float64)
    return times, events, np.cumsum(ending[::-1])[::-1]


def risk_groups(risk: ArrayLike, n_groups: int = 3, *, reference: ArrayLike | None = None) -> NDArray[np.int64]:
    """Groups of about equally many rows by risk, from 0, the lowest.

    Parameters
    ----------
    risk : array-like of shape (n_rows,)
    n_groups : int, default=3
    reference : array-like of shape (n_reference,), optional
        Risks whose quantiles bound the groups; those of the rows by default.  With risks of rows that all parties have,
        such as the anchor's, a group means the same everywhere.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> from datacollab.survival import risk_groups
    >>> risk_groups([0.3, 2.0, -1.0, 0.9], n_groups=2)
    array([0, 1, 0, 1])
    """
    if n_groups < 2:
        raise ValueError(f"n_groups must be 2 or more; got {n_groups}.")
    values = np.asarray(risk, dtype=np.float64)
    bounds = np.quantile(
        values if reference is None else np.asarray(reference, dtype=np.float64), np.arange(1, n_groups) / n_groups
    )
    # A row at a bound belongs below it, in whatever order rows come.
    return np.searchsorted(bounds, values, side="left").astype(np.int64)


@dataclass(frozen=True)
class LogRank:
    """Whether groups have one survival curve.

    Attributes
    ----------
    statistic : float
        χ².
    degrees_of_freedom : int
    p_value : float
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def log_rank_test(y: ArrayLike, groups: ArrayLike) -> LogRank:
    """Mantel's log-rank test of two or more groups ([Mantel1966]_).

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    groups : array-like of shape (n_rows,)

    Raises
    ------
    AgreementError
        When there are fewer than two groups, or not one label per row.

    Examples
    --------
    >>> from datacollab.survival import log_rank_test
    >>> from datacollab.targets import survival_target
    >>> log_rank_test(survival_target([1, 1, 1, 1], [1.0, 2.0, 3.0, 4.0]), [0, 0, 1, 1]).p_value < 0.1
    True
    """
    event, time = check_survival(y)
    labels = np.asarray(groups)
    if labels.shape != time.shape:
        raise AgreementError(f"One group is wanted per row, shape {time.shape}; got shape {labels.shape}.")
    names, group = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise AgreementError("Two groups or more are wanted; all rows are of one.")
    times, place = np.unique(time, return_inverse=True)
    member = group[:, None] == np.arange(len(names))
    left, events = np.zeros((2, len(times), len(names)))
    np.add.at(left, place, member)
    np.add.at(events, place, member & event[:, None])
    at_risk = np.cumsum(left[::-1], axis=0)[::-1]
    n, d = at_risk.sum(axis=1), events.sum(axis=1)
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
