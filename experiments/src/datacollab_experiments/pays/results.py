"""Results by setting, as the report wants them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..harness import Found, Result
from .intervals import Difference, pair_differences, student
from .settings import Setting
from .tables import load_table
from .tasks import PartTask
from .trial import LOCAL, LOCAL_PUBLIC, METHODS, POOL, SUMS

# Scores by seed and party.
BySeed = dict[int, dict[str, float]]


@dataclass
class Measured:
    """Everything measured under one setting.

    Attributes
    ----------
    scores, losses : dict of str to dict
        A method's values, by seed and party.
    benefits : dict of str to dict
        Ends and middle of the gains that parties were told, by seed and party.
    seconds : list of float
        CPU seconds of each trial's part "main".
    """

    setting: Setting
    metric: str
    scores: dict[str, BySeed] = field(default_factory=dict)
    losses: dict[str, BySeed] = field(default_factory=dict)
    benefits: dict[str, BySeed] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def is_error(self) -> bool:
        """Whether less is better."""
        return self.metric == "RMSE"

    def mean(self, method: str) -> float:
        """Mean over seeds of the mean over parties; not a number where there is none."""
        by_seed = self.scores.get(method, {})
        return student([float(np.mean(list(parties.values()))) for parties in by_seed.values()]).mean

    def best_of(self, methods: Iterable[str]) -> str:
        """Return the method with the best mean of some: chosen with hindsight, which favours it."""
        there = [method for method in methods if method in self.scores]
        return min(there, key=lambda m: self.mean(m) * (1 if self.is_error else -1))

    def gain(self, method: str, over: str) -> Difference:
        """How much better a method is: differences of AUC or accuracy, or the part of the error that it takes away."""
        left = self.scores.get(method, {})
        right = self.scores.get(over, {})
        if not self.is_error:
            return pair_differences(left, right)
        # Errors have units; the part that goes away compares between tables.
        loss = pair_differences(left, right, relative=True)
        return Difference(-loss.mean, -loss.high, -loss.low)

    @property
    def collaborating(self) -> str:
        """A party's final model: the pool if rows are shared, or sums."""
        if self.setting.defence == "sums":
            return SUMS
        return POOL

    @property
    def own(self) -> str:
        """The better of a party's models without the others."""
        return self.best_of((LOCAL, LOCAL_PUBLIC))


def collect(found: Found[PartTask]) -> list[Measured]:
    """Results by setting, in the order of the tasks."""
    measured: dict[Setting, Measured] = {}
    for task, results in found:
        [result] = results.values()
        setting = task.setting
        if setting not in measured:
            measured[setting] = Measured(setting, metric_of(setting))
        _add(measured[setting], task, result)
    return list(measured.values())


def metric_of(setting: Setting) -> str:
    """Return the measure of a data set, without its rows where these are many."""
    known = {"digits": "accuracy", "mnist": "accuracy", "fashion-mnist": "accuracy", "ujiindoorloc": "RMSE"}
    return known.get(setting.dataset) or load_table(setting.dataset).metric


def _add(measured: Measured, task: PartTask, result: Result) -> None:
    if result.error is not None:
        measured.errors.append(f"{task.label}: {result.error}")
    else:
        if task.part == "main":
            measured.seconds.append(sum(result.seconds.values()))
        kinds = {"score": measured.scores, "loss": measured.losses, "benefit": measured.benefits}
        for key, value in result.scores.items():
            kind, name, *party = key.split("|")
            if kind in kinds:
                kinds[kind].setdefault(name, {}).setdefault(task.seed, {})[party[0]] = value


def merge_earlier(measured: Iterable[Measured], path: Path) -> list[Measured]:
    """Put new scores in the place of those of an earlier run, which `rows_of` wrote."""
    names = {"n_parties": "parties", "n_per_party": "rows", "n_public": "public"}
    names |= {name: name for name in ("dataset", "split", "labelled", "f", "defence")}
    kept: dict[Setting, Measured] = {}
    for row in pd.read_csv(path).itertuples():
        setting = Setting(**{name: getattr(row, column) for name, column in names.items()})
        each = kept.setdefault(setting, Measured(setting, str(row.metric)))
        for scores, value in ((each.scores, row.score), (each.losses, row.loss)):
            scores.setdefault(str(row.method), {}).setdefault(int(row.seed), {})[str(row.party)] = float(value)
    for each in measured:
        # Methods that were not run again keep their scores.
        earlier = kept.setdefault(each.setting, each)
        if earlier is not each:
            kept[each.setting] = replace(each, scores=earlier.scores | each.scores, losses=earlier.losses | each.losses)
    return list(kept.values())


def rows_of(measured: Iterable[Measured]) -> list[Mapping[str, object]]:
    """Return the rows of the CSV file: one for each score."""
    return [
        {
            "dataset": each.setting.dataset,
            "parties": each.setting.n_parties,
            "rows": each.setting.n_per_party,
            "split": each.setting.split,
            "public": each.setting.n_public,
            "labelled": each.setting.labelled,
            "f": each.setting.f,
            "defence": each.setting.defence,
            "metric": each.metric,
            "method": method,
            "seed": seed,
            "party": party,
            "score": score,
            "loss": each.losses[method][seed][party],
        }
        for each in measured
        for method in METHODS
        for seed, parties in sorted(each.scores.get(method, {}).items())
        for party, score in parties.items()
    ]
