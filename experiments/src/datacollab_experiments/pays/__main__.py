"""Run a preset, and write its report; results that are there are not computed again."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..harness import Found, Study, run_study, study_options
from .report import write_report
from .results import collect, merge_earlier
from .settings import PRESETS
from .tables import load_table
from .tasks import PARTS, PartTask, tasks_of


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.pays", description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="quick")
    parser.add_argument("--part", action="append", choices=PARTS, help="both by default")
    parser.add_argument(
        "--data-dir", type=Path, help="directory that holds MNIST and others; see `datacollab data fetch`"
    )
    parser.add_argument("--dataset", action="append", help="only these data sets; may be repeated")
    parser.add_argument(
        "--onto", type=Path, metavar="FILE", help="scores of an earlier run, in which new scores take their places"
    )
    study_options(parser, Path("output/pays"))
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    preset = PRESETS[options.preset]
    datasets = options.dataset or sorted({setting.dataset for setting in preset.settings})
    tasks = [task for task in tasks_of(preset, PARTS, options.data_dir) if task.setting.dataset in datasets]
    expected = sum(task.part == PARTS[0] for task in tasks)

    def report(found: Found[PartTask], folder: Path) -> Path:
        measured = collect(found)
        if options.onto is not None:
            measured = merge_earlier(measured, options.onto)
        return write_report(measured, folder, expected=expected, preset=options.preset)

    fingerprints = {}
    # A report alone needs no rows, which may be on another machine.
    if not options.report_only:
        fingerprints = {name: load_table(name, options.data_dir).fingerprint for name in datasets}
    study = Study(
        name="pays",
        tasks=[task for task in tasks if task.part in (options.part or PARTS)],
        reported=tasks,
        fingerprints=fingerprints,
        write_report=report,
    )
    return run_study(study, options)


if __name__ == "__main__":
    sys.exit(main())
