"""KTI on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Self, TypeVar
from weakref import WeakSet

import distributed
import numpy as np
from numpy.typing import NDArray

from datacollab.analyst import Engine
from datacollab.errors import DataCollabError

logger = logging.getLogger(__name__)


class ClusterError(DataCollabError, RuntimeError):
    """There is no Dask cluster to be used, or it loses workers faster than they can be replaced."""


_SHARE_OF_WORKERS = 0.8
"""Part of the workers' memory that a fit may plan to take; Dask begins to write to disk from 0.6 of one worker's."""
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


class DaskEngine(Engine):
    """Holds the states of all parties on the workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client or None, default=None
        None takes the current one.
    """

    def __init__(self, client: Any = None) -> None:
        super().__init__()
        self._client = _checked(client)
        # One entry for each group; several point to one worker after another was lost.
        self._homes = self._workers()
        self._futures: WeakSet[Any] = WeakSet()
        self.bytes_moved = 0

    @property
    def memory(self) -> float:  # type: ignore[override]
        """Bytes that the workers may take together."""
        return _SHARE_OF_WORKERS * cluster_memory(self._client)

    def __sklearn_clone__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        parts = np.array_split(np.arange(len(arguments)), min(len(self._homes), len(arguments)))
        groups = [_Group(index, function, [arguments[k] for k in part]) for index, part in enumerate(parts)]
        self._repeated(groups, lambda: None)
        return _standing_for(groups)

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
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

    def total(
        self, function: Callable[..., NDArray[np.float64]], states: list[Any], *shared: Any
    ) -> NDArray[np.float64]:
        groups = list(dict.fromkeys(states))

        def attempt() -> list[NDArray[np.float64]]:
            parts = self._submitted(_summed, groups, function, shared)
            while len(parts) > _FAN:
                parts = [self._submit(_added, parts[i : i + _FAN]) for i in range(0, len(parts), _FAN)]
            return self._results(parts)

        sums = self._repeated(groups, attempt)
        # Each group's sum has travelled, be it to another worker.
        self.bytes_moved += len(groups) * _nbytes(sums[0])
        return _added(sums)

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
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
        distributed.wait(futures)
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
            distributed.KilledWorker,
            concurrent.futures.CancelledError,
            asyncio.CancelledError,
            distributed.comm.CommClosedError,
        )


def cluster_memory(client: Any) -> float:
    """Return bytes that all workers together may use; infinite where one of them has no limit."""
    limits: list[int] = client.run_on_scheduler(_memory_limits)
    return float(sum(limits)) if all(limits) else np.inf


def _memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


def _checked(client: Any) -> Any:
    """Return the client, or the current one; it has to be synchronous."""
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            raise ClusterError(
                "DaskEngine() takes the current Dask client, and there is none. Make one first: "
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


def _here() -> Engine:
    """Return the engine of one worker: as many parties at a time as it has threads."""
    worker = distributed.get_worker()
    return Engine(worker.state.nthreads)


def _made(carried: _Carried, function: Callable[..., Any]) -> _Carried:
    arguments, updates = carried.value
    engine = _here()
    states = engine.place(function, arguments)
    for update, shared in updates:
        states = engine.update(update, states, *shared)
    return _Carried(states)


def _updated(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_here().update(function, states.value, *shared.value))


def _summed(states: _Carried, function: Callable[..., NDArray[np.float64]], shared: _Carried) -> NDArray[np.float64]:
    return _here().total(function, states.value, *shared.value)


def _gathered(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_here().gather(function, states.value, *shared.value))


def _added(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return sum in the order given; the parts may be read-only."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
