"""Compute missing cells in parallel, and ready to be stopped at any time."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from datacollab._validation import FloatArray

from ._provenance import source_state, versions
from ._store import Result, ResultStore
from ._task import Outcome, Task

# Faults of the machine or the installation, and not of a method: they end the run.
ENVIRONMENT = (OSError, MemoryError, ImportError)

AnyTask = TypeVar("AnyTask", bound=Task)
# Scores, seconds, and images to look at.
Scored = tuple[Mapping[str, float], Mapping[str, float], FloatArray | None]


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Tasks of this run.
    share : float
        Share of the work that is done, estimated from the costs of the tasks; 1 at the end.
    failed : int
        Outcomes of this run that failed.
    """

    done: int
    total: int
    share: float
    failed: int
    label: str


def run_tasks(
    tasks: Sequence[Task],
    store: ResultStore,
    *,
    n_jobs: int | None = None,
    hours: float | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> int:
    """Compute the cells that the store does not hold yet, and return how many of their outcomes failed.

    The outcomes of a task are written when it ends, all or none, so a run that was stopped goes on where it was,
    whatever stopped it.  Every task has one BLAS thread, so that scores do not depend on how many run side by side.
    Times do, a little: for times that matter run one at a time.

    Parameters
    ----------
    n_jobs : int, optional
        Tasks at a time, as joblib takes it: ``joblib.parallel_config(backend="dask")`` spreads them over machines.
    hours : float, optional
        No task is handed out later than this after the start; those that were end.
    progress : callable, optional
        Called after each task.
    """
    done = store.done()
    waiting = [left for task in tasks if (left := task.without(done)).cells]
    if hours is None:
        # The longest first: the last processor is then not busy alone for long.
        waiting.sort(key=lambda task: -task.cost)
    source = source_state()
    total = sum(task.cost for task in waiting)
    spent = 0.0
    n_failed = 0
    last = time.monotonic() + (math.inf if hours is None else 3600 * hours)
    begun = takewhile(lambda _: time.monotonic() < last, waiting)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for number, (task, outcomes, computed_by) in enumerate(
        parallel(delayed(_measure_task)(task) for task in begun), start=1
    ):
        store.save(task.seed, outcomes, computed_by, source)
        spent += task.cost
        n_failed += sum(outcome.error is not None for outcome in outcomes)
        progress(Progress(number, len(waiting), spent / total, n_failed, task.label))
    return n_failed


def attempt(cell: str, compute: Callable[[], Scored]) -> Outcome:
    """Compute one cell; its failure is an outcome too, and the others go on.

    Raises
    ------
    OSError, MemoryError, ImportError
        When the machine or the installation is at fault.
    """
    try:
        scores, seconds, images = compute()
    except ENVIRONMENT:
        raise
    except Exception as error:
        return to_failure(cell, error)
    return Outcome(cell=cell, scores=dict(scores), seconds=dict(seconds), images=images)


def to_failure(cell: str, error: Exception) -> Outcome:
    """The outcome of a cell that could not be computed."""
    return Outcome(cell=cell, scores={}, seconds={}, error=f"{type(error).__name__}: {error}")


def read_outcomes(path: Path, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, dict[str, Result]]]:
    """Return tasks with results, and these by cell, in the order of the tasks and their cells."""
    with ResultStore(path) as store:
        results = store.results()
    for task in tasks:
        found = {key[0]: results[key] for key in task.keys if key in results}
        if found:
            yield task, found


def _measure_task(task: Task) -> tuple[Task, list[Outcome], dict[str, str]]:
    # One BLAS thread, so that scores do not depend on how many tasks run side by side.
    with threadpool_limits(1):
        return task, list(task.measure()), versions()
