"""How often intervals of an effect from sums hold, and how far it is off.

Rates of treatment and outcomes rise together from hospital to hospital, and both depend on five columns.  The noise is
the usual one, raised for as many colluding parties as usual; so are the map and the outcome's range, 20 times the
standard deviation of its residuals.  The true effect is 2.  Where it differs between rows, the truth is its average
weighted by p(1 - p), with p the probability of treatment.  In some worlds one column is a group.  There the test of
whether the effect differs with it is shown: how often its interval holds the true difference, and it finds one.

Each study is read twice, with noise and without.  All settings and seeds were fixed before the studies that judge.

Run ``python -m datacollab_experiments.study.effect_coverage``.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from datacollab.errors import NumericalError
from datacollab.study import MAPPED, CategoryColumn, Effect, EffectResult, NumberColumn, effect_map
from datacollab.sums import CommonMap

from ..harness import write_table
from ..sums.playing import noise_factor

N_STUDIES = 500
N_OF_FIRST = 1000
"""Of each world, and of each of the first two."""
TREATED = CategoryColumn("treated", (0, 1))
GAIN = NumberColumn("gain", -8, 12)
COLUMNS = [NumberColumn(name, -4, 4) for name in "abcde"]
GROUP = CategoryColumn("group", (0, 1))
_PER_CLUSTER = 5
_LEVEL = 0.05
_OF_EFFECT = ("bias", "standard deviation", "mean standard error", "of noise", "coverage", "refused")
FIGURES = (*_OF_EFFECT, "difference: coverage", "found", "not given")
_FIRST_SEED = 400
"""Others served to choose the map, and the order of bias that is extrapolated."""


@dataclass(frozen=True)
class EffectStudyWorld:
    """Six hospitals, of equal size unless it is of kind "unequal"."""

    n_rows: int
    kind: str = "linear"
    """Or "nonlinear", "heteroscedastic", "clustered", "heterogeneous", "product", "kink", on which the statistic was
    designed; "unequal", "steps", which were run when it was finished."""
    n_parties: int = 6
    difference: float | None = None
    """Of the effect between two groups, which take the place of the last column."""

    def rows(self, level: float, random: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return columns, treatment, outcome, probability of treatment and effect; level is from -1 to 1."""
        part = 1.0
        if self.kind == "unequal":
            part = 0.7 * (level + 1) + 0.3  # Of the mean size: .3 to 1.7.
        n = round(self.n_rows / self.n_parties * part)
        x = random.normal(size=(n, len(COLUMNS))).clip(-4, 4)
        if self.difference is not None:
            x[:, 4] = np.sign(x[:, 4])
        score = 0.5 * x[:, 0] - 0.4 * x[:, 1]
        outcome = x[:, 0] + 0.5 * x[:, 2] - 0.5 * x[:, 1]
        if self.kind == "nonlinear":
            wave = np.cos(1.2 * x[:, 0])
            score = 0.7 * wave + 0.4 * x[:, 1]
            outcome = 1.2 * wave + x[:, 1]
        if self.kind == "steps":
            above = (x > 0).astype(np.float64)
            score = 0.8 * above[:, 0] - 0.6 * above[:, 1]
            outcome = 1.5 * above[:, 0] + above[:, 2]
        if self.kind == "product":
            outcome = x[:, 0] * x[:, 1]
            score = 0.6 * x[:, 0] * x[:, 1]
        if self.kind == "kink":
            score = 0.6 * np.abs(x[:, 0])
            outcome = 1.2 * np.abs(x[:, 0])
        deviation = np.ones(n)
        effect = np.full(n, 2.0)
        shared = np.zeros(n)
        if self.kind == "clustered":
            places = np.arange(n) // _PER_CLUSTER
            score = score + random.normal(size=n)[places]
            # The rest of the variance is within clusters.
            shared = 0.8 * random.normal(size=n)[places]
            deviation = np.full(n, 0.8)
        if self.kind == "heterogeneous":
            effect = 2 + x[:, 0]
        if self.difference is not None:
            # The group has to do with treatment and outcome as well: it confounds.
            score = score + 0.3 * x[:, 4]
            outcome = outcome + 0.5 * x[:, 4]
            effect = 2 + self.difference * x[:, 4] / 2
        p = expit(score + level)
        t = random.random(n) < p
        if self.kind == "heteroscedastic":
            deviation = 0.4 + 0.8 * np.abs(x[:, 0]) + 0.6 * t
        y = effect * t + outcome + 1.5 * level + shared + deviation * random.normal(size=n)
        return x, t.astype(int), y, p, effect


def measure(
    world: EffectStudyWorld, seed: int, *, n_studies: int = N_STUDIES
) -> tuple[dict[str, float], dict[str, float]]:
    """Return bias, standard deviation, mean standard error, coverage, and the part refused; with noise, and without."""
    random = np.random.default_rng(seed)
    common = _multiply_out(effect_map(random.normal(size=(1000, len(COLUMNS))).clip(-4, 4) / 2, bytes(32)))
    cluster = "cluster" if world.kind == "clustered" else None
    by = None if world.difference is None else GROUP
    statistic = Effect(TREATED, GAIN, common.n_components, COLUMNS, cluster, by)
    # As a plan raises noise against parties that collude.
    usual = noise_factor(world.n_parties)
    by_noise: tuple[list[dict[str, float]], ...] = ([], [])
    for _ in range(n_studies):
        total = np.zeros(len(statistic.spread))
        weights = 0.0
        weighted = 0.0
        for place, level in enumerate(np.linspace(-1, 1, world.n_parties)):
            x, t, y, p, effect = world.rows(level, random)
            table = {MAPPED: common.transform(x / 2), "treated": t, "gain": y, "group": (x[:, 4] > 0).astype(int)}
            table |= {each.name: x[:, j] for j, each in enumerate(COLUMNS)}
            if cluster:
                table[cluster] = np.array([f"{place}, {i // _PER_CLUSTER}" for i in range(len(x))], dtype=object)
            total += statistic.part(table, random.bytes(32))
            # Rows with a probability of treatment near one half say most of the effect.
            weights += (p * (1 - p)).sum()
            weighted += (p * (1 - p) * effect).sum()
        # Common random numbers: with noise and without, the same study.
        drawn = statistic.spread * random.normal(size=len(total))
        for own, excess in zip(by_noise, (usual, 0.0), strict=True):
            # A total that says too little is refused: it counts neither as held nor as missed.
            try:
                result = statistic.result(total + excess * drawn, n_parties=world.n_parties, noise=excess)
            except NumericalError:
                continue
            own.append(_judge(result, weighted / weights, world.difference))
    return _summary(by_noise[0], n_studies), _summary(by_noise[1], n_studies)


def _multiply_out(common: CommonMap) -> CommonMap:
    """Return the same map, but for rounding, with both matrices of the kernel's part multiplied beforehand."""
    n_linear = common.principal.shape[1]
    # Features are linear in the kernel's part: (K root) D is K (root D).
    linear, rest = np.split(common.directions, [n_linear])
    return replace(
        common,
        root=common.root @ rest,
        feature_mean=np.r_[common.feature_mean[:n_linear], common.feature_mean[n_linear:] @ rest],
        directions=np.vstack([linear, np.eye(common.n_components)]),
    )


def _judge(result: EffectResult, truth: float, difference: float | None) -> dict[str, float]:
    judged = {"error": result.effect - truth, "se": result.error, "noise": result.noise}
    judged["held"] = result.low <= truth <= result.high
    other = result.difference
    if difference is not None and other is not None:
        judged |= {"difference held": other.low <= difference <= other.high, "found": other.p_value < _LEVEL}
    return judged


def _summary(studies: list[dict[str, float]], n_studies: int) -> dict[str, float]:
    def column(name: str) -> np.ndarray:
        return np.array([each[name] for each in studies if name in each], dtype=float)

    errors = column("error")
    summary = {
        "bias": errors.mean(),
        "standard deviation": errors.std(),
        "mean standard error": np.sqrt(np.mean(column("se") ** 2)),
        "of noise": column("noise").mean(),
        "coverage": column("held").mean(),
        "refused": 1 - len(studies) / n_studies,
    }
    if len(column("found")):
        summary |= {"difference: coverage": column("difference held").mean(), "found": column("found").mean()}
        summary["not given"] = 1 - len(column("found")) / n_studies
    return {name: float(each) for name, each in summary.items()}


WORLDS = [
    EffectStudyWorld(600),
    EffectStudyWorld(3000),
    *(EffectStudyWorld(3000, kind) for kind in ("nonlinear", "heteroscedastic", "clustered", "heterogeneous")),
    *(EffectStudyWorld(3000, kind) for kind in ("unequal", "steps", "product", "kink")),
    EffectStudyWorld(600, difference=0.0),
    EffectStudyWorld(600, difference=1.0),
    EffectStudyWorld(3000, difference=0.0),
    EffectStudyWorld(3000, difference=0.5),
    EffectStudyWorld(3000, "nonlinear", difference=0.0),
    EffectStudyWorld(3000, "heteroscedastic", difference=0.0),
]


def rows(worlds: Sequence[int]) -> Iterator[dict[str, object]]:
    """Yield the figures of some worlds, by their numbers, with noise and without."""
    for number in worlds:
        world = WORLDS[number]
        measures = measure(world, _FIRST_SEED + number, n_studies=N_STUDIES if number > 1 else N_OF_FIRST)
        for noise, figures in zip(("usual", "none"), measures, strict=True):
            facts = {"world": world.kind, "rows": world.n_rows, "noise": noise, "difference": world.difference}
            yield facts | {name: round(figures.get(name, math.nan), 3) for name in FIGURES}


if __name__ == "__main__":
    write_table(rows, worlds=tuple(range(len(WORLDS))))
