"""Run a preset, and write its report; what is there already is not computed again."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .frontier import write_frontier
from .report import write_report
from .results import collect
from .settings import PRESETS, Setting
from .store import FILE, read, run, tasks_of
from .tables import UNSEEN, load_table
from .trial import measures

PARTS = ("main", "frontier", "risks", "candidates")


def is_wanted(part: str, setting: Setting, seed: int, *, attacks_undefended: bool = False) -> bool:
    """Attacks once a defended setting, or every setting; single candidates on undefended unseen tables."""
    if part == "risks":
        return seed == 0 and (attacks_undefended or setting.defence != "none")
    return part != "candidates" or (setting.dataset in UNSEEN and setting.defence == "none")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pays", description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="quick")
    parser.add_argument("--part", action="append", choices=PARTS, help="the preset's first two by default")
    parser.add_argument("--output", type=Path, default=Path("output/pays"), help="directory of results and report")
    parser.add_argument(
        "--data-dir", type=Path, help="directory that holds MNIST and others; see `datacollab data fetch`"
    )
    parser.add_argument("--dataset", action="append", help="only these data sets; may be repeated")
    parser.add_argument("--n-jobs", type=int, default=1, help="trials at a time (default 1)")
    parser.add_argument("--retry-failed", action="store_true", help="compute again what failed before")
    parser.add_argument("--report-only", action="store_true", help="compute nothing")
    parser.add_argument("--copy-to", type=Path, help="where a copy of the report goes when all of it is there")
    options = parser.parse_args(arguments)
    parts = PRESETS[options.preset].parts
    if unknown := set(options.part or ()) - set(parts):
        parser.error(f"the preset {options.preset} has no part {', '.join(sorted(unknown))}; it has {', '.join(parts)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    preset, path = PRESETS[options.preset], options.output / FILE
    wanted = options.dataset or sorted({setting.dataset for setting in preset.settings})
    is_task = partial(is_wanted, attacks_undefended=preset.is_frontier)
    every = [task for task in tasks_of(preset, preset.parts, is_task) if task.setting.dataset in wanted]
    asked = [task for task in every if task.part in (options.part or preset.parts[:2])]
    if not options.report_only:
        fingerprints = {name: load_table(name, options.data_dir).fingerprint for name in wanted}
        try:
            run(
                asked,
                measures(options.data_dir),
                path,
                fingerprints,
                n_jobs=options.n_jobs,
                retry_failed=options.retry_failed,
                told=lambda line: print(line, flush=True),
            )
        except KeyboardInterrupt:
            print("Stopped; the same command goes on where it was.", file=sys.stderr)
            return 130
    found = list(read(path, every))
    expected = sum(task.part == preset.parts[0] for task in every)
    write = write_frontier if preset.is_frontier else write_report
    report = write(collect(found), options.output / "report", expected=expected, preset=options.preset)
    print(report)
    missing = len(asked) - sum(task in set(asked) for task, _ in found)
    if missing or any(result.error for _, result in found):
        print(f"{missing} trials are missing, {sum(bool(r.error) for _, r in found)} failed.", file=sys.stderr)
        return 1
    if options.copy_to is not None:
        options.copy_to.mkdir(parents=True, exist_ok=True)
        for file in report.parent.iterdir():
            shutil.copy(file, options.copy_to / file.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
