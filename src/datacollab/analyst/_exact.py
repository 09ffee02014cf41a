r"""Exact solvers of KTI: a dense one for few anchor rows, and a streamed one that never forms :math:`M_\lambda`."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike
from scipy import sparse

from .._validation import Array, FloatArray, PartyName, array_namespace, to_numpy
from ..errors import NotConvergedError
from ..linalg import (
    Kernel,
    KernelBlocks,
    PanelCholesky,
    add_sparse_to_lower,
    add_to_lower,
    cast,
    centre_lower,
    largest_of_pencil,
    leading_eigenpairs,
    panel_cholesky,
    refined_solution,
    ridge_coefficients,
    ridge_inverse,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
    symmetric_product,
)
from ..model import KernelMap
from ._cost import DENSE_UP_TO
from ._engine import Engine, LocalEngine
from ._nystroem import coarse_start
from ._target_problem import Solution, TargetProblem, centred, maps_of, not_definite

__all__ = ["dense_target", "maps_onto", "normalise", "solve_dense", "solve_streamed", "sum_over_parties"]

logger = logging.getLogger(__name__)

_TOLERANCE = 5e-7
"""Bound on the sine of the angle to the exact subspace."""
_SMALL_GAP = 1e-5
"""Eigengap, relative to the largest eigenvalue, down to which the angle is bounded so."""
_SINGLE_TOLERANCE = 1e-3
"""The same in single precision; the objective is off by its square."""


def solve_dense(problem: TargetProblem, engine: LocalEngine) -> Solution:
    r"""Form :math:`M_\lambda` from explicit inverses, in two n_a x n_a matrices (three with a penalty graph).

    Solves the reduced problem (eq. reduced_KNI), with graphs (eq. kernel-graph-gep) and centred (eq. reduced-Y).
    """
    M = sum_over_parties(problem, engine)
    if problem.normalised:
        normalise(M, problem.intrinsic, problem.graph_weight)
    eigenvalues, Z, gap, angle = dense_target(M, problem.n_components, penalty=problem.penalty, center=problem.center)
    del M
    maps = maps_onto(problem, Z, engine)
    return Solution(solver="exact", eigenvalues=eigenvalues, target=Z, maps=maps, gap=gap, angle=angle)


def sum_over_parties(problem: TargetProblem, engine: LocalEngine) -> FloatArray:
    r""":math:`M_\lambda`, one party's term after the other, in the lower triangle; each has eigenvalues in [0, 1].

    Of some of the parties, as a group of them has it, it is their part of the whole sum.
    """
    M = np.zeros((problem.n_anchors, problem.n_anchors), order="F")
    for S in engine.each(_inverse, _of_parties(problem)):
        add_to_lower(M, S, problem.alpha)
        del S  # or it would stay until the next one is there
    return M


def maps_onto(problem: TargetProblem, Z: FloatArray, engine: LocalEngine) -> dict[PartyName, KernelMap]:
    r"""The parties' functions with coefficients :math:`\Gamma_k = (\Sigma_k + \lambda I)^{-1} Z`."""
    # Refactorising costs a third of the first pass and saves keeping K matrices.
    solved = engine.each(_coefficients, [(*each, Z) for each in _of_parties(problem)])
    return maps_of(problem, problem.anchors, solved)


def _of_parties(problem: TargetProblem) -> list[tuple[PartyName, FloatArray, Kernel, float]]:
    return [(party, A, problem.kernels[party], problem.alpha) for party, A in problem.anchors.items()]


def normalise(M: FloatArray, intrinsic: sparse.csr_array | None, graph_weight: float) -> None:
    r"""Divide ``M`` by its trace, and add :math:`\mu B / \mathrm{tr} B` (eq. kernel-graph-gep), in place."""
    M /= np.trace(M)
    if intrinsic is not None:
        add_sparse_to_lower(M, intrinsic, graph_weight / intrinsic.trace())


def dense_target(
    M: FloatArray, n_components: int, *, penalty: sparse.csr_array | None = None, center: bool
) -> tuple[FloatArray, FloatArray, float | None, float | None]:
    """Z of the sum over all parties.  Overwrites ``M``."""
    n, k = len(M), n_components
    if penalty is None and n > DENSE_UP_TO and (found := _by_inverse(M, k, center)) is not None:
        return found
    # One more than is wanted tells the gap.
    more = min(k + 1, n - 1 if center else n)
    if penalty is None:
        solve = smallest_eigenpairs_centred if center else smallest_eigenpairs
        eigenvalues, Z = solve(M, more)
    else:
        C = np.asfortranarray(penalty.toarray())
        if center:
            centre_lower(C)
            centre_lower(M)
            # The constant direction has no penalty any more; a unit of M keeps the pencil definite there.
            M += M.diagonal().mean() / n
        nu, U = largest_of_pencil(C, M, k)
        eigenvalues, Z = 1.0 / nu, U / np.sqrt(nu)
        Z = Z - Z.mean(axis=0) if center else Z
    gap = float(eigenvalues[k] - eigenvalues[k - 1]) if len(eigenvalues) > k else None
    return eigenvalues[:k], Z[:, :k], gap, None


def _by_inverse(M: FloatArray, k: int, center: bool) -> tuple[FloatArray, FloatArray, float, float] | None:
    """The same through the largest eigenvalues of the inverse, which lie far apart; None where they are not found."""
    try:
        factor = scipy.linalg.cholesky(M, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None

    def inverse(X: FloatArray) -> FloatArray:
        return np.asarray(scipy.linalg.cho_solve((factor, True), X, check_finite=False))

    def centred_inverse(X: FloatArray) -> FloatArray:
        # The inverse on the centred subspace alone: what is left of the constant vector makes the sums zero.
        Y = inverse(X)
        return np.asarray(Y - constant * (Y.sum(axis=0) / constant.sum()))

    constant = inverse(np.ones((len(M), 1)))
    found = leading_eigenpairs(
        centred_inverse if center else inverse,
        np.random.default_rng(0).normal(size=(len(M), k)),
        k,
        tol=_TOLERANCE,
        small_gap=_SMALL_GAP,
        project=centred if center else None,
    )
    if not found.converged:
        return None
    gap = 1 / (found.values[-1] - found.gap) - 1 / found.values[-1]
    return 1 / found.values, found.vectors, float(gap), found.angle


def _inverse(party: PartyName, A: FloatArray, kernel: Kernel, alpha: float) -> FloatArray:
    try:
        return ridge_inverse(kernel.gram(A), alpha)
    except scipy.linalg.LinAlgError:
        raise not_definite(party, alpha) from None


def _coefficients(party: PartyName, A: FloatArray, kernel: Kernel, alpha: float, Z: FloatArray) -> FloatArray:
    return ridge_coefficients(kernel.gram(A), alpha, Z)


_SINGLE_FROM = 2e-4
"""Penalty, relative to the largest row sum of a kernel matrix, from which float32 is good to some 1e-7."""
_PROBES = 256


@dataclass(frozen=True, eq=False)
class _Factor:
    r"""One party's :math:`\Sigma_k + \lambda I`, factorised."""

    A: Array
    kernel: Kernel
    alpha: float
    cholesky: PanelCholesky


def solve_streamed(
    problem: TargetProblem, engine: Engine, *, precision: str, seed: int, max_columns: int | None = None
) -> Solution:
    r"""Eigenvectors of :math:`\sum_k P_k` through one Cholesky factor per party, none of them as wide as float64.

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
    factors = engine.place(
        _factorised,
        [(party, A, problem.kernels[party], problem.alpha, dtype) for party, A in problem.anchors.items()],
    )
    logger.info("factorised %d kernel matrices of %d rows", len(factors), problem.n_anchors)
    correct = correct or (
        dtype == np.float32 and problem.alpha < _SINGLE_FROM * max(engine.gather(_largest_row_sum, factors))
    )
    trace = problem.alpha * sum(engine.gather(_inverse_trace, factors)) if problem.normalised else None
    operator = problem.operator(trace)
    corrected: list[Array] = []

    def approximate(X: Array) -> Array:
        return operator.of_inverses(X, engine.total(_solve, factors, X))

    def exact(Z: Array) -> Array:
        corrected[:] = engine.gather(_refine, factors, Z)
        return operator.of_inverses(Z, sum(corrected))

    single = dtype == np.float32 and not correct
    found = leading_eigenpairs(
        approximate,
        start,
        problem.n_components,
        tol=_SINGLE_TOLERANCE if single else _TOLERANCE,
        exact=exact if correct else None,
        single=single,
        small_gap=1e-3 if single else _SMALL_GAP,
        project=problem.project,
        max_columns=max_columns,
    )
    logger.info("eigenvectors after %d columns, angle at most %.1e", found.columns, found.angle)
    out_of_patience = max_columns is not None and found.columns >= max_columns
    if not found.converged and correct and not out_of_patience:
        raise scipy.linalg.LinAlgError("the corrections do not converge")
    if not found.converged and not single:
        raise NotConvergedError(
            f"KTI: the eigenvectors of {problem.n_anchors} x {problem.n_anchors} kernel matrices were not found with "
            f"alpha={problem.alpha:g}. Raise alpha, or memory_limit for the dense solver."
        )
    if found.anchored is None or found.correction is None:
        solved = engine.gather(_solve, factors, found.vectors)
    else:
        # The correction is small, so that its rounding in float32 is below float64's.
        xp = array_namespace(found.correction)
        size = max(float(xp.max(xp.abs(found.correction))), float(np.finfo(np.float64).tiny))
        remainders = engine.gather(_solve, factors, found.correction / size)
        solved = [T @ found.anchored + size * extra for T, extra in zip(corrected, remainders, strict=True)]
    # Where all directions are taken, there is nothing to be told apart from.
    whole = problem.n_components == problem.n_anchors - problem.center
    return Solution(
        solver="exact",
        eigenvalues=operator.offset - found.values,
        target=found.vectors,
        maps=maps_of(problem, problem.anchors, solved),
        angle=None if whole else found.angle,
        gap=None if whole else found.gap,
    )


def _factorised(party: PartyName, A: Array, kernel: Kernel, alpha: float, dtype: DTypeLike) -> _Factor:
    try:
        cholesky = panel_cholesky(KernelBlocks(kernel, A, dtype), alpha)
    except scipy.linalg.LinAlgError:
        if dtype == np.float32:
            raise
        raise not_definite(party, alpha) from None
    return _Factor(A, kernel, alpha, cholesky)


def _solve(factor: _Factor, X: Array) -> Array:
    return cast(factor.cholesky.solve(X), np.float64)


def _refine(factor: _Factor, Z: Array) -> Array:
    tiles = KernelBlocks(factor.kernel, factor.A).lower_tiles()
    return refined_solution(factor.cholesky, lambda X: symmetric_product(tiles, X), factor.alpha, Z)


def _largest_row_sum(factor: _Factor) -> float:
    """About the largest eigenvalue of the kernel matrix, or more: the largest row sum among some rows."""
    step = max(1, factor.A.shape[0] // _PROBES)
    rows = KernelBlocks(factor.kernel, factor.A, np.float32).block(slice(0, None, step), slice(0, None))
    return float(to_numpy(rows).sum(axis=1).max())


def _inverse_trace(factor: _Factor) -> float:
    # In float64, since it enters the problem itself.
    return panel_cholesky(KernelBlocks(factor.kernel, factor.A), factor.alpha).inverse_trace
