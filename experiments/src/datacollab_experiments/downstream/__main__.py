"""Run the sections, seed by seed, and write their tables beside their bounds; figures that are there are kept."""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from ..harness import Found, Outcome, Study, Task, cell_id, read_outcomes, results_file, run_study, study_options
from .report import Datum, judge_figures, report_text

# Modules, each with `measured` and `WANTED`, in the order of the report.
SECTIONS = ("survival", "effects", "effect_parties", "clusters")


@dataclass(frozen=True, kw_only=True)
class Section(Task):
    """All figures of one section and seed."""

    section: str

    @property
    def label(self) -> str:
        """Section and seed."""
        return f"{self.section}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Return the section's figures as the scores of its one cell."""
        figures = import_module(f".{self.section}", __package__).measure(self.seed)
        (cell,) = self.cells
        scores = {"|".join((one.section, one.data, one.method, one.measure)): one.value for one in figures}
        yield Outcome(cell=cell, scores=scores, seconds={})


def tasks_of(sections: Sequence[str], n_seeds: int) -> list[Section]:
    """One task for each section and seed; figures of an earlier version of a section are computed again."""
    cells = {section: {cell_id({"section": section, "code": _digest(section)}): section} for section in sections}
    return [
        Section(seed=seed, cells=cells[section], section=section) for section in sections for seed in range(n_seeds)
    ]


def figures_of(found: Found[Section]) -> list[Datum]:
    """Return all figures of results."""
    figures = []
    for task, results in found:
        for result in results.values():
            for name, value in result.scores.items():
                section, data, method, measure = name.split("|")
                figures.append(
                    Datum(section=section, data=data, method=method, measure=measure, seed=task.seed, value=value)
                )
    return figures


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only these; may be repeated")
    parser.add_argument("--seeds", type=int, default=5, help="splits of each section (default 5)")
    return study_options(parser, Path("output/downstream")).parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    sections = options.section or list(SECTIONS)
    wanted = [one for section in sections for one in import_module(f".{section}", __package__).WANTED]

    def write(found: Found[Section], folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / "README.md"
        page.write_text(report_text(figures_of(found), wanted), encoding="utf-8")
        return page

    tasks = tasks_of(sections, options.seeds)
    status = run_study(Study(name="downstream", tasks=tasks, write_report=write), options)
    figures = figures_of(list(read_outcomes(results_file(options.output), tasks)))
    missed = [verdict for verdict in judge_figures(figures, wanted) if not verdict.held]
    print(f"{len(wanted) - len(missed)} of {len(wanted)} wanted figures held")
    for verdict in missed:
        print(f"  not held: {verdict.words}")
    return status or int(bool(missed))


def _digest(section: str) -> str:
    return hashlib.sha256(Path(__file__).with_name(f"{section}.py").read_bytes()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
