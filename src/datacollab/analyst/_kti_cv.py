"""The search over hyperparameters of KTI, by the anchors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from .._constraints import HasMethods, Interval, StrOptions
from .._validation import FloatArray, PartyName
from ..errors import NumericalError
from ..linalg import (
    Kernel,
    RidgePath,
    add_sparse_to_lower,
    fix_signs,
    ridge_path,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ._graphs import NeighborGraph, anchor_targets
from ._kti import KTI, GammaRule, KernelRule, each_value, has_width
from ._linear import SHARED_CONSTRAINTS, BaseIntegrator, Representations, check_n_components
from ._solvers import definite, kernel_rank

HeldOutView = tuple[float, float | None, FloatArray]
"""A candidate's penalty and graph weight, and held-out rows under it, shape (n_parties, n_rows, n_components)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fold:
    """Anchor rows that candidates are fitted to, and others that they are scored on."""

    train: dict[PartyName, FloatArray]
    train_target: NDArray[Any] | None
    laplacian: sparse.csr_array | None
    held_out: dict[PartyName, FloatArray]
    held_out_target: NDArray[Any] | None
    parts: tuple[NDArray[np.intp], NDArray[np.intp]] | None


def map_held_out(
    train: Mapping[PartyName, FloatArray],
    held_out: Mapping[PartyName, FloatArray],
    kernels: Mapping[PartyName, Kernel],
    *,
    alphas: Sequence[float],
    n_components: int,
    center: bool,
    laplacian: sparse.csr_array | None = None,
    graph_weights: Sequence[float | None],
) -> Iterator[HeldOutView]:
    r"""Fit KTI for all penalties and graph weights on some anchor rows, and map others.

    One eigendecomposition per party serves all candidates: with :math:`\Sigma_k = U_k \mathrm{diag}(s_k) U_k^\top`,
    :math:`M_\lambda = K I - \sum_k U_k \mathrm{diag}(s_k / (s_k + \lambda)) U_k^\top`.
    """
    paths: dict[PartyName, RidgePath] = {}
    for party, A in train.items():
        with definite(party, min(alphas)):
            paths[party] = ridge_path(kernels[party].gram(A), min(alphas))
    between = {party: kernels[party].between(held_out[party], A) for party, A in train.items()}
    n = next(iter(paths.values())).vectors.shape[0]
    for alpha in alphas:
        # The lower triangle of M_lambda (eq. Sk-Mlambda-definition).
        M = np.zeros((n, n), order="F")
        for path in paths.values():
            path.add_smoother(M, alpha)
        np.negative(M, out=M)
        M[np.diag_indices(n)] += len(paths)
        for weight in graph_weights:
            Z = _target(M, laplacian, weight, n_parties=len(paths), n_components=n_components, center=center)
            mapped = [between[party] @ path.coefficients(alpha, Z) for party, path in paths.items()]
            yield alpha, weight, np.stack(mapped)


def _target(
    M: FloatArray,
    laplacian: sparse.csr_array | None,
    weight: float | None,
    *,
    n_parties: int,
    n_components: int,
    center: bool,
) -> FloatArray:
    """Return Z, with at most ``n_components`` columns."""
    # The eigensolver overwrites its matrix, and M serves the next weight.
    problem = M.copy(order="F")
    has_graph = False
    # A weight of 0 is the problem without a graph, which has no traces to divide by.
    if laplacian is not None and weight:
        has_graph = True
        problem /= np.trace(M)
        add_sparse_to_lower(problem, laplacian, weight / laplacian.trace())
    if center:
        eigenvalues, Z = smallest_eigenpairs_centred(problem, n_components)
    else:
        eigenvalues, Z = smallest_eigenpairs(problem, n_components)
    if not has_graph:
        # Directions on which all kernels vanish map every row to zero, and rounding errors are no components.
        Z = Z[:, : kernel_rank(eigenvalues, n_parties)]
    return Z * fix_signs(Z)


def halves(target: NDArray[Any], random_state: np.random.RandomState) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split rows at random into two halves in which the target is distributed alike."""
    # Every other row of the sorted targets; the shuffle decides among equal ones.
    shuffled = random_state.permutation(len(target))
    order = shuffled[np.argsort(target[shuffled], kind="stable")]
    return order[::2], order[1::2]


def default_predictor(
    target: NDArray[Any], parts: tuple[NDArray[np.intp], NDArray[np.intp]], is_classification: bool
) -> Any:
    """Return the model that scores candidates: it is fast, and ranks nearly as a forest on the parties' rows.

    Linear discriminant analysis for classes, where either part has several classes; otherwise nearest neighbours.
    """
    if is_classification and all(np.unique(target[part]).size > 1 for part in parts):
        # Shrinkage keeps it stable where components are many for half of a fold.
        return make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1))
    neighbors = KNeighborsClassifier if is_classification else KNeighborsRegressor
    return make_pipeline(StandardScaler(), neighbors(n_neighbors=min(10, *map(len, parts))))


def prediction_score(
    representations: FloatArray, target: NDArray[Any], parts: tuple[NDArray[np.intp], NDArray[np.intp]], estimator: Any
) -> float:
    """Return how well a model trained on one part of the rows predicts the other; the mean of both ways.

    Both parts are new to the integration functions, as the parties' own rows are that the model is trained on later.
    """
    n_parties, _, n_components = representations.shape

    def stack(rows: NDArray[np.intp]) -> tuple[FloatArray, NDArray[Any]]:
        return representations[:, rows].reshape(-1, n_components), np.tile(target[rows], n_parties)

    first = stack(parts[0])
    second = stack(parts[1])
    # Both ways: halves of few rows differ by chance.
    scores = [clone(estimator).fit(*seen).score(*new) for seen, new in ((first, second), (second, first))]
    return float(np.mean(scores))


def concordance(representations: Iterable[FloatArray]) -> float:
    """Return the mean share of a component's variance on which all parties agree (eq. anchor-concordance)."""
    # The mean over parties varies as far as they agree; the total is over all their rows.
    stacked = np.stack(list(representations))
    total = stacked.reshape(-1, stacked.shape[2]).var(axis=0)
    agreed = stacked.mean(axis=0).var(axis=0)
    # A component that is constant for everybody tells nothing, so agreeing on it earns nothing.
    return float(np.mean(np.divide(agreed, total, out=np.zeros_like(agreed), where=total > 0)))


_TIE = 1e-12
"""Scores that differ by less are equal."""
_OF_BEST = ("target_", "eigenvalues_", "objective_", "gammas_", "solver_", "integration_functions_")
"""Attributes that the search takes over from the best candidate."""


class KTICV(BaseIntegrator):
    r"""KTI whose kernel, width, ridge penalty, graph weight and number of components are chosen from the anchors alone.

    No private row is looked at.  The anchor rows are split into folds; candidates are fitted on all folds but one, and
    the rows of that one are mapped through every party.  With anchor targets, the score is how well they are predicted
    there: a model is trained on one half of the held-out rows as all parties see them and scored on the other half, and
    the other way round; the accuracy, or the coefficient of determination.  Without, it is the concordance: the share
    of the variance of these rows that all parties agree on, averaged over components.

    Parameters
    ----------
    n_components : int or sequence of int, default=(16, 32)
        :math:`\hat d`, columns of the collaboration representation; of several numbers the best is taken.  Numbers that
        the anchors or a kernel do not allow are left out as long as one remains.  Without anchor targets the largest is
        taken, since concordance cannot tell.
    kernels : sequence of str, callable or mapping of party to either, default=("rbf", "linear")
        Kernels to try; see `KTI`.  None may be precomputed.
    gamma_factors : sequence of float, default=(0.1, 0.3, 1.0)
        Multiples of `gamma` to try.
    alphas : sequence of float, default=(0.001, 0.01, 0.1)
        Ridge penalties :math:`\lambda` to try.
    graph_weights : sequence of float, default=(0.0, 1.0, 10.0)
        Weights :math:`\mu` of the graph to try, 0 for none; without a graph they are not looked at.
    gamma, graph, penalty_graph, penalty_epsilon, center
        As in `KTI`; the same for all candidates.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of anchor targets; "auto" treats floating-point targets as numbers and all others as classes.
    estimator : estimator, default=None
        The model that scores candidates where there are anchor targets.  None takes linear discriminant analysis for
        classes and ten nearest neighbours for numbers, on standardised components.
    cv : int or cross-validation generator, default=2
        Folds of the anchor rows.  A number means that many random folds, stratified by class where there are classes.
    max_anchors : int or None, default=1000
        The search is on as many anchor rows at most, drawn at random; the best candidate is then fitted on all.
    engine : dask.distributed.Client, Engine or None, default=None
        As in `KTI`, for the fit of the best candidate on all anchor rows; the search is in this process.
    n_jobs : int, default=None
        Folds and kernels tried at a time.
    random_state : int, RandomState or None, default=None
        Draws the rows searched on, the folds where `cv` is a number, and the halves; None always takes the same ones.

    Attributes
    ----------
    integrator_ : KTI
        The best candidate, fitted on all anchor rows.
    best_params_ : dict
    best_score_ : float
        The mean over folds.
    cv_results_ : dict
        "params", a list of dict, "mean_test_score" and "std_test_score", an ndarray each, for all candidates.
    target_, eigenvalues_, objective_, gammas_, solver_, integration_functions_
        Those of `integrator_`.

    Notes
    -----
    Among candidates with the best score it takes the one with the fewest components, then the one with the largest
    penalty, the multiple of the width nearest to 1, and the smallest graph weight.

    Anchors made by interpolation (SMOTE) lie between few rows and have close relatives in every fold.  Scores are then
    too high for all candidates, and those that follow these rows closely, but reach no further, are favoured.  Allow
    wide kernels and large penalties only, such as ``gamma_factors=(0.1, 0.3), alphas=(0.1, 1.0)``.

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
        **SHARED_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "kernels": ["array-like"],
        "gamma_factors": ["array-like"],
        "alphas": ["array-like"],
        "graph_weights": ["array-like"],
        "estimator": [HasMethods(["fit", "score"]), None],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "cv": ["cv_object"],
        "max_anchors": [Interval(Integral, 2, None, closed="left"), None],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float
    gammas_: dict[PartyName, float]
    solver_: str

    def __init__(  # noqa: PLR0913
        self,
        n_components: int | Sequence[int] = (16, 32),
        *,
        kernels: Sequence[KernelRule | Mapping[Any, KernelRule]] = ("rbf", "linear"),
        gamma_factors: Sequence[float] = (0.1, 0.3, 1.0),
        alphas: Sequence[float] = (0.001, 0.01, 0.1),
        graph_weights: Sequence[float] = (0.0, 1.0, 10.0),
        gamma: GammaRule | Mapping[Any, GammaRule] = "median",
        graph: NeighborGraph | None = None,
        penalty_graph: NeighborGraph | None = None,
        penalty_epsilon: float = 1e-6,
        center: bool = False,
        task: str = "auto",
        estimator: Any = None,
        cv: Any = 2,
        max_anchors: int | None = 1000,
        engine: Any = None,
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
        self.max_anchors = max_anchors
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Score all candidates on held-out anchor rows, and fit the best on all rows.

        Parameters and errors are those of `KTI.fit`.  Raise AgreementError if `y` has not one entry per anchor row, and
        ValueError if a list of candidates is empty or has an entry that `KTI` does not take, or no number of components
        is allowed by the data.
        """
        checked = self._start_fit(anchors)
        numbers = self._numbers()
        n_anchors = next(iter(checked.values())).shape[0]
        random_state = check_random_state(0 if self.random_state is None else self.random_state)
        target = None if y is None else anchor_targets(y, n_anchors, "KTICV")
        # Decompositions take cubic time, and the ranking of candidates needs no more rows.
        rows = np.arange(n_anchors)
        if self.max_anchors is not None and n_anchors > self.max_anchors:
            rows = np.sort(random_state.permutation(n_anchors)[: self.max_anchors])
        drawn = {party: A[rows] for party, A in checked.items()}
        with self._few_threads(drawn):
            candidates, scores = self._search(numbers, drawn, _take(target, rows), random_state)
        means = scores.mean(axis=1)
        if np.isnan(means).any():
            raise NumericalError(
                f"KTICV: {n_anchors} anchor rows in {self.cv!r} folds are too few to score candidates. Take more "
                "anchor rows or fewer folds."
            )
        # The first of the best: candidates come from the simplest to the most flexible.
        best = int(np.argmax(means >= means.max() - _TIE))
        self.cv_results_ = {"params": candidates, "mean_test_score": means, "std_test_score": scores.std(axis=1)}
        self.best_params_ = candidates[best]
        self.best_score_ = float(means[best])
        self.integrator_ = self._integrator(self.best_params_).fit(checked, target)
        for name in _OF_BEST:
            setattr(self, name, getattr(self.integrator_, name))
        return self

    def _numbers(self) -> list[int]:
        """Return the numbers of components to try, after a check of all values, before any work."""
        numbers: Any = self.n_components
        if isinstance(numbers, Integral):
            numbers = [numbers]
        tried: dict[str, tuple[str, Sequence[Any]]] = {
            "kernels": ("kernel", self.kernels),
            "gamma_factors": ("gamma_factor", self.gamma_factors),
            "alphas": ("alpha", self.alphas),
            "graph_weights": ("graph_weight", self.graph_weights),
            "n_components": ("n_components", numbers),
        }
        for name, (parameter, values) in tried.items():
            if not len(values):
                raise ValueError(f"KTICV: {name} is empty; expected at least one value to try.")
            for value in values:
                KTI().set_params(**{parameter: value})._validate_params()
        if any("precomputed" in each_value(kernel) for kernel in self.kernels):
            raise ValueError(
                "KTICV: kernels has 'precomputed', whose matrices are not cut into folds. Name kernels of rows, or fit "
                "KTI(kernel='precomputed') with each alpha in question."
            )
        return sorted({int(number) for number in numbers})

    def _kernel_parameters(self) -> Iterator[dict[str, Any]]:
        """Yield kernels, with their widths where they have any, those nearest to 1 first."""
        for kernel in self.kernels:
            if has_width(kernel):
                # Of equal scores the first candidate is taken: the width nearest to the rule's.
                for factor in sorted(self.gamma_factors, key=lambda factor: abs(np.log(factor))):
                    yield {"kernel": kernel, "gamma_factor": factor}
            else:
                yield {"kernel": kernel}

    def _candidates(self, numbers: list[int], kernels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield all combinations but those that make no difference, from the simplest to the most flexible."""
        weights: list[dict[str, Any]] = [{}]
        if self.graph is not None:
            weights = [{"graph_weight": each} for each in sorted(self.graph_weights)]
        for number, alpha, kernel, weight in product(numbers, sorted(self.alphas, reverse=True), kernels, weights):
            yield {"n_components": number, "alpha": alpha, **kernel, **weight}

    def _integrator(self, candidate: Mapping[str, Any]) -> KTI:
        integrator = KTI(
            gamma=self.gamma,
            graph=self.graph,
            penalty_graph=self.penalty_graph,
            penalty_epsilon=self.penalty_epsilon,
            center=self.center,
            engine=self.engine,
        )
        integrator.set_params(**candidate)
        return integrator

    def _search(
        self,
        numbers: list[int],
        anchors: Mapping[PartyName, FloatArray],
        target: NDArray[Any] | None,
        random_state: np.random.RandomState,
    ) -> tuple[list[dict[str, Any]], FloatArray]:
        """Return candidates that the data allow, and their scores by fold, of shape (n_candidates, n_folds)."""
        is_classification = target is not None and (
            self.task == "classification" or (self.task == "auto" and target.dtype.kind != "f")
        )
        folds = list(self._folds(anchors, target, is_classification, random_state))
        # The smallest fold allows the fewest components; centring takes one.
        smallest = min(len(next(iter(fold.train.values()))) for fold in folds) - int(self.center)
        check_n_components(numbers[0], smallest, f"the search fits candidates to {smallest + self.center} anchor rows")
        kernels = list(self._kernel_parameters())
        # One task for a kernel and a fold, whose decompositions serve all penalties and weights.
        tried = Parallel(n_jobs=self.n_jobs)(
            delayed(self._scores)(fold, kernel, numbers, min(numbers[-1], smallest), is_classification)
            for kernel in kernels
            for fold in folds
        )
        # Only the kernel's place is looked up: a function that went to another process and back is another one.
        by_kernel = [tried[start : start + len(folds)] for start in range(0, len(tried), len(folds))]
        candidates = []
        scores = []
        for candidate in self._candidates(numbers, kernels):
            key = candidate["n_components"], candidate["alpha"], candidate.get("graph_weight")
            kernel: dict[str, Any] = {name: candidate[name] for name in ("kernel", "gamma_factor") if name in candidate}
            by_fold = by_kernel[kernels.index(kernel)]
            # A number of components beyond a fold's rank has no score there.
            if all(key in scored for scored in by_fold):
                candidates.append(candidate)
                scores.append([scored[key] for scored in by_fold])
        if not candidates:
            raise ValueError(
                f"n_components={numbers[0]} is more than the anchors' kernel matrices tell apart with any of the "
                "kernels. Lower n_components, or ask the parties for richer representations."
            )
        return candidates, np.asarray(scores)

    def _folds(
        self,
        anchors: Mapping[PartyName, FloatArray],
        target: NDArray[Any] | None,
        is_classification: bool,
        random_state: np.random.RandomState,
    ) -> Iterator[Fold]:
        """Cut the anchor rows into folds."""
        if isinstance(self.cv, Integral):
            # Anchors often come class after class, so unshuffled folds would hold out what training has never seen.
            kind = StratifiedKFold if is_classification else KFold
            splitter = kind(self.cv, shuffle=True, random_state=random_state)
        else:
            splitter = check_cv(self.cv)
        n_anchors = next(iter(anchors.values())).shape[0]
        for train, test in splitter.split(np.zeros((n_anchors, 1)), target):
            seen = {party: A[train] for party, A in anchors.items()}
            yield Fold(
                train=seen,
                train_target=_take(target, train),
                laplacian=None if self.graph is None else self.graph.laplacian(seen, _take(target, train)),
                held_out={party: A[test] for party, A in anchors.items()},
                held_out_target=_take(target, test),
                parts=None if target is None else halves(target[test], random_state),
            )

    def _scores(
        self, fold: Fold, kernel: Mapping[str, Any], numbers: list[int], n_components: int, is_classification: bool
    ) -> dict[tuple[int, float, float | None], float]:
        """Return scores of one kernel on one fold, by number of components, penalty and graph weight."""
        scores = {}
        for alpha, weight, seen in self._views(fold, kernel, n_components):
            allowed = [number for number in numbers if number <= seen.shape[2]]
            if fold.parts is None:
                # Concordance falls with every component, so that it cannot choose their number.
                allowed = allowed[-1:]
            for number in allowed:
                scores[number, alpha, weight] = self._score(fold, seen[:, :, :number], is_classification)
        return scores

    def _views(self, fold: Fold, kernel: Mapping[str, Any], n_components: int) -> Iterator[HeldOutView]:
        weights: Sequence[float | None] = [None] if self.graph is None else self.graph_weights
        if self.penalty_graph is None:
            yield from map_held_out(
                fold.train,
                fold.held_out,
                self._integrator(kernel)._kernels(fold.train),
                alphas=self.alphas,
                n_components=n_components,
                center=self.center,
                laplacian=fold.laplacian,
                graph_weights=weights,
            )
            return
        # With a penalty graph no decomposition serves several candidates, which are fitted one by one.
        for alpha, weight in product(self.alphas, weights):
            integrator = self._integrator({"n_components": n_components, "alpha": alpha, **kernel})
            if weight is not None:
                integrator.set_params(graph_weight=weight)
            mapped = integrator.fit(fold.train, fold.train_target).transform(fold.held_out)
            yield alpha, weight, np.stack(list(mapped.values()))

    def _score(self, fold: Fold, rows: FloatArray, is_classification: bool) -> float:
        if fold.held_out_target is None or fold.parts is None:
            return concordance(rows)
        estimator = self.estimator
        if estimator is None:
            estimator = default_predictor(fold.held_out_target, fold.parts, is_classification)
        return prediction_score(rows, fold.held_out_target, fold.parts, estimator)


def _take(target: NDArray[Any] | None, rows: NDArray[np.intp]) -> NDArray[Any] | None:
    """Return the targets of some rows, where there are targets."""
    return None if target is None else target[rows]
