"""How often the row at higher risk has its event first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import FloatArray
from ..errors import NumericalError
from ._ipcw import censoring_weights
from ._rows import check_survival

__all__ = ["concordance_index", "concordance_index_ipcw"]

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
