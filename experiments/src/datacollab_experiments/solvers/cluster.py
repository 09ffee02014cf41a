"""KTI on one worker and on two: time on the clock for the whole fit, and what moves, beside what the model says.

Workers are processes of this machine with one BLAS thread each, so leave the machine alone meanwhile; client and
scheduler hardly compute.

    python -m datacollab_experiments.solvers.cluster [--parties 16] [--anchors 3200] [--workers 1 2] [--solver exact]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from scipy.linalg import subspace_angles
from threadpoolctl import threadpool_limits

from datacollab import KTI

from .dask_engine import DaskEngine

N_COLUMNS = 16


def draw_anchors(n_parties: int, n_anchors: int) -> dict[str, np.ndarray]:
    """Bent copies of one cloud in twelve dimensions."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n_anchors, 12))
    return {f"party-{k}": np.tanh(latent @ rng.normal(size=(12, N_COLUMNS)) / 3) for k in range(n_parties)}


class Counted(DaskEngine):
    """A Dask engine that tells what it moved and how often it summed over parties."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.totals, self.in_totals = 0, 0

    def total(self, *arguments: Any) -> np.ndarray:
        before = self.bytes_moved
        result = super().total(*arguments)
        self.totals += 1
        self.in_totals += self.bytes_moved - before
        return result


def fit(client: Client, solver: str, anchors: dict[str, np.ndarray]) -> tuple[float, KTI, Counted]:
    started = time.perf_counter()
    with Counted(client) as engine:
        fitted = KTI(16, alpha=1.0, solver=solver, engine=engine).fit(anchors)
    return time.perf_counter() - started, fitted, engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parties", type=int, default=16)
    parser.add_argument("--anchors", type=int, default=3200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--solver", choices=["exact", "nystroem"], default="exact")
    arguments = parser.parse_args()

    threadpool_limits(1)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # for the workers
    anchors = draw_anchors(arguments.parties, arguments.anchors)
    print(
        f"{arguments.parties} parties, {arguments.anchors} anchor rows, solver {arguments.solver}, "
        f"load {os.getloadavg()[0]:.1f} before\n"
    )
    print("| workers | seconds, least | all | times one worker | MB moved | in sums over parties | by the formula |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    first, target = None, None
    for n_workers in arguments.workers:
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        )
        with cluster, Client(cluster) as client:
            fit(client, arguments.solver, {party: A[:1300] for party, A in anchors.items()})
            runs = [fit(client, arguments.solver, anchors) for _ in range(arguments.repeats)]
        seconds = [run[0] for run in runs]
        least = min(seconds)
        first = first or least
        engine = runs[-1][2]
        # In every step n_a x b numbers go to each worker, and as many come back from each.
        columns = 20
        formula = engine.totals * 2 * n_workers * arguments.anchors * columns * 8
        print(
            f"| {n_workers} | {least:.1f} | {', '.join(f'{s:.1f}' for s in sorted(seconds))} | {first / least:.2f} "
            f"| {engine.bytes_moved / 1e6:.0f} | {engine.in_totals / 1e6:.0f} | {formula / 1e6:.0f} |"
        )
        if target is not None:
            print(f"\nLargest angle between the targets: {subspace_angles(target, runs[-1][1].target_).max():.1e}")
        target = runs[-1][1].target_


if __name__ == "__main__":
    main()
