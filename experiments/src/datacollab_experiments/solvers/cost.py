"""Costs of fits of KTI, beside `KTI.estimate_cost`: bytes at the peak and seconds of CPU.

Every fit runs in a fresh process with one thread of BLAS.  Bytes are the largest resident set that the
system saw of that process (ru_maxrss): Python, the anchor representations and the fit.  Seconds are CPU time of the fit
alone.  The machine's speeds, by which an estimate of seconds is made, are measured in the same process, before and
after the fit; the mean counts.

    python -m datacollab_experiments.solvers.cost [--largest 100000] [--output experiments/docs/cost.csv]
    python -m datacollab_experiments.solvers.cost --report-only

Rows that are in the file are not measured again.  Every party sees tanh of linear combinations of its own of a Gaussian
latent with 12 dimensions.  KTI is as it is by default but for the case's parameters.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datacollab import KTI
from datacollab.analyst._cost import FitCost
from datacollab.errors import ApproximationWarning

from .measuring import run_in_fresh_process

# Fewer latent dimensions than columns, as real representations have.
_LATENT = 12
_ROWS = 10_000
# Enough rows for every part of a fit to be loaded.
_WARM_UP = 300


@dataclass(frozen=True, kw_only=True, order=True)
class Case:
    """One fit.

    Attributes
    ----------
    n_landmarks : int
        0 for as many as "nystroem" takes by itself.
    gib : float
        `memory_limit`; 0 for none.
    """

    solver: str
    n_anchors: int
    n_parties: int = 10
    n_columns: int = 16
    n_components: int = 10
    kernel: str = "rbf"
    n_landmarks: int = 0
    dtype: str = "float64"
    gib: float = 0.0

    def integrator(self) -> KTI:
        return KTI(
            self.n_components,
            solver=self.solver,
            kernel=self.kernel,
            n_landmarks=self.n_landmarks or None,
            memory_limit=self.gib * 2**30 or None,
        )

    def estimate(self) -> FitCost:
        """Return the estimate before the fit, on a machine with any memory."""
        # An estimate on this machine would depend on its memory.
        unlimited = self.integrator()
        unlimited.memory_limit = self.gib * 2**30 or 2.0**60
        return unlimited.estimate_cost(self.n_anchors, self.n_parties, self.n_columns, np.dtype(self.dtype))


@dataclass(frozen=True, kw_only=True)
class MeasuredFit:
    """The cost of a fit, and the speed of the machine meanwhile."""

    case: Case
    memory: int
    seconds: float
    speeds: dict[str, float]
    landmarks: int

    @property
    def ratios(self) -> tuple[float, float]:
        """Estimated over measured, of bytes and of seconds."""
        cost = self.case.estimate()
        return cost.memory / self.memory, cost.seconds_at(self.speeds) / self.seconds


def plan() -> Iterator[Case]:
    """Yield all fits, small ones first."""
    for n_anchors in (1000, 2000, 4000):
        yield Case(solver="exact", n_anchors=n_anchors)
        yield Case(solver="exact", n_anchors=n_anchors, n_parties=3)
    for kernel in ("laplacian", "poly", "cosine", "linear"):
        yield Case(solver="exact", n_anchors=1000, kernel=kernel, n_parties=3)
        yield Case(solver="nystroem", n_anchors=20_000, kernel=kernel, n_parties=3, n_landmarks=256)
    for n_anchors in (1000, 10_000, 30_000, 100_000):
        yield Case(solver="nystroem", n_anchors=n_anchors, n_landmarks=256)
    for n_parties in (3, 30):
        yield Case(solver="nystroem", n_anchors=10_000, n_parties=n_parties, n_landmarks=256)
    yield Case(solver="nystroem", n_anchors=10_000)
    yield Case(solver="nystroem", n_anchors=30_000)
    yield Case(solver="nystroem", n_anchors=30_000, n_columns=64, n_landmarks=512)
    yield Case(solver="nystroem", n_anchors=30_000, n_components=32, n_landmarks=512)
    yield Case(solver="nystroem", n_anchors=100_000, n_landmarks=256, dtype="float32")
    yield Case(solver="nystroem", n_anchors=100_000)
    yield Case(solver="nystroem", n_anchors=300_000, n_landmarks=256)
    yield Case(solver="nystroem", n_anchors=1_000_000, n_landmarks=256, gib=4.0)
    yield Case(solver="auto", n_anchors=1_000_000, gib=4.0)


def anchors(case: Case) -> dict[str, NDArray[Any]]:
    """Return representations, made some rows at a time so that the fit takes more memory than they do."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(case.n_parties, _LATENT, case.n_columns)) / np.sqrt(_LATENT)
    result = {f"party-{k}": np.empty((case.n_anchors, case.n_columns), case.dtype) for k in range(case.n_parties)}
    for start in range(0, case.n_anchors, _ROWS):
        latent = rng.normal(size=(min(_ROWS, case.n_anchors - start), _LATENT))
        for A, W in zip(result.values(), weights, strict=True):
            A[start : start + len(latent)] = np.tanh(latent @ W) / 0.63
    return result


def fit(case: Case) -> dict[str, Any]:
    """Measure one fit in this process."""
    representations = anchors(case)
    integrator = case.integrator()
    cost = case.estimate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ApproximationWarning)
        # The first fit loads code.
        integrator.fit(anchors(replace(case, n_anchors=_WARM_UP)))
        # The machine is shared: its speed is measured before and after.
        before = cost.speeds()
        started = time.process_time()
        integrator.fit(representations)
    seconds = time.process_time() - started
    # macOS counts bytes, and Linux kibibytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    after = cost.speeds()
    speeds = {name: (before[name] + after[name]) / 2 for name in before}
    return {"memory": peak, "seconds": seconds, "landmarks": integrator.n_landmarks_ or 0, "speeds": speeds}


def in_fresh_process(case: Case) -> MeasuredFit:
    """Call `fit` in a process with one thread of BLAS."""
    told = run_in_fresh_process(__spec__.name, ["--case", json.dumps(asdict(case))])
    return MeasuredFit(case=case, **told)


SPEEDS = ("double", "single", "skinny", "values32", "values64")
_CASE = tuple(field.name for field in fields(Case))
_HEADER = (*_CASE, "landmarks", "memory", "seconds", *SPEEDS)


def read(path: Path) -> list[MeasuredFit]:
    """Return the rows of a file; none if there is no file."""
    if not path.exists():
        return []
    types = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(Case)}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            MeasuredFit(
                case=Case(**{name: types[name](row[name]) for name in _CASE}),
                memory=int(row["memory"]),
                seconds=float(row["seconds"]),
                speeds={name: float(row[name]) for name in SPEEDS},
                landmarks=int(row["landmarks"]),
            )
            for row in csv.DictReader(file)
        ]


def write(path: Path, rows: list[MeasuredFit]) -> None:
    """Write the rows of a file, sorted by their cases."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_HEADER)
        for row in sorted(rows, key=lambda each: each.case):
            numbers = (f"{row.seconds:.3f}", *(f"{row.speeds[name]:.4g}" for name in SPEEDS))
            writer.writerow([*asdict(row.case).values(), row.landmarks, row.memory, *numbers])


def render(rows: list[MeasuredFit]) -> str:
    """Return the table of a page, a line for each row."""
    from ..harness import markdown  # whose memory does not count as that of a fit

    header = ["solver", "anchor rows", "parties", "columns", "components", "kernel", "landmarks"]
    header += ["GiB", "estimate / measured", "CPU s", "estimate / measured"]
    lines = []
    for row in rows:
        case = row.case
        (memory, seconds) = row.ratios
        columns = f"{case.n_columns}{' in float32' * (case.dtype == 'float32')}"
        sizes = [f"{case.n_anchors:,}", f"{case.n_parties}", columns, f"{case.n_components}"]
        found = [f"{row.memory / 2**30:.2f}", f"{memory:.2f}", f"{row.seconds:,.1f}", f"{seconds:.2f}"]
        landmarks = ""
        if row.landmarks:
            landmarks = f"{row.landmarks:,}"
        lines.append([case.estimate().solver, *sizes, case.kernel, landmarks, *found])
    return markdown(header, lines, numbers=True)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=str(__doc__).splitlines()[0])
    result.add_argument("--output", type=Path, default=Path("experiments/docs/cost.csv"))
    result.add_argument("--largest", type=int, default=1_000_000, help="anchor rows up to which fits are measured")
    result.add_argument("--report-only", action="store_true")
    result.add_argument("--case", help=argparse.SUPPRESS)
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.case:
        print(json.dumps(fit(Case(**json.loads(options.case)))))
        return 0
    rows = read(options.output)
    known = {row.case for row in rows}
    cases = [] if options.report_only else [case for case in plan() if case.n_anchors <= options.largest]
    for case in cases:
        if case not in known:
            found = in_fresh_process(case)
            rows.append(found)
            # Written after each fit, so that a run that is stopped loses one at most.
            write(options.output, rows)
            print(case, f"{found.memory / 2**20:.0f} MiB, {found.seconds:.1f} s", *found.ratios, flush=True)
    print(render(read(options.output)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
