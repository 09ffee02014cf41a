"""Effects of a treatment from rows, treatments and outcomes as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from .._validation import FloatArray
from ..linalg import PROPENSITY_CLIP
from ._folds import Folds
from ._learners import WhitenedLogisticRegression, cross_fitted, predicted
from ._scores import Estimated, doubly_robust_score, partially_linear_score, weighting_score
from ._survival_curves import survival_score

__all__ = [
    "clipped",
    "doubly_robust",
    "inverse_probability_weighting",
    "partially_linear",
    "propensity_scores",
    "survival_difference",
]


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
