"""Solvers of KTI against the paper's algorithm and other libraries: CPU time, memory and exactness, as tables.

Ten parties hold 100 rows of MNIST each and map common anchor rows by standardisation and PCA with 16 columns fitted on
their own rows; the representations are standardised; the kernel has gamma 1/16, the penalty is 1, and 16 components are
looked for.  Every fit runs in a fresh process with pinned threads, methods in turn at every size.

    python benchmarks/solvers.py [--data-dir DIR] [--parts sizes rows parties columns] [--output FILE]
    python benchmarks/solvers.py --table [--output FILE]

Each fit adds a line to the output, and a fit that is there already is not repeated: interrupt at will, and start anew
by removing the file or naming another one.  See benchmarks/README.md for how long it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracles
from measuring import Row, append_row, code_digest, gemm_rate, machine, measured, one_thread_environment, read_rows
from mnist_parties import Array, draw_parties, load_table
from solver_tables import render

from datacollab import KTI

Anchors = dict[str, Array]
Fitted = tuple[Array, float | None, dict[str, Any]]
"""Target, reported objective, and what else is worth recording."""

PARTS = ("sizes", "rows", "parties", "columns")
LONG = 100.0
"""Seconds of CPU from which a fit is not repeated."""


@dataclass(frozen=True)
class Case:
    """One fit, and which of several alike it is."""

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
    repeat: int = 0

    def __str__(self) -> str:
        return f"{self.method}, {self.n_anchors:,} anchor rows, {self.n_parties} parties, {self.n_columns} columns"

    @property
    def gamma(self) -> float:
        """Width of the kernel for standardised columns."""
        return 1.0 / self.n_columns

    @property
    def problem(self) -> Case:
        """The same for all methods and repetitions that get the same numbers."""
        return replace(self, method="", threads=1, repeat=0)


def by_kti(anchors: Anchors, case: Case, **options: Any) -> Fitted:
    integrator = KTI(case.n_components, gamma=case.gamma, alpha=case.alpha, **options).fit(anchors)
    found = {
        "solver": integrator.solver_,
        "angle_bound": integrator.angle_bound_,
        "eigengap": integrator.eigengap_,
        "n_landmarks": integrator.n_landmarks_,
        "approximation_error": integrator.approximation_error_,
    }
    return integrator.target_, integrator.objective_, found


def in_two_matrices(anchors: Anchors, case: Case) -> Fitted:
    # Too little for the factors of several parties, enough for two matrices.
    return by_kti(anchors, case, solver="exact", memory_limit=20 * case.n_anchors**2)


def by_oracle(anchors: Anchors, case: Case, integrate: Callable[..., oracles.Integration]) -> Fitted:
    result = integrate(anchors, case.n_components, alpha=case.alpha, gamma=case.gamma)
    return result.target, result.objective, {}


METHODS: dict[str, Callable[[Anchors, Case], Fitted]] = {
    "naive": partial(by_oracle, integrate=oracles.naive),
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
LARGEST = {"naive": 6400, "published": 3200, "cca-zoo": 1600, "exact-two-matrices": 3200}
"""Anchor rows up to which a method takes ten minutes or less."""
SMALLEST = {"nystroem-512": 1600}
"""Anchor rows from which so many landmarks are few."""
WARM_UP = 150
CENTRED_CHECK = 1600


def plan(arguments: argparse.Namespace) -> list[Case]:
    """All fits wanted, in the order in which they run."""
    cases: list[Case] = []
    common = Case("", 0, dataset=arguments.dataset, threads=arguments.threads)
    for n_anchors in arguments.sizes if "sizes" in arguments.parts else ():
        methods = [
            name for name in METHODS if SMALLEST.get(name, n_anchors) <= n_anchors <= LARGEST.get(name, n_anchors)
        ]
        cases += in_turn(replace(common, n_anchors=n_anchors), methods, arguments.repeats)
    for n_anchors in arguments.rows if "rows" in arguments.parts else ():
        cases += in_turn(replace(common, n_anchors=n_anchors), ["nystroem", "nystroem-512"], arguments.repeats)
    swept = {"exact": arguments.exact_rows, "nystroem": arguments.nystroem_rows}
    for method, n_anchors in swept.items():
        base = replace(common, n_anchors=n_anchors)
        for n_parties in arguments.parties if "parties" in arguments.parts else ():
            cases += in_turn(replace(base, n_parties=n_parties), [method], arguments.repeats)
        for n_columns in arguments.columns if "columns" in arguments.parts else ():
            cases += in_turn(replace(base, n_columns=n_columns), [method], arguments.repeats)
    wanted = arguments.methods or METHODS
    return [case for case in dict.fromkeys(cases) if case.method in wanted]


def in_turn(base: Case, methods: Iterable[str], repeats: int) -> Iterator[Case]:
    for repeat, method in product(range(repeats), methods):
        yield replace(base, method=method, repeat=repeat)


def run(cases: list[Case], output: Path, data_dir: Path | None, *, check_up_to: int, timeout: float) -> None:
    """Fit what is not in the output yet, and add it there."""
    rows = {Case(**row["case"]): row for row in read_rows(output) if "error" not in row}
    table = None
    with tempfile.TemporaryDirectory() as scratch:
        prepared: tuple[Case, Path] | None = None
        for index, case in enumerate(cases):
            first = rows.get(replace(case, repeat=0))
            if case in rows or (case.repeat and (first is None or first["cpu"] > LONG)):
                continue
            if prepared is None or prepared[0] != case.problem:
                table = table or load_table(case.dataset, data_dir)
                prepared = case.problem, Path(scratch) / "anchors.npz"
                parties = draw_parties(
                    *table,
                    n_anchors=case.n_anchors,
                    n_parties=case.n_parties,
                    n_columns=case.n_columns,
                    kind=case.obfuscator,
                    seed=case.seed,
                )
                np.savez(prepared[1], **parties.anchors)
            row = in_fresh_process(case, prepared[1], target_file(output, case), check_up_to, timeout)
            append_row(output, row)
            if "error" not in row:
                rows[case] = row
            outcome = row.get("error") or f"{row['cpu']:.3g} s of CPU"
            print(f"{index + 1}/{len(cases)} {case}: {outcome}", file=sys.stderr, flush=True)


def target_file(output: Path, case: Case) -> Path:
    """Where the naive target of a case's problem is kept for comparison."""
    name = "-".join(str(value) for value in asdict(case.problem).values() if value != "")
    return output.with_suffix("") / f"{name}.npy"


def in_fresh_process(case: Case, anchors: Path, reference: Path, check_up_to: int, timeout: float) -> Row:
    command = [sys.executable, __file__, "--fit", json.dumps(asdict(case)), "--anchors", str(anchors)]
    command += ["--reference", str(reference), "--check-up-to", str(check_up_to)]
    try:
        process = subprocess.run(
            command,
            env=one_thread_environment(case.threads),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return {"case": asdict(case), "error": f"more than {timeout:g} s"}
    if process.returncode:
        # The last line of a traceback says what happened; none means that the process was killed.
        lines = process.stderr.strip().splitlines() or [f"ended with status {process.returncode}"]
        return {"case": asdict(case), "error": lines[-1]}
    row: Row = json.loads(process.stdout)
    return row


def fit_once(case: Case, anchors: Anchors, reference: Path, *, check_up_to: int) -> Row:
    """Measure one fit, then compare its target with the naive one, which is kept in the file `reference`."""
    fit = METHODS[case.method]
    few = {party: A[:WARM_UP] for party, A in anchors.items()}
    fit(few, replace(case, n_anchors=len(next(iter(few.values())))))
    with measured() as measurement:
        target, objective, found = fit(anchors, case)
    row = {
        "case": asdict(case),
        "cpu": measurement.cpu,
        "wall": measurement.wall,
        "memory": measurement.memory,
        "objective": objective,
        **found,
        "load": os.getloadavg()[0],
        "machine": machine(),
        "code": code_digest(),
    }
    if case.repeat == 0:
        row |= {"dgemm": gemm_rate(np.float64), "sgemm": gemm_rate(np.float32)}
    if case.repeat or case.n_anchors > check_up_to:
        return row
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


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("--output", type=Path, default=Path("output/benchmarks/solvers.jsonl"))
    result.add_argument("--table", action="store_true", help="print the tables of what was measured, and fit nothing")
    result.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    result.add_argument("--dataset", default="mnist", help="mnist, or digits to try the script without any files")
    result.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    result.add_argument("--methods", nargs="+", choices=METHODS, help="only these")
    result.add_argument("--sizes", nargs="+", type=int, default=[400, 800, 1600, 3200, 6400], help="anchor rows")
    result.add_argument("--rows", nargs="+", type=int, default=[10_000, 20_000, 50_000, 100_000], help="of nystroem")
    result.add_argument("--parties", nargs="+", type=int, default=[2, 4, 8, 16, 32])
    result.add_argument("--columns", nargs="+", type=int, default=[4, 16, 64])
    result.add_argument("--exact-rows", type=int, default=3200, help="anchor rows of exact for parties and columns")
    result.add_argument("--nystroem-rows", type=int, default=10_000, help="the same of nystroem")
    result.add_argument("--repeats", type=int, default=3, help="of fits that are not long")
    result.add_argument("--threads", type=int, default=1, help="of BLAS")
    result.add_argument("--check-up-to", type=int, default=6400, help="anchor rows up to which targets are compared")
    result.add_argument("--timeout", type=float, default=1800, help="seconds a fit may take")
    # What a fresh process is started with.
    result.add_argument("--fit", help=argparse.SUPPRESS)
    result.add_argument("--anchors", type=Path, help=argparse.SUPPRESS)
    result.add_argument("--reference", type=Path, help=argparse.SUPPRESS)
    return result


def main(arguments: list[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    if options.fit:
        case = Case(**json.loads(options.fit))
        with np.load(options.anchors) as file:
            anchors = {party: file[party] for party in file.files}
        print(json.dumps(fit_once(case, anchors, options.reference, check_up_to=options.check_up_to)))
        return
    if not options.table:
        run(
            plan(options),
            options.output,
            options.data_dir,
            check_up_to=options.check_up_to,
            timeout=options.timeout,
        )
    print(render(read_rows(options.output)))


if __name__ == "__main__":
    main()
