"""KTI with its hyperparameters chosen from the anchors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._validation import FloatArray, HasMethods, Interval, PartyName, StrOptions
from ..errors import AgreementError
from ._base import BaseIntegrator, Representations
from ._graphs import NeighborGraph
from ._kti import KTI, GammaRule

__all__ = ["KTICV"]


class KTICV(BaseIntegrator):
    r"""KTI whose kernel, width, ridge penalty and graph weight are chosen from the anchors alone.

    No private row is looked at.  The anchor rows are split into folds; a candidate is fitted on all folds but one, and
    the rows of that one are mapped through every party.  With anchor targets, the score is how well a nearest-neighbour
    model, trained on the other folds' rows as all parties see them, predicts them: the accuracy, or the coefficient of
    determination.  Without, it is the concordance: the share of the variance of these rows that all parties agree on,
    averaged over components.

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.
    kernels : sequence of str or callable, default=("rbf", "linear")
        Kernels to try; see `KTI`.
    gamma_factors : sequence of float, default=(0.1, 0.3, 1.0, 3.0)
        Multiples of `gamma` to try.
    alphas : sequence of float, default=(0.001, 0.01, 0.1, 1.0)
        Ridge penalties :math:`\lambda` to try.
    graph_weights : sequence of float, default=(1.0,)
        Weights :math:`\mu` of the graph to try; without a graph they are not looked at.
    gamma : float, "median", "scale", callable or mapping of party to any of these, default="median"
    graph, penalty_graph, penalty_epsilon, center
        As in `KTI`; the same for all candidates.
    task : {"auto", "classification", "regression"}, default="auto"
        What anchor targets are; "auto" treats floating-point targets as numbers and all others as classes.
    estimator : estimator, default=None
        The model that scores candidates where there are anchor targets.  None takes ten nearest neighbours on
        standardised components.
    cv : int or cross-validation generator, default=3
        Folds of the anchor rows.  A number means that many random folds, stratified by class where there are classes.
    n_jobs : int, default=None
        Candidates tried at a time.
    random_state : int, RandomState or None, default=None
        Of the folds, where `cv` is a number; None always takes the same ones.

    Attributes
    ----------
    integrator_ : KTI
        The best candidate, fitted on all anchor rows.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its score, the mean over folds.
    cv_results_ : dict
        "params", a list of dict, and "mean_test_score", an ndarray, for all candidates.
    target_, eigenvalues_, objective_, gammas_, solver_, integration_functions_
        Those of `integrator_`.

    Notes
    -----
    The search costs one fit per candidate and fold, so about 60 fits of `KTI` by default.  Among candidates with the
    best score it takes the one with the largest penalty, then the one whose multiple of the width is nearest to 1.

    Anchors made by interpolation (SMOTE) have close relatives in every fold.  Scores are then too high for all
    candidates, and candidates that follow the anchors closely are favoured.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import KTICV
    >>> rng = np.random.default_rng(0)
    >>> A = rng.uniform(-1, 1, size=(200, 2))
    >>> coiled = np.column_stack([np.sin(2.5 * A), np.cos(2.5 * A)])
    >>> search = KTICV(2, alphas=(0.01, 0.1), center=True).fit({"a": A, "b": coiled}, y=A[:, 0])
    >>> search.best_params_["kernel"]
    'rbf'
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kernels": ["array-like"],
        "gamma_factors": ["array-like"],
        "alphas": ["array-like"],
        "graph_weights": ["array-like"],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median", "scale"}), callable, Mapping],
        "graph": [NeighborGraph, None],
        "penalty_graph": [NeighborGraph, None],
        "penalty_epsilon": [Interval(Real, 0, None, closed="left")],
        "center": ["boolean"],
        "estimator": [HasMethods(["fit", "score"]), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    integrator_: KTI
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]

    def __init__(
        self,
        n_components: int = 10,
        *,
        kernels: Sequence[str | Callable[..., Any]] = ("rbf", "linear"),
        gamma_factors: Sequence[float] = (0.1, 0.3, 1.0, 3.0),
        alphas: Sequence[float] = (0.001, 0.01, 0.1, 1.0),
        graph_weights: Sequence[float] = (1.0,),
        gamma: GammaRule | Mapping[Any, GammaRule] = "median",
        graph: NeighborGraph | None = None,
        penalty_graph: NeighborGraph | None = None,
        penalty_epsilon: float = 1e-6,
        center: bool = False,
        task: str = "auto",
        estimator: Any = None,
        cv: Any = 3,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernels = kernels
        self.gamma_factors = gamma_factors
        self.alphas = alphas
        self.graph_weights = graph_weights
        self.gamma = gamma
        self.graph = graph
        self.penalty_graph = penalty_graph
        self.penalty_epsilon = penalty_epsilon
        self.center = center
        self.task = task
        self.estimator = estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Score all candidates on held-out anchor rows, and fit the best on all rows.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows.
        y : array-like of shape (n_anchors,), optional
            Targets of the anchor rows.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When `y` has not one entry per anchor row.  Also the errors of `KTI.fit`, which any candidate may raise.
        """
        checked = self._start_fit(anchors)
        n_anchors = next(iter(checked.values())).shape[0]
        target = None if y is None else np.asarray(y)
        if target is not None and target.shape != (n_anchors,):
            raise AgreementError(f"One target per anchor row is wanted, shape ({n_anchors},); got {target.shape}.")
        is_classification = target is not None and (
            self.task == "classification" or (self.task == "auto" and target.dtype.kind != "f")
        )
        folds = list(self._splitter(is_classification).split(np.zeros((n_anchors, 1)), target))

        candidates = list(self._candidates())
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_score)(
                self._integrator(candidate), self._scorer(is_classification, len(train)), checked, target, train, test
            )
            for candidate in candidates
            for train, test in folds
        )
        means = np.reshape(scores, (len(candidates), len(folds))).mean(axis=1)
        best = int(means.argmax())
        self.cv_results_ = {"params": candidates, "mean_test_score": means}
        self.best_params_, self.best_score_ = candidates[best], float(means[best])
        self.integrator_ = self._integrator(self.best_params_).fit(checked, target)
        self.integration_functions_ = self.integrator_.integration_functions_
        return self

    @property
    def target_(self) -> FloatArray:
        """Z of the best candidate, shape (n_anchors, n_components)."""
        return self.integrator_.target_

    @property
    def eigenvalues_(self) -> FloatArray:
        """Eigenvalues of the best candidate, shape (n_components,)."""
        return self.integrator_.eigenvalues_

    @property
    def objective_(self) -> float:
        """Objective of the best candidate."""
        return self.integrator_.objective_

    @property
    def gammas_(self) -> dict[PartyName, float]:
        """Kernel widths of the best candidate."""
        return self.integrator_.gammas_

    @property
    def solver_(self) -> str:
        """Solver of the best candidate."""
        return self.integrator_.solver_

    def _candidates(self) -> Iterator[dict[str, Any]]:
        """All combinations but those that make no difference; of equally good ones the first is taken."""
        alphas = sorted(self.alphas, reverse=True)
        factors = sorted(self.gamma_factors, key=lambda factor: abs(np.log(factor)))
        weights = {} if self.graph is None else {"graph_weight": list(self.graph_weights)}
        for kernel in self.kernels:
            has_width = isinstance(kernel, str) and "gamma" in KERNEL_PARAMS.get(kernel, ())
            widths = {"gamma_factor": factors} if has_width else {}
            yield from ParameterGrid({"kernel": [kernel], "alpha": alphas, **widths, **weights})

    def _integrator(self, candidate: Mapping[str, Any]) -> KTI:
        integrator = KTI(
            self.n_components,
            gamma=self.gamma,
            graph=self.graph,
            penalty_graph=self.penalty_graph,
            penalty_epsilon=self.penalty_epsilon,
            center=self.center,
        )
        integrator.set_params(**candidate)
        return integrator

    def _splitter(self, is_classification: bool) -> Any:
        if not isinstance(self.cv, Integral):
            return check_cv(self.cv)
        # Anchors often come class after class, so unshuffled folds would hold out what training has never seen.
        folds = StratifiedKFold if is_classification else KFold
        random_state = 0 if self.random_state is None else self.random_state
        return folds(self.cv, shuffle=True, random_state=random_state)

    def _scorer(self, is_classification: bool, n_train: int) -> Any:
        if self.estimator is not None:
            return clone(self.estimator)
        neighbors = KNeighborsClassifier if is_classification else KNeighborsRegressor
        return make_pipeline(StandardScaler(), neighbors(n_neighbors=min(10, n_train)))


def _score(
    integrator: KTI,
    scorer: Any,
    anchors: Mapping[PartyName, FloatArray],
    target: NDArray[Any] | None,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> float:
    """Fit on the training rows; score on the test rows as every party sees them."""
    seen = {party: A[train] for party, A in anchors.items()}
    integrator.fit(seen, None if target is None else target[train])
    held_out = integrator.transform({party: A[test] for party, A in anchors.items()})
    if target is None:
        return concordance(held_out.values())
    pooled = np.vstack(list(integrator.transform(seen).values()))
    scorer.fit(pooled, np.tile(target[train], len(anchors)))
    return float(scorer.score(np.vstack(list(held_out.values())), np.tile(target[test], len(anchors))))


def concordance(representations: Iterable[FloatArray]) -> float:
    """Share of each component's variance that all parties agree on, averaged over components.

    Parameters
    ----------
    representations : iterable of ndarray of shape (n_rows, n_components)
        The same rows as each party sees them.
    """
    stacked = np.stack(list(representations))
    total = stacked.reshape(-1, stacked.shape[2]).var(axis=0)
    agreed = stacked.mean(axis=0).var(axis=0)
    # A component that is constant for everybody tells nothing, so agreeing on it earns nothing.
    return float(np.mean(np.divide(agreed, total, out=np.zeros_like(agreed), where=total > 0)))
