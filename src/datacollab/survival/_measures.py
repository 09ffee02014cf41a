"""How good survival models are: censoring weights, concordance, Brier scores and calibration.

* Weights by which rows with their event stand for those of which the observation ended.
* How often the row at higher risk has its event first.
* Brier scores of survival curves.
* Predicted survival beside what was observed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import trapezoid
from scipy.stats import binomtest

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ._kaplan_meier import censoring_curve, kaplan_meier, risk_groups, step_values
from ._rows import check_survival, check_times

__all__ = [
    "Calibration",
    "brier_score",
    "calibration",
    "censoring_weights",
    "concordance_index",
    "concordance_index_ipcw",
    "integrated_brier_score",
]


def censoring_weights(y_train: ArrayLike, times: FloatArray, *, beyond: bool = False) -> FloatArray:
    """1 / G(t-), or with `beyond` 1 / G(t): one over the probability of being observed until t, or for longer.

    Parameters
    ----------
    y_train : ndarray of shape (n_train,)
        Survival targets, of which G is estimated by Kaplan and Meier in reverse.
    times : ndarray of shape (n_times,)
    beyond : bool

    Raises
    ------
    NumericalError
        When G is 0 at a time, or its curve ends before.
    """
    event, time = check_survival(y_train, "y_train")
    known, G = censoring_curve(event, time)
    if len(times) and times.max() > known[-1]:
        raise NumericalError(
            f"{int((times > known[-1]).sum())} of {len(times)} times are beyond the longest observation of training "
            "rows, and nothing is known of who would be observed then. Take earlier times, or a smaller tau."
        )
    probability = step_values(known, G, times, before=1.0, left=not beyond)
    if (probability <= 0).any():
        raise NumericalError(
            "No training row is observed beyond some of the times, so these cannot be weighted. Take earlier times, or "
            "a smaller tau."
        )
    return 1.0 / probability


_TIED = 1e-8
"""Risks no farther apart are equal, as in scikit-survival: batches of rows change the last digits."""


def concordance_index(y: ArrayLike, risk: ArrayLike) -> float:
    """Harrell's C ([Harrell1996]_): of pairs whose order is known, the part that the risk puts in that order.

    A pair counts where the earlier time is an event; of equal times, where one is an event and the other is not.  Equal
    risks count one half.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    risk : array-like of shape (n_rows,)
        The higher, the sooner.

    Raises
    ------
    NumericalError
        When the order of no pair is known.

    Examples
    --------
    >>> from datacollab.survival import concordance_index
    >>> from datacollab.targets import survival_target
    >>> concordance_index(survival_target([1, 1, 0], [1.0, 2.0, 3.0]), [3.0, 1.0, 2.0])
    0.6666666666666666
    """
    event, time = check_survival(y)
    return _concordant_part(event, time, _checked_risk(risk, time), np.ones(len(time)))


def concordance_index_ipcw(y_train: ArrayLike, y: ArrayLike, risk: ArrayLike, tau: float | None = None) -> float:
    r"""Uno's C ([Uno2011]_), which does not depend on who was observed for how long.

    A pair weighs :math:`1 / G(t-)^2`, with t the earlier time and G the probability of being observed beyond it.

    Parameters
    ----------
    y_train : ndarray of shape (n_train,)
        Survival targets, of which G is estimated.
    y : ndarray of shape (n_rows,)
        Survival targets.
    risk : array-like of shape (n_rows,)
    tau : float, optional
        Events at or after this time do not count; choose it where enough rows are still observed.

    Raises
    ------
    NumericalError
        When the order of no pair is known, or nobody of `y_train` was observed as long as a row.

    Notes
    -----
    Where events and ends of observations share times, as in months, scikit-survival has G(t) in place of G(t-), and
    other numbers.
    """
    event, time = check_survival(y)
    counted = event if tau is None else event & (time < tau)
    weight = np.zeros(len(time))
    weight[counted] = censoring_weights(y_train, time[counted]) ** 2
    return _concordant_part(event, time, _checked_risk(risk, time), weight)


def _checked_risk(risk: ArrayLike, time: FloatArray) -> FloatArray:
    checked = np.asarray(risk, dtype=np.float64)
    if checked.shape != time.shape or not np.isfinite(checked).all():
        raise ValueError(f"risk must have one finite number per row, shape {time.shape}; got shape {checked.shape}.")
    return checked


def _concordant_part(event: NDArray[np.bool_], time: FloatArray, risk: FloatArray, weight: FloatArray) -> float:
    concordant = pairs = 0.0
    for earlier in np.flatnonzero(event & (weight > 0)):
        later = (time > time[earlier]) | ((time == time[earlier]) & ~event)
        difference = risk[earlier] - risk[later]
        tied = np.abs(difference) <= _TIED
        concordant += weight[earlier] * (np.count_nonzero(~tied & (difference > 0)) + 0.5 * np.count_nonzero(tied))
        pairs += weight[earlier] * len(difference)
    if pairs == 0:
        raise NumericalError("No two rows have times whose order is known: more events, or earlier ones, are wanted.")
    return float(concordant / pairs)


def brier_score(y_train: ArrayLike, y: ArrayLike, survival: ArrayLike, times: ArrayLike) -> FloatArray:
    r"""Mean squared error of survival probabilities at each time, weighted for censoring ([Graf1999]_).

    .. math:: BS(t) = \frac1n \sum_i \Big[ \frac{S(t \mid x_i)^2 \, 1(t_i \le t, \delta_i)}{G(t_i-)}
              + \frac{(1 - S(t \mid x_i))^2 \, 1(t_i > t)}{G(t)} \Big]

    Parameters
    ----------
    y_train : ndarray of shape (n_train,)
        Survival targets, of which G, the probability of being observed, is estimated.
    y : ndarray of shape (n_rows,)
        Survival targets.
    survival : array-like of shape (n_rows, n_times)
    times : array-like of shape (n_times,)

    Returns
    -------
    ndarray of shape (n_times,)

    Raises
    ------
    NumericalError
        When nobody of `y_train` was observed as long.

    Notes
    -----
    As of `concordance_index_ipcw`: with events and ends of observations at the same times, scikit-survival has other
    numbers.
    """
    event, time = check_survival(y)
    asked, S = check_times(times), np.asarray(survival, dtype=np.float64)
    if S.shape != (len(time), len(asked)) or not ((S >= 0) & (S <= 1)).all():
        raise ValueError(
            f"survival must have probabilities of shape ({len(time)}, {len(asked)}), rows by times; got {S.shape}."
        )
    before = event[:, None] & (time[:, None] <= asked)
    weight = np.zeros(len(time))
    weight[before.any(axis=1)] = censoring_weights(y_train, time[before.any(axis=1)])
    after = time[:, None] > asked
    weight_after = np.zeros(len(asked))
    weight_after[after.any(axis=0)] = censoring_weights(y_train, asked[after.any(axis=0)], beyond=True)
    errors = S**2 * before * weight[:, None] + (1 - S) ** 2 * after * weight_after
    return np.asarray(errors.mean(axis=0))


def integrated_brier_score(y_train: ArrayLike, y: ArrayLike, survival: ArrayLike, times: ArrayLike) -> float:
    """The mean of `brier_score` over the time from the first to the last of `times`, by the trapezium rule.

    Parameters
    ----------
    y_train, y, survival, times
        As of `brier_score`; two or more times, ascending.
    """
    asked = check_times(times)
    if len(asked) < 2 or not (np.diff(asked) > 0).all():
        raise ValueError("times must be two or more, ascending.")
    return float(trapezoid(brier_score(y_train, y, survival, asked), asked) / (asked[-1] - asked[0]))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Groups of rows by their predicted survival to one time.

    Attributes
    ----------
    time : float
    predicted : ndarray of shape (n_groups,)
        Mean of the predictions.
    observed : ndarray of shape (n_groups,)
        Kaplan and Meier's estimate.
    low, high : ndarray of shape (n_groups,)
        Its interval of 95 %: Kaplan and Meier's, or the exact one of a proportion where all or none had the event; like
        what was observed, NaN in groups of which nobody was watched until `time`.
    n_rows : ndarray of shape (n_groups,)
    """

    time: float
    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    n_rows: NDArray[np.int64]


def calibration(y: ArrayLike, survival: ArrayLike, time: float, n_groups: int = 5) -> Calibration:
    """Predicted against observed survival to a time, in groups of about equally many rows.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    survival : array-like of shape (n_rows,)
        Predicted probabilities of no event up to `time`.
    time : float
    n_groups : int, default=5
        Groups in which no row falls, where predictions are equal, are left out.

    Raises
    ------
    AgreementError
        When predictions are not one probability per row, or no row was observed until `time`.

    Examples
    --------
    >>> from datacollab.survival import calibration
    >>> from datacollab.targets import survival_target
    >>> y = survival_target([1, 1, 1, 1], [1.0, 3.0, 2.0, 4.0])
    >>> calibration(y, [0.2, 0.8, 0.4, 0.6], time=2.5, n_groups=2).observed
    array([0., 1.])
    """
    _, ends = check_survival(y)
    target, predicted = np.asarray(y), np.asarray(survival, dtype=np.float64)
    if predicted.shape != ends.shape or not ((predicted >= 0) & (predicted <= 1)).all():
        raise AgreementError(f"One probability is wanted per row, shape {ends.shape}; got shape {predicted.shape}.")
    if not (ends >= time).any():
        raise AgreementError(
            "No row was observed until the time that calibration is asked for. Ask for an earlier one."
        )
    groups = risk_groups(predicted, n_groups)
    found = []
    for group in np.unique(groups):
        rows = groups == group
        curve = kaplan_meier(target[rows])
        at = [
            step_values(curve.times, values, np.array([time], dtype=np.float64), before=1.0)[0]
            for values in (curve.survival, *curve.interval())
        ]
        if not (ends[rows] >= time).any() and curve.survival[-1] > 0:
            at = [np.nan] * 3  # Where the curve would go on from here nobody has seen.
        elif at[0] in (0.0, 1.0):
            # Greenwood's variance is zero then, which is no certainty; those who left before say nothing.
            n_watched = int((ends[rows] >= time).sum()) if at[0] else int(rows.sum())
            interval = binomtest(int(at[0]) * n_watched, n_watched).proportion_ci(method="exact")
            at = [at[0], interval.low, interval.high]
        found.append((predicted[rows].mean(), *at, rows.sum()))
    means, observed, low, high, n_rows = np.array(found).T
    return Calibration(float(time), means, observed, low, high, n_rows.astype(np.int64))
