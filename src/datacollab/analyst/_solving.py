"""Which solver a problem of KTI gets, and what takes over where one cannot do it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

from .._validation import Array, array_library
from ..errors import IncompressibleKernelError, NotConvergedError, NotEnoughMemoryError
from ._cost import FitCost, choose_solver, fit_cost, most_landmarks
from ._engine import LocalEngine, engine_for, memory_of
from ._exact import solve_dense, solve_streamed
from ._nystroem import solve_nystroem
from ._target_problem import Solution, TargetProblem

__all__ = ["Solving"]

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
    engine: Any
    n_jobs: int | None
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
        """Solver to take, and its cost; ``beside`` is an array that is computed with."""
        return choose_solver(
            self.solver,
            n_anchors,
            n_parties,
            n_components,
            alpha=alpha,
            n_landmarks=self.n_landmarks,
            has_penalty=has_penalty,
            memory_limit=memory_of(self.engine) if self.memory_limit is None else self.memory_limit,
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
        return solve_dense(problem, LocalEngine(self.n_jobs))

    def _by_landmarks(self, problem: TargetProblem, cost: FitCost) -> Solution:
        most = most_landmarks(cost, problem.n_anchors, len(problem.anchors), problem.n_components, problem.alpha)
        with engine_for(self.engine, self.n_jobs) as engine:
            return solve_nystroem(
                problem, engine, seed=self.seed, tol=self.tol, n_landmarks=self.n_landmarks, most=most
            )

    def _streamed(self, problem: TargetProblem, dense_possible: bool) -> Solution:
        with engine_for(self.engine, self.n_jobs) as engine:
            # So many right-hand sides take about as long as the dense solver.
            patience = problem.n_anchors if dense_possible and isinstance(engine, LocalEngine) else None
            return solve_streamed(problem, engine, precision=self.precision, seed=self.seed, max_columns=patience)

    def _exact_instead(self, problem: TargetProblem) -> FitCost | None:
        """Cost of solving exactly where ``solver="auto"`` may, and memory permits."""
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
