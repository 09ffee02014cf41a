r"""Cox's proportional hazards regression: the partial likelihood, and Newton's method with a ridge penalty.

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
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._constraints import Interval, StrOptions
from .._typing import FloatArray
from ..errors import NotConvergedError, NumericalError
from ._baseline import Baseline, SurvivalModel, baselines_of
from ._survival_rows import SurvivalRows, check_rows


class CoxRegression(SurvivalModel, BaseEstimator):
    r"""Proportional hazards, :math:`\lambda_s(t \mid x) = \lambda_{0s}(t) \exp((x - \bar x)^\top \beta)` ([Cox1972]_).

    β maximises :math:`\ell(\beta) - \tfrac{\alpha}{2} \|\beta\|^2` with the partial likelihood ℓ summed, not
    averaged, over events: α has the scale of scikit-survival's ``CoxPHSurvivalAnalysis``, and n times that of
    lifelines' penalty.

    Parameters
    ----------
    alpha : float, default=0.0
        Ridge penalty.
    standardize : bool, default=False
        Whether the penalty is on coefficients of columns brought to unit variance, so that it does not depend on their
        units: collaboration representations have entries as small as there are many anchor rows.
    ties : {"efron", "breslow"}, default="efron"
        Treatment of events at one time.  Efron's is nearer to the truth, the more so the coarser the times.
    min_events_per_step : int, default=5
        Times of the baseline are merged until each step has so many events.  All who get the model get the baseline of
        a stratum, and single steps show when single events were.
    max_iter : int, default=100
    tol : float, default=1e-9
        The fit ends as soon as no row's log risk changes by more.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        β.
    covariance_ : ndarray of shape (n_features, n_features)
        Inverse of the observed information.  With a penalty, of the information plus the penalty's, as in lifelines;
        it is no sampling variance of the shrunk estimate.
    mean_ : ndarray of shape (n_features,)
        x̄, weighted: the row of log risk 0.
    baselines_ : dict of stratum to Baseline
        Λ₀ of the row x̄, by Breslow's estimate for either kind of `ties`.
    log_likelihood_ : float
        ℓ(β), without the penalty.
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Strata have baselines of their own and share β.  A stratum of one party takes the party's follow-up time and level
    of risk out of β; it cannot take a β of its own out.  A stratum without events gets the baseline of all rows
    together, and a `DataCollabWarning` names it.

    A fitted model holds no row.  But a step of its baselines says that `min_events_per_step` events or more were
    between two times, or all of a stratum with fewer.  The last time of a baseline is the last observation of the
    stratum.

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
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
            From `datacollab.targets.survival_target`.
        strata : array-like of shape (n_rows,), optional
            Names of the strata, such as the parties'.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, except that Efron's treatment of ties differs.

        Raises
        ------
        AgreementError
            If y are no survival targets, or none has an event.
        NumericalError
            If β is not determined or diverges; the message names the parameter to change.
        """
        self._validate_params()
        rows = check_rows(self, X, y, strata, sample_weight)
        mean = np.average(rows.X, axis=0, weights=rows.weight)
        spread = np.sqrt(np.average((rows.X - mean) ** 2, axis=0, weights=rows.weight))
        # A constant column keeps its scale, and is refused if there is no penalty to decide on it.
        spread = np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)
        # Scaled columns let one tolerance serve all; the penalty is that of the columns as they are unless asked for.
        scaled = replace(rows, X=(rows.X - mean) / spread)
        efron = self.ties == "efron"
        strata_sets = [StratumRiskSets.of(scaled.of(number), efron=efron) for number in np.unique(rows.stratum)]
        penalty = self.alpha / spread**2
        if self.standardize:
            penalty = np.full(len(spread), float(self.alpha))
        beta, at_beta, self.n_iter_ = maximise(strata_sets, penalty, max_iter=self.max_iter, tol=self.tol)
        self.coef_ = beta / spread
        self.mean_ = mean
        self.log_likelihood_ = at_beta.value
        factor = scipy.linalg.cho_factor(at_beta.information + np.diag(penalty))
        self.covariance_ = scipy.linalg.cho_solve(factor, np.eye(len(spread))) / np.outer(spread, spread)
        self.baselines_ = baselines_of(rows, (rows.X - mean) @ self.coef_, self.min_events_per_step)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the log risk (x − x̄)ᵀβ of each row, shape (n_rows,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((rows - self.mean_) @ self.coef_)


@dataclass(frozen=True, eq=False)
class StratumRiskSets:
    """One stratum from the last time to the first, so that the rows at risk at a time come first."""

    X: FloatArray
    event: NDArray[np.bool_]
    weight: FloatArray
    n_at_risk: NDArray[np.intp]  # rows at risk at each time with an event, from the last time to the first
    n_later: NDArray[np.intp]  # how many of these times are after each row's own: those at which it is not at risk
    place: NDArray[np.intp]  # the time of each event
    fraction: FloatArray  # l/d of each event

    @classmethod
    def of(cls, rows: SurvivalRows, *, efron: bool) -> Self:
        """Sort one stratum's rows."""
        order = np.argsort(-rows.time, kind="stable")
        time = rows.time[order]
        event = rows.event[order]
        # Negated, times ascend, as searchsorted wants them.
        event_times, place, counts = np.unique(-time[event], return_inverse=True, return_counts=True)
        fraction = np.zeros(len(place))
        if efron:
            # l = 0, 1, ... of the d events at one time
            first = np.repeat(np.cumsum(counts) - counts, counts)
            fraction = (np.arange(len(place)) - first) / np.repeat(counts, counts)
        return cls(
            X=rows.X[order],
            event=event,
            weight=rows.weight[order],
            n_at_risk=np.searchsorted(-time, event_times, side="right"),
            n_later=np.searchsorted(event_times, -time, side="left"),
            place=place,
            fraction=fraction,
        )


@dataclass(frozen=True, eq=False)
class PartialLikelihood:
    """The logarithm of the partial likelihood at one β, its gradient, and its second derivative, negated."""

    value: float
    gradient: FloatArray
    information: FloatArray


def partial_likelihood(beta: FloatArray, strata: Sequence[StratumRiskSets]) -> PartialLikelihood:
    """Return value and derivatives at β, over all strata; O(n p²) and no array of n × p × p."""
    value = 0.0
    gradient = np.zeros(len(beta))
    information = np.zeros((len(beta), len(beta)))
    for sets in strata:
        if sets.event.any():
            part = _of_stratum(beta, sets)
            value += part.value
            gradient = gradient + part.gradient
            information = information + part.information
    return PartialLikelihood(value, gradient, information)


def _of_stratum(beta: FloatArray, sets: StratumRiskSets) -> PartialLikelihood:
    X = sets.X
    weight = sets.weight
    event = sets.event
    place = sets.place
    eta = X @ beta
    # Shifting η by a number changes no ratio and keeps the exponentials finite.
    top = eta.max()
    risk = weight * np.exp(eta - top)
    last = sets.n_at_risk - 1
    n_times = len(last)
    counts = np.bincount(place, minlength=n_times)
    mean_weight = (np.bincount(place, weights=weight[event], minlength=n_times) / counts)[place]

    # One row per event from here on: events of one time differ by the part that Efron takes out of the risk set.
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
    # Second moments less products of the means, both summed over events.
    information = (X * share[:, None]).T @ X - (mean * mean_weight[:, None]).T @ mean
    return PartialLikelihood(value, gradient, information)


_MOST_HALVINGS = 30
_LEAST_RCOND = 1e-11
"""Smallest condition of the information, its columns scaled alike: a direction with less is rounding."""
_SLACK = 1e-12
"""Part of the likelihood by which it may fall in a step: rounding at the maximum."""


def maximise(
    strata: Sequence[StratumRiskSets], penalty: FloatArray, *, max_iter: int, tol: float
) -> tuple[FloatArray, PartialLikelihood, int]:
    r"""Maximise :math:`\ell(\beta) - \tfrac12 \sum_j p_j \beta_j^2`; return β, the likelihood, and the iterations.

    Columns have about the same spread.  A step from 0 on that makes it worse is halved.  It ends as soon as no row's
    log risk changes by more than `tol`.  If the likelihood grows for ever in some direction, log risks keep changing
    while the likelihood hardly does, so that a criterion on the latter would miss it.
    """
    beta = np.zeros(len(penalty))
    here = partial_likelihood(beta, strata)
    for n_iter in range(1, max_iter + 1):
        step = _newton_step(here.information + np.diag(penalty), here.gradient - penalty * beta)
        height = _penalise(here, beta, penalty)
        for _ in range(_MOST_HALVINGS):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                there = partial_likelihood(beta + step, strata)
            if _penalise(there, beta + step, penalty) >= height - _SLACK * max(1.0, abs(height)):
                break
            step = step / 2
        else:
            raise NotConvergedError(
                f"Cox regression: no step made the likelihood larger in iteration {n_iter}. Look for columns of very "
                "different scales, or set alpha above 0."
            )
        beta = beta + step
        here = there
        if max(float(np.abs(sets.X @ step).max()) for sets in strata) <= tol:
            return beta, here, n_iter
    raise NotConvergedError(
        f"Cox regression did not converge in {max_iter} iterations. Likely, a combination of columns orders the "
        "events (separation), so that its coefficient has no end: set alpha above 0, or take fewer columns. "
        "Otherwise raise max_iter or tol."
    )


def _penalise(at: PartialLikelihood, beta: FloatArray, penalty: FloatArray) -> float:
    height = at.value - 0.5 * float(penalty @ beta**2)
    # A step so long that exponentials overflow is worse than any other.
    return height if np.isfinite(height) else -np.inf


def _newton_step(information: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the Newton step, by Cholesky factors of the information scaled to ones on its diagonal."""
    diagonal = np.diagonal(information)
    if not np.isfinite(information).all() or (diagonal <= 0).any():
        raise _singular()
    scale = 1.0 / np.sqrt(diagonal)
    scaled = information * scale * scale[:, None]
    if scipy.linalg.eigvalsh(scaled, subset_by_index=(0, 0))[0] < _LEAST_RCOND * len(scaled):
        raise _singular()
    return np.asarray(scale * scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled), scale * gradient))


def _singular() -> NumericalError:
    return NumericalError(
        "Cox regression: the information is singular. Columns are constant or nearly a combination of others within "
        "strata, or they separate the events. Set alpha above 0, or take fewer columns."
    )
