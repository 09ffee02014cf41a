"""Play and attack all methods, and write the report; results that are there are not computed again."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..harness import Study, run_study, study_options
from ..pays.tables import load_table
from .methods import METHODS
from .report import write_report
from .tasks import PRESETS, MethodsTask, tasks_of


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.oneshot", description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="quick")
    parser.add_argument("--method", action="append", choices=list(METHODS), help="only these; may be repeated")
    parser.add_argument(
        "--data-dir", type=Path, help="directory of data sets that are downloaded; the presets need none"
    )
    study_options(parser, Path("output/oneshot"))
    options = parser.parse_args(arguments)
    preset = PRESETS[options.preset]
    fingerprints = {}
    # A report alone needs no tables, which may be on another machine.
    if not options.report_only:
        names = dict.fromkeys(setting.dataset for setting in preset.settings)
        fingerprints = {name: load_table(name, options.data_dir).fingerprint for name in names}
    study: Study[MethodsTask] = Study(
        name="oneshot",
        tasks=tasks_of(preset, options.method or (), options.data_dir),
        reported=tasks_of(preset, data_dir=options.data_dir),
        fingerprints=fingerprints,
        write_report=partial(write_report, preset=options.preset),
    )
    return run_study(study, options)


if __name__ == "__main__":
    sys.exit(main())
