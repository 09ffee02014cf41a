"""Brier scores of survival curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import trapezoid

from .._typing import FloatArray
from ._ipcw import censoring_weights
from ._rows import check_survival, check_times

__all__ = ["brier_score", "integrated_brier_score"]


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
