"""A run that goes on where it was: the experiments' file of results, and tasks that are not in it yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from datacollab.paper.experiments import ResultStore
from datacollab.paper.experiments._provenance import source_state, versions
from datacollab.paper.experiments._store import Outcome

from .settings import Preset, Setting

Measure = Callable[[Setting, int], tuple[Mapping[str, float], Mapping[str, float]]]
"""Scores and seconds of one trial."""

FILE = "results.sqlite"


@dataclass(frozen=True)
class Task:
    """One part of one trial."""

    part: str
    setting: Setting
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """Where the results keep it."""
        return self.setting.cell(self.part), self.seed

    @property
    def label(self) -> str:
        """In words."""
        return f"{self.part}: {self.setting.label}, seed {self.seed}"


@dataclass(frozen=True)
class Found:
    """What one part of one trial gave."""

    scores: Mapping[str, float]
    seconds: Mapping[str, float]
    error: str | None
    source: str


def run(
    tasks: Sequence[Task],
    measures: Mapping[str, Measure],
    path: Path,
    fingerprints: Mapping[str, str],
    *,
    n_jobs: int = 1,
    retry_failed: bool = False,
    told: Callable[[str], None] = print,
) -> int:
    """Compute what the file does not hold yet; the number of failures.

    Each task is written when it ends, so that a run may be stopped at any time.
    """
    with ResultStore(path) as store:
        store.check_data(fingerprints)
        if retry_failed:
            store.forget_failures({task.key[0] for task in tasks})
        done, source = store.done(), source_state()
        waiting = [task for task in tasks if task.key not in done]
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        started, failed = time.monotonic(), 0
        jobs = (delayed(_attempt)(task, measures[task.part]) for task in waiting)
        for number, (task, outcome) in enumerate(parallel(jobs), start=1):
            store.save(task.seed, [outcome], versions(), source)
            failed += outcome.error is not None
            spent = time.monotonic() - started
            left = spent / number * (len(waiting) - number) / 60
            result = outcome.error or f"{sum(outcome.seconds.values()):.0f} s"
            told(f"{number}/{len(waiting)} {task.label}: {result} ({left:.0f} min left)")
    return failed


def _attempt(task: Task, measure: Measure) -> tuple[Task, Outcome]:
    cell = task.key[0]
    with threadpool_limits(1):
        try:
            scores, seconds = measure(task.setting, task.seed)
        except (OSError, MemoryError, ImportError):
            # The machine or the installation, not the method: it ends the run.
            raise
        except Exception as error:
            return task, Outcome(cell=cell, scores={}, seconds={}, error=f"{type(error).__name__}: {error}")
    return task, Outcome(cell=cell, scores=dict(scores), seconds=dict(seconds))


def tasks_of(preset: Preset, parts: Sequence[str], wanted: Callable[[str, Setting, int], bool]) -> list[Task]:
    """All tasks, one seed after the other: a run that is stopped early has something of every setting."""
    return [
        Task(part, setting, seed)
        for seed in preset.seeds
        for part in parts
        for setting in preset.settings
        if wanted(part, setting, seed)
    ]


def read(path: Path, tasks: Sequence[Task]) -> Iterator[tuple[Task, Found]]:
    """Results of those tasks that have one."""
    with ResultStore(path) as store:
        results = store.results()
    for task in tasks:
        if task.key in results:
            found = results[task.key]
            yield task, Found(found.scores, found.seconds, found.error, found.source)
