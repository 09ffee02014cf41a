"""Kernel target integration."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._constraints import Interval, StrOptions
from .._typing import USUAL
from .._validation import Array, FloatArray, PartyName, array_library, name_parties, to_numpy
from ..errors import (
    IncompressibleKernelError,
    NotConvergedError,
    NotEnoughMemoryError,
    NumericalError,
    RepresentationError,
    UndeterminedTargetWarning,
    UnknownPartyError,
)
from ..linalg import ARRAY_KERNELS, Kernel, cast, fix_signs, like, median_gamma, scale_gamma
from ..model import LinearMap
from ._cost import FitCost, FitSize
from ._engine import Engine
from ._graphs import NeighborGraph
from ._linear import N_COMPONENTS, SHARED_CONSTRAINTS, BaseIntegrator, Representations, check_n_components
from ._solvers import (
    VANISHING,
    Solution,
    TargetProblem,
    definite,
    kernel_rank,
    solve_dense,
    solve_nystroem,
    solve_streamed,
)

logger = logging.getLogger(__name__)

KernelRule = str | Callable[..., Any]
GammaRule = float | str | Callable[[FloatArray], float]
_KERNELS = {"precomputed", *PAIRWISE_KERNEL_FUNCTIONS}

_WORTH_SAYING = 2000
"""Anchor rows from which a fit takes long enough to say beforehand how long."""


class KTI(BaseIntegrator):
    r"""Kernel-based target-normalised integration (Theorem 2 of the paper, whose printed version calls it NKI).

    Brings representations that are bent against each other, as those of UMAP or kernel PCA are, into one feature space,
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
        :math:`\hat d`, columns of the collaboration representation.  The default is lowered where data allow fewer.
    kernel : str, callable or mapping of party to either, default="rbf"
        As `sklearn.metrics.pairwise.pairwise_kernels` takes it: "rbf", "laplacian", "linear", "poly", "cosine", ...,
        a scikit-learn Gaussian process kernel such as ``Matern()``, or a function of two rows (slow).  It must be
        positive semidefinite.  With "precomputed" `fit` takes the matrix of the kernel between a party's anchor rows,
        of shape (n_anchors, n_anchors), and `transform` that between its rows and these; maps are linear in such rows.
    gamma : float, "median", "scale", callable or mapping of party to any of these, default="median"
        Width of the kernel.  "median" is one over the median squared distance between the party's anchor rows (for
        "laplacian" the median Manhattan distance); "scale" is one over the number of columns times their variance; a
        callable takes the party's anchor representation and returns a number.  The paper fixes 1.0.
    gamma_factor : float, default=1.0
        Factor of the width by `gamma`, so that a search can try multiples of the median.
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
    party_weights : mapping of party to float, default=None
        :math:`w_k \ge 0`, by which all that a party adds to the sum, misfit and penalty, is multiplied:
        :math:`M_\lambda = \lambda \sum_k w_k (\Sigma_k + \lambda I)^{-1}`.  Given Z, :math:`g_k` does not depend on
        it: a party of weight 0 has no say in Z, and is brought onto it.  None takes 1 for all.
    solver : {"auto", "exact", "nystroem"}, default="auto"
        How Z is found.  "exact" factorises one n_a x n_a matrix per party: up to 1,200 rows, or with a penalty graph,
        for the eigenvectors of the summed inverses; beyond, for a Krylov method on the factors, in float32 with
        corrections in float64.  "nystroem" restricts each party's functions to landmarks among its anchor rows: time
        and memory grow linearly in n_a, and models hold landmarks only.  "auto" solves exactly while K n_a^3 / 3 is at
        most 1e12 (6,700 rows of ten parties) and memory suffices, with landmarks beyond, and exactly again where
        landmarks cannot do it, as with `party_weights` or a precomputed kernel.
    precision : {"float64", "float32"}, default="float64"
        For "exact" beyond 1,200 rows.  "float32" leaves out the corrections, unless the penalty is too small: less
        time, and an objective that is off by some 1e-7.
    tol : float, default=0.0075
        For "nystroem": the number of landmarks doubles, up to 1,024, until this lowers the mean share of a target
        column that a party's function misses, the objective over the parties and components, by at most `tol`.  Where
        there are more than 20,480 anchor rows, or memory is short, this is measured on some of them.
    n_landmarks : int, default=None
        For "nystroem": landmarks per party, in place of `tol`.  With as many as anchor rows the solution is exact.
    memory_limit : float, default=None
        Bytes that the process may hold, Python and the anchor representations included.  None allows all available.
        With little, "exact" takes two n_a x n_a matrices and more time, and "nystroem" finds the target on fewer rows,
        or with fewer landmarks.
    engine : dask.distributed.Client, Engine or None, default=None
        Where the parties' matrices are computed and stay: on the workers of a Dask cluster, where an engine of your own
        keeps them, or in this process.  Matrices of up to 1,200 anchor rows, or with a penalty graph, stay here.  A
        copy that joblib writes to a file has None.
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
        The minimum: :math:`\mathrm{tr}(Z^\top M_\lambda Z)`, or with graphs
        :math:`\mathrm{tr}(Z^\top (M_\lambda / \mathrm{tr} M_\lambda + \mu B / \mathrm{tr} B) Z)`.
    gammas_ : dict of party to float
        The widths used.  Empty for a kernel without a width.
    solver_ : {"exact", "nystroem"}
        The solver used.
    angle_estimate_ : float or None
        Sine of the largest angle between `target_` and the minimiser, as the residual over the eigengap; no bound.
        Rounding adds to it, the more the smaller `alpha` and `eigengap_`.  With "nystroem" the minimiser is that of
        the problem approximated by landmarks, and says nothing of the exact one.  None if a direct solver leaves
        rounding alone, or if landmarks found the target on some of the rows.
    eigengap_ : float or None
        First eigenvalue not taken less the last one taken; None with a penalty graph.
    n_landmarks_ : int or None
        Landmarks per party, at most; None if all anchor rows are kept.
    approximation_error_ : float or None
        The gain of the last doubling of the landmarks, in the unit of `tol`: the objective over the numbers of parties
        and of components.  An estimate, not a bound, of how far the objective is above the exact minimum, without the
        graph.  None if `n_landmarks` was given, or there was no doubling.
    integration_functions_ : dict of party to KernelMap
        Of a party with a precomputed kernel a LinearMap, of kernel values.

    Notes
    -----
    Anchor representations may be torch or CuPy arrays on one device.  The heavy part of the fit then runs there, and
    `target_`, `eigenvalues_`, the maps' coefficients and the results of `transform` are such arrays too.  Widths,
    graphs and landmarks are found with NumPy, from one copy of the anchors.

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
        "kernel": [StrOptions(_KERNELS), callable, Mapping],
        "party_weights": [Mapping, None],
        "gamma_factor": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "graph_weight": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "exact", "nystroem"})],
        "precision": [StrOptions({"float64", "float32"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [Mapping, None],
    }

    target_: FloatArray
    eigenvalues_: FloatArray

    def __init__(  # noqa: PLR0913
        self,
        n_components: int = USUAL,
        *,
        kernel: KernelRule | Mapping[Any, KernelRule] = "rbf",
        gamma: GammaRule | Mapping[Any, GammaRule] = "median",
        gamma_factor: float = 1.0,
        alpha: float = 0.1,
        graph: NeighborGraph | None = None,
        graph_weight: float = 1.0,
        penalty_graph: NeighborGraph | None = None,
        penalty_epsilon: float = 1e-6,
        center: bool = False,
        party_weights: Mapping[Any, float] | None = None,
        solver: str = "auto",
        precision: str = "float64",
        tol: float = 0.0075,
        n_landmarks: int | None = None,
        memory_limit: float | None = None,
        engine: Any = None,
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
        self.party_weights = party_weights
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

        Parameters and errors are those of `BaseIntegrator.fit`; `y` may have several columns, and gaps, as
        `NeighborGraph.weights` takes it.

        Raises
        ------
        NumericalError
            If a kernel is not positive semidefinite, a width cannot be found, a graph has no edges, or landmarks
            cannot stand for the other rows.
        RepresentationError
            If a precomputed kernel is not square and symmetric.
        NotEnoughMemoryError
            If no solver that is allowed fits into the memory; nothing was started.
        ClusterError
            If `engine` is a Dask client without workers, or its workers are lost again and again.
        ValueError
            If the anchor rows (less one if centred) or the rank of the kernel matrices together do not allow so many
            components, `y` is missing, `kernel_params` is given for a named kernel, a weight is negative or all are 0,
            or a parameter asks for a step that is done exactly or with NumPy arrays only.
        """
        checked = self._start_fit(anchors)
        n_components = self._check_parameters(next(iter(checked.values())))
        seed = 0
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        with self._few_threads(checked), closing(self._make_engine()) as engine:
            problem = replace(self._problem(checked, y), n_components=n_components)
            solution = self._solve(problem, engine, seed)
            is_single = self.precision == "float32"
            by_landmarks = self.n_landmarks is not None
            rank = check_rank(problem, solution, self.n_components, single=is_single, by_landmarks=by_landmarks)
            if rank < n_components:
                # A default is lowered to the rank, which is known only after a solution.
                problem = replace(problem, n_components=rank)
                solution = self._solve(problem, engine, seed)
        warn_if_undetermined(solution, rank)
        self._keep(problem, solution)
        return self

    def transform(self, representations: Representations) -> dict[PartyName, FloatArray]:
        """Map rows as `BaseIntegrator.transform` does; of a precomputed kernel, its values between rows and anchor.

        Such values have shape (n_rows, n_anchors).
        """
        check_is_fitted(self)
        n_anchors = self.target_.shape[0]
        for party, rows in name_parties(representations, what="representation").items():
            is_precomputed = isinstance(self.integration_functions_.get(party), LinearMap)
            shape = getattr(rows, "shape", (0, n_anchors))
            if is_precomputed and shape[1:] != (n_anchors,):
                raise RepresentationError(
                    f"Party {party!r}: with kernel='precomputed', transform takes kernel values between these rows and "
                    f"the {n_anchors} anchor rows, shape (n_rows, {n_anchors}); got shape {shape}."
                )
        return super().transform(representations)

    def _validate_params(self) -> None:
        # scikit-learn's own message would show the entries.
        if any(hasattr(each, "__array__") or isinstance(each, list | tuple) for each in each_value(self.kernel)):
            raise ValueError(
                "kernel: an array was given; set kernel='precomputed' and give the matrices to fit, one for each "
                "party. For kernels by name that differ between parties give a dict."
            )
        super()._validate_params()

    def _keep(self, problem: TargetProblem, solution: Solution) -> None:
        """Set the learnt attributes."""
        # Eigenvectors have no sign of their own; the functions follow the target's.
        signs = like(fix_signs(to_numpy(solution.target)), solution.target)
        self.solver_ = solution.solver
        self.gammas_ = {
            party: kernel.parameters["gamma"] for party, kernel in problem.kernels.items() if has_width(kernel.metric)
        }
        self.target_ = solution.target * signs
        self.eigenvalues_ = like(solution.eigenvalues, solution.target)
        self.objective_ = float(solution.eigenvalues.sum())
        self.angle_estimate_ = solution.angle
        self.eigengap_ = solution.gap
        self.n_landmarks_ = solution.rank
        self.approximation_error_ = solution.error
        self.integration_functions_ = {}
        for party, g in solution.maps.items():
            coefficients = g.coefficients * signs
            if g.kernel.metric == "precomputed":
                # The party computes the kernel, so its function is linear in the values.
                self.integration_functions_[party] = LinearMap(party, coefficients)
            else:
                self.integration_functions_[party] = replace(g, coefficients=coefficients)

    def estimate_cost(
        self, n_anchors: int, n_parties: int, n_columns: int | None = None, dtype: DTypeLike = np.float64
    ) -> FitCost:
        """Say which solver a fit would take, and its time and memory, all counted but a graph's neighbours.

        Parameters
        ----------
        n_anchors, n_parties : int
        n_columns : int, optional
            Columns of each anchor representation; as many as components if None.
        dtype : data-type, default=float64
            Type of their entries.

        Returns
        -------
        FitCost
            ``solver``; ``memory``, the bytes that the process holds at the peak, Python and the anchor representations
            included; and ``seconds``, CPU time on this machine, whose speed is measured.  Without `n_landmarks` they
            are those of 1,024 landmarks, an upper end.

        Raises
        ------
        NotEnoughMemoryError
            If no solver that is allowed fits into the memory: `memory_limit`, or the memory of this process and 0.9
            of all that is available now.
        ValueError
            If a parameter is not valid, or a penalty graph is given for ``solver="nystroem"``.
        """
        self._validate_params()
        # The width does not change a kernel's cost.
        kernels = [self._kernel(each, 1.0, np.zeros((1, 1))) for each in each_value(self.kernel)]
        if n_columns is None:
            n_columns = self.n_components
            if any(kernel.metric == "precomputed" for kernel in kernels):
                n_columns = n_anchors
        size = self._size_of(n_anchors, n_parties, float(n_columns), np.dtype(dtype).itemsize, kernels)
        return size.choose(self.solver, self._limit(self._make_engine()), is_loaded=False)

    def _size(self, problem: TargetProblem) -> FitSize:
        n_parties = len(problem.anchors)
        first = next(iter(problem.anchors.values()))
        arrays = [problem.kernels[party].parameters.get("matrix", A) for party, A in problem.anchors.items()]
        n_columns = sum(A.shape[1] for A in arrays) / n_parties
        itemsize = first.dtype.itemsize if isinstance(first, np.ndarray) else 8
        return self._size_of(problem.n_anchors, n_parties, n_columns, itemsize, list(problem.kernels.values()))

    def _size_of(
        self, n_anchors: int, n_parties: int, n_columns: float, itemsize: int, kernels: list[Kernel]
    ) -> FitSize:
        """Return the size of a fit to such data with these parameters, as if all had the kernel that costs most."""
        # Functions are slow, and those without a width are mostly of low rank.
        kernel = max(kernels, key=lambda each: (callable(each.metric), has_width(each.metric)))
        return FitSize(
            n_anchors=n_anchors,
            n_parties=n_parties,
            n_components=self.n_components,
            kernel=kernel,
            n_columns=n_columns,
            itemsize=itemsize,
            needs_exact=bool(self._exact_only()),
            alpha=self.alpha,
            n_landmarks=self.n_landmarks,
            has_graph=self.graph is not None,
            has_penalty=self.penalty_graph is not None,
        )

    def _limit(self, engine: Engine) -> float | None:
        return engine.memory if self.memory_limit is None else self.memory_limit

    def _make_engine(self) -> Engine:
        if self.engine is None:
            return Engine(self.n_jobs)
        if isinstance(self.engine, Engine):
            return self.engine
        # Dask takes a second to load, and need not be installed elsewhere.
        from ._dask import DaskEngine

        return DaskEngine(self.engine)

    def _solve(self, problem: TargetProblem, engine: Engine, seed: int) -> Solution:
        """Solve with the solver that `FitSize.choose` names, or with the one that takes over."""
        beside = next(iter(problem.anchors.values()))
        size = self._size(problem)
        cost = size.choose(self.solver, self._limit(engine), beside)
        if problem.n_anchors > _WORTH_SAYING:
            sizes = (len(problem.anchors), problem.n_anchors)
            logger.info("KTI: %d parties, %d anchor rows: solver %s, %s", *sizes, cost.solver, cost)
        if cost.solver == "nystroem":
            try:
                return solve_nystroem(
                    problem,
                    engine,
                    seed=seed,
                    tol=self.tol,
                    n_landmarks=self.n_landmarks,
                    most=size.most_landmarks(cost),
                    n_rows=cost.n_rows,
                )
            except IncompressibleKernelError:
                # "auto" may solve exactly instead; "nystroem" was asked for.
                exact = self._exact_instead(size, engine, beside)
                if exact is None:
                    raise
                logger.info("KTI: no few landmarks stand for the anchor rows; solver %s, %s", exact.solver, exact)
                cost = exact
        # Features may be made from float32, but what is solved exactly is computed in float64.
        problem = replace(problem, anchors={party: cast(A, np.float64) for party, A in problem.anchors.items()})
        if cost.solver == "streamed":
            dense = size.cost("dense")
            possible = array_library(beside) is None and dense.memory <= cost.limit
            patience = None
            if possible and self.engine is None:
                # So many right-hand sides take about as long as the dense solver.
                patience = problem.n_anchors
            try:
                return solve_streamed(problem, engine, precision=self.precision, seed=seed, max_columns=patience)
            except NotConvergedError:
                if not possible:
                    raise
                logger.info("KTI: the streamed solver does not converge; solver dense, %s", dense)
        return solve_dense(problem, Engine(self.n_jobs))

    def _exact_instead(self, size: FitSize, engine: Engine, beside: Array) -> FitCost | None:
        """Return the cost of solving exactly where ``solver="auto"`` may, and memory permits."""
        if self.solver != "auto":
            return None
        try:
            return size.choose("exact", self._limit(engine), beside)
        except NotEnoughMemoryError:
            return None

    def _check_parameters(self, A: Array) -> int:
        """Refuse parameters that the data, or one another, do not allow; return the number of components."""
        check_library(A, kernel=self.kernel, penalty_graph=self.penalty_graph, engine=self.engine)
        only = self._exact_only()
        if only and self.solver == "nystroem":
            raise ValueError(f"solver='nystroem' cannot do {only}. Set solver='exact' or 'auto', or leave {only} out.")
        if only and self.n_landmarks is not None:
            raise ValueError(f"n_landmarks={self.n_landmarks} is of no use: {only} is solved exactly. Leave one out.")
        if self.kernel_params and all(isinstance(each, str) for each in each_value(self.kernel)):
            raise ValueError(
                f"kernel_params is for kernels that are functions; for kernel={self.kernel!r} set gamma, degree, coef0."
            )
        # A centred target is orthogonal to the constant vector (eq. centered-subspace).
        largest = A.shape[0] - int(self.center)
        return check_n_components(self.n_components, largest, f"there are {A.shape[0]} anchor rows")

    def _exact_only(self) -> str:
        """Return the parameter that landmarks cannot serve, or nothing."""
        if "precomputed" in each_value(self.kernel):
            return "kernel='precomputed'"
        return "" if self.party_weights is None else "party_weights"

    def _problem(self, anchors: dict[PartyName, Array], y: ArrayLike | None) -> TargetProblem:
        """Return kernels and graphs, which are found with NumPy."""
        here = {party: to_numpy(A) for party, A in anchors.items()}
        if y is not None and array_library(y) is not None:
            y = to_numpy(y)
        kernels = self._kernels(here)
        for party, kernel in kernels.items():
            if kernel.metric == "precomputed":
                check_kernel_matrix(party, here[party])
                # The kernel looks its values up by the numbers of rows.
                anchors = {**anchors, party: np.arange(len(here[party]), dtype=here[party].dtype)[:, np.newaxis]}
                if self.graph is not None or self.penalty_graph is not None:
                    here[party] = _points(party, here[party], self.alpha)
        return TargetProblem(
            anchors=anchors,
            kernels=kernels,
            weights=self._weights(anchors),
            alpha=self.alpha,
            n_components=self.n_components,
            intrinsic=None if self.graph is None else self.graph.laplacian(here, y),
            graph_weight=self.graph_weight,
            penalty=None if self.penalty_graph is None else self._penalty(self.penalty_graph, here, y),
            center=self.center,
        )

    def _weights(self, anchors: Mapping[PartyName, Array]) -> dict[PartyName, float]:
        """Return weights that are not negative, nor all zero."""
        if self.party_weights is None:
            return dict.fromkeys(anchors, 1.0)
        weights = of_each_party(self.party_weights, anchors, "party_weights")
        for party, weight in weights.items():
            if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
                raise ValueError(f"party_weights: party {party!r} has {weight!r}; expected a number of 0 or more.")
        # The sum would be zero, and every target a minimum.
        if not any(weights.values()):
            raise ValueError("party_weights: all are 0, so nobody has a say in the target. Raise one of them.")
        return {party: float(weight) for party, weight in weights.items()}

    def _kernels(self, anchors: Mapping[PartyName, FloatArray]) -> dict[PartyName, Kernel]:
        """Return each party's kernel, with its width where it has one."""
        rules = of_each_party(self.kernel, anchors, "kernel")
        for party, rule in rules.items():
            # scikit-learn's constraints see the mapping, but not its values.
            if not callable(rule) and str(rule) not in _KERNELS:
                known = ", ".join(sorted(_KERNELS))
                raise ValueError(f"kernel: party {party!r} has {rule!r}; expected a function, or one of {known}.")
        widths = kernel_widths(anchors, rules, self.gamma, self.gamma_factor)
        return {party: self._kernel(rule, widths.get(party), anchors[party]) for party, rule in rules.items()}

    def _kernel(self, rule: KernelRule, gamma: float | None, A: FloatArray) -> Kernel:
        """Return one party's kernel; a function of two rows has parameters of its own."""
        if not isinstance(rule, str):
            return Kernel(metric=rule, parameters=self.kernel_params or {})
        if rule == "precomputed":
            return Kernel(metric=rule, parameters={"matrix": A})
        return Kernel(metric=rule, parameters={"gamma": gamma, "degree": self.degree, "coef0": self.coef0})

    def _penalty(
        self, graph: NeighborGraph, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None
    ) -> sparse.csr_array:
        r"""Return penalty Laplacian C, as :math:`C_\varepsilon` where it is singular on the feasible subspace."""
        C = graph.laplacian(anchors, y)
        n_anchors = C.shape[0]
        # Weights are not negative, so the null space is spanned by the indicators of the connected components.
        components = connected_components(C, directed=False, return_labels=False)
        # The pencil has as many finite eigenvalues.
        rank = n_anchors - components
        check_n_components(int(self.n_components), rank, "that is the rank of the penalty graph's Laplacian")
        # Centring takes the constant vector, which every Laplacian maps to zero, out of the feasible subspace.
        nullity = components - int(self.center)
        if nullity > 0 and self.penalty_epsilon > 0:
            C = C + self.penalty_epsilon * C.trace() / n_anchors * sparse.eye_array(n_anchors, format="csr")
        return sparse.csr_array(C)


_UNDETERMINED = 1e-9
"""Eigengap, relative to the eigenvalues, that rounding may fill."""
_VANISHING_SINGLE = 1e-5
"""`VANISHING` where eigenvalues are rounded to single precision."""


def check_library(
    A: Array,
    *,
    kernel: KernelRule | Mapping[Any, KernelRule],
    penalty_graph: NeighborGraph | None,
    engine: Any,
) -> None:
    """Refuse parameters of steps that are done with NumPy arrays only."""
    library = array_library(A)
    if library is None:
        return
    kernels = ["rbf", *ARRAY_KERNELS]
    are_known = all(isinstance(each, str) and each in kernels for each in each_value(kernel))
    parameters = (
        ("kernel", kernel, are_known, f"one of {kernels!r}"),
        ("penalty_graph", penalty_graph, penalty_graph is None, "None"),
        ("engine", engine, engine is None, "None"),
    )
    for name, value, is_possible, instead in parameters:
        if not is_possible:
            raise ValueError(
                f"{name}={value!r} works with NumPy arrays only; for {library} arrays {name} must be {instead}. "
                "Change it, or convert the anchor representations."
            )


def check_rank(
    problem: TargetProblem, solution: Solution, n_components: int, *, single: bool, by_landmarks: bool
) -> int:
    """Return the number of components; refuse more than the kernels tell apart, but for a default."""
    # A graph's eigenvalues tell nothing of the kernels' rank.
    if problem.normalised:
        return problem.n_components
    tolerance = VANISHING
    # The dense solver, which leaves no angle, works in double precision always.
    if single and solution.angle is not None:
        tolerance = _VANISHING_SINGLE
    rank = kernel_rank(solution.eigenvalues, problem.total_weight, tolerance)
    matrices = "with these landmarks" if by_landmarks else "of the kernel matrices"
    reason = f"that is the rank {matrices} together"
    return min(problem.n_components, check_n_components(n_components, rank, reason))


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


_ASYMMETRY = 1e-6
"""Part of the largest entry up to which rounding in float32 makes a kernel matrix asymmetric."""


def check_kernel_matrix(party: PartyName, K: FloatArray) -> None:
    """Refuse a precomputed kernel that is not square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise RepresentationError(
            f"Party {party!r}: with kernel='precomputed' the anchor representation is the square matrix of kernel "
            f"values between anchor rows; got shape {K.shape}. Give that matrix, or name a kernel of the rows."
        )
    difference = (K - K.T).max()
    largest = np.abs(K).max()
    if difference > _ASYMMETRY * largest:
        raise RepresentationError(
            f"Party {party!r}: its precomputed kernel is not symmetric: entries that should be equal differ by up to "
            f"{difference / largest:.1e} of the largest. Give values of one kernel between the anchor rows, without "
            "noise, with rows and columns in the anchor's order."
        )


def _points(party: PartyName, K: FloatArray, alpha: float) -> FloatArray:
    r"""Return rows as far apart as the kernel says, for graphs to find neighbours.

    Those of the Cholesky factor of :math:`\Sigma + \lambda I`: the penalty adds the same to all distances.
    """
    with definite(party, alpha):
        return np.asarray(np.linalg.cholesky(K + alpha * np.eye(len(K), dtype=K.dtype)))


def each_value(rule: Any) -> list[Any]:
    """Return the values of a parameter that may be a mapping of parties."""
    return list(rule.values()) if isinstance(rule, Mapping) else [rule]


def of_each_party(rule: Any, parties: Iterable[PartyName], name: str, what: str = "value") -> dict[PartyName, Any]:
    """Return each party's value of a parameter, which is one for all, or in a mapping that names all of them.

    The mapping may name more: a party that was left out, or whose kernel takes no such value.
    """
    if not isinstance(rule, Mapping):
        return dict.fromkeys(parties, rule)
    names = list(parties)
    if missing := [party for party in names if party not in rule]:
        # A name of no party is most likely a missing one, misspelt.
        misspelt = ""
        if unknown := [party for party in rule if party not in names]:
            misspelt = f", but {unknown!r} is no such party"
        raise UnknownPartyError(
            f"{name}: no {what} for {missing!r}; it names {list(rule)!r}{misspelt}. "
            f"Give one for each party of {names!r}."
        )
    return {party: rule[party] for party in names}


def has_width(kernel: KernelRule | Mapping[Any, KernelRule]) -> bool:
    """Return whether a kernel, as `pairwise_kernels` takes it, or any of several, has the parameter gamma."""
    return any(isinstance(each, str) and "gamma" in KERNEL_PARAMS.get(each, ()) for each in each_value(kernel))


def kernel_widths(
    anchors: Mapping[PartyName, FloatArray],
    kernel: KernelRule | Mapping[Any, KernelRule],
    gamma: GammaRule | Mapping[Any, GammaRule],
    factor: float = 1.0,
) -> dict[PartyName, float]:
    """Return kernel width of each party whose kernel has one."""
    kernels = of_each_party(kernel, anchors, "kernel")
    # A mapping of widths need not name parties with a linear kernel.
    wide = [party for party in anchors if has_width(kernels[party])]
    rules = of_each_party(gamma, wide, "gamma", "width")
    return {party: factor * _width(party, anchors[party], kernels[party], rules[party]) for party in wide}


def _width(party: PartyName, A: FloatArray, kernel: KernelRule, rule: GammaRule) -> float:
    if rule == "median":
        width = median_gamma(A, kernel)
    elif rule == "scale":
        width = scale_gamma(A)
    elif callable(rule):
        width = float(rule(A))
    else:
        width = float(rule)
    # The median distance is 0 where more than half of the pairs coincide.
    if not (np.isfinite(width) and width > 0):
        raise NumericalError(
            f"Party {party!r}: gamma={rule!r} gives no usable kernel width ({width}). More than half of the anchor "
            "rows may coincide in its representation; pass a positive number as gamma for this party."
        )
    return width
