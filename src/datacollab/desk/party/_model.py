"""The model that came back: `party install`, `party predict` and `party evaluate`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...errors import ExchangeError
from ...exchange.project import adjusted_details, adjusted_text
from ..web import Action, Job, Page, Pages, checked, chosen_file, interval_svgs, number, text, written_path
from ._desk import TABLE_ENDINGS, PartyDesk

__all__ = ["EVALUATE", "MODEL", "PREDICT", "SIDES", "evaluate_parts", "model_parts", "predict_parts"]

SIDES = {
    "combined": "both together",
    "collaboration": "the collaboration's model",
    "local": "you and the public rows",
    "own": "you alone",
    "distilled": "distilled from anchor predictions",
}


MODEL = "/model"
_ENDINGS = (".dcmodel",)
_SHOWN = ("local", "collaboration", "combined")


def model_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the sixth step."""

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
            of_sums=desk.opened().project.sharing is not None,
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


PREDICT, FILE = "/predict", "predictions.csv"
USING = (
    ("", "the usual: both together, where they were pooled"),
    ("local", "your own models, without the others"),
    ("collaboration", "the collaboration's model, without your own"),
    ("distilled", "what was distilled from anchor predictions"),
)
USING_SUMS = (("", "the one model of all parties' sums"),)
_WITH_PROBABILITIES = "classification"


def predict_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the last step."""

    def show(request: Request) -> Response:
        told = None if desk.predicted is None else desk.predicted[2]
        return pages.page(
            "predict.html",
            path=PREDICT,
            endings=TABLE_ENDINGS,
            using=USING if desk.opened().project.sharing is None else USING_SUMS,
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


EVALUATE = "/evaluate"
_FIGURES = {
    "classification": ("accuracy", "Accuracy", "balanced_accuracy"),
    "regression": ("rmse", "Root mean squared error", "mae"),
    "survival": ("concordance", "Concordance", None),
}
"""By kind of targets: the figure that sides are compared by, its name, and one that is told besides."""
_MOST_CLASSES, _FIND = 12, 0.8


def evaluate_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form."""

    def show(request: Request) -> Response:
        found, task = desk.evaluated, desk.opened().project.task
        return pages.page(
            "evaluate.html",
            path=EVALUATE,
            endings=TABLE_ENDINGS,
            using=USING_SUMS
            if desk.opened().project.sharing is not None
            else [("", "the usual: both together, where they were pooled"), *SIDES.items()],
            has_two=len(task.classes) == 2,
            unit=task.unit,
            found=found,
            sides=[] if found is None else _evaluated_sides(found),
            name="" if found is None else _FIGURES[found["task"]][1],
            gain=None if found is None else _gain(found),
            details=[] if found is None else _details(found, task.unit),
            confusion=found is not None and len(found.get("classes", ())) in range(2, _MOST_CLASSES + 1),
            adjusted="" if found is None or not found["adjusted"]["columns"] else adjusted_text(found["adjusted"]),
            adjusted_lines=[] if found is None else adjusted_details(found["adjusted"]),
            words=SIDES,
            command=desk.command("evaluate", "known.csv"),
        )

    def evaluate(form: FormData) -> Response:
        using, find = text(form, "using") or None, number(form, "find")
        if using is not None and using not in SIDES:
            raise ValueError("Whose predictions are wanted is unknown. Choose one of the list.")
        opened = desk.opened()
        source = chosen_file(form, desk.files, as_name="known", endings=TABLE_ENDINGS, what="table with known targets")

        def work(job: Job) -> None:
            desk.evaluated = None
            job.say(f"Predicting {source.path.name}, by all models that are here")
            desk.evaluated = opened.evaluate(source.path, using=using, find=_FIND if find is None else find / 100)

        desk.jobs.start("Holding predictions against targets", EVALUATE, work, at_end=source.discard)
        return RedirectResponse("/work", 303)

    yield Page(EVALUATE, show)
    yield Action(EVALUATE, evaluate)


def _evaluated_sides(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figure of every side with its interval, all on one scale."""
    figure = _FIGURES[found["task"]][0]
    rows = []
    for side, scores in found["sides"].items():
        value, interval = scores[figure], scores.get(f"{figure}_interval")
        rows.append({"name": SIDES[side], "value": value, "interval": interval, "is_used": side == found["using"]})
    shown = [row for row in rows if row["value"] is not None and row["interval"]]
    pictures = interval_svgs([(row["value"], *row["interval"]) for row in shown])
    for row, picture in zip(shown, pictures, strict=True):
        row["picture"] = picture
    return [{"picture": Markup()} | row for row in rows]


def _gain(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """By how much the pool, or else the collaboration, is better than what the party has without the others."""
    figure, sides = _FIGURES[found["task"]][0], found["sides"]
    with_others = next((name for name in ("combined", "collaboration") if name in sides), None)
    alone = next((name for name in ("local", "own") if name in sides), None)
    if with_others is None or alone is None or None in (sides[with_others][figure], sides[alone][figure]):
        return None
    gain = sides[with_others][figure] - sides[alone][figure]
    # Of errors, less is better.
    better = -gain if figure == "rmse" else gain
    return {"of": SIDES[with_others], "than": SIDES[alone], "by": gain, "is_better": better > 0, "is_same": gain == 0}


def _details(found: Mapping[str, Any], unit: str) -> list[tuple[str, str]]:
    """All figures of the side that was asked for, by name."""
    figure, name, other = _FIGURES[found["task"]]
    words = {"balanced_accuracy": "Balanced accuracy", "mae": "Mean absolute error"}
    of_unit = f" {unit}" if unit and figure == "rmse" else ""
    details = [(name, _told(found, figure) + of_unit)]
    if other is not None:
        details.append((words[other], _told(found, other) + of_unit))
    if "r2" in found:
        details.append(("R2", _told(found, "r2")))
    if "n_events" in found:
        details.append(("Events", f"{found['n_events']} among {found['n_rows']} rows; guessing has 0.5"))
    return [*details, *(_ranking(found["ranking"]) if "ranking" in found else ())]


def _ranking(ranking: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What probabilities of the second of two classes say."""
    positive, threshold = ranking["positive"], ranking["threshold"]
    yield "AUC", f"{_told(ranking, 'auc')}; guessing has 0.5"
    yield "Average precision", f"{_told(ranking, 'average_precision')}; by chance {ranking['prevalence']:.3f}"
    yield "Brier score", f"{ranking['brier']:.4f}; always the prevalence: {ranking['brier_baseline']:.4f}"
    yield "Calibration", f"{ranking['prevalence']:.1%} of rows are {positive}, {ranking['expected']:.1%} were expected"
    if threshold is not None:
        yield (
            "Threshold",
            f"from a probability of {threshold['least']:.3f} on, {threshold['n_found']} of {threshold['n_positive']} "
            f"{positive} are found, among {threshold['n_called']} rows",
        )


def _told(scores: Mapping[str, Any], name: str) -> str:
    """A figure with its interval, where there is one."""
    if scores[name] is None:
        return "none"
    form = "{:.4g}" if name in ("rmse", "mae") else "{:.3f}"
    interval = scores.get(f"{name}_interval")
    return form.format(scores[name]) + (
        f" ({form.format(interval[0])} to {form.format(interval[1])})" if interval else ""
    )
