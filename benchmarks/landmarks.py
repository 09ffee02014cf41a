"""How many landmarks KTI needs: objective, target, accuracy, time and memory by their number, beside exact.

Ten parties with 100 rows and 16 columns each; KTI as it is by default, with 10 components.  Two kinds of models are
fitted on all parties' collaboration representations, random forests and a logistic regression, and every party tests
them on the same rows, which nobody holds.  All methods get the same rows, in one process with one thread of BLAS.

    python benchmarks/landmarks.py [--data-dir DIR] [--data tanh-12 mnist-pca ...] [--n-anchors 4000] [--seeds 3]
    python benchmarks/landmarks.py --data tanh-12 --n-anchors 100000 --seeds 1 --methods exact-3000 512 auto
    python benchmarks/landmarks.py --table [--output FILE]

Goes on where it was interrupted; remove the output to start anew.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from landmark_data import DATA, draw
from measuring import Row, append_row, code_digest, machine, markdown, measured, read_rows
from mnist_parties import Array, Parties
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from datacollab import KTI
from datacollab.errors import ApproximationWarning

IDENTITY = ("data", "n_anchors", "seed", "method")


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
) -> Row:
    """Fit, and compare with the exact target where there is one."""
    with measured() as measurement, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted.fit(anchors)
    forest, logistic = accuracies(fitted, parties, seed, forests)
    return {
        "n_landmarks": fitted.n_landmarks_,
        "missed": fitted.objective_ / (len(parties.anchors) * fitted.n_components),
        "error": fitted.approximation_error_,
        "alignment": alignment(fitted.target_, reference),
        "forest": forest,
        "logistic": logistic,
        "cpu": measurement.cpu,
        "memory": measurement.memory,
        "warned": any(issubclass(warning.category, ApproximationWarning) for warning in caught),
    }


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


def run(options: argparse.Namespace) -> None:
    done = {identity(row) for row in read_rows(options.output)}
    for name, seed in product(options.data, range(options.first_seed, options.first_seed + options.seeds)):
        conditions = [
            {"data": name, "n_anchors": options.n_anchors, "seed": seed, "method": method} for method in options.methods
        ]
        if all(identity(condition) in done for condition in conditions):
            continue
        sizes = {"n_anchors": options.n_anchors, "n_parties": options.n_parties, "n_test": options.n_test}
        parties = draw(name, data_dir=options.data_dir, seed=seed, **sizes)
        reference = None
        for condition in conditions:
            fitted = integrator(condition["method"], options.n_components)
            if condition["method"] != "exact" and identity(condition) in done:
                continue
            anchors = anchors_of(condition["method"], parties, seed)
            result = measure(fitted, anchors, parties, reference=reference, seed=seed, forests=options.forests)
            if condition["method"] == "exact":
                reference = fitted.target_
            if identity(condition) not in done:
                append_row(options.output, condition | result | {"machine": machine(), "code": code_digest()})
            outcome = f"forest {result['forest']:.4f}, {result['cpu']:.3g} s of CPU"
            print(f"{name}, seed {seed}, {condition['method']}: {outcome}", file=sys.stderr, flush=True)


def identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in IDENTITY)


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
        landmarks = sorted({row["n_landmarks"] for row in found.values()} - {None})
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
    return markdown(header, lines)


def mean(rows: dict[int, Row], name: str, form: str, unit: float = 1.0) -> str:
    values = [row[name] for row in rows.values()]
    return "" if None in values else format(np.mean(values) / unit, form)


def gain(rows: dict[int, Row], exact: dict[int, Row], model: str) -> str:
    """Mean difference of accuracies over the seeds of both, and its standard error."""
    differences = [rows[seed][model] - exact[seed][model] for seed in rows if seed in exact]
    if not differences or rows is exact:
        return ""
    if len(differences) == 1:
        return f"{differences[0]:+.3f}"
    return f"{np.mean(differences):+.3f} ± {np.std(differences, ddof=1) / np.sqrt(len(differences)):.3f}"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("--output", type=Path, default=Path("output/benchmarks/landmarks.jsonl"))
    result.add_argument("--table", action="store_true", help="print the table of what was measured, and fit nothing")
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
    result.add_argument("--threads", type=int, default=1, help="of BLAS")
    return result


def main(arguments: list[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    if not options.table:
        with threadpool_limits(options.threads):
            run(options)
    print(render(read_rows(options.output)))


if __name__ == "__main__":
    main()
