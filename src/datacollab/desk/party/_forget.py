"""Destroying the secret map, and all that was made by it: `party forget`."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, text
from ._desk import PartyDesk

__all__ = ["FORGET", "forget_parts"]

FORGET = "/forget"


def forget_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form."""

    def show(request: Request) -> Response:
        return pages.page(
            "forget.html",
            path=FORGET,
            name=desk.opened().name,
            shared=desk.shared_entry(),
            is_forgotten=desk.has_forgotten(),
            has_learned=desk.has_learned,
            copies=desk.files.lasting(),
            command=desk.command("forget"),
        )

    def forget(form: FormData) -> Response:
        opened = desk.opened()
        if text(form, "name") != opened.name:
            raise ValueError(
                f"Nothing was destroyed. Whoever means it writes the party's name, {opened.name}, into the field."
            )

        def work(job: Job) -> None:
            opened.forget()
            job.say("Removing the copies that this desk keeps")
            desk.forget_copies()

        desk.jobs.start("Forgetting the map", FORGET, work)
        return RedirectResponse("/work", 303)

    yield Page(FORGET, show)
    yield Action(FORGET, forget)
