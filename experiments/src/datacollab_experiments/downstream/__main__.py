"""Run the sections, seed by seed, and write their tables beside their bounds; figures that are there are kept."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ..harness import Found, ModuleTask, Study, module_tasks, read_outcomes, results_file, run_study, study_options
from .report import Datum, judge_figures, report_text

# Modules, each with `measured` and `WANTED`, in the order of the report.
SECTIONS = ("survival", "effects", "effect_parties", "clusters")


def figures_of(found: Found[ModuleTask]) -> list[Datum]:
    figures = []
    for task, results in found:
        section = import_module(task.module).SECTION
        for name, value in (each for result in results.values() for each in result.scores.items()):
            data, method, measure = name.split("|")
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

    def write(found: Found[ModuleTask], folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / "README.md"
        page.write_text(report_text(figures_of(found), wanted), encoding="utf-8")
        return page

    tasks = module_tasks(str(__package__), sections, options.seeds)
    status = run_study(Study(name="downstream", tasks=tasks, write_report=write), options)
    figures = figures_of(list(read_outcomes(results_file(options.output), tasks)))
    missed = [verdict for verdict in judge_figures(figures, wanted) if not verdict.held]
    print(f"{len(wanted) - len(missed)} of {len(wanted)} wanted figures held")
    for verdict in missed:
        print(f"  not held: {verdict.words}")
    return status or int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
