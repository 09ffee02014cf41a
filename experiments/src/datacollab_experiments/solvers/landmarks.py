"""How many landmarks KTI needs: objective, target, accuracy, time and memory by their number, beside exact.

Ten parties with 100 rows and 16 columns each; KTI as it is by default, with 10 components.  Two kinds of models are
fitted on all parties' collaboration representations, random forests and a logistic regression, and every party tests
them on the same rows, which nobody holds.  All methods get the same rows, in one process with one thread of BLAS.

    python -m datacollab_experiments.solvers.landmarks [--data-dir DIR] [--data tanh-12 mnist-pca ...] [--seeds 3]
    python -m datacollab_experiments.solvers.landmarks --data tanh-12 --n-anchors 100000 --methods exact-3000 512 auto
    python -m datacollab_experiments.solvers.landmarks --report-only [--output FOLDER]

Goes on where it was interrupted.  What another machine or version of the solvers measured is measured again.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from datacollab import KTI
from datacollab.errors import ApproximationWarning

from ..harness import Found, Outcome, Scored, Study, Task, attempt, cell_id, markdown, run_study, study_options
from .landmark_data import DATA, draw
from .measuring import Row, code_digest, machine, measured
from .mnist_parties import Array, Parties


def integrator(method: str, n_components: int) -> KTI:
    """By name: "exact", "auto" for as many landmarks as it takes by itself, or a number of landmarks."""
    if method.startswith("exact"):
        return KTI(n_components, solver="exact")
    return KTI(n_components, solver="nystroem", n_landmarks=None if method == "auto" else int(method))


def anchors_of(method: str, parties: Parties, seed: int) -> dict[str, Array]:
    """All anchor rows, or as many as "exact-1000" and so on name."""
    _, _, some = method.partition("-")
    if not some:
        return parties.anchors
    n_anchors = len(next(iter(parties.anchors.values())))
    rows = np.random.default_rng(seed).choice(n_anchors, int(some), replace=False)
    return {party: A[rows] for party, A in parties.anchors.items()}


def measure(
    fitted: KTI, anchors: dict[str, Array], parties: Parties, *, reference: Array | None, seed: int, forests: int
) -> Scored:
    """Fit, and compare with the exact target where there is one."""
    with measured() as measurement, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit(anchors)
    forest, logistic = accuracies(fitted, parties, seed, forests)
    found = {
        "n_landmarks": fitted.n_landmarks_,
        "missed": fitted.objective_ / (len(parties.anchors) * fitted.n_components),
        "error": fitted.approximation_error_,
        "alignment": alignment(fitted.target_, reference),
        "forest": forest,
        "logistic": logistic,
        "memory": measurement.memory,
        "warned": any(issubclass(warning.category, ApproximationWarning) for warning in caught),
    }
    scores = {name: float(value) for name, value in found.items() if value is not None}
    return scores, {"cpu": measurement.cpu}, None


def alignment(target: Array, reference: Array | None) -> float | None:
    """Mean squared cosine of the principal angles between targets of the same rows: 1 where they span one space."""
    if reference is None or len(reference) != len(target):
        return None
    cosines = np.linalg.svd(target.T @ reference, compute_uv=False)
    return float(np.mean(cosines**2))


def accuracies(fitted: KTI, parties: Parties, seed: int, forests: int) -> tuple[float, float]:
    """Mean accuracy over parties, of random forests and of a logistic regression."""
    train = np.vstack(list(fitted.transform(parties.rows).values()))
    y = np.concatenate(list(parties.targets.values()))
    tests = list(fitted.transform(parties.test).values())

    def score(model: Any) -> float:
        model.fit(train, y)
        return float(np.mean([model.score(X, parties.test_target) for X in tests]))

    several = [score(RandomForestClassifier(random_state=1000 * seed + forest)) for forest in range(forests)]
    return float(np.mean(several)), score(make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)))


@dataclass(frozen=True, kw_only=True)
class Draw(Task):
    """All methods on one draw of parties.

    Attributes
    ----------
    cells : dict of str to str
        Methods.
    data : str
    data_dir : Path or None
    sizes : dict of str to int
        Arguments of `draw`.
    n_components, forests : int
    has_exact : bool
        Whether targets are compared with the exact solver's.
    """

    data: str
    data_dir: Path | None
    sizes: Mapping[str, int]
    n_components: int
    forests: int
    has_exact: bool

    @property
    def label(self) -> str:
        """The draw in words."""
        return f"{self.data}, {self.sizes['n_anchors']:,} anchor rows, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Fit by each method; the exact target is found first."""
        parties = draw(self.data, data_dir=self.data_dir, seed=self.seed, **self.sizes)
        exact = integrator("exact", self.n_components)
        if self.has_exact and "exact" not in self.cells.values():
            exact.fit(parties.anchors)
        for cell, method in sorted(self.cells.items(), key=lambda each: each[1] != "exact"):
            fitted = exact if method == "exact" else integrator(method, self.n_components)
            reference = None if method == "exact" or not self.has_exact else exact.target_
            anchors = anchors_of(method, parties, self.seed)
            scored = partial(measure, reference=reference, seed=self.seed, forests=self.forests)
            yield attempt(cell, partial(scored, fitted, anchors, parties))


def tasks_of(options: argparse.Namespace) -> list[Draw]:
    """One task for each draw."""
    sizes = {"n_anchors": options.n_anchors, "n_parties": options.n_parties, "n_test": options.n_test}
    how = {"n_components": options.n_components, "forests": options.forests}
    here: dict[str, Any] = {"machine": machine(), "code": code_digest()}
    return [
        Draw(
            seed=seed,
            cells={
                cell_id({"landmarks": [name, method], **sizes, **how, **here}): method for method in options.methods
            },
            data=name,
            data_dir=options.data_dir,
            sizes=sizes,
            has_exact="exact" in options.methods,
            **how,
        )
        for name, seed in product(options.data, range(options.first_seed, options.first_seed + options.seeds))
    ]


def rows_of(found: Found[Draw]) -> Iterator[Row]:
    """Return rows as the table takes them."""
    for task, results in found:
        for cell, result in results.items():
            if result.error is None:
                where = {"data": task.data, "n_anchors": task.sizes["n_anchors"], "method": task.cells[cell]}
                yield where | {"seed": task.seed, **result.scores, **result.seconds}


def write(found: Found[Draw], folder: Path) -> Path:
    """Write the table into a page, and print it."""
    text = render(list(rows_of(found)))
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "README.md"
    page.write_text(text + "\n", encoding="utf-8")
    print(text)
    return page


def render(rows: list[Row]) -> str:
    """Means over seeds; accuracies beside the exact solver's, on the same draws, where that was measured."""
    by_method: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        by_method[row["data"], row["n_anchors"], row["method"]][row["seed"]] = row
    header = ["data", "n_a", "method", "seeds", "landmarks", "target missed", "last doubling", "alignment"]
    header += ["forest", "− exact", "logistic", "− exact", "CPU s", "MiB"]
    lines = []
    for (name, n_anchors, method), found in by_method.items():
        exact = by_method.get((name, n_anchors, "exact"), {})
        landmarks = sorted({int(row["n_landmarks"]) for row in found.values() if "n_landmarks" in row})
        marks = "!" if any(row["warned"] for row in found.values()) else ""
        lines.append(
            [name, f"{n_anchors:,}", method, f"{len(found)}", ", ".join(map(str, landmarks)) + marks]
            + [mean(found, name, ".4f") for name in ("missed", "error", "alignment")]
            + [
                cell
                for model in ("forest", "logistic")
                for cell in (mean(found, model, ".3f"), gain(found, exact, model))
            ]
            + [mean(found, "cpu", ".1f"), mean(found, "memory", ".0f", 2**20)]
        )
    return markdown(header, lines, numbers=True)


def mean(rows: dict[int, Row], name: str, form: str, unit: float = 1.0) -> str:
    values = [row[name] for row in rows.values() if name in row]
    return format(np.mean(values) / unit, form) if len(values) == len(rows) else ""


def gain(rows: dict[int, Row], exact: dict[int, Row], model: str) -> str:
    """Mean difference of accuracies over the seeds of both, and its standard error."""
    differences = [rows[seed][model] - exact[seed][model] for seed in rows if seed in exact]
    if not differences or rows is exact:
        return ""
    if len(differences) == 1:
        return f"{differences[0]:+.3f}"
    return f"{np.mean(differences):+.3f} ± {np.std(differences, ddof=1) / np.sqrt(len(differences)):.3f}"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m datacollab_experiments.solvers.landmarks", description=str(__doc__).splitlines()[0]
    )
    study_options(result, Path("output/landmarks"))
    result.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    result.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    result.add_argument("--methods", nargs="+", default=["exact", "128", "256", "512", "1024", "auto"])
    result.add_argument("--seeds", type=int, default=3)
    result.add_argument("--first-seed", type=int, default=0)
    result.add_argument("--n-anchors", type=int, default=4000)
    result.add_argument("--n-parties", type=int, default=10)
    result.add_argument("--n-components", type=int, default=10)
    result.add_argument("--n-test", type=int, default=1000, help="rows that every party tests the models on")
    result.add_argument("--forests", type=int, default=2, help="random forests that an accuracy is the mean of")
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    return run_study(Study(name="landmarks", tasks=tasks_of(options), write_report=write), options)


if __name__ == "__main__":
    sys.exit(main())
