"""A model of one's own from answers on the anchor, and forgetting the map: `party distil`, `party forget`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, chosen_file, text, whole_number
from ._desk import PartyDesk

__all__ = ["DISTIL", "FORGET", "distil_parts", "forget_parts"]

DISTIL = "/distil"
_ENDINGS = (".dcanswers",)
_DEEPEST = 20


def distil_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form."""

    def show(request: Request) -> Response:
        return pages.page(
            "distil.html",
            path=DISTIL,
            endings=_ENDINGS,
            inbox=desk.files.in_inbox(_ENDINGS),
            found=desk.distilled,
            is_there=desk.has_distilled,
            command=desk.command("distil", shlex.quote(f"{desk.opened().name}.dcanswers")),
        )

    def distil(form: FormData) -> Response:
        depth = whole_number(form, "tree")
        if depth is not None and depth > _DEEPEST:
            raise ValueError(f"Tree: {depth} is not allowed; a whole number from 1 to {_DEEPEST} is wanted.")
        opened = desk.opened()
        answers = chosen_file(
            form, desk.files, as_name="answers", endings=_ENDINGS, what="file of answers that the analyst sent"
        )

        def work(job: Job) -> None:
            job.say("Checking the answers, and learning from them")
            desk.distilled = opened.distil(answers.path, tree=depth)

        desk.jobs.start("Distilling anchor predictions", DISTIL, work, at_end=answers.discard)
        return RedirectResponse("/work", 303)

    yield Page(DISTIL, show)
    yield Action(DISTIL, distil)


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
            has_distilled=desk.has_distilled,
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
