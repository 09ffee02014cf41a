"""Kernel-based target-normalised integration, with graphs and centring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS
from threadpoolctl import threadpool_limits

from .._validation import FloatArray, Interval, PartyName, StrOptions
from ..errors import NumericalError, UnknownPartyError
from ..linalg import (
    Kernel,
    add_sparse_to_lower,
    add_to_lower,
    centre_lower,
    fix_signs,
    largest_of_pencil,
    median_gamma,
    ridge_coefficients,
    ridge_inverse,
    scale_gamma,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ..model import KernelMap
from ._base import BaseIntegrator, Representations, check_n_components
from ._graphs import NeighborGraph

__all__ = ["KTI"]

_VANISHING = 1e-10
"""Part of a target column that all kernel maps together must reproduce."""

GammaRule = float | str | Callable[[FloatArray], float]


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
        Multiplies whatever `gamma` gives, so that a multiple of the median can be searched for.
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
    solver : {"auto", "exact"}, default="auto"
        How Z is found.  "exact" factorises one n_a x n_a matrix per party and takes the eigenvectors of their sum, in
        the memory of two such matrices (three with a penalty graph).
    degree, coef0 : float
        Of the kernels "poly" and "sigmoid".
    kernel_params : mapping, default=None
        Keyword arguments of a kernel that is a function of two rows.
    n_jobs : int, default=None
        Parties worked on at a time.  The result does not depend on it; memory grows by one n_a x n_a matrix each.
    random_state : int, RandomState or None, default=None
        Not used by the exact solver.

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
    solver_ : str
        The solver used.
    integration_functions_ : dict of party to KernelMap

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions(set(PAIRWISE_KERNEL_FUNCTIONS)), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median", "scale"}), callable, Mapping],
        "gamma_factor": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "graph": [NeighborGraph, None],
        "graph_weight": [Interval(Real, 0, None, closed="left")],
        "penalty_graph": [NeighborGraph, None],
        "penalty_epsilon": [Interval(Real, 0, None, closed="left")],
        "center": ["boolean"],
        "solver": [StrOptions({"auto", "exact"})],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [Mapping, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float
    gammas_: dict[PartyName, float]
    solver_: str

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
            When row counts differ, or a representation is not finite, empty, or the same in every row; the message
            names the party.
        NumericalError
            When a kernel is not positive semidefinite, a width cannot be found, or a graph has no edges.
        ValueError
            When `n_components` exceeds the number of anchor rows (less one if centred) or the rank of the kernel
            matrices together, `y` is missing, or `kernel_params` is given for a named kernel.
        """
        checked = self._start_fit(anchors)
        if isinstance(self.kernel, str) and self.kernel_params:
            raise ValueError(
                f"kernel_params is for kernels that are functions; for kernel={self.kernel!r} set gamma, degree, coef0."
            )
        n_anchors = next(iter(checked.values())).shape[0]
        largest = n_anchors - 1 if self.center else n_anchors
        check_n_components(self.n_components, largest, f"there are {n_anchors} anchor rows")
        B = None if self.graph is None else self.graph.laplacian(checked, y)
        C = None if self.penalty_graph is None else self._regularised_penalty(checked, y)

        gammas = self._gammas(checked)
        kernels = {party: self._kernel(gammas.get(party)) for party in checked}
        M = self._summed_inverses(checked, kernels)
        if B is not None or C is not None:
            _normalise_and_add(M, B, self.graph_weight)
        eigenvalues, Z = self._solve_target(M, C)
        if B is None and C is None:
            # Directions on which all kernels vanish have the eigenvalue K, and map every row to zero.
            rank = int((eigenvalues < len(checked) * (1.0 - _VANISHING)).sum())
            check_n_components(self.n_components, rank, "that is the rank of the kernel matrices together")
        Z *= fix_signs(Z)

        self.solver_ = "exact"
        self.gammas_ = gammas
        self.target_ = Z
        self.eigenvalues_ = eigenvalues
        self.objective_ = float(eigenvalues.sum())
        solved = self._over_parties(partial(_party_coefficients, alpha=self.alpha, Z=Z), checked, kernels)
        self.integration_functions_ = {
            party: KernelMap(party, checked[party], coefficients, kernels[party])
            for party, coefficients in zip(checked, solved, strict=True)
        }
        return self

    def _gammas(self, anchors: Mapping[PartyName, FloatArray]) -> dict[PartyName, float]:
        """Kernel width of each party; empty where the kernel has none."""
        if not isinstance(self.kernel, str) or "gamma" not in KERNEL_PARAMS.get(self.kernel, ()):
            return {}
        if isinstance(self.gamma, Mapping):
            missing = [party for party in anchors if party not in self.gamma]
            if missing:
                raise UnknownPartyError(f"gamma names no width for {missing!r}; give one for every party.")
            rules: dict[PartyName, GammaRule] = {party: self.gamma[party] for party in anchors}
        else:
            rules = dict.fromkeys(anchors, self.gamma)
        return {party: self._gamma(party, A, rules[party]) for party, A in anchors.items()}

    def _gamma(self, party: PartyName, A: FloatArray, rule: GammaRule) -> float:
        if rule == "median":
            width = median_gamma(A, self.kernel)
        elif rule == "scale":
            width = scale_gamma(A)
        else:
            width = float(rule(A)) if callable(rule) else float(rule)
        width *= self.gamma_factor
        if not (np.isfinite(width) and width > 0):
            raise NumericalError(
                f"Party {party!r}: gamma={rule!r} gives no usable kernel width ({width}). More than half of the anchor "
                "rows may coincide in its representation; pass a positive number as gamma for this party."
            )
        return width

    def _kernel(self, gamma: float | None) -> Kernel:
        if not isinstance(self.kernel, str):
            return Kernel(metric=self.kernel, parameters=self.kernel_params or {})
        parameters = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        return Kernel(metric=self.kernel, parameters=parameters)

    def _summed_inverses(
        self, anchors: Mapping[PartyName, FloatArray], kernels: Mapping[PartyName, Kernel]
    ) -> FloatArray:
        r"""Lower triangle of :math:`M_\lambda`; one party's matrix at a time is in memory beside it (per job)."""
        n_anchors = next(iter(anchors.values())).shape[0]
        M = np.zeros((n_anchors, n_anchors), order="F")
        for S in self._over_parties(partial(_party_inverse, alpha=self.alpha), anchors, kernels):
            add_to_lower(M, S, self.alpha)
            del S  # or it would stay until the next one is there
        return M

    def _over_parties(
        self,
        task: Callable[[PartyName, FloatArray, Kernel], FloatArray],
        anchors: Mapping[PartyName, FloatArray],
        kernels: Mapping[PartyName, Kernel],
    ) -> Iterable[FloatArray]:
        """Run ``task`` for each party, and yield the results in the order of the parties."""
        if effective_n_jobs(self.n_jobs) == 1:
            for party, A in anchors.items():
                yield task(party, A, kernels[party])
            return
        # Threads suffice, since LAPACK releases the interpreter; one BLAS thread each keeps them off one another.
        with threadpool_limits(limits=1, user_api="blas"):
            parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
            yield from parallel(delayed(task)(party, A, kernels[party]) for party, A in anchors.items())

    def _regularised_penalty(self, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None) -> sparse.csr_array:
        r"""Penalty Laplacian, as :math:`C_\varepsilon` where it is singular on the feasible subspace."""
        assert self.penalty_graph is not None
        C = self.penalty_graph.laplacian(anchors, y)
        n_anchors = C.shape[0]
        # Weights are not negative, so the null space is spanned by the indicators of the connected components.
        components = connected_components(C, directed=False, return_labels=False)
        rank = n_anchors - components
        check_n_components(self.n_components, rank, "that is the rank of the penalty graph's Laplacian")
        nullity = components - 1 if self.center else components
        if nullity > 0 and self.penalty_epsilon > 0:
            C = C + self.penalty_epsilon * C.trace() / n_anchors * sparse.eye_array(n_anchors, format="csr")
        return sparse.csr_array(C)

    def _solve_target(self, M: FloatArray, C: sparse.csr_array | None) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues in ascending order, and Z.  Overwrites ``M``."""
        if C is None:
            solve = smallest_eigenpairs_centred if self.center else smallest_eigenpairs
            return solve(M, self.n_components)
        dense = np.asfortranarray(C.toarray())
        if self.center:
            centre_lower(dense)
            centre_lower(M)
            # The constant direction has no penalty any more; a unit of M keeps the pencil definite there.
            M += M.diagonal().mean() / M.shape[0]
        nu, U = largest_of_pencil(dense, M, self.n_components)
        Z = U / np.sqrt(nu)
        return 1.0 / nu, Z - Z.mean(axis=0) if self.center else Z


def _party_inverse(party: PartyName, A: FloatArray, kernel: Kernel, *, alpha: float) -> FloatArray:
    try:
        return ridge_inverse(kernel.gram(A), alpha)
    except scipy.linalg.LinAlgError:
        raise NumericalError(
            f"Party {party!r}: the kernel matrix plus alpha={alpha:g} is not positive definite. Choose a positive "
            "semidefinite kernel, or raise alpha."
        ) from None


def _party_coefficients(party: PartyName, A: FloatArray, kernel: Kernel, *, alpha: float, Z: FloatArray) -> FloatArray:
    # Refactorising costs a third of the first pass and saves keeping K matrices.
    return ridge_coefficients(kernel.gram(A), alpha, Z)


def _normalise_and_add(M: FloatArray, B: sparse.csr_array | None, graph_weight: float) -> None:
    r"""Replace ``M`` by :math:`M / \mathrm{tr} M + \mu B / \mathrm{tr} B`, in place."""
    M /= np.trace(M)
    if B is not None:
        add_sparse_to_lower(M, B, graph_weight / B.trace())
