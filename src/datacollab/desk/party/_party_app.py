"""A party's desk as an application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from ...exchange.project import adjusted_details, adjusted_text
from ...exchange.steps import STEPS
from ..web import Page, Pages, Place, Session, create_app
from ._desk import PartyDesk
from ._release import APPROVE, OUTBOX, RELEASE, SUMS, release_parts
from ._steps import (
    DISTIL,
    EVALUATE,
    EXPLAIN,
    FORGET,
    JOIN,
    MODEL,
    PREDICT,
    TABLE,
    WRONG,
    described,
    join_parts,
    result_parts,
    table_parts,
)

__all__ = ["party_app"]


def party_app(desk: PartyDesk, session: Session) -> ASGIApp:
    """Put a party's desk together."""

    def title() -> str:
        if not desk.has("project.toml"):
            return "A party that has joined no project yet"
        opened = desk.opened()
        return f"Party {opened.name} of project {opened.project.name}"

    def home(request: Request) -> Response | dict[str, Any]:
        if not desk.has("project.toml"):
            return RedirectResponse(JOIN, 303)
        following = next((place for place in _places(desk) if not (place.is_done or place.is_beside)), None)
        return {"following": None if desk.has_forgotten() else following}

    templates = Path(__file__).parent / "templates"
    shown = {"desk": desk, "adjusted_text": adjusted_text, "adjusted_details": adjusted_details}
    pages = Pages(session, desk.jobs, templates, title, lambda: _places(desk), described=described, **shown)
    parts = (*join_parts(desk), *table_parts(desk), *release_parts(desk), *result_parts(desk))
    return create_app(session, pages, desk.jobs, [Page("/", home, "home.html"), *parts])


def _place(verb: str, path: str, is_done: bool, note: str = "", *, is_beside: bool = False) -> Place:
    return Place(path=path, name=STEPS[f"party {verb}"].title, note=note, is_done=is_done, is_beside=is_beside)


def _places(desk: PartyDesk) -> Sequence[Place]:
    """Return the party's steps, and how far it is."""
    if not desk.has("project.toml"):
        return (_place("join", JOIN, False),)
    shared, seen, looked = desk.shared_entry(), desk.seen, desk.looked
    has_anchor, is_shared, task = desk.has("anchor.dcstate"), shared is not None, desk.opened().project.task
    when = "" if shared is None else f"shared {shared['time'][:10]}"
    found = "" if seen is None else (seen.refusal.code if seen.refusal else f"{seen.n_rows} rows read")
    may = "" if looked is None else ("may not leave" if looked.reasons else "may leave")
    leaving: tuple[Place, ...] = (
        _place("check", RELEASE, is_shared or (looked is not None and not looked.reasons), may),
        _place("share", APPROVE, is_shared, when),
    )
    if desk.of_sums:
        leaving = (_place("check", SUMS, is_shared, when),)
    installed = desk.has("model.dcmodel")
    after = (
        _place("install", MODEL, installed, "installed" if installed else ""),
        _place("predict", PREDICT, "predict" in desk.done),
    )
    beside = (
        _place("evaluate", EVALUATE, "evaluate" in desk.done, is_beside=True),
        _place("explain", EXPLAIN, "explain" in desk.done, is_beside=True),
        _place("distil", DISTIL, desk.has("learned.dcstate"), is_beside=True),
        _place("forget", FORGET, desk.has_forgotten(), is_beside=True),
    )
    # No model of an effect comes back, and without targets there is nothing to evaluate.
    models = (EVALUATE, EXPLAIN, DISTIL)
    without = {"effect": models, "none": models, "survival": (DISTIL,)}.get(task.kind, ())
    without = (EXPLAIN, DISTIL, FORGET) if desk.of_sums else without
    table = "" if desk.table is None else desk.table.name
    return (
        _place("join", JOIN, has_anchor, "" if has_anchor else "no anchor"),
        Place(path=TABLE, name="Choose the table", note=table, is_done=desk.table is not None or is_shared),
        Place(
            path=WRONG,
            name="What is wrong with it",
            note=found,
            is_done=is_shared or (seen is not None and seen.refusal is None),
        ),
        *leaving,
        Place(path=OUTBOX, name="Outbox", note=when and "to be sent by you", is_done=is_shared),
        *(() if task.kind == "effect" else after),
        *(place for place in beside if place.path not in without),
    )
