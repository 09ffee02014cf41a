"""``datacollab party explain``: what a party's own columns do in the model, computed at home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ._options import PassphraseFile, passphrase_for
from ._output import Report, reported, show_adjusted
from ._party_options import HERE, AsJson, Details, Folder, Table
from ._progress import shown_progress

if TYPE_CHECKING:
    from ..exchange.party_folder import Explained

__all__ = ["explain"]

_MOST_SHOWN = 10
"""Columns in the list; the file and --json have all."""


def explain(
    table: Table,
    output: Annotated[
        Path, Option("--output", "-o", metavar="FILE", help="File to write: CSV, Parquet or Arrow, by its name.")
    ],
    rows: Annotated[
        int, Option(min=1, metavar="N", help="Explain so many of a longer table, evenly spaced over it.")
    ] = 100,
    of_class: Annotated[
        str | None, Option("--class", metavar="NAME", help="Which class. Default: the second of two, or else all.")
    ] = None,
    log_odds: Annotated[bool, Option("--log-odds", help="Explain log odds, not probabilities.")] = False,
    keep: Annotated[list[str] | None, Option(metavar="COLUMN", help="Copy a column, such as an identifier.")] = None,
    background: Annotated[
        int, Option(min=1, metavar="N", help="Rows of the anchor that masked columns are taken from.")
    ] = 100,
    figure: Annotated[
        Path | None, Option(dir_okay=False, metavar="FILE", help="Draw it too: PNG, PDF or SVG, by its name.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Overwrite files that hold something else.")] = False,
    details: Details = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what each column adds to the collaboration's answers for rows of a table. Nothing leaves.

    Shapley values by the package shap, with the anchor as the background. The files tell of the rows, like the table.

    Example: datacollab party explain new.csv -o why.csv --keep id -C hospital-a
    """
    if output.exists() and output.samefile(table):
        raise typer.BadParameter(f"{output} is the table itself; name another file.", param_hint="--output")
    with reported(as_json, unchanged=f"{output} was not written.") as report:
        from ..exchange.party_folder import PartyFolder

        opened = PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))
        with shown_progress(quiet=as_json) as progress:
            found = opened.explain(
                table,
                output,
                of_class=of_class,
                most_rows=rows,
                keep=keep or (),
                log_odds=log_odds,
                n_background=background,
                figure=figure,
                force=force,
                progress=lambda done, n_rows: progress(f"row {done} of {n_rows}", done / n_rows),
            )
        report.facts = _facts(found) | {
            "contributions": str(output),
            "figure": None if figure is None else str(figure),
        }
        _show(found, report)
        show_adjusted(found.adjusted, report, details=details)
        report.line(f"{' and '.join(str(file) for file in (output, figure) if file is not None)}: written for you.")
        report.line("They tell of the rows, like the table. Nothing left the party.")


def _facts(found: Explained) -> dict[str, Any]:
    return {
        "n_rows": len(found.rows),
        "n_rows_of_table": found.n_rows,
        "model": found.model,
        "classes": found.explanation.output_names,
        "importance": found.importance(),
        "exact": found.exact,
        "adjusted": found.adjusted,
    }


def _show(found: Explained, report: Report) -> None:
    outputs = found.explanation.output_names
    of = "" if outputs is None else f" for {', '.join(outputs)}"
    way = "" if found.exact else ", by random orders"
    report.line(
        f"{len(found.rows)} of {found.n_rows} rows explained{way}: the collaboration's {found.model}, without your own "
        "models."
    )
    report.line(f"Mean size of what a column adds to the answer{of}:")
    shown = list(found.importance().items())
    width = max(len(name) for name, _ in shown[:_MOST_SHOWN]) + 2
    for name, value in shown[:_MOST_SHOWN]:
        report.line(f"  {name:{width}}  {value:.4g}")
    if len(shown) > _MOST_SHOWN:
        report.line(f"  and {len(shown) - _MOST_SHOWN} columns of less")
