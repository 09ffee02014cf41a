"""Shares that came in: `analyst add` and `analyst status`, as a page."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, chosen_files
from ._desk import AnalystDesk

__all__ = ["SHARES", "share_parts"]

SHARES, ENDING, UPLOAD = "/shares", ".dcshare", "share-"


def share_parts(desk: AnalystDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form of the first step."""

    def show(request: Request) -> Response:
        parties = desk.folder.status()
        return pages.page(
            "shares.html",
            path=SHARES,
            parties=parties,
            n_there=sum(each.created is not None for each in parties),
            quorum=desk.folder.project.quorum,
            ending=ENDING,
            inbox=desk.files.in_inbox((ENDING,)),
            command=desk.command("add", *(f"{name}{ENDING}" for name in desk.folder.project.parties)),
        )

    def add(form: FormData) -> Response:
        files = chosen_files(form, desk.files, as_name=UPLOAD, ending=ENDING, what="share that a party sent")

        def work(job: Job) -> None:
            job.say(f"Checking {len(files)} files: signature, project, anchor, sizes, targets")
            desk.folder.add(each.path for each in files)

        def discard() -> None:
            for each in files:
                each.discard()

        desk.jobs.start("Taking shares", SHARES, work, at_end=discard)
        return RedirectResponse("/work", 303)

    yield Page(SHARES, show)
    yield Action(SHARES, add, most_files=len(desk.folder.project.parties))
