"""Other ways of sharing: `party tune`, as pages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from io import BytesIO
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...bundle import write_atomically
from ...exchange.party_folder import Tuning, tune, ways_to_try
from ...exchange.party_folder._release_summary import figure_text, limit_text
from ..web import Action, Job, Page, Pages, number, refusal_of, text
from ._desk import PartyDesk
from ._release import look_at
from ._ways import options_of_way

__all__ = ["WAYS", "other_ways_parts"]

WAYS, FIGURE = "/ways", "frontier.png"
_RISKS = ("linkage", "reidentification", "membership")


def other_ways_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the fourth step."""

    def show(request: Request) -> Response:
        table, found = desk.wanted_table(), desk.tuning
        return pages.page(
            "ways.html",
            path=WAYS,
            table=table,
            found=found,
            rows=[] if found is None else _rows(found),
            limits={} if found is None else _limits(found),
            utility="" if found is None else found.choice.utility_name,
            refusal=None if found is None or found.refusal is None else refusal_of(found.refusal),
            has_figure=found is not None and _has_figure(found),
            command=desk.command("tune", shlex.quote(str(table))),
        )

    def begin(form: FormData) -> Response:
        return _tune(desk, number(form, "time_budget"))

    def take(form: FormData) -> Response:
        name = text(form, "way")
        if desk.tuning is None or name not in desk.tuning.ways:
            raise ValueError("There is no such way among those that were tried. Choose one of the list.")
        return look_at(desk, options_of_way(desk.tuning.ways[name]))

    def figure(request: Request) -> Response:
        file = desk.path / FIGURE
        if not file.is_file():
            raise FileNotFoundError(f"There is no {FIGURE} in the folder yet. Try ways first.")
        return FileResponse(file, media_type="image/png")

    yield Page(WAYS, show)
    yield Action(WAYS, begin)
    yield Action("/ways/take", take)
    yield Page(f"/ways/{FIGURE}", figure)


def _tune(desk: PartyDesk, time_budget: float | None) -> Response:
    table, opened = desk.wanted_table(), desk.opened()

    def work(job: Job) -> None:
        project, policy, encoded, anchor = opened.project, opened.policy, opened.encoded(table), opened.anchor
        ways = ways_to_try(*(project, policy, encoded), standardize=True, anchor_has_targets=anchor.target is not None)
        found = tune(*(project, policy, opened.name, encoded, anchor, ways), time_budget=time_budget, progress=job.say)
        if _has_figure(found):
            picture = BytesIO()
            found.choice.plot().figure.savefig(picture, format="png", dpi=150)  # type: ignore[union-attr]
            write_atomically(desk.path / FIGURE, picture.getvalue(), mode=0o600)
        best = None if found.best is None else found.best.options
        opened.record("tune", file=table.name, n_ways=len(found.choice.assessments), best=best)
        desk.tuning = found

    desk.jobs.start("Trying other ways of sharing", WAYS, work)
    return RedirectResponse("/work", 303)


def _has_figure(found: Tuning) -> bool:
    return any(each.risk.linkage is not None for each in found.choice.assessments)


def _rows(found: Tuning) -> list[dict[str, Any]]:
    best = None if found.choice.best is None else found.choice.best.option.name
    return [
        {
            "name": row["way"],
            "utility": f"{row[found.choice.utility_name]:.2f}",
            "risks": ["–" if row[name] is None else figure_text(name, row[name]) for name in _RISKS],
            "allowed": row["allowed"],
            "reasons": ", ".join(dict.fromkeys(row["reasons"])),
            "is_best": row["way"] == best,
        }
        for row in found.rows()
    ]


def _limits(found: Tuning) -> list[str]:
    limits = asdict(found.choice.limits)
    return ["none" if limits[name] is None else limit_text(name, limits[name]) for name in _RISKS]
