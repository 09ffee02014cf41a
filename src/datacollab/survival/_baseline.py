r"""Baselines of the hazard, and the common part of all models with a log risk and a baseline.

Breslow's estimate is :math:`\Lambda_0(t) = \sum_{t_j \le t} \sum_{D_j} w_i / \sum_{R_j} w_i r_i` ([Breslow1974]_).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..errors import AgreementError, DataCollabWarning
from ._measures import concordance_index
from ._survival_rows import SurvivalRows, check_times


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """The baseline hazard Λ₀(t) at some times; between them it grows evenly, and beyond the last it is unknown.

    Attributes
    ----------
    times : ndarray of shape (n_steps,)
        Above 0, ascending; the last is the end of the observation.
    cumulative_hazard : ndarray of shape (n_steps,)
        At these times, from 0 on and not descending; it is 0 at time 0.
    """

    times: FloatArray
    cumulative_hazard: FloatArray

    def __call__(self, times: ArrayLike) -> FloatArray:
        """Return Λ₀ at these times, shape (n_times,).

        It raises ValueError if a time is not finite, below 0, or beyond the end of the observation.
        """
        asked = check_times(times)
        if (asked > self.times[-1]).any():
            raise ValueError(
                f"{int((asked > self.times[-1]).sum())} of {len(asked)} times are beyond the end of the observation "
                "(the last of the baseline's times), and the hazard there is unknown. Ask for earlier times."
            )
        # Between two times the hazard grows evenly: the steps inside a group of events were not kept.
        hazard = np.interp(asked, np.append(0.0, self.times), np.append(0.0, self.cumulative_hazard))
        return np.asarray(hazard)

    def __repr__(self) -> str:
        return f"Baseline(n_steps={len(self.times)})"


def breslow_baseline(rows: SurvivalRows, log_risk: FloatArray, min_events: int) -> Baseline:
    """Return Breslow's estimate of one stratum, at the ends of groups of times with at least `min_events` events each.

    It is exact at the times that are kept.  Events left over at the end go with the group before.
    """
    order = np.argsort(-rows.time, kind="stable")
    time = rows.time[order]
    event = rows.event[order]
    weight = rows.weight[order]
    # The largest log risk is taken out and put back, so that no exponential overflows.
    top = log_risk.max()
    at_risk = np.cumsum(weight * np.exp(log_risk[order] - top))
    times, place, counts = np.unique(time[event], return_inverse=True, return_counts=True)
    events = np.bincount(place, weights=weight[event], minlength=len(times))
    sums = at_risk[np.searchsorted(-time, -times, side="right") - 1]
    hazard = np.cumsum(events / sums) * np.exp(-top)
    kept = _ends(counts.tolist(), min_events)
    times = times[kept]
    hazard = hazard[kept]
    # The last observation ends the baseline, also where no event was there.
    if not len(times):
        return Baseline(time[:1], np.zeros(1))
    if time[0] > times[-1]:
        times = np.append(times, time[0])
        hazard = np.append(hazard, hazard[-1])
    return Baseline(times, hazard)


def _ends(counts: list[int], min_events: int) -> list[int]:
    """Return the places of the last times of groups."""
    ends: list[int] = []
    waiting = 0
    for place, count in enumerate(counts):
        waiting += count
        if waiting >= min_events:
            ends.append(place)
            waiting = 0
    # A last step of fewer events would show them.
    if counts and waiting:
        ends[-1:] = [len(counts) - 1]
    return ends


def nelson_aalen_of(rows: SurvivalRows) -> FloatArray:
    """Return Nelson and Aalen's Λ̂ of one stratum at each row's own time, all risks alike, shape (n_rows,)."""
    times, place = np.unique(rows.time, return_inverse=True)
    events = np.bincount(place, weights=rows.weight * rows.event, minlength=len(times))
    # Rows are at risk at all times up to their own.
    at_risk = np.cumsum(np.bincount(place, weights=rows.weight, minlength=len(times))[::-1])[::-1]
    return np.cumsum(events / at_risk)[place]


class SurvivalModel(ABC):
    r"""A log risk η for each row, and Λ₀ for each stratum: :math:`S(t \mid x) = \exp(-\Lambda_0(t) e^{\eta(x)})`.

    Attributes
    ----------
    baselines_ : dict of stratum to Baseline
        With the one key None if the model was fitted without strata.
    """

    baselines_: Mapping[Any, Baseline]

    @abstractmethod
    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the log risk of each row, shape (n_rows,)."""

    def predict_cumulative_hazard(self, X: ArrayLike, times: ArrayLike, stratum: Hashable = None) -> FloatArray:
        """Return Λ(t | x) of each row at each time, shape (n_rows, n_times).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        times : array-like of shape (n_times,)
            From 0 to the end of the observation of the stratum.
        stratum : optional
            The stratum of the baseline; None takes the only one there is.

        Raises
        ------
        AgreementError
            If the stratum is not known, or several are and none is named.
        ValueError
            If a time is beyond the end of the observation.
        """
        baseline = self._baseline(stratum)(times)
        # Added as logarithms, so that no risk is too large for a hazard of 0.
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.exp(self.predict(X)[:, None] + np.log(baseline)))

    def predict_survival(self, X: ArrayLike, times: ArrayLike, stratum: Hashable = None) -> FloatArray:
        """Return the probability of no event up to each time; see `predict_cumulative_hazard`."""
        return np.exp(-self.predict_cumulative_hazard(X, times, stratum))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return Harrell's concordance index of the log risk; see `concordance_index`."""
        return concordance_index(y, self.predict(X))

    def for_party(self, party: Hashable) -> Self:
        """Return a copy with the party's own baseline alone, or the model itself if all share one.

        It raises AgreementError if there are strata, and the party is none of them.
        """
        if self.baselines_.keys() == {None}:
            return self
        # The other parties' baselines stay with the analyst.
        alone = copy(self)
        alone.baselines_ = {party: self._baseline(party)}
        return alone

    def _baseline(self, stratum: Hashable) -> Baseline:
        if stratum is None and len(self.baselines_) == 1:
            return next(iter(self.baselines_.values()))
        if stratum not in self.baselines_:
            known = ", ".join(repr(name) for name in list(self.baselines_)[:10])
            got = "none was named" if stratum is None else f"got {stratum!r}"
            raise AgreementError(f"The model has baselines of the strata {known}; {got}. Name one of them.")
        return self.baselines_[stratum]


def baselines_of(rows: SurvivalRows, log_risk: FloatArray, min_events: int) -> dict[Any, Baseline]:
    """Return Breslow's estimate of each stratum, with at least `min_events` events in each step.

    A stratum without events gets that of all rows together, and a warning: its own would promise survival for certain.
    """
    baselines = {}
    without = []
    for number, name in enumerate(rows.strata):
        own = rows.stratum == number
        if rows.event[own].any():
            baselines[name] = breslow_baseline(rows.of(number), log_risk[own], min_events)
        elif own.any():
            baselines[name] = breslow_baseline(rows, log_risk, min_events)
            without.append(f"{name!r} (rows: {int(own.sum())})")
    if without:
        warnings.warn(
            f"No event was seen in the strata {', '.join(without)}, so nothing is known of a hazard of their own. They "
            "get the baseline hazard of all strata together: say so beside their survival curves, or leave them out.",
            DataCollabWarning,
            stacklevel=3,
        )
    return baselines
