"""Predicted survival beside what was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from .._typing import FloatArray
from ..errors import AgreementError
from ._groups import risk_groups
from ._kaplan_meier import kaplan_meier, step_values
from ._rows import check_survival

__all__ = ["Calibration", "calibration"]


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
