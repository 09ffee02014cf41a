"""What would leave and its risk, and sharing: `party check`, `party share`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.party_folder import (
    FIGURES,
    PartyFolder,
    ReleaseSummary,
    deadline_passed,
    figure_text,
    limit_text,
    undefended_rows,
)
from ...exchange.project import Column, Project
from ...party import OBFUSCATORS, PRESETS
from ..web import (
    Action,
    Job,
    Page,
    Pages,
    bars_svg,
    checked,
    files_in,
    handed_out,
    number,
    people_svg,
    refusal_of,
    remote_commands,
    text,
    whole_number,
)
from ._desk import Looked, PartyDesk

if TYPE_CHECKING:
    from ...exchange.party_folder import Prepared
    from ...risk.audit._findings import Rating

__all__ = [
    "APPROVE",
    "DECLINED",
    "OUTBOX",
    "RELEASE",
    "Record",
    "RiskPicture",
    "approval_parts",
    "attack_words",
    "form_of",
    "look_at",
    "options_of",
    "record_of",
    "release_parts",
    "risk_pictures",
    "summary_context",
    "unless_declined",
]

_MOST = 32


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of the table, and what leaves in its place.

    Attributes
    ----------
    number : int
        Of the row, from 1 on.
    n_rows : int
    before : list of (str, str)
        Columns and entries, as the project reads them.
    after : list of float
        The row that leaves, or one of those that do.
    target : str
        That leaves with it.
    said : str
        What this row is to that one.
    """

    number: int
    n_rows: int
    before: list[tuple[str, str]]
    after: list[float]
    target: str
    said: str


def record_of(project: Project, prepared: Prepared, number: int) -> Record:
    """Lay a row of the table beside what would leave.

    Parameters
    ----------
    project : Project
    prepared : Prepared
    number : int
        Of the row, from 1 on; beyond the last one, the last.
    """
    X, order, share = prepared.own.X, prepared.order, prepared.share
    at = min(max(number, 1), len(X)) - 1
    places = np.flatnonzero(order == at)
    if len(places) == 0:
        place, said = -1, "This row is kept back: nothing of it would leave."
    elif prepared.summary.stands_for == "one row":
        place, said = int(places[0]), "What would leave of this row: it stands for it alone."
    else:
        place, said = int(places[0]), "What would leave: a row that stands for this one and others of its group."
    return Record(
        number=at + 1,
        n_rows=len(X),
        before=list(_entries(project, X[at])),
        after=[] if place < 0 else [float(value) for value in share.representation[place][:_MOST]],
        target="" if place < 0 else _told(share.target[place]),
        said=said,
    )


def _entries(project: Project, row: Any) -> Iterator[tuple[str, str]]:
    start = 0
    for column in project.columns:
        yield column.name, _entry(column, row[start : start + column.n_features])
        start += column.n_features


def _entry(column: Column, block: Any) -> str:
    if column.flag_missing and block[-1]:
        return "missing"
    if column.kind == "number":
        return f"{block[0]:.10g} {column.unit}".rstrip()
    return column.levels[int(np.argmax(block[: len(column.levels)]))]


def _told(target: Any) -> str:
    if getattr(target, "dtype", None) is not None and target.dtype.names:
        return ", ".join(f"{name} {target[name]}" for name in target.dtype.names)
    return f"{target:.6g}" if isinstance(target, float | np.floating) else str(target)


_ROUNDING = 1e-9
_SENTENCES = {
    "linkage": "Of 100 people whose records the attacker has, up to {} would be linked to the row that is theirs.",
    "reidentification": "With strangers among the candidates, up to {} of 100 of your people would be told.",
    "membership": "Of 100 pairs of one who is in the table and one who is not, the attacker would point to the right "
    "one in up to {}; guessing gets 50.",
}


@dataclass(frozen=True, kw_only=True)
class RiskPicture:
    """One figure of the risk.

    Attributes
    ----------
    title, figure, sentence : str
    limit, known : str
        What the policy allows, and what is known besides; empty where there is nothing.
    is_above : bool
        Whether it is above its limit, or should have been measured.
    picture : Markup
    """

    title: str
    figure: str
    sentence: str
    limit: str
    known: str
    is_above: bool
    picture: Markup


def risk_pictures(summary: ReleaseSummary) -> list[RiskPicture]:
    """A picture of each figure; none where no attack was made."""
    return [] if summary.risk is None else [_picture(summary, name) for name in FIGURES]


def _picture(summary: ReleaseSummary, name: str) -> RiskPicture:
    assert summary.risk is not None
    told, limit = summary.risk.of(name), summary.limits.get(name)
    known = []
    if name in summary.risk.targets_alone:
        known.append(f"by targets alone: {figure_text(name, summary.risk.targets_alone[name])}")
    if name in summary.proven:
        known.append(f"proven for any attack: at most {figure_text(name, summary.proven[name])}")
    counted = "?" if told is None else str(math.ceil(100 * told - _ROUNDING))
    return RiskPicture(
        title=FIGURES[name],
        figure="not measured" if told is None else f"at most {figure_text(name, told)}",
        sentence="No figure, which is not the same as no risk." if told is None else _SENTENCES[name].format(counted),
        limit="" if limit is None else limit_text(name, limit),
        known="; ".join(known),
        is_above=name in summary.above_limits,
        picture=Markup() if told is None else people_svg(told, limit),
    )


def options_of(form: FormData) -> dict[str, Any]:
    """Options as `PartyFolder.prepare` takes them; what was left open is not among them.

    Raises
    ------
    ValueError
        Where an entry is none that is known.
    """
    found: dict[str, Any] = {
        "preset": _one_of(form, "preset", PRESETS),
        "obfuscator": _one_of(form, "obfuscator", OBFUSCATORS),
        "n_components": whole_number(form, "components"),
        "epsilon": number(form, "epsilon"),
        "group_size": whole_number(form, "group_size", least=2),
        "noise": number(form, "noise"),
    }
    chosen = {name: value for name, value in found.items() if value is not None}
    if checked(form, "fit_on_anchor"):
        chosen["fit_on_anchor"] = True
    if checked(form, "as_they_are"):
        chosen["standardize"] = False
    return chosen


def form_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of the form that stand for options."""
    entries = {"components": options.get("n_components", ""), "as_they_are": options.get("standardize") is False}
    names = ("preset", "obfuscator", "epsilon", "group_size", "noise", "fit_on_anchor")
    return entries | {name: options.get(name, "") for name in names}


def _one_of(form: FormData, name: str, known: tuple[str, ...]) -> str | None:
    written = text(form, name)
    if written and written not in known:
        raise ValueError(f"{name.capitalize()}: one of {', '.join(known)} is wanted. Choose one of them.")
    return written or None


RELEASE = "/release"


def release_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the third step."""

    def show(request: Request) -> Response:
        table, looked, opened = desk.wanted_table(), desk.looked, desk.opened_for_rows()
        context: dict[str, Any] = {"looked": looked}
        if looked is not None:
            prepared = looked.prepared
            asked = request.query_params.get("row", "1")
            record = record_of(opened.project, prepared, int(asked) if asked.isdecimal() and len(asked) < 10 else 1)
            context |= summary_context(prepared.summary)
            context |= {"record": record, "bars": bars_svg(record.after), "reasons": looked.reasons}
            options = (prepared.plan.options, *attack_words(desk.attacks))
            context["command"] = desk.command("check", shlex.quote(str(table)), *options)
        else:
            context["command"] = desk.command("check", shlex.quote(str(table)))
        return pages.page(
            "release.html",
            path=RELEASE,
            table=table,
            form=form_of(desk.options),
            obfuscators=OBFUSCATORS,
            presets=presets(opened),
            shared=desk.shared_entry(),
            **context,
        )

    def look(form: FormData) -> Response:
        return look_at(
            desk,
            options_of(form),
            audit=not checked(form, "no_audit"),
            time_budget=number(form, "time_budget"),
        )

    yield Page(RELEASE, show)
    yield Action(RELEASE, look)


def presets(opened: PartyFolder) -> list[tuple[str, str]]:
    """Presets that the project's targets have, the usual one first."""
    groups = ("groups", "groups: means of five of your rows, with noise")
    none = ("none", "none: your rows themselves, without a defence")
    usual = ("", "usual: groups" if opened.project.task.is_single else "usual for these targets")
    return [usual, groups, none]


def look_at(
    desk: PartyDesk,
    options: dict[str, Any],
    *,
    audit: bool = True,
    time_budget: float | None = None,
) -> Response:
    """Begin to do all that sharing does, but let nothing leave."""
    table, opened = desk.wanted_table(), desk.opened_for_rows()

    def work(job: Job) -> None:
        desk.looked = None
        desk.options, desk.attacks = options, {"audit": audit, "time_budget": time_budget}
        prepared = opened.prepare(table, **options, **desk.attacks, progress=job.say)
        reasons = [*deadline_passed(opened.project), *prepared.reasons]
        codes = [reason.code for reason in reasons]
        opened.record("check", file=table.name, way=prepared.plan.options, reasons=codes)
        desk.looked = Looked(prepared=prepared, reasons=[refusal_of(reason) for reason in reasons])

    desk.jobs.start("Looking at what would leave", RELEASE, work)
    return RedirectResponse("/work", 303)


def attack_words(attacks: Mapping[str, Any]) -> list[str]:
    """Options of a command that attacks a share as the desk does.

    Examples
    --------
    >>> attack_words({"audit": True, "time_budget": 90.0})
    ['--time-budget 90']
    >>> attack_words({"audit": False, "time_budget": None})
    ['--no-audit']
    """
    if not attacks["audit"]:
        return ["--no-audit"]
    return [] if attacks["time_budget"] is None else [f"--time-budget {attacks['time_budget']:g}"]


def summary_context(summary: ReleaseSummary) -> dict[str, Any]:
    """What the parts of a page that show a release need."""
    return {
        "summary": summary,
        "facts": list(summary.facts()),
        "risks": risk_pictures(summary),
        "ratings": {} if summary.risk is None else summary.risk.ratings,
        "badge": _badge,
        "notes": () if summary.risk is None else summary.risk.notes,
    }


def _badge(rating: Rating) -> Markup:
    from ...risk.audit._page import rating_badge

    return Markup(rating_badge(rating))


APPROVE, OUTBOX = "/approve", "/outbox"
DECLINED = "You said no. Nothing was written, and nothing leaves."


@dataclass(frozen=True, kw_only=True)
class _Approval:
    """Somebody's yes.

    Attributes
    ----------
    name : str
    undefended : bool
        Whether rows may leave without a defence.
    """

    name: str
    undefended: bool


def approval_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the fourth and fifth step."""

    def show(request: Request) -> Response:
        table, opened, question = desk.wanted_table(), desk.opened_for_rows(), desk.jobs.question_about(ReleaseSummary)
        context: dict[str, Any] = {} if question is None else summary_context(question.about)
        return pages.page(
            "approve.html",
            path=APPROVE,
            table=table,
            question=question,
            looked=desk.looked,
            shared=desk.shared_entry(),
            approvers=opened.policy.approvers,
            analyst=opened.project.analyst.fingerprint,
            command=desk.command("share", shlex.quote(str(table)), *_looked_words(desk)),
            **context,
        )

    def begin(form: FormData) -> Response:
        return _share(desk, again=checked(form, "again"))

    def decide(form: FormData) -> Response:
        job, question, shown = desk.jobs.running, desk.jobs.question_about(ReleaseSummary), text(form, "question")
        if job is None or question is None:
            raise ExchangeError("NOT_APPROVED", "Nothing waits for an approval. Look at what would leave once more.")
        if text(form, "decision") != "yes":
            job.answer(None, shown)
            return RedirectResponse("/work", 303)
        name = text(form, "name")
        if not name:
            raise ValueError("Whoever approves writes their name; it leaves with the share. Write it.")
        desk.opened().policy.check_approver(name)
        undefended = checked(form, "undefended")
        if not undefended and not question.about.defences:
            raise undefended_rows(question.about.party, question.about.obfuscator)
        # What is about another release than the one on the page is refused here.
        job.answer(_Approval(name=name, undefended=undefended), shown)
        return RedirectResponse("/work", 303)

    def outbox(request: Request) -> Response:
        return pages.page(
            "outbox.html",
            path=OUTBOX,
            files=[{"name": file.name, "bytes": file.stat().st_size} for file in files_in(desk.opened().outbox)],
            place=desk.opened().outbox,
            shared=desk.shared_entry(),
            analyst=desk.opened().project.analyst.fingerprint,
            remote=remote_commands(desk.path),
            of_effect=desk.opened().project.task.kind == "effect",
        )

    def download(request: Request) -> Response:
        return handed_out(desk.opened().outbox, request.path_params["name"])

    yield Page(APPROVE, show)
    yield Action(APPROVE, begin)
    yield Action("/approve/decide", decide)
    yield Page(OUTBOX, outbox)
    yield Page("/outbox/{name}", download)


def unless_declined(job: Job, make: Callable[[], Path]) -> Path | None:
    """Make what is to leave; that somebody said no is an end like others."""
    try:
        return make()
    except ExchangeError as error:
        if error.code != "NOT_APPROVED" or not job.notice:
            raise
        return None


def _share(desk: PartyDesk, *, again: bool) -> Response:
    table, opened = desk.wanted_table(), desk.opened_for_rows()
    # What was looked at in vain is not what somebody chose.
    options = {} if desk.looked is None else desk.options | desk.attacks

    def work(job: Job) -> Path | None:
        def ask(summary: ReleaseSummary) -> str | None:
            answer = job.ask(summary)
            if answer is None:
                job.notice = DECLINED
                return None
            if not (answer.undefended or summary.defences):
                raise undefended_rows(summary.party, summary.obfuscator)
            job.where = OUTBOX
            job.say("Writing the share into the outbox")
            return str(answer.name)

        def make() -> Path:
            return opened.share(table, approve=ask, again=again, undefended=True, progress=job.say, **options)

        return unless_declined(job, make)

    desk.jobs.start("Making the share", APPROVE, work)
    return RedirectResponse("/work", 303)


def _looked_words(desk: PartyDesk) -> list[str]:
    """Options of the command that shares as it was looked at."""
    if desk.looked is None:
        return []
    return [word for word in (desk.looked.prepared.plan.options, *attack_words(desk.attacks)) if word]
