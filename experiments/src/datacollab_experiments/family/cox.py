"""DC-COX: Cox regression on collaboration representations, by the paper's bootstrap map.

Five hospitals of 50 patients. A party's five directions are coefficients of Cox regressions on bootstrap samples of its
rows, mixed by a secret random matrix. MPP integrates, and a Cox regression with the parties as strata is fitted on what
all share. "DC, PCA" takes five principal components in place of these directions. "Distance" is the root mean square
difference of centred log risks of new rows to Central's. All regressions have the penalty of the survival benchmark.
Neither the paper nor its abstract could be had: the map is as an independent program describes it
(github.com/issac1441/dccox), and the claims are ours.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.survival import CoxRegression, concordance_index

from ..downstream.survival import Split, cox, split_of, strata_of, target_of_all
from .dealing import Array, FamilyRow, Figure, at_least, at_most, standardize

PAPER = (
    "A. Imakura, R. Tsunoda, R. Kagawa, K. Yamagata and T. Sakurai (2023). DC-COX: data collaboration Cox proportional "
    "hazards model for privacy-preserving survival analysis on multiple parties. Journal of Biomedical Informatics "
    "137, 104264."
)
TABLES = ("whas500", "gbsg2")
WIDTH = 5
CONCORDANCE = "C-index"
DISTANCE = "distance to Central"
ROWS = tuple(
    FamilyRow(PAPER, "DC-COX", f"{table} 5x50", measure, "–", claims)
    for table in TABLES
    for measure, claims in (
        (CONCORDANCE, (at_least(-0.02, "Central"), at_least(0.0, "Local"))),
        (DISTANCE, (at_most(0.0, "Local"), at_most(0.0, "DC, PCA"))),
    )
)


def bootstrap_directions(X: Array, y: NDArray[np.void], width: int, rng: np.random.Generator) -> Array:
    """Return coefficients of Cox regressions on bootstrap samples, randomly mixed, shape (n_columns, width)."""
    # Coefficients of bootstrap samples span the directions that matter for survival.
    columns = []
    for _ in range(width):
        rows = rng.integers(len(X), size=len(X))
        columns.append(cox().fit(X[rows], y[rows]).coef_)
    return np.column_stack(columns) @ rng.normal(size=(width, width))


def _principal(X: Array, y: NDArray[np.void], width: int, rng: np.random.Generator) -> Array:
    Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
    return np.asarray(Vt[:width].T @ rng.normal(size=(width, width)))


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    for table in TABLES[: 1 if small else None]:
        split = split_of(table, 5, 50, seed)
        own = {k: (standardize(X, split.anchor), y) for k, (X, y) in split.parties.items()}
        split = replace(
            split,
            parties=own,
            anchor=standardize(split.anchor, split.anchor),
            test=standardize(split.test, split.anchor),
        )
        central = _fit(split, {k: X for k, (X, _) in own.items()}).predict(split.test)
        found = {
            "Central": [central],
            "Local": [cox().fit(X, y).predict(split.test) for X, y in own.values()],
            "DC-COX": _collaborate(split, bootstrap_directions, seed),
            "DC, PCA": _collaborate(split, _principal, seed),
        }
        for method, risks in found.items():
            concordances = [concordance_index(split.test_target, risk) for risk in risks]
            yield split.label, method, CONCORDANCE, float(np.mean(concordances))
            yield split.label, method, DISTANCE, float(np.mean([np.std(risk - central) for risk in risks]))


def _collaborate(split: Split, directions: Callable[..., Array], seed: int) -> list[Array]:
    """Return each party's log risks of the test rows."""
    rng = np.random.default_rng([seed, 4])
    maps = {k: directions(X, y, WIDTH, rng) for k, (X, y) in split.parties.items()}
    g = dc.MPP(WIDTH).fit({k: split.anchor @ F for k, F in maps.items()}).integration_functions_
    model = _fit(split, {k: g[k](X @ maps[k]) for k, (X, _) in split.parties.items()})
    return [model.predict(g[k](split.test @ F)) for k, F in maps.items()]


def _fit(split: Split, rows: Mapping[int, Array]) -> CoxRegression:
    return cox().fit(np.concatenate(list(rows.values())), target_of_all(split), strata=strata_of(split.parties))
