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
    landmark_root,
    leading_eigenpairs,
    like,
    restricted_ridge,
    restricted_ridge_of_features,
    start_pivots,
    zeros,
)
from ._cost import FEWEST_LANDMARKS
from ._engine import Engine
from ._target_problem import Solution, TargetOperator, TargetProblem, maps_of, not_definite

__all__ = ["coarse_start", "solve_nystroem"]

logger = logging.getLogger(__name__)

_SAMPLE = 2048
"""Anchor rows that landmarks are chosen among, and on which the rank is judged."""
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
    """One party's landmarks and its ridge regression on all anchor rows."""

    root: FloatArray
    weights: FloatArray
    ridge: RestrictedRidge


def solve_nystroem(
    problem: TargetProblem,
    engine: Engine,
    *,
    seed: int,
    tol: float,
    n_landmarks: int | None = None,
    most: int | None = None,
) -> Solution:
    r"""Minimise over functions :math:`g_k \in \mathrm{span}\{\kappa_k(\cdot, s): s \in S_k\}`.

    The landmarks :math:`S_k` come from randomly pivoted Cholesky factorisations on a sample of the anchor rows.  Their
    number doubles until that lowers the surrogate's objective on the sample by at most ``tol`` for each party and
    component, whose share of it is 1 at most; then the problem is solved on all rows at that rank.

    Parameters
    ----------
    problem : TargetProblem
        Without a penalty graph.
    engine : Engine
    seed : int
    tol : float
    n_landmarks : int, optional
        Landmarks per party; None lets ``tol`` decide.
    most : int, optional
        Landmarks per party that memory permits.

    Raises
    ------
    IncompressibleKernelError
        When the kernels are too narrow for landmarks to stand for the other rows.
    """
    rng = np.random.default_rng(seed)
    n, k = problem.n_anchors, problem.n_components
    size = min(n, max(_SAMPLE, 4 * (n_landmarks or 0)))
    sample = np.sort(rng.choice(n, size=size, replace=False))
    # On fewer rows a kernel matrix has smaller eigenvalues, so the penalty shrinks along.
    small = replace(problem.on(sample), alpha=problem.alpha * size / n)
    sampled = _sampled(small, engine, rng)
    rank = n_landmarks or min(max(FEWEST_LANDMARKS, 4 * k), max(most or size, 2 * k))
    largest = n_landmarks or max(rank, min(size // 2, most or size))
    start, before, drop = rng.normal(size=(size, k)), None, None
    while True:
        sampled = engine.update(_extended, sampled, rank, small.alpha)
        found, _ = _minimise(small, engine, sampled, start, tol=_ROUGH, small_gap=_BLURRED, n_following=_FOLLOWING * k)
        value = float((small.operator(None).offset - found.values).sum())
        logger.info("%d landmarks per party: surrogate objective %.6g on %d anchor rows", rank, value, size)
        drop = (before - value) / (len(problem.anchors) * k) if before is not None else None
        unexplained = engine.gather(_unexplained, sampled)
        if 2 * rank > largest or max(unexplained) == 0 or (drop is not None and drop <= tol):
            break
        start, before, rank = np.hstack([found.vectors, found.following]), value, 2 * rank
    if n_landmarks is None:
        _check_rank(problem, rank, size, unexplained, drop, tol, most)

    landmarks = engine.gather(_landmarks, sampled)
    weights = engine.gather(_weights, sampled, np.hstack([found.vectors, found.following]))
    del sampled
    arguments = [
        (party, problem.anchors[party], problem.kernels[party], S, W, problem.alpha)
        for party, S, W in zip(problem.anchors, landmarks, weights, strict=True)
    ]
    restricted = engine.place(_restricted, arguments)
    # The functions found on the sample, evaluated at all rows, are nearly the solution.
    found, operator = _minimise(problem, engine, restricted, engine.total(_first, restricted))
    return Solution(
        solver="nystroem",
        eigenvalues=operator.offset - found.values,
        target=found.vectors,
        maps=maps_of(
            problem,
            dict(zip(problem.anchors, landmarks, strict=True)),
            engine.gather(_coefficients, restricted, found.vectors),
        ),
        angle=found.angle,
        gap=found.gap,
        rank=max(len(S) for S in landmarks),
        error=drop,
    )


def _check_rank(
    problem: TargetProblem,
    rank: int,
    size: int,
    unexplained: list[float],
    drop: float | None,
    tol: float,
    most: int | None,
) -> None:
    """Refuse landmarks that cannot stand for the other rows; warn of a tolerance that was not reached."""
    worst = int(np.argmax(unexplained))
    if rank >= size // 4 and unexplained[worst] > _UNEXPLAINED:
        party = list(problem.anchors)[worst]
        raise IncompressibleKernelError(
            f"Party {party!r}: {rank} landmarks leave {unexplained[worst]:.0%} of the kernel's trace unexplained, so "
            "no few of them can stand for the other anchor rows. Choose a wider kernel (a smaller gamma or "
            "gamma_factor), or solver='exact', which takes more time and memory."
        )
    short = most is not None and 2 * rank > most
    if max(unexplained) > 0 and (short if drop is None else drop > tol):
        reached = "their error is not known" if drop is None else f"the last doubling lowered the error by {drop:.2g}"
        warnings.warn(
            f"KTI: {rank} landmarks per party are the most that solver='nystroem' tries by itself or memory permits, "
            f"and {reached}; tol={tol:g} is not reached. Choose a wider kernel, raise tol or memory_limit, set "
            "n_landmarks, or solve exactly.",
            ApproximationWarning,
        )


def coarse_start(problem: TargetProblem, engine: Engine, rng: np.random.Generator) -> Array:
    """Columns that nearly span the leading eigenvectors, from a few landmarks and a sample of the anchor rows.

    Returns
    -------
    array of shape (n_anchors, m)
        With m at least `n_components`, unless there are fewer such directions.
    """
    n = problem.n_anchors
    size = min(n, _START_SAMPLE)
    sample = np.sort(rng.choice(n, size=size, replace=False))
    small = replace(problem.on(sample), alpha=problem.alpha * size / n)
    sampled = engine.update(_extended, _sampled(small, engine, rng), _START_RANK, small.alpha)
    m = min(3 * problem.n_components, 3 * _START_RANK // 4, size - 1)
    wide = replace(small, n_components=max(m, problem.n_components))
    found, _ = _minimise(wide, engine, sampled, rng.normal(size=(size, m)), tol=1.0, small_gap=_BLURRED)
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
    engine: Engine,
    states: list[Any],
    start: Array,
    tol: float = _TOLERANCE,
    small_gap: float = 1e-3,
    n_following: int = 0,
) -> tuple[LeadingEigenpairs, TargetOperator]:
    """Eigenvectors of the problem in which every smoother is a restricted one."""
    traces = engine.gather(_smoother_trace, states) if problem.normalised else []
    trace = len(states) * problem.n_anchors - sum(traces) if problem.normalised else None
    operator = problem.operator(trace)

    def apply(X: Array) -> Array:
        return operator.of_smoothers(X, engine.total(_smooth, states, X))

    found = leading_eigenpairs(
        apply,
        start,
        problem.n_components,
        tol=tol,
        small_gap=small_gap,
        project=problem.project,
        n_following=n_following,
    )
    return found, operator


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
    return _Restricted(root, weights, restricted_ridge(kernel, A, landmarks, root, alpha))


def _smooth(state: _Sampled | _Restricted, X: Array) -> Array:
    return _ridge(state).smooth(X)


def _smoother_trace(state: _Sampled | _Restricted) -> float:
    return _ridge(state).trace


def _weights(state: _Sampled | _Restricted, Z: Array) -> FloatArray:
    return _ridge(state).weights(Z)


def _ridge(state: _Sampled | _Restricted) -> RestrictedRidge:
    assert state.ridge is not None
    return state.ridge


def _unexplained(state: _Sampled) -> float:
    return 0.0 if state.pivoted.exhausted else float(state.pivoted.unexplained.sum()) / state.pivoted.trace


def _landmarks(state: _Sampled) -> FloatArray:
    return state.A[state.pivoted.pivots]


def _first(state: _Restricted) -> Array:
    return state.ridge.combined(state.weights)


def _coefficients(state: _Restricted, Z: Array) -> FloatArray:
    return _expansion(state.root, state.ridge.weights(Z))


def _expansion(root: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients of the kernel at the landmarks, of functions given by the weights of their features."""
    expansion: FloatArray = scipy.linalg.solve_triangular(root, weights, lower=True, trans=1, check_finite=False)
    return expansion
