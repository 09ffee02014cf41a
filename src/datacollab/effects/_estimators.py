"""Estimators of effects from arrays: their scores, standard errors, and curves of survival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from .._validation import FloatArray
from ..errors import EffectError
from ._learners import Folds, WhitenedLogisticRegression, cross_fitted, predicted

__all__ = [
    "PROPENSITY_CLIP",
    "Estimated",
    "clipped",
    "doubly_robust",
    "doubly_robust_score",
    "inverse_probability_weighting",
    "partially_linear",
    "partially_linear_score",
    "propensity_scores",
    "pseudo_values",
    "survival_at",
    "survival_difference",
    "survival_score",
    "treatment_weights",
    "weighting_score",
]


PROPENSITY_CLIP = 0.02
"""Propensities are taken to be this far from 0 and 1, so that no row weighs more than 50."""


def treatment_weights(treatment: NDArray[np.int64], propensity: FloatArray, target: str) -> FloatArray:
    r"""Return weights, shape (n_rows,), under which both arms look like all rows, or like the treated ones.

    For the target "ATE" :math:`T / e + (1 - T) / (1 - e)`, for "ATT" :math:`T + (1 - T)\, e / (1 - e)`, with the
    treatment T, 0 or 1, and the propensity e, between 0 and 1, both excluded.
    """
    if target == "ATT":
        return np.where(treatment == 1, 1.0, propensity / (1.0 - propensity))
    return np.where(treatment == 1, 1.0 / propensity, 1.0 / (1.0 - propensity))


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


def clipped(propensity: FloatArray) -> FloatArray:
    """Scores at least 0.02 from 0 and 1, shape (n_rows,)."""
    return np.clip(propensity, PROPENSITY_CLIP, 1.0 - PROPENSITY_CLIP)


def propensity_scores(
    X: FloatArray, treatment: NDArray[np.int64], folds: Folds | None, model: Any | None = None
) -> FloatArray:
    """Probability of each row to be treated, shape (n_rows,), not clipped.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_components)
    treatment : ndarray of shape (n_rows,)
    folds : list of (ndarray, ndarray) or None
        None fits and predicts all rows.
    model : classifier, optional
        `WhitenedLogisticRegression` by default.
    """
    model = WhitenedLogisticRegression() if model is None else model
    if folds is None:
        return predicted(clone(model).fit(X, treatment), X)
    return cross_fitted(model, X, treatment, folds)


def partially_linear(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    folds: Folds,
    *,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
) -> Estimated:
    """Partially linear regression: the outcome less what x says of it, on the treatment less what x says of it.

    The effect is taken to be the same for all rows.  Where it is not, rows count the more the less their treatment was
    certain.  Rows without overlap count little, so that nothing is clipped.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_components)
    treatment : ndarray of shape (n_rows,)
        0 or 1.
    outcome : ndarray of shape (n_rows,)
    folds : list of (ndarray, ndarray)
    outcome_model : estimator, optional
        Of the outcome given x; linear regression by default.  Of a classifier the probability of 1 is taken.
    propensity_model : classifier, optional
        Of the treatment given x; `WhitenedLogisticRegression` by default.

    Returns
    -------
    Estimated

    References
    ----------
    .. [1] Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey and Robins (2018). Double/debiased machine learning
       for treatment and structural parameters. The Econometrics Journal 21(1), C1-C68.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.effects import effect_folds, partially_linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> t = (X[:, 0] + rng.logistic(size=500) > 0).astype(int)
    >>> y = 2 * t + 3 * X[:, 0] + rng.normal(size=500)
    >>> found = partially_linear(X, t, y, effect_folds(t, np.arange(500), 5, 0))
    >>> abs(found.value - 2) < 3 * found.standard_error()
    True
    """
    outcome_hat = cross_fitted(_outcome_model(outcome_model), X, outcome, folds)
    return partially_linear_score(
        outcome, treatment, outcome_hat, propensity_scores(X, treatment, folds, propensity_model)
    )


def doubly_robust(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    folds: Folds,
    *,
    target: str = "ATE",
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
) -> Estimated:
    """Augmented inverse probability weighting: right where either the outcome's models or the propensity's are.

    Parameters
    ----------
    X, treatment, outcome, folds, outcome_model, propensity_model
        As in `partially_linear`; the outcome has a model of each arm, and scores are clipped.
    target : {"ATE", "ATT"}
        Of all rows, or of the treated ones.

    Returns
    -------
    Estimated
    """
    model = _outcome_model(outcome_model)
    control_hat = cross_fitted(model, X, outcome, folds, among=treatment == 0)
    treated_hat = cross_fitted(model, X, outcome, folds, among=treatment == 1) if target == "ATE" else control_hat
    propensity = clipped(propensity_scores(X, treatment, folds, propensity_model))
    return doubly_robust_score(outcome, treatment, control_hat, treated_hat, propensity, target)


def inverse_probability_weighting(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    folds: Folds,
    *,
    target: str = "ATE",
    propensity_model: Any | None = None,
) -> Estimated:
    """Inverse probability weighting with weights that sum to one in each arm.

    Parameters
    ----------
    X, treatment, outcome, folds, target
        As in `doubly_robust`.
    propensity_model : classifier, optional
        By default `WhitenedLogisticRegression` of all rows; the standard error knows then that its coefficients were
        estimated from the same rows.  Of any other model rows are left out, and scores are taken as known, which
        mostly makes the standard error of the "ATE" too large; use `doubly_robust`.

    Returns
    -------
    Estimated
    """
    propensity = clipped(propensity_scores(X, treatment, None if propensity_model is None else folds, propensity_model))
    found = weighting_score(outcome, treatment, propensity, target)
    return found if propensity_model is not None else _of_estimated_scores(found, X, treatment, propensity, target)


def survival_difference(
    X: FloatArray,
    treatment: NDArray[np.int64],
    event: NDArray[np.bool_],
    time: FloatArray,
    folds: Folds,
    *,
    horizon: float,
    target: str = "ATE",
    propensity_model: Any | None = None,
) -> Estimated:
    """Difference of survival at a time, between Kaplan-Meier curves under inverse probability weights.

    Parameters
    ----------
    X, treatment, folds, target, propensity_model
        As in `inverse_probability_weighting`.
    event, time : ndarray of shape (n_rows,)
        That observation ends must have nothing to do with the event, given the arm.
    horizon : float
        In the unit of the times.

    Returns
    -------
    Estimated

    Raises
    ------
    EffectError
        When fewer than 10 rows of an arm were watched until then.
    """
    propensity = clipped(propensity_scores(X, treatment, None if propensity_model is None else folds, propensity_model))
    found = survival_score(event, time, treatment, propensity, target, horizon)
    return found if propensity_model is not None else _of_estimated_scores(found, X, treatment, propensity, target)


def _outcome_model(given: Any | None) -> Any:
    return LinearRegression() if given is None else given


def _of_estimated_scores(
    found: Estimated, X: FloatArray, treatment: NDArray[np.int64], propensity: FloatArray, target: str
) -> Estimated:
    r"""The influence where the scores are a logistic regression's on the same rows, fitted by maximum likelihood.

    .. math:: \varphi_i + s_i^\top I^{-1} A, \quad s_i = (T_i - e_i)\, b_i, \quad b_i = (1, x_i),
       \quad I = \sum_i e_i (1 - e_i)\, b_i b_i^\top,
       \quad A = \sum_i \varphi_i \frac{\partial \log w_i}{\partial \beta}

    """
    B = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])
    # Columns of unit length: their scales must not decide what counts as dependent.
    B = B / np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    if target == "ATT":
        by_score = np.where(treatment == 1, 0.0, 1.0)
    else:
        by_score = np.where(treatment == 1, propensity - 1.0, propensity)
    moved = B.T @ (found.influence * by_score)
    information = (B * (propensity * (1.0 - propensity))[:, None]).T @ B
    coefficients = np.linalg.lstsq(information, moved, rcond=None)[0]
    return Estimated(found.value, found.influence + (treatment - propensity) * (B @ coefficients))
