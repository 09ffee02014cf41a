"""How often intervals of an effect from sums hold, and how far it is off.

Rates of treatment and outcomes rise together from hospital to hospital, and both depend on five columns.  The noise is
the usual one, raised for as many colluding parties as usual; so are the map and the outcome's range, 20 times the
standard deviation of its residuals.  The true effect is 2.  Where it differs between rows, the truth is its average
weighted by p(1 - p), with p the probability of treatment.

```console
$ python -m datacollab_experiments.study.effect_coverage
```
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from datacollab.errors import NumericalError
from datacollab.study import MAPPED, CategoryColumn, Effect, NumberColumn, StudyPlan, effect_map
from datacollab.sums import MaskKey

__all__ = ["measured"]

N_STUDIES = 500
TREATED, GAIN = CategoryColumn("treated", (0, 1)), NumberColumn("gain", -8, 12)
COLUMNS = [NumberColumn(name, -4, 4) for name in "abcde"]
_PER_CLUSTER = 5


@dataclass(frozen=True)
class World:
    """Six hospitals, of equal size unless it is of kind "unequal"."""

    n_rows: int
    kind: str = "linear"
    """Or "nonlinear", "heteroscedastic", "clustered", "heterogeneous", on which the statistic was designed; "unequal",
    "steps", "product", "kink", which were run once, when it was finished."""
    n_parties: int = 6

    def rows(self, level: float, random: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Columns, treatment, outcome, probability of treatment and effect; level is from -1 to 1."""
        part = (0.7 * (level + 1) + 0.3) if self.kind == "unequal" else 1.0  # of the mean size: .3 to 1.7
        n = round(self.n_rows / self.n_parties * part)
        x = random.normal(size=(n, len(COLUMNS))).clip(-4, 4)
        score = 0.5 * x[:, 0] - 0.4 * x[:, 1]
        outcome = x[:, 0] + 0.5 * x[:, 2] - 0.5 * x[:, 1]
        if self.kind == "nonlinear":
            wave = np.cos(1.2 * x[:, 0])
            score, outcome = 0.7 * wave + 0.4 * x[:, 1], 1.2 * wave + x[:, 1]
        if self.kind == "steps":
            above = (x > 0).astype(np.float64)
            score, outcome = 0.8 * above[:, 0] - 0.6 * above[:, 1], 1.5 * above[:, 0] + above[:, 2]
        if self.kind == "product":
            score, outcome = 0.6 * x[:, 0] * x[:, 1], x[:, 0] * x[:, 1]
        if self.kind == "kink":
            score, outcome = 0.6 * np.abs(x[:, 0]), 1.2 * np.abs(x[:, 0])
        deviation, effect = np.ones(n), np.full(n, 2.0)
        shared = np.zeros(n)
        if self.kind == "clustered":
            places = np.arange(n) // _PER_CLUSTER
            score = score + random.normal(size=n)[places]
            shared, deviation = 0.8 * random.normal(size=n)[places], np.full(n, 0.8)
        p = expit(score + level)
        t = random.random(n) < p
        if self.kind == "heteroscedastic":
            deviation = 0.4 + 0.8 * np.abs(x[:, 0]) + 0.6 * t
        if self.kind == "heterogeneous":
            effect = 2 + x[:, 0]
        y = effect * t + outcome + 1.5 * level + shared + deviation * random.normal(size=n)
        return x, t.astype(int), y, p, effect


def measured(world: World, seed: int, *, noise: bool = True, n_studies: int = N_STUDIES) -> dict[str, float]:
    """Bias, standard deviation, mean standard error and coverage; and the part of studies that was refused."""
    random = np.random.default_rng(seed)
    common = effect_map(random.normal(size=(1000, len(COLUMNS))).clip(-4, 4) / 2, bytes(32))
    cluster = "cluster" if world.kind == "clustered" else None
    statistic = Effect(TREATED, GAIN, common.n_components, COLUMNS, cluster)
    roster: dict[str | int, bytes] = {place: MaskKey.generate().public for place in range(world.n_parties)}
    excess = StudyPlan(roster, [statistic]).agreed.excess if noise else 0.0
    errors, deviations, held, parts = [], [], [], []
    for _ in range(n_studies):
        total, weights, weighted = np.zeros(len(statistic.spread)), 0.0, 0.0
        for place, level in enumerate(np.linspace(-1, 1, world.n_parties)):
            x, t, y, p, effect = world.rows(level, random)
            table = {MAPPED: common.transform(x / 2), "treated": t, "gain": y}
            table |= {each.name: x[:, j] for j, each in enumerate(COLUMNS)}
            if cluster:
                table[cluster] = np.array([f"{place}, {i // _PER_CLUSTER}" for i in range(len(x))], dtype=object)
            total += statistic.part(table)
            weights, weighted = weights + (p * (1 - p)).sum(), weighted + (p * (1 - p) * effect).sum()
        total += excess * statistic.spread * random.normal(size=len(total))
        try:
            found = statistic.result(total, n_parties=world.n_parties, noise=excess)
        except NumericalError:
            continue
        truth = weighted / weights
        errors.append(found.effect - truth)
        deviations.append(found.error)
        held.append(found.low <= truth <= found.high)
        parts.append(found.noise)
    return {
        "bias": float(np.mean(errors)),
        "standard deviation": float(np.std(errors)),
        "mean standard error": float(np.sqrt(np.mean(np.square(deviations)))),
        "of noise": float(np.mean(parts)),
        "coverage": float(np.mean(held)),
        "refused": 1 - len(held) / n_studies,
    }


WORLDS = [
    World(600),
    World(3000),
    *(World(3000, kind) for kind in ("nonlinear", "heteroscedastic", "clustered", "heterogeneous")),
    *(World(3000, kind) for kind in ("unequal", "steps", "product", "kink")),
]


if __name__ == "__main__":
    chosen = [int(each) for each in sys.argv[1:]] or range(len(WORLDS))
    for number in chosen:
        for noise in (True, False):
            said = measured(WORLDS[number], number, noise=noise).values()
            kind, n = WORLDS[number].kind, WORLDS[number].n_rows
            name = f"{kind}, {n:,} rows{'' if noise else ', no noise'}"
            sys.stdout.write(f"| {name} | {' | '.join(f'{each:.3f}' for each in said)} |\n")
            sys.stdout.flush()
