"""The analyst's desk as an application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ...exchange.analyst_folder import EFFECT_FILES
from ..web import Page, Pages, Session, Step, create_app, remote_commands
from ._desk import AnalystDesk
from ._steps import EFFECT, EXPORT, INTEGRATE, MODEL, SHARES, effect_parts, export_parts, integrate_parts, share_parts

__all__ = ["analyst_app"]


def analyst_app(desk: AnalystDesk, session: Session) -> ASGIApp:
    """Put the analyst's desk together.

    Parameters
    ----------
    desk : AnalystDesk
    session : Session
    """
    title = f"Analyst of project {desk.folder.project.name}"
    pages = Pages(session, desk.jobs, Path(__file__).parent / "templates", lambda: title, lambda: steps_of(desk))

    def home(request: Request) -> Response:
        following = next((step for step in steps_of(desk) if not step.is_done), None)
        return pages.page(
            "analyst.html",
            path="/",
            project=desk.folder.project,
            folder=desk.path.absolute(),
            following=following,
            remote=remote_commands(desk.path),
        )

    return create_app(
        session,
        pages,
        desk.jobs,
        [
            Page("/", home),
            *share_parts(desk, pages),
            *integrate_parts(desk, pages),
            *effect_parts(desk, pages),
            *export_parts(desk, pages),
        ],
    )


def steps_of(desk: AnalystDesk) -> Sequence[Step]:
    """The analyst's steps, and how far it is; of files alone, which are quick to look at."""
    parties = desk.folder.project.parties
    there = [name for name in parties if (desk.path / "shares" / f"{name}{desk.ending}").is_file()]
    enough = len(there) >= (len(parties) if desk.of_sums else desk.folder.project.quorum)
    integrated = _made(desk, "sums-model.dcstate" if desk.of_sums else "collaboration.dcstate")
    exported = any(desk.outbox.glob("*.dc*"))
    shares = Step(path=SHARES, name="Shares", note=f"{len(there)} of {len(parties)} parties", is_done=enough)
    if desk.folder.project.task.kind == "effect":
        return (shares, Step(path=EFFECT, name="Effect", **_made(desk, EFFECT_FILES[0])))
    return (
        shares,
        Step(path=INTEGRATE, name="Add up" if desk.of_sums else "Align and train", **integrated),
        Step(path=MODEL, name="The model's card", **integrated),
        Step(path=EXPORT, name="Export", note="to be sent by you" if exported else "", is_done=exported),
    )


def _made(desk: AnalystDesk, name: str) -> dict[str, Any]:
    """Whether a file was made of the shares that are there, and what there is to say."""
    made = desk.path / name
    if not made.is_file():
        return {"is_done": False}
    when = made.stat().st_mtime_ns
    newer = any(share.stat().st_mtime_ns > when for share in (desk.path / "shares").glob(f"*{desk.ending}"))
    return {"is_done": not newer, "note": "shares came in since" if newer else ""}
