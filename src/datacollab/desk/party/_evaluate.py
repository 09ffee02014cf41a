"""Holding predictions against known targets, at home: `party evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...exchange.project import adjusted_details, adjusted_text
from ..web import Action, Job, Page, Pages, chosen_file, interval_svgs, number, text
from ._desk import TABLE_ENDINGS, PartyDesk
from ._sides import SIDES

__all__ = ["EVALUATE", "evaluate_parts"]

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
            using=[("", "the usual: both together, where they were pooled"), *SIDES.items()],
            has_two=len(task.classes) == 2,
            unit=task.unit,
            found=found,
            sides=[] if found is None else _sides(found),
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


def _sides(found: Mapping[str, Any]) -> list[dict[str, Any]]:
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
    with_others = next((name for name in ("pooled", "collaboration") if name in sides), None)
    alone = next((name for name in ("alone", "own") if name in sides), None)
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
