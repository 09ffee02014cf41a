"""Choosing the table, and what is wrong with it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.party_folder import PartyFolder
from ...exchange.project import Column, adjusted_text
from ..web import Action, Job, Page, Pages, chosen_file, refusal_of
from ._desk import TABLE_ENDINGS, PartyDesk, Seen

__all__ = ["seen_in", "table_parts"]

TABLE, WRONG = "/table", "/wrong"
_LOOKING = "Looking at the table"


def table_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the first two steps."""

    def choose(request: Request) -> Response:
        return pages.page(
            "table.html",
            path=TABLE,
            table=desk.table,
            kept=desk.files.kept("table"),
            endings=TABLE_ENDINGS,
            columns=[described(column) for column in desk.opened().project.columns],
            task=desk.opened().project.task,
        )

    def chosen(form: FormData) -> Response:
        chosen = chosen_file(form, desk.files, as_name="table", endings=TABLE_ENDINGS, what="table with your rows")

        def work(job: Job) -> None:
            # Not before: what is at work meanwhile may read the last one.
            desk.choose(desk.files.keep(chosen, as_name="table"))
            _look(desk, job)

        desk.jobs.start(_LOOKING, WRONG, work, at_end=chosen.discard)
        return RedirectResponse("/work", 303)

    def again(form: FormData) -> Response:
        desk.wanted_table()
        desk.jobs.start(_LOOKING, WRONG, lambda job: _look(desk, job))
        return RedirectResponse("/work", 303)

    def removed(form: FormData) -> Response:
        def work(job: Job) -> None:
            kept = desk.files.kept("table")
            desk.files.remove("table")
            if desk.table == kept:
                desk.choose(None)

        desk.jobs.start("Removing the copy of the table", TABLE, work)
        return RedirectResponse("/work", 303)

    def wrong(request: Request) -> Response:
        table = desk.wanted_table()
        seen = desk.seen
        return pages.page(
            "wrong.html",
            path=WRONG,
            table=table,
            seen=seen,
            sentence=adjusted_text(seen.adjusted) if seen is not None and seen.adjusted else "none",
            columns=[
                described(column) | {"found": (seen.adjusted.get("columns", {}) if seen else {}).get(column.name, {})}
                for column in desk.opened().project.columns
            ],
            command=desk.command("check", shlex.quote(str(table)), "--details"),
        )

    yield Page(TABLE, choose)
    yield Action(TABLE, chosen)
    yield Action("/table/remove", removed)
    yield Page(WRONG, wrong)
    yield Action(WRONG, again)


def _look(desk: PartyDesk, job: Job) -> None:
    table = desk.wanted_table()
    job.say(f"Reading {table.name}")
    desk.seen = seen_in(desk.opened(), table)


def seen_in(folder: PartyFolder, table: Path) -> Seen:
    """What is wrong with a table; a refusal is a finding here.

    Parameters
    ----------
    folder : PartyFolder
    table : Path
    """
    try:
        encoded = folder.encoded(table)
    except ExchangeError as error:
        return Seen(refusal=refusal_of(error))
    targets: dict[str, int] = {}
    if folder.project.task.kind == "classification" and encoded.target is not None:
        counts = Counter(encoded.target.tolist())
        targets = {str(name): counts[name] for name in folder.project.task.classes}
    return Seen(n_rows=encoded.n_rows, adjusted=encoded.adjusted.to_dict(), targets=targets)


def described(column: Column) -> dict[str, Any]:
    """What may stand in a column, and what becomes of the rest, in words."""
    if column.kind == "number":
        allowed = f"{column.minimum:.10g} to {column.maximum:.10g}" + (f" {column.unit}" if column.unit else "")
        rule = {
            "refuse": "others are refused",
            "clip": "others become the nearer bound",
            "missing": "others count as missing",
        }[column.outside]
    else:
        allowed = ", ".join(column.categories)
        rule = {
            "refuse": "others are refused",
            "other": "others count as “other”",
            "missing": "others count as missing",
        }[column.unknown]
    missing = "refused" if column.missing == "refuse" else f"filled in with {column.fill}"
    return {"name": column.name, "kind": column.kind, "allowed": allowed, "rule": rule, "missing": missing}
