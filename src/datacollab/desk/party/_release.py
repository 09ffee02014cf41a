"""The share as it would leave, its risk, and a yes by name: `party check`, `party share`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from ...agreement import Project
from ...errors import ExchangeError
from ...folder.step_table import STEPS
from ...steps.party import (
    FIGURES,
    PartyFolder,
    ReleaseSummary,
    SumsSummary,
    deadline_passed,
    figure_text,
    limit_text,
    no_defence,
)
from ...table import Column
from ..web import Action, Job, Page, StepForm, download_of, is_ticked, read_inputs, refusal_of, text
from ._desk import Looked, PartyDesk

if TYPE_CHECKING:
    from ...risk.audit._findings import Rating
    from ...steps.party import Prepared

RELEASE = "/release"
APPROVE = "/approve"
SUMS = "/sums"
ROUND = "/round"
OUTBOX = "/outbox"
_CHECK = STEPS["party check"]
_SHARE = STEPS["party share"]
_OPTIONS = tuple(each.name for each in _CHECK.inputs if each.name not in ("table", "dpia", "show_levels"))
_MOST = 32
"""Numbers of a record that leaves that are shown."""
_PRESETS = (
    ("groups", "groups: means of five of your rows, with noise"),
    ("none", "none: your rows themselves, without a defence"),
)
_DECLINED = "You said no. Nothing was written, and nothing leaves."


def release_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms of sharing: by rows, by sums, and the outbox."""
    yield from _row_parts(desk)
    yield from _sum_parts(desk)

    def download(request: Request) -> Response:
        return download_of(desk.open_folder().outbox, request.path_params["name"])

    yield Page(OUTBOX, template="outbox.html")
    yield Page("/outbox/{name}", download)


def _row_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms: look at rows as they would leave, and approve them."""

    def look(request: Request) -> dict[str, Any]:
        table = desk.require_table()
        looked = desk.looked
        opened = desk.open_for_rows()
        usual = "usual: groups" if opened.project.task.is_single else "usual for these targets"
        values: dict[str, Any] = {
            "looked": looked,
            "table": table,
            "command": desk.command("check", table, *_words(desk)),
            "form": fill_form(desk.options),
            "presets": [("", usual), *_PRESETS],
        }
        if looked is None:
            return values
        asked = request.query_params.get("row", "1")
        number = 1
        if asked.isdecimal() and len(asked) < 10:  # no table has more rows
            number = int(asked)
        record = _record(opened.project, looked.prepared, number)
        return values | _summary(looked.prepared.summary) | {"record": record, "reasons": looked.reasons}

    def begin_looking(form: FormData) -> None:
        options = read_inputs(form, _CHECK, _OPTIONS)
        table = desk.require_table()
        opened = desk.open_for_rows()

        def work(job: Job) -> None:
            # The last figures go first: if this fails, nobody may take them for those of these options.
            desk.looked = None
            desk.options = options
            prepared: Any = opened.prepare(table, **options, progress=job.say)
            reasons = [*deadline_passed(opened.project), *prepared.reasons]
            codes = [reason.code for reason in reasons]
            opened.record("check", file=table.name, way=prepared.plan.options, reasons=codes)
            desk.looked = Looked(prepared=prepared, reasons=[refusal_of(reason) for reason in reasons])

        desk.jobs.start(_CHECK.doing, RELEASE, work)

    def approve(request: Request) -> dict[str, Any]:
        table = desk.require_table()
        opened = desk.open_for_rows()
        question = desk.jobs.question_about(ReleaseSummary)
        command = desk.command("share", table, *_words(desk))
        values = {"table": table, "opened": opened, "question": question, "command": command}
        if question is None:
            return values
        return values | _summary(question.about)

    def share(form: FormData) -> None:
        table = desk.require_table()
        opened = desk.open_for_rows()
        # `_decide` takes no yes to undefended rows without their box.
        options: dict[str, Any] = {"again": is_ticked(form, "again"), "undefended": True}
        # The share that was looked at leaves as it is: no secret is drawn anew, and no figure changes.
        if desk.looked is not None:
            options["prepared"] = desk.looked.prepared
        desk.jobs.start(_SHARE.doing, APPROVE, lambda job: _share_once_approved(desk, job, opened, table, **options))

    yield Page(RELEASE, look, "release.html")
    yield Action(RELEASE, begin_looking)
    yield Page(APPROVE, approve, "approve.html")
    yield Action(APPROVE, share)
    yield Action("/approve/decide", lambda form: _decide(desk, form, ReleaseSummary))


def _sum_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms of sharing sums, and of further rounds of a regression."""

    def sums(request: Request) -> dict[str, Any]:
        question = desk.jobs.question_about(SumsSummary)
        if question is None:
            return {"question": None, "blocks": []}
        return {"question": question, "blocks": list(_blocks(question.about.to_text()))}

    def share_sums(form: FormData) -> None:
        table = desk.require_table()
        opened = desk.open_folder()
        desk.jobs.start("Adding up the rows", SUMS, lambda job: _share_once_approved(desk, job, opened, table))

    yield Page(SUMS, sums, "sums.html")
    yield Action(SUMS, share_sums)
    yield Action("/sums/decide", lambda form: _decide(desk, form, SumsSummary))

    def answer(job: Job, file: Path) -> None:
        # One yes was for all rounds, so nobody is asked again.
        table = desk.require_table()
        desk.open_folder().share(table, approve=lambda summary: None, round_file=file, progress=job.say)
        job.where = OUTBOX

    yield Page(ROUND, template="round.html")
    yield desk.form(StepForm(verb="share", path=ROUND, file="round_file", doing="Adding up the rows once more"), answer)


def _blocks(text: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield paragraphs, lists and tables of a text: their kind, and lines or rows; the last two are indented."""
    for paragraph in text.split("\n\n"):
        for is_indented, group in groupby(paragraph.split("\n"), key=lambda line: line.startswith("  ")):
            lines = list(group)
            rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
            # Two spaces stand between columns of a table, and never within a list.
            if is_indented and min(map(len, rows)) > 1:
                yield "table", rows
            else:
                yield ("list" if is_indented else "words"), lines


def _decide(desk: PartyDesk, form: FormData, kind: type) -> None:
    """Answer the work that waits, if the answer is to the very question that the page has shown."""
    job = desk.jobs.running
    question = desk.jobs.question_about(kind)
    if job is None or question is None:
        raise ExchangeError("NOT_APPROVED", "Nothing waits for an approval. Look at what would leave once more.")
    approver = None
    if text(form, "decision") == "yes":
        approver = text(form, "name")
        if not approver:
            raise ValueError("Write the name of the person who approves; it stays in the log, and leaves with rows.")
        opened = desk.open_folder()
        # The policy may name the people who can approve.
        opened.policy.check_approver(approver)
        # Keys of two others have to be heard: invented parties would leave a party's sums unmasked.
        if kind is SumsSummary:
            opened.confirm([each for each in text(form, "heard").splitlines() if each.strip()])
            opened.way.check_confirmed()
        if kind is ReleaseSummary and not (is_ticked(form, "undefended") or question.about.defences):
            raise no_defence(question.about.party, question.about.obfuscator)
    # An answer about another release than the one on the page is refused here.
    job.answer(approver, text(form, "question"))


def _share_once_approved(desk: PartyDesk, job: Job, opened: PartyFolder, table: Path, **options: Any) -> None:
    """Share once somebody has approved it by name; that somebody said no is an end like others."""

    def ask(summary: ReleaseSummary | SumsSummary) -> str | None:
        approver: str | None = job.ask(summary)
        if approver is None:
            job.notice = _DECLINED
        else:
            # The outbox shows the file.
            job.where = OUTBOX
            job.say("Writing the file into the outbox")
        return approver

    try:
        opened.share(table, approve=ask, progress=job.say, **options)
    except ExchangeError as error:
        if error.code != "NOT_APPROVED" or not job.notice:
            raise
        return
    desk.looked = None
    job.where = OUTBOX


def _words(desk: PartyDesk) -> list[str]:
    """Return options of the command that shares as it was looked at."""
    if desk.looked is None:
        return []
    words = [desk.looked.prepared.plan.options]
    budget = desk.options.get("time_budget")
    if desk.options.get("audit") is False:
        words.append("--no-audit")  # Without attacks, there is no time to limit.
    elif budget is not None:
        words.append(f"--time-budget {budget:g}")
    return words


def fill_form(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of the form's fields, by their names."""
    inputs = {each.name: each for each in _CHECK.inputs}
    entries: dict[str, Any] = {each.field: "" for each in inputs.values()}
    for name, value in options.items():
        # A box is ticked for the opposite of the default, be that on or off.
        entries[inputs[name].field] = isinstance(value, bool) or value
    return entries


def _record(project: Project, prepared: Prepared, number: int) -> dict[str, Any]:
    """Lay a row of the table, from 1 on, beside its numbers that would leave; beyond the last one, the last."""
    X = prepared.own.X
    share = prepared.share
    at = min(max(number, 1), len(X)) - 1
    before = [(column.name, _entry(column, block)) for column, block in project.blocks(X[at])]
    record: dict[str, Any] = {"number": at + 1, "n_rows": len(X), "before": before}
    # Rows leave in another order, and groups leave as one row each.
    places = np.flatnonzero(prepared.order == at)
    if not len(places):
        return record | {"after": [], "target": "", "said": "This row is kept back: nothing of it would leave."}
    place = int(places[0])
    sentence = "What would leave: a row that stands for this one and others of its group."
    if prepared.summary.stands_for == "one row":
        sentence = "What would leave of this row: it stands for it alone."
    after = [float(value) for value in share.representation[place][:_MOST]]
    return record | {"after": after, "target": _target_text(share.target[place]), "said": sentence}


def _entry(column: Column, block: Any) -> str:
    # The last number of a block says that the entry was missing, and was filled in.
    if column.flag_missing and block[-1]:
        return "missing"
    if column.kind == "number":
        return f"{block[0]:.10g} {column.unit}".rstrip()
    return column.levels[int(np.argmax(block[: len(column.levels)]))]


def _target_text(target: Any) -> str:
    if getattr(target, "dtype", None) is not None and target.dtype.names:
        return ", ".join(f"{name} {target[name]}" for name in target.dtype.names)
    if isinstance(target, float | np.floating):
        return f"{target:.6g}"
    return str(target)


_ROUNDING = 1e-9
"""Taken off before rounding up: 0.07 times 100 is a little more than 7."""
_SENTENCES = {
    "linkage": "Of 100 people whose records the attacker has, up to {} would be linked to the row that is theirs.",
    "reidentification": "With strangers among the candidates, up to {} of 100 of your people would be re-identified.",
    "membership": "Of 100 pairs of one who is in the table and one who is not, the attacker would point to the right "
    "one in up to {}; guessing gets 50.",
}


def _summary(summary: ReleaseSummary) -> dict[str, Any]:
    """Return the values of a release for the parts of a page that show it."""
    values = {"summary": summary, "facts": list(summary.facts()), "badge": _badge}
    risk = summary.risk
    if risk is None:
        return values | {"risks": [], "ratings": {}, "notes": ()}
    risks = [_picture(summary, name) for name in FIGURES]
    return values | {"risks": risks, "ratings": risk.ratings, "notes": risk.notes}


def _picture(summary: ReleaseSummary, name: str) -> dict[str, Any]:
    """Return one figure of the risk, with the policy's limit and anything known besides."""
    assert summary.risk is not None
    found = summary.risk.of(name)
    limit = summary.limits.get(name)
    known = []
    if name in summary.risk.targets_alone:
        known.append(f"by targets alone: {figure_text(name, summary.risk.targets_alone[name])}")
    if name in summary.proven:
        known.append(f"proven for any attack: at most {figure_text(name, summary.proven[name])}")
    figure = "not measured"
    sentence = "No figure, which is not the same as no risk."
    if found is not None:
        figure = f"at most {figure_text(name, found)}"
        # Rounded up: a risk is never shown as less than it is.
        sentence = _SENTENCES[name].format(math.ceil(100 * found - _ROUNDING))
    allowed = ""
    is_over = False
    if limit is not None:
        allowed = limit_text(name, limit)
        is_over = found is not None and found > limit
    return {
        "title": FIGURES[name],
        "figure": figure,
        "sentence": sentence,
        "limit": allowed,
        "known": "; ".join(known),
        "is_above": name in summary.above_limits,
        "is_red": summary.is_red(name) and not is_over,
        "found": found,
        "allowed": limit,
    }


def _badge(rating: Rating) -> Markup:
    from ...risk.audit._result import rating_badge

    return Markup(rating_badge(rating))
