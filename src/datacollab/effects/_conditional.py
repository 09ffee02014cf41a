"""Effects that depend on the row: linear in the collaboration representation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from .._threads import one_thread
from .._validation import FloatArray, PartyName
from ..analyst import BaseIntegrator
from ..errors import AgreementError, UnknownPartyError
from ..model import PartyModel
from ..share import Share
from ._combined import combined_rows
from ._estimators import propensity_scores
from ._learners import cross_fitted, effect_folds

__all__ = ["ConditionalEffects", "conditional_effects"]

_RANK = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalEffects:
    r"""Effects :math:`\tau(\hat x) = a + b^\top \hat x`, to be said of each row at its party.

    Attributes
    ----------
    n_rows, n_groups : int
        Rows, and rows or means of rows that are independent.
    p_value : float
        Of an effect that is the same for all rows, by Wald's test.
    estimator_ : LinearRegression
        Of the effect given the collaboration representation.
    integrator_ : BaseIntegrator
        Fitted.
    """

    n_rows: int
    n_groups: int
    p_value: float
    estimator_: LinearRegression = field(repr=False)
    integrator_: BaseIntegrator = field(repr=False)

    def party_model(self, party: PartyName) -> PartyModel:
        """What goes back to one party: ``party.predict(X, model)`` is the effect of treatment on each row then.

        Raises
        ------
        UnknownPartyError
            When the party took no part.
        """
        maps = self.integrator_.integration_functions_
        if party not in maps:
            raise UnknownPartyError(f"Party {party!r} took no part; the parties are {list(maps)!r}.")
        return PartyModel(party=party, integration_function=maps[party], estimator=self.estimator_)


@one_thread
def conditional_effects(
    shares: Iterable[Share],
    integrator: BaseIntegrator,
    *,
    folds: int = 5,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ConditionalEffects:
    r"""Fit effects that are linear in the collaboration representation, by residuals on residuals [1]_ [2]_.

    .. math:: \min_{a, b} \sum_i \bigl(r^Y_i - r^T_i (a + b^\top \hat x_i)\bigr)^2

    with what the outcome and the treatment differ from their expectation given :math:`\hat x`, rows left out.

    Parameters
    ----------
    shares, integrator, folds, outcome_model, propensity_model, random_state
        As in `estimate_effect`; outcomes are numbers.

    Returns
    -------
    ConditionalEffects

    Raises
    ------
    AgreementError, EffectError
        As in `estimate_effect`; AgreementError also of times to events.

    References
    ----------
    .. [1] Robinson (1988). Root-N-consistent semiparametric regression. Econometrica 56(4), 931-954.
    .. [2] Nie and Wager (2021). Quasi-oracle estimation of heterogeneous treatment effects. Biometrika 108(2), 299-319.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollab as dc
    >>> from datacollab.effects import conditional_effects
    >>> from datacollab.targets import effect_target
    >>> rng = np.random.default_rng(0)
    >>> X, public = rng.normal(size=(600, 3)), rng.normal(size=(50, 3))
    >>> t = (X[:, 0] + rng.logistic(size=600) > 0).astype(int)
    >>> y = effect_target(t, (2 + X[:, 1]) * t + 3 * X[:, 0] + rng.normal(size=600))
    >>> f = dc.obfuscator("pca", n_components=3)
    >>> parties = [dc.Party(k, f).fit(X[k::3], y[k::3]) for k in range(3)]
    >>> found = conditional_effects([p.share(public) for p in parties], dc.LTI(3, fit_intercept=True), random_state=0)
    >>> parties[0].predict([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]], found.party_model(0)).round(0)
    array([1., 3.])
    """
    rows = combined_rows(shares, integrator)
    if rows.is_survival:
        raise AgreementError("Conditional effects are on numbers; targets are times to events. Take estimate_effect.")
    X, t = rows.X, rows.treatment
    outcome = np.asarray(rows.target["outcome"], dtype=np.float64)
    splits = effect_folds(t, rows.groups, folds, random_state)
    model = LinearRegression() if outcome_model is None else outcome_model
    r_y = outcome - cross_fitted(model, X, outcome, splits)
    r_t = t - propensity_scores(X, t, splits, propensity_model)
    estimator, p_value = _fitted(X, r_t, r_y, rows.groups)
    return ConditionalEffects(
        n_rows=len(t),
        n_groups=len(np.unique(rows.groups)),
        p_value=p_value,
        estimator_=estimator,
        integrator_=rows.integrator,
    )


def _fitted(
    X: FloatArray, r_t: FloatArray, r_y: FloatArray, groups: NDArray[np.intp]
) -> tuple[LinearRegression, float]:
    """Coefficients in the coordinates of X, and the p-value of b = 0 with errors by group."""
    mean = X.mean(axis=0)
    U, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    kept = s > _RANK * max(float(s.max()), np.finfo(float).tiny)
    whitened = U[:, kept] * np.sqrt(len(X))
    D = r_t[:, None] * np.column_stack([np.ones(len(X)), whitened])
    moment = D.T @ D
    coefficients = np.linalg.lstsq(D, r_y, rcond=None)[0]
    scores = D * (r_y - D @ coefficients)[:, None]
    by_group = np.zeros((int(groups.max()) + 1, D.shape[1]))
    np.add.at(by_group, groups, scores)
    half = np.linalg.solve(moment, by_group.T)
    covariance = half @ half.T
    b = coefficients[1:]
    statistic = float(b @ np.linalg.solve(covariance[1:, 1:], b)) if b.size else 0.0
    plain = LinearRegression()
    plain.coef_ = (b / s[kept] * np.sqrt(len(X))) @ Vt[kept]
    plain.intercept_ = float(coefficients[0] - plain.coef_ @ mean)
    plain.n_features_in_ = X.shape[1]
    return plain, float(chi2.sf(statistic, max(b.size, 1)))
