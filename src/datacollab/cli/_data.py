"""``datacollab data``: what data sets there are, and fetching them.

* Dealing a data set out into CSV files: a table for each party, public rows, and new ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._errors import one_line_errors
from ._help import group
from ._options import OutputArgument, named_once
from ._output import reported

if TYPE_CHECKING:
    from ..datasets import DatasetInfo

__all__ = ["USUAL_PARTIES", "app", "deal"]

USUAL_PARTIES = ("hospital-a", "hospital-b", "hospital-c", "hospital-d", "hospital-e")

app = group("Real data sets for experiments: what there is, and fetching it.")

DataDir = Annotated[Path | None, typer.Option(help="A directory to look at first; downloads go there.")]


@app.command("list")
def list_datasets(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the data sets, and where they are on this machine.

    Example: datacollab data list --data-dir ~/data
    """
    with one_line_errors("Nothing was changed."):
        from ..datasets import available

        found = available(data_dir=data_dir)
        if as_json:
            rows = [{**asdict(dataset), "path": dataset.path and str(dataset.path)} for dataset in found]
            typer.echo(json.dumps(rows, indent=2))
            return
        _print_table(found)


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="One of the names that `datacollab data list` shows.")],
    data_dir: DataDir = None,
) -> None:
    """Download a data set, verify it, and say where it is.

    Example: datacollab data fetch mnist
    """
    with one_line_errors("No incomplete file was left behind; run the command again."):
        from ..datasets import fetch

        typer.echo(fetch(name, data_dir=data_dir))


@app.command("deal")
def deal_tables(
    name: Annotated[str, typer.Argument(help="One of the names that `datacollab data list` shows.")],
    there: OutputArgument = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Directory for the CSV files.")
    ] = None,
    party: Annotated[
        list[str] | None, typer.Option(help="Name of a party. Repeatable. Default: hospital-a to hospital-e.")
    ] = None,
    rows: Annotated[int, typer.Option(min=2, help="Rows per party.")] = 150,
    public: Annotated[int, typer.Option(min=2, help="Public rows.")] = 600,
    new: Annotated[int, typer.Option(min=1, help="New rows, to be predicted.")] = 300,
    columns: Annotated[
        int | None, typer.Option(min=2, help="Columns to keep, those that vary most. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which rows go where.")] = 0,
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write CSV files to try an exchange with: one per party, public rows, and new ones to be predicted.

    Example: datacollab data deal digits -o tables --party north --party south
    """
    with reported(as_json, unchanged="Some files may have been written.") as report:
        files, target = deal(
            name,
            named_once(output, there, "--output / -o"),
            parties=party or list(USUAL_PARTIES),
            n_per_party=rows,
            n_public=public,
            n_new=new,
            n_columns=columns,
            data_dir=data_dir,
            seed=seed,
        )
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


def deal(
    name: str,
    output: Path,
    *,
    parties: list[str],
    n_per_party: int,
    n_public: int,
    n_new: int,
    n_columns: int | None = None,
    data_dir: Path | None = None,
    seed: int | None = 0,
) -> tuple[dict[Path, int], str]:
    """Write one CSV file per party, ``public.csv`` and ``new.csv``, without a row in common.

    Parameters
    ----------
    name : str
        Of a data set.
    output : Path
    parties : list of str
        Become the names of files.
    n_per_party, n_public, n_new : int
        Rows of each table.
    n_columns : int, optional
        Columns to keep: those that vary most.
    data_dir : Path, optional
    seed : int or None

    Returns
    -------
    written : dict of Path to int
        Files, and their rows.
    target : str
        Column of the target.

    Raises
    ------
    ValueError
        When the data set has too few rows, or a file is there already.
    """
    import numpy as np

    from .._validation import require
    from ..datasets import load

    pandas = require("pandas", "cli")
    sizes = dict.fromkeys(parties, n_per_party) | {PUBLIC: n_public, NEW: n_new}
    if len(sizes) < len(parties) + 2:
        raise ValueError(f"Parties need names of their own, other than {PUBLIC!r} and {NEW!r}; got {parties!r}.")
    files = {output / f"{table}.csv": n_rows for table, n_rows in sizes.items()}
    there = [str(file) for file in files if file.exists()]
    if there:
        raise ValueError(f"{', '.join(there)}: there already. Remove them, or choose another directory.")
    X, y = load(name, data_dir=data_dir)
    if sum(sizes.values()) > len(y):
        raise ValueError(f"{sum(sizes.values())} rows are wanted, and {name} has {len(y)}. Ask for fewer.")
    feature, target = _NAMES.get(name, ("x", "y"))
    width = len(str(X.shape[1]))
    columns = [f"{feature}_{number:0{width}d}" for number in range(1, X.shape[1] + 1)]
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_columns])
    order = np.random.default_rng(seed).permutation(len(y))
    output.mkdir(parents=True, exist_ok=True)
    start = 0
    for file, n_rows in files.items():
        rows = order[start : start + n_rows]
        table = pandas.DataFrame(X[np.ix_(rows, kept)], columns=[columns[position] for position in kept])
        table[target] = y[rows]
        file.write_text(table.to_csv(index=False), encoding="utf-8", newline="")
        start += n_rows
    return files, target
