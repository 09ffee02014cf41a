"""``datacollab trial``: on one table, before anybody agrees: whether sums would pay, and who would learn how much."""

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
from ..agreement import Project, are_declared_alike, draft_project
from ..anchor import equal_rows
from ..bundle import KeyPair
from ..estimators import PartySimulation, simulate_parties
from ..steps.party import APART, TOGETHER, WORST_ROSTERS, find_measured, membership_rows, message_bytes
from ..sums import membership_figures
from ..table import EncodedTable, Schema, column_questions, encode_table, read_table
from ._output import Report, list_names, make_private_file
from ._progress import shown_progress

_MOST_CLASSES = 12
"""Classes up to which the smallest is named: with more, its name may be a person's."""
_MOST_NAMES = 60
"""Columns that are all named: an officer wants to see each, and a list of pixels says nothing."""


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
    sizes = sorted({int(each) for each in parties.split(",")})
    rows = read_table(table)
    if lacking := [name for name in (target, *(without or ())) if name not in rows.columns]:
        raise ValueError(f"{table} has no column {list_names(lacking)}; it has {list_names(rows.columns)}.")
    public_rows = None
    absent: list[str] = []
    if public is not None:
        public_rows = read_table(public)
        # The map is made of public rows, so it has no place for a column that they lack; targets are no part of it.
        absent = [name for name in rows.columns if name not in {*public_rows.columns, target}]
    left_out = [*(without or ()), *absent]
    labelled = rows[rows[target].notna()]
    project = draft(labelled, target=target, without=left_out)
    own = _encode(project, labelled, table)
    y = np.asarray(own.target)
    others = labelled.drop(columns=[target, *left_out])
    remarks = remark_on_columns(project, others, "it predicts nothing: leave it out, with --without")
    if absent:
        remarks.append(f"Columns left out, which {public} lacks: {list_names(absent)}.")
    if len(rows) > len(labelled):
        remarks.append(f"{len(rows) - len(labelled)} rows without a target are left out.")
    anchor = anchor_target = None
    if public is not None:
        shared = _encode(project, public_rows, public)
        equal = equal_rows(shared.X, own.X)
        if equal.n_equal:
            remarks.append(
                f"{equal.n_equal} different rows of {table} are also in {public}. Chance explains up to "
                f"{equal.by_chance}; `party share` refuses public rows with more."
            )
        anchor = _frame(project, shared.X)
        anchor_target = _fill_target(shared)
    with shown_progress() as progress:
        simulation = simulate_parties(
            _frame(project, own.X[own.labelled]),
            y,
            anchor=anchor,
            anchor_target=anchor_target,
            n_parties=sizes,
            task="classification" if project.task.classes else "regression",
            random_state=0,
            progress=lambda done, n_steps, words: progress(f"step {done + 1} of {n_steps}: {words}", done / n_steps),
        )
    # Attackers' figures for the fewest parties and for the most: what lies between needs no column.
    disclosure = _Disclosure.of(project, simulation, y, public, sorted({sizes[0], sizes[-1]}))
    scores = simulation.table()
    report.facts = {
        "scores": scores.to_dict("records"),
        "sentence": simulation.sentence,
        "notes": [*simulation.notes, *remarks],
        "leaves": list(disclosure.leaves),
        "knows": list(disclosure.knows),
        "attackers": [dict(zip(disclosure.heads, each, strict=True)) for each in disclosure.attackers],
    }
    for line in (*simulation.summary().splitlines(), *remarks, "", *disclosure.lines()):
        report.line(line)
    if output is not None:
        drawn = io.BytesIO()
        simulation.plot().savefig(drawn, dpi=200)
        output.mkdir(parents=True, exist_ok=True)
        csv, picture, page = (make_private_file(output / f"trial.{kind}") for kind in ("csv", "png", "html"))
        csv.write_text(scores.to_csv(index=False), encoding="utf-8", newline="")
        picture.write_bytes(drawn.getvalue())
        page.write_text(_write_page(table, simulation, remarks, disclosure, drawn.getvalue()), encoding="utf-8")
        report.line(f"Written: {csv}, {picture}, {page}")


def draft(table: Any, **wishes: Any) -> Project:
    """Return a project for its columns and its task, as `draft_project` guesses them; nobody keeps the keys."""
    a, b, analyst = (KeyPair.generate().public for _ in range(3))
    return draft_project(
        table, name="trial", purpose="A trial.", owner=a, analyst=analyst, parties={"a": a, "b": b}, **wishes
    )


def remark_on_columns(schema: Schema, table: Any, advice: str) -> list[str]:
    """Return sentences on columns that may be no measurement, and on those that the schema leaves out."""
    numbers = [column.name for column in schema.columns if column.kind == "number"]
    remarks = column_questions(table, numbers, advice)
    used = {column.name for column in schema.columns}
    if unused := [name for name in table.columns if name not in used]:
        remarks.append(f"Columns left out, which name rows or are all alike: {list_names(unused)}.")
    return remarks


def _encode(project: Project, table: Any, path: Path) -> EncodedTable:
    """Return the project's matrix of a table, and its targets if it has any."""
    return encode_table(project, table, where=str(path), with_target=project.task.target in table.columns, partly=True)


def _fill_target(table: EncodedTable) -> Any:
    """Return an entry for each row, None where it has no target; None if no row has one."""
    if table.target is None:
        return None
    target = np.full(table.n_rows, None, dtype=object)
    target[table.labelled] = table.target
    return target


def _frame(project: Project, matrix: Any) -> Any:
    """Return the columns of a matrix, filled in as the project does."""
    columns = {}
    for column, block in project.blocks(matrix):
        columns[column.name] = block[:, 0]
        if column.levels:
            columns[column.name] = np.array(column.levels)[block.argmax(axis=1)]
    return require("pandas", "cli").DataFrame(columns)


@dataclass(frozen=True, kw_only=True)
class _Disclosure:
    """Sentences on the numbers that would leave and on who would know them, and attackers' figures as a table."""

    leaves: tuple[str, ...]
    knows: tuple[str, ...]
    heads: tuple[str, ...]
    attackers: tuple[tuple[str, ...], ...]
    after: tuple[str, ...]

    @classmethod
    def of(
        cls, project: Project, simulation: PartySimulation, y: Any, public: Path | None, sizes: Sequence[int]
    ) -> _Disclosure:
        names = [column.name for column in project.columns]
        listed = list_names(names)
        if len(names) <= _MOST_NAMES:
            listed = ", ".join(names)
        task = project.task
        n_words = "how many rows there are"
        if task.classes:
            n_words += ", and how many of each class"
        seen = "All parties need public rows besides; here, rows of your table played them."
        if public is not None:
            seen = "All parties see the public rows: no row of a patient may be among them."
        n_numbers = simulation.n_numbers
        leaves = (
            f"One file from each party, once: about {n_numbers:,} numbers, {message_bytes(n_numbers):,} "
            f"bytes, hidden under masks and encrypted for the analyst. No row leaves, and no target.",
            "The numbers are sums over the party's rows: all parties turn a row into other columns by one secret map; "
            f"averages of these columns, how they vary together and with {task.target}, {n_words}.",
            f"{len(project.columns)} columns go into the map: {listed}. Leave out what is not needed, with --without.",
            seen,
        )
        n = len(y)
        # Attacks were measured on tables, and on rows that look alike, as pictures; the nearest number of rows counts.
        measured = membership_figures("alike" if are_declared_alike(project.columns) else "table")
        nearest = [find_measured(measured, n_parties * n) for n_parties in sizes]
        columns = [membership_rows(each) for _, each in nearest]
        heads = ("", *(f"{k} parties, {k * n:,} rows" for k in sizes))
        attackers = tuple(
            (rows[0][0], *(f"{auc} {rating}" for _, auc, rating in rows)) for rows in zip(*columns, strict=True)
        )
        # The largest total that was measured with a rare class.
        rare = next(each for each in reversed(measured) if each.rare)
        ten = ", ".join(f"{words} {auc}" for words, auc, _ in membership_rows(rare))
        after = [f"{heads[place + 1]}: {how}." for place, (how, _) in enumerate(nearest)]
        after.append(f"Rare classes reveal more. If ten people are of a class, among {rare.n_rows:,} rows: {ten}.")
        # A class of few people is where a total says most of each.
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
        return cls(leaves=leaves, knows=knows, heads=heads, attackers=attackers, after=tuple(after))

    def lines(self) -> Iterable[str]:
        """Yield all of it as plain lines."""
        yield from ("What would leave", "", *self.leaves, "", "Who would know what", "", *self.knows)
        first = max(len(row[0]) for row in self.attackers)
        width = max(map(len, self.heads)) + 2
        for name, *entries in (self.heads, *self.attackers):
            yield f"  {name:<{first}}{''.join(f'{entry:>{width}}' for entry in entries)}"
        yield from self.after


_PAGE = Template(Path(__file__).with_name("trial.html").read_text(encoding="utf-8"))


def _write_page(
    table: Path, simulation: PartySimulation, remarks: Sequence[str], disclosure: _Disclosure, picture: bytes
) -> str:
    """Return the page: HTML that needs nothing from outside."""
    texts = {
        "scores": "".join(
            _table(
                f"{metric}: mean and standard error on rows held out, and 95 % intervals of two differences.",
                ("parties x rows", *heads),
                rows,
            )
            for metric, heads, rows in simulation.tables()
        ),
        "notes": "".join(f"<li>{escape(each)}</li>" for each in (*simulation.notes, *remarks)),
        "leaves": _paragraphs(disclosure.leaves),
        "knows": (
            _paragraphs(disclosure.knows)
            + _table("", disclosure.heads, disclosure.attackers)
            + _paragraphs(disclosure.after)
        ),
        "picture": base64.b64encode(picture).decode(),
    }
    return _PAGE.substitute(texts, table=escape(table.name), sentence=escape(simulation.sentence))


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{escape(each)}</p>" for each in texts)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(each)}</td>" for each in entries)}</tr>'
        for name, *entries in rows
    )
    above = f"<p>{escape(caption)}</p>" if caption else ""
    return f'{above}<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
