"""How often intervals of columns' effects hold the effects that rows were made with.

Covariates are real (GBSG2): each world draws 5 parties of 50 rows and 200 other rows as the anchor, and makes up
outcomes with known effects of all columns.  Intervals are those of `Party.column_effects`, for the columns it shows.
A large anchor is 5,000 draws from all rows, with replacement.

```console
$ python -m datacollab_experiments.downstream --section column_coverage
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.model import LeastSquaresInference, PartyModel
from datacollab.party import ColumnEffects
from datacollab.survival import CoxRegression
from datacollab.targets import survival_target

from .measuring import Measured, Wanted
from .tables import survival_table

SECTION = "coverage of columns' effects"
TABLE, N_PARTIES, N_ROWS, N_ANCHORS, N_LARGE = "gbsg2", 5, 50, 200, 5_000
N_WORLDS = 40
"""Per seed; five seeds make 200."""

ONE_LESS, THREE_LESS = "DC PCA affine, one less", "DC PCA affine, three less"
LARGE = ", large anchor"
_H: dict[str, Callable[[], Any]] = {"least squares": LeastSquaresInference, "Cox": CoxRegression}


def _obfuscators(n_columns: int) -> dict[str, tuple[Any, int]]:
    """f, and columns of the collaboration representation."""
    return {
        "DC PCA affine": (dc.obfuscator("pca", n_components=n_columns), n_columns),
        ONE_LESS: (dc.obfuscator("pca", n_components=n_columns - 1), n_columns - 1),
        ONE_LESS + LARGE: (dc.obfuscator("pca", n_components=n_columns - 1), n_columns - 1),
        THREE_LESS: (dc.obfuscator("pca", n_components=n_columns - 3), n_columns - 3),
        "DC kernel PCA affine": (dc.obfuscator("kernel-pca", n_components=2 * n_columns), 2 * n_columns),
        "DC kernel PCA affine, wide": (
            dc.obfuscator("kernel-pca", n_components=n_columns, bandwidth_factor=3.0),
            n_columns,
        ),
    }


@dataclass(frozen=True)
class World:
    """Rows of the parties, the anchor and a large one, and outcomes with known effects."""

    rows: list[NDArray[np.float64]]
    anchor: NDArray[np.float64]
    large_anchor: NDArray[np.float64]
    effects: NDArray[np.float64]
    outcomes: dict[str, Any]


@lru_cache
def _covariates() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standardised columns, and effects of about the size of the real ones."""
    table = survival_table(TABLE)
    X = table.X.to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, CoxRegression(alpha=1.0).fit(X, survival_target(table.event, table.time)).coef_


def world(generator: np.random.Generator) -> World:
    X, effects = _covariates()
    order = generator.permutation(len(X))
    n = N_PARTIES * N_ROWS
    predictor = X[order[:n]] @ effects
    time, censored = generator.exponential(np.exp(-predictor)), generator.exponential(2.0, size=n)
    outcomes = {
        "least squares": predictor + generator.normal(size=n),
        "Cox": survival_target(time <= censored, np.minimum(time, censored)),
    }
    large = X[generator.integers(len(X), size=N_LARGE)]
    return World(np.split(X[order[:n]], N_PARTIES), X[order[n : n + N_ANCHORS]], large, effects, outcomes)


def effects_in(
    world: World, anchor: NDArray[np.float64], f: Any, n_components: int
) -> Iterator[tuple[str, ColumnEffects, NDArray[np.float64], NDArray[np.float64]]]:
    """For each h: what the first party is shown, what it would be shown without any rule, and its standard errors."""
    parties = [
        # Outcomes are made up after the maps, and joined to rows in their order.
        dc.Party(k, f, shuffle=False).fit(X, np.zeros(len(X)))
        for k, X in enumerate(world.rows)
    ]
    integrator = dc.LTI(n_components, fit_intercept=True)
    shares = [party.share(anchor) for party in parties]
    together = dc.Analyst(integrator, LeastSquaresInference()).fit(shares)
    representation = np.concatenate([together.representations_[party.name] for party in parties])
    g = together.integrator_.integration_functions_[0]
    for name, outcome in world.outcomes.items():
        h = _H[name]().fit(representation, outcome)
        model = PartyModel(party=0, integration_function=g, estimator=h)
        steps = _steps(parties[0], model, anchor)
        errors = np.sqrt(np.einsum("ij,jk,ik->i", steps, h.covariance_, steps))
        yield name, parties[0].column_effects(anchor, model, scale="unit"), steps @ h.coef_, errors


def _steps(party: Any, model: PartyModel, anchor: NDArray[np.float64]) -> NDArray[np.float64]:
    """D_j of every column, whether it is identified or not."""
    steps = []
    for column, deviation in enumerate(anchor.std(axis=0)):
        half = 0.5 * deviation * np.eye(anchor.shape[1])[column]
        moved = party.transform(anchor + half, model) - party.transform(anchor - half, model)
        steps.append(moved.mean(axis=0) / deviation)
    return np.array(steps)


def measured(seed: int) -> Iterator[Measured]:
    """Coverage of 95 % intervals over worlds and columns, how many columns are shown, and what no rule would give."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for number in range(N_WORLDS):
        one = world(np.random.default_rng([seed, number]))
        X = np.concatenate(one.rows)
        central = {name: _H[name]().fit(X, outcome) for name, outcome in one.outcomes.items()}
        for name, h in central.items():
            off = np.abs(h.coef_ - one.effects) / np.sqrt(np.diag(h.covariance_))
            found[name, "Central", "coverage"].extend(off < 1.96)
        for method, (f, n_components) in _obfuscators(X.shape[1]).items():
            anchor = one.large_anchor if method.endswith(LARGE) else one.anchor
            for name, shown, effects, errors in effects_in(one, anchor, f, n_components):
                some = shown.identified
                holds = (shown.low <= one.effects) & (one.effects <= shown.high)
                holds_central = (shown.low <= central[name].coef_) & (central[name].coef_ <= shown.high)
                found[name, method, "coverage"].extend(holds[some])
                plain = np.abs(shown.effect - one.effects) <= 1.96 * shown.se
                found[name, method, "coverage of normal intervals"].extend(plain[some])
                found[name, method, "coverage of Central's"].extend(holds_central[some])
                found[name, method, "share of columns shown"].extend(some)
                found[name, method, "coverage without the rule"].extend(np.abs(effects - one.effects) < 1.96 * errors)
                told = shown.r2 >= (0.95 if "kernel" in method else 0.99)
                found[name, method, "coverage with R2 alone"].extend(
                    (np.abs(effects - one.effects) < 1.96 * errors)[told]
                )
    for (name, method, measure), values in found.items():
        yield Measured(
            section=SECTION,
            data=f"{TABLE} {N_PARTIES}x{N_ROWS}, {name}",
            method=method,
            measure=measure,
            seed=seed,
            value=float(np.mean(values)) if values else float("nan"),
        )


WANTED = tuple(
    Wanted(
        section=SECTION,
        data=f"{TABLE} {N_PARTIES}x{N_ROWS}, {name}",
        method=method,
        measure="coverage",
        at_least=0.93,
        at_most=0.97,
    )
    for name in _H
    for method in ("Central", *_obfuscators(9))
    if method not in (ONE_LESS, THREE_LESS)
) + tuple(
    # So few anchor rows leave open what lost columns do.
    Wanted(
        section=SECTION,
        data=f"{TABLE} {N_PARTIES}x{N_ROWS}, {name}",
        method=method,
        measure="share of columns shown",
        at_most=0.0,
    )
    for name in _H
    for method in (ONE_LESS, THREE_LESS)
)


def main() -> None:
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for seed in range(5):
        for one in measured(seed):
            values[one.data, one.method, one.measure].append(one.value)
    for (data, method, measure), of_seeds in values.items():
        print(f"{data:28} {method:28} {measure:28} {np.nanmean(of_seeds):.3f} +- {np.nanstd(of_seeds):.3f}")


if __name__ == "__main__":
    main()
