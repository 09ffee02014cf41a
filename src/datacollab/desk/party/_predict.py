"""Predicting a file at home: `party predict`, and the download."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...exchange.project import adjusted_details, adjusted_text
from ..web import Action, Job, Page, Pages, checked, chosen_file, text
from ._desk import TABLE_ENDINGS, PartyDesk

__all__ = ["PREDICT", "predict_parts"]

PREDICT, FILE = "/predict", "predictions.csv"
USING = (
    ("", "the usual: both together, where they were pooled"),
    ("alone", "your own models, without the others"),
    ("collaboration", "the collaboration's model, without your own"),
    ("learned", "what was learned from answers on the anchor"),
)
_WITH_PROBABILITIES = "classification"


def predict_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the last step."""

    def show(request: Request) -> Response:
        told = None if desk.predicted is None else desk.predicted[2]
        return pages.page(
            "predict.html",
            path=PREDICT,
            endings=TABLE_ENDINGS,
            using=USING,
            has_classes=desk.opened().project.task.kind == _WITH_PROBABILITIES,
            predicted=desk.predicted,
            kept=kept if (kept := desk.files.path / FILE).is_file() else None,
            adjusted="" if not told or not told["columns"] else adjusted_text(told),
            details=[] if not told else adjusted_details(told),
            name=FILE,
            command=desk.command("predict", "new.csv", "-o", shlex.quote(FILE)),
        )

    def predict(form: FormData) -> Response:
        using, proba = text(form, "using") or None, checked(form, "proba")
        if using not in {name or None for name, _ in USING}:
            raise ValueError("Whose predictions are wanted is unknown. Choose one of the list.")
        keep = [name for name in (each.strip() for each in text(form, "keep").split(",")) if name]
        opened, output = desk.opened(), desk.files.made() / FILE
        source = chosen_file(form, desk.files, as_name="new", endings=TABLE_ENDINGS, what="table to be predicted")

        def work(job: Job) -> None:
            told: list[dict[str, Any]] = []
            _remove(desk)
            job.say(f"Predicting {source.path.name}")
            n_rows = opened.predict(
                *(source.path, output),
                using=using,
                proba=proba,
                keep=keep,
                tell=lambda found: told.append(found.to_dict()),
            )
            desk.predicted = output, n_rows, told[0]

        desk.jobs.start("Predicting", PREDICT, work, at_end=source.discard)
        return RedirectResponse("/work", 303)

    def removed(form: FormData) -> Response:
        desk.jobs.start("Removing the predictions", PREDICT, lambda job: _remove(desk))
        return RedirectResponse("/work", 303)

    def download(request: Request) -> Response:
        if desk.predicted is None or not desk.predicted[0].is_file():
            raise FileNotFoundError("There are no predictions to be downloaded. Predict a table first.")
        return FileResponse(desk.predicted[0], filename=FILE, media_type="text/csv")

    yield Page(PREDICT, show)
    yield Action(PREDICT, predict)
    yield Action("/predict/remove", removed)
    yield Page(f"/predict/{FILE}", download)


def _remove(desk: PartyDesk) -> None:
    desk.predicted = None
    (desk.files.path / FILE).unlink(missing_ok=True)
