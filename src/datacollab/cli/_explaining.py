"""``datacollab party explain`` and ``columns``: what a party's own columns do in the model, computed at home."""

from __future__ import annotations

import math
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
    from ..party import ColumnEffects

__all__ = ["columns", "explain"]

_MOST_SHOWN = 10
"""Columns in the list; the file and --json have all."""
_FADED = 0.05
_SCALES = {"survival": "log hazard", "classification": "log odds", "regression": "mean"}
_RATIOS = {"survival": "hazard ratios", "classification": "odds ratios"}


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
    orders: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Random orders of columns. Default: exact up to 10 columns, or else one."),
    ] = None,
    seed: Annotated[int, Option(help="Of the orders; the same at every party explains alike.")] = 0,
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

    Shapley values, with the anchor as the background. What is written tells of the rows, like the table.

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
                n_permutations=orders,
                random_state=seed,
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


def columns(
    per_unit: Annotated[
        bool, Option("--per-unit", help="Steps of a unit of each column. Default: a standard deviation.")
    ] = False,
    confidence: Annotated[float, Option(min=0.5, max=0.999, help="Of the intervals.")] = 0.95,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what a step of each column changes on average, where the model is linear. Nothing leaves.

    Needs a Cox regression, or a linear model with its covariance. Columns that the model does not tell are refused.

    Example: datacollab party columns --per-unit -C hospital-a
    """
    with reported(as_json) as report:
        from ..exchange.party_folder import PartyFolder

        opened = PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))
        found = opened.column_effects(scale="unit" if per_unit else "sd", confidence=confidence)
        kind, defences = opened.project.task.kind, opened.shared_defences
        ratios = found.ratios() if kind in _RATIOS else {}
        report.facts = {
            "of": _SCALES[kind],
            "confidence": confidence,
            "columns": _effects(found),
            "ratios": {name: list(ratio) for name, ratio in ratios.items()},
            "defences": list(defences),
        }
        report.line(f"Change of the {_SCALES[kind]} with a step of each column:")
        report.line(str(found))
        if ratios:
            report.line(f"As {_RATIOS[kind]}, with {100 * confidence:g} % intervals:")
            width = max(map(len, ratios))
            for name, (ratio, low, high) in ratios.items():
                report.line(f"  {name:{width}}  {ratio:.3g} [{low:.3g}, {high:.3g}]")
        if defences:
            report.line(
                f"Do not read the intervals: they know nothing of how your share was changed ({'; '.join(defences)})."
            )
        else:
            report.line("Intervals hold where the other parties, too, shared their own rows one by one.")
        report.line("Nothing left the party.")


def _facts(found: Explained) -> dict[str, Any]:
    explanation = found.explanation
    names, r2 = explanation.feature_names, explanation.r2
    return {
        "n_rows": len(found.rows),
        "n_rows_of_table": found.n_rows,
        "model": found.model,
        "classes": None if explanation.output_names is None else list(explanation.output_names),
        "importance": explanation.importance(),
        "not_identified": list(found.not_identified),
        "r2": {name: _or_none(value) for name, value in zip(names, r2.tolist(), strict=True)},
        "faded": explanation.faded,
        "exact": explanation.exact,
        "adjusted": found.adjusted,
    }


def _show(found: Explained, report: Report) -> None:
    explanation, lost = found.explanation, set(found.not_identified)
    of = "" if explanation.output_names is None else f" for {', '.join(explanation.output_names)}"
    way = "" if explanation.exact else ", by random orders"
    report.line(
        f"{len(found.rows)} of {found.n_rows} rows explained{way}: the collaboration's {found.model}, without your own "
        "models."
    )
    report.line(f"Mean size of what a column adds to the answer{of}:")
    shown = list(explanation.importance().items())
    width = max(len(name) for name, _ in shown[:_MOST_SHOWN]) + 2
    for name, value in shown[:_MOST_SHOWN]:
        report.line(f"  {name + (' *' if name in lost else ''):{width}}  {value:.4g}")
    if len(shown) > _MOST_SHOWN:
        report.line(f"  and {len(shown) - _MOST_SHOWN} columns of less")
    if lost:
        report.line(
            f"* warning: {len(lost)} of {len(shown)} columns are not identified ({', '.join(found.not_identified)}). "
            "The representation does not tell them from others, so their values say what the model computes, not what "
            "each column brings."
        )
    if explanation.faded > _FADED:
        report.line(
            f"warning: {explanation.faded:.0%} of the masked rows are far from the anchor, where this map says little."
        )


def _effects(found: ColumnEffects) -> dict[str, dict[str, Any]]:
    names = ("effect", "se", "low", "high", "r2", "leakage", "steps")
    return {
        name: {each: _or_none(float(getattr(found, each)[place])) for each in names} | {"refused": found.reasons[place]}
        for place, name in enumerate(found.names)
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
