"""A study: tasks and their report, as one command."""

import argparse
import csv
import gzip
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar

from ._run import FILE, Progress, Result, ResultStore, Task, read_outcomes, run_tasks

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


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: bool = False) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    numbers : bool, default=False
        Whether the columns after the first are aligned to the right.
    """
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, rule, *rows))


@contextmanager
def open_table(path: Path) -> Iterator[TextIO]:
    """Open a file of comma-separated values for writing; one whose name ends in .gz is packed."""
    if path.suffix != ".gz":
        with path.open("w", newline="", encoding="utf-8") as stream:
            yield stream
        return
    # Without a name and a date, equal rows give equal bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream,
    ):
        yield stream


def write_rows(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write rows of one form as a CSV file, numbers with five digits; each as soon as it is there."""
    with open_table(path) as stream:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(stream, list(row))
                writer.writeheader()
            writer.writerow({name: f"{each:.5g}" if isinstance(each, float) else each for name, each in row.items()})
            # A study that is stopped keeps its rows; a packed file would be twice as long by it.
            if path.suffix != ".gz":
                stream.flush()
        if writer is None:
            # pandas reads no file without a header.
            csv.DictWriter(stream, ["dataset"]).writeheader()


def write_table(rows: Callable[..., Iterable[Mapping[str, object]]], **defaults: Any) -> None:
    """Be the program of a module that makes one table: print its rows, and write them to ``--output`` if that is given.

    Parameters
    ----------
    rows : callable
        Yields the rows.  It takes the options by keyword.
    **defaults : int, bool, tuple or None
        Options of the program: a number, a switch, some of the entries, or a folder of data sets.
    """
    parser = argparse.ArgumentParser(description=str(sys.modules[rows.__module__].__doc__).partition("\n")[0])
    parser.add_argument("--output", type=Path, metavar="FILE", help="file of comma-separated values")
    for name, default in defaults.items():
        how: dict[str, Any] = {"type": type(default)}
        if default is None:
            how = {"type": Path}
        elif default is False:
            how = {"action": "store_true"}
        elif isinstance(default, tuple):
            how = {"nargs": "+", "choices": default, "type": type(default[0])}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)
    options = vars(parser.parse_args())
    output = options.pop("output") or Path(os.devnull)

    def print_rows() -> Iterator[Mapping[str, object]]:
        for row in rows(**options):
            print(dict(row), flush=True)
            yield row

    write_rows(print_rows(), output)
