"""How often intervals of a validation's meta-analysis hold, with the usual noise, beside counts, and without any.

Linear predictors are normal.  Parties are alike, or their true intercepts and slopes on the model differ, and some have
four times as many rows as others.  The truth is the mean of very many parties; predictions are of one party more.

```console
$ python -m datacollab_experiments.study.meta_coverage
```

prints the figures of docs/validation.md; it takes some minutes.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
from scipy.special import expit

from datacollab.errors import NumericalError
from datacollab.study import CategoryColumn, Counts, MetaAnalysis, MetaAnalysisResult, ModelValidation, NumberColumn

from ..harness import write_table

WORLDS = {"alike": (0.0, 0.0), "different": (0.4, 0.2)}
"""Standard deviations of intercepts and slopes between parties."""
ROWS = (500, 2000)
"""Rows of the first party; the second has half, the third twice as many, and so on in turn."""
PARTIES = (3, 5, 10)
FIGURES = ("AUC", "calibration slope", "calibration intercept", "observed / expected")
OUTCOME = CategoryColumn("y", (0, 1))
COLUMN = NumberColumn("x", -20, 20)
# Counts and the validation are in the message as well.
COPIES = Counts.own_copies + ModelValidation.own_copies + MetaAnalysis.own_copies
ACROSS = MetaAnalysis(ModelValidation(OUTCOME, [COLUMN], {"intercept": 0.0, "x": 1.0}), copies=COPIES)


def simulate(world: str, n_rows: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return one party's linear predictors and outcomes."""
    of_intercept, of_slope = WORLDS[world]
    intercept = of_intercept * random.normal()
    slope = 1 + of_slope * random.normal()
    x = random.normal(-1.5, 1, n_rows)
    return {"x": x, "y": (random.random(n_rows) < expit(intercept + slope * x)).astype(int)}


@functools.cache
def figures_of_many(world: str, n_parties: int = 300, n_rows: int = 40_000) -> np.ndarray:
    """Return figures of many large parties, of finely divided predictions, shape (n_parties, 4)."""
    random = np.random.default_rng(1)
    fine = replace(ACROSS.validation, thresholds=expit(np.linspace(-5, 2, 80)).tolist())
    made = []
    for _ in range(n_parties):
        found = fine.result(fine.part(simulate(world, n_rows, random)), n_parties=1, noise=0.0)
        made.append((found.auc[0], found.slope[0], found.intercept[0], found.ratio[0]))
    return np.array(made)


def true_means(figures: np.ndarray) -> np.ndarray:
    """Return means over parties; of ratios that of logarithms, as the meta-analysis takes it."""
    auc, slope, intercept, ratio = figures.T
    return np.array([auc.mean(), slope.mean(), intercept.mean(), np.exp(np.log(ratio).mean())])


def study(world: str, n_rows: int, n_parties: int, seed: list[int], count_noise: float) -> MetaAnalysisResult:
    """Return the meta-analysis of one simulated study; the same rows whatever the noise."""
    random = np.random.default_rng(seed)
    noise = np.random.default_rng([*seed, 1])
    across = replace(ACROSS, validation=replace(ACROSS.validation, count_noise=count_noise))
    sizes = np.resize([n_rows, n_rows // 2, 2 * n_rows], n_parties)
    with patch("secrets.token_bytes", noise.bytes):
        total = sum(across.part(simulate(world, n, random)) for n in sizes)
    return across.result(np.asarray(total), n_parties=n_parties)


def figures(studies: int) -> Iterator[dict[str, object]]:
    """Yield for each world, number of rows and of parties how often intervals hold, and how wide noise makes them."""
    for number, (world, n_rows, n_parties) in enumerate(product(WORLDS, ROWS, PARTIES)):
        many = figures_of_many(world)
        true = true_means(many)
        held: dict[str, list[bool]] = {name: [] for name in FIGURES}
        predicted: dict[str, list[float]] = {name: [] for name in FIGURES}
        width: dict[str, list[float]] = {name: [] for name in FIGURES}
        taus: dict[str, list[float]] = {name: [] for name in FIGURES}
        for seed in range(studies):
            try:
                noisy, exact = (study(world, n_rows, n_parties, [number, seed], noise) for noise in (2.0, 0.0))
            except NumericalError:
                continue
            for place, name in enumerate(FIGURES):
                own = noisy.figures[name]
                other = exact.figures[name]
                if np.isnan(own.value):
                    continue
                held[name].append(own.low <= true[place] <= own.high)
                within = (own.predicted_low <= many[:, place]) & (many[:, place] <= own.predicted_high)
                predicted[name].append(float(within.mean()))
                width[name].append((own.high - own.low) / (other.high - other.low))
                taus[name].append(own.tau)
        for place, name in enumerate(FIGURES):
            each = many[:, place]
            tau = float(np.std(np.log(each) if name == "observed / expected" else each))
            facts = {"parties": n_parties, "differ": world, "rows": n_rows, "figure": name, "tau": round(tau, 2)}
            summary: dict[str, object] = dict.fromkeys(("tau found", "held", "predicted", "width"), "")
            if held[name]:
                summary = {
                    "tau found": round(float(np.mean(taus[name])), 2),
                    "held": round(float(np.mean(held[name])), 3),
                    "predicted": round(float(np.mean(predicted[name])), 3),
                    "width": round(float(np.median(width[name])), 2),
                }
            yield facts | {"given": round(len(held[name]) / studies, 3)} | summary


if __name__ == "__main__":
    write_table(figures, studies=300)
