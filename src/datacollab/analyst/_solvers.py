"""KTI's target problem and its solvers: dense, streamed, and by landmarks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike
from scipy import sparse

from .._validation import Array, FloatArray, PartyName, array_namespace, to_numpy
from ..errors import ApproximationWarning, IncompressibleKernelError, NotConvergedError, NumericalError
from ..linalg import (
    Kernel,
    KernelBlocks,
    LeadingEigenpairs,
    PanelCholesky,
    StopRule,
    add_sparse_to_lower,
    add_to_lower,
    cast,
    centre_lower,
    hstack,
    largest_of_pencil,
    leading_eigenpairs,
    like,
    panel_cholesky,
    refine_solution,
    ridge_coefficients,
    ridge_inverse,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
    symmetric_product,
    zeros,
)
from ..model import KernelMap
from ._cost import DENSE_UP_TO, FEWEST_LANDMARKS, MOST_LANDMARKS, candidate_rows
from ._engine import Engine
from ._nystroem import (
    LandmarkFeatures,
    LandmarkSmoother,
    draw_pivots,
    feature_dtype,
    feature_gram,
    fit_smoother,
    orthonormalise,
    smoother_trace,
)

VANISHING = 1e-8
"""Part of a target column, relative to the best one's, that all kernel maps together must reproduce."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetProblem:
    r"""Minimise :math:`\mathrm{tr}(Z^\top M_\lambda Z)` over targets Z (eq. reduced_KNI), or with graphs.

    Parties without an entry in ``weights`` have weight 1.
    """

    anchors: dict[PartyName, Array]
    kernels: dict[PartyName, Kernel]
    alpha: float
    n_components: int
    intrinsic: sparse.csr_array | None = None
    graph_weight: float = 1.0
    penalty: sparse.csr_array | None = None
    center: bool = False
    weights: Mapping[PartyName, float] = field(default_factory=dict)

    @property
    def n_anchors(self) -> int:
        """Rows of every anchor representation."""
        return int(next(iter(self.anchors.values())).shape[0])

    def weight(self, party: PartyName) -> float:
        """Return the factor of a party's term."""
        return self.weights.get(party, 1.0)

    @property
    def total_weight(self) -> float:
        """Sum of the parties' weights: their number, unless they were given."""
        return sum(map(self.weight, self.anchors))

    @property
    def normalised(self) -> bool:
        """Whether both terms are divided by their traces (eq. kernel-graph-gep)."""
        return self.intrinsic is not None or self.penalty is not None

    def sample(self, size: int, rng: np.random.Generator) -> TargetProblem:
        """Return the problem without its graphs, on some of the anchor rows, in NumPy."""
        rows = np.sort(rng.choice(self.n_anchors, size=size, replace=False))
        anchors = {party: to_numpy(A)[rows].astype(np.float64, copy=False) for party, A in self.anchors.items()}
        # On fewer rows a kernel matrix has smaller eigenvalues, so the penalty shrinks along.
        alpha = self.alpha * size / self.n_anchors
        return replace(self, anchors=anchors, alpha=alpha, intrinsic=None, penalty=None)

    def operator(self, trace: float | None) -> TargetOperator:
        r"""Return the symmetric operator whose largest eigenvectors solve the problem without a penalty graph."""
        n_parties = self.total_weight
        unit = 1.0 if trace is None else 1.0 / trace
        # All eigenvalues of the sum of smoothers lie between 0 and the sum of weights.
        if self.intrinsic is None:
            return TargetOperator(unit * n_parties, unit, self.alpha, n_parties, None)
        # mu B / tr B (eq. kernel-graph-gep)
        B = self.intrinsic * (self.graph_weight / self.intrinsic.trace())
        # No eigenvalue of a Laplacian exceeds twice its largest degree.
        return TargetOperator(unit * n_parties + 2.0 * float(B.diagonal().max()), unit, self.alpha, n_parties, B)


@dataclass(frozen=True, eq=False)
class TargetOperator:
    r"""``offset`` times the identity less the matrix N that KTI minimises, positive semidefinite.

    :math:`N = c M_\lambda + \beta B` with :math:`M_\lambda = \lambda \sum_k S_k = \sum_k (I - P_k)`.  If parties have
    weights, each term of the sums has its own, and ``n_parties`` is their sum.
    """

    offset: float
    unit: float
    alpha: float
    n_parties: float
    laplacian: sparse.csr_array | None

    def of_inverses(self, X: Array, total: Array) -> Array:
        r"""Return the image of ``X``, given :math:`\sum_k S_k X`."""
        return self._less_graph(self.offset * X - (self.unit * self.alpha) * total, X)

    def of_smoothers(self, X: Array, total: Array) -> Array:
        r"""Return the image of ``X``, given :math:`\sum_k P_k X`."""
        return self._less_graph((self.offset - self.unit * self.n_parties) * X + self.unit * total, X)

    def on_span(self, Z: Array, smoothed: FloatArray) -> FloatArray:
        r"""Return the operator between orthonormal columns, given :math:`Z^\top \sum_k P_k Z`; small, and NumPy's."""
        between = (self.offset - self.unit * self.n_parties) * np.eye(Z.shape[1]) + self.unit * smoothed
        if self.laplacian is None:
            return between
        here = to_numpy(Z)
        return np.asarray(between - here.T @ (self.laplacian @ here))

    def _less_graph(self, image: Array, X: Array) -> Array:
        if self.laplacian is None:
            return image
        # The few columns of X travel to the sparse matrix, which the array API does not know.
        return image - like(self.laplacian @ to_numpy(X), X)


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A target and the functions that lead to it."""

    solver: str
    eigenvalues: FloatArray
    target: Array
    maps: dict[PartyName, KernelMap]
    angle: float | None = None
    gap: float | None = None
    rank: int | None = None
    error: float | None = None


def centre(X: Array) -> Array:
    """Take the mean of each column off ``X`` (eq. centering)."""
    return X - array_namespace(X).mean(X, axis=0)


def maps_of(
    problem: TargetProblem, centres: Mapping[PartyName, Array], coefficients: Iterable[Array]
) -> dict[PartyName, KernelMap]:
    """Return one kernel expansion around ``centres`` for each party, in their order."""
    return {
        party: KernelMap(party, like(centres[party], A), like(Gamma, A), problem.kernels[party])
        for (party, A), Gamma in zip(problem.anchors.items(), coefficients, strict=True)
    }


def kernel_rank(eigenvalues: FloatArray, n_parties: float, tolerance: float = VANISHING) -> int:
    r"""Return components that some kernel map reproduces, by the eigenvalues of :math:`M_\lambda`.

    A direction on which all kernels vanish has the eigenvalue K, and maps every row to zero.  Rounding leaves of it a
    part that is small beside that of the best direction.
    """
    reproduced = n_parties - eigenvalues
    return int((reproduced > tolerance * max(float(reproduced.max()), 0.0)).sum())


@contextmanager
def definite(party: PartyName, alpha: float) -> Iterator[None]:
    """Say whose kernel it is that has no Cholesky factor."""
    try:
        yield
    except scipy.linalg.LinAlgError:
        raise NumericalError(
            f"Party {party!r}: the kernel matrix plus alpha={alpha:g} is not positive definite. Choose a positive "
            "semidefinite kernel, or raise alpha."
        ) from None


logger = logging.getLogger(__name__)

_FINE = {np.float32: StopRule(2e-2, 1e-3), np.float64: StopRule(5e-3, 1e-5)}
"""The end of a search on the surrogate, by the type of the features; the objective is off by the angle's square."""
_ROUGH = StopRule(0.3, 0.03)
"""Where more landmarks follow, and nothing but the objective matters, to a few per cent of what a doubling changes."""
_COARSE = StopRule(1.0, 0.03)
"""For a start from few landmarks."""
_UNEXPLAINED = 0.3
"""Share of a kernel's trace that so many landmarks as a quarter of the rows, or as are taken at most, must explain
all but."""
_FOLLOWING = 3
"""Eigenvectors found besides each wanted one: that many more to start from save several steps after a doubling."""
_PASSES = 2
"""Regressions on all rows, each on the functions of the one before, where the first functions come from some rows."""
_START_SAMPLE = 400
_START_RANK = 64


@dataclass(frozen=True, eq=False)
class _Restricted:
    """One party's landmarks, and its smoother on the rows ``A``; neither is there from the beginning."""

    party: PartyName
    A: Array
    kernel: Kernel
    alpha: float
    seed: int
    landmarks: FloatArray | None = None
    share_left: float = 1.0
    smoother: LandmarkSmoother | None = None

    @property
    def fitted(self) -> LandmarkSmoother:
        """The smoother, which must have been fitted."""
        assert self.smoother is not None
        return self.smoother

    def features(self) -> LandmarkFeatures:
        assert self.landmarks is not None
        return _features(self.party, self.A, self.kernel, self.landmarks, self.alpha)

    def smooth(self, X: Array) -> Array:
        return self.fitted.apply(X)

    def trace(self) -> float:
        r"""Return the trace of :math:`\tilde P`, whose functions are combinations of the landmarks'."""
        return smoother_trace(self.fitted.feature_gram(), self.alpha)

    def functions(self, Z: Array) -> tuple[FloatArray, FloatArray]:
        return _functions(self.features(), self.fitted.feature_gram(), Z)


@dataclass(frozen=True, eq=False)
class _Extended:
    """One party's functions, found on some of the anchor rows or on all, with the parts of a ridge regression."""

    features: LandmarkFeatures
    gram: FloatArray
    coefficients: FloatArray
    between: FloatArray

    def values(self) -> Array:
        """Return the functions at all rows."""
        return self.features.combine(self.coefficients)

    def functions(self) -> tuple[FloatArray, FloatArray]:
        return self.coefficients, self.between


def solve_nystroem(
    problem: TargetProblem,
    engine: Engine,
    *,
    seed: int,
    tol: float,
    n_landmarks: int | None = None,
    most: int = MOST_LANDMARKS,
    n_rows: int,
) -> Solution:
    r"""Minimise over functions :math:`g_k \in \mathrm{span}\{\kappa_k(\cdot, s): s \in S_k\}`.

    The landmarks :math:`S_k` come from randomly pivoted Cholesky factorisations on a sample of the anchor rows.  A
    Krylov method on the features of ``n_rows`` anchor rows, which are kept, finds the target with smoothers nearer to
    the exact ones than those of the functions.  The number of landmarks doubles until that lowers the objective of the
    functions by at most ``tol`` for each party and component, whose share of it is 1 at most.  If ``n_rows`` are not
    all, the functions found on them make the target on all, and ridge regressions on it the functions.
    """
    rng = np.random.default_rng(seed)
    n = problem.n_anchors
    part = problem
    if n_rows < n:
        part = problem.sample(n_rows, rng)
        # The sample is drawn with NumPy, and computed where the anchors are.
        part = replace(part, anchors={party: like(part.anchors[party], A) for party, A in problem.anchors.items()})
    reached = _double_landmarks(part, engine, rng, tol=tol, n_landmarks=n_landmarks, most=most)
    landmarks = reached.landmarks
    operator = reached.operator
    solved = reached.solved
    Z = reached.pairs.vectors
    if n_rows < n:
        parts = zip(_of_parties(problem), landmarks, solved, strict=True)
        whole = engine.place(_extend, [(*each, S, *functions) for each, S, functions in parts])
        operator = problem.operator(None)
        for _ in range(_PASSES):
            # Given functions, the best target is their sum, made orthonormal.
            Z = engine.total(_Extended.values, whole)
            orthonormalise(Z, center=problem.center)
            whole = engine.update(_regress, whole, Z)
        solved = engine.gather(_Extended.functions, whole)
    coefficients, between = zip(*solved, strict=True)
    # The columns are turned to the axes in which the functions reproduce them, and ordered by how well.
    values, turn = scipy.linalg.eigh(operator.on_span(Z, sum(between)))
    values = values[::-1]
    turn = turn[:, ::-1]
    rank = max(len(S) for S in landmarks)
    if n_landmarks is None and not reached.is_enough:
        _warn(rank, most, reached.missed, reached.drop, tol)
    centres = dict(zip(problem.anchors, landmarks, strict=True))
    return Solution(
        solver="nystroem",
        eigenvalues=operator.offset - values,
        target=Z @ like(turn, Z),
        maps=maps_of(problem, centres, [Gamma @ turn for Gamma in coefficients]),
        # On some of the rows it would be the angle to their solution.
        angle=reached.pairs.angle if n_rows >= n else None,
        gap=reached.pairs.gap,
        rank=rank,
        error=reached.drop,
    )


@dataclass(frozen=True, eq=False)
class _Reached:
    """The target by the last number of landmarks, and each party's coefficients and products with it.

    ``missed`` is the mean share of a target column that a function misses, and ``drop`` by how much the last doubling
    lowered it; ``is_enough`` says whether that, or the kernel's rank, ended the doubling.
    """

    landmarks: list[FloatArray]
    operator: TargetOperator
    pairs: LeadingEigenpairs
    solved: list[tuple[FloatArray, FloatArray]]
    missed: float
    drop: float | None
    is_enough: bool


def _double_landmarks(
    problem: TargetProblem,
    engine: Engine,
    rng: np.random.Generator,
    *,
    tol: float,
    n_landmarks: int | None,
    most: int,
) -> _Reached:
    """Find the target with as many landmarks as are given, or as `solve_nystroem` says."""
    n = problem.n_anchors
    k = problem.n_components
    K = len(problem.anchors)
    states = _place(problem, engine, rng)
    start = coarse_start(problem, engine, rng)
    missed: float | None = None
    drop: float | None = None
    # Several landmarks a component, or their functions could not tell the components apart.
    rank = n_landmarks or min(max(FEWEST_LANDMARKS, 4 * k), max(most, 2 * k))
    while True:
        # With as many landmarks as rows nothing is restricted any more.
        following = min(2 * rank, n)
        is_last = n_landmarks is not None or following > most
        states = engine.update(_draw, states, rank)
        shares = engine.gather(attrgetter("share_left"), states)
        if n_landmarks is None:
            _check_rank(problem, rank, shares)
        states = engine.update(_fit, states)
        trace = None
        if problem.normalised:
            # tr(M) is that of K identities less the smoothers'.
            trace = float(K * n - sum(engine.gather(_Restricted.trace, states)))
        operator = problem.operator(trace)
        # More landmarks are of no use if these explain all that rounding leaves.
        exhausted = max(shares) == 0
        fine = _FINE[feature_dtype(problem.alpha, rank, n)]
        stop = fine if is_last or exhausted else _ROUGH
        pairs = _minimise(problem, operator, engine, states, start, stop, n_following=_FOLLOWING * k)
        solved = engine.gather(_Restricted.functions, states, pairs.vectors)
        before = missed
        # tr(Z' P_k Z) of the k columns of a party is the part that its function reproduces.
        missed = 1 - sum(float(np.trace(between)) for _, between in solved) / (K * k)
        drop = None if before is None else before - missed
        logger.info("%d landmarks per party miss %.4g of the target on %d anchor rows", rank, missed, n)
        is_enough = exhausted or (drop is not None and drop <= tol)
        start = hstack([pairs.vectors, pairs.following])
        if is_last or is_enough:
            break
        rank = following
    if stop == _ROUGH:
        # The doubling ended after a rough solution, which is now made as good as the features permit.
        pairs = _minimise(problem, operator, engine, states, start, fine)
        solved = engine.gather(_Restricted.functions, states, pairs.vectors)
    return _Reached(engine.gather(attrgetter("landmarks"), states), operator, pairs, solved, missed, drop, is_enough)


def _check_rank(problem: TargetProblem, rank: int, shares: list[float]) -> None:
    """Refuse landmarks that leave too large a share of a party's kernel unexplained to stand for the other rows."""
    worst = int(np.argmax(shares))
    if 4 * rank >= min(problem.n_anchors, 4 * MOST_LANDMARKS) and shares[worst] > _UNEXPLAINED:
        party = list(problem.anchors)[worst]
        raise IncompressibleKernelError(
            f"Party {party!r}: {rank} landmarks leave {shares[worst]:.0%} of the kernel's trace unexplained, so "
            "no few of them can stand for the other anchor rows. Choose a wider kernel (a smaller gamma or "
            "gamma_factor), or solver='exact', which takes more time and memory."
        )


def _warn(rank: int, most: int, missed: float, drop: float | None, tol: float) -> None:
    """Warn that a tolerance was not reached: by how much that matters, and the ways on."""
    why = "memory permits"
    cure = "Raise memory_limit"
    if most >= MOST_LANDMARKS:
        why = "solver='nystroem' takes by itself"
        cure = f"Set n_landmarks={2 * rank} (up to four times the time)"
    brought = "what more would bring is not known"
    if drop is not None:
        brought = f"the last doubling lowered that by {drop:.2g}"
    warnings.warn(
        f"KTI: {rank} landmarks per party are the most that {why}, and tol={tol:g} is not reached: the parties' "
        f"functions miss a share of {missed:.2g} of the collaboration representation, and {brought}. Models on top "
        "lost at most about as much accuracy as a last doubling brought, where that was measured (docs/scaling.md). "
        f"{cure}, choose a wider kernel (a smaller gamma_factor) or solver='exact', or raise tol to accept it.",
        ApproximationWarning,
        stacklevel=5,
    )


def coarse_start(problem: TargetProblem, engine: Engine, rng: np.random.Generator) -> Array:
    """Return columns that nearly span the leading eigenvectors, from few landmarks and a sample of rows."""
    size = min(problem.n_anchors, _START_SAMPLE)
    small = problem.sample(size, rng)
    states = engine.update(_fit, engine.update(_draw, _place(small, engine, rng), _START_RANK))
    # More columns than components make up for their coarseness, but fewer than landmarks.
    m = min(3 * problem.n_components, 3 * _START_RANK // 4, size - 1)
    wide = replace(small, n_components=max(m, problem.n_components))
    operator = wide.operator(None)
    pairs = _minimise(wide, operator, engine, states, rng.normal(size=(size, m)), _COARSE)
    landmarks = engine.gather(attrgetter("landmarks"), states)
    solved = engine.gather(_Restricted.functions, states, pairs.vectors)
    # The functions found on the sample, summed over parties, at all rows.
    start = zeros((problem.n_anchors, pairs.vectors.shape[1]), next(iter(problem.anchors.values())))
    for (party, A), S, (Gamma, _) in zip(problem.anchors.items(), landmarks, solved, strict=True):
        start += _features(party, A, problem.kernels[party], S, problem.alpha).combine(Gamma)
    return start


def _minimise(
    problem: TargetProblem,
    operator: TargetOperator,
    engine: Engine,
    states: list[Any],
    start: Array,
    stop: StopRule,
    n_following: int = 0,
) -> LeadingEigenpairs:
    """Minimise over targets with every smoother replaced by that of the landmarks."""

    def apply(X: Array) -> Array:
        return operator.of_smoothers(X, engine.total(_Restricted.smooth, states, X))

    return leading_eigenpairs(
        apply,
        start,
        problem.n_components,
        stop,
        project=centre if problem.center else None,
        n_following=n_following,
    )


def _place(problem: TargetProblem, engine: Engine, rng: np.random.Generator) -> list[Any]:
    """Make states of the parties, which have no landmarks yet."""
    seeds = rng.integers(2**32, size=len(problem.anchors))
    arguments = [(*each, int(seed)) for each, seed in zip(_of_parties(problem), seeds, strict=True)]
    return engine.place(_Restricted, arguments)


def _draw(state: _Restricted, rank: int) -> _Restricted:
    """Draw landmarks among some of the rows, and let the smoother on former ones go."""
    # The same landmarks wherever and however often this is computed.
    rng = np.random.default_rng([state.seed, rank])
    A = to_numpy(state.A)
    rows = np.sort(rng.choice(len(A), size=min(len(A), candidate_rows(rank)), replace=False))
    candidates = A[rows].astype(np.float64, copy=False)
    with definite(state.party, state.alpha):
        drawn = draw_pivots(state.kernel, candidates, rank, rng)
    return replace(state, landmarks=candidates[drawn.pivots], share_left=drawn.unexplained_share, smoother=None)


def _fit(state: _Restricted) -> _Restricted:
    with definite(state.party, state.alpha):
        return replace(state, smoother=fit_smoother(state.features()))


def _extend(
    party: PartyName,
    A: Array,
    kernel: Kernel,
    alpha: float,
    landmarks: FloatArray,
    coefficients: FloatArray,
    between: FloatArray,
) -> _Extended:
    features = _features(party, A, kernel, landmarks, alpha)
    with definite(party, alpha):
        return _Extended(features, feature_gram(features), coefficients, between)


def _regress(state: _Extended, Z: Array) -> _Extended:
    coefficients, between = _functions(state.features, state.gram, Z)
    return replace(state, coefficients=coefficients, between=between)


def _features(party: PartyName, A: Array, kernel: Kernel, landmarks: FloatArray, alpha: float) -> LandmarkFeatures:
    with definite(party, alpha):
        return LandmarkFeatures.prepare(kernel, A, landmarks, alpha)


def _functions(features: LandmarkFeatures, gram: FloatArray, Z: Array) -> tuple[FloatArray, FloatArray]:
    r"""Return coefficients of the functions with all landmarks, and :math:`Z^\top \tilde P Z`."""
    moments = features.moments(Z)
    weights = scipy.linalg.cho_solve((gram, True), moments, check_finite=False)
    return features.expansion(weights), moments.T @ weights


_EXACT = StopRule(5e-7, small_gap=1e-5)
_SINGLE = StopRule(1e-3, small_gap=1e-3)
"""The end of a search for the exact subspace, and in single precision; the objective is off by the square of `tol`."""


def solve_dense(problem: TargetProblem, engine: Engine) -> Solution:
    r"""Form :math:`M_\lambda` from explicit inverses, in two n_a x n_a matrices (three with a penalty graph).

    Solves the reduced problem (eq. reduced_KNI), with graphs (eq. kernel-graph-gep) and centred (eq. reduced-Y).
    """
    # The lower triangle alone; each party's term has eigenvalues up to its weight.
    M = np.zeros((problem.n_anchors, problem.n_anchors), order="F")
    # Not zip, whose tuple would keep the last matrix while the next one is made.
    parties = iter(problem.anchors)
    for S in engine.each(_inverse, _of_parties(problem)):
        add_to_lower(M, S, problem.alpha * problem.weight(next(parties)))
        del S  # or it would stay until the next one is there
    if problem.normalised:
        M /= np.trace(M)
    if problem.intrinsic is not None:
        # mu B / tr B (eq. kernel-graph-gep)
        add_sparse_to_lower(M, problem.intrinsic, problem.graph_weight / problem.intrinsic.trace())
    eigenvalues, Z, gap, angle = _dense_target(M, problem.n_components, penalty=problem.penalty, center=problem.center)
    del M
    # Refactorising costs a third of the first pass and saves keeping K matrices.
    solved = engine.each(_coefficients, [(*each, Z) for each in _of_parties(problem)])
    maps = maps_of(problem, problem.anchors, solved)
    return Solution(solver="exact", eigenvalues=eigenvalues, target=Z, maps=maps, gap=gap, angle=angle)


def _of_parties(problem: TargetProblem) -> list[tuple[PartyName, FloatArray, Kernel, float]]:
    return [(party, A, problem.kernels[party], problem.alpha) for party, A in problem.anchors.items()]


def _dense_target(
    M: FloatArray, n_components: int, *, penalty: sparse.csr_array | None, center: bool
) -> tuple[FloatArray, FloatArray, float | None, float | None]:
    """Return Z of the sum over all parties.  Overwrites ``M``."""
    n = len(M)
    k = n_components
    if penalty is not None:
        return *_target_against(penalty, M, k, center), None, None
    if n > DENSE_UP_TO:
        by_inverse = _target_by_inverse(M, k, center)
        if by_inverse is not None:
            return by_inverse
    # One more eigenvalue shows the gap, if the centred subspace (eq. centered-subspace) has so many.
    more = min(k + 1, n - int(center))
    if center:
        eigenvalues, Z = smallest_eigenpairs_centred(M, more)
    else:
        eigenvalues, Z = smallest_eigenpairs(M, more)
    gap = float(eigenvalues[k] - eigenvalues[k - 1]) if len(eigenvalues) > k else None
    return eigenvalues[:k], Z[:, :k], gap, None


def _target_against(penalty: sparse.csr_array, M: FloatArray, k: int, center: bool) -> tuple[FloatArray, FloatArray]:
    r"""Solve :math:`M u = \gamma\, C u` for the smallest :math:`\gamma` (eq. kernel-graph-gep), as its reciprocal."""
    C = np.asfortranarray(penalty.toarray())
    if center:
        centre_lower(C)
        centre_lower(M)
        # The constant direction has no penalty any more; a unit of M keeps the pencil definite there.
        M += M.diagonal().mean() / len(M)
    nu, U = largest_of_pencil(C, M, k)
    # U' M U = I is returned; the target has Z' C Z = I.
    Z = U / np.sqrt(nu)
    if center:
        Z = Z - Z.mean(axis=0)
    return 1.0 / nu, Z


def _target_by_inverse(M: FloatArray, k: int, center: bool) -> tuple[FloatArray, FloatArray, float, float] | None:
    """Return Z by the largest eigenvalues of the inverse, which lie far apart; None if not found."""
    try:
        factor = scipy.linalg.cholesky(M, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None

    def solve(X: FloatArray) -> FloatArray:
        return np.asarray(scipy.linalg.cho_solve((factor, True), X, check_finite=False))

    def solve_centred(X: FloatArray) -> FloatArray:
        # The inverse on the centred subspace alone: a multiple of the solved constant vector makes the sums zero.
        Y = solve(X)
        return np.asarray(Y - constant * (Y.sum(axis=0) / constant.sum()))

    start = np.random.default_rng(0).normal(size=(len(M), k))
    if center:
        constant = solve(np.ones((len(M), 1)))
        pairs = leading_eigenpairs(solve_centred, start, k, _EXACT, project=centre)
    else:
        pairs = leading_eigenpairs(solve, start, k, _EXACT)
    if not pairs.converged:
        return None
    gap = 1 / (pairs.values[-1] - pairs.gap) - 1 / pairs.values[-1]
    return 1 / pairs.values, pairs.vectors, float(gap), pairs.angle


def _inverse(party: PartyName, A: FloatArray, kernel: Kernel, alpha: float) -> FloatArray:
    with definite(party, alpha):
        return ridge_inverse(kernel.gram(A), alpha)


def _coefficients(party: PartyName, A: FloatArray, kernel: Kernel, alpha: float, Z: FloatArray) -> FloatArray:
    return ridge_coefficients(kernel.gram(A), alpha, Z)


_SINGLE_FROM = 2e-4
"""Penalty, relative to the largest row sum of a kernel matrix, from which float32 is good to some 1e-7."""
_PROBES = 256


@dataclass(frozen=True, eq=False)
class _Factor:
    r"""One party's :math:`\Sigma_k + \lambda I`, in its Cholesky factor."""

    A: Array
    kernel: Kernel
    alpha: float
    weight: float
    cholesky: PanelCholesky


def solve_streamed(
    problem: TargetProblem, engine: Engine, *, precision: str, seed: int, max_columns: int | None = None
) -> Solution:
    r"""Return eigenvectors of :math:`\sum_k P_k` by one Cholesky factor per party, narrower than float64.

    Factors in float32 take the memory of K n_a^2 / 2 such numbers.  With ``precision="float64"``, exact products with
    the few vectors wanted, by iterative refinement, correct what float32 rounds away.
    """
    start = coarse_start(problem, engine, np.random.default_rng(seed))
    try:
        return _solve_streamed(problem, engine, start, np.float32, precision == "float64", max_columns)
    except scipy.linalg.LinAlgError:
        logger.info("float32 is too coarse for these kernels and alpha=%g; factorising in float64", problem.alpha)
        return _solve_streamed(problem, engine, start, np.float64, False, max_columns)


def _solve_streamed(
    problem: TargetProblem, engine: Engine, start: Array, dtype: DTypeLike, correct: bool, max_columns: int | None
) -> Solution:
    factors = engine.place(_factorise, [(*each, problem.weight(each[0]), dtype) for each in _of_parties(problem)])
    logger.info("factorised %d kernel matrices of %d rows", len(factors), problem.n_anchors)
    if dtype == np.float32 and not correct:
        # A small penalty multiplies the rounding of float32.
        correct = problem.alpha < _SINGLE_FROM * max(engine.gather(_largest_row_sum, factors))
    trace = None
    if problem.normalised:
        trace = problem.alpha * sum(engine.gather(_trace_of_inverse, factors))
    operator = problem.operator(trace)
    corrected: list[Array] = []

    def approximate(X: Array) -> Array:
        return operator.of_inverses(X, engine.total(_solve_with_weight, factors, X))

    def exact(Z: Array) -> Array:
        corrected[:] = engine.gather(_refine, factors, Z)
        weighted = [problem.weight(party) * T for party, T in zip(problem.anchors, corrected, strict=True)]
        return operator.of_inverses(Z, sum(weighted))

    single = dtype == np.float32 and not correct
    pairs = leading_eigenpairs(
        approximate,
        start,
        problem.n_components,
        replace(_SINGLE if single else _EXACT, max_columns=max_columns),
        exact=exact if correct else None,
        single=single,
        project=centre if problem.center else None,
    )
    logger.info("eigenvectors after %d columns, angle at most %.1e", pairs.columns, pairs.angle)
    out_of_patience = max_columns is not None and pairs.columns >= max_columns
    # The caller takes factors in float64 then.
    if not pairs.converged and correct and not out_of_patience:
        raise scipy.linalg.LinAlgError("the corrections do not converge")
    # In single precision without corrections, the best there is was asked for.
    if not pairs.converged and not single:
        raise NotConvergedError(
            f"KTI: the eigenvectors of {problem.n_anchors} x {problem.n_anchors} kernel matrices were not found with "
            f"alpha={problem.alpha:g}. Raise alpha, or memory_limit for the dense solver."
        )
    if pairs.anchored is None or pairs.correction is None:
        solved = engine.gather(_solve, factors, pairs.vectors)
    else:
        # The correction is small, so that its rounding in float32 is below float64's.
        xp = array_namespace(pairs.correction)
        size = max(float(xp.max(xp.abs(pairs.correction))), float(np.finfo(np.float64).tiny))
        remainders = engine.gather(_solve, factors, pairs.correction / size)
        solved = [T @ pairs.anchored + size * extra for T, extra in zip(corrected, remainders, strict=True)]
    # If all directions are taken, there is no gap.
    whole = problem.n_components == problem.n_anchors - problem.center
    return Solution(
        solver="exact",
        eigenvalues=operator.offset - pairs.values,
        target=pairs.vectors,
        maps=maps_of(problem, problem.anchors, solved),
        angle=None if whole else pairs.angle,
        gap=None if whole else pairs.gap,
    )


def _factorise(party: PartyName, A: Array, kernel: Kernel, alpha: float, weight: float, dtype: DTypeLike) -> _Factor:
    # In single precision the caller tries again.
    with nullcontext() if dtype == np.float32 else definite(party, alpha):
        cholesky = panel_cholesky(KernelBlocks(kernel, A, dtype), alpha)
    return _Factor(A, kernel, alpha, weight, cholesky)


def _solve(factor: _Factor, X: Array) -> Array:
    return cast(factor.cholesky.solve(X), np.float64)


def _solve_with_weight(factor: _Factor, X: Array) -> Array:
    return factor.weight * _solve(factor, X)


def _refine(factor: _Factor, Z: Array) -> Array:
    tiles = KernelBlocks(factor.kernel, factor.A).lower_tiles()
    return refine_solution(factor.cholesky, lambda X: symmetric_product(tiles, X), factor.alpha, Z)


def _largest_row_sum(factor: _Factor) -> float:
    """Return the largest row sum among some rows: about the largest eigenvalue of the kernel matrix, or more."""
    step = max(1, factor.A.shape[0] // _PROBES)
    rows = KernelBlocks(factor.kernel, factor.A, np.float32).block(slice(0, None, step), slice(0, None))
    return float(to_numpy(rows).sum(axis=1).max())


def _trace_of_inverse(factor: _Factor) -> float:
    """Return the trace of the party's term, with its weight."""
    # In float64, since it enters the problem itself.
    return factor.weight * panel_cholesky(KernelBlocks(factor.kernel, factor.A), factor.alpha).inverse_trace
