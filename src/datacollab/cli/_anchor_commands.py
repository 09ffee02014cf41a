"""``datacollab anchor``: checking an anchor for private rows, and making one that is sealed to the parties."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from ..agreement import Project, anchor_of_rows, guessing, load_project, make_anchor, seal_anchor
from ..anchor import find_private_rows
from ..bundle import write_atomically
from ..errors import ExchangeError
from ..table import read_table
from ._command import WorkFolder
from ._output import Report, list_names, warn
from ._project_commands import is_sealed_for

FOUND = 3
"""Exit code of `check` if there are private rows in the anchor."""


def check(report: Report, anchor: Path, private: Path, target: str | None, tolerance: float) -> None:
    anchor_table = read_table(anchor)
    private_table = read_table(private)
    if target is not None and target not in anchor_table.columns:
        raise ValueError(f"{anchor} has no column {target!r}; it has {list_names(anchor_table.columns)}.")
    # A target of the anchor is a public row's, or made up: an equal one says nothing.
    numeric = anchor_table.select_dtypes(["number", "bool"]).columns
    compared = [name for name in numeric if name in private_table.columns and name != target]
    if not compared:
        raise ValueError(f"{anchor} and {private} have no column of numbers with the same name to compare.")
    others = private_table[compared].select_dtypes(exclude=["number", "bool"]).columns
    if len(others):
        raise ValueError(
            f"{private}: {len(others)} of {len(compared)} columns do not hold numbers ({list_names(others)}). Encode "
            "categories and drop identifiers first."
        )
    ignored = [name for name in anchor_table.columns if name not in compared]
    rows, private_rows = (table[compared].to_numpy() for table in (anchor_table, private_table))
    positions = find_private_rows(rows, private_rows, tolerance=tolerance)
    report.facts = {"private": positions.tolist(), "compared": compared, "ignored": ignored}
    if positions.size:
        report.exit_code = FOUND
        warn(
            f"datacollab: {positions.size} rows of the anchor are private rows (anchor positions "
            f"{list_names(positions)}). Every party sees the anchor, so nothing may be shared with it. Make a new one "
            "from public rows."
        )
        return
    report.line(f"No private row among the {len(anchor_table)} anchor rows. Compared: {list_names(compared)}.")
    if ignored:
        report.line(f"Not compared: {list_names(ignored)}. A row that differs in these alone counts as a copy.")


def _is_of(file: Path, project: Project) -> bool:
    try:
        return is_sealed_for(file, project)
    except ExchangeError:  # another owner's, or damaged
        return False


def _undone(project: Project) -> str:
    if project.shares_sums:
        return ""  # Of sums, no row can be mapped back.
    return " Anyone who has the anchor can undo a linear map: another method is harder to guess."


def seal(
    report: Report, folder: WorkFolder, public: Path | None, project: Path, output: Path, rows_from: Path | None
) -> None:
    # Rows that are made of public ones, or ready ones: both or none leaves open which are meant.
    if (public is None) == (rows_from is None):
        raise typer.BadParameter("give either public rows, or --rows-from with the anchor's rows")
    agreed = load_project(project)
    owner = folder.keys()
    if rows_from is not None:
        anchor = anchor_of_rows(agreed, read_table(rows_from, schema=agreed), where=str(rows_from))
        risk = guessing("given")
        source = f"those of {rows_from}"
    else:
        assert public is not None
        table = read_table(public, schema=agreed)
        anchor = make_anchor(agreed, table, where=str(public))
        risk = guessing(agreed.anchor.method, n_public=len(table), n_features=agreed.n_features)
        source = f"made of those of {public}"
    # Two anchors of one project are easily mixed up, and shares of different ones do not fit together.
    beside = sorted({*output.parent.glob("*.dcanchor"), *folder.path.glob("*.dcanchor")})
    earlier = [file for file in beside if _is_of(file, agreed)]
    write_atomically(output, seal_anchor(anchor, agreed, owner), overwrite=False)
    n_labelled = len(anchor.labelled_rows)
    report.facts = {
        "written": str(output),
        "n_rows": len(anchor.rows),
        "n_features": agreed.n_features,
        "with_target": anchor.target is not None,
        "n_labelled": n_labelled,
        "parties": list(agreed.parties),
        "project_digest": agreed.digest,
        "guessing": asdict(risk),
    }
    targets = "without targets"
    if n_labelled == len(anchor.rows):
        targets = "with targets"
    elif n_labelled:
        targets = f"{n_labelled} of them with targets"
    report.line(
        f"{output}: {len(anchor.rows)} rows, {agreed.n_features} columns, {targets}; sealed to "
        f"{', '.join(agreed.parties)}"
    )
    if earlier:
        report.line(f"warning: {earlier[0]} is an anchor of this project, too. Send all parties the same one.")
    report.line("Send this one file to every party; it is of no use to anybody else.")
    report.line(f"Its rows are {source}: these have to be public, as every party sees the anchor.")
    if risk.level == "warning":
        report.line(risk.sentence + _undone(agreed))
