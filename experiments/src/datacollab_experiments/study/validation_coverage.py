"""How often intervals hold of a published model's validation by sums, with the usual noise and of five hospitals.

Linear predictors are normal.  The model is well calibrated, or overfitted: its predictions are too extreme, and too
high.  Or they are those of a mixture, as of a model with one strong yes or no.  The truth is that of two million rows.

```console
$ python -m datacollab_experiments.study.validation_coverage
```

prints the figures of docs/validation.md; it takes some minutes.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from datacollab.errors import NumericalError
from datacollab.study import CategoryColumn, ModelValidation, ModelValidationResult, NumberColumn

from ..harness import write_table
from ..sums.playing import noise_factor

WORLDS = {"calibrated": (0.0, 1.0), "overfitted": (-0.3, 0.7), "mixture": (0.0, 1.0)}
"""Intercept and slope of the true linear predictor on the model's."""
ROWS = (500, 2000, 10_000)
N_PARTIES = 5
THRESHOLD = 0.1
FIGURES = ("AUC", "slope", "intercept", "observed / expected", "Brier", "net benefit")
VALIDATION = ModelValidation(CategoryColumn("y", (0, 1)), [NumberColumn("x", -20, 20)], {"intercept": 0.0, "x": 1.0})


def simulate(world: str, n_rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return linear predictors of the model, and outcomes."""
    x = random.normal(-2, 1, n_rows)
    if world == "mixture":
        x = random.normal(-3, 0.4, n_rows) + 2.5 * (random.random(n_rows) < 0.3)
    intercept, slope = WORLDS[world]
    return x, (random.random(n_rows) < expit(intercept + slope * x)).astype(int)


def truth(world: str, n_rows: int = 2_000_000) -> dict[str, float]:
    """Return the figures without sampling error, of exact predictions."""
    x, y = simulate(world, n_rows, np.random.default_rng(1))
    p = expit(x)
    intercept, slope = WORLDS[world]
    alone = 0.0
    # Newton's method for the intercept at a slope of 1, whose probabilities are the true ones on average.
    for _ in range(20):
        shifted = expit(alone + x)
        alone += float((expit(intercept + slope * x) - shifted).sum() / (shifted * (1 - shifted)).sum())
    above = p >= THRESHOLD
    benefit = float((above & (y == 1)).mean() - THRESHOLD / (1 - THRESHOLD) * (above & (y == 0)).mean())
    brier = float(((p - y) ** 2).mean())
    return dict(zip(FIGURES, (roc_auc_score(y, p), slope, alone, y.mean() / p.mean(), brier, benefit), strict=True))


def figures_of(found: ModelValidationResult) -> dict[str, tuple[float, float, float]]:
    """Return a validation's figures with limits."""
    k = int(np.flatnonzero(found.thresholds == THRESHOLD)[0])
    low, middle, high = (float(found.net_benefit[place, k]) for place in (1, 0, 2))
    intervals = (found.auc, found.slope, found.intercept, found.ratio, found.brier, (middle, low, high))
    return dict(zip(FIGURES, intervals, strict=True))


def figures(studies: int, *, rows: tuple[int, ...] = ROWS) -> Iterator[dict[str, object]]:
    """Yield for each world and number of rows how many studies give each figure, and how often intervals hold."""
    excess = noise_factor(N_PARTIES)
    for number, (world, n_rows) in enumerate(product(WORLDS, rows)):
        true = truth(world)
        held: dict[str, list[bool]] = {name: [] for name in FIGURES}
        errors: dict[str, list[float]] = {name: [] for name in FIGURES}
        width: dict[str, list[float]] = {name: [] for name in FIGURES}
        for seed in range(studies):
            random = np.random.default_rng([number, seed])
            x, y = simulate(world, n_rows, random)
            total = VALIDATION.part({"x": x, "y": y})
            try:
                of_sums, exact = (
                    figures_of(
                        VALIDATION.result(
                            total + e * VALIDATION.spread * random.normal(size=len(total)), n_parties=5, noise=e
                        )
                    )
                    for e in (excess, 0.0)
                )
            except NumericalError:
                continue
            for name, (value, low, high) in of_sums.items():
                if not np.isnan(value):
                    held[name].append(low <= true[name] <= high)
                    errors[name].append(value - true[name])
                    width[name].append((high - low) / (exact[name][2] - exact[name][1]))
        for name in FIGURES:
            # A figure that no study gave has no coverage.
            summary: dict[str, object] = dict.fromkeys(("held", "bias", "width"), "")
            if held[name]:
                summary = {
                    "held": round(float(np.mean(held[name])), 3),
                    "bias": round(float(np.mean(errors[name])), 4),
                    "width": round(float(np.median(width[name])), 2),
                }
            facts: dict[str, object] = {"predictions": world, "rows": n_rows, "figure": name}
            yield facts | {"given": round(len(held[name]) / studies, 3)} | summary


if __name__ == "__main__":
    write_table(figures, studies=400)
