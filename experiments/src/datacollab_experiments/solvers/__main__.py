"""Solvers of KTI against the paper's algorithm and other libraries: CPU time, memory and exactness, as tables.

Ten parties hold 100 rows of MNIST each and map common anchor rows by standardisation and PCA with 16 columns fitted on
their own rows; the representations are standardised; the kernel has gamma 1/16, the penalty is 1, and 16 components are
looked for.  Every fit runs in a fresh process with pinned threads, methods in turn at every size.

    python -m datacollab_experiments.solvers [--data-dir DIR] [--parts sizes rows parties columns] [--output FOLDER]
    python -m datacollab_experiments.solvers --report-only [--output FOLDER]

A run that is stopped goes on where it was, problem by problem.  What another machine or another version of the solvers
measured is measured again.  experiments/docs/benchmarks.md says how long it takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ..harness import Found, Result, Study, cell_id, run_study, study_options
from .cases import METHODS, Case, Fits, fit_once
from .measuring import Row, code_digest, machine
from .tables import render

PARTS = ("sizes", "rows", "parties", "columns")
LARGEST = {"naive": 6400, "cholesky": 3200, "published": 3200, "cca-zoo": 3200, "exact-two-matrices": 3200}
"""Anchor rows up to which a method takes ten minutes or less."""
SMALLEST = {"nystroem-512": 1600}
"""Anchor rows from which so many landmarks are few."""


def plan(options: argparse.Namespace) -> list[Case]:
    """All fits that the options ask for, each once."""
    cases: list[Case] = []
    common = Case("", 0, dataset=options.dataset, threads=options.threads, repeats=options.repeats)
    for n_anchors in options.sizes if "sizes" in options.parts else ():
        methods = [
            name for name in METHODS if SMALLEST.get(name, n_anchors) <= n_anchors <= LARGEST.get(name, n_anchors)
        ]
        cases += by(replace(common, n_anchors=n_anchors), methods)
    for n_anchors in options.rows if "rows" in options.parts else ():
        cases += by(replace(common, n_anchors=n_anchors), ["nystroem", "nystroem-512"])
    swept = {"exact": options.exact_rows, "nystroem": options.nystroem_rows}
    for method, n_anchors in swept.items():
        base = replace(common, n_anchors=n_anchors)
        for n_parties in options.parties if "parties" in options.parts else ():
            cases += by(replace(base, n_parties=n_parties), [method])
        for n_columns in options.columns if "columns" in options.parts else ():
            cases += by(replace(base, n_columns=n_columns), [method])
    chosen = options.methods or METHODS
    return [case for case in dict.fromkeys(cases) if case.method in chosen]


def by(base: Case, methods: Iterable[str]) -> Iterator[Case]:
    """The same case for each method."""
    for method in methods:
        yield replace(base, method=method)


def tasks_of(cases: Iterable[Case], options: argparse.Namespace) -> list[Fits]:
    """One task for each problem."""
    here = {"machine": machine(), "code": code_digest(), "check_up_to": options.check_up_to}
    problems: dict[Case, dict[str, Case]] = defaultdict(dict)
    for case in cases:
        problems[case.problem][cell_id({"solvers": asdict(case), **here})] = case
    return [
        Fits(
            seed=problem.seed,
            cells=cells,
            problem=problem,
            data_dir=options.data_dir,
            references=options.output / "references",
            check_up_to=options.check_up_to,
            timeout=options.timeout,
        )
        for problem, cells in problems.items()
    ]


def rows_of(found: Found[Fits]) -> Iterator[Row]:
    """Return rows as the tables take them."""
    for task, results in found:
        for cell, result in results.items():
            yield {"case": asdict(task.cells[cell]), **_entries(result)}


def _entries(result: Result) -> Mapping[str, object]:
    if result.error is not None:
        return {"error": result.error}
    n_landmarks = result.scores.get("n_landmarks")
    return {**result.scores, **result.seconds, "n_landmarks": None if n_landmarks is None else int(n_landmarks)}


def write(found: Found[Fits], folder: Path) -> Path:
    """Write all tables into one page, and print them."""
    text = render(list(rows_of(found)), machine=machine(), code=code_digest())
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "README.md"
    page.write_text(text + "\n", encoding="utf-8")
    print(text)
    return page


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog=f"python -m {__package__}", description=str(__doc__).splitlines()[0])
    study_options(result, Path("output/solvers"))
    result.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    result.add_argument("--dataset", default="mnist", help="mnist, or digits to try it without any files")
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


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.fit:
        case = Case(**json.loads(options.fit))
        with np.load(options.anchors) as file:
            anchors = {party: file[party] for party in file.files}
        print(json.dumps(fit_once(case, anchors, options.reference, check_up_to=options.check_up_to)))
        return 0
    tasks = tasks_of(plan(options), options)
    return run_study(Study(name="solvers", tasks=tasks, write_report=write), options)


if __name__ == "__main__":
    sys.exit(main())
