"""Estimators of effects from arrays: folds, the default propensity model, standard errors, and curves of survival."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._constraints import Interval
from .._validation import FloatArray
from ..errors import EffectError

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]
"""Positions that train and positions that are predicted, fold by fold."""


def with_parties(X: FloatArray, party: ArrayLike | None) -> FloatArray:
    """Return columns with an indicator of each party beside them, shape (n_rows, n_columns + n_parties).

    Models fitted to these have a level of its own for each party.  They adjust for all that the rows of a party have in
    common, such as a hospital's usual treatment and its usual outcome.  One party, or None, adds nothing.
    """
    if party is None:
        return X
    names, codes = np.unique(np.asarray(party), return_inverse=True)
    if len(names) < 2:
        return X
    return np.column_stack([X, np.eye(len(names))[codes]])


def effect_folds(
    treatment: NDArray[np.int64],
    groups: NDArray[np.intp],
    n_folds: int,
    random_state: int | np.random.RandomState | None,
    *,
    party: ArrayLike | None = None,
) -> Folds:
    """Draw folds that each have about the same part of every arm of every party; rows of one group are in one fold.

    Groups are such as `equal_rows` gives; a group of both arms counts for the arm of most of its rows.  Without
    `party`, shape (n_rows,), all rows are one party's.  Raise EffectError if an arm has too few groups to be in every
    fold's training rows.
    """
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    # Rows of a group are copies or means of the same records, which must not be on both sides.
    arms = (np.bincount(numbers, weights=treatment) > 0.5 * np.bincount(numbers)).astype(np.intp)
    fewest = int(np.bincount(arms, minlength=2).min())
    # Each fold's training rows must have both arms.
    if fewest < n_folds:
        raise EffectError(
            f"{n_folds} folds need {n_folds} distinct rows of either arm, treated and not; one arm has {fewest}. Ask "
            "for fewer folds, or for more rows."
        )
    parties = np.zeros(len(first), dtype=np.intp)
    if party is not None:
        parties = np.unique(np.asarray(party), return_inverse=True)[1][first]
    # Dealt in turn: an arm of a party differs by one group at most from fold to fold, and so does an arm.
    order = np.lexsort([check_random_state(random_state).uniform(size=len(first)), parties, arms])
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % n_folds
    return [(np.flatnonzero(fold[numbers] != each), np.flatnonzero(fold[numbers] == each)) for each in range(n_folds)]


_RANK = 1e-9
"""Singular values below this part of the largest count as none."""


class WhitenedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression that is the same in all coordinates: for rows x and for rows xG + b, G invertible.

    Rows are centred and brought to covariance I, and coefficients there have a small ridge penalty, 1 / `C`.  So scores
    of an affine collaboration representation of full rank are those of the original columns, and they exist also if the
    arms are completely separable.  ``coef_``, shape (1, n_features), and ``intercept_`` are for rows as they are given.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"C": [Interval(Real, 0, None, closed="right")]}

    def __init__(self, C: float = 10.0) -> None:
        self.C = C

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and arms, which are two classes."""
        self._validate_params()
        rows, y = validate_data(self, X, y)
        mean = rows.mean(axis=0)
        U, s, Vt = np.linalg.svd(rows - mean, full_matrices=False)
        # Directions of rounding would be blown up to unit variance.
        kept = s > _RANK * max(float(s.max()), np.finfo(float).tiny)
        # Left singular vectors times the root of n have covariance I, so that the penalty sees no coordinates.
        scale = np.where(kept, np.sqrt(len(rows)), 0.0)
        model = LogisticRegression(C=self.C, tol=1e-10, max_iter=1000, solver="newton-cholesky")
        with warnings.catch_warnings():
            # The search may end where rounding hides the last gains: the objective is strictly convex.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(U * scale, y)
        coef = model.coef_ @ (Vt * (scale / np.where(kept, s, 1.0))[:, None])
        self.classes_ = model.classes_
        self.coef_ = coef
        self.intercept_ = model.intercept_ - coef @ mean
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return probabilities of the classes, shape (n_samples, 2)."""
        check_is_fitted(self)
        second = expit(validate_data(self, X, reset=False) @ self.coef_[0] + self.intercept_[0])
        return np.column_stack([1.0 - second, second])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likelier class of each row, shape (n_samples,)."""
        return np.asarray(self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(np.intp)])


def predict_mean(model: Any, X: FloatArray) -> FloatArray:
    """Return a classifier's probability of class 1, or a regressor's number, shape (n_rows,)."""
    values = model.predict_proba(X)[:, 1] if is_classifier(model) else model.predict(X)
    return np.asarray(values, dtype=np.float64)


def cross_fit(
    model: Any, X: FloatArray, y: NDArray[Any], folds: Folds, *, among: NDArray[np.bool_] | None = None
) -> FloatArray:
    """Return predictions of each row by a clone fitted without its fold, shape (n_rows,).

    Without a model it is linear regression.  ``among`` marks rows that may train, such as those of one arm; all rows
    are predicted.
    """
    if model is None:
        model = LinearRegression()
    values = np.empty(len(X))
    for train, test in folds:
        # A row never meets a model that has seen it, so that errors of the models do not add to each other's.
        rows = train if among is None else train[among[train]]
        values[test] = predict_mean(clone(model).fit(X[rows], y[rows]), X[test])
    return values


PROPENSITY_CLIP = 0.02
"""Propensities are taken to be this far from 0 and 1, so that no row weighs more than 50."""


def treatment_weights(treatment: NDArray[np.int64], propensity: FloatArray, target: str) -> FloatArray:
    r"""Return weights, shape (n_rows,), under which both arms look like all rows, the treated ones, or the overlap.

    For the target "ATE" :math:`T / e + (1 - T) / (1 - e)`, for "ATT" :math:`T + (1 - T)\, e / (1 - e)`, for "overlap"
    :math:`T (1 - e) + (1 - T)\, e`, with the treatment T, 0 or 1, and the propensity e, between 0 and 1, both excluded.
    """
    if target == "overlap":
        return np.where(treatment == 1, 1.0 - propensity, propensity)
    if target == "ATT":
        return np.where(treatment == 1, 1.0, propensity / (1.0 - propensity))
    return np.where(treatment == 1, 1.0 / propensity, 1.0 / (1.0 - propensity))


@dataclass(frozen=True, eq=False)
class Estimated:
    r"""An estimate and its influence function :math:`\varphi_i` at each row, shape (n_rows,), with mean zero.

    The estimate is off the truth by about the mean of the influence.
    """

    value: float
    influence: FloatArray

    def standard_error(self, groups: NDArray[np.intp] | None = None) -> float:
        r"""Return :math:`\sqrt{\sum_g (\sum_{i \in g} \varphi_i)^2} / n`.

        Rows of one number in `groups`, shape (n_rows,), move together, as means of the same records do, or rows of one
        party; None takes rows as independent.
        """
        # Rows of a group move together, so their influences add up before they are squared.
        sums = self.influence if groups is None else np.bincount(groups, weights=self.influence)
        return float(np.sqrt(sums @ sums) / len(self.influence))


_AT_RISK = 10
"""Rows of an arm that are watched until the horizon at least; of fewer a curve says nothing there."""


def survival_at(
    event: NDArray[np.bool_], time: FloatArray, weights: FloatArray, horizon: float
) -> tuple[float, FloatArray]:
    r"""Return the weighted Kaplan-Meier curve at one time, and its derivative by the logarithms of the weights.

    .. math:: S(h) = \prod_{u \le h} (1 - d_u / Y_u), \quad
       w_i \frac{\partial S}{\partial w_i} = - S(h) \sum_{u \le h} w_i
       \frac{dN_i(u) - Y_i(u) d_u / Y_u}{Y_u - d_u}

    with :math:`d_u` the weight of the events at u and :math:`Y_u` that of the rows at risk.  If nobody is censored
    before the horizon, it is the weighted part of rows with a time beyond it.  The derivative sums to zero.
    """
    order = np.argsort(time, kind="stable")
    t = time[order]
    w = weights[order]
    times, first = np.unique(t, return_index=True)
    at_risk = np.cumsum(w[::-1])[::-1][first]
    events = np.add.reduceat(w * event[order], first)
    events[times > horizon] = 0.0
    # The last event of a curve may take all that is at risk; the curve is zero then, and stays there.
    steps = np.maximum(1.0 - events / at_risk, 0.0)
    value = float(np.prod(steps))
    # Rounding of n factors: a curve that ends has no derivative to speak of.
    if value <= len(t) * np.finfo(float).eps:
        return 0.0, np.zeros(len(t))
    left = at_risk - events
    # A row at risk lowers the hazard of each event time that it has seen.
    hazard = np.cumsum(events / (at_risk * left))
    position = np.searchsorted(times, time)
    happened = event & (time <= horizon)
    return value, -value * weights * (np.where(happened, 1.0 / left[position], 0.0) - hazard[position])


def pseudo_values(event: NDArray[np.bool_], time: FloatArray, horizon: float) -> FloatArray:
    r"""Return pseudo-observations of being without the event at a time [1]_, also of censored rows.

    .. math:: S(h) + n \frac{\partial S}{\partial w_i}

    Their mean is the Kaplan-Meier curve; without censoring, they are 1 beyond the horizon and 0 before.  Rows are
    those of one arm.

    References
    ----------
    .. [1] Andersen, Syriopoulou and Parner (2017). Causal inference in survival analysis using pseudo-observations.
       Statistics in Medicine 36(17), 2669-2681.
    """
    _check_watched(time, horizon)
    value, derivative = survival_at(event, time, np.ones(len(time)), horizon)
    return value + len(time) * derivative


def _check_watched(time: FloatArray, horizon: float) -> None:
    # Beyond the last observed time a curve is unknown, and just before it a matter of few rows.
    watched = int((time >= horizon).sum())
    if watched < _AT_RISK:
        raise EffectError(
            f"{watched} rows of an arm were watched until {horizon:g}; a difference of survival needs {_AT_RISK}. Take "
            "an earlier horizon."
        )


def clip_scores(propensity: FloatArray) -> FloatArray:
    """Return scores at least 0.02 from 0 and 1, shape (n_rows,)."""
    return np.clip(propensity, PROPENSITY_CLIP, 1.0 - PROPENSITY_CLIP)


def propensity_scores(
    X: FloatArray, treatment: NDArray[np.int64], folds: Folds | None, model: Any | None = None
) -> FloatArray:
    """Return each row's probability of treatment, shape (n_rows,), not clipped.

    Without folds, the model is fitted to all rows and predicts them.  It is `WhitenedLogisticRegression` by default.
    """
    if model is None:
        model = WhitenedLogisticRegression()
    if folds is None:
        return predict_mean(clone(model).fit(X, treatment), X)
    return cross_fit(model, X, treatment, folds)


def partially_linear(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    folds: Folds,
    *,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
) -> Estimated:
    r"""Estimate the effect in :math:`Y = \theta T + u(x) + \varepsilon`, after Robinson (1988) and [1]_.

    .. math:: \hat\theta = \sum_i r^T_i r^Y_i / \sum_i (r^T_i)^2,
       \quad \varphi_i = (r^Y_i - \hat\theta r^T_i) r^T_i / \overline{(r^T)^2}

    The residuals r are outcome and treatment less their predictions from x.  If the effect differs between rows, the
    estimate is its average weighted by :math:`e(x)(1 - e(x))`, the overlap-weighted effect [2]_, and not the ATE.
    Rows without overlap count little, so that nothing is clipped.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_components)
    treatment : ndarray of shape (n_rows,)
        0 or 1.
    outcome : ndarray of shape (n_rows,)
    folds : list of (ndarray, ndarray)
    outcome_model : estimator, optional
        Predicts the outcome from x; linear regression by default.  A classifier gives its probability of 1.
    propensity_model : classifier, optional
        Predicts the treatment from x; `WhitenedLogisticRegression` by default.

    References
    ----------
    .. [1] Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey and Robins (2018). Double/debiased machine learning
       for treatment and structural parameters. The Econometrics Journal 21(1), C1-C68.
    .. [2] Li, Morgan and Zaslavsky (2018). Balancing covariates via propensity score weighting. Journal of the American
       Statistical Association 113(521), 390-400.
    """
    r_y = outcome - cross_fit(outcome_model, X, outcome, folds)
    r_t = treatment - propensity_scores(X, treatment, folds, propensity_model)
    # Frisch, Waugh and Lovell: the coefficient of T, with the rest taken off both.
    value = float(r_t @ r_y / (r_t @ r_t))
    return Estimated(value, (r_y - value * r_t) * r_t / np.mean(r_t**2))


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
    r"""Estimate by augmented inverse probability weighting, after Robins, Rotnitzky and Zhao (1994).

    .. math::
       \psi^{ATE} &= m_1 - m_0 + T (Y - m_1) / e - (1 - T)(Y - m_0) / (1 - e) \\
       \psi^{ATT} &= (T - (1 - T) e / (1 - e)) (Y - m_0) / p, \quad p = \overline{T}

    It is right if either the outcome's models m or the propensity's e are.

    Parameters
    ----------
    X, treatment, outcome, folds, outcome_model, propensity_model
        As in `partially_linear`; each arm has an outcome model, and scores are clipped.
    target : {"ATE", "ATT"}
        On average over all rows, or over the treated ones.
    """
    control_hat = cross_fit(outcome_model, X, outcome, folds, among=treatment == 0)
    propensity = clip_scores(propensity_scores(X, treatment, folds, propensity_model))
    if target == "ATT":
        share = treatment.mean()
        signed = np.where(treatment == 1, 1.0, -propensity / (1.0 - propensity))
        psi = signed * (outcome - control_hat) / share
        value = float(psi.mean())
        return Estimated(value, psi - value * treatment / share)
    treated_hat = cross_fit(outcome_model, X, outcome, folds, among=treatment == 1)
    psi = (
        treated_hat
        - control_hat
        + treatment * (outcome - treated_hat) / propensity
        - (1 - treatment) * (outcome - control_hat) / (1.0 - propensity)
    )
    value = float(psi.mean())
    return Estimated(value, psi - value)


def inverse_probability_weighting(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    folds: Folds,
    *,
    target: str = "ATE",
    propensity_model: Any | None = None,
) -> Estimated:
    """Estimate by the difference of the arms' weighted means, after Hájek: weights sum to one in each arm.

    Parameters
    ----------
    X, treatment, outcome, folds, target
        As in `doubly_robust`.
    propensity_model : classifier, optional
        By default `WhitenedLogisticRegression` on all rows; the standard error knows then that its coefficients were
        estimated from the same rows.  Any other model predicts left-out rows, and its scores are taken as known, which
        mostly makes the standard error of the "ATE" too large; use `doubly_robust`.
    """

    def mean_of_arm(weights: FloatArray) -> tuple[float, FloatArray]:
        value = float(weights @ outcome / weights.sum())
        return value, weights * (outcome - value) / weights.mean()

    return _subtract_arms(mean_of_arm, X, treatment, folds, target, propensity_model)


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
    """Estimate a difference of survival at a time: Kaplan-Meier curves under inverse probability weights [1]_.

    Parameters
    ----------
    X, treatment, folds, target, propensity_model
        As in `inverse_probability_weighting`.
    event, time : ndarray of shape (n_rows,)
        The end of observation must have nothing to do with the event, given the arm.
    horizon : float
        In the unit of the times.  Raise EffectError if fewer than 10 rows of an arm were watched until then.

    References
    ----------
    .. [1] Xie and Liu (2005). Adjusted Kaplan-Meier estimator and log-rank test with inverse probability of treatment
       weighting for survival data. Statistics in Medicine 24(20), 3089-3110.
    """

    def curve_of_arm(weights: FloatArray) -> tuple[float, FloatArray]:
        rows = np.flatnonzero(weights)
        influence = np.zeros(len(time))
        _check_watched(time[rows], horizon)
        value, derivative = survival_at(event[rows], time[rows], weights[rows], horizon)
        influence[rows] = derivative * len(time)
        return value, influence

    return _subtract_arms(curve_of_arm, X, treatment, folds, target, propensity_model)


def _subtract_arms(
    of_arm: Callable[[FloatArray], tuple[float, FloatArray]],
    X: FloatArray,
    treatment: NDArray[np.int64],
    folds: Folds,
    target: str,
    propensity_model: Any | None,
) -> Estimated:
    """Return the treated arm's value less the other's, functions of weights that are 0 for rows of the other arm."""
    # The default model is fitted to all rows, and its part in the standard error corrected for below.
    scores = propensity_scores(X, treatment, None if propensity_model is None else folds, propensity_model)
    propensity = clip_scores(scores)
    weights = treatment_weights(treatment, propensity, target)
    control, of_control = of_arm(np.where(treatment == 0, weights, 0.0))
    treated, of_treated = of_arm(np.where(treatment == 1, weights, 0.0))
    difference = Estimated(treated - control, of_treated - of_control)
    if propensity_model is not None:
        return difference
    return _correct_for_scores(difference, X, treatment, propensity, target)


def _correct_for_scores(
    estimate: Estimated, X: FloatArray, treatment: NDArray[np.int64], propensity: FloatArray, target: str
) -> Estimated:
    r"""Correct the influence for scores of a logistic regression fitted to the same rows by maximum likelihood.

    .. math:: \varphi_i + s_i^\top I^{-1} A, \quad s_i = (T_i - e_i)\, b_i, \quad b_i = (1, x_i),
       \quad I = \sum_i e_i (1 - e_i)\, b_i b_i^\top,
       \quad A = \sum_i \varphi_i \frac{\partial \log w_i}{\partial \beta}
    """
    B = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])
    # Columns of unit length: their scales must not decide which of them count as dependent.
    B = B / np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    # The derivative of log w by the log odds: 0 and 1 for the odds of the ATT, e - 1 and e for the ATE.
    if target == "ATT":
        by_score = np.where(treatment == 1, 0.0, 1.0)
    else:
        by_score = np.where(treatment == 1, propensity - 1.0, propensity)
    moved = B.T @ (estimate.influence * by_score)
    information = (B * (propensity * (1.0 - propensity))[:, None]).T @ B
    coefficients = np.linalg.lstsq(information, moved, rcond=None)[0]
    return Estimated(estimate.value, estimate.influence + (treatment - propensity) * (B @ coefficients))
