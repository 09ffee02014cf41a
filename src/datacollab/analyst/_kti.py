"""Kernel target integration."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_random_state

from .._validation import (
    Array,
    FloatArray,
    Interval,
    PartyName,
    StrOptions,
    array_library,
    to_numpy,
)
from ..errors import (
    IncompressibleKernelError,
    NotConvergedError,
    NotEnoughMemoryError,
    NumericalError,
    UndeterminedTargetWarning,
    UnknownPartyError,
)
from ..linalg import ARRAY_KERNELS, Kernel, fix_signs, like, median_gamma, scale_gamma
from ._engine import Engine, FitCost, choose_solver, fit_cost, most_landmarks
from ._graphs import NeighborGraph
from ._linear import N_COMPONENTS, SHARED_CONSTRAINTS, BaseIntegrator, Representations, check_n_components
from ._solvers import VANISHING, Solution, TargetProblem, kernel_rank, solve_dense, solve_nystroem, solve_streamed

logger = logging.getLogger(__name__)

_WORTH_SAYING = 2000
"""Anchor rows from which a fit takes long enough to say beforehand how long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solving:
    """How a problem is to be solved: parameters of `KTI`, which says what they mean."""

    solver: str
    precision: str
    tol: float
    n_landmarks: int | None
    memory_limit: float | None
    engine: Engine
    seed: int

    def cost(
        self,
        n_anchors: int,
        n_parties: int,
        n_components: int,
        *,
        alpha: float,
        has_penalty: bool,
        beside: Array | None = None,
    ) -> FitCost:
        """Return solver to take, and its cost; ``beside`` is an array that is computed with."""
        return choose_solver(
            self.solver,
            n_anchors,
            n_parties,
            n_components,
            alpha=alpha,
            n_landmarks=self.n_landmarks,
            has_penalty=has_penalty,
            memory_limit=self.engine.memory if self.memory_limit is None else self.memory_limit,
            beside=beside,
        )

    def solve(self, problem: TargetProblem) -> Solution:
        """Solve with what `cost` says, or with what takes over."""
        cost = self._cost_of(problem)
        if problem.n_anchors > _WORTH_SAYING:
            parties = len(problem.anchors)
            logger.info("KTI: %d parties, %d anchor rows: solver %s, %s", parties, problem.n_anchors, cost.solver, cost)
        if cost.solver == "nystroem":
            try:
                return self._by_landmarks(problem, cost)
            except IncompressibleKernelError:
                exact = self._exact_instead(problem)
                if exact is None:
                    raise
                logger.info("KTI: no few landmarks stand for the anchor rows; solver %s, %s", exact.solver, exact)
                cost = exact
        if cost.solver == "streamed":
            dense = fit_cost("dense", problem.n_anchors, len(problem.anchors), problem.n_components)
            possible = array_library(_beside(problem)) is None and dense.memory <= cost.limit
            try:
                return self._streamed(problem, possible)
            except NotConvergedError:
                if not possible:
                    raise
                logger.info("KTI: the streamed solver does not converge; solver dense, %s", dense)
        return solve_dense(problem, Engine(self.engine.n_jobs))

    def _by_landmarks(self, problem: TargetProblem, cost: FitCost) -> Solution:
        most = most_landmarks(cost, problem.n_anchors, len(problem.anchors), problem.n_components, problem.alpha)
        return solve_nystroem(
            problem, self.engine, seed=self.seed, tol=self.tol, n_landmarks=self.n_landmarks, most=most
        )

    def _streamed(self, problem: TargetProblem, dense_possible: bool) -> Solution:
        # So many right-hand sides take about as long as the dense solver.
        patience = problem.n_anchors if dense_possible and type(self.engine) is Engine else None
        return solve_streamed(problem, self.engine, precision=self.precision, seed=self.seed, max_columns=patience)

    def _exact_instead(self, problem: TargetProblem) -> FitCost | None:
        """Return cost of solving exactly where ``solver="auto"`` may, and memory permits."""
        if self.solver != "auto":
            return None
        try:
            return replace(self, solver="exact")._cost_of(problem)
        except NotEnoughMemoryError:
            return None

    def _cost_of(self, problem: TargetProblem) -> FitCost:
        return self.cost(
            problem.n_anchors,
            len(problem.anchors),
            problem.n_components,
            alpha=problem.alpha,
            has_penalty=problem.penalty is not None,
            beside=_beside(problem),
        )


def _beside(problem: TargetProblem) -> Array:
    return next(iter(problem.anchors.values()))


class KTI(BaseIntegrator):
    r"""Kernel-based target-normalised integration (Theorem 2 of the paper).

    Brings representations into one feature space that are bent against each other, as those of UMAP or kernel PCA are,
    by a smooth function for each party.  For linear obfuscators such as PCA try `LTI` as well.

    Minimises :math:`\sum_k (\|g_k(\tilde A^{(k)}) - Z\|_F^2 + \lambda \|g_k\|^2)` over functions in a reproducing
    kernel Hilbert space per party and an orthonormal target Z together (eq. kernel-formulation).  Z holds the
    eigenvectors of the smallest eigenvalues of :math:`M_\lambda = \lambda \sum_k (\Sigma_k + \lambda I)^{-1}`, and
    :math:`g_k(x) = \kappa_k(x) (\Sigma_k + \lambda I)^{-1} Z` (eq. nki-optimal-function).

    With a graph, Z solves :math:`(M_\lambda / \mathrm{tr} M_\lambda + \mu B / \mathrm{tr} B) u = \gamma\, C u`
    (eq. kernel-graph-gep), C the identity or the Laplacian of a penalty graph.

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.
    kernel : str or callable, default="rbf"
        As `sklearn.metrics.pairwise.pairwise_kernels` takes it: "rbf", "laplacian", "linear", "poly", "cosine", ...,
        a scikit-learn Gaussian process kernel such as ``Matern()``, or a function of two rows (slow).  It must be
        positive semidefinite.
    gamma : float, "median", "scale", callable or mapping of party to any of these, default="median"
        Width of the kernel.  "median" is one over the median squared distance between the party's anchor rows (for
        "laplacian" the median Manhattan distance); "scale" is one over the number of columns times their variance; a
        callable takes the party's anchor representation and returns a number.  The paper fixes 1.0.
    gamma_factor : float, default=1.0
        Factor of what `gamma` gives, so that a search can try multiples of the median.
    alpha : float, default=0.1
        :math:`\lambda`, the ridge penalty: larger values give smoother functions that follow the anchors less closely.
        The paper fixes 1.0.
    graph : GeometricGraph, TargetSimilarityGraph or None, default=None
        The intrinsic graph B: pairs to be placed close to each other.
    graph_weight : float, default=1.0
        :math:`\mu`, the weight of the graph against the alignment, both normalised by their traces.
    penalty_graph : TargetDissimilarityGraph or None, default=None
        The penalty graph C: pairs to be kept apart.
    penalty_epsilon : float, default=1e-6
        A singular C is replaced by :math:`C + \varepsilon I` with
        :math:`\varepsilon` = `penalty_epsilon` :math:`\cdot\, \mathrm{tr}(C) / n_a`.  0 takes the limit
        :math:`\varepsilon \to 0`, which is solved as accurately.
    center : bool, default=False
        Whether the columns of Z sum to zero (eq. centering).
    solver : {"auto", "exact", "nystroem"}, default="auto"
        How Z is found.  "exact" factorises one n_a x n_a matrix per party: up to 1,200 rows, or with a penalty graph,
        the eigenvectors of their summed inverses are taken in the memory of two such matrices (three with a penalty
        graph); beyond, a Krylov method works on the factors, in float32 with corrections in float64, in the memory of
        K n_a^2 / 2 float32 numbers.  "nystroem" restricts each party's functions to landmarks among its anchor rows:
        time and memory grow linearly in n_a, memory as if there were 256 landmarks (`estimate_cost` gives a bound), and
        models hold landmarks only.  "auto" solves exactly while
        K n_a^3 / 3 is at most 1e12 (6,700 rows of ten parties) and memory suffices, with landmarks beyond, and exactly
        again where landmarks cannot do it.
    precision : {"float64", "float32"}, default="float64"
        For "exact" beyond 1,200 rows.  "float32" leaves out the corrections: less time, and an objective that is off by
        some 1e-7.  Where the penalty is too small for that, the corrections are made all the same.
    tol : float, default=0.0075
        For "nystroem": the number of landmarks doubles, up to 1,024, until this lowers the objective, divided by the
        number of parties and components, by at most `tol`.  So divided it is the mean share of a target column that a
        party's function misses, between 0 and 1.
    n_landmarks : int, default=None
        For "nystroem": landmarks per party, in place of `tol`.  More than 256 (or four for each component, where
        that is more) are for the functions; the target is found with the first of them.
    memory_limit : float, default=None
        Bytes a fit may take.  None allows what is available.  With little, "exact" takes two n_a x n_a matrices and
        more time.
    engine : Engine or None, default=None
        Where the parties' matrices are computed and stay; None is this process.
    degree, coef0 : float
        For the kernels "poly" and "sigmoid".
    kernel_params : mapping, default=None
        Keyword arguments of a kernel that is a function of two rows.
    n_jobs : int, default=None
        Parties worked on at a time.  The result does not depend on it; memory grows by one n_a x n_a matrix each.
    random_state : int, RandomState or None, default=None
        Draws landmarks and the vectors an eigensolver starts from.  None always draws the same.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_components)
        Z; the entry of largest magnitude in each column is positive.
    eigenvalues_ : ndarray of shape (n_components,)
        The smallest eigenvalues of the problem solved, ascending.
    objective_ : float
        What is minimised: :math:`\mathrm{tr}(Z^\top M_\lambda Z)`, or with graphs
        :math:`\mathrm{tr}(Z^\top (M_\lambda / \mathrm{tr} M_\lambda + \mu B / \mathrm{tr} B) Z)`.
    gammas_ : dict of party to float
        The widths used.  Empty for a kernel without a width.
    solver_ : {"exact", "nystroem"}
        The solver used.
    angle_bound_ : float or None
        Bound on the sine of the largest angle between `target_` and the exact minimiser ("nystroem": of the problem
        restricted to the landmarks of the target), from the residual and the eigengap.  None if a direct solver
        leaves rounding alone.
    eigengap_ : float or None
        First eigenvalue not taken less the last one taken; None with a penalty graph.
    n_landmarks_ : int or None
        Landmarks per party, at most; None if all anchor rows are kept.
    approximation_error_ : float or None
        By how much the last doubling of the landmarks lowered the objective, divided as for `tol`; an estimate, not a
        bound, of how far it is above the exact minimum, and without the graph.  None if `n_landmarks` was given, or
        nothing was approximated.
    integration_functions_ : dict of party to KernelMap

    Notes
    -----
    Anchor representations may be torch or CuPy arrays on one device.  The heavy part of the fit then runs there, and
    `target_`, `eigenvalues_`, the maps' coefficients and what `transform` returns are such arrays too.  Widths, graphs
    and landmarks are found with NumPy, from one copy of the anchors.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.
    .. [2] Yan et al. (2007). Graph embedding and extensions: a general framework for dimensionality reduction. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 29(1), 40-51.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import KTI
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(200, 2))
    >>> integrator = KTI(n_components=2, alpha=0.01, center=True)
    >>> integrator = integrator.fit({"a": A, "b": np.column_stack([A[:, 0] ** 3, np.tanh(A[:, 1])])})
    >>> aligned = integrator.transform({"a": [[0.5, 0.5]], "b": [[0.125, np.tanh(0.5)]]})
    >>> bool(np.allclose(aligned["a"], aligned["b"], atol=0.01))
    True
    """

    _keeps_library = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "n_components": N_COMPONENTS,
        "kernel": [StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS)), callable],
        "gamma_factor": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "graph_weight": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "exact", "nystroem"})],
        "precision": [StrOptions({"float64", "float32"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "engine": [Engine, None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [Mapping, None],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float
    gammas_: dict[PartyName, float]
    solver_: str
    angle_bound_: float | None
    eigengap_: float | None
    n_landmarks_: int | None
    approximation_error_: float | None

    def __init__(
        self,
        n_components: int = 10,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: GammaRule | Mapping[Any, GammaRule] = "median",
        gamma_factor: float = 1.0,
        alpha: float = 0.1,
        graph: NeighborGraph | None = None,
        graph_weight: float = 1.0,
        penalty_graph: NeighborGraph | None = None,
        penalty_epsilon: float = 1e-6,
        center: bool = False,
        solver: str = "auto",
        precision: str = "float64",
        tol: float = 0.0075,
        n_landmarks: int | None = None,
        memory_limit: float | None = None,
        engine: Engine | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.alpha = alpha
        self.graph = graph
        self.graph_weight = graph_weight
        self.penalty_graph = penalty_graph
        self.penalty_epsilon = penalty_epsilon
        self.center = center
        self.solver = solver
        self.precision = precision
        self.tol = tol
        self.n_landmarks = n_landmarks
        self.memory_limit = memory_limit
        self.engine = engine
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, anchors: Representations, y: ArrayLike | None = None) -> Self:
        """Learn the target and one kernel map per party.

        Parameters
        ----------
        anchors : mapping of party to array-like of shape (n_anchors, n_intermediate)
            The parties' representations of the same anchor rows; row counts agree, columns need not.
        y : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where a graph needs them.

        Returns
        -------
        self

        Raises
        ------
        AgreementError, RepresentationError
            If row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.
        NumericalError
            If a kernel is not positive semidefinite, a width cannot be found, a graph has no edges, or landmarks
            cannot stand for the other rows.
        NotEnoughMemoryError
            If no solver that is allowed fits into the memory; nothing was started.
        ValueError
            If `n_components` exceeds the number of anchor rows (less one if centred) or the rank of the kernel
            matrices together, `y` is missing, `kernel_params` is given for a named kernel, or a parameter asks for what
            is done with NumPy arrays only.
        """
        checked = self._start_fit(anchors)
        self._check_parameters(next(iter(checked.values())))
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))
        with self._few_threads(checked):
            problem = self._problem(checked, y)
            solution = self._solving(seed).solve(problem)
        check_rank(problem, solution, single=self.precision == "float32", by_landmarks=self.n_landmarks is not None)
        warn_if_undetermined(solution, self.n_components)
        self._keep(problem, solution)
        return self

    def _keep(self, problem: TargetProblem, solution: Solution) -> None:
        """Set the learnt attributes."""
        signs = like(fix_signs(to_numpy(solution.target)), solution.target)
        self.solver_ = solution.solver
        widths = problem.kernels if has_width(self.kernel) else {}
        self.gammas_ = {party: kernel.parameters["gamma"] for party, kernel in widths.items()}
        self.target_ = solution.target * signs
        self.eigenvalues_ = like(solution.eigenvalues, solution.target)
        self.objective_ = float(solution.eigenvalues.sum())
        self.angle_bound_ = solution.angle
        self.eigengap_ = solution.gap
        self.n_landmarks_ = solution.rank
        self.approximation_error_ = solution.error
        self.integration_functions_ = {
            party: replace(g, coefficients=g.coefficients * signs) for party, g in solution.maps.items()
        }

    def estimate_cost(self, n_anchors: int, n_parties: int) -> FitCost:
        """Say which solver a fit would take, and its time and memory, before there are any data.

        Parameters
        ----------
        n_anchors, n_parties : int

        Returns
        -------
        FitCost

        Raises
        ------
        NotEnoughMemoryError
            If no solver that is allowed fits into the memory.

        Examples
        --------
        >>> from datacollab import KTI
        >>> cost = KTI(16, memory_limit=4 * 2**30).estimate_cost(n_anchors=100_000, n_parties=10)
        >>> cost.solver, cost.memory < 4 * 2**30
        ('nystroem', True)
        """
        self._validate_params()
        has_penalty = self.penalty_graph is not None
        return self._solving(0).cost(n_anchors, n_parties, self.n_components, alpha=self.alpha, has_penalty=has_penalty)

    def _solving(self, seed: int) -> Solving:
        return Solving(
            solver=self.solver,
            precision=self.precision,
            tol=self.tol,
            n_landmarks=self.n_landmarks,
            memory_limit=self.memory_limit,
            engine=Engine(self.n_jobs) if self.engine is None else self.engine,
            seed=seed,
        )

    def _check_parameters(self, A: Array) -> None:
        """Refuse parameters that the data, or one another, do not allow."""
        check_library(A, kernel=self.kernel, penalty_graph=self.penalty_graph, engine=self.engine)
        if isinstance(self.kernel, str) and self.kernel_params:
            raise ValueError(
                f"kernel_params is for kernels that are functions; for kernel={self.kernel!r} set gamma, degree, coef0."
            )
        largest = A.shape[0] - 1 if self.center else A.shape[0]
        check_n_components(self.n_components, largest, f"there are {A.shape[0]} anchor rows")

    def _problem(self, anchors: dict[PartyName, Array], y: ArrayLike | None) -> TargetProblem:
        """Return kernels and graphs, which are found with NumPy."""
        here = {party: to_numpy(A) for party, A in anchors.items()}
        y = to_numpy(y) if y is not None and array_library(y) is not None else y
        gammas = kernel_widths(here, self.kernel, self.gamma, self.gamma_factor)
        shape: dict[str, Any] = {name: getattr(self, name) for name in ("degree", "coef0", "kernel_params")}
        return TargetProblem(
            anchors=anchors,
            kernels={party: kernel_of(self.kernel, gammas.get(party), **shape) for party in anchors},
            alpha=self.alpha,
            n_components=self.n_components,
            intrinsic=None if self.graph is None else self.graph.laplacian(here, y),
            graph_weight=self.graph_weight,
            penalty=None if self.penalty_graph is None else self._penalty(self.penalty_graph, here, y),
            center=self.center,
        )

    def _penalty(
        self, graph: NeighborGraph, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None
    ) -> sparse.csr_array:
        return regularised_penalty(
            graph, anchors, y, n_components=self.n_components, epsilon=self.penalty_epsilon, center=self.center
        )


_UNDETERMINED = 1e-9
"""Eigengap, relative to the eigenvalues, that rounding may fill."""
_VANISHING_SINGLE = 1e-5
"""`VANISHING` where eigenvalues are rounded to single precision."""


def kernel_of(
    kernel: str | Callable[..., Any],
    gamma: float | None,
    *,
    degree: float,
    coef0: float,
    kernel_params: Mapping[str, Any] | None,
) -> Kernel:
    """Return one party's kernel; a function of two rows has parameters of its own."""
    if not isinstance(kernel, str):
        return Kernel(metric=kernel, parameters=kernel_params or {})
    return Kernel(metric=kernel, parameters={"gamma": gamma, "degree": degree, "coef0": coef0})


def regularised_penalty(
    graph: NeighborGraph,
    anchors: Mapping[PartyName, FloatArray],
    y: ArrayLike | None,
    *,
    n_components: int,
    epsilon: float,
    center: bool,
) -> sparse.csr_array:
    r"""Return penalty Laplacian C, as :math:`C_\varepsilon` where it is singular on the feasible subspace."""
    C = graph.laplacian(anchors, y)
    n_anchors = C.shape[0]
    # Weights are not negative, so the null space is spanned by the indicators of the connected components.
    components = connected_components(C, directed=False, return_labels=False)
    check_n_components(n_components, n_anchors - components, "that is the rank of the penalty graph's Laplacian")
    nullity = components - 1 if center else components
    if nullity > 0 and epsilon > 0:
        C = C + epsilon * C.trace() / n_anchors * sparse.eye_array(n_anchors, format="csr")
    return sparse.csr_array(C)


def check_library(
    A: Array, *, kernel: str | Callable[..., Any], penalty_graph: NeighborGraph | None, engine: Any
) -> None:
    """Refuse parameters that ask for what is done with NumPy arrays only."""
    library = array_library(A)
    if library is None:
        return
    kernels = ["rbf", *ARRAY_KERNELS]
    wanted = {
        "kernel": (kernel, None if isinstance(kernel, str) and kernel in kernels else f"one of {kernels!r}"),
        "penalty_graph": (penalty_graph, None if penalty_graph is None else "None"),
        "engine": (engine, None if engine is None else "None"),
    }
    for name, (value, instead) in wanted.items():
        if instead is not None:
            raise ValueError(
                f"{name}={value!r} works with NumPy arrays only; for {library} arrays {name} must be {instead}. "
                "Change it, or convert the anchor representations."
            )


def check_rank(problem: TargetProblem, solution: Solution, *, single: bool, by_landmarks: bool) -> None:
    """Refuse more components than the kernels tell apart."""
    if problem.normalised:
        return
    rounded = single and solution.angle is not None
    rank = kernel_rank(solution.eigenvalues, len(problem.anchors), _VANISHING_SINGLE if rounded else VANISHING)
    what = "the rank with these landmarks" if by_landmarks else "the rank of the kernel matrices"
    check_n_components(problem.n_components, rank, f"that is {what} together")


def warn_if_undetermined(solution: Solution, n_components: int) -> None:
    """Say where the data leave open which target is the best."""
    if solution.gap is None:
        return
    # Landmarks blur eigengaps by more than their solver's angle tells.
    blurred = solution.solver == "exact" and solution.angle is not None and solution.angle >= 1.0
    if solution.gap > _UNDETERMINED * abs(solution.eigenvalues).max() and not blurred:
        return
    warnings.warn(
        f"KTI: eigenvalue {n_components} is within {solution.gap:.1e} of the next one, so other targets with "
        f"{n_components} components are as good as the one found. Change n_components by one or two; until "
        "then compare objectives, not targets.",
        UndeterminedTargetWarning,
        stacklevel=3,
    )


GammaRule = float | str | Callable[[FloatArray], float]


def has_width(kernel: str | Callable[..., Any]) -> bool:
    """Return whether a kernel, as `pairwise_kernels` takes it, has the parameter gamma."""
    return isinstance(kernel, str) and "gamma" in KERNEL_PARAMS.get(kernel, ())


def kernel_widths(
    anchors: Mapping[PartyName, FloatArray],
    kernel: str | Callable[..., Any],
    gamma: GammaRule | Mapping[Any, GammaRule],
    factor: float = 1.0,
) -> dict[PartyName, float]:
    """Return kernel width of each party; empty where the kernel has none."""
    if not has_width(kernel):
        return {}
    if isinstance(gamma, Mapping):
        missing = [party for party in anchors if party not in gamma]
        if missing:
            raise UnknownPartyError(f"gamma names no width for {missing!r}; give one for every party.")
        rules: dict[PartyName, GammaRule] = {party: gamma[party] for party in anchors}
    else:
        rules = dict.fromkeys(anchors, gamma)
    return {party: factor * _width(party, A, kernel, rules[party]) for party, A in anchors.items()}


def _width(party: PartyName, A: FloatArray, kernel: str | Callable[..., Any], rule: GammaRule) -> float:
    if rule == "median":
        width = median_gamma(A, kernel)
    elif rule == "scale":
        width = scale_gamma(A)
    else:
        width = float(rule(A)) if callable(rule) else float(rule)
    if not (np.isfinite(width) and width > 0):
        raise NumericalError(
            f"Party {party!r}: gamma={rule!r} gives no usable kernel width ({width}). More than half of the anchor "
            "rows may coincide in its representation; pass a positive number as gamma for this party."
        )
    return width
