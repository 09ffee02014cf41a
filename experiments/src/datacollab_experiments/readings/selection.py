"""KTICV against fixed hyperparameters and against the best of its own grid, on the 18 conditions of RQ4.

Ten parties of 100 rows, 1,000 real anchors, MNIST and Fashion-MNIST, PCA, kernel PCA and UMAP (row by row) with 4, 16
and 64 columns; KTI with TSL and centring throughout, a random forest on top.  Compared are the paper's hyperparameters,
the recommended ones, KTICV, which sees anchors only, and, with --oracle, the candidate of KTICV's grid with the best
accuracy on the test rows: what a search could reach at most, and nobody can choose in practice.

A run that was stopped goes on where it was.  Exits with 1 unless KTICV is at or above the
recommended hyperparameters on the mean of all conditions.

With --alphas KTICV is given other penalties to try, and with --sources the anchors are interpolated between that many
public rows.

    python -m datacollab_experiments.readings.selection --data-dir DIR [--seeds 2] [--oracle] [--alphas ...]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from datacollab import KTICV
from datacollab.analyst._kti import kernel_widths
from datacollab.analyst._kti_cv import map_held_out
from datacollab.datasets import Dataset, load
from datacollab.linalg import Kernel

from ..harness import Found, Outcome, Scored, Study, Task, attempt, cell_id, run_study, study_options
from ..paper import Condition
from ..paper._methods import method
from ..paper._trial import Trial, draw_trial

DATASETS, OBFUSCATORS, WIDTHS = ("mnist", "fashion-mnist"), ("pca", "kernel-pca", "umap"), (4, 16, 64)
METHODS = ("paper", "recommended", "KTICV")


@dataclass(frozen=True)
class Row:
    """The accuracy of one method in one condition and seed, and what was chosen, as JSON."""

    condition: Condition
    method: str
    accuracy: float
    chosen: str


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


def scored(trial: Trial, condition: Condition, name: str, alphas: Sequence[float] | None) -> Scored:
    """Accuracy of a method, with what it chose as part of the score's name."""
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
    return {f"accuracy|{chosen}": value}, {"fit": seconds}, None


def oracle(trial: Trial, condition: Condition, alphas: Sequence[float] | None) -> Scored:
    """The best candidate by the accuracy on test rows, all numbers of components included."""
    search = search_of(condition, alphas)
    assert search.graph is not None
    anchors = {share.party: share.anchor_representation for share in trial.shares}
    n_own = {share.party: len(share.representation) for share in trial.shares}
    rows = {s.party: np.vstack([s.representation, trial.test_representations[s.party]]) for s in trial.shares}
    laplacian = search.graph.laplacian(anchors, trial.shares[0].anchor_target)
    best, best_of = -1.0, ""
    numbers: list[int] = np.atleast_1d(search.n_components).tolist()
    start = time.perf_counter()
    for kernel in search._kernels():
        widths = kernel_widths(anchors, kernel["kernel"], "median", kernel.get("gamma_factor", 1.0))
        kernels = {p: Kernel(metric=kernel["kernel"], parameters={"gamma": widths.get(p)}) for p in anchors}
        for view in map_held_out(
            anchors,
            rows,
            kernels,
            alphas=search.alphas,
            n_components=max(numbers),
            center=True,
            laplacian=laplacian,
            graph_weights=search.graph_weights,
        ):
            mapped = dict(zip(anchors, view.representations, strict=True))
            for number in numbers:
                if number > view.representations.shape[2]:
                    continue
                own = {party: values[: n_own[party], :number] for party, values in mapped.items()}
                test = {party: values[n_own[party] :, :number] for party, values in mapped.items()}
                value = accuracy(trial, own, test)
                if value > best:
                    chosen = {"n_components": number, "alpha": view.alpha, "graph_weight": view.graph_weight, **kernel}
                    best, best_of = value, json.dumps(chosen)
    return {f"accuracy|{best_of}": best}, {"fit": time.perf_counter() - start}, None


@dataclass(frozen=True, kw_only=True)
class Search(Task):
    """All methods on one draw.

    Attributes
    ----------
    cells : dict of str to str
        Methods.
    condition : Condition
    alphas : tuple of float or None
        Penalties that KTICV tries, instead of its own.
    data_dir : Path or None
    """

    condition: Condition
    alphas: tuple[float, ...] | None
    data_dir: Path | None

    @property
    def label(self) -> str:
        """Condition and seed."""
        one = self.condition
        return f"{one.dataset}, {one.obfuscator} {one.n_components}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Draw once, and score each method."""
        trial = draw_trial(self.condition, _data(self.condition.dataset, self.data_dir), self.seed)
        for cell, name in self.cells.items():
            if name == "oracle":
                yield attempt(cell, partial(oracle, trial, self.condition, self.alphas))
            else:
                yield attempt(cell, partial(scored, trial, self.condition, name, self.alphas))


@lru_cache(maxsize=1)
def _data(name: str, data_dir: Path | None) -> Dataset:
    return load(name, data_dir=data_dir)


def tasks_of(options: argparse.Namespace) -> list[Search]:
    """One task for each condition and seed."""
    names = (*METHODS, "oracle") if options.oracle else METHODS
    alphas = None if options.alphas is None else tuple(options.alphas)
    tasks: list[Search] = []
    for seed, one in product(
        range(options.first_seed, options.first_seed + options.seeds), conditions(options.sources)
    ):
        cells = {cell_id({"selection": name, "alphas": alphas, "condition": asdict(one)}): name for name in names}
        tasks.append(Search(seed=seed, cells=cells, condition=one, alphas=alphas, data_dir=options.data_dir))
    return tasks


def rows_of(found: Found[Search]) -> Iterator[Row]:
    """Return rows as the table takes them."""
    for task, results in found:
        for cell, result in results.items():
            for name, value in result.scores.items():
                yield Row(task.condition, task.cells[cell], value, name.partition("|")[2])


def means_of(rows: Sequence[Row]) -> tuple[list[str], dict[Condition, list[float]]]:
    """Names of methods, and their means over seeds in each condition that has all of them."""
    names = [name for name in (*METHODS, "oracle") if any(row.method == name for row in rows)]
    found = {}
    for condition in dict.fromkeys(row.condition for row in rows):
        values = [[row.accuracy for row in rows if row.condition == condition and row.method == name] for name in names]
        if all(values):
            found[condition] = [float(np.mean(each)) for each in values]
    return names, found


def gains_of(rows: Sequence[Row]) -> np.ndarray:
    """KTICV less the recommended hyperparameters, in each condition."""
    names, table = means_of(rows)
    return np.array([line[names.index("KTICV")] - line[names.index("recommended")] for line in table.values()])


def report_text(rows: Sequence[Row]) -> str:
    """Means over seeds, condition by condition, beside what KTICV chose."""
    names, table = means_of(rows)
    lines = [
        f"{'dataset':<14}{'obfuscator':<11}{'d':>3}  " + "".join(f"{name:>12}" for name in names) + "  KTICV's choice"
    ]
    for condition, values in table.items():
        choices = {row.chosen.replace('"', "") for row in rows if row.condition == condition and row.method == "KTICV"}
        lines.append(
            f"{condition.dataset:<14}{condition.obfuscator:<11}{condition.n_components:>3}  "
            + "".join(f"{value:>12.4f}" for value in values)
            + f"  {'; '.join(sorted(choices))}"
        )
    means = np.mean(list(table.values()), axis=0)
    lines.append(f"{'mean of ' + str(len(table)):<30}" + "".join(f"{value:>12.4f}" for value in means))
    gains = gains_of(rows)
    lines.append(
        f"KTICV - recommended: {gains.mean():+.4f} on the mean, {gains.min():+.4f} at worst, "
        f"at or above in {(gains >= 0).sum()} of {len(gains)} conditions"
    )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m datacollab_experiments.readings.selection", description=str(__doc__).splitlines()[0]
    )
    study_options(result, Path("output/selection"))
    result.add_argument("--data-dir", type=Path, help="directory that holds the data sets")
    result.add_argument("--seeds", type=int, default=2, help="how many trials of each condition")
    result.add_argument("--first-seed", type=int, default=0)
    result.add_argument("--oracle", action="store_true", help="the best of the grid on the test rows, too; slow")
    result.add_argument("--alphas", type=float, nargs="+", help="penalties that KTICV tries, instead of its own")
    result.add_argument("--sources", type=int, help="public rows to interpolate anchors from; real anchors without")
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    reported: list[Row] = []

    def write(found: Found[Search], folder: Path) -> Path:
        reported.extend(rows_of(found))
        text = report_text(reported) if reported else "Nothing measured yet."
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / "report.txt"
        page.write_text(text + "\n", encoding="utf-8")
        print(text)
        return page

    status = run_study(Study(name="selection", tasks=tasks_of(options), write_report=write), options)
    return status or int(gains_of(reported).mean() < 0)


if __name__ == "__main__":
    sys.exit(main())
