"""How far KTI's landmark solver is above the exact minimum, and what it takes, beside the exact solver.

Ten parties with 100 rows of MNIST each and 16 columns, by PCA, kernel PCA or UMAP, and KTI with 16 components, as it is
by default otherwise.  Each solver fits in a fresh process, in pairs that take turns, with one thread of BLAS.  Medians
over pairs: seconds of CPU, and bytes at the peak beyond those in use when the fit began.  Two gaps to the exact
minimum, relative to it: of the target, with the best functions there are, and of target and functions as they are
returned.  Both are evaluated in float64, by code of its own.

    python -m datacollab_experiments.solvers.gap --data-dir DIR [--n-anchors 10000] [--kinds pca kernel-pca] [--pairs 3]
    python -m datacollab_experiments.solvers.gap --data-dir DIR --n-anchors 2000 --landmarks 512 2000
"""

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from datacollab import KTI
from datacollab.errors import ApproximationWarning

from ..harness import markdown
from . import oracles
from .measuring import measured, run_in_fresh_process
from .mnist_parties import Array, draw_parties, load_table

COMPONENTS = 16
WARM_UP = 300
AUTO = 0
"""Number of landmarks that stands for as many as the solver takes by itself."""


def integrator(n_landmarks: int | None) -> KTI:
    """Return the integrator; None stands for the exact solver."""
    if n_landmarks is None:
        return KTI(COMPONENTS, solver="exact")
    return KTI(COMPONENTS, solver="nystroem", n_landmarks=n_landmarks or None)


def fit(anchors: dict[str, Array], n_landmarks: int | None, result: Path | None) -> dict[str, Any]:
    """Measure one fit in this process; the target and the functions go to a file if one is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        # The first fit loads code.
        integrator(n_landmarks and min(n_landmarks, WARM_UP)).fit({k: A[:WARM_UP] for k, A in anchors.items()})
        with measured() as measurement:
            fitted = integrator(n_landmarks).fit(anchors)
    if result is not None:
        arrays = {"target": fitted.target_}
        maps: Any = fitted.integration_functions_
        for party, g in maps.items():
            arrays |= {f"centres {party}": g.anchor_representation, f"coefficients {party}": g.coefficients}
        np.savez(result, allow_pickle=False, **arrays)
    return {
        "cpu": measurement.cpu,
        "memory": measurement.memory,
        "objective": fitted.objective_,
        "landmarks": fitted.n_landmarks_,
        "gammas": {party: float(gamma) for party, gamma in fitted.gammas_.items()},
    }


def fit_in_fresh_process(anchors: Path, n_landmarks: int | None, result: Path | None = None) -> dict[str, Any]:
    """Call `fit` in a process with one thread of BLAS."""
    arguments: list[object] = ["--fit", anchors]
    if n_landmarks is not None:
        arguments += ["--landmarks", n_landmarks]
    if result is not None:
        arguments += ["--result", result]
    found: dict[str, Any] = run_in_fresh_process(f"{__package__}.gap", arguments)
    return found


def objective_of(
    anchors: dict[str, Array], found: dict[str, Array], *, alpha: float, gammas: dict[str, float]
) -> float:
    """Return the objective (eq. kernel-formulation) at the target and the functions returned."""
    total = 0.0
    for party, A in anchors.items():
        S = found[f"centres {party}"]
        Gamma = found[f"coefficients {party}"]
        missed = rbf_kernel(A, S, gamma=gammas[party]) @ Gamma - found["target"]
        total += float(np.sum(missed**2) + alpha * np.sum(Gamma * (rbf_kernel(S, gamma=gammas[party]) @ Gamma)))
    return total


def compare(kind: str, options: argparse.Namespace) -> list[list[str]]:
    """Return lines of the table, for one kind of representation."""
    X, y = load_table("mnist", options.data_dir)
    anchors = draw_parties(X, y, n_anchors=options.n_anchors, kind=kind)
    alpha = float(KTI().alpha)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "anchors.npz"
        result = Path(scratch) / "result.npz"
        np.savez(file, allow_pickle=False, **anchors)
        for n_landmarks in options.landmarks:
            exact = []
            few = []
            for _ in range(options.pairs):
                exact.append(fit_in_fresh_process(file, None))
                few.append(fit_in_fresh_process(file, n_landmarks, result))
            found = dict(np.load(result))
            problem = {"alpha": alpha, "gamma": exact[0]["gammas"]}
            least = exact[0]["objective"]
            gaps = [
                oracles.attained(anchors, found["target"], **problem) / least - 1,
                objective_of(anchors, found, alpha=alpha, gammas=exact[0]["gammas"]) / least - 1,
            ]
            name = "as it chooses" if n_landmarks == AUTO else f"{n_landmarks:,}"
            lines.append(
                [kind, f"{options.n_anchors:,}", name, f"{few[0]['landmarks']:,}"]
                + [f"{100 * gap:.4g}" for gap in gaps]
                + [f"{np.median([row['cpu'] for row in rows]):.1f}" for rows in (few, exact)]
                + [f"{np.median([a['cpu'] / b['cpu'] for a, b in zip(few, exact, strict=True)]):.2f}"]
                + [f"{np.median([row['memory'] for row in rows]) / 2**30:.2f}" for rows in (few, exact)]
            )
            print(markdown(HEADER, [lines[-1]], numbers=True), flush=True)
    return lines


HEADER = ["representation", "n_a", "asked for", "landmarks", "target above, %", "functions above, %"]
HEADER += ["CPU s", "exact", "ratio", "GiB", "exact"]


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog=f"python -m {__package__}.gap", description=str(__doc__).splitlines()[0])
    result.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    result.add_argument("--kinds", nargs="+", default=["pca", "kernel-pca", "umap"], help="of representations")
    result.add_argument("--n-anchors", type=int, default=10_000)
    result.add_argument("--landmarks", nargs="+", type=int, help="numbers of landmarks; as it chooses without")
    result.add_argument("--pairs", type=int, default=3)
    result.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    result.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.fit:
        anchors = dict(np.load(options.fit))
        n_landmarks = None if options.landmarks is None else options.landmarks[0]
        print(json.dumps(fit(anchors, n_landmarks, options.result)))
        return 0
    options.landmarks = options.landmarks or [AUTO]
    lines = [line for kind in options.kinds for line in compare(kind, options)]
    print(f"Medians of {options.pairs} pairs, one thread of BLAS.\n")
    print(markdown(HEADER, lines, numbers=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
