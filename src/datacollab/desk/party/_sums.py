"""Sharing sums: what would leave, who learns what of it, and a yes by name: `party check`, `party share`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.party_folder import SumsSummary
from ..web import Action, Job, Page, Pages, text
from ._desk import PartyDesk
from ._release import DECLINED, OUTBOX, unless_declined

__all__ = ["SUMS", "sums_parts"]

SUMS = "/sums"


def sums_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Yield the page and forms of a project that shares sums, in place of those that look at rows."""

    def show(request: Request) -> Response:
        table, question = desk.wanted_table(), desk.jobs.question_about(SumsSummary)
        return pages.page(
            "sums.html",
            path=SUMS,
            table=table,
            question=question,
            summary=[] if question is None else question.about.to_text().split("\n\n"),
            shared=desk.shared_entry(),
            approvers=desk.opened().policy.approvers,
            command=desk.command("share", shlex.quote(str(table))),
        )

    def begin(form: FormData) -> Response:
        table, opened = desk.wanted_table(), desk.opened()

        def work(job: Job) -> Path | None:
            def ask(summary: SumsSummary) -> str | None:
                name = job.ask(summary)
                if name is None:
                    job.notice = DECLINED
                    return None
                return str(name)

            made = unless_declined(job, lambda: opened.share(table, approve=ask))
            if made is not None:
                job.where = OUTBOX
            return made

        desk.jobs.start("Adding up the rows", SUMS, work)
        return RedirectResponse("/work", 303)

    def decide(form: FormData) -> Response:
        job, question, shown = desk.jobs.running, desk.jobs.question_about(SumsSummary), text(form, "question")
        if job is None or question is None:
            raise ExchangeError("NOT_APPROVED", "Nothing waits for an approval. Look at what would leave once more.")
        name = None
        if text(form, "decision") == "yes":
            name = text(form, "name")
            if not name:
                raise ValueError("Write the name of the person who approves; it stays in the folder's log.")
            desk.opened().policy.check_approver(name)
        job.answer(name, shown)
        return RedirectResponse("/work", 303)

    yield Page(SUMS, show)
    yield Action(SUMS, begin)
    yield Action("/sums/decide", decide)
