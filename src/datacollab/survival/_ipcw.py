"""Weights by which rows with their event stand for those of which the observation ended."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..errors import NumericalError
from ._kaplan_meier import censoring_curve, step_values
from ._rows import check_survival

__all__ = ["censoring_weights"]


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
