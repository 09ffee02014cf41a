"""One fit of KTI's target, measured in a process of its own, and the fits of one problem as a task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datacollab import KTI

from ..harness import Outcome, Task
from . import oracles
from .measuring import Row, gemm_rate, measured, one_thread_environment
from .mnist_parties import Array, draw_parties, load_table
from .parts import seconds_by_part

__all__ = ["METHODS", "Case", "Fits", "fit_once", "in_fresh_process", "median_of"]

Anchors = dict[str, Array]
Fitted = tuple[Array, float | None, dict[str, Any]]
"""Target, reported objective, and what else is worth recording."""

LONG = 100.0
"""Seconds of CPU from which a fit is not repeated."""


@dataclass(frozen=True)
class Case:
    """One method on one problem.

    Attributes
    ----------
    method : str
    n_anchors, n_parties, n_columns, n_components : int
    alpha : float
    dataset, obfuscator : str
    seed : int
        Of the draw of parties.
    threads : int
        Of BLAS.
    repeats : int
        Fits, unless one is long; the one with the median CPU time counts.
    """

    method: str
    n_anchors: int
    n_parties: int = 10
    n_columns: int = 16
    n_components: int = 16
    alpha: float = 1.0
    dataset: str = "mnist"
    obfuscator: str = "pca"
    seed: int = 0
    threads: int = 1
    repeats: int = 1

    def __str__(self) -> str:
        return f"{self.method}, {self.n_anchors:,} anchor rows, {self.n_parties} parties, {self.n_columns} columns"

    @property
    def gamma(self) -> float:
        """Width of the kernel for standardised columns."""
        return 1.0 / self.n_columns

    @property
    def problem(self) -> Case:
        """The same for all methods that get the same numbers."""
        return replace(self, method="", threads=1, repeats=1)


def by_kti(anchors: Anchors, case: Case, **options: Any) -> Fitted:
    integrator = KTI(case.n_components, gamma=case.gamma, alpha=case.alpha, **options).fit(anchors)
    found = {
        "angle_bound": integrator.angle_estimate_,
        "eigengap": integrator.eigengap_,
        "n_landmarks": integrator.n_landmarks_,
        "approximation_error": integrator.approximation_error_,
    }
    return integrator.target_, integrator.objective_, found


def in_two_matrices(anchors: Anchors, case: Case) -> Fitted:
    # Beside Python and the anchors, too little for the factors of several parties, enough for two matrices.
    resident = 2**28 + sum(A.nbytes for A in anchors.values())
    return by_kti(anchors, case, solver="exact", memory_limit=resident + 20 * case.n_anchors**2)


def by_oracle(anchors: Anchors, case: Case, integrate: Callable[..., oracles.Integration]) -> Fitted:
    result = integrate(anchors, case.n_components, alpha=case.alpha, gamma=case.gamma)
    return result.target, result.objective, {}


METHODS: dict[str, Callable[[Anchors, Case], Fitted]] = {
    "naive": partial(by_oracle, integrate=oracles.naive),
    "cholesky": partial(by_oracle, integrate=oracles.cholesky),
    "published": partial(by_oracle, integrate=oracles.published),
    "cca-zoo": partial(by_oracle, integrate=oracles.kgcca),
    "exact": partial(by_kti, solver="exact"),
    "exact-float32": partial(by_kti, solver="exact", precision="float32"),
    "exact-two-matrices": in_two_matrices,
    "nystroem": partial(by_kti, solver="nystroem"),
    "nystroem-512": partial(by_kti, solver="nystroem", n_landmarks=512),
}
OTHER_PROBLEMS = ("published", "cca-zoo")
"""Methods whose target is not that of Theorem 2."""
WARM_UP = 150
CENTRED_CHECK = 1600


@dataclass(frozen=True, kw_only=True)
class Fits(Task):
    """The fits of one problem: methods get the same numbers and take turns.

    Attributes
    ----------
    cells : dict of str to Case
    problem : Case
        Of all cells.
    data_dir : Path or None
    references : Path
        Directory of naive targets, with which the others are compared.
    check_up_to : int
        Anchor rows up to which targets are compared.
    timeout : float
        Seconds that a fit may take.
    """

    problem: Case
    data_dir: Path | None
    references: Path
    check_up_to: int
    timeout: float

    @property
    def label(self) -> str:
        """The problem in words."""
        methods = ", ".join(case.method for case in self.cells.values())
        return f"{self.problem.n_anchors:,} anchor rows, {self.problem.n_parties} parties: {methods}"

    @property
    def cost(self) -> float:
        """Work in numbers of entries of the parties' kernels."""
        return float(sum(case.repeats * case.n_parties * case.n_anchors**2 for case in self.cells.values()))

    def measure(self) -> Iterator[Outcome]:
        """Fit by all methods in turn, each time in a fresh process."""
        problem = self.problem
        rows: dict[str, list[Row]] = {cell: [] for cell in self.cells}
        parties = draw_parties(
            *_table(problem.dataset, self.data_dir),
            n_anchors=problem.n_anchors,
            n_parties=problem.n_parties,
            n_columns=problem.n_columns,
            kind=problem.obfuscator,
            seed=problem.seed,
        )
        with tempfile.TemporaryDirectory() as scratch:
            anchors = Path(scratch) / "anchors.npz"
            np.savez(anchors, allow_pickle=False, **parties.anchors)
            for repeat in range(max(case.repeats for case in self.cells.values())):
                for cell, case in self.cells.items():
                    found = rows[cell]
                    if repeat >= case.repeats or (repeat and ("error" in found[0] or found[0]["cpu"] > LONG)):
                        continue
                    check_up_to = 0 if repeat else self.check_up_to
                    found.append(in_fresh_process(case, anchors, self.reference, check_up_to, self.timeout))
        for cell in self.cells:
            yield median_of(cell, rows[cell])

    @property
    def reference(self) -> Path:
        """Where the naive target of the problem is kept for comparison."""
        return self.references / (
            "-".join(str(value) for value in asdict(self.problem).values() if value != "") + ".npy"
        )


@lru_cache(maxsize=1)
def _table(name: str, data_dir: Path | None) -> tuple[Array, NDArray[np.int64]]:
    return load_table(name, data_dir)


def median_of(cell: str, rows: list[Row]) -> Outcome:
    """Return of repeated fits the one with the median CPU time, with what only the first has, and the most memory."""
    good = [row for row in rows if "error" not in row]
    if not good:
        return Outcome(cell=cell, scores={}, seconds={}, error=rows[0]["error"])
    # Of an even number the quicker of the two in the middle, which was measured as it stands.
    middle = sorted(good, key=lambda row: row["cpu"])[(len(good) - 1) // 2]
    found = {name: value for row in [*good, middle] for name, value in row.items()}
    found["memory"] = max(row["memory"] for row in good)
    seconds = {name: found.pop(name) for name in ("cpu", "wall")}
    return Outcome(cell=cell, scores={name: float(v) for name, v in found.items() if v is not None}, seconds=seconds)


def in_fresh_process(case: Case, anchors: Path, reference: Path, check_up_to: int, timeout: float) -> Row:
    """Call `fit_once` in a process whose BLAS takes the case's threads; an error is a row with "error"."""
    command = [sys.executable, "-m", __package__, "--fit", json.dumps(asdict(case)), "--anchors", str(anchors)]
    command += ["--reference", str(reference), "--check-up-to", str(check_up_to)]
    try:
        process = subprocess.run(
            command,
            env=one_thread_environment(case.threads),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {timeout:g} s"}
    if process.returncode:
        # The last line of a traceback says what happened; none means that the process was killed.
        lines = process.stderr.strip().splitlines() or [f"ended with status {process.returncode}"]
        return {"error": lines[-1]}
    row: Row = json.loads(process.stdout)
    return row


def fit_once(case: Case, anchors: Anchors, reference: Path, *, check_up_to: int) -> Row:
    """Measure one fit, then compare its target with the naive one, which is kept in the file `reference`.

    Rates of matrix products are measured beside it.  Up to so many anchor rows targets are compared, and another exact
    fit is profiled.
    """
    fit = METHODS[case.method]
    few = {party: A[:WARM_UP] for party, A in anchors.items()}
    fit(few, replace(case, n_anchors=len(next(iter(few.values())))))
    with measured() as measurement:
        target, objective, found = fit(anchors, case)
    row = {
        "cpu": measurement.cpu,
        "wall": measurement.wall,
        "memory": measurement.memory,
        "objective": objective,
        **found,
        "load": os.getloadavg()[0],
        "dgemm": gemm_rate(np.float64),
        "sgemm": gemm_rate(np.float32),
    }
    if case.n_anchors > check_up_to:
        return row
    if case.method == "exact":
        row |= {f"part {part}": seconds for part, seconds in seconds_by_part(lambda: fit(anchors, case)).items()}
    problem = {"alpha": case.alpha, "gamma": case.gamma}
    if case.method == "cca-zoo" and case.n_anchors <= CENTRED_CHECK:
        wanted = oracles.kti_on_centred_kernels(anchors, case.n_components, **problem)
        row["sine"] = oracles.largest_sine(target, wanted)
    if case.method not in OTHER_PROBLEMS:
        row["attained"] = oracles.attained(anchors, target, **problem)
        if case.method == "naive":
            reference.parent.mkdir(parents=True, exist_ok=True)
            np.save(reference, target)
        elif reference.exists():
            row["sine"] = oracles.largest_sine(target, np.load(reference))
    return row
