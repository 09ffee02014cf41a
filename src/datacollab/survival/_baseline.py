r"""How the hazard adds up over time for a row of log risk 0.

Breslow's estimate is :math:`\Lambda_0(t) = \sum_{t_j \le t} \sum_{D_j} w_i / \sum_{R_j} w_i r_i` ([Breslow1974]_).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ._rows import SurvivalRows, check_times

__all__ = ["Baseline", "breslow_baseline", "nelson_aalen_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    r"""Λ₀(t) at some times; between them it grows evenly, and beyond the last nothing is known.

    Attributes
    ----------
    times : ndarray of shape (n_steps,)
        Above 0, ascending; the last is the end of the observation.
    cumulative_hazard : ndarray of shape (n_steps,)
        At these times, from 0 on and not descending; it is 0 at time 0.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.survival import Baseline
    >>> Baseline(np.array([2.0, 4.0]), np.array([0.1, 0.1]))([1.0, 3.0])
    array([0.05, 0.1 ])
    """

    times: FloatArray
    cumulative_hazard: FloatArray

    def __call__(self, times: ArrayLike) -> FloatArray:
        """Λ₀ at these times, shape (n_times,).

        Raises
        ------
        ValueError
            When a time is not finite, below 0, or beyond the end of the observation.
        """
        asked = check_times(times)
        if (asked > self.times[-1]).any():
            raise ValueError(
                f"{int((asked > self.times[-1]).sum())} of {len(asked)} times are beyond the end of the observation "
                "(the last of the baseline's times), where nothing is known of the hazard. Ask for earlier times."
            )
        known, hazard = np.append(0.0, self.times), np.append(0.0, self.cumulative_hazard)
        return np.asarray(np.interp(asked, known, hazard))

    def __repr__(self) -> str:
        return f"Baseline(n_steps={len(self.times)})"


def breslow_baseline(rows: SurvivalRows, log_risk: FloatArray, min_events: int) -> Baseline:
    """Breslow's estimate of one stratum, at the end of groups of times with `min_events` events or more in each.

    It is exact at the times that are kept.  What is left of a group at the end goes with the one before.

    Parameters
    ----------
    rows : SurvivalRows
        Of the stratum.
    log_risk : ndarray of shape (n_rows,)
    min_events : int
    """
    order = np.argsort(-rows.time, kind="stable")
    time, event, weight = rows.time[order], rows.event[order], rows.weight[order]
    top = log_risk.max()
    at_risk = np.cumsum(weight * np.exp(log_risk[order] - top))
    times, place, counts = np.unique(time[event], return_inverse=True, return_counts=True)
    events = np.bincount(place, weights=weight[event], minlength=len(times))
    sums = at_risk[np.searchsorted(-time, -times, side="right") - 1]
    hazard = np.cumsum(events / sums) * np.exp(-top)
    kept = _ends(counts.tolist(), min_events)
    times, hazard = times[kept], hazard[kept]
    if not len(times) or time[0] > times[-1]:
        times, hazard = np.append(times, time[0]), np.append(hazard, hazard[-1] if len(hazard) else 0.0)
    return Baseline(times, hazard)


def _ends(counts: list[int], min_events: int) -> list[int]:
    """Places of the last times of groups."""
    ends: list[int] = []
    waiting = 0
    for place, count in enumerate(counts):
        waiting += count
        if waiting >= min_events:
            ends.append(place)
            waiting = 0
    if counts and waiting:
        ends[-1:] = [len(counts) - 1]
    return ends


def nelson_aalen_of(rows: SurvivalRows) -> FloatArray:
    """Λ̂ of one stratum at each row's own time, all risks alike (Nelson and Aalen), shape (n_rows,)."""
    times, place = np.unique(rows.time, return_inverse=True)
    events = np.bincount(place, weights=rows.weight * rows.event, minlength=len(times))
    at_risk = np.cumsum(np.bincount(place, weights=rows.weight, minlength=len(times))[::-1])[::-1]
    return np.cumsum(events / at_risk)[place]
