"""Readings that were tried on printed numbers that we do not get, fixed beforehand in lists.

``python -m datacollab_experiments.readings.tries lti --data-dir DIR --seeds 2 --to FILE``
    LTI in RQ4 under PCA, its six cells: how rows are dealt, obfuscated, anchored, integrated and classified.
``python -m datacollab_experiments.readings.tries concentration --data-dir DIR --seeds 10 --to FILE``
    RQ4 under PCA and kernel PCA, with a concentration of 1.5 instead of 2.
``python -m datacollab_experiments.readings.tries latitude --data-dir DIR --seeds 2 --to FILE``
    UJIIndoorLoc under PCA and kernel PCA: where columns are standardised, and how wide kernels are.
``python -m datacollab_experiments.readings.tries kernels --data-dir DIR --seeds 4 --to FILE``
    RQ4 under PCA and kernel PCA: what KTI minimises, how its kernels are scaled, and gamma, as `kernels` lists them.

Scores go to a file of comma-separated values as they come, a line for each reading, cell and seed.  A run goes on where
the file ends.  The page that ``datacollab_experiments.readings.printed`` writes holds them against the printed numbers.
"""

from __future__ import annotations

import argparse
import copy
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler

from datacollab._validation import PartyName
from datacollab.analyst import KTI, LTI, BaseIntegrator, TargetSimilarityGraph
from datacollab.datasets import Dataset, load
from datacollab.party import Party, obfuscator

from ..paper import Condition, Trial, draw_trial, score_method
from ..paper._trial import FittedParties, draw_rows
from . import kernels
from .kernels import Cell

__all__ = ["AS_RUN", "Cell", "main", "read"]

SKEWED = Condition(
    obfuscator="pca", n_sources=None, split="label-skew", concentration=2.0, kernel_width="median",
    hyperparameters="paper",
)  # fmt: skip
"""RQ4 as the preset `printed` has it."""
LATITUDE = Condition(dataset="ujiindoorloc", obfuscator="pca", hyperparameters="paper")

Try = tuple[str, Cell, Callable[[], float]]
"""Reading, cell, and what computes its accuracy or error for one seed."""
AS_RUN = "as run"

MakeObfuscator = Callable[[Condition, int, np.random.RandomState], Any]


def standardised(data: Dataset) -> Dataset:
    """Return the data with columns of mean 0 and variance 1 over all rows."""
    found = copy.copy(data)
    found.X = found.data = StandardScaler().fit_transform(data.X)
    return found


def fitted_with(condition: Condition, data: Dataset, seed: int, make: MakeObfuscator) -> FittedParties:
    """Let the parties of a trial fit other obfuscators than those of the condition."""
    drawn = draw_rows(condition, data, seed)
    parties: dict[PartyName, Party] = {
        name: Party(name, make(condition, k, np.random.RandomState([seed, k]))).fit(own.X, own.y)
        for k, (name, own) in enumerate(drawn.split.items(), start=1)
    }
    return FittedParties(drawn.split, parties, {name: party.obfuscate(drawn.X_test) for name, party in parties.items()})


def pca(standardize: bool) -> MakeObfuscator:
    """Make PCA, of columns that the party standardises or leaves as they are."""
    return lambda condition, _, random_state: obfuscator(
        "pca", condition.n_components, random_state=random_state, standardize=standardize
    )


def not_centred(condition: Condition, _: int, random_state: np.random.RandomState) -> Any:
    """Make a singular value decomposition of rows that are not centred."""
    return TruncatedSVD(condition.n_components, random_state=random_state)


def accuracy(
    trial: Trial, integrator: BaseIntegrator, *, by_party: bool = False, alone: bool = False, **forest: Any
) -> float:
    """Mean accuracy over parties.

    Parameters
    ----------
    trial : Trial
    integrator : BaseIntegrator
    by_party : bool
        Whether each party standardises collaboration representations by its own rows.
    alone : bool
        Whether each party trains on its own collaboration representations alone.
    **forest
        Parameters of the classifier.
    """
    integrator.fit({s.party: s.anchor_representation for s in trial.shares}, trial.shares[0].anchor_target)
    return accuracy_with(trial, integrator.integration_functions_, by_party=by_party, alone=alone, **forest)


def accuracy_with(
    trial: Trial, functions: Mapping[Any, Any], *, by_party: bool = False, alone: bool = False, **forest: Any
) -> float:
    """Return the same for integration functions that are given."""
    own = {s.party: functions[s.party](s.representation) for s in trial.shares}
    tested = {party: functions[party](rows) for party, rows in trial.test_representations.items()}
    targets = {s.party: s.target for s in trial.shares}
    pooled = StandardScaler().fit(np.vstack(list(own.values())))
    scalers = {party: StandardScaler().fit(rows) if by_party else pooled for party, rows in own.items()}
    scaled = {party: scalers[party].transform(rows) for party, rows in own.items()}

    def model(parties: Sequence[Any]) -> Any:
        X, y = np.vstack([scaled[p] for p in parties]), np.concatenate([targets[p] for p in parties])
        return RandomForestClassifier(random_state=trial.seed, **forest).fit(X, y)

    common = None if alone else model(list(own))
    return float(
        np.mean([
            accuracy_score(trial.y_test, (common or model([party])).predict(scalers[party].transform(rows)))
            for party, rows in tested.items()
        ])
    )  # fmt: skip


def lti(datasets: Mapping[str, Dataset], scaled: Mapping[str, Dataset], seed: int) -> Iterator[Try]:
    """Try LTI in its six cells under PCA."""
    for name, data in datasets.items():
        for width in (4, 16, 64):
            condition = replace(SKEWED, dataset=name, n_components=width)
            for reading, score in _lti_readings(condition, data, scaled[name], seed):
                yield reading, (name, "pca", width, "LTI"), score


def _lti_readings(
    condition: Condition, data: Dataset, scaled: Dataset, seed: int
) -> Iterator[tuple[str, Callable[[], float]]]:
    width = condition.n_components
    trial = cache(lambda: draw_trial(condition, data, seed))

    def under(**settings: Any) -> Callable[[], float]:
        other = replace(condition, **settings)
        return lambda: accuracy(draw_trial(other, data, seed), LTI(n_components=width))

    def obfuscated(rows: Dataset, make: MakeObfuscator) -> Callable[[], float]:
        return lambda: accuracy(
            draw_trial(condition, rows, seed, fitted_with(condition, rows, seed, make)), LTI(n_components=width)
        )

    yield AS_RUN, lambda: accuracy(trial(), LTI(n_components=width))
    yield "concentration 1.5", under(concentration=1.5)
    yield "300 anchors", under(n_anchors=300)
    yield "SMOTE's anchors from 100 rows", under(n_sources=100)
    yield "pixels standardised over all rows", obfuscated(scaled, pca(standardize=False))
    yield "pixels standardised by each party", obfuscated(data, pca(standardize=True))
    yield "PCA without centring", obfuscated(data, not_centred)
    yield "intercepts, centred target", lambda: accuracy(trial(), LTI(n_components=width, fit_intercept=True))
    ridge = KTI(n_components=width, kernel="linear", alpha=1.0)
    yield "ridge with λ = 1", lambda: accuracy(trial(), ridge)
    yield (
        "each party standardises its integrated rows",
        lambda: accuracy(trial(), LTI(n_components=width), by_party=True),
    )
    yield "each party trains on its own rows alone", lambda: accuracy(trial(), LTI(n_components=width), alone=True)
    yield "50 trees", lambda: accuracy(trial(), LTI(n_components=width), n_estimators=50)
    yield "all columns tried at each split", lambda: accuracy(trial(), LTI(n_components=width), max_features=None)


def concentration(datasets: Mapping[str, Dataset], _: Mapping[str, Dataset], seed: int) -> Iterator[Try]:
    """Try a concentration of 1.5 in RQ4 under PCA, where KTI has half the gamma, and under kernel PCA."""
    graph = TargetSimilarityGraph(10, scale="std")
    for kind, gamma in (("pca", 0.5), ("kernel-pca", 1.0)):
        for name, data in datasets.items():
            for width in (4, 16, 64):
                condition = replace(SKEWED, dataset=name, obfuscator=kind, n_components=width, concentration=1.5)
                trial = cache(partial(draw_trial, condition, data, seed))
                for method, integrator in {
                    "LTI": LTI(n_components=width),
                    "KTI": KTI(n_components=width, gamma=gamma, alpha=1.0),
                    "KTI+TSL": KTI(n_components=width, gamma=gamma, alpha=1.0, graph=graph),
                }.items():
                    halved = ", γ = 1/2" if gamma < 1 and method != "LTI" else ""
                    yield (
                        f"concentration 1.5{halved}",
                        (name, kind, width, method),
                        partial(_accuracy, trial, integrator),
                    )


def kernel_readings(datasets: Mapping[str, Dataset], _: Mapping[str, Dataset], seed: int) -> Iterator[Try]:
    """Try the readings of KTI in the cells of `kernels`."""
    for name, kind, width in dict.fromkeys(cell[:3] for cell in kernels.CELLS):
        assert width is not None
        condition = replace(SKEWED, dataset=name, obfuscator=kind, n_components=width)
        trial = cache(partial(draw_trial, condition, datasets[name], seed))
        functions = cache(lambda trial=trial: dict(kernels.functions_by_reading(trial())))
        for reading, method in product(kernels.READINGS, kernels.METHODS):
            cell = (name, kind, width, method)
            if cell in kernels.CELLS:
                yield str(reading), cell, partial(_accuracy_with, trial, functions, (reading, method))


def _accuracy_with(trial: Callable[[], Trial], functions: Callable[[], Mapping[Any, Any]], which: Any) -> float:
    return accuracy_with(trial(), functions()[which])


def _accuracy(trial: Callable[[], Trial], integrator: BaseIntegrator) -> float:
    return accuracy(trial(), integrator)


def latitude(datasets: Mapping[str, Dataset], scaled: Mapping[str, Dataset], seed: int) -> Iterator[Try]:
    """Try UJIIndoorLoc with columns standardised elsewhere, and with wider kernels."""
    data, pooled = datasets[LATITUDE.dataset], scaled[LATITUDE.dataset]
    kernel = replace(LATITUDE, obfuscator="kernel-pca")
    linear = ("LTI", "MPP", "ODC", "KTI")
    everywhere = "columns standardised over all rows"
    for reading, condition, rows, make, names, own in (
        (everywhere, LATITUDE, pooled, pca(standardize=False), ("LTI", "MPP", "KTI", "KTI+GL", "KTI+TSL"), _HALVED),
        (everywhere, kernel, pooled, kernel_pca("median-squared"), linear, {}),
        ("wider kernel PCA", kernel, data, kernel_pca("median", standardize=True), linear, {}),
        (f"{everywhere}, wider kernel PCA", kernel, pooled, kernel_pca("median"), linear, {}),
    ):
        trial = cache(partial(_drawn, condition, rows, seed, make))
        runs = [(method, None) for method in names] + list(own.items())
        for method, settings in runs:
            cell = (LATITUDE.dataset, condition.obfuscator, None, method)
            halved = ", γ = 1/2" if settings else ""
            yield reading + halved, cell, partial(_error, trial, method, condition, settings)


def _drawn(condition: Condition, rows: Dataset, seed: int, make: MakeObfuscator) -> Trial:
    return draw_trial(condition, rows, seed, fitted_with(condition, rows, seed, make))


def _error(trial: Callable[[], Trial], method: str, condition: Condition, settings: Mapping[str, Any] | None) -> float:
    return score_method(trial(), method, condition, "regression", settings).value


_HALF: dict[str, Any] = {"class": "datacollab:KTI", "gamma": 0.5, "alpha": 1.0}
_HALVED = {
    "KTI": _HALF,
    "KTI+GL": _HALF | {"graph": {"class": "datacollab.analyst:GeometricGraph", "n_neighbors": 10}},
    "KTI+TSL": _HALF
    | {"graph": {"class": "datacollab.analyst:TargetSimilarityGraph", "n_neighbors": 10, "scale": "std"}},
}


def kernel_pca(width: str, *, standardize: bool = False) -> MakeObfuscator:
    """Make kernel PCA of a width, of columns that the party standardises or leaves as they are."""
    factor = {"median": 1.0, "median-squared": 0.5**0.5}[width]
    return lambda condition, _, random_state: obfuscator(
        "kernel-pca", condition.n_components, random_state=random_state, standardize=standardize,
        bandwidth_factor=factor,
    )  # fmt: skip


def read(file: Path) -> dict[str, dict[Cell, dict[int, float]]]:
    """Return the scores of a file by reading, cell and seed; none where there is no file."""
    found: dict[str, dict[Cell, dict[int, float]]] = {}
    if not file.exists():
        return found
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            width = int(line["n_components"]) if line["n_components"] else None
            cell = (line["dataset"], line["obfuscator"], width, line["method"])
            found.setdefault(line["reading"], {}).setdefault(cell, {})[int(line["seed"])] = float(line["score"])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(_TRIES))
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--to", type=Path, required=True, help="file of scores")
    given = parser.parse_args(arguments)
    names, tried = _TRIES[given.what]
    datasets = {name: load(name, data_dir=given.data_dir) for name in names}
    scaled = {name: standardised(data) for name, data in datasets.items()}
    if not given.to.exists():
        given.to.write_text(f"{','.join(COLUMNS)}\n", encoding="utf-8")
    done = read(given.to)
    with given.to.open("a", encoding="utf-8", newline="", buffering=1) as file:
        lines = csv.writer(file, lineterminator="\n")
        for seed in range(given.seeds):
            for reading, cell, score in tried(datasets, scaled, seed):
                if seed not in done.get(reading, {}).get(cell, {}):
                    lines.writerow([reading, *cell, seed, f"{score():.6g}"])


IMAGES = ("mnist", "fashion-mnist")
COLUMNS = ("reading", "dataset", "obfuscator", "n_components", "method", "seed", "score")
_TRIES = {
    "lti": (IMAGES, lti),
    "concentration": (IMAGES, concentration),
    "latitude": ((LATITUDE.dataset,), latitude),
    "kernels": (IMAGES, kernel_readings),
}


if __name__ == "__main__":
    main()
