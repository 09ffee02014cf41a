"""Cox's proportional hazards regression."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import FloatArray
from .._validation import Interval, StrOptions
from ._baseline import Baseline
from ._curves import SurvivalModel, baselines_of
from ._newton import maximised
from ._partial_likelihood import RiskSets
from ._rows import SurvivalRows, checked_rows

__all__ = ["CoxRegression"]


class CoxRegression(SurvivalModel, BaseEstimator):
    r"""Proportional hazards, :math:`\lambda_s(t \mid x) = \lambda_{0s}(t) \exp((x - \bar x)^\top \beta)` ([Cox1972]_).

    β maximises :math:`\ell(\beta) - \tfrac{\alpha}{2} \|\beta\|^2` with the partial likelihood ℓ summed, not averaged,
    over events: α has the scale of scikit-survival's ``CoxPHSurvivalAnalysis``, and n times that of lifelines' penalty.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty.
    standardize : bool, default=False
        Whether the penalty is on coefficients of columns brought to unit variance, so that it does not depend on their
        units: collaboration representations have entries as small as there are many anchor rows.
    ties : {"efron", "breslow"}, default="efron"
        How events of one time are treated.  Efron's way is nearer to the truth, the more so the coarser the times.
    min_events_per_step : int, default=5
        Times of the baseline are merged until each step has so many events.  The baseline of a stratum goes to whoever
        gets the model, and single steps tell when single events were.
    max_iter : int, default=100
    tol : float, default=1e-9
        The fit is at its end when no row's log risk changes by more.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        β.
    covariance_ : ndarray of shape (n_features, n_features)
        Inverse of the observed information.  With a penalty, of the information plus the penalty's: what is known of β
        by data and penalty together, as in lifelines, and no sampling variance of the shrunk estimate.
    mean_ : ndarray of shape (n_features,)
        x̄, weighted: the row of log risk 0.
    baselines_ : dict of stratum to Baseline
        Λ₀ of the row x̄, by Breslow's estimate, whatever `ties`.
    log_likelihood_ : float
        ℓ(β), without the penalty.
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Strata have baselines of their own and share β.  A stratum of one party takes the party's follow-up time and level
    of risk out of β; it cannot take a β of its own out.

    A fitted model holds no row, but a step of its baselines says that `min_events_per_step` events or more were between
    two times, or all of a stratum with fewer.  The last time of a baseline is where the last row of the stratum was
    watched to.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.survival import CoxRegression
    >>> from datacollab.targets import survival_target
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(300, 2))
    >>> time = generator.exponential(np.exp(-X[:, 0]))
    >>> model = CoxRegression().fit(X, survival_target(time < 2, np.minimum(time, 2)))
    >>> model.coef_.round(1) + 0.0
    array([1.1, 0. ])
    >>> model.predict_survival(X[:2], [0.5, 1.0]).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "ties": [StrOptions({"efron", "breslow"})],
        "min_events_per_step": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    n_features_in_: int
    coef_: FloatArray
    covariance_: FloatArray
    mean_: FloatArray
    baselines_: dict[Any, Baseline]
    log_likelihood_: float
    n_iter_: int

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        standardize: bool = False,
        ties: str = "efron",
        min_events_per_step: int = 5,
        max_iter: int = 100,
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.standardize = standardize
        self.ties = ties
        self.min_events_per_step = min_events_per_step
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self, X: ArrayLike, y: ArrayLike, strata: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
            Of `datacollab.targets.survival_target`.
        strata : array-like of shape (n_rows,), optional
            Names of the strata, such as the parties'.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, up to how Efron's way treats ties among them.

        Raises
        ------
        AgreementError
            When y are no survival targets, or none has an event.
        NumericalError
            When β is not determined or has no end; the message says what to change.
        """
        self._validate_params()
        rows = checked_rows(self, X, y, strata, sample_weight)
        mean = np.average(rows.X, axis=0, weights=rows.weight)
        spread = np.sqrt(np.average((rows.X - mean) ** 2, axis=0, weights=rows.weight))
        # A constant column keeps its scale, and is refused where there is no penalty to decide on it.
        spread = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
        strata_sets = _risk_sets(rows, mean, spread, efron=self.ties == "efron")
        penalty = np.full(len(spread), float(self.alpha)) if self.standardize else self.alpha / spread**2
        beta, at_beta, self.n_iter_ = maximised(strata_sets, penalty, max_iter=self.max_iter, tol=self.tol)
        self.coef_, self.mean_, self.log_likelihood_ = beta / spread, mean, at_beta.value
        self.covariance_ = _inverse(at_beta.information + np.diag(penalty)) / np.outer(spread, spread)
        self.baselines_ = baselines_of(rows, (rows.X - mean) @ self.coef_, self.min_events_per_step)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """The log risk (x − x̄)ᵀβ of each row, shape (n_rows,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((rows - self.mean_) @ self.coef_)


def _risk_sets(rows: SurvivalRows, mean: FloatArray, spread: FloatArray, *, efron: bool) -> list[RiskSets]:
    scaled = SurvivalRows((rows.X - mean) / spread, rows.event, rows.time, rows.weight, rows.stratum, rows.strata)
    return [RiskSets.of(scaled.of(number), efron=efron) for number in np.unique(rows.stratum)]


def _inverse(information: FloatArray) -> FloatArray:
    return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(information), np.eye(len(information))))
