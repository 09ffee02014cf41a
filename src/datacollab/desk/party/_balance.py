"""Sums of the shared rows by arm, after an effect: `party balance`, whose question is asked on a page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.party_folder import BalanceRelease
from ..web import Action, Job, Page, Pages, chosen_file, text
from ._approval import DECLINED, OUTBOX, unless_declined
from ._desk import PartyDesk

__all__ = ["BALANCE", "balance_parts"]

BALANCE = "/balance"
_ENDINGS = (".dcpropensity",)


def balance_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the forms."""

    def show(request: Request) -> Response:
        opened = desk.opened()
        return pages.page(
            "sums.html",
            path=BALANCE,
            question=desk.jobs.question_about(BalanceRelease),
            endings=_ENDINGS,
            inbox=desk.files.in_inbox(_ENDINGS),
            analyst=opened.project.analyst.fingerprint,
            command=desk.command("balance", shlex.quote(f"{opened.name}.dcpropensity")),
        )

    def begin(form: FormData) -> Response:
        opened = desk.opened()
        propensity = chosen_file(
            form, desk.files, as_name="propensity", endings=_ENDINGS, what="propensity file that the analyst sent"
        )

        def work(job: Job) -> Path | None:
            def ask(release: BalanceRelease) -> str | None:
                name: str | None = job.ask(release)
                if name is None:
                    job.notice = DECLINED
                else:
                    job.where = OUTBOX
                return name

            job.say("Adding up the shared rows by arm")
            return unless_declined(job, lambda: opened.balance(propensity.path, approve=ask))

        desk.jobs.start("Making the sums", BALANCE, work, at_end=propensity.discard)
        return RedirectResponse("/work", 303)

    def decide(form: FormData) -> Response:
        job, name = desk.jobs.running, text(form, "name")
        if job is None or desk.jobs.question_about(BalanceRelease) is None:
            raise ExchangeError("NOT_APPROVED", "Nothing waits for an approval. Begin once more.")
        if text(form, "decision") != "yes":
            job.answer(None, text(form, "question"))
            return RedirectResponse("/work", 303)
        if not name:
            raise ValueError("Whoever approves writes their name; it leaves with the sums. Write it.")
        desk.opened().policy.check_approver(name)
        job.answer(name, text(form, "question"))
        return RedirectResponse("/work", 303)

    yield Page(BALANCE, show)
    yield Action(BALANCE, begin)
    yield Action("/balance/decide", decide)
