"""Joining the project, and joining again when something new has come: `party join`, once letters were compared."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.project import Project, read_project
from ..web import Action, Job, Page, Pages, checked, chosen_file, perhaps_file, text
from ._desk import Offer, PartyDesk

__all__ = ["JOIN", "join_parts"]

JOIN = "/join"
_PROJECT, _ANCHOR = (".toml",), (".dcanchor",)


def join_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the forms of the first step."""

    def show(request: Request) -> Response:
        offer, there = desk.offer, desk.opened().project if desk.is_joined else None
        return pages.page(
            "join.html",
            path=JOIN,
            offer=offer,
            there=there,
            key=desk.key.fingerprint,
            name=None if offer is None else _own_name(desk, offer.project),
            rows=[] if offer is None else _compared(offer.project, there),
            anchor_there=desk.has_anchor,
            project_endings=_PROJECT,
            anchor_endings=_ANCHOR,
            projects=desk.files.in_inbox(_PROJECT),
            anchors=desk.files.in_inbox(_ANCHOR),
            usual="" if there is None else desk.path / "project.toml",
            command=desk.command("join", *_words(desk, offer)),
        )

    def look(form: FormData) -> Response:
        with ExitStack() as chosen:
            given = chosen_file(form, desk.files, as_name="project", endings=_PROJECT, what="project file")
            chosen.callback(given.discard)
            with given.path.open("rb") as source:
                file = desk.files.take(source, "project.toml", as_name="project", endings=_PROJECT)
            chosen.callback(file.discard)
            anchor = perhaps_file(
                form, desk.files, as_name="anchor", endings=_ANCHOR, what="sealed anchor", prefix="anchor_"
            )
            if anchor is not None:
                chosen.callback(anchor.discard)
            offer = Offer(project=read_project(file.path)[0], file=file, anchor=anchor)
            _own_name(desk, offer.project)
            chosen.pop_all()
        given.discard()
        desk.offered(offer)
        return RedirectResponse(JOIN, 303)

    def accept(form: FormData) -> Response:
        offer = desk.offer
        if offer is None or text(form, "offer") != offer.id:
            raise ExchangeError(
                "NOT_APPROVED", "The project that was shown to you is not the one that waits here. Look at it again."
            )
        if not checked(form, "compared"):
            raise ValueError(
                "Nobody said that the letters were compared. A file says of itself whose it is: compare the letters "
                "with the owner by telephone, and tick the box."
            )

        def work(job: Job) -> None:
            job.say("Checking project and anchor" if offer.anchor else "Checking the project")
            anchor = None if offer.anchor is None else offer.anchor.path
            try:
                desk.join(offer.file.path, anchor, owner=offer.project.owner)
            finally:
                offer.discard()
            job.where = "/"

        # What is being joined is nobody's to replace.
        desk.offer = None
        try:
            desk.jobs.start("Joining", JOIN, work)
        except ExchangeError:
            desk.offered(offer)
            raise
        return RedirectResponse("/work", 303)

    def decline(form: FormData) -> Response:
        desk.offered(None)
        return RedirectResponse(JOIN, 303)

    yield Page(JOIN, show)
    yield Action(JOIN, look, most_files=2)
    yield Action("/join/accept", accept)
    yield Action("/join/decline", decline)


def _own_name(desk: PartyDesk, project: Project) -> str:
    """Which party this folder's key is, in the project."""
    for name, public in project.parties.items():
        if public == desk.key:
            return name
    if project.analyst == desk.key:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key in this folder is the analyst's in project {project.name!r}. Run `datacollab analyst init "
            f"project.toml -C {shlex.quote(str(desk.path))}`, and open the desk again.",
        )
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in this folder ({desk.key.fingerprint}) is none of the parties' in project {project.name!r}. Send "
        "the owner the file public.key, and ask for a new project file.",
    )


def _compared(project: Project, there: Project | None) -> list[dict[str, Any]]:
    """What is to be compared by telephone, and what of it is known already."""
    known = None if there is None else _letters(there)
    return [
        {"name": name, "letters": letters, "before": None if known is None else known[name]}
        for name, letters in _letters(project).items()
    ]


def _letters(project: Project) -> dict[str, str]:
    return {
        "Project": project.fingerprint,
        "Owner": project.owner.fingerprint,
        "Analyst": project.analyst.fingerprint,
    }


def _words(desk: PartyDesk, offer: Offer | None) -> list[str]:
    """Of the command; an upload has no path of its own outside the desk."""
    if offer is None and desk.is_joined and not desk.has_anchor:
        return [shlex.quote(str(desk.path / "project.toml")), "anchor.dcanchor"]
    return ["project.toml", "anchor.dcanchor"]
