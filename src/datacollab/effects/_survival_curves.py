"""Differences of weighted survival curves at one time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..errors import EffectError
from ..linalg import treatment_weights
from ._scores import Estimated

__all__ = ["pseudo_values", "survival_at", "survival_score"]

_AT_RISK = 10
"""Rows of an arm that are watched until the horizon at least; of fewer a curve says nothing there."""


def survival_at(
    event: NDArray[np.bool_], time: FloatArray, weights: FloatArray, horizon: float
) -> tuple[float, FloatArray]:
    r"""Weighted Kaplan-Meier curve at one time, and its derivative by the logarithms of the weights.

    .. math:: S(h) = \prod_{u \le h} (1 - d_u / Y_u), \quad
       w_i \frac{\partial S}{\partial w_i} = - S(h) \sum_{u \le h} w_i
       \frac{dN_i(u) - Y_i(u) d_u / Y_u}{Y_u - d_u}

    with :math:`d_u` the weight of the events at u and :math:`Y_u` of the rows at risk.

    Parameters
    ----------
    event, time, weights : ndarray of shape (n_rows,)
    horizon : float

    Returns
    -------
    value : float
        Where nothing is cut off before the horizon, the weighted part of rows with a time beyond it.
    derivative : ndarray of shape (n_rows,)
        Sums to zero.
    """
    order = np.argsort(time, kind="stable")
    t, w, d = time[order], weights[order], weights[order] * event[order]
    times, first = np.unique(t, return_index=True)
    at_risk = np.cumsum(w[::-1])[::-1][first]
    events = np.add.reduceat(d, first)
    events[times > horizon] = 0.0
    # The last event of a curve may take all that is at risk; the curve is zero then, and stays there.
    steps = np.maximum(1.0 - events / at_risk, 0.0)
    value = float(np.prod(steps))
    if value <= len(t) * np.finfo(float).eps:
        return 0.0, np.zeros(len(t))
    left = at_risk - events
    hazard = np.cumsum(events / (at_risk * left))
    position = np.searchsorted(times, time)
    happened = event & (time <= horizon)
    return value, -value * weights * (np.where(happened, 1.0 / left[position], 0.0) - hazard[position])


def pseudo_values(event: NDArray[np.bool_], time: FloatArray, horizon: float) -> FloatArray:
    r"""Numbers that stand for being without the event at a time, also of rows cut off before, shape (n_rows,).

    .. math:: S(h) + n \frac{\partial S}{\partial w_i}

    Their mean is the Kaplan-Meier curve; of rows that were all watched, they are 1 beyond the horizon and 0 before.

    Parameters
    ----------
    event, time : ndarray of shape (n_rows,)
        Of one arm.
    horizon : float

    References
    ----------
    .. [1] Andersen, Syriopoulou and Parner (2017). Causal inference in survival analysis using pseudo-observations.
       Statistics in Medicine 36(17), 2669-2681.
    """
    _check_watched(time, horizon)
    value, derivative = survival_at(event, time, np.ones(len(time)), horizon)
    return value + len(time) * derivative


def _check_watched(time: FloatArray, horizon: float) -> None:
    watched = int((time >= horizon).sum())
    if watched < _AT_RISK:
        raise EffectError(
            f"{watched} rows of an arm were watched until {horizon:g}; {_AT_RISK} are wanted for a difference of "
            "survival. Take an earlier horizon."
        )


def survival_score(
    event: NDArray[np.bool_],
    time: FloatArray,
    treatment: NDArray[np.int64],
    propensity: FloatArray,
    target: str,
    horizon: float,
) -> Estimated:
    """Difference of the probabilities to be without the event at a time, treated less untreated; weights as known.

    Parameters
    ----------
    event, time, treatment, propensity : ndarray of shape (n_rows,)
    target : {"ATE", "ATT"}
    horizon : float
        In the unit of the times.

    Raises
    ------
    EffectError
        When few rows of an arm were watched until then.

    Notes
    -----
    That observation ends must have nothing to do with the event, given the arm.

    References
    ----------
    .. [1] Xie and Liu (2005). Adjusted Kaplan-Meier estimator and log-rank test with inverse probability of treatment
       weighting for survival data. Statistics in Medicine 24(20), 3089-3110.
    """
    weights = treatment_weights(treatment, propensity, target)
    values, influence = [], np.zeros(len(time))
    for arm, sign in ((0, -1.0), (1, 1.0)):
        rows = np.flatnonzero(treatment == arm)
        _check_watched(time[rows], horizon)
        value, derivative = survival_at(event[rows], time[rows], weights[rows], horizon)
        values.append(value)
        influence[rows] = sign * derivative * len(time)
    return Estimated(values[1] - values[0], influence)
