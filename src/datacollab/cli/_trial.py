"""``datacollab trial``: simulated parties on a table, before anybody agrees on anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .._require import require
from ..bundle import KeyPair
from ..estimators import simulate_parties
from ..exchange.project import Project, draft_project, encode_table, read_table
from ._output import Report, closed_file, listed, record_number_questions
from ._progress import shown_progress


def trial(
    report: Report,
    table: Path,
    target: str,
    public: Path | None,
    parties: str,
    without: list[str] | None,
    output: Path | None,
) -> None:
    if not re.fullmatch(r"\d+(,\d+)*", parties):
        raise typer.BadParameter(f"Expected whole numbers such as 3,5,10, got {parties!r}.", param_hint="--parties")
    rows = read_table(table)
    if lacking := [name for name in (target, *(without or ())) if name not in rows.columns]:
        raise ValueError(f"{table} has no column {listed(lacking)}; it has {listed(rows.columns)}.")
    labelled = rows[rows[target].notna()]
    # For its columns and its task; nobody keeps the keys.
    a, b, analyst = (KeyPair.generate().public for _ in range(3))
    members: dict[str, Any] = {"owner": a, "analyst": analyst, "parties": {"a": a, "b": b}}
    project = draft_project(labelled, name="trial", purpose="A trial.", target=target, without=without or (), **members)
    X, y = _read(project, labelled, table)
    anchor, anchor_target = (None, None) if public is None else _read(project, read_table(public), public)
    with shown_progress() as progress:
        found = simulate_parties(
            *(X, y),
            anchor=anchor,
            anchor_target=anchor_target,
            n_parties=[int(each) for each in parties.split(",")],
            task="classification" if project.task.classes else "regression",
            random_state=0,
            progress=lambda done, n_steps, words: progress(f"step {done + 1} of {n_steps}: {words}", done / n_steps),
        )
    numbers = [column.name for column in project.columns if column.kind == "number"]
    remarks = record_number_questions(labelled, numbers, "it predicts nothing: leave it out, with --without")
    if len(rows) > len(labelled):
        remarks.append(f"{len(rows) - len(labelled)} rows without a target are left out.")
    scores = found.table()
    report.facts = {"scores": scores.to_dict("records"), "sentence": found.sentence, "notes": [*found.notes, *remarks]}
    for line in (*found.summary().splitlines(), *remarks):
        report.line(line)
    if output is not None:
        figure = found.plot()
        output.mkdir(parents=True, exist_ok=True)
        csv, picture = (closed_file(output / name) for name in ("trial.csv", "trial.png"))
        csv.write_text(scores.to_csv(index=False), encoding="utf-8", newline="")
        figure.savefig(picture, dpi=200)
        report.line(f"Written: {csv}, {picture}")


def _read(project: Project, table: Any, path: Path) -> tuple[Any, Any]:
    """Return a table's columns as a data frame, filled in as the project does, and its targets if it has any."""
    found = encode_table(project, table, where=str(path), with_target=project.task.target in table.columns)
    blocks = np.split(found.X, np.cumsum([column.n_features for column in project.columns])[:-1], axis=1)
    columns = {
        column.name: np.array(column.levels)[block.argmax(axis=1)] if column.levels else block[:, 0]
        for column, block in zip(project.columns, blocks, strict=True)
    }
    return require("pandas", "cli").DataFrame(columns), found.target
