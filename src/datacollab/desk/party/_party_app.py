"""A party's desk as an application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from ..web import Page, Pages, Session, Step, create_app, remote_commands
from ._desk import PartyDesk
from ._distil import DISTIL, FORGET, distil_parts, forget_parts
from ._explain import EXPLAIN, explain_parts
from ._join import JOIN, join_parts
from ._model import EVALUATE, MODEL, PREDICT, evaluate_parts, model_parts, predict_parts
from ._release import APPROVE, OUTBOX, RELEASE, approval_parts, release_parts
from ._sums import SUMS, sums_parts
from ._table import TABLE, WRONG, table_parts

__all__ = ["party_app"]


def party_app(desk: PartyDesk, session: Session) -> ASGIApp:
    """Put a party's desk together.

    Parameters
    ----------
    desk : PartyDesk
    session : Session
    """
    templates = Path(__file__).parent / "templates"
    pages = Pages(session, desk.jobs, templates, lambda: _title(desk), lambda: steps_of(desk))

    def home(request: Request) -> Response:
        if not desk.is_joined:
            return RedirectResponse(JOIN, 303)
        opened, steps = desk.opened(), steps_of(desk)
        return pages.page(
            "home.html",
            path="/",
            project=opened.project,
            name=opened.name,
            folder=desk.path.absolute(),
            anchor_there=desk.has_anchor,
            policy=desk.path / "policy.toml",
            following=None
            if desk.has_forgotten()
            else next((step for step in steps if not step.is_done and not step.is_beside), None),
            remote=remote_commands(desk.path),
        )

    return create_app(
        session,
        pages,
        desk.jobs,
        [
            Page("/", home),
            *join_parts(desk, pages),
            *table_parts(desk, pages),
            *release_parts(desk, pages),
            *approval_parts(desk, pages),
            *sums_parts(desk, pages),
            *model_parts(desk, pages),
            *predict_parts(desk, pages),
            *evaluate_parts(desk, pages),
            *explain_parts(desk, pages),
            *distil_parts(desk, pages),
            *forget_parts(desk, pages),
        ],
    )


def _title(desk: PartyDesk) -> str:
    if not desk.is_joined:
        return "A party that has joined no project yet"
    opened = desk.opened()
    return f"Party {opened.name} of project {opened.project.name}"


def steps_of(desk: PartyDesk) -> Sequence[Step]:
    """The party's steps, and how far it is."""
    if not desk.is_joined:
        return (Step(path=JOIN, name="Join the project"),)
    shared, seen, looked = desk.shared_entry(), desk.seen, desk.looked
    when = "" if shared is None else f"shared {shared['time'][:10]}"
    found = "" if seen is None else (seen.refusal.code if seen.refusal else f"{seen.n_rows} rows read")
    may = "" if looked is None else ("may not leave" if looked.reasons else "may leave")
    leaving: tuple[Step, ...] = (
        Step(
            path=RELEASE,
            name="What would leave",
            note=may,
            is_done=(looked is not None and not looked.reasons) or shared is not None,
        ),
        Step(path=APPROVE, name="Approve", note=when, is_done=shared is not None),
    )
    if desk.opened().project.sharing is not None:
        leaving = (Step(path=SUMS, name="What would leave", note=when, is_done=shared is not None),)
    return (
        Step(path=JOIN, name="Join the project", note="" if desk.has_anchor else "no anchor", is_done=desk.has_anchor),
        Step(
            path=TABLE,
            name="Choose the table",
            note="" if desk.table is None else desk.table.name,
            is_done=desk.table is not None or shared is not None,
        ),
        Step(
            path=WRONG,
            name="What is wrong with it",
            note=found,
            is_done=(seen is not None and seen.refusal is None) or shared is not None,
        ),
        *leaving,
        Step(path=OUTBOX, name="Outbox", note=when and "to be sent by you", is_done=shared is not None),
        *_after(desk),
        *_beside(desk),
    )


def _after(desk: PartyDesk) -> Sequence[Step]:
    """What follows the share; of an effect no model comes back."""
    if desk.opened().project.task.kind == "effect":
        return ()
    model_there = (desk.path / "model.dcmodel").is_file()
    return (
        Step(
            path=MODEL, name="Model, and what it brought", note="installed" if model_there else "", is_done=model_there
        ),
        Step(path=PREDICT, name="Predict", is_done=desk.predicted is not None),
    )


def _beside(desk: PartyDesk) -> Sequence[Step]:
    """What may be done beside the way."""
    project = desk.opened().project
    steps = [
        Step(path=EVALUATE, name="How good on known rows", is_done=desk.evaluated is not None, is_beside=True),
        Step(path=EXPLAIN, name="What columns do", is_done=desk.explained is not None, is_beside=True),
        Step(path=DISTIL, name="Distil anchor predictions", is_done=desk.has_distilled, is_beside=True),
        Step(path=FORGET, name="Forget the map", is_done=desk.has_forgotten(), is_beside=True),
    ]
    # Of an effect no model comes back, and without targets there is nothing to be held against.
    models = (EVALUATE, EXPLAIN, DISTIL)
    without = {"effect": models, "none": models, "survival": (DISTIL,)}.get(project.task.kind, ())
    if project.sharing is not None:
        without = (EXPLAIN, DISTIL, FORGET)
    return [step for step in steps if step.path not in without]
