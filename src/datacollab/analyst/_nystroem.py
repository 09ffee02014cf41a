"""Low-rank solver of KTI: every party's functions restricted to landmarks among its anchor rows."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from .._validation import Array, FloatArray, PartyName
from ..errors import ApproximationWarning, IncompressibleKernelError
from ..linalg import (
    Kernel,
    LeadingEigenpairs,
    PivotedCholesky,
    RestrictedRidge,
    extend_pivots,
    landmark_moments,
    landmark_root,
    leading_eigenpairs,
    like,
    nested_ridges,
    restricted_ridge_of_features,
    smoother_trace,
    start_pivots,
    zeros,
)
from ._cost import FEWEST_LANDMARKS, MOST_LANDMARKS, sample_size, target_landmarks
from ._engine import Engine
from ._target_problem import Solution, TargetOperator, TargetProblem, maps_of, not_definite

__all__ = ["coarse_start", "solve_nystroem"]

logger = logging.getLogger(__name__)

_TOLERANCE = 2e-2
"""Bound on the sine of the angle to the exact eigenvectors of the surrogate; its objective is off by the square."""
_ROUGH, _BLURRED = 0.3, 0.03
"""The same, and the eigengap that is not resolved any better, where nothing but the objective matters, to a few per
cent of what a doubling of the rank changes."""
_UNEXPLAINED = 0.3
"""Share of a kernel's trace that so many landmarks as a quarter of the rows must not leave unexplained."""
_FOLLOWING = 3
"""Eigenvectors found on the sample besides each wanted one: that many more to start from save several steps."""
_BLOCK = 2048

_START_SAMPLE = 400
_START_RANK = 64


@dataclass(frozen=True, eq=False)
class _Sampled:
    """One party's landmarks, chosen among a sample of the anchor rows, and its ridge regression there."""

    party: PartyName
    A: FloatArray
    kernel: Kernel
    seed: int
    pivoted: PivotedCholesky
    ridge: RestrictedRidge | None = None


@dataclass(frozen=True, eq=False)
class _Restricted:
    """One party's landmarks and its ridge regressions on all anchor rows: with the first of them, and with all."""

    A: Array
    kernel: Kernel
    landmarks: FloatArray
    root: FloatArray
    weights: FloatArray
    ridge: RestrictedRidge
    gram: FloatArray

    @property
    def trace(self) -> float:
        return smoother_trace(self.gram, self.ridge.alpha)

    def moments(self, Z: Array) -> FloatArray:
        """Products of all features with the columns of Z."""
        if self.ridge.features.shape[1] == len(self.landmarks):
            return self.ridge.moments(Z)
        return landmark_moments(self.kernel, self.A, self.landmarks, self.root, self.ridge.alpha, Z)


def solve_nystroem(
    problem: TargetProblem,
    engine: Engine,
    *,
    seed: int,
    tol: float,
    n_landmarks: int | None = None,
    most: int = MOST_LANDMARKS,
) -> Solution:
    r"""Minimise over functions :math:`g_k \in \mathrm{span}\{\kappa_k(\cdot, s): s \in S_k\}`.

    The landmarks :math:`S_k` come from randomly pivoted Cholesky factorisations on a sample of the anchor rows.  Their
    number doubles until that lowers the surrogate's objective on the sample by at most ``tol`` for each party and
    component, whose share of it is 1 at most.  On all rows the target is then that of the first landmarks, 256 for few
    components, whose features are kept; more of them would hardly change it.  Its functions are the ridge regressions
    on all landmarks, whose features are made block by block, twice, and never kept.
    """
    rng = np.random.default_rng(seed)
    n, k = problem.n_anchors, problem.n_components
    size = sample_size(n, n_landmarks)
    sample = np.sort(rng.choice(n, size=size, replace=False))
    # On fewer rows a kernel matrix has smaller eigenvalues, so the penalty shrinks along.
    small = replace(problem.on(sample), alpha=problem.alpha * size / n)
    sampled = _sampled(small, engine, rng)
    rank = n_landmarks or min(max(FEWEST_LANDMARKS, 4 * k), max(most, 2 * k))
    largest = n_landmarks or max(rank, min(size // 2, most))
    start, before, drop, operator = rng.normal(size=(size, k)), None, None, small.operator(None)
    while True:
        sampled = engine.update(_extended, sampled, rank, small.alpha)
        found = _minimise(
            small, operator, engine, sampled, start, tol=_ROUGH, small_gap=_BLURRED, n_following=_FOLLOWING * k
        )
        value = float((operator.offset - found.values).sum())
        logger.info("%d landmarks per party: surrogate objective %.6g on %d anchor rows", rank, value, size)
        drop = (before - value) / (len(problem.anchors) * k) if before is not None else None
        unexplained = engine.gather(_unexplained, sampled)
        if 2 * rank > largest or max(unexplained) == 0 or (drop is not None and drop <= tol):
            break
        start, before, rank = np.hstack([found.vectors, found.following]), value, 2 * rank
    if n_landmarks is None:
        _check_rank(problem, rank, size, unexplained)
    reached = max(unexplained) == 0 or (2 * rank <= most if drop is None else drop <= tol)

    n_first = target_landmarks(k)
    landmarks = engine.gather(_landmarks, sampled)
    weights = engine.gather(_first_weights, sampled, np.hstack([found.vectors, found.following]), n_first)
    del sampled
    arguments = [
        (party, problem.anchors[party], problem.kernels[party], S, W, problem.alpha)
        for party, S, W in zip(problem.anchors, landmarks, weights, strict=True)
    ]
    restricted = engine.place(_restricted, arguments)
    operator = problem.operator(_trace(problem, engine, restricted))
    # The functions found on the sample, evaluated at all rows, are nearly the solution.
    found = _minimise(problem, operator, engine, restricted, engine.total(_first, restricted))
    coefficients, smoothed = zip(*engine.gather(_functions, restricted, found.vectors), strict=True)
    # Functions with all landmarks turn and order the columns by what they reach of them.
    values, turn = scipy.linalg.eigh(operator.on_span(found.vectors, sum(smoothed)))
    values, turn = values[::-1], turn[:, ::-1]
    if n_landmarks is None and not reached:
        _warn(rank, most, 1 - float(np.trace(sum(smoothed))) / (len(restricted) * k), drop, tol)
    return Solution(
        solver="nystroem",
        eigenvalues=operator.offset - values,
        target=found.vectors @ like(turn, found.vectors),
        maps=maps_of(
            problem, dict(zip(problem.anchors, landmarks, strict=True)), [Gamma @ turn for Gamma in coefficients]
        ),
        angle=found.angle,
        gap=found.gap,
        rank=max(len(S) for S in landmarks),
        error=drop,
    )


def _check_rank(problem: TargetProblem, rank: int, size: int, unexplained: list[float]) -> None:
    """Refuse landmarks that cannot stand for the other rows."""
    worst = int(np.argmax(unexplained))
    if rank >= size // 4 and unexplained[worst] > _UNEXPLAINED:
        party = list(problem.anchors)[worst]
        raise IncompressibleKernelError(
            f"Party {party!r}: {rank} landmarks leave {unexplained[worst]:.0%} of the kernel's trace unexplained, so "
            "no few of them can stand for the other anchor rows. Choose a wider kernel (a smaller gamma or "
            "gamma_factor), or solver='exact', which takes more time and memory."
        )


def _warn(rank: int, most: int, missed: float, drop: float | None, tol: float) -> None:
    """Say that a tolerance was not reached, by how much that matters, and what to do."""
    if most < MOST_LANDMARKS:
        why, cure = "memory permits", "Raise memory_limit"
    else:
        why, cure = "solver='nystroem' takes by itself", f"Set n_landmarks={2 * rank} (up to four times the time)"
    brought = "what more would bring is not known"
    if drop is not None:
        brought = f"the last doubling lowered that by {drop:.2g} on a sample of the anchor rows"
    warnings.warn(
        f"KTI: {rank} landmarks per party are the most that {why}, and tol={tol:g} is not reached: the parties' "
        f"functions miss a share of {missed:.2g} of the collaboration representation, and {brought}. Models on top "
        "lost at most about as much accuracy as a last doubling brought, where that was measured (docs/scaling.md). "
        f"{cure}, choose a wider kernel (a smaller gamma_factor) or solver='exact', or raise tol to accept it.",
        ApproximationWarning,
        stacklevel=6,
    )


def coarse_start(problem: TargetProblem, engine: Engine, rng: np.random.Generator) -> Array:
    """Columns that nearly span the leading eigenvectors, from a few landmarks and a sample of the anchor rows."""
    n = problem.n_anchors
    size = min(n, _START_SAMPLE)
    sample = np.sort(rng.choice(n, size=size, replace=False))
    small = replace(problem.on(sample), alpha=problem.alpha * size / n)
    sampled = engine.update(_extended, _sampled(small, engine, rng), _START_RANK, small.alpha)
    m = min(3 * problem.n_components, 3 * _START_RANK // 4, size - 1)
    wide = replace(small, n_components=max(m, problem.n_components))
    operator = wide.operator(None)
    found = _minimise(wide, operator, engine, sampled, rng.normal(size=(size, m)), tol=1.0, small_gap=_BLURRED)
    weights = engine.gather(_weights, sampled, found.vectors)
    landmarks = engine.gather(_landmarks, sampled)
    start = zeros((n, found.vectors.shape[1]), next(iter(problem.anchors.values())))
    for (party, A), S, W in zip(problem.anchors.items(), landmarks, weights, strict=True):
        kernel = problem.kernels[party]
        try:
            root = landmark_root(kernel, S)
        except scipy.linalg.LinAlgError:
            raise not_definite(party, problem.alpha) from None
        centres, coefficients = like(S, A), like(_expansion(root, W), A)
        for first in range(0, n, _BLOCK):
            block = slice(first, min(first + _BLOCK, n))
            start[block, :] += kernel.between(A[block, :], centres) @ coefficients
    return start


def _minimise(
    problem: TargetProblem,
    operator: TargetOperator,
    engine: Engine,
    states: list[Any],
    start: Array,
    tol: float = _TOLERANCE,
    small_gap: float = 1e-3,
    n_following: int = 0,
) -> LeadingEigenpairs:
    """Eigenvectors of the problem in which every smoother is a restricted one."""

    def apply(X: Array) -> Array:
        return operator.of_smoothers(X, engine.total(_smooth, states, X))

    return leading_eigenpairs(
        apply,
        start,
        problem.n_components,
        tol=tol,
        small_gap=small_gap,
        project=problem.project,
        n_following=n_following,
    )


def _trace(problem: TargetProblem, engine: Engine, restricted: list[Any]) -> float | None:
    r"""Trace of the restricted :math:`M_\lambda`, where both terms of the problem are divided by theirs."""
    if not problem.normalised:
        return None
    return float(len(restricted) * problem.n_anchors - sum(engine.gather(_smoother_trace, restricted)))


def _sampled(problem: TargetProblem, engine: Engine, rng: np.random.Generator) -> list[Any]:
    seeds = rng.integers(2**32, size=len(problem.anchors))
    return engine.place(
        _unstarted,
        [
            (party, A, problem.kernels[party], problem.alpha, int(seed))
            for (party, A), seed in zip(problem.anchors.items(), seeds, strict=True)
        ],
    )


def _unstarted(party: PartyName, A: FloatArray, kernel: Kernel, alpha: float, seed: int) -> _Sampled:
    pivoted = start_pivots(kernel, A)
    if pivoted.unexplained.min() < 0:
        raise not_definite(party, alpha)
    return _Sampled(party, A, kernel, seed, pivoted)


def _extended(state: _Sampled, rank: int, alpha: float) -> _Sampled:
    # The same landmarks wherever and however often this is computed.
    rng = np.random.default_rng([state.seed, rank])
    try:
        pivoted = extend_pivots(state.pivoted, state.kernel, state.A, rank, rng)
    except scipy.linalg.LinAlgError:
        raise not_definite(state.party, alpha) from None
    return replace(state, pivoted=pivoted, ridge=restricted_ridge_of_features(pivoted.factor, alpha))


def _restricted(
    party: PartyName, A: Array, kernel: Kernel, landmarks: FloatArray, weights: FloatArray, alpha: float
) -> _Restricted:
    try:
        root = landmark_root(kernel, landmarks)
    except scipy.linalg.LinAlgError:
        raise not_definite(party, alpha) from None
    ridge, gram = nested_ridges(kernel, A, landmarks, root, alpha, len(weights))
    return _Restricted(A, kernel, landmarks, root, weights, ridge, gram)


def _smooth(state: _Sampled | _Restricted, X: Array) -> Array:
    return _ridge(state).smooth(X)


def _smoother_trace(state: _Restricted) -> float:
    return state.trace


def _weights(state: _Sampled, Z: Array) -> FloatArray:
    return _ridge(state).weights(Z)


def _first_weights(state: _Sampled, Z: Array, n_first: int) -> FloatArray:
    return _ridge(state).first(n_first).weights(Z)


def _ridge(state: _Sampled | _Restricted) -> RestrictedRidge:
    assert state.ridge is not None
    return state.ridge


def _unexplained(state: _Sampled) -> float:
    return 0.0 if state.pivoted.exhausted else float(state.pivoted.unexplained.sum()) / state.pivoted.trace


def _landmarks(state: _Sampled) -> FloatArray:
    return state.A[state.pivoted.pivots]


def _first(state: _Restricted) -> Array:
    return state.ridge.combined(state.weights)


def _functions(state: _Restricted, Z: Array) -> tuple[FloatArray, FloatArray]:
    r"""Coefficients of the functions with all landmarks, and :math:`Z^\top \tilde P Z`."""
    moments = state.moments(Z)
    weights = scipy.linalg.cho_solve((state.gram, True), moments, check_finite=False)
    return _expansion(state.root, weights), moments.T @ weights


def _expansion(root: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients of the kernel at the landmarks, of functions given by the weights of their features."""
    expansion: FloatArray = scipy.linalg.solve_triangular(root, weights, lower=True, trans=1, check_finite=False)
    return expansion
