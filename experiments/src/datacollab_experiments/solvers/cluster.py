"""KTI on 1 to 4 workers of a Dask cluster on this machine: time on the clock, and CPU time of each process.

Workers are processes with one BLAS thread each.  Where the machine has fewer cores than workers, or other work, the
clock says little: the table then also shows the CPU time of this process (client and scheduler), which is not parallel,
and of the busiest worker.  One after the other, they are the time on a machine with a core for each.

    python -m datacollab_experiments.solvers.cluster [--parties 16] [--anchors 3200] [--workers 1 2 3 4]
"""

import argparse
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from datacollab import KTI

N_COLUMNS = 16
N_COMPONENTS = 16
WARM_UP_ROWS = 1300
"""Just more than what is solved without the cluster."""


@dataclass(frozen=True)
class ClusterRun:
    """Seconds that one fit took: on the clock, and of CPU in this process and in each worker."""

    clock: float
    here: float
    workers: tuple[float, ...]

    @property
    def with_a_core_each(self) -> float:
        """Return the time of client and busiest worker, one after the other."""
        return self.here + max(self.workers)

    @property
    def serial_share(self) -> float:
        """Return the share of all CPU time that more workers do not take over."""
        return self.here / (self.here + sum(self.workers))


def expected_speed(serial_share: float, n_workers: int) -> float:
    """Return how many times as fast as one worker several can be, by Amdahl's law."""
    return 1 / (serial_share + (1 - serial_share) / n_workers)


def draw_anchors(n_parties: int, n_anchors: int) -> dict[str, np.ndarray]:
    """Return bent copies of one cloud in twelve dimensions."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n_anchors, 12))
    return {f"party-{k}": np.tanh(latent @ rng.normal(size=(12, N_COLUMNS)) / 3) for k in range(n_parties)}


def fit(client: Client, solver: str, anchors: dict[str, np.ndarray]) -> tuple[ClusterRun, KTI]:
    before = client.run(time.process_time)
    clock = time.perf_counter()
    here = time.process_time()
    fitted = KTI(N_COMPONENTS, alpha=1.0, solver=solver, engine=client).fit(anchors)
    clock = time.perf_counter() - clock
    here = time.process_time() - here
    after = client.run(time.process_time)
    return ClusterRun(clock, here, tuple(after[worker] - before[worker] for worker in before)), fitted


def fit_repeatedly(
    n_workers: int, solver: str, anchors: dict[str, np.ndarray], repeats: int
) -> tuple[list[ClusterRun], KTI]:
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        fit(client, solver, {party: A[:WARM_UP_ROWS] for party, A in anchors.items()})
        runs = [fit(client, solver, anchors) for _ in range(repeats)]
    return [run for run, _ in runs], runs[-1][1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parties", type=int, default=16)
    parser.add_argument("--anchors", type=int, default=3200)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--solver", choices=["exact", "nystroem"], default="exact")
    given = parser.parse_args(arguments)

    threadpool_limits(1)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # for the workers
    anchors = draw_anchors(given.parties, given.anchors)
    print(
        f"{given.parties} parties, {given.anchors} anchor rows, solver {given.solver}; {os.cpu_count()} cores of "
        f"{platform.machine()}, load {os.getloadavg()[0]:.1f} before\n"
    )
    print("| workers | clock, least of all | CPU: here | busiest worker | all workers | with a core each | Amdahl |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    first: tuple[ClusterRun, np.ndarray] | None = None
    for n_workers in given.workers:
        runs, fitted = fit_repeatedly(n_workers, given.solver, anchors, given.repeats)
        # Other work only adds to the CPU time of a run.
        best = min(runs, key=lambda run: run.with_a_core_each)
        first = first or (best, fitted.target_)
        baseline, target = first
        clocks = ", ".join(f"{run.clock:.1f}" for run in sorted(runs, key=lambda run: run.clock))
        print(
            f"| {n_workers} | {clocks} | {best.here:.2f} | {max(best.workers):.2f} | {sum(best.workers):.2f} "
            f"| {best.with_a_core_each:.2f} (× {baseline.with_a_core_each / best.with_a_core_each:.2f}) "
            f"| × {expected_speed(baseline.serial_share, n_workers):.2f} |",
            flush=True,
        )
    print(f"\nNot parallel with {given.workers[0]} worker(s): {baseline.serial_share:.1%} of the CPU time.")
    difference = abs(fitted.target_ - target).max()
    print(f"Largest difference between entries of the first and the last target: {difference:.1e}")
    print(f"Load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
