"""A model of one's own from the analyst's answers on the anchor: `party learn`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, chosen_file, whole_number
from ._desk import PartyDesk

__all__ = ["LEARN", "learn_parts"]

LEARN = "/learn"
_ENDINGS = (".dcanswers",)
_DEEPEST = 20


def learn_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form."""

    def show(request: Request) -> Response:
        return pages.page(
            "learn.html",
            path=LEARN,
            endings=_ENDINGS,
            inbox=desk.files.in_inbox(_ENDINGS),
            found=desk.learned,
            is_there=desk.has_learned,
            command=desk.command("learn", shlex.quote(f"{desk.opened().name}.dcanswers")),
        )

    def learn(form: FormData) -> Response:
        depth = whole_number(form, "tree")
        if depth is not None and depth > _DEEPEST:
            raise ValueError(f"Tree: {depth} is not allowed; a whole number from 1 to {_DEEPEST} is wanted.")
        opened = desk.opened()
        answers = chosen_file(
            form, desk.files, as_name="answers", endings=_ENDINGS, what="file of answers that the analyst sent"
        )

        def work(job: Job) -> None:
            job.say("Checking the answers, and learning from them")
            desk.learned = opened.learn(answers.path, tree=depth)

        desk.jobs.start("Learning from answers", LEARN, work, at_end=answers.discard)
        return RedirectResponse("/work", 303)

    yield Page(LEARN, show)
    yield Action(LEARN, learn)
