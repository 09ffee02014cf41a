"""``datacollab trial``: on one table, before anybody agrees: would sums pay, what would leave, who would know what."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import typer

from .._require import require
from ..anchor import equal_rows
from ..bundle import KeyPair
from ..estimators import PartySimulation, simulate_parties
from ..exchange.party_folder import APART, TOGETHER, WORST_ROSTERS, measured_for, membership_rows, message_bytes
from ..exchange.project import (
    EncodedTable,
    Project,
    column_questions,
    declared_alike,
    draft_project,
    encode_table,
    read_table,
)
from ..sums import measured_membership
from ._output import Report, closed_file, listed
from ._progress import shown_progress

_MOST_CLASSES, _MOST_NAMES = 12, 60


def trial(
    report: Report,
    table: Path,
    public: Path | None,
    target: str,
    parties: str,
    without: list[str] | None,
    output: Path | None,
) -> None:
    if not re.fullmatch(r"\d+(,\d+)*", parties):
        raise typer.BadParameter(f"Expected whole numbers such as 3,5,10, got {parties!r}.", param_hint="--parties")
    rows = read_table(table)
    if lacking := [name for name in (target, *(without or ())) if name not in rows.columns]:
        raise ValueError(f"{table} has no column {listed(lacking)}; it has {listed(rows.columns)}.")
    others, absent = None if public is None else read_table(public), list[str]()
    if others is not None and (absent := [name for name in rows.columns if name not in {*others.columns, target}]):
        without = [*(without or ()), *absent]
    labelled = rows[rows[target].notna()]
    # For its columns and its task; nobody keeps the keys.
    a, b, analyst = (KeyPair.generate().public for _ in range(3))
    members: dict[str, Any] = {"owner": a, "analyst": analyst, "parties": {"a": a, "b": b}}
    project = draft_project(labelled, name="trial", purpose="A trial.", target=target, without=without or (), **members)
    own = _encoded(project, labelled, table)
    X, y = _frame(project, own.X[own.labelled]), np.asarray(own.target)
    numbers = [column.name for column in project.columns if column.kind == "number"]
    remarks = column_questions(labelled, numbers, "it predicts nothing: leave it out, with --without")
    used = {target, *(without or ()), *(column.name for column in project.columns)}
    if unused := [name for name in rows.columns if name not in used]:
        remarks.append(f"Columns left out, which name rows or are all alike: {listed(unused)}.")
    if absent:
        remarks.append(f"Columns left out, which {public} lacks: {listed(absent)}.")
    if len(rows) > len(labelled):
        remarks.append(f"{len(rows) - len(labelled)} rows without a target are left out.")
    anchor, anchor_target = None, None
    if public is not None:
        shared = _encoded(project, others, public)
        equal = equal_rows(shared.X, own.X)
        if equal.n_equal:
            remarks.append(
                f"{equal.n_equal} different rows of {table} are also in {public}. Chance explains up to "
                f"{equal.by_chance}; `party share` refuses public rows with more."
            )
        anchor = _frame(project, shared.X)
        if shared.target is not None:
            anchor_target = np.full(shared.n_rows, None, dtype=object)
            anchor_target[shared.labelled] = shared.target
    sizes = sorted({int(each) for each in parties.split(",")})
    with shown_progress() as progress:
        found = simulate_parties(
            *(X, y),
            anchor=anchor,
            anchor_target=anchor_target,
            n_parties=sizes,
            task="classification" if project.task.classes else "regression",
            random_state=0,
            progress=lambda done, n_steps, words: progress(f"step {done + 1} of {n_steps}: {words}", done / n_steps),
        )
    told = _Told.of(project, found, y, public, [sizes[0], *sizes[1:][-1:]])
    scores = found.table()
    report.facts = {
        "scores": scores.to_dict("records"),
        "sentence": found.sentence,
        "notes": [*found.notes, *remarks],
        "leaves": list(told.leaves),
        "knows": list(told.knows),
        "attackers": [dict(zip(told.heads, each, strict=True)) for each in told.attackers],
    }
    for line in (*found.summary().splitlines(), *remarks, "", *told.lines()):
        report.line(line)
    if output is not None:
        figure, drawn = found.plot(), io.BytesIO()
        figure.savefig(drawn, dpi=200)
        output.mkdir(parents=True, exist_ok=True)
        csv, picture, page = (closed_file(output / f"trial.{kind}") for kind in ("csv", "png", "html"))
        csv.write_text(scores.to_csv(index=False), encoding="utf-8", newline="")
        picture.write_bytes(drawn.getvalue())
        page.write_text(_page(table, found, remarks, told, drawn.getvalue()), encoding="utf-8")
        report.line(f"Written: {csv}, {picture}, {page}")


def _encoded(project: Project, table: Any, path: Path) -> EncodedTable:
    """Return the project's matrix of a table, and its targets if it has any."""
    return encode_table(project, table, where=str(path), with_target=project.task.target in table.columns, partly=True)


def _frame(project: Project, matrix: Any) -> Any:
    """Return the columns of a matrix, filled in as the project does."""
    columns = {
        column.name: np.array(column.levels)[block.argmax(axis=1)] if column.levels else block[:, 0]
        for column, block in project.blocks(matrix)
    }
    return require("pandas", "cli").DataFrame(columns)


@dataclass(frozen=True, kw_only=True)
class _Told:
    """What would leave and who would know what, in sentences, and attackers' figures as a table."""

    leaves: tuple[str, ...]
    knows: tuple[str, ...]
    heads: tuple[str, ...]
    attackers: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]

    @classmethod
    def of(cls, project: Project, found: PartySimulation, y: Any, public: Path | None, sizes: Sequence[int]) -> _Told:
        all_names, task = [column.name for column in project.columns], project.task
        names = ", ".join(all_names) if len(all_names) <= _MOST_NAMES else listed(all_names)
        tells = "how many rows there are, and how many of each class" if task.classes else "how many rows there are"
        leaves = [
            f"One file from each party, once: about {found.n_numbers:,} numbers, {message_bytes(found.n_numbers):,} "
            f"bytes, hidden under masks and encrypted for the analyst. No row leaves, and no target.",
            "The numbers are sums over the party's rows: all parties turn a row into other columns by one secret map; "
            f"averages of these columns, how they vary together and with {task.target}, {tells}.",
            f"{len(project.columns)} columns go into the map: {names}. Leave out what is not needed, with --without.",
            "All parties see the public rows: no row of a patient may be among them."
            if public is not None
            else "All parties need public rows besides; here, rows of your table played them.",
        ]
        measured, n = measured_membership("alike" if declared_alike(project.columns) else "table"), len(y)
        looked = [measured_for(measured, n_parties * n) for n_parties in sizes]
        columns = [membership_rows(each) for _, each in looked]
        heads = ("", *(f"{k} parties, {k * n:,} rows" for k in sizes))
        attackers = tuple(
            (rows[0][0], *(f"{auc} {rating}" for _, auc, rating in rows)) for rows in zip(*columns, strict=True)
        )
        rare = next(each for each in reversed(measured) if each.rare)
        ten = ", ".join(f"{words} {auc}" for words, auc, _ in membership_rows(rare))
        after = [f"{heads[place + 1]}: {how}." for place, (how, _) in enumerate(looked)]
        after.append(f"Rare classes reveal more. If ten people are of a class, among {rare.n_rows:,} rows: {ten}.")
        if task.classes and len(task.classes) <= _MOST_CLASSES:
            classes, counts = np.unique(y, return_counts=True)
            least = counts.argmin()
            after.append(f"The smallest class here, {classes[least]}, has {counts[least]:,} of {n:,} rows.")
        knows = (
            f"Every party: its own rows, the public rows, the map, and the model. The analyst: the total with noise of "
            f"{rare.noise:g}, and the model. Who carries the files: who shared, and when.",
            APART,
            TOGETHER,
            "How well attackers distinguished people in a total from others, as an AUC (.50 is guessing, 1.00 is "
            f"certain; above .55 amber, above .70 red), if every party has as many rows as this table. {WORST_ROSTERS}",
        )
        return cls(leaves=tuple(leaves), knows=knows, heads=heads, attackers=attackers, after=tuple(after))

    def lines(self) -> Iterable[str]:
        """Yield all of it as plain lines."""
        yield from ("What would leave", "", *self.leaves, "", "Who would know what", "", *self.knows)
        first, width = max(len(row[0]) for row in self.attackers), max(map(len, self.heads)) + 2
        for name, *entries in (self.heads, *self.attackers):
            yield f"  {name:<{first}}{''.join(f'{entry:>{width}}' for entry in entries)}"
        yield from self.after


_PAGE = Template(Path(__file__).with_name("trial.html").read_text(encoding="utf-8"))


def _page(table: Path, found: PartySimulation, remarks: Sequence[str], told: _Told, picture: bytes) -> str:
    """Return the page: HTML that needs nothing from outside."""
    texts = {
        "scores": "".join(
            _table(
                f"{metric}: mean and standard error on rows held out, and 95 % intervals of two differences.",
                ("parties x rows", *heads),
                rows,
            )
            for metric, heads, rows in found.tables()
        ),
        "notes": "".join(f"<li>{escape(each)}</li>" for each in (*found.notes, *remarks)),
        "leaves": _paragraphs(told.leaves),
        "knows": _paragraphs(told.knows) + _table("", told.heads, told.attackers) + _paragraphs(told.after),
        "picture": base64.b64encode(picture).decode(),
    }
    return _PAGE.substitute(texts, table=escape(table.name), sentence=escape(found.sentence))


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(each)}</p>" for each in texts)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(each)}</td>" for each in entries)}</tr>'
        for name, *entries in rows
    )
    said = f"<p>{escape(caption)}</p>" if caption else ""
    return f'{said}<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
