"""A forest of relative risks."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._constraints import Interval, StrOptions
from .._typing import FloatArray
from ..errors import AgreementError
from ._baseline import Baseline, SurvivalModel, baselines_of, nelson_aalen_of
from ._survival_rows import SurvivalRows, check_rows


class SurvivalForest(SurvivalModel, BaseEstimator):
    r"""Relative risks from a forest of trees after LeBlanc and Crowley ([LeBlanc1992]_).

    Given the cumulative hazard Λ₀ of all rows, the number of events of a row is as if Poisson with mean θ(x) Λ₀(t).  A
    tree's splits gain most of that likelihood; a leaf's relative risk is its events over its expected events,
    :math:`\hat\theta = \sum \delta_i / \sum \Lambda_0(t_i)`.  That is a regression tree with the Poisson criterion
    on :math:`\delta_i / \Lambda_0(t_i)` with weights :math:`\Lambda_0(t_i)`, so scikit-learn grows it, and trees
    are plain regression trees.  Each is grown on as many rows as there are, drawn with replacement.  The forest's risk
    is the mean over trees.

    Parameters
    ----------
    n_estimators : int, default=300
    min_samples_leaf : int, default=10
    min_expected_events : float, default=3.0
        Expected events of a leaf; fewer make its risk a matter of chance.
    max_features : float, int, "sqrt" or "log2", default="sqrt"
        Columns tried for each split, as in scikit-learn's forests.
    min_events_per_step : int, default=5
        As in `CoxRegression`.
    n_jobs : int, default=None
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        They predict relative risks.
    baselines_ : dict of stratum to Baseline
        By Breslow's estimate, with each row's risk from the trees that were grown without it, if there are any: the
        risks of rows in the training sample are too far apart.
    n_features_in_ : int

    Notes
    -----
    Λ₀ is Nelson and Aalen's estimate within each stratum.  A tree's leaf holds a number and no row, but the risk of a
    leaf with one event says that there was one.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "min_expected_events": [Interval(Real, 0, None, closed="left")],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
        ],
        "min_events_per_step": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    n_features_in_: int
    estimators_: list[DecisionTreeRegressor]
    baselines_: dict[Any, Baseline]

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        min_samples_leaf: int = 10,
        min_expected_events: float = 3.0,
        max_features: float | str = "sqrt",
        min_events_per_step: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.min_expected_events = min_expected_events
        self.max_features = max_features
        self.min_events_per_step = min_events_per_step
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, y: ArrayLike, strata: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the forest; parameters are those of `CoxRegression.fit`.

        It raises AgreementError if y are no survival targets, or there are too few events for a single leaf.
        """
        self._validate_params()
        rows = check_rows(self, X, y, strata, sample_weight)
        expected, ratio = _poisson_targets(rows)
        n_events = float(rows.weight @ rows.event)
        # Expected events add up to those seen, and a split needs them on both sides.
        if 2 * self.min_expected_events > n_events:
            raise AgreementError(
                f"There are {n_events:g} events, too few for two leaves of {self.min_expected_events:g} each. Take "
                "more rows, or lower min_expected_events."
            )
        # A seed for each tree: the forest does not depend on how many grow at a time.
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=self.n_estimators)
        grown = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._grow)(rows.X, ratio, expected, seed) for seed in seeds.tolist()
        )
        self.estimators_ = [tree for tree, _ in grown]
        log_risk = np.log(_risk_of_left_out(rows.X, grown))
        self.baselines_ = baselines_of(rows, log_risk, self.min_events_per_step)
        return self

    def _grow(
        self, X: FloatArray, ratio: FloatArray, expected: FloatArray, seed: int
    ) -> tuple[DecisionTreeRegressor, NDArray[np.bool_]]:
        """Grow one tree, and say which rows were drawn for it."""
        generator = check_random_state(seed)
        # Drawn here and not by scikit-learn's forests, where weights of rows have changed their meaning: some of their
        # versions draw rows by weight, and an early event would be drawn hardly ever.
        drawn = np.zeros(len(X), dtype=np.intp)
        while not drawn[ratio > 0].any():  # of few events none may be drawn, and a tree needs one
            drawn = np.bincount(generator.randint(len(X), size=len(X)), minlength=len(X))
        weight = drawn * expected
        tree = DecisionTreeRegressor(
            criterion="poisson",
            min_samples_leaf=self.min_samples_leaf,
            # Expected events add up to those seen, so a part of the weight is a number of events.
            min_weight_fraction_leaf=min(self.min_expected_events / float(weight.sum()), 0.5),
            max_features=self.max_features,
            random_state=generator,
        )
        kept = drawn > 0
        return tree.fit(X[kept], ratio[kept], sample_weight=weight[kept]), kept

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the logarithm of each row's relative risk, shape (n_rows,)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(np.log(_mean_risk(rows, self.estimators_)))


def _poisson_targets(rows: SurvivalRows) -> tuple[FloatArray, FloatArray]:
    """Return w Λ₀(t) and δ / Λ₀(t) of each row; rows that left before the first event weigh nothing."""
    hazard = np.empty(len(rows.time))
    for number in range(len(rows.strata)):
        hazard[rows.stratum == number] = nelson_aalen_of(rows.of(number))
    # Where an event was, the hazard is above 0.
    ratio = np.divide(rows.event, hazard, out=np.zeros(len(hazard)), where=hazard > 0)
    return rows.weight * hazard, ratio


def _mean_risk(X: FloatArray, trees: list[DecisionTreeRegressor]) -> FloatArray:
    return np.asarray(sum(tree.predict(X) for tree in trees)) / len(trees)


def _risk_of_left_out(X: FloatArray, grown: list[tuple[DecisionTreeRegressor, NDArray[np.bool_]]]) -> FloatArray:
    """Return each row's mean risk over the trees grown without it; over all if there are none."""
    total, count = np.zeros((2, len(X)))
    for tree, seen in grown:
        if not seen.all():
            total[~seen] += tree.predict(X[~seen])
            count += ~seen
    everywhere = _mean_risk(X, [tree for tree, _ in grown])
    return np.divide(total, count, out=everywhere, where=count > 0)
