"""Effects from what is known of each row, and how much each row moves them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..linalg import treatment_weights

__all__ = ["Estimated", "doubly_robust_score", "partially_linear_score", "weighting_score"]


@dataclass(frozen=True, eq=False)
class Estimated:
    r"""An estimate and its influence function at each row.

    Attributes
    ----------
    value : float
    influence : ndarray of shape (n_rows,)
        :math:`\varphi_i` with mean zero: the estimate is off the truth by about the mean of these.
    """

    value: float
    influence: FloatArray

    def standard_error(self, groups: NDArray[np.intp] | None = None) -> float:
        r"""Standard error, :math:`\sqrt{\sum_g (\sum_{i \in g} \varphi_i)^2} / n`.

        Parameters
        ----------
        groups : ndarray of shape (n_rows,), optional
            Rows that were made of the same records move together; None takes rows as independent.
        """
        sums = self.influence if groups is None else np.bincount(groups, weights=self.influence)
        return float(np.sqrt(sums @ sums) / len(self.influence))


def partially_linear_score(
    outcome: FloatArray, treatment: NDArray[np.int64], outcome_hat: FloatArray, propensity: FloatArray
) -> Estimated:
    r"""Effect in :math:`Y = \theta T + u(x) + \varepsilon`, after Robinson (1988) and Chernozhukov et al. (2018).

    .. math:: \hat\theta = \sum_i r^T_i r^Y_i / \sum_i (r^T_i)^2,
       \quad \varphi_i = (r^Y_i - \hat\theta r^T_i) r^T_i / \overline{(r^T)^2}

    Parameters
    ----------
    outcome, treatment : ndarray of shape (n_rows,)
    outcome_hat : ndarray of shape (n_rows,)
        Of the outcome, whatever the arm; rows left out.
    propensity : ndarray of shape (n_rows,)
        Of treatment; rows left out.
    """
    r_y, r_t = outcome - outcome_hat, treatment - propensity
    value = float(r_t @ r_y / (r_t @ r_t))
    return Estimated(value, (r_y - value * r_t) * r_t / np.mean(r_t**2))


def doubly_robust_score(
    outcome: FloatArray,
    treatment: NDArray[np.int64],
    control_hat: FloatArray,
    treated_hat: FloatArray,
    propensity: FloatArray,
    target: str,
) -> Estimated:
    r"""Effect by augmented inverse probability weighting, after Robins, Rotnitzky and Zhao (1994).

    .. math::
       \psi^{ATE} &= m_1 - m_0 + T (Y - m_1) / e - (1 - T)(Y - m_0) / (1 - e) \\
       \psi^{ATT} &= (T - (1 - T) e / (1 - e)) (Y - m_0) / p, \quad p = \overline{T}

    Parameters
    ----------
    outcome, treatment : ndarray of shape (n_rows,)
    control_hat, treated_hat : ndarray of shape (n_rows,)
        Of the outcome without and with treatment; rows left out.  `treated_hat` is not used for "ATT".
    propensity : ndarray of shape (n_rows,)
        Between 0 and 1, both excluded.
    target : {"ATE", "ATT"}
    """
    if target == "ATT":
        share = treatment.mean()
        signed = np.where(treatment == 1, 1.0, -propensity / (1.0 - propensity))
        psi = signed * (outcome - control_hat) / share
        value = float(psi.mean())
        return Estimated(value, psi - value * treatment / share)
    psi = (
        treated_hat
        - control_hat
        + treatment * (outcome - treated_hat) / propensity
        - (1 - treatment) * (outcome - control_hat) / (1.0 - propensity)
    )
    value = float(psi.mean())
    return Estimated(value, psi - value)


def weighting_score(
    outcome: FloatArray, treatment: NDArray[np.int64], propensity: FloatArray, target: str
) -> Estimated:
    r"""Difference of the arms' weighted means, after Hájek; weights of `treatment_weights`, taken as known.

    Parameters
    ----------
    outcome, treatment, propensity : ndarray of shape (n_rows,)
    target : {"ATE", "ATT"}
    """
    weights = treatment_weights(treatment, propensity, target)
    means, influence = [], np.zeros(len(outcome))
    for arm, sign in ((0, -1.0), (1, 1.0)):
        w = np.where(treatment == arm, weights, 0.0)
        mean = float(w @ outcome / w.sum())
        influence += sign * w * (outcome - mean) / w.mean()
        means.append(mean)
    return Estimated(means[1] - means[0], influence)
