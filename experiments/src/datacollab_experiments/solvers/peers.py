"""CPU time of the exact solver of KTI beside its peers: the formulas as printed, by Cholesky factors, and cca-zoo.

Ten parties with 100 rows of MNIST each and 16 columns by PCA; an RBF kernel of width 1/16, `alpha=1`, 16 components.
Each fit runs in a fresh process with one thread of BLAS, methods taking turns; a fit above 100 seconds runs once.  The
bound is the K n³/3 operations of the parties' Cholesky factors at the rate of a large product in float64.

    python -m datacollab_experiments.solvers.peers --data-dir DIR [--sizes 1000 3000] [--repeats 5]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from datacollab import KTI

from ..harness import markdown
from . import oracles
from .measuring import gemm_rate, measured, run_in_fresh_process
from .mnist_parties import Array, draw_parties, load_table

N_PARTIES = 10
N_COLUMNS = 16
N_COMPONENTS = 16
ALPHA = 1.0
GAMMA = 1 / N_COLUMNS
WARM_UP = 150
LONG = 100.0
"""Seconds of CPU from which one fit of a method is enough."""

Method = Callable[[dict[str, Array]], oracles.Integration]


def integrate_exactly(anchors: dict[str, Array]) -> oracles.Integration:
    fitted = KTI(N_COMPONENTS, solver="exact", alpha=ALPHA, gamma=GAMMA).fit(anchors)
    return oracles.Integration(fitted.target_, {}, fitted.objective_)


def by_peer(integrate: Callable[..., oracles.Integration]) -> Method:
    """Return a peer's method for this problem."""
    return lambda anchors: integrate(anchors, N_COMPONENTS, alpha=ALPHA, gamma=GAMMA)


METHODS: dict[str, Method] = {
    "naive": by_peer(oracles.naive),
    "cholesky": by_peer(oracles.cholesky),
    "cca-zoo": by_peer(oracles.kgcca),
    "exact": integrate_exactly,
}


def fit(method: str, anchors: dict[str, Array]) -> dict[str, Any]:
    """Measure one fit in this process; the first fit loads code."""
    METHODS[method]({party: A[:WARM_UP] for party, A in anchors.items()})
    with measured() as measurement:
        found = METHODS[method](anchors)
    return {"cpu": measurement.cpu, "objective": found.objective, "gemm": gemm_rate()}


def fit_in_fresh_process(method: str, anchors: Path) -> dict[str, Any]:
    """Call `fit` in a process with one thread of BLAS."""
    arguments = ["--fit", anchors, "--methods", method]
    row: dict[str, Any] = run_in_fresh_process(f"{__package__}.peers", arguments)
    return row


def compare(n_anchors: int, options: argparse.Namespace) -> list[list[str]]:
    """Return lines of the table, for one number of anchor rows."""
    X, y = load_table("mnist", options.data_dir)
    anchors = draw_parties(X, y, n_anchors=n_anchors, n_parties=N_PARTIES, n_columns=N_COLUMNS)
    rows: dict[str, list[dict[str, Any]]] = {method: [] for method in options.methods}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "anchors.npz"
        np.savez(file, allow_pickle=False, **anchors)
        for repeat in range(options.repeats):
            for method, fits in rows.items():
                if repeat == 0 or fits[0]["cpu"] < LONG:
                    fits.append(fit_in_fresh_process(method, file))
    seconds = {method: float(np.median([row["cpu"] for row in fits])) for method, fits in rows.items()}
    rate = max(row["gemm"] for fits in rows.values() for row in fits)
    bound = N_PARTIES * n_anchors**3 / 3 / rate
    minimum = rows["exact"][0]["objective"]
    lines = []
    for method, cpu in seconds.items():
        objective = rows[method][0]["objective"]
        # cca-zoo minimises another function, of centred kernels.
        off = "" if objective is None else f"{abs(objective / minimum - 1):.0e}"
        ratios = [f"{cpu / seconds['exact']:.1f}", f"{cpu / bound:.1f}"]
        lines.append([f"{n_anchors:,}", method, f"{cpu:.2f}", *ratios, off])
    return lines


HEADER = ["n_a", "method", "CPU s", "times exact", "times the bound", "objective off by"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.peers", description=str(__doc__).splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 3000], help="numbers of anchor rows")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.fit:
        print(json.dumps(fit(options.methods[0], dict(np.load(options.fit)))))
        return 0
    lines = [line for n_anchors in options.sizes for line in compare(n_anchors, options)]
    print(f"Medians of {options.repeats} fits, one thread of BLAS.\n")
    print(markdown(HEADER, lines, numbers=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
