"""Run experiments: what is not there yet, in parallel, and ready to be stopped at any time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from ...datasets import Dataset, load
from ...errors import MissingExtraError
from ._attack import AttackScore, Target, make_target, score_attack
from ._condition import Condition
from ._definition import AUDIT, Attacks, Experiment
from ._methods import import_object, method
from ._plan import Cell, Task, cells, make_tasks
from ._provenance import source_state, versions
from ._risks import score_risks
from ._store import Outcome, ResultStore
from ._trial import FittedParties, Trial, check_size, draw_rows, draw_trial, fit_parties, score_method

__all__ = ["Progress", "load_data", "run_experiments"]


_ENVIRONMENT = (OSError, MemoryError, MissingExtraError)
"""What is wrong with the machine or the installation, and not with a method: it ends the run."""


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Trials of this run.
    share : float
        Of the work, estimated from the sizes of the trials; 1 at the end.
    failed : int
        Rows of this run that failed.
    label : str
        The trial that ended last.
    """

    done: int
    total: int
    share: float
    failed: int
    label: str


def run_experiments(
    experiments: Sequence[Experiment],
    results: Path,
    *,
    data_dir: Path | None = None,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] = lambda state: None,
) -> int:
    """Compute what the results do not hold yet.

    Each trial is one unit of work: parties obfuscate once, and every method and attack is scored on that.  Its rows
    are written when it ends, all or none, so a run that was stopped goes on where it was, whatever stopped it.

    Parameters
    ----------
    experiments : sequence of Experiment
    results : Path
        The file of the results; see `ResultStore`.
    data_dir : Path, optional
        Directory that holds the data sets.
    n_jobs : int, optional
        Trials at a time, as joblib takes it: ``joblib.parallel_config(backend="dask")`` spreads them over machines.
        The scores do not depend on it.
    retry_failed : bool, default=False
        Whether rows of these experiments that failed before are computed again.
    progress : callable, optional
        Called after each trial.

    Returns
    -------
    int
        How many rows of this run failed.

    Raises
    ------
    DatasetError, MissingExtraError
        When a data set or an optional dependency is missing; what was computed until then is kept.
    ValueError
        Before any work: when a condition takes more rows than the data have, a class cannot be imported, two
        experiments have one name, or the results were computed from other data of the same name.

    Notes
    -----
    Every trial has one BLAS thread, so that scores do not depend on how many run side by side.  Times do, a little:
    trials share the machine's memory and caches.  For times that matter run one at a time.
    """
    fingerprints = _check(experiments, data_dir)
    with ResultStore(results) as store:
        store.check_data(fingerprints)
        store.keep_definitions(experiments)
        if retry_failed:
            store.forget_failures({cell.id for experiment in experiments for cell in cells(experiment)})
        tasks = make_tasks(experiments, store.done())
        source, total = source_state(), sum(task.cost for task in tasks)
        spent = failed = 0
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        for number, (task, outcomes, computed_by) in enumerate(
            parallel(delayed(_run_task)(task, data_dir) for task in tasks), start=1
        ):
            store.save(task.seed, outcomes, computed_by, source)
            spent += task.cost
            failed += sum(outcome.error is not None for outcome in outcomes)
            progress(Progress(number, len(tasks), spent / total, failed, _label(task)))
    return failed


def load_data(name: str, data_dir: Path | None = None) -> Dataset:
    """Load a data set by its name, or by the path of a function that makes one, such as "package.module:function".

    Raises
    ------
    ValueError
        When there is no such data set or function.
    TypeError
        When the function returns something else.
    """
    if ":" not in name:
        return load(name, data_dir=data_dir)
    made = import_object(name)()
    if not isinstance(made, Dataset):
        raise TypeError(f"{name!r} must return a datacollab.datasets.Dataset; it returned {type(made).__name__}.")
    return made


_load_once = lru_cache(maxsize=2)(load_data)


def _check(experiments: Sequence[Experiment], data_dir: Path | None) -> dict[str, str]:
    """Refuse what cannot work, before any work; the fingerprints of the data sets by name."""
    names = [experiment.name for experiment in experiments]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"Each experiment needs a name of its own, but {', '.join(twice)} came more often.")
    for experiment in experiments:
        for name, own in experiment.methods.items():
            if own:
                _check_own(experiment, name, own)
    conditions = {condition for experiment in experiments for condition in experiment.conditions}
    fingerprints = {}
    for dataset in sorted({condition.dataset for condition in conditions}):
        data = load_data(dataset, data_dir)
        fingerprints[dataset] = _fingerprint(data)
        for condition in conditions:
            if condition.dataset == dataset:
                check_size(condition, data)
    return fingerprints


def _check_own(experiment: Experiment, name: str, own: Mapping[str, Any]) -> None:
    """Make a method of one's own once, so that a mistake in it shows before hours of work."""
    try:
        method(name, experiment.conditions[0], own)
    except Exception as error:
        raise ValueError(
            f"Experiment {experiment.name!r}: method {name!r} cannot be made ({type(error).__name__}: {error})"
        ) from error


def _fingerprint(data: Dataset) -> str:
    """Tells tables of one name apart, such as an excerpt and the whole."""
    digest = hashlib.sha256(repr(data.X.shape).encode())
    digest.update(np.ascontiguousarray(data.y).tobytes())
    digest.update(data.X[:: max(1, len(data.X) // 1000)].tobytes())
    return digest.hexdigest()[:16]


def _run_task(task: Task, data_dir: Path | None) -> tuple[Task, list[Outcome], dict[str, str]]:
    with threadpool_limits(1):
        data = _load_once(task.condition.dataset, data_dir)
        try:
            fitted = _fit_once(_without_anchors(task.condition), data_dir, task.seed)
            trial = draw_trial(task.condition, data, task.seed, fitted)
            failure = None
        except _ENVIRONMENT:
            raise
        except Exception as error:
            # What a party does alone does not depend on what obfuscation or the anchor broke.
            trial, failure = draw_rows(task.condition, data, task.seed), error
        targets: dict[Attacks, Target] = {}
        outcomes = [
            _attempt(cell, trial, data, targets) if failure is None or cell.is_baseline else _failure(cell.id, failure)
            for cell in task.cells.values()
        ]
        return task, outcomes, versions()


@lru_cache(maxsize=2)
def _fit_once(condition: Condition, data_dir: Path | None, seed: int) -> FittedParties:
    """Trials that differ only in their anchors have the same parties."""
    return fit_parties(condition, _load_once(condition.dataset, data_dir), seed)


def _without_anchors(condition: Condition) -> Condition:
    return replace(condition, n_anchors=1, n_sources=None, n_neighbors=1)


def _attempt(cell: Cell, trial: Trial, data: Dataset, targets: dict[Attacks, Target]) -> Outcome:
    """A method of somebody's own may raise anything; its failure is a row, and the others go on."""
    try:
        if cell.attacks is None:
            return _score_method(cell, trial, data)
        if cell.name == AUDIT:
            return _outcome(cell, trial, score_risks(trial, data))
        if cell.attacks not in targets:
            targets[cell.attacks] = make_target(trial, cell.attacks, data, cell.condition)
        return _outcome(cell, trial, score_attack(trial, targets[cell.attacks], cell.name))
    except _ENVIRONMENT:
        raise
    except Exception as error:
        return _failure(cell.id, error)


def _score_method(cell: Cell, trial: Trial, data: Dataset) -> Outcome:
    score = score_method(trial, cell.name, cell.condition, data.task, cell.own)
    measure = "accuracy" if data.task == "classification" else "rmse"
    return Outcome(cell=cell.id, scores={measure: score.value}, seconds=score.steps)


def _outcome(cell: Cell, trial: Trial, found: AttackScore) -> Outcome:
    # One trial is enough to look at; and nobody's own rows get into a file that is passed on.
    images = found.images if trial.seed == 0 and ":" not in cell.condition.dataset else None
    return Outcome(cell=cell.id, scores=found.scores, seconds=found.steps, images=images)


def _failure(cell: str, error: Exception) -> Outcome:
    return Outcome(cell=cell, scores={}, seconds={}, error=f"{type(error).__name__}: {error}")


def _label(task: Task) -> str:
    condition = task.condition
    return f"{condition.dataset}, {condition.obfuscator}, K={condition.n_parties}, seed {task.seed}"
