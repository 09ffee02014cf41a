"""KTICV against fixed hyperparameters and against the best of its own grid, on the 18 conditions of RQ4.

Ten parties of 100 rows, 1,000 real anchors, MNIST and Fashion-MNIST, PCA, kernel PCA and UMAP (row by row) with 4, 16
and 64 columns; KTI with TSL and centring throughout, a random forest on top.  Compared are the paper's hyperparameters,
the recommended ones, KTICV, which sees anchors only, and, with --oracle, the candidate of KTICV's grid with the best
accuracy on the test rows: what a search could reach at most, and nobody can choose in practice.

Rows go to a CSV file as they are computed; a run that was stopped goes on where it was.  Exits with 1 unless KTICV is
at or above the recommended hyperparameters on the mean of all conditions.

With --alphas KTICV is given other penalties to try, and with --sources the anchors are interpolated between that many
public rows; such runs have files of their own.

    python benchmarks/selection.py --data-dir DIR [--seeds 2] [--oracle] [--alphas ...] [--sources 100]
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from datacollab import KTICV
from datacollab.analyst._kti import kernel_widths
from datacollab.analyst._kti_scoring import held_out_views
from datacollab.datasets import Dataset, load
from datacollab.linalg import Kernel
from datacollab_experiments.paper import Condition
from datacollab_experiments.paper._methods import method
from datacollab_experiments.paper._trial import Trial, draw_trial

DATASETS, OBFUSCATORS, WIDTHS = ("mnist", "fashion-mnist"), ("pca", "kernel-pca", "umap"), (4, 16, 64)
METHODS = ("paper", "recommended", "KTICV")
COLUMNS = ("dataset", "obfuscator", "n_components", "seed", "method", "accuracy", "seconds", "chosen")
Row = dict[str, Any]


def conditions(n_sources: int | None) -> list[Condition]:
    return [
        Condition(dataset=dataset, obfuscator=kind, n_components=width, n_sources=n_sources)
        for dataset, kind, width in product(DATASETS, OBFUSCATORS, WIDTHS)
    ]


def accuracy(trial: Trial, own: Mapping[Any, np.ndarray], test: Mapping[Any, np.ndarray]) -> float:
    """Mean over parties of a forest on all parties' rows, as the experiments have it."""
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=trial.seed))
    forest.fit(np.vstack(list(own.values())), np.concatenate([share.target for share in trial.shares]))
    return float(accuracy_score(np.tile(trial.y_test, len(test)), forest.predict(np.vstack(list(test.values())))))


def search_of(condition: Condition, alphas: Sequence[float] | None) -> KTICV:
    search = method("KTICV+TSL+Center", condition)
    assert isinstance(search, KTICV)
    return search if alphas is None else search.set_params(alphas=alphas)


def scored(trial: Trial, condition: Condition, name: str, alphas: Sequence[float] | None) -> Row:
    if name == "KTICV":
        integrator = search_of(condition, alphas)
    else:
        # The same f_k for all: the paper's own transform of UMAP is another matter.
        integrator = method("KTI+TSL+Center", replace(condition, hyperparameters=name, out_of_sample="row-wise"))
    start = time.perf_counter()
    integrator.fit({share.party: share.anchor_representation for share in trial.shares}, trial.shares[0].anchor_target)
    seconds = time.perf_counter() - start
    own = integrator.transform({share.party: share.representation for share in trial.shares})
    value = accuracy(trial, own, integrator.transform(trial.test_representations))
    chosen = json.dumps(integrator.best_params_) if isinstance(integrator, KTICV) else ""
    return {"method": name, "accuracy": value, "seconds": round(seconds, 1), "chosen": chosen}


def oracle(trial: Trial, condition: Condition, alphas: Sequence[float] | None) -> Row:
    """The best candidate by the accuracy on test rows, all numbers of components included."""
    search = search_of(condition, alphas)
    assert search.graph is not None
    anchors = {share.party: share.anchor_representation for share in trial.shares}
    n_own = {share.party: len(share.representation) for share in trial.shares}
    rows = {s.party: np.vstack([s.representation, trial.test_representations[s.party]]) for s in trial.shares}
    laplacian = search.graph.laplacian(anchors, trial.shares[0].anchor_target)
    best: Row = {"method": "oracle", "accuracy": -1.0}
    start = time.perf_counter()
    for kernel in search._kernels():
        widths = kernel_widths(anchors, kernel["kernel"], "median", kernel.get("gamma_factor", 1.0))
        kernels = {p: Kernel(metric=kernel["kernel"], parameters={"gamma": widths.get(p)}) for p in anchors}
        for view in held_out_views(
            anchors,
            rows,
            kernels,
            alphas=search.alphas,
            n_components=max(search.n_components),
            center=True,
            laplacian=laplacian,
            graph_weights=search.graph_weights,
        ):
            mapped = dict(zip(anchors, view.representations, strict=True))
            for number in search.n_components:
                if number > view.representations.shape[2]:
                    continue
                own = {party: values[: n_own[party], :number] for party, values in mapped.items()}
                test = {party: values[n_own[party] :, :number] for party, values in mapped.items()}
                value = accuracy(trial, own, test)
                if value > best["accuracy"]:
                    chosen = {"n_components": number, "alpha": view.alpha, "graph_weight": view.graph_weight, **kernel}
                    best |= {"accuracy": value, "chosen": json.dumps(chosen)}
    return best | {"seconds": round(time.perf_counter() - start, 1)}


def compute(arguments: argparse.Namespace, done: set[tuple[str, ...]]) -> Iterator[Row]:
    names = (*METHODS, "oracle") if arguments.oracle else METHODS
    data: dict[str, Dataset] = {}
    first = arguments.first_seed
    for seed, condition in product(range(first, first + arguments.seeds), conditions(arguments.sources)):
        where = {"dataset": condition.dataset, "obfuscator": condition.obfuscator}
        where |= {"n_components": str(condition.n_components), "seed": str(seed)}
        missing = [name for name in names if (*where.values(), name) not in done]
        if not missing:
            continue
        if condition.dataset not in data:
            data[condition.dataset] = load(condition.dataset, data_dir=arguments.data_dir)
        trial = draw_trial(condition, data[condition.dataset], seed)
        for name in missing:
            alphas = arguments.alphas
            found = oracle(trial, condition, alphas) if name == "oracle" else scored(trial, condition, name, alphas)
            yield where | found


def show(rows: list[Row]) -> bool:
    """Print means over seeds, condition by condition; whether KTICV is at or above the recommended ones on the mean."""
    names = [name for name in (*METHODS, "oracle") if any(row["method"] == name for row in rows)]
    print(
        f"{'dataset':<14}{'obfuscator':<11}{'d':>3}  " + "".join(f"{name:>12}" for name in names) + "  KTICV's choice"
    )
    table = []
    for condition in conditions(None):
        here = [
            row
            for row in rows
            if (row["dataset"], row["obfuscator"], int(row["n_components"]))
            == (condition.dataset, condition.obfuscator, condition.n_components)
        ]
        values = [[float(row["accuracy"]) for row in here if row["method"] == name] for name in names]
        if not all(values):
            continue
        table.append([float(np.mean(each)) for each in values])
        choices = {row["chosen"].replace('"', "") for row in here if row["method"] == "KTICV"}
        print(
            f"{condition.dataset:<14}{condition.obfuscator:<11}{condition.n_components:>3}  "
            + "".join(f"{value:>12.4f}" for value in table[-1])
            + f"  {'; '.join(sorted(choices))}"
        )
    means = dict(zip(names, np.mean(table, axis=0), strict=True))
    print(f"{'mean of ' + str(len(table)):<30}" + "".join(f"{value:>12.4f}" for value in means.values()))
    gains = np.array([line[names.index("KTICV")] - line[names.index("recommended")] for line in table])
    print(
        f"KTICV - recommended: {gains.mean():+.4f} on the mean, {gains.min():+.4f} at worst, "
        f"at or above in {(gains >= 0).sum()} of {len(gains)} conditions"
    )
    return bool(gains.mean() >= 0)


def file_name(alphas: Sequence[float] | None, n_sources: int | None) -> str:
    """One for every choice of options that changes what is computed."""
    parts = ["selection"]
    if n_sources is not None:
        parts.append(f"sources-{n_sources}")
    if alphas is not None:
        parts.append("-".join(["alphas", *(f"{alpha:g}" for alpha in alphas)]))
    return "-".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds the data sets")
    parser.add_argument("--seeds", type=int, default=2, help="how many trials of each condition")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--oracle", action="store_true", help="the best of the grid on the test rows, too; slow")
    parser.add_argument("--alphas", type=float, nargs="+", help="penalties that KTICV tries, instead of its own")
    parser.add_argument("--sources", type=int, help="public rows to interpolate anchors from; real anchors without")
    parser.add_argument("--output", type=Path, help="CSV file; its name is that of the options, in output/, without")
    arguments = parser.parse_args()
    output = arguments.output or Path("output") / f"{file_name(arguments.alphas, arguments.sources)}.csv"
    output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    if output.exists():
        with output.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    done = {tuple(row[column] for column in COLUMNS[:5]) for row in rows}
    with output.open("a", newline="", encoding="utf-8") as file, threadpool_limits(1):
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for row in compute(arguments, done):
            writer.writerow(row)
            file.flush()
            rows.append(row)
            print(f"\r{len(rows)} rows", end="\r", file=sys.stderr, flush=True)
    return 0 if show(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
