"""A study: tasks and their report, as one command."""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from ._run import Progress, read_outcomes, run_tasks
from ._store import FILE, Result, ResultStore
from ._task import Task

AnyTask = TypeVar("AnyTask", bound=Task)
# Tasks with results, and these by cell.
Found = Sequence[tuple[AnyTask, Mapping[str, Result]]]


@dataclass(frozen=True, kw_only=True)
class Study(Generic[AnyTask]):
    """Tasks, and the function that reports them.

    Attributes
    ----------
    reported : sequence of Task
        Tasks of the report; by default the same.
    fingerprints : mapping of str to str
        Hashes of the data by name: results of other data of the same name are refused.
    write_report : callable
        Writes a folder of files from tasks and their results, and returns the path of the page.
    """

    name: str
    tasks: Sequence[AnyTask]
    write_report: Callable[[Found[AnyTask], Path], Path]
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    reported: Sequence[AnyTask] = ()


def study_options(parser: argparse.ArgumentParser, output: Path) -> argparse.ArgumentParser:
    """Add the options that `run_study` reads."""
    parser.add_argument("--output", type=Path, default=output, help=f"directory of results and report ({output})")
    parser.add_argument("--n-jobs", type=int, default=1, help="tasks at a time (default 1)")
    parser.add_argument("--retry-failed", action="store_true", help="compute again what failed before")
    parser.add_argument("--report-only", action="store_true", help="compute nothing")
    parser.add_argument("--copy-to", type=Path, help="where a copy of the report goes when all of it is there")
    return parser


def run_study(study: Study[AnyTask], options: argparse.Namespace) -> int:
    """Compute missing results, write the report, and copy it where it is complete.

    Returns
    -------
    int
        The exit status: 0, or 1 where something is missing or failed, or 130 after Ctrl-C.
    """
    path = options.output / FILE
    if not options.report_only:
        try:
            with ResultStore(path) as store:
                store.check_data(study.fingerprints)
                if options.retry_failed:
                    store.forget_failures({cell for task in study.tasks for cell in task.cells})
                run_tasks(study.tasks, store, n_jobs=options.n_jobs, progress=_say)
        except KeyboardInterrupt:
            print("Stopped; the same command goes on where it was.", file=sys.stderr)
            # The exit status that a shell gives to an interrupted command.
            return 130
    found = list(read_outcomes(path, study.reported or study.tasks))
    page = study.write_report(found, options.output / "report")
    print(page)
    known = {(cell, task.seed) for task, results in found for cell in results}
    missing = sum(key not in known for task in study.tasks for key in task.keys)
    failed = sum(result.error is not None for _, results in found for result in results.values())
    # A partial report is never copied to where it is published.
    if missing or failed:
        print(f"{missing} results are missing, {failed} failed.", file=sys.stderr)
        return 1
    if options.copy_to is not None:
        options.copy_to.mkdir(parents=True, exist_ok=True)
        for file in page.parent.iterdir():
            shutil.copy(file, options.copy_to / file.name)
    return 0


def _say(state: Progress) -> None:
    failed = ""
    if state.failed:
        failed = f", {state.failed} failed"
    print(f"{state.done}/{state.total} {state.label} ({100 * state.share:.0f} %{failed})", flush=True)
