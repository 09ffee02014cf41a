"""The effect of a treatment: `analyst effect`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...exchange.analyst_folder import EFFECT_FILES, effect_of
from ..web import Action, Job, Page, Pages, interval_svgs, number, text
from ._desk import AnalystDesk

__all__ = ["EFFECT", "effect_parts"]

EFFECT = "/effect"
_FIGURES, _REPORT = EFFECT_FILES
_ESTIMANDS = (("ATE", "on average over all rows"), ("ATT", "on average over the treated ones"))


def effect_parts(desk: AnalystDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of a project of an effect."""

    def show(request: Request) -> Response:
        found, task = _read(desk, _FIGURES), desk.folder.project.task
        now = {received.party: received.digest for received in desk.folder.shares()}
        return pages.page(
            "effect.html",
            path=EFFECT,
            is_effect=task.kind == "effect",
            task=task,
            estimands=_ESTIMANDS,
            found=found,
            is_old=found is not None and found["shares"] != now,
            picture="" if found is None else _picture(found),
            report=_REPORT,
            command=desk.command("effect", *(["--horizon", "TIME"] if task.time else [])),
        )

    def estimate(form: FormData) -> Response:
        target, horizon = text(form, "estimand"), number(form, "horizon")
        if target not in dict(_ESTIMANDS):
            raise ValueError("Over which rows is unknown. Choose one of the list.")

        def work(job: Job) -> None:
            job.say("Estimating, and judging rows by models that were fitted without them")
            effect_of(desk.folder, target=target, horizon=horizon)

        desk.jobs.start("Estimating the effect", EFFECT, work)
        return RedirectResponse("/work", 303)

    def report(request: Request) -> Response:
        file = desk.path / _REPORT
        if not file.is_file():
            raise FileNotFoundError(f"There is no {_REPORT} in the folder yet. Estimate the effect first.")
        return FileResponse(file, filename=_REPORT, media_type="application/octet-stream")

    yield Page(EFFECT, show)
    yield Action(EFFECT, estimate)
    yield Page(f"/effect/{_REPORT}", report)


def _read(desk: AnalystDesk, name: str) -> dict[str, Any] | None:
    """What a command wrote into the folder last."""
    file = desk.path / name
    return dict(json.loads(file.read_bytes())) if file.is_file() else None


def _picture(found: Mapping[str, Any]) -> Any:
    return interval_svgs([(found["estimate"], *found["interval"])], baseline=0.0)[0]
