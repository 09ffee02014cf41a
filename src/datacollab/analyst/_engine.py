"""What a fit of KTI costs (tab:complexity), and where it is computed."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from .._validation import Array, FloatArray, array_library
from ..errors import NotEnoughMemoryError
from ..linalg import basis_capacity, device_memory
from ._nystroem import feature_dtype

DENSE_UP_TO = 1200
"""Anchor rows up to which a dense eigensolver is as fast as a Krylov method."""
EXACT_OPERATIONS = 1e12
"""Operations of the Cholesky factorisations, K n_a^3 / 3, up to which "auto" solves exactly: minutes at most."""
_COLUMNS = 400
"""Right-hand sides that a Krylov method typically needs, for each 16 components."""
_SKINNY = 0.35
"""Rate of products with a few columns, relative to products of large matrices."""
_LARGE_SHARE = 0.9
"""Part of the available memory that a fit may plan to take."""
_TYPICAL_LANDMARKS = 512
"""Landmarks per party that "nystroem" typically takes."""
FEWEST_LANDMARKS = 128
"""Landmarks per party that "nystroem" begins with."""
MOST_LANDMARKS = 1024
"""Landmarks per party that "nystroem" takes by itself at most."""
_TARGET_LANDMARKS = 256
"""Landmarks per party from which more change the target little, even if they improve the functions."""
_SAMPLE = 2048
"""Anchor rows that landmarks are chosen among, and on which their number is judged."""
_BESIDE = 8
"""Blocks of as many columns as components that an eigensolver holds beside its basis."""
_PROBE = 768


@dataclass(frozen=True, kw_only=True)
class FitCost:
    """Estimated cost of a fit."""

    solver: str
    operations: float
    memory: int
    limit: float = np.inf

    @property
    def seconds(self) -> float:
        """Time on one thread of this machine, to within a factor of two or so; a small ``alpha`` takes longer."""
        return self.operations / _rate()

    def __str__(self) -> str:
        memory = self.memory / 2**30
        return f"about {self.seconds:,.0f} s on one thread and {memory:.2g} GiB"


@dataclass(frozen=True, kw_only=True)
class FitSize:
    """What the cost of a fit depends on."""

    n_anchors: int
    n_parties: int
    n_components: int
    alpha: float = 1.0
    n_landmarks: int | None = None
    has_penalty: bool = False

    def cost(self, solver: str) -> FitCost:
        """Estimate what a solver takes."""
        n, K = float(self.n_anchors), float(self.n_parties)
        columns = _COLUMNS * max(1.0, self.n_components / 16)
        if solver == "dense":
            return FitCost(
                solver=solver,
                operations=K * n**3 * 4 / 3 + (14 if self.has_penalty else 4) * n**3,
                memory=int((3 if self.has_penalty else 2) * 8 * n**2),
            )
        if solver == "streamed":
            factors = K * n**3 / 3 / 2
            solves = 2 * K * n**2 * columns / 2 / _SKINNY
            return FitCost(
                solver=solver, operations=factors + solves, memory=int(2.1 * K * n**2 + 4 * n**2 + 16 * n * columns)
            )
        typical = min(float(self.n_landmarks or _TYPICAL_LANDMARKS), n)
        kept = min(target_landmarks(self.n_components), typical)
        return FitCost(
            solver=solver,
            operations=3 * K * n * typical**2 + 4 * K * n * kept * columns / 2 / _SKINNY / 3,
            memory=self._landmark_memory(self.n_landmarks or MOST_LANDMARKS),
        )

    def _landmark_memory(self, rank: int) -> int:
        """Return bytes that "nystroem" takes with so many landmarks per party."""
        n, size = self.n_anchors, sample_size(self.n_anchors, self.n_landmarks)
        rank, width = min(rank, n), np.dtype(feature_dtype(self.alpha)).itemsize
        features = width * n * min(rank, target_landmarks(self.n_components))
        chosen = (8 + width) * size * rank + 3 * 8 * rank**2
        eigenvectors = 8 * n * (2 * basis_capacity(n, self.n_components) + _BESIDE * self.n_components)
        return self.n_parties * (features + chosen) + eigenvectors

    def most_landmarks(self, limit: float) -> int:
        """Return the most landmarks per party with which "nystroem" stays within its memory."""
        free = replace(self, n_landmarks=None)
        return bisect_right(range(1, MOST_LANDMARKS + 1), limit, key=free._landmark_memory)

    def choose(self, solver: str, memory_limit: float | None, beside: Array | None = None) -> FitCost:
        """Return the solver for `KTI`'s parameter of that name, and its cost; `beside` is an array computed with."""
        dense, memory = array_library(beside) is None, device_memory(beside) or available_memory()
        limit = memory_limit if memory_limit is not None else _LARGE_SHARE * memory
        if solver == "nystroem":
            if self.has_penalty:
                raise ValueError("A penalty graph needs solver='exact'; solver='nystroem' solves without one.")
            candidates = ["nystroem"]
        elif self.has_penalty or (dense and self.n_anchors <= DENSE_UP_TO):
            candidates = ["dense"]
        else:
            candidates = ["streamed", "dense"] if dense else ["streamed"]
            if solver == "auto":
                many = self.n_parties * float(self.n_anchors) ** 3 / 3 > EXACT_OPERATIONS
                candidates = ["nystroem", *candidates] if many else [*candidates, "nystroem"]
        costs = [self.cost(name) for name in candidates]
        if "nystroem" in candidates and self.n_landmarks is None:
            costs.append(replace(self, n_landmarks=FEWEST_LANDMARKS).cost("nystroem"))
        for each in costs:
            if each.memory <= limit:
                return replace(each, limit=limit)
        least = min(costs, key=lambda each: each.memory)
        instead = "" if solver == "nystroem" or self.has_penalty else "solver='nystroem', "
        raise NotEnoughMemoryError(
            f"KTI: {self.n_parties} parties with {self.n_anchors} anchor rows need {least.memory / 2**30:.2g} GiB with "
            f"solver={solver!r}, but {limit / 2**30:.2g} GiB may be used. Take fewer anchor rows, {instead}several "
            "machines (engine=), or raise memory_limit."
        )


def sample_size(n_anchors: int, n_landmarks: int | None) -> int:
    """Return anchor rows that landmarks are chosen among."""
    return min(n_anchors, max(_SAMPLE, 4 * (n_landmarks or 0)))


def target_landmarks(n_components: int) -> int:
    """Return landmarks per party, at most, that the target is found with; the parties' functions may have more."""
    return max(_TARGET_LANDMARKS, 4 * n_components)


def available_memory() -> int:
    """Return bytes that this machine, or the container this runs in, can give without swapping."""
    limits = []
    report = Path("/proc/meminfo")
    if report.exists():
        for line in report.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024 * int(line.split()[1]))
    most, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if most.exists() and used.exists() and (limit := most.read_text(encoding="ascii").strip()) != "max":
        limits.append(max(0, int(limit) - int(used.read_text(encoding="ascii"))))
    if not limits and hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=2**33)


@cache
def _rate() -> float:
    """Return operations a second of a float64 matrix product, measured once."""
    A = np.ones((_PROBE, _PROBE))
    A @ A
    started = time.perf_counter()
    A @ A
    return 2.0 * _PROBE**3 / (time.perf_counter() - started)


class Engine:
    """Holds one state per party and computes with all of them: here in this process, `n_jobs` at a time.

    A subclass may keep states elsewhere; what moves are the arrays given and returned.  Functions are module-level, and
    results do not depend on where or in which order parties are worked on.

    Parameters
    ----------
    n_jobs : int, default=None
    """

    memory: float | None = None
    """Bytes that a fit may take where states are; None for what this process can have."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Make one state per party, ``function(*arguments[k])``; return what stands for them."""
        return list(self.each(function, arguments))

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Make new states ``function(state, *shared)`` of the old ones."""
        return list(self.each(function, [(state, *shared) for state in states]))

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        """Return the sum of ``function(state, *shared)`` over parties."""
        parts = self.each(function, [(state, *shared) for state in states])
        total: FloatArray = next(parts)
        for part in parts:
            total += part
        return total

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Return ``function(state, *shared)`` for each party, brought here."""
        return self.update(function, states, *shared)

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(*arguments[k])`` for each party in order, without keeping the results."""
        if effective_n_jobs(self.n_jobs) == 1:
            for each in arguments:
                yield function(*each)
            return
        # Threads suffice, since LAPACK releases the interpreter; one BLAS thread each keeps them off one another.
        with threadpool_limits(limits=1, user_api="blas"):
            parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
            yield from parallel(delayed(function)(*each) for each in arguments)
