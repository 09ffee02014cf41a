"""Run experiments: missing trials, in parallel, and ready to be stopped at any time."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from datacollab.datasets import Dataset, load

from ..harness import ENVIRONMENT, Key, Outcome, Progress, ResultStore, Scored, Task, attempt, run_tasks, to_failure
from ._attack import Target, make_target, score_attack, score_risks
from ._condition import Condition
from ._definition import AUDIT, Attacks, Cell, Experiment, cells, condition_of_draw
from ._methods import import_object, method
from ._trial import FittedParties, Trial, check_size, draw_rows, draw_trial, fit_parties, score_method


@dataclass(frozen=True, kw_only=True)
class TrialTask(Task):
    """One trial, and all that is scored on it.

    Parties obfuscate once, and every method and attack is scored on that.

    Attributes
    ----------
    condition : Condition
        Condition of the draw; hyperparameters are those of each cell.
    """

    condition: Condition
    cells: dict[str, Cell]
    data_dir: Path | None = None

    @property
    def label(self) -> str:
        """The trial in words."""
        condition = self.condition
        return f"{condition.dataset}, {condition.obfuscator}, K={condition.n_parties}, seed {self.seed}"

    @property
    def cost(self) -> int:
        """A rough measure of the work, to estimate the time left."""
        condition = self.condition
        rows = condition.n_per_party + condition.n_test + condition.n_anchors
        # Rows through every party's f_k, and once more for each method.
        work = condition.n_parties * rows * (4 + len(self.cells))
        if condition.obfuscator == "umap":
            return 4 * work
        return work

    @property
    def place(self) -> tuple[int, int, str, int]:
        """Sort key of a run: ten seeds of everything come before further seeds, and cheap parties before others.

        Trials that differ in nothing but their anchors come one after the other, as they share fitted parties.
        """
        condition = self.condition
        parties = condition.n_parties * (condition.n_per_party + condition.n_test)
        # UMAP takes about twenty times as long as PCA.
        effort = parties * (20 if condition.obfuscator == "umap" else 1)
        # Ten seeds of everything before the next ten.
        return self.seed // 10, effort, condition.dataset, self.seed

    def measure(self) -> list[Outcome]:
        """Draw the trial, and score every cell on it; "cpu" is each cell's equal part of the CPU seconds."""
        start = time.process_time()
        outcomes = self._outcomes()
        part = (time.process_time() - start) / len(outcomes)
        for place, each in enumerate(outcomes):
            if each.error is None:
                outcomes[place] = replace(each, seconds={**each.seconds, "cpu": part})
        return outcomes

    def _outcomes(self) -> list[Outcome]:
        data = _load_once(self.condition.dataset, self.data_dir)
        try:
            fitted = _fit_once(_without_anchors(self.condition), self.data_dir, self.seed)
            trial = draw_trial(self.condition, data, self.seed, fitted)
            failure = None
        except ENVIRONMENT:
            raise
        except Exception as error:
            # What a party does alone does not depend on what obfuscation or the anchor broke.
            trial = draw_rows(self.condition, data, self.seed)
            failure = error
        targets: dict[Attacks, Target] = {}
        outcomes = []
        for id, cell in self.cells.items():
            if failure is None or cell.is_baseline:
                outcomes.append(attempt(id, partial(_score, cell, trial, data, targets)))
            else:
                outcomes.append(to_failure(id, failure))
        return outcomes


def make_tasks(experiments: Sequence[Experiment], data_dir: Path | None = None) -> list[TrialTask]:
    """All trials in the order of a run, with everything that shares a trial in one task, and every cell once."""
    tasks: dict[tuple[int, Condition], TrialTask] = {}
    planned: set[Key] = set()
    drawn = cache(condition_of_draw)
    cells_of = [[(cell.id, cell, drawn(cell.condition)) for cell in cells(experiment)] for experiment in experiments]
    for seed in sorted({seed for experiment in experiments for seed in experiment.seeds}):
        for experiment, its_cells in zip(experiments, cells_of, strict=True):
            if seed not in experiment.seeds:
                continue
            for id, cell, draw in its_cells:
                row = (id, seed)
                # A cell of several experiments is computed once.
                if row in planned:
                    continue
                planned.add(row)
                task = tasks.setdefault((seed, draw), TrialTask(condition=draw, seed=seed, cells={}, data_dir=data_dir))
                task.cells[id] = cell
    return sorted(tasks.values(), key=lambda task: task.place)


def run_experiments(
    experiments: Sequence[Experiment],
    results: Path,
    *,
    data_dir: Path | None = None,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    hours: float | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> int:
    """Compute the trials that the results lack, as `run_tasks` does, and return how many of their rows failed.

    With `retry_failed`, rows of these experiments that failed before are computed again.

    Raises
    ------
    DatasetError, MissingExtraError
        When a data set or an optional dependency is missing; rows until then are kept.
    ValueError
        Before any work: when a condition takes more rows than the data have, a class cannot be imported, two
        experiments have one name, or the results were computed from other data of the same name.
    """
    fingerprints = _check(experiments, data_dir)
    with ResultStore(results) as store:
        # Rows of other data would be taken for these, so they are refused before any work.
        store.check_data(fingerprints)
        every = {cell.id: cell.definition() for experiment in experiments for cell in cells(experiment)}
        store.keep_definitions({experiment.name: experiment.to_json() for experiment in experiments}, every)
        if retry_failed:
            store.forget_failures(every)
        return run_tasks(make_tasks(experiments, data_dir), store, n_jobs=n_jobs, hours=hours, progress=progress)


def load_data(name: str, data_dir: Path | None = None) -> Dataset:
    """Load a data set by its name, or by the path of a function that makes one, such as "package.module:function".

    Raises
    ------
    ValueError
        When there is no such data set or function, or its data set lacks an entry.
    TypeError
        When the function returns something else.
    """
    if ":" not in name:
        return load(name, data_dir=data_dir)
    made = import_object(name)()
    if not isinstance(made, Dataset):
        raise TypeError(f"{name!r} must return a datacollab.datasets.Dataset; it returned {type(made).__name__}.")
    if lacking := [entry for entry in ("X", "y", "task", "name") if entry not in made]:
        raise ValueError(
            f"The data set of {name!r} lacks {lacking!r}; expected Dataset(X=..., y=..., task='classification' or "
            "'regression', name=...)."
        )
    return made


_load_once = lru_cache(maxsize=2)(load_data)


def _check(experiments: Sequence[Experiment], data_dir: Path | None) -> dict[str, str]:
    """Refuse experiments that cannot work, and return the fingerprints of the data sets by name."""
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
    # A thousand rows and all targets tell tables apart in a moment.
    digest.update(data.X[:: max(1, len(data.X) // 1000)].tobytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=2)
def _fit_once(condition: Condition, data_dir: Path | None, seed: int) -> FittedParties:
    """Trials that differ only in their anchors have the same parties."""
    return fit_parties(condition, _load_once(condition.dataset, data_dir), seed)


def _without_anchors(condition: Condition) -> Condition:
    # Any value does, if only it is the same for all.
    return replace(condition, n_anchors=1, n_sources=None, n_neighbors=1)


def _score(cell: Cell, trial: Trial, data: Dataset, targets: dict[Attacks, Target]) -> Scored:
    """Scores, seconds and images of one cell; a method of somebody's own may raise anything."""
    if cell.attacks is None:
        score = score_method(trial, cell.name, cell.condition, data.task, cell.own)
        return {"accuracy" if data.task == "classification" else "rmse": score.value}, score.steps, None
    if cell.name == AUDIT:
        found = score_risks(trial, data)
    else:
        # Attacks of one trial have the same rows to reconstruct, and one judge.
        if cell.attacks not in targets:
            targets[cell.attacks] = make_target(trial, cell.attacks, data, cell.condition)
        found = score_attack(trial, targets[cell.attacks], cell.name)
    # One trial is enough to look at; and nobody's own rows get into a file that is passed on.
    images = found.images if trial.seed == 0 and ":" not in cell.condition.dataset else None
    return found.scores, found.steps, images
