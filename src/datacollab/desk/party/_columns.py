"""What a step of each column changes on average, where the model is linear: `party columns`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, checked, interval_svgs
from ._desk import PartyDesk

if TYPE_CHECKING:
    from ...party import ColumnEffects

__all__ = ["COLUMNS", "columns_parts"]

COLUMNS = "/columns"
_SCALES = {"survival": "log hazard", "classification": "log odds", "regression": "mean"}
_RATIOS = {"survival": "Hazard ratio", "classification": "Odds ratio"}


def columns_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form."""

    def show(request: Request) -> Response:
        found, opened = desk.effects, desk.opened()
        kind = opened.project.task.kind
        return pages.page(
            "columns.html",
            path=COLUMNS,
            found=found,
            of=_SCALES.get(kind, ""),
            ratio=_RATIOS.get(kind, ""),
            rows=[] if found is None else _rows(found, has_ratios=kind in _RATIOS),
            defences=() if found is None else opened.shared_defences,
            command=desk.command("columns"),
        )

    def compute(form: FormData) -> Response:
        opened, scale = desk.opened(), "unit" if checked(form, "per_unit") else "sd"

        def work(job: Job) -> None:
            desk.effects = None
            desk.effects = opened.column_effects(scale=scale)

        desk.jobs.start("Computing effects of columns", COLUMNS, work)
        return RedirectResponse("/work", 303)

    yield Page(COLUMNS, show)
    yield Action(COLUMNS, compute)


def _rows(found: ColumnEffects, *, has_ratios: bool) -> list[dict[str, Any]]:
    """Columns in the project's order; those that are refused with the reason in place of figures."""
    ratios = found.ratios() if has_ratios else {}
    shown = [place for place, reason in enumerate(found.reasons) if reason is None]
    figures = [(float(found.effect[each]), float(found.low[each]), float(found.high[each])) for each in shown]
    pictures = dict(zip(shown, interval_svgs(figures, baseline=0.0), strict=True))
    return [
        {"name": name, "refused": found.reasons[place]}
        if place not in pictures
        else {
            "name": name,
            "refused": None,
            "step": float(found.steps[place]),
            "effect": float(found.effect[place]),
            "low": float(found.low[place]),
            "high": float(found.high[place]),
            "ratio": ratios.get(name),
            "picture": pictures[place],
        }
        for place, name in enumerate(found.names)
    ]
