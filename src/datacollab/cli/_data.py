"""``datacollab data``: real data sets, and dealing one out into CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ._command import OutputArgument, command, group, named_once
from ._output import Report

if TYPE_CHECKING:
    from ..datasets import DatasetInfo

__all__ = ["USUAL_PARTIES", "app"]

USUAL_PARTIES = ("hospital-a", "hospital-b", "hospital-c", "hospital-d", "hospital-e")

app = group("Real data sets for experiments: what there is, and fetching it.")

DataDir = Annotated[Path | None, Option(help="A directory to look at first; downloads go there.")]
Name = Annotated[str, Argument(help="One of the names that `datacollab data list` shows.")]


@command(app, "list")
def list_datasets(report: Report, data_dir: DataDir = None) -> None:
    """List the data sets, and where they are on this machine."""
    from ..datasets import available

    found = available(data_dir=data_dir)
    report.facts = [{**asdict(dataset), "path": dataset.path and str(dataset.path)} for dataset in found]
    if not report.as_json:
        _print_table(found)


@command(app, unchanged="No incomplete file was left behind; run the command again.")
def fetch(report: Report, name: Name, data_dir: DataDir = None) -> None:
    """Download a data set, verify it, and say where it is."""
    from ..datasets import fetch

    found = fetch(name, data_dir=data_dir)
    report.facts = {"path": str(found)}
    report.line(str(found))


@command(app, "deal", unchanged="Some files may have been written.")
def deal_tables(
    report: Report,
    name: Name,
    there: OutputArgument = None,
    output: Annotated[Path | None, Option("--output", "-o", metavar="DIR", help="Directory for the CSV files.")] = None,
    party: Annotated[
        list[str] | None, Option(help="Name of a party. Repeatable. Default: hospital-a to hospital-e.")
    ] = None,
    rows: Annotated[int, Option(min=2, help="Rows per party.")] = 150,
    public: Annotated[int, Option(min=2, help="Public rows.")] = 600,
    new: Annotated[int, Option(min=1, help="New rows, to be predicted.")] = 300,
    columns: Annotated[int | None, Option(min=2, help="Columns to keep, those that vary most. Default: all.")] = None,
    seed: Annotated[int, Option(help="Which rows go where.")] = 0,
    data_dir: DataDir = None,
) -> None:
    """Write CSV files to try an exchange with: one per party, public rows, and new ones to be predicted."""
    sizes = dict.fromkeys(parties := party or list(USUAL_PARTIES), rows) | {PUBLIC: public, NEW: new}
    if len(sizes) < len(parties) + 2:
        raise ValueError(f"Parties need names of their own, other than {PUBLIC!r} and {NEW!r}; got {parties!r}.")
    folder = named_once(output, there, "--output / -o")
    files = {folder / f"{table}.csv": n_rows for table, n_rows in sizes.items()}
    target = _deal(name, files, n_columns=columns, data_dir=data_dir, seed=seed)
    report.facts = {"files": {str(file): n_rows for file, n_rows in files.items()}, "target": target}
    for file, n_rows in files.items():
        report.line(f"{file}: {n_rows} rows")
    report.line(f"The target's column is {target!r}.")


def _print_table(found: Sequence[DatasetInfo]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("name", "task", "rows x columns", "MB", "licence"):
        table.add_column(heading, no_wrap=True)
    for dataset in found:
        shape = f"{dataset.n_samples} x {dataset.n_features}"
        table.add_row(dataset.name, dataset.task, shape, f"{dataset.megabytes:.0f}", dataset.licence)
    Console().print(table)
    # Not in the table, which would break long paths to the terminal's width.
    for dataset in found:
        typer.echo(f"{dataset.name}: {dataset.description}\n  {dataset.where}")


PUBLIC, NEW = "public", "new"

_NAMES = {
    "digits": ("pixel", "digit"),
    "mnist": ("pixel", "digit"),
    "fashion-mnist": ("pixel", "garment"),
    "ujiindoorloc": ("wap", "latitude"),
    "slice-localization": ("value", "location"),
}


def _deal(name: str, files: dict[Path, int], *, n_columns: int | None, data_dir: Path | None, seed: int) -> str:
    """Write files of so many rows each, without a row in common; return the target's column."""
    import numpy as np

    from .._validation import require
    from ..datasets import load

    pandas = require("pandas", "cli")
    if there := [str(file) for file in files if file.exists()]:
        raise ValueError(f"{', '.join(there)}: there already. Remove them, or choose another directory.")
    X, y = load(name, data_dir=data_dir)
    if (n_wanted := sum(files.values())) > len(y):
        raise ValueError(f"Expected at most the {len(y)} rows of {name}, got {n_wanted}. Ask for fewer.")
    feature, target = _NAMES.get(name, ("x", "y"))
    width = len(str(X.shape[1]))
    columns = [f"{feature}_{number:0{width}d}" for number in range(1, X.shape[1] + 1)]
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_columns])
    order = np.random.default_rng(seed).permutation(len(y))
    start = 0
    for file, n_rows in files.items():
        rows = order[start : start + n_rows]
        table = pandas.DataFrame(X[np.ix_(rows, kept)], columns=[columns[position] for position in kept])
        table[target] = y[rows]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(table.to_csv(index=False), encoding="utf-8", newline="")
        start += n_rows
    return target
