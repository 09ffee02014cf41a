"""Methods side by side over several seeds, and in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from datacollab.datasets import Dataset

from ._condition import Condition
from ._methods import BASELINES, check_methods
from ._trial import Score, check_size, draw_trial, score_method

# Called with a short description of each step, before it starts.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """Scores of several methods on the same trials."""

    condition: Condition
    task: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    scores: tuple[Score, ...]

    @property
    def measure(self) -> str:
        if self.task == "classification":
            return "accuracy"
        return "RMSE"

    def values(self, method: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Values of one method, in the order of the seeds."""
        by_seed = {score.seed: score.value for score in self.scores if score.method == method}
        return np.array([by_seed[seed] for seed in self.seeds])

    def interval(self, method: str) -> tuple[float, float]:
        """Mean over seeds, and half the width of its 95 % confidence interval (Student's t); NaN for one seed."""
        return _interval(self.values(method))

    def gain(self, method: str, over: str) -> tuple[float, float]:
        """Mean improvement on another method on the same trials, and half its 95 % confidence interval.

        Positive is better, also for errors.
        """
        # Lower errors are better.
        sign = 1.0 if self.task == "classification" else -1.0
        return _interval(sign * (self.values(method) - self.values(over)))

    def seconds(self, method: str) -> float:
        """Mean wall time of integration, training and prediction."""
        return float(np.mean([score.seconds for score in self.scores if score.method == method]))

    def as_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON has."""
        rows = []
        for method in self.methods:
            mean, half_width = self.interval(method)
            rows.append(
                {
                    "method": method,
                    self.measure.lower(): mean,
                    "ci95": None if np.isnan(half_width) else half_width,
                    "seconds": self.seconds(method),
                    "values": self.values(method).tolist(),
                }
            )
        return {"condition": self.condition.as_dict(), "task": self.task, "seeds": list(self.seeds), "results": rows}


def compare_methods(
    condition: Condition,
    data: Dataset,
    methods: Sequence[str],
    seeds: Sequence[int],
    progress: Progress = lambda step: None,
) -> Comparison:
    """Run trials, one for each seed, and score every method on each of them.

    `progress` is called before each of the ``len(seeds) * (1 + len(methods))`` steps.

    Raises
    ------
    ValueError
        Before any work: when a method is unknown or comes twice, there is no seed, a seed comes twice, or the data have
        fewer rows than a trial takes.
    """
    check_methods(methods)
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"At least one seed is wanted, each once; got {list(seeds)}.")
    check_size(condition, data)
    scores: list[Score] = []
    for number, seed in enumerate(seeds, start=1):
        # Parties obfuscate once, and all methods are scored on that.
        progress(f"trial {number} of {len(seeds)}: parties obfuscate")
        trial = draw_trial(condition, data, seed)
        for name in methods:
            progress(f"trial {number} of {len(seeds)}: {name}")
            scores.append(score_method(trial, name, condition, data.task))
    return Comparison(condition, data.task, tuple(methods), tuple(seeds), tuple(scores))


def _interval(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    n = len(values)
    if n < 2:
        return float(values.mean()), float("nan")
    # Student's t: the variance is estimated from few seeds.
    half_width = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    return float(values.mean()), float(half_width)


def verdicts(comparison: Comparison) -> list[str]:
    """Say in words how the methods stand to Local and Central, claiming only what the intervals support."""
    collaborating = [name for name in comparison.methods if name not in BASELINES]
    sentences = []
    if "Local" in comparison.methods and collaborating:
        better = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"))]
        worse = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"), sign=-1)]
        open_ = [name for name in collaborating if name not in better and name not in worse]
        for names, verb in ((better, "better than Local"), (worse, "worse than Local")):
            if names:
                sentences.append(f"{_join(names)}: {verb}, beyond chance at the 95 % level.")
        if open_:
            sentences.append(f"{_join(open_)}: not told apart from Local by these trials.")
    if collaborating:
        sign = 1 if comparison.task == "classification" else -1
        best = max(collaborating, key=lambda name: sign * comparison.interval(name)[0])
        mean = comparison.interval(best)[0]
        sentence = f"Highest mean: {best}" if sign == 1 else f"Lowest mean: {best}"
        sentence += f", {comparison.measure} {_number(mean)}"
        if "Central" in comparison.methods:
            sentence += f"; Central, which no party may build, has {_number(comparison.interval('Central')[0])}"
        sentences.append(f"{sentence}.")
        # The honest rival: a party that uses the public rows without collaborating.
        if "Local+Public" in comparison.methods:
            stands = _standing(comparison.gain(best, "Local+Public"))
            sentences.append(
                f"{best} is {stands} Local+Public ({_number(comparison.interval('Local+Public')[0])}), a party alone "
                "that also trains on the real public rows behind the anchor and their targets."
            )
    return sentences


def _standing(gain: tuple[float, float]) -> str:
    if _is_clear(gain):
        return "better than"
    if _is_clear(gain, sign=-1):
        return "worse than"
    return "not told apart from"


def _is_clear(gain: tuple[float, float], sign: int = 1) -> bool:
    mean, half_width = gain
    # Without an interval, of one trial, this compares with NaN and is False.
    return sign * mean > half_width


def _join(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + " and " + names[-1]


def _number(value: float) -> str:
    if abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:.2f}"
