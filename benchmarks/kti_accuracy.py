"""Accuracy that the low-rank solver keeps: random forests on its and on the exact collaboration representations.

Ten parties with 100 rows of MNIST each, standardised, under PCA and under kernel PCA with 16 columns; real anchor rows;
KTI with gamma 1/16, penalty 1 and 16 components.  Each party tests the common model on the same rows, which nobody else
holds, and the mean over parties counts.  Both solvers get the same rows, and the same forests.

    python benchmarks/kti_accuracy.py [--data-dir DIR] [--n-anchors 6400] [--seeds 10] [--output FILE]
    python benchmarks/kti_accuracy.py --table [--output FILE]

Goes on where it was interrupted; remove the output to start anew.  Exits with 1 where a mean difference exceeds 0.01.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, append_row, code_digest, machine, markdown, measured, read_rows
from mnist_parties import Parties, draw_parties, load_table
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from datacollab import KTI

N_COLUMNS = 16
N_COMPONENTS = 16
ALPHA = 1.0
SOLVERS = ("exact", "nystroem")
ALLOWED = 0.01
"""Difference of mean accuracies that is still called equal."""
IDENTITY = ("dataset", "obfuscator", "n_anchors", "n_parties", "n_test", "forests", "precision", "seed", "solver")


def measure(parties: Parties, *, solver: str, precision: str, forests: int, seed: int) -> Row:
    """Fit one solver and score its collaboration representations."""
    integrator = KTI(
        N_COMPONENTS, gamma=1.0 / N_COLUMNS, alpha=ALPHA, solver=solver, precision=precision, random_state=seed
    )
    with measured() as measurement:
        integrator.fit(parties.anchors)
    return {
        "cpu": measurement.cpu,
        "n_landmarks": integrator.n_landmarks_,
        "objective": integrator.objective_,
        "accuracy": accuracy(integrator, parties, forests, seed),
    }


def accuracy(integrator: KTI, parties: Parties, forests: int, seed: int) -> float:
    """Mean over parties, and over several forests, whose own chance would hide small differences."""
    train = np.vstack(list(integrator.transform(parties.rows).values()))
    y = np.concatenate(list(parties.targets.values()))
    tests = integrator.transform(parties.test)
    scores = []
    for forest in range(forests):
        model = RandomForestClassifier(random_state=1000 * seed + forest).fit(train, y)
        scores += [model.score(X, parties.test_target) for X in tests.values()]
    return float(np.mean(scores))


def run(options: argparse.Namespace) -> None:
    done = {identity(row) for row in read_rows(options.output)}
    table = None
    for kind, seed in product(options.obfuscators, range(options.seeds)):
        parties = None
        for solver in SOLVERS:
            condition: dict[str, Any] = {
                "dataset": options.dataset,
                "obfuscator": kind,
                "n_anchors": options.n_anchors,
                "n_parties": options.n_parties,
                "n_test": options.n_test,
                "forests": options.forests,
                "precision": options.precision,
                "seed": seed,
                "solver": solver,
            }
            if identity(condition) in done:
                continue
            table = table or load_table(options.dataset, options.data_dir)
            parties = parties or draw_parties(
                *table,
                n_anchors=options.n_anchors,
                n_parties=options.n_parties,
                n_columns=N_COLUMNS,
                kind=kind,
                n_test=options.n_test,
                seed=seed,
            )
            result = measure(parties, solver=solver, precision=options.precision, forests=options.forests, seed=seed)
            append_row(options.output, condition | result | {"machine": machine(), "code": code_digest()})
            outcome = f"accuracy {result['accuracy']:.4f}, {result['cpu']:.3g} s of CPU"
            print(f"{kind}, seed {seed}, {solver}: {outcome}", file=sys.stderr, flush=True)


def identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in IDENTITY)


def differences(rows: list[Row]) -> dict[tuple[Any, ...], list[tuple[Row, Row]]]:
    """Rows of both solvers by condition, paired by seed."""
    pairs: dict[tuple[Any, ...], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        pairs[identity(row)[:-1]][row["solver"]] = row
    conditions = defaultdict(list)
    for key, pair in pairs.items():
        if set(pair) == set(SOLVERS):
            conditions[key[:-1]].append(tuple(pair[solver] for solver in SOLVERS))
    return dict(conditions)


def render(rows: list[Row]) -> str:
    header = ["obfuscator", "n_a", "seeds", "exact", "nystroem", "nystroem − exact", "95 % interval", "landmarks"]
    header += ["exact, CPU s", "nystroem, CPU s"]
    lines = []
    for pairs in differences(rows).values():
        exact, nystroem = zip(*pairs, strict=True)
        gain = np.array([row["accuracy"] for row in nystroem]) - [row["accuracy"] for row in exact]
        landmarks = sorted({row["n_landmarks"] for row in nystroem})
        first = exact[0]
        lines.append(
            [f"{first['obfuscator']} {N_COLUMNS}", f"{first['n_anchors']:,}", f"{len(pairs)}"]
            + [f"{np.mean([row['accuracy'] for row in side]):.4f}" for side in (exact, nystroem)]
            + [f"{gain.mean():+.4f}", half_width(gain), ", ".join(map(str, landmarks))]
            + [f"{np.mean([row['cpu'] for row in side]):.3g}" for side in (exact, nystroem)]
        )
    return markdown(header, lines)


def half_width(values: np.ndarray) -> str:
    if len(values) < 2:
        return ""
    return f"± {stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def kept(rows: list[Row]) -> bool:
    """Whether no mean accuracy differs by more than is allowed."""
    return all(
        abs(np.mean([nystroem["accuracy"] - exact["accuracy"] for exact, nystroem in pairs])) <= ALLOWED
        for pairs in differences(rows).values()
    )


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("--output", type=Path, default=Path("output/benchmarks/kti-accuracy.jsonl"))
    result.add_argument("--table", action="store_true", help="print the table of what was measured, and fit nothing")
    result.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    result.add_argument("--dataset", default="mnist", help="mnist, or digits to try the script without any files")
    result.add_argument("--obfuscators", nargs="+", default=["pca", "kernel-pca"])
    result.add_argument("--seeds", type=int, default=10)
    result.add_argument("--n-anchors", type=int, default=6400)
    result.add_argument("--n-parties", type=int, default=10)
    result.add_argument("--n-test", type=int, default=1000, help="rows that every party tests the model on")
    result.add_argument("--forests", type=int, default=3, help="random forests that an accuracy is the mean of")
    result.add_argument("--precision", choices=("float64", "float32"), default="float64", help="of the exact solver")
    result.add_argument("--threads", type=int, default=1, help="of BLAS")
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if not options.table:
        with threadpool_limits(options.threads):
            run(options)
    rows = read_rows(options.output)
    print(render(rows))
    return 0 if kept(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
