"""Run a preset, and write its report; what is there already is not computed again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..harness import Found, Study, run_study, study_options
from .report import write_report
from .results import collect, with_earlier
from .settings import PRESETS, Setting
from .tables import UNSEEN, load_table
from .tasks import PartTask, tasks_of

PARTS = ("main", "sums", "candidates")


def is_wanted(part: str, setting: Setting, seed: int) -> bool:
    """Sums where parties share them, and single candidates on undefended unseen tables."""
    if part == "sums":
        return setting.defence == "sums"
    return part != "candidates" or (setting.dataset in UNSEEN and setting.defence == "none")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.pays", description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="quick")
    parser.add_argument("--part", action="append", choices=PARTS, help="all but candidates by default")
    parser.add_argument(
        "--data-dir", type=Path, help="directory that holds MNIST and others; see `datacollab data fetch`"
    )
    parser.add_argument("--dataset", action="append", help="only these data sets; may be repeated")
    parser.add_argument(
        "--onto", type=Path, metavar="FILE", help="scores.csv of an earlier run, in which new scores take their places"
    )
    study_options(parser, Path("output/pays"))
    options = parser.parse_args(arguments)
    parts = PRESETS[options.preset].parts
    if unknown := set(options.part or ()) - set(parts):
        parser.error(f"the preset {options.preset} has no part {', '.join(sorted(unknown))}; it has {', '.join(parts)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    preset = PRESETS[options.preset]
    wanted = options.dataset or sorted({setting.dataset for setting in preset.settings})
    every = [
        task for task in tasks_of(preset, preset.parts, is_wanted, options.data_dir) if task.setting.dataset in wanted
    ]
    expected = sum(task.part == preset.parts[0] for task in every)

    def report(found: Found[PartTask], folder: Path) -> Path:
        measured = collect(found)
        if options.onto is not None:
            measured = with_earlier(measured, options.onto)
        return write_report(measured, folder, expected=expected, preset=options.preset)

    study = Study(
        name="pays",
        tasks=[task for task in every if task.part in (options.part or preset.parts[:-1])],
        reported=every,
        fingerprints={}
        if options.report_only
        else {name: load_table(name, options.data_dir).fingerprint for name in wanted},
        write_report=report,
    )
    return run_study(study, options)


if __name__ == "__main__":
    sys.exit(main())
