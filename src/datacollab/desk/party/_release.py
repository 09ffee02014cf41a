"""What would leave and its risk, and a yes by name: `party check`, `party share`."""

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
from ...exchange.party_folder import (
    FIGURES,
    PartyFolder,
    ReleaseSummary,
    SumsSummary,
    deadline_passed,
    figure_text,
    limit_text,
    no_defence,
)
from ...exchange.steps import STEPS
from ...table import Column
from ..web import Action, Job, Page, checked, given, handed_out, refusal_of, text
from ._desk import Looked, PartyDesk

if TYPE_CHECKING:
    from ...exchange.party_folder import Prepared
    from ...risk.audit._findings import Rating

RELEASE, APPROVE, SUMS, OUTBOX = "/release", "/approve", "/sums", "/outbox"
_CHECK, _SHARE = STEPS["party check"], STEPS["party share"]
_OPTIONS = tuple(each.name for each in _CHECK.inputs if each.name not in ("table", "dpia", "show_levels"))
_MOST = 32
"""Numbers of a record that leaves that are shown."""
_PRESETS = (
    ("groups", "groups: means of five of your rows, with noise"),
    ("none", "none: your rows themselves, without a defence"),
)
_DECLINED = "You said no. Nothing was written, and nothing leaves."


def release_parts(desk: PartyDesk) -> Iterator[Page | Action]:
    """Yield pages and forms: look at what would leave, approve it, and the outbox."""

    def look(request: Request) -> dict[str, Any]:
        table, looked, opened = desk.chosen_table(), desk.looked, desk.opened_for_rows()
        usual = "usual: groups" if opened.project.task.is_single else "usual for these targets"
        shown: dict[str, Any] = {
            "looked": looked,
            "table": table,
            "command": desk.command("check", table, *_words(desk)),
            "form": shown_options(desk.options),
            "presets": [("", usual), *_PRESETS],
        }
        if looked is None:
            return shown
        asked = request.query_params.get("row", "1")
        number = int(asked) if asked.isdecimal() and len(asked) < 10 else 1
        record = _record(opened.project, looked.prepared, number)
        return shown | _summary(looked.prepared.summary) | {"record": record, "reasons": looked.reasons}

    def begin_looking(form: FormData) -> None:
        options, table, opened = given(form, _CHECK, _OPTIONS), desk.chosen_table(), desk.opened_for_rows()

        def work(job: Job) -> None:
            desk.looked, desk.options = None, options
            prepared: Any = opened.prepare(table, **options, progress=job.say)
            reasons = [*deadline_passed(opened.project), *prepared.reasons]
            codes = [reason.code for reason in reasons]
            opened.record("check", file=table.name, way=prepared.plan.options, reasons=codes)
            desk.looked = Looked(prepared=prepared, reasons=[refusal_of(reason) for reason in reasons])

        desk.jobs.start(_CHECK.doing, RELEASE, work)

    def approve(request: Request) -> dict[str, Any]:
        table, opened, question = desk.chosen_table(), desk.opened_for_rows(), desk.jobs.question_about(ReleaseSummary)
        command = desk.command("share", table, *_words(desk))
        shown = {"table": table, "opened": opened, "question": question, "command": command}
        return shown if question is None else shown | _summary(question.about)

    def share(form: FormData) -> None:
        table, opened = desk.chosen_table(), desk.opened_for_rows()
        # `_decide` takes no yes to undefended rows without their box.
        options: dict[str, Any] = {"again": checked(form, "again"), "undefended": True}
        # What was looked at leaves as it is: no secret is drawn anew, and no figure changes.
        if desk.looked is not None:
            options["prepared"] = desk.looked.prepared
        desk.jobs.start(_SHARE.doing, APPROVE, lambda job: _shared(desk, job, opened, table, **options))

    def sums(request: Request) -> dict[str, Any]:
        question = desk.jobs.question_about(SumsSummary)
        return {"question": question, "blocks": [] if question is None else list(_blocks(question.about.to_text()))}

    def share_sums(form: FormData) -> None:
        table, opened = desk.chosen_table(), desk.opened()
        desk.jobs.start("Adding up the rows", SUMS, lambda job: _shared(desk, job, opened, table))

    def download(request: Request) -> Response:
        return handed_out(desk.opened().outbox, request.path_params["name"])

    yield Page(RELEASE, look, "release.html")
    yield Action(RELEASE, begin_looking)
    yield Page(APPROVE, approve, "approve.html")
    yield Action(APPROVE, share)
    yield Action("/approve/decide", lambda form: _decide(desk, form, ReleaseSummary))
    yield Page(SUMS, sums, "sums.html")
    yield Action(SUMS, share_sums)
    yield Action("/sums/decide", lambda form: _decide(desk, form, SumsSummary))
    yield Page(OUTBOX, template="outbox.html")
    yield Page("/outbox/{name}", download)


def _blocks(text: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield paragraphs, lists and tables of a text: their kind, and lines or rows; the last two are indented."""
    for paragraph in text.split("\n\n"):
        for is_indented, found in groupby(paragraph.split("\n"), key=lambda line: line.startswith("  ")):
            lines = list(found)
            rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
            if is_indented and min(map(len, rows)) > 1:
                yield "table", rows
            else:
                yield ("list" if is_indented else "words"), lines


def _decide(desk: PartyDesk, form: FormData, kind: type) -> None:
    """Answer the work that waits, if the answer is to what the page has shown."""
    job, question, shown = desk.jobs.running, desk.jobs.question_about(kind), text(form, "question")
    if job is None or question is None:
        raise ExchangeError("NOT_APPROVED", "Nothing waits for an approval. Look at what would leave once more.")
    approver = None
    if text(form, "decision") == "yes":
        approver = text(form, "name")
        if not approver:
            raise ValueError("Write the name of the person who approves; it stays in the log, and leaves with rows.")
        opened = desk.opened()
        opened.policy.check_approver(approver)
        if kind is SumsSummary:
            opened.confirm([each for each in text(form, "heard").splitlines() if each.strip()])
            opened.check_confirmed()
        if kind is ReleaseSummary and not (checked(form, "undefended") or question.about.defences):
            raise no_defence(question.about.party, question.about.obfuscator)
    # What is about another release than the one on the page is refused here.
    job.answer(approver, shown)


def _shared(desk: PartyDesk, job: Job, opened: PartyFolder, table: Path, **options: Any) -> None:
    """Share once somebody has approved it by name; that somebody said no is an end like others."""

    def ask(summary: ReleaseSummary | SumsSummary) -> str | None:
        approver: str | None = job.ask(summary)
        if approver is None:
            job.notice = _DECLINED
        else:
            # The outbox shows what came of it.
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
    """Return options of the command that does what was looked at."""
    if desk.looked is None:
        return []
    words, budget = [desk.looked.prepared.plan.options], desk.options.get("time_budget")
    if desk.options.get("audit") is False:
        return [*words, "--no-audit"]
    return words if budget is None else [*words, f"--time-budget {budget:g}"]


def shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the fields of the form show, by their names."""
    of = {each.name: each for each in _CHECK.inputs}
    shown = {each.field: "" for each in of.values()}
    return shown | {of[name].field: True if isinstance(value, bool) else value for name, value in options.items()}


def _record(project: Project, prepared: Prepared, number: int) -> dict[str, Any]:
    """Lay a row of the table, from 1 on, beside what would leave; beyond the last one, the last."""
    X, order, share = prepared.own.X, prepared.order, prepared.share
    at = min(max(number, 1), len(X)) - 1
    places = np.flatnonzero(order == at)
    place = int(places[0]) if len(places) else None
    if place is None:
        said = "This row is kept back: nothing of it would leave."
    elif prepared.summary.stands_for == "one row":
        said = "What would leave of this row: it stands for it alone."
    else:
        said = "What would leave: a row that stands for this one and others of its group."
    return {
        "number": at + 1,
        "n_rows": len(X),
        "before": [(column.name, _entry(column, block)) for column, block in project.blocks(X[at])],
        "after": [] if place is None else [float(value) for value in share.representation[place][:_MOST]],
        "target": "" if place is None else _target_text(share.target[place]),
        "said": said,
    }


def _entry(column: Column, block: Any) -> str:
    if column.flag_missing and block[-1]:
        return "missing"
    if column.kind == "number":
        return f"{block[0]:.10g} {column.unit}".rstrip()
    return column.levels[int(np.argmax(block[: len(column.levels)]))]


def _target_text(target: Any) -> str:
    if getattr(target, "dtype", None) is not None and target.dtype.names:
        return ", ".join(f"{name} {target[name]}" for name in target.dtype.names)
    return f"{target:.6g}" if isinstance(target, float | np.floating) else str(target)


_ROUNDING = 1e-9
_SENTENCES = {
    "linkage": "Of 100 people whose records the attacker has, up to {} would be linked to the row that is theirs.",
    "reidentification": "With strangers among the candidates, up to {} of 100 of your people would be re-identified.",
    "membership": "Of 100 pairs of one who is in the table and one who is not, the attacker would point to the right "
    "one in up to {}; guessing gets 50.",
}


def _summary(summary: ReleaseSummary) -> dict[str, Any]:
    """Return what the parts of a page that show a release need."""
    risk = summary.risk
    return {
        "summary": summary,
        "facts": list(summary.facts()),
        "risks": [] if risk is None else [_picture(summary, name) for name in FIGURES],
        "ratings": {} if risk is None else risk.ratings,
        "badge": _badge,
        "notes": () if risk is None else risk.notes,
    }


def _picture(summary: ReleaseSummary, name: str) -> dict[str, Any]:
    """Return one figure of the risk, with what the policy allows and what is known besides."""
    assert summary.risk is not None
    found, limit = summary.risk.of(name), summary.limits.get(name)
    known = []
    if name in summary.risk.targets_alone:
        known.append(f"by targets alone: {figure_text(name, summary.risk.targets_alone[name])}")
    if name in summary.proven:
        known.append(f"proven for any attack: at most {figure_text(name, summary.proven[name])}")
    sentence = "No figure, which is not the same as no risk."
    if found is not None:
        sentence = _SENTENCES[name].format(math.ceil(100 * found - _ROUNDING))
    return {
        "title": FIGURES[name],
        "figure": "not measured" if found is None else f"at most {figure_text(name, found)}",
        "sentence": sentence,
        "limit": "" if limit is None else limit_text(name, limit),
        "known": "; ".join(known),
        "is_above": name in summary.above_limits,
        "is_red": summary.is_red(name) and not (found is not None and limit is not None and found > limit),
        "found": found,
        "allowed": limit,
    }


def _badge(rating: Rating) -> Markup:
    from ...risk.audit._result import rating_badge

    return Markup(rating_badge(rating))
