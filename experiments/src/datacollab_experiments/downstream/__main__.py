"""Run the sections, seed by seed, and write their tables beside what is wanted; what is there already is kept."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from .measuring import Measured
from .report import judged, report_text
from .store import FILE, append, digest_of, read

SECTIONS = (
    "survival",
    "effects",
    "effect_coverage",
    "answers",
    "clusters",
    "groups",
    "class_sums",
)
"""Modules, each with `measured` and `WANTED`, in the order of the report."""


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.downstream", description=__doc__)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only these; may be repeated")
    parser.add_argument("--seeds", type=int, default=5, help="splits of each section (default 5)")
    parser.add_argument("--n-jobs", type=int, default=1, help="seeds at a time (default 1)")
    parser.add_argument(
        "--output", type=Path, default=Path("output/downstream"), help="directory of results and report"
    )
    parser.add_argument("--report-only", action="store_true", help="compute nothing")
    parser.add_argument("--copy-to", type=Path, help="where a copy of the report goes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    sections = options.section or list(SECTIONS)
    path = options.output / FILE
    options.output.mkdir(parents=True, exist_ok=True)
    digests = {section: digest_of(section) for section in sections}
    if not options.report_only:
        _measure(path, digests, options.seeds, options.n_jobs)
    rows = [row for row in _current(path, digests) if row["seed"] < options.seeds]
    wanted = [one for section in sections for one in import_module(f".{section}", __package__).WANTED]
    (options.output / "README.md").write_text(report_text(rows, wanted), encoding="utf-8")
    if options.copy_to is not None:
        options.copy_to.mkdir(parents=True, exist_ok=True)
        shutil.copy(options.output / "README.md", options.copy_to / "README.md")
    verdicts = judged(rows, wanted)
    missed = [verdict for verdict in verdicts if not verdict.held]
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} wanted figures held; {options.output / 'README.md'}")
    for verdict in missed:
        print(f"  not held: {verdict.words}")
    return 1 if missed else 0


def _measure(path: Path, digests: dict[str, str], n_seeds: int, n_jobs: int) -> None:
    """Add what is not there yet."""
    done = {(row["section_file"], row["seed"]) for row in _current(path, digests)}
    every = [(section, seed) for section in digests for seed in range(n_seeds)]
    tasks = [task for task in every if task not in done]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(one_seed)(*task) for task in tasks)
    for number, (section, seed, rows) in enumerate(results, 1):
        append(path, [asdict(row) | {"section_file": section, "digest": digests[section]} for row in rows])
        print(f"{number} of {len(tasks)}: {section}, seed {seed}", flush=True)


def _current(path: Path, digests: dict[str, str]) -> list[dict[str, Any]]:
    """Rows of the sections asked for, as they are now."""
    return [row for row in read(path) if row["digest"] == digests.get(row["section_file"])]


def one_seed(section: str, seed: int) -> tuple[str, int, list[Measured]]:
    """All figures of one section and seed, in one thread of numerical libraries."""
    with threadpool_limits(1):
        return section, seed, list(import_module(f".{section}", __package__).measured(seed))


if __name__ == "__main__":
    sys.exit(main())
