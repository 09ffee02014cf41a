"""The model that came back: `party install`, and what collaboration brought."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ExchangeError
from ..web import Action, Job, Page, Pages, chosen_file, interval_svgs, written_path
from ._desk import PartyDesk
from ._sides import SIDES

__all__ = ["MODEL", "model_parts"]

MODEL = "/model"
_ENDINGS = (".dcmodel",)
_SHOWN = ("alone", "collaboration", "pooled")


def model_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the seventh step."""

    def show(request: Request) -> Response:
        benefit = (desk.installed or {}).get("benefit")
        return pages.page(
            "model.html",
            path=MODEL,
            endings=_ENDINGS,
            inbox=desk.files.in_inbox(_ENDINGS),
            installed=desk.installed,
            sentence=_sentence(desk),
            sides=_sides(benefit),
            metric=benefit["metric"] if benefit else "",
            command=desk.command("install", shlex.quote(f"{desk.opened().name}.dcmodel")),
        )

    def install(form: FormData) -> Response:
        public = written_path(form, "public", what="public table")
        opened = desk.opened()
        model = chosen_file(form, desk.files, as_name="model", endings=_ENDINGS, what="model that the analyst sent")

        def work(job: Job) -> None:
            desk.installed = opened.install(model.path, public=public, progress=job.say)

        desk.jobs.start("Installing the model", MODEL, work, at_end=model.discard)
        return RedirectResponse("/work", 303)

    yield Page(MODEL, show)
    yield Action(MODEL, install)


def _sentence(desk: PartyDesk) -> str | None:
    """What collaboration brought, of a model that is installed."""
    try:
        return desk.opened().sentence
    except ExchangeError as error:
        if error.code in ("NOT_SHARED", "NOT_INSTALLED", "WRONG_SHARE", "FORGOTTEN"):
            return None
        raise


def _sides(benefit: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Scores of each side with their intervals, as the table shows them."""
    if not benefit:
        return []
    scores = {name: benefit[name]["score"] for name in _SHOWN if benefit[name] is not None}
    pictures = interval_svgs([(score["value"], score["low"], score["high"]) for score in scores.values()])
    return [
        {"name": SIDES[name], "picture": picture, **score}
        for (name, score), picture in zip(scores.items(), pictures, strict=True)
    ]
