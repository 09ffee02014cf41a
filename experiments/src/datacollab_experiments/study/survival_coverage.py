"""How often intervals of survival under masks hold, and how often the log-rank test rejects without a difference.

Hazards and the parts of the groups differ between parties.  Times are Weibull with a shape of one half, so that most
events are early.  The noise is the usual one, raised for as many colluding parties as usual.  Beside the intervals of
survival stand those of the same studies without noise, and the textbook's on all rows in one place: Kaplan-Meier with
Greenwood's variance on the log-log scale, of SciPy.

Run ``python -m datacollab_experiments.study.survival_coverage``.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from datacollab.errors import NumericalError
from datacollab.study import AdditiveHazards, CategoryColumn, NumberColumn, Statistic, Survival

from ..harness import write_table
from ..sums.playing import noise_factor

N_STUDIES = 1000
ARM = CategoryColumn("arm", ("old", "new"))
TIME = NumberColumn("time", 0, 10)
X = NumberColumn("x", 0, 1)
SEX = CategoryColumn("sex", ("f", "m"))
_X = 0.1
_SEX = 0.05
"""Effects on the hazard."""


@dataclass(frozen=True)
class SurvivalWorld:
    """Parties of equal size, whose cumulative hazards at the end are from `least` to `most`."""

    n_parties: int
    n_rows: int
    least: float
    most: float
    ratio: float = 1.0
    """Of the hazard with the new treatment."""
    step: float = 0.0
    """Times of groups are rounded up to multiples of it, unless it is 0."""

    def hazards(self) -> np.ndarray:
        """Return the cumulative hazard at the end of each party."""
        return np.linspace(self.least, self.most, self.n_parties)

    def survival(self, t: float) -> float:
        """Return the part that survives a time, with equal parts of both treatments."""
        hazard = self.hazards() * math.sqrt(t / TIME.high)
        return float(np.mean([np.exp(-hazard), np.exp(-self.ratio * hazard)]))

    def tables(self, random: np.random.Generator, *, grouped: bool) -> Iterator[dict[str, np.ndarray]]:
        """Yield each party's times and treatments; the part of the new one differs between parties if grouped."""
        n = self.n_rows // self.n_parties
        for place, hazard in enumerate(self.hazards()):
            part = 0.5 + grouped * 0.3 * (place / (self.n_parties - 1) - 0.5)
            new = random.random(n) < part
            scale = hazard * np.where(new, self.ratio, 1.0)
            # A Weibull shape of one half: the square of an exponential time.
            event = TIME.high * (random.exponential(size=n) / scale) ** 2
            table = _censor(event, random)
            if grouped and self.step:
                table["time"] = np.ceil(table["time"] / self.step) * self.step
            yield table | {"arm": np.where(new, "new", "old")}

    def additive_tables(self, random: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
        """Yield each party's times and two columns, whose effects are added to the hazard."""
        n = self.n_rows // self.n_parties
        for place, hazard in enumerate(self.hazards()):
            x = random.beta(1 + place, 2, n)
            male = random.random(n) < 0.3 + 0.1 * place
            slope = _X * x + _SEX * male
            # The sum of two hazards is that of the earlier of two events.
            event = np.minimum(
                TIME.high * (random.exponential(size=n) / hazard) ** 2,
                random.exponential(size=n) / np.maximum(slope, 1e-9),
            )
            yield _censor(event, random) | {"x": x, "sex": np.where(male, "m", "f")}


def _censor(event: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
    # Half of the people are followed to the study's end, the others leave before.
    end = random.uniform(0, 2 * TIME.high, len(event))
    return {"time": np.minimum(event, end), "seen": (event <= end).astype(int)}


def _kaplan_meier(tables: list[dict[str, np.ndarray]]) -> Any:
    """Return the lower and the upper end of the textbook's interval, as functions of time."""
    time, seen = (np.concatenate([table[name] for table in tables]) for name in ("time", "seen"))
    with warnings.catch_warnings(action="ignore"):
        # Without an event there is no interval; it counts as one that fails.
        return stats.ecdf(stats.CensoredData.right_censored(time, seen == 0)).sf.confidence_interval(method="log-log")


def measure(world: SurvivalWorld, seed: int, n_studies: int = N_STUDIES) -> dict[str, tuple[float, int]]:
    """Return how often each interval held, or the test rejected, and in how many studies."""
    curve = Survival(TIME, "seen")
    groups = Survival(TIME, "seen", ARM)
    additive = AdditiveHazards(TIME, "seen", [X, SEX])
    excess = noise_factor(world.n_parties)
    random = np.random.default_rng(seed)
    held: dict[str, list[bool]] = defaultdict(list)

    def result(statistic: Statistic, tables: Iterator[dict[str, np.ndarray]]) -> Any:
        total = np.sum([statistic.part(table) for table in tables], axis=0)
        total = total + excess * statistic.spread * random.normal(size=len(total))
        return statistic.result(total, n_parties=world.n_parties, noise=excess)

    for _ in range(n_studies):
        tables = list(world.tables(random, grouped=False))
        (one,) = result(curve, iter(tables)).curves
        exact = np.sum([curve.part(table) for table in tables], axis=0)
        (without,) = curve.result(exact, n_parties=world.n_parties, noise=0.0).curves
        together = _kaplan_meier(tables)
        # Times from the first interval, with few events, to three quarters of the study.
        for k in (0, 1, 4, 9, 14):
            time = (k + 1) * TIME.high / 20
            true = world.survival(time)
            if not np.isnan(one.low[k]):
                held[f"survival {true:.2f}"].append(one.low[k] <= true <= one.high[k])
                held[f"survival {true:.2f}, no noise"].append(without.low[k] <= true <= without.high[k])
                low, high = (each.evaluate(time) for each in together)
                held[f"survival {true:.2f}, Kaplan-Meier on all rows"].append(bool(low <= true <= high))
        # Parts of the groups differ between parties, as where one began with the new treatment.
        compared = result(groups, world.tables(random, grouped=True))
        if not np.isnan(compared.p_value):
            held["log-rank test rejects"].append(compared.p_value < 0.05)
        ratio, low, high = compared.hazard_ratio
        if not np.isnan(ratio):
            held[f"hazard ratio {world.ratio:g}"].append(low <= world.ratio <= high)
        try:
            effects = result(additive, world.additive_tables(random))
        except NumericalError:
            continue
        for place, true in enumerate((_X, _SEX)):
            held[f"additive hazards, {effects.names[place]}"].append(effects.low[place] <= true <= effects.high[place])
    return {name: (float(np.mean(each)), len(each)) for name, each in held.items()}


WORLDS = {
    "60 rows, 3 parties": SurvivalWorld(3, 60, 0.1, 0.3),
    "300 rows, 4 parties": SurvivalWorld(4, 300, 0.3, 1.2),
    "1,000 rows, 4 parties": SurvivalWorld(4, 1000, 0.3, 1.2),
    "1,000 rows, 4 parties, halved hazard": SurvivalWorld(4, 1000, 0.3, 1.2, ratio=0.5),
    "1,000 rows, 4 parties, halved hazard, 20 times": SurvivalWorld(4, 1000, 0.3, 1.2, ratio=0.5, step=0.5),
    "1,000 rows, 4 parties, halved hazard, 8 times": SurvivalWorld(4, 1000, 0.3, 1.2, ratio=0.5, step=1.25),
    "3,000 rows, 5 parties": SurvivalWorld(5, 3000, 0.2, 2.0),
}


def rows() -> Iterator[dict[str, object]]:
    """Yield how often each interval holds, in each world."""
    for number, (name, world) in enumerate(WORLDS.items()):
        for figure, (part, n) in measure(world, number).items():
            yield {"world": name, "figure": figure, "part": round(part, 3), "studies": n}


if __name__ == "__main__":
    write_table(rows)
