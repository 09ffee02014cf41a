"""What a fit of KTI costs (tab:complexity), and where it is computed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from .._validation import Array, FloatArray, array_library, require
from ..errors import ClusterError, NotEnoughMemoryError
from ..linalg import basis_capacity, device_memory, feature_dtype

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


def fit_cost(
    solver: str,
    n_anchors: int,
    n_parties: int,
    n_components: int,
    *,
    alpha: float = 1.0,
    n_landmarks: int | None = None,
    has_penalty: bool = False,
) -> FitCost:
    """Estimate what a solver takes."""
    n, K = float(n_anchors), float(n_parties)
    columns = _COLUMNS * max(1.0, n_components / 16)
    if solver == "dense":
        return FitCost(
            solver=solver,
            operations=K * n**3 * 4 / 3 + (14 if has_penalty else 4) * n**3,
            memory=int((3 if has_penalty else 2) * 8 * n**2),
        )
    if solver == "streamed":
        factors = K * n**3 / 3 / 2
        solves = 2 * K * n**2 * columns / 2 / _SKINNY
        return FitCost(
            solver=solver, operations=factors + solves, memory=int(2.1 * K * n**2 + 4 * n**2 + 16 * n * columns)
        )
    typical = min(float(n_landmarks or _TYPICAL_LANDMARKS), n)
    kept = min(target_landmarks(n_components), typical)
    return FitCost(
        solver=solver,
        operations=3 * K * n * typical**2 + 4 * K * n * kept * columns / 2 / _SKINNY / 3,
        memory=_landmark_memory(
            n_anchors,
            n_parties,
            n_components,
            alpha,
            rank=n_landmarks or MOST_LANDMARKS,
            size=sample_size(n_anchors, n_landmarks),
        ),
    )


def _landmark_memory(n_anchors: int, n_parties: int, n_components: int, alpha: float, *, rank: int, size: int) -> int:
    """Return bytes that "nystroem" takes with so many landmarks per party, chosen among so many anchor rows."""
    rank, width = min(rank, n_anchors), np.dtype(feature_dtype(alpha)).itemsize
    features = width * n_anchors * min(rank, target_landmarks(n_components))
    chosen = (8 + width) * size * rank + 3 * 8 * rank**2
    eigenvectors = 8 * n_anchors * (2 * basis_capacity(n_anchors, n_components) + _BESIDE * n_components)
    return n_parties * (features + chosen) + eigenvectors


def sample_size(n_anchors: int, n_landmarks: int | None) -> int:
    """Return anchor rows that landmarks are chosen among."""
    return min(n_anchors, max(_SAMPLE, 4 * (n_landmarks or 0)))


def target_landmarks(n_components: int) -> int:
    """Return landmarks per party, at most, that the target is found with; the parties' functions may have more."""
    return max(_TARGET_LANDMARKS, 4 * n_components)


def most_landmarks(cost: FitCost, n_anchors: int, n_parties: int, n_components: int, alpha: float) -> int:
    """Return the most landmarks per party with which "nystroem" stays within its memory."""
    return bisect_right(
        range(1, MOST_LANDMARKS + 1),
        cost.limit,
        key=lambda rank: _landmark_memory(
            n_anchors, n_parties, n_components, alpha, rank=rank, size=sample_size(n_anchors, None)
        ),
    )


def choose_solver(
    solver: str,
    n_anchors: int,
    n_parties: int,
    n_components: int,
    *,
    alpha: float,
    n_landmarks: int | None,
    has_penalty: bool,
    memory_limit: float | None,
    beside: Array | None = None,
) -> FitCost:
    """Return solver for `KTI`'s parameter of that name, and its cost."""
    dense = array_library(beside) is None
    limit = memory_limit if memory_limit is not None else _LARGE_SHARE * (device_memory(beside) or available_memory())

    def cost(name: str, rank: int | None = n_landmarks) -> FitCost:
        return fit_cost(
            name, n_anchors, n_parties, n_components, alpha=alpha, n_landmarks=rank, has_penalty=has_penalty
        )

    if solver == "nystroem":
        if has_penalty:
            raise ValueError("A penalty graph needs solver='exact'; solver='nystroem' solves without one.")
        candidates = ["nystroem"]
    elif has_penalty or (dense and n_anchors <= DENSE_UP_TO):
        candidates = ["dense"]
    else:
        candidates = ["streamed", "dense"] if dense else ["streamed"]
        if solver == "auto":
            many = n_parties * float(n_anchors) ** 3 / 3 > EXACT_OPERATIONS
            candidates = ["nystroem", *candidates] if many else [*candidates, "nystroem"]
    costs = [cost(name) for name in candidates]
    if "nystroem" in candidates and n_landmarks is None:
        costs.append(cost("nystroem", FEWEST_LANDMARKS))
    for each in costs:
        if each.memory <= limit:
            return replace(each, limit=limit)
    least = min(costs, key=lambda each: each.memory)
    instead = "" if solver == "nystroem" or has_penalty else "solver='nystroem', "
    raise NotEnoughMemoryError(
        f"KTI: {n_parties} parties with {n_anchors} anchor rows need {least.memory / 2**30:.2g} GiB with "
        f"solver={solver!r}, but {limit / 2**30:.2g} GiB may be used. Take fewer anchor rows, {instead}several "
        "machines (engine=), or raise memory_limit."
    )


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


logger = logging.getLogger(__name__)


class Engine(Protocol):
    """Holds one state per party and computes with all of them.

    States stay where they were made; what moves are the arrays given and returned.  Functions are module-level, and
    results do not depend on where or in which order parties are worked on.
    """

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Make one state per party, ``function(*arguments[k])``; returns what stands for them."""

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Make new states ``function(state, *shared)`` of the old ones."""

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        """Return sum of ``function(state, *shared)`` over parties."""

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Return ``function(state, *shared)`` for each party, brought here."""


class LocalEngine:
    """All parties in this process, `n_jobs` at a time."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Engine`."""
        return list(self.each(function, arguments))

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """See `Engine`."""
        return list(self.each(function, [(state, *shared) for state in states]))

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        """See `Engine`."""
        parts = self.each(function, [(state, *shared) for state in states])
        total: FloatArray = next(parts)
        for part in parts:
            total += part
        return total

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """See `Engine`."""
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


_SHARE_OF_WORKERS = 0.8
"""Part of the workers' memory that a fit may plan to take; Dask begins to write to disk from 0.6 of one worker's."""


@contextmanager
def engine_for(engine: Any, n_jobs: int | None) -> Iterator[Engine]:
    """Yield the engine that a parameter stands for: a Dask client, "dask" for the current one, or None."""
    if engine is None:
        yield LocalEngine(n_jobs)
        return
    dask = DaskEngine(engine)
    try:
        yield dask
    finally:
        dask.close()


def memory_of(engine: Any) -> float | None:
    """Return bytes that a cluster's workers may take together; None if a fit runs in this process."""
    if engine is None:
        return None
    return _SHARE_OF_WORKERS * cluster_memory(engine)


_ATTEMPTS = 6
"""How often a call is tried before the cluster is called unusable; each failure means that another worker was lost."""
_PAUSE = 0.1
"""Seconds before the second attempt, doubled each time: news of a loss may take a moment to arrive."""
_PATIENCE = 15.0
"""Seconds that a lost worker is given to come back before the others take over its parties."""
_SMALL = 2**16
"""Bytes up to which what all parties are given travels with the task."""
_FAN = 8
"""Sums of groups added up at a time, on workers while there are more."""

_TIMEOUTS = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)
_UNREACHABLE = (KeyError, ValueError, OSError, *_TIMEOUTS)
"""What the scheduler raises for a worker that it does not know any more, or does not reach."""

T = TypeVar("T")


class _WorkerLostError(Exception):
    """A call came to nothing because a worker was lost; it may be repeated."""


class _Carried:
    """Anything on its way to or from a worker, or kept there.

    Dask logs the arguments of a task that fails; this has no representation that would show an entry.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        # By which Dask plans where to compute and when a worker's memory is full.
        return object.__sizeof__(self) + _nbytes(self.value)


@dataclass(eq=False)
class _Group:
    """The states of some parties on one worker, and what makes them again."""

    index: int
    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]
    updates: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()
    future: Any = field(default=None, repr=False)

    @property
    def lost(self) -> bool:
        return self.future is None or self.future.status not in ("pending", "finished")


class DaskEngine:
    """Holds the states of all parties on the workers of a Dask cluster; see `Engine`."""

    def __init__(self, engine: Any) -> None:
        self._distributed = require("distributed", "dask")
        self._client = _client(engine)
        # One entry for each group; several point to one worker after another was lost.
        self._homes = self._workers()
        self._futures: WeakSet[Any] = WeakSet()
        self.bytes_moved = 0

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Engine`."""
        parts = np.array_split(np.arange(len(arguments)), min(len(self._homes), len(arguments)))
        groups = [_Group(index, function, [arguments[k] for k in part]) for index, part in enumerate(parts)]
        self._repeated(groups, lambda: None)
        return _standing_for(groups)

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """See `Engine`."""
        groups = list(dict.fromkeys(states))

        def attempt() -> list[Any]:
            futures = self._submitted(_updated, groups, function, shared)
            self._settle(futures)
            return futures

        futures = self._repeated(groups, attempt)
        return _standing_for(
            [
                _Group(group.index, group.function, group.arguments, (*group.updates, (function, shared)), future)
                for group, future in zip(groups, futures, strict=True)
            ]
        )

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        """See `Engine`."""
        groups = list(dict.fromkeys(states))

        def attempt() -> list[FloatArray]:
            parts = self._submitted(_summed, groups, function, shared)
            while len(parts) > _FAN:
                parts = [self._submit(_added, parts[i : i + _FAN]) for i in range(0, len(parts), _FAN)]
            return self._results(parts)

        sums = self._repeated(groups, attempt)
        # Each group's sum has travelled, be it to another worker.
        self.bytes_moved += len(groups) * _nbytes(sums[0])
        return _added(sums)

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """See `Engine`."""
        groups = list(dict.fromkeys(states))
        parts = self._repeated(groups, lambda: self._results(self._submitted(_gathered, groups, function, shared)))
        self.bytes_moved += sum(_nbytes(part.value) for part in parts)
        return [result for part in parts for result in part.value]

    def close(self) -> None:
        """Release everything on the workers, even while a traceback still refers to it here."""
        for future in list(self._futures):
            future.release()

    def _submitted(
        self, task: Callable[..., Any], groups: list[_Group], function: Callable[..., Any], shared: tuple[Any, ...]
    ) -> list[Any]:
        """Return futures of ``task(states, function, shared)`` for each group, where its states are."""
        carried: Any = _Carried(shared)
        homes = sorted(set(map(self._home, groups)))
        self.bytes_moved += len(homes) * _nbytes(shared)
        if _nbytes(shared) > _SMALL:
            # To one of them, from which the others fetch it: Dask's broadcast hangs where a worker dies meanwhile.
            carried = self._scattered(carried, homes[0])
        return [self._submit(task, group.future, function, carried, home=self._home(group)) for group in groups]

    def _submit(self, task: Callable[..., Any], *arguments: Any, home: str | None = None) -> Any:
        # Elsewhere only where the worker is retired and Dask has moved its data.
        place = {} if home is None else {"workers": [home], "allow_other_workers": True}
        future = self._client.submit(task, *arguments, pure=False, **place)
        self._futures.add(future)
        return future

    def _home(self, group: _Group) -> str:
        return self._homes[group.index]

    def _repeated(self, groups: list[_Group], attempt: Callable[[], T]) -> T:
        """Return what ``attempt`` returns, with all groups in place, however many workers are lost meanwhile."""
        for count in range(_ATTEMPTS):
            try:
                if count or any(group.future is not None and group.lost for group in groups):
                    self._replace_lost_workers()
                self._make_lost(groups)
                return attempt()
            except self._losses as error:
                logger.warning("Dask: a worker was lost (%s); what it held is made again", type(error).__name__)
                time.sleep(_PAUSE * 2**count)
        raise ClusterError(
            f"Dask: workers were lost {_ATTEMPTS} times in one step of the fit. Their logs say why; where they ran out "
            "of memory, use more or larger workers, or solver='nystroem' with fewer landmarks."
        )

    def _make_lost(self, groups: list[_Group]) -> None:
        lost = [group for group in groups if group.lost]
        for group in lost:
            carried = _Carried((group.arguments, group.updates))
            self.bytes_moved += _nbytes(carried.value)
            arguments = self._scattered(carried, self._home(group))
            group.future = self._submit(_made, arguments, group.function, home=self._home(group))
        self._settle([group.future for group in lost])

    def _replace_lost_workers(self) -> None:
        try:
            self._client.wait_for_workers(len(set(self._homes)), timeout=_PATIENCE)
        except _TIMEOUTS:
            logger.warning("Dask: no worker took the lost one's place; the others take over its parties")
        workers = self._workers()
        for index, home in enumerate(self._homes):
            if home not in workers:
                self._homes[index] = min(workers, key=self._homes.count)

    def _workers(self) -> list[str]:
        """Return addresses of the workers there are."""
        workers = sorted(self._client.nthreads()) if self._client.status == "running" else []
        if not workers:
            raise ClusterError(
                f"Dask: the cluster of {self._client!r} has no workers. Start some, for instance with "
                "cluster.scale(4), and wait for them with client.wait_for_workers(4)."
            )
        return workers

    def _scattered(self, carried: _Carried, home: str) -> Any:
        try:
            future = self._client.scatter(carried, workers=[home], hash=False)
        except _UNREACHABLE as error:
            raise _WorkerLostError from error
        self._futures.add(future)
        return future

    def _settle(self, futures: list[Any]) -> None:
        """Wait, and raise what went wrong."""
        self._distributed.wait(futures)
        for future in futures:
            if future.status == "error":
                raise future.exception().with_traceback(future.traceback())
            if future.status != "finished":
                raise _WorkerLostError

    def _results(self, futures: list[Any]) -> list[Any]:
        results: list[Any] = self._client.gather(futures)
        return results

    @property
    def _losses(self) -> tuple[type[BaseException], ...]:
        """What tells that a worker was lost."""
        return (
            _WorkerLostError,
            self._distributed.KilledWorker,
            concurrent.futures.CancelledError,
            asyncio.CancelledError,
            self._distributed.comm.CommClosedError,
        )


def cluster_memory(engine: Any) -> float:
    """Return bytes that all workers together may use; infinite where one of them has no limit."""
    limits: list[int] = _client(engine).run_on_scheduler(_memory_limits)
    return float(sum(limits)) if all(limits) else np.inf


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


def _client(engine: Any) -> Any:
    """Return the Dask client that a parameter stands for."""
    distributed = require("distributed", "dask")
    if engine != "dask":
        client = engine
    else:
        try:
            client = distributed.default_client()
        except ValueError:
            raise ClusterError(
                "engine='dask' takes the current Dask client, and there is none. Make one first: "
                "client = dask.distributed.Client(<address of the scheduler>)."
            ) from None
    if client.asynchronous:
        raise ClusterError("Dask: an asynchronous client cannot be used in a fit; make one with asynchronous=False.")
    return client


def _standing_for(groups: list[_Group]) -> list[Any]:
    """Return one entry for each party: the group that it is in."""
    return [group for group in groups for _ in group.arguments]


def _nbytes(value: Any) -> int:
    """Return memory that arrays, and containers of them, take."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(_nbytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_nbytes, value))
    if is_dataclass(value):
        return sum(map(_nbytes, vars(value).values()))
    return sys.getsizeof(value)


def _here() -> LocalEngine:
    """Return the engine of one worker: as many parties at a time as it has threads."""
    worker = require("distributed", "dask").get_worker()
    return LocalEngine(worker.state.nthreads)


def _made(carried: _Carried, function: Callable[..., Any]) -> _Carried:
    arguments, updates = carried.value
    engine = _here()
    states = engine.place(function, arguments)
    for update, shared in updates:
        states = engine.update(update, states, *shared)
    return _Carried(states)


def _updated(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_here().update(function, states.value, *shared.value))


def _summed(states: _Carried, function: Callable[..., FloatArray], shared: _Carried) -> FloatArray:
    return _here().total(function, states.value, *shared.value)


def _gathered(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_here().gather(function, states.value, *shared.value))


def _added(parts: list[FloatArray]) -> FloatArray:
    """Return sum in the order given; the parts may be read-only."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
