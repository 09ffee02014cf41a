r"""Cox's partial likelihood, its gradient and its information.

With :math:`r_i = \exp(x_i^\top\beta)`, :math:`D_t` the rows whose event was at t and :math:`R_t` those still observed
then, Efron's likelihood ([Efron1977]_) of one stratum is

.. math::
   \ell(\beta) = \sum_t \Big( \sum_{i \in D_t} w_i x_i^\top \beta
   - \bar w_t \sum_{l=0}^{d_t - 1}
   \log\big(\textstyle\sum_{R_t} w_j r_j - \tfrac{l}{d_t} \sum_{D_t} w_j r_j \big) \Big),

where :math:`\bar w_t` is the mean weight of :math:`D_t`; Breslow's ([Breslow1974]_) has 0 in place of l.
Strata add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ._rows import SurvivalRows

__all__ = ["PartialLikelihood", "RiskSets", "partial_likelihood"]


@dataclass(frozen=True, eq=False)
class RiskSets:
    """One stratum from the last time to the first, so that who is at risk at a time comes first.

    Attributes
    ----------
    X, event, weight
        Of the rows in that order.
    n_at_risk : ndarray of shape (n_times,)
        Rows at risk at each time with an event, from the last time to the first.
    n_later : ndarray of shape (n_rows,)
        How many of these times are after each row's own: those at which it is not at risk.
    place : ndarray of shape (n_events,)
        The time of each event.
    fraction : ndarray of shape (n_events,)
        l/d of each event.
    """

    X: FloatArray
    event: NDArray[np.bool_]
    weight: FloatArray
    n_at_risk: NDArray[np.intp]
    n_later: NDArray[np.intp]
    place: NDArray[np.intp]
    fraction: FloatArray

    @classmethod
    def of(cls, rows: SurvivalRows, *, efron: bool) -> Self:
        """Sort one stratum's rows."""
        order = np.argsort(-rows.time, kind="stable")
        time, event = rows.time[order], rows.event[order]
        # Negated, times ascend, as searchsorted wants them.
        event_times, place, counts = np.unique(-time[event], return_inverse=True, return_counts=True)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        fraction = (np.arange(len(place)) - first) / np.repeat(counts, counts)
        return cls(
            X=rows.X[order],
            event=event,
            weight=rows.weight[order],
            n_at_risk=np.searchsorted(-time, event_times, side="right"),
            n_later=np.searchsorted(event_times, -time, side="left"),
            place=place,
            fraction=fraction if efron else np.zeros(len(place)),
        )


@dataclass(frozen=True, eq=False)
class PartialLikelihood:
    """At one β.

    Attributes
    ----------
    value : float
        The logarithm.
    gradient : ndarray of shape (n_features,)
    information : ndarray of shape (n_features, n_features)
        Its second derivative, negated.
    """

    value: float
    gradient: FloatArray
    information: FloatArray


def partial_likelihood(beta: FloatArray, strata: Sequence[RiskSets]) -> PartialLikelihood:
    """Value and derivatives at β, over all strata; O(n p²) and no array of n × p × p.

    Parameters
    ----------
    beta : ndarray of shape (n_features,)
    strata : sequence of RiskSets
    """
    value, gradient, information = 0.0, np.zeros(len(beta)), np.zeros((len(beta), len(beta)))
    for sets in strata:
        if sets.event.any():
            part = _of_stratum(beta, sets)
            value, gradient, information = value + part[0], gradient + part[1], information + part[2]
    return PartialLikelihood(value, gradient, information)


def _of_stratum(beta: FloatArray, sets: RiskSets) -> tuple[float, FloatArray, FloatArray]:
    X, weight, event, place = sets.X, sets.weight, sets.event, sets.place
    eta = X @ beta
    # Shifting η by a number changes no ratio and keeps the exponentials finite.
    top = eta.max()
    risk = weight * np.exp(eta - top)
    last = sets.n_at_risk - 1
    n_times = len(last)
    counts = np.bincount(place, minlength=n_times)
    mean_weight = (np.bincount(place, weights=weight[event], minlength=n_times) / counts)[place]

    # One row per event from here on: events of one time differ by what Efron takes out of the risk set.
    among = np.bincount(place, weights=risk[event], minlength=n_times)
    S0 = np.cumsum(risk)[last][place] - sets.fraction * among[place]
    S1 = np.cumsum(risk[:, None] * X, axis=0)[last][place]
    tied = np.zeros((n_times, X.shape[1]))
    np.add.at(tied, place, risk[event, None] * X[event])
    mean = (S1 - sets.fraction[:, None] * tied[place]) / S0[:, None]

    # A row is in the sums of all times up to its own, in part at its own if that is one of several events.
    hazard = np.bincount(place, weights=mean_weight / S0, minlength=n_times)
    taken_out = np.bincount(place, weights=mean_weight * sets.fraction / S0, minlength=n_times)
    up_to = np.append(np.cumsum(hazard[::-1])[::-1], 0.0)
    share = up_to[sets.n_later]
    share[event] -= taken_out[place]
    share *= risk

    value = float(weight[event] @ eta[event] - mean_weight @ (np.log(S0) + top))
    gradient = weight[event] @ X[event] - share @ X
    information = (X * share[:, None]).T @ X - (mean * mean_weight[:, None]).T @ mean
    return value, gradient, information
