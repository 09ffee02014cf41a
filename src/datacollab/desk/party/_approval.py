"""Sharing: `party share`, whose question is asked on a page; and the outbox."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.party_folder import ReleaseSummary, reasons_without_defence, refuse
from ..web import Action, Job, Page, Pages, checked, files_in, handed_out, remote_commands, text
from ._desk import PartyDesk
from ._release import attack_words, summary_context

__all__ = ["APPROVE", "DECLINED", "OUTBOX", "approval_parts", "unless_declined"]

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
    """Pages and forms of the fifth and sixth step."""

    def show(request: Request) -> Response:
        table, opened, question = desk.wanted_table(), desk.opened(), desk.jobs.question_about(ReleaseSummary)
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
        if not undefended:
            refuse(reasons_without_defence(question.about))
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
    table, opened = desk.wanted_table(), desk.opened()
    # What was looked at in vain is not what somebody chose.
    options = {} if desk.looked is None else desk.options | desk.attacks

    def work(job: Job) -> Path | None:
        def ask(summary: ReleaseSummary) -> str | None:
            answer = job.ask(summary)
            if answer is None:
                job.notice = DECLINED
                return None
            if not answer.undefended:
                refuse(reasons_without_defence(summary))
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
    return [word for word in (desk.looked.prepared.way.options, *attack_words(desk.attacks)) if word]
