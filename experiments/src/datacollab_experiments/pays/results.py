"""Results by setting, and paired differences with intervals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ..harness import Found, Result
from .settings import Setting
from .tables import load_table
from .tasks import PartTask
from .trial import LOCAL, LOCAL_PUBLIC, METHODS, POOL, SUMS


@dataclass(frozen=True)
class Difference:
    """A mean difference, and its 95 % interval; no numbers for the ends where there is one seed only."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether all of the interval is above zero ("+") or below ("-"), or neither ("0")."""
        if self.low > 0:
            return "+"
        if self.high < 0:
            return "-"
        return "0"


# Scores by seed and party.
Scores = Mapping[int, Mapping[str, float]]


def pair_differences(left: Scores, right: Scores, *, relative: bool = False) -> Difference:
    r"""Mean of left minus right over parties and seeds.

    Parties of one seed have the test rows, the public rows and the other parties' rows in common, so that they are
    one observation: the interval is Student's of the seeds' mean differences, :math:`\bar d \pm t_{S-1} s/\sqrt{S}`.

    Parameters
    ----------
    left, right : mapping of int to mapping of str to float
        Scores by seed and party; seeds and parties that only one of them has are left out.
    relative : bool, default=False
        Whether each difference is divided by the right score: for errors in units.
    """
    means = []
    for seed in sorted(left.keys() & right.keys()):
        parties = left[seed].keys() & right[seed].keys()
        differences = [
            (left[seed][p] - right[seed][p]) / (right[seed][p] if relative else 1.0) for p in sorted(parties)
        ]
        if differences:
            means.append(float(np.mean(differences)))
    return student(means)


def student(values: Sequence[float]) -> Difference:
    """Mean of independent values and its 95 % interval."""
    if not values:
        return Difference(math.nan, math.nan, math.nan)
    mean = float(np.mean(values))
    # One seed has no spread.
    if len(values) == 1:
        return Difference(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return Difference(mean, mean - half, mean + half)


def coverage(
    lows: Sequence[float], highs: Sequence[float], truths: Sequence[float], clusters: Sequence[str]
) -> tuple[Difference, int]:
    """Share of intervals that hold the truth, its interval with clusters as observations, and how many there are."""
    held = (np.asarray(lows) <= np.asarray(truths)) & (np.asarray(truths) <= np.asarray(highs))
    # Parties of one trial share rows, so trials are the observations.
    names = np.asarray(clusters)
    shares = [float(held[names == name].mean()) for name in dict.fromkeys(clusters)]
    interval = student(shares)
    mean = float(held.mean()) if len(held) else math.nan
    # The share is over all intervals, and its width over trials.
    low = mean - (interval.mean - interval.low)
    high = mean + (interval.high - interval.mean)
    return Difference(mean, max(low, 0.0), min(high, 1.0)), len(held)


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


LOW = "low"
HIGH = "high"
VALUE = "value"
TRUTH = "truth"


@dataclass(frozen=True)
class PartyRun:
    """The interval that one party was told in one trial, and the truth."""

    trial: str
    low: float
    high: float
    value: float
    truth: float


def party_runs(measured: Sequence[Measured], belongs: Callable[[Measured], bool] = lambda each: True) -> list[PartyRun]:
    """All parties that were told something."""
    return [
        PartyRun(
            f"{each.setting.label} {seed}", *(each.benefits[key][seed][party] for key in (LOW, HIGH, VALUE, TRUTH))
        )
        for each in measured
        if belongs(each) and TRUTH in each.benefits
        for seed, parties in each.benefits[TRUTH].items()
        for party in parties
        if all(party in each.benefits.get(key, {}).get(seed, {}) for key in (LOW, HIGH, VALUE))
    ]


def calibration_text(measured: Sequence[Measured]) -> str:
    """Return coverage and bias of the gains that parties were told, over all runs and parts of them."""
    parts: list[tuple[str, Callable[[Measured], bool]]] = [
        ("all", lambda each: True),
        ("parties alike", lambda each: each.setting.split == "iid"),
        ("skewed parties", lambda each: each.setting.split != "iid"),
    ]
    lines = ["| party-runs | | coverage | told, mean | true, mean | told gain, true loss |", "|" + " --- |" * 6]
    for name, belongs in parts:
        runs = party_runs(measured, belongs)
        if not runs:
            continue
        held, n = coverage(*([getattr(run, key) for run in runs] for key in ("low", "high", "truth", "trial")))
        # The worst case: a party is told a sure gain, and loses.
        wrong = sum(run.low > 0 > run.truth for run in runs)
        told, true = (float(np.mean([getattr(run, key) for run in runs])) for key in ("value", "truth"))
        share = f"{held.mean:.3f} ({held.low:.3f} to {held.high:.3f})"
        lines.append(f"| {name} | {n} | {share} | {told:+.3f} | {true:+.3f} | {wrong} |")
    if len(lines) == 2:
        return "No party was told anything."
    return "\n".join(lines) + (
        "\n\nThe share of the parties' 95 % intervals that hold the difference on the test rows, with trials as "
        "observations. The test rows are everybody's: where parties are skewed, a party's own rows are others than "
        "these, and its interval is about its own."
    )
