"""KTI on the workers of a Dask cluster; loaded only where a Dask client is given."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeVar
from weakref import WeakSet

import distributed
import numpy as np

from .._validation import FloatArray
from ..errors import ClusterError
from ._engine import Engine

logger = logging.getLogger(__name__)

_SHARE_OF_WORKERS = 0.8
"""Part of the workers' memory that a fit may plan to take; Dask begins to write to disk from 0.6 of one worker's."""
_ATTEMPTS = 6
"""How often a step is tried before the cluster is called unusable; each failure means that another worker was lost."""
_PAUSE = 0.1
"""Seconds before the second attempt, doubled each time: news of a loss may take a moment to arrive."""
_PATIENCE = 15.0
"""Seconds that a lost worker is given to come back before the others take over its parties."""
_SMALL = 2**16
"""Bytes up to which what all parties are given travels with the task."""
_FAN = 8
"""Sums of groups added up at a time, on workers while there are more."""

T = TypeVar("T")


class _WorkerLostError(Exception):
    """A step came to nothing because a worker was lost; it may be repeated."""


_TIMEOUTS = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)
_UNREACHABLE = (KeyError, ValueError, OSError, *_TIMEOUTS)
"""Errors of `scatter` for a worker that the scheduler does not know any more, or does not reach."""
_LOSSES = (
    _WorkerLostError,
    distributed.KilledWorker,
    concurrent.futures.CancelledError,
    asyncio.CancelledError,
    OSError,
)
"""Errors of a step once a worker, or the way to it, was lost; no step reads or writes files."""


class _Carried:
    """Anything on its way to or from a worker, or kept there.

    Dask logs the arguments of a task that fails; this has no representation that would show an entry.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        # By which Dask plans where to compute and when a worker's memory is full.
        return object.__sizeof__(self) + _count_bytes(self.value)


@dataclass(eq=False)
class _Group:
    """The states of some parties on one worker, and the function and arguments that make them again."""

    index: int
    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]
    updates: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()
    future: Any = field(default=None, repr=False)

    @property
    def is_lost(self) -> bool:
        return self.future is not None and self.future.status not in ("pending", "finished")


class DaskEngine(Engine):
    """Holds the states of all parties on the workers of a Dask cluster.

    The parties are split into groups, one for each worker.  Dask makes the result of a task again where a worker dies,
    but not the data sent to that worker, and a group's matrices depend on both.  So each group keeps its function and
    arguments here, and a step that a lost worker stopped is repeated.
    """

    def __init__(self, client: Any) -> None:
        super().__init__()
        if client.asynchronous:
            raise ClusterError(
                "Dask: engine= is an asynchronous client, and a fit waits for its results. Give one that was made with "
                "asynchronous=False."
            )
        self._client = client
        # One entry for each group; several point to one worker after another was lost.
        # Found once: a fit keeps its groups where they are.
        self._homes = self._find_workers()
        self._check_versions()
        self._futures: WeakSet[Any] = WeakSet()

    @property
    def memory(self) -> float:  # type: ignore[override]
        """Bytes that the workers may take together; infinite where one of them has no limit."""
        limits: list[int] = self._client.run_on_scheduler(_read_memory_limits)
        # Dask writes 0 for no limit.
        return _SHARE_OF_WORKERS * sum(limits) if all(limits) else np.inf

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        parts = np.array_split(np.arange(len(arguments)), min(len(self._homes), len(arguments)))
        groups = [_Group(index, function, [arguments[k] for k in part]) for index, part in enumerate(parts)]
        self._repeat(groups, lambda: None)
        return _stand_for(groups)

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        groups = list(dict.fromkeys(states))

        def attempt() -> list[Any]:
            futures = self._submit_to(groups, _update, function, shared)
            self._settle(futures)
            return futures

        futures = self._repeat(groups, attempt)
        return _stand_for(
            [
                _Group(group.index, group.function, group.arguments, (*group.updates, (function, shared)), future)
                for group, future in zip(groups, futures, strict=True)
            ]
        )

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        groups = list(dict.fromkeys(states))

        def attempt() -> list[FloatArray]:
            parts = self._submit_to(groups, _total, function, shared)
            # In a tree, so that neither one worker nor this process receives all groups' sums at once.
            while len(parts) > _FAN:
                parts = [self._submit(_add, parts[i : i + _FAN]) for i in range(0, len(parts), _FAN)]
            return self._bring(parts)

        return _add(self._repeat(groups, attempt))

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        groups = list(dict.fromkeys(states))
        parts = self._repeat(groups, lambda: self._bring(self._submit_to(groups, _gather, function, shared)))
        return [result for part in parts for result in part.value]

    def close(self) -> None:
        """Release everything on the workers, even while a traceback still refers to it here."""
        for future in list(self._futures):
            future.release()

    def _submit_to(
        self, groups: list[_Group], task: Callable[..., Any], function: Callable[..., Any], shared: tuple[Any, ...]
    ) -> list[Any]:
        """Return futures of ``task(states, function, shared)`` for each group, where its states are."""
        carried: Any = _Carried(shared)
        if _count_bytes(shared) > _SMALL:
            # To one of them, from which the others fetch it: a broadcast would need all of them to live meanwhile.
            carried = self._scatter(carried, min(map(self._home_of, groups)))
        return [self._submit(task, group.future, function, carried, home=self._home_of(group)) for group in groups]

    def _submit(self, task: Callable[..., Any], *arguments: Any, home: str | None = None) -> Any:
        place: dict[str, Any] = {}
        if home is not None:
            # Elsewhere only where the worker is retired and Dask has moved its data.
            place = {"workers": [home], "allow_other_workers": True}
        # Not pure: equal calls by two fits must not share one result.
        future = self._client.submit(task, *arguments, pure=False, **place)
        self._futures.add(future)
        return future

    def _home_of(self, group: _Group) -> str:
        return self._homes[group.index]

    def _repeat(self, groups: list[_Group], attempt: Callable[[], T]) -> T:
        """Return the result of ``attempt`` with all groups in place, however many workers are lost meanwhile."""
        for count in range(_ATTEMPTS):
            try:
                # Before the first attempt too: a worker may have died since the last step.
                if count or any(group.is_lost for group in groups):
                    self._replace_lost_workers()
                self._make(groups)
                return attempt()
            except _LOSSES as error:
                logger.warning("Dask: a worker was lost (%s); what it held is made again", type(error).__name__)
                time.sleep(_PAUSE * 2**count)
        raise ClusterError(
            f"Dask: workers were lost {_ATTEMPTS} times in one step of the fit. Their logs say why; where they ran out "
            "of memory, use more or larger workers, or solver='nystroem' with fewer landmarks."
        )

    def _make(self, groups: list[_Group]) -> None:
        """Make the states of groups that have none, or lost them."""
        missing = [group for group in groups if group.future is None or group.is_lost]
        for group in missing:
            home = self._home_of(group)
            arguments = self._scatter(_Carried((group.arguments, group.updates)), home)
            group.future = self._submit(_make, arguments, group.function, home=home)
        self._settle([group.future for group in missing])

    def _replace_lost_workers(self) -> None:
        self._check_connection()
        try:
            self._client.wait_for_workers(len(set(self._homes)), timeout=_PATIENCE)
        except AttributeError:
            # The scheduler went just now: distributed then asks one that is None.
            if self._client.scheduler is not None:
                raise
            raise self._make_connection_error() from None
        except _TIMEOUTS:
            logger.warning("Dask: no worker took the lost one's place; the others take over its parties")
        workers = self._find_workers()
        for index, home in enumerate(self._homes):
            if home not in workers:
                # The worker with the fewest groups.
                self._homes[index] = min(workers, key=self._homes.count)

    def _find_workers(self) -> list[str]:
        """Return addresses of the workers there are."""
        self._check_connection()
        workers = sorted(self._client.nthreads())
        if not workers:
            raise ClusterError(
                f"Dask: the cluster of {self._client!r} has no workers. Start some, for instance with "
                "cluster.scale(4), wait for them with client.wait_for_workers(4), and fit again."
            )
        return workers

    def _check_connection(self) -> None:
        if self._client.status in ("closing", "closed"):
            raise self._make_connection_error()

    def _make_connection_error(self) -> ClusterError:
        return ClusterError(
            f"Dask: {self._client!r} is closed, or has lost its scheduler. See whether the scheduler runs, make "
            "another client, and fit again."
        )

    def _check_versions(self) -> None:
        """Refuse machines without this package, or with another version: tasks are functions of it, by their names."""
        versions = self._client.get_versions(packages=["datacollab"])
        own = versions["client"]["packages"]["datacollab"]
        for name, machine in {"the scheduler": versions["scheduler"], **versions["workers"]}.items():
            version = machine["packages"]["datacollab"]
            if version != own:
                there = f"datacollab {version}" if version else "no datacollab"
                raise ClusterError(
                    f"Dask: {name} has {there}, and this process has {own}. Install this version on the scheduler and "
                    "on all workers, and start them again."
                )

    def _scatter(self, carried: _Carried, home: str) -> Any:
        try:
            future = self._client.scatter(carried, workers=[home], hash=False)
        except _UNREACHABLE as error:
            raise _WorkerLostError from error
        self._futures.add(future)
        return future

    def _settle(self, futures: list[Any]) -> None:
        """Wait, and raise the error of a step that failed."""
        distributed.wait(futures)
        for future in futures:
            if future.status == "error":
                raise future.exception().with_traceback(future.traceback())
            if future.status != "finished":
                raise _WorkerLostError

    def _bring(self, futures: list[Any]) -> list[Any]:
        results: list[Any] = self._client.gather(futures)
        return results


def _read_memory_limits(dask_scheduler: Any) -> list[int]:
    return [worker.memory_limit for worker in dask_scheduler.workers.values()]


def _stand_for(groups: list[_Group]) -> list[Any]:
    """Return one entry for each party: the group that it is in."""
    return [group for group in groups for _ in group.arguments]


def _count_bytes(value: Any) -> int:
    """Return memory that arrays, and containers of them, take."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(_count_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_count_bytes, value))
    if is_dataclass(value):
        return sum(map(_count_bytes, vars(value).values()))
    return sys.getsizeof(value)


# The functions from here on run on the workers.


def _engine_here() -> Engine:
    """Return the engine of one worker: as many parties at a time as it has threads."""
    return Engine(distributed.get_worker().state.nthreads)


def _make(carried: _Carried, function: Callable[..., Any]) -> _Carried:
    arguments, updates = carried.value
    engine = _engine_here()
    states = engine.place(function, arguments)
    for update, shared in updates:
        states = engine.update(update, states, *shared)
    return _Carried(states)


def _update(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_engine_here().update(function, states.value, *shared.value))


def _total(states: _Carried, function: Callable[..., FloatArray], shared: _Carried) -> FloatArray:
    return _engine_here().total(function, states.value, *shared.value)


def _gather(states: _Carried, function: Callable[..., Any], shared: _Carried) -> _Carried:
    return _Carried(_engine_here().gather(function, states.value, *shared.value))


def _add(parts: list[FloatArray]) -> FloatArray:
    """Return the sum in the order given; the parts may be read-only."""
    total = parts[0]
    for part in parts[1:]:
        # Not in place, since Dask may hand out the memory that it keeps.
        total = total + part
    return total
