"""What each column adds to the collaboration's answers for rows of a table: `party explain`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...exchange.project import adjusted_details, adjusted_text
from ..web import Action, Job, Page, Pages, beam_svgs, checked, chosen_file, text, whole_number
from ._desk import TABLE_ENDINGS, PartyDesk

if TYPE_CHECKING:
    from ...exchange.party_folder import Explained

__all__ = ["EXPLAIN", "explain_parts"]

EXPLAIN, FILE, FIGURE = "/explain", "explanations.csv", "explanations.png"
_MOST_COLUMNS = 15


def explain_parts(desk: PartyDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the forms."""

    def show(request: Request) -> Response:
        found, task = desk.explained, desk.opened().project.task
        return pages.page(
            "explain.html",
            path=EXPLAIN,
            endings=TABLE_ENDINGS,
            classes=[("", "the usual: the second of two, or else all"), *((name, name) for name in task.classes)],
            found=found,
            kept=[name for name in (FILE, FIGURE) if (desk.files.path / name).is_file()],
            place=desk.files.path,
            file=FILE,
            figure=FIGURE if found is not None and (desk.files.path / FIGURE).is_file() else "",
            command=desk.command("explain", "new.csv", "-o", "why.csv", "--figure", "why.png"),
            **({} if found is None else _context(found)),
        )

    def explain(form: FormData) -> Response:
        of_class, log_odds = text(form, "class") or None, checked(form, "log_odds")
        options: dict[str, Any] = {"of_class": of_class, "log_odds": log_odds}
        if (rows := whole_number(form, "rows")) is not None:
            options["most_rows"] = rows
        keep = [name for name in (each.strip() for each in text(form, "keep").split(",")) if name]
        opened, made = desk.opened(), desk.files.made()
        if of_class is not None and of_class not in map(str, opened.project.task.classes):
            raise ValueError("There is no such class in the project. Choose one of the list.")
        # A picture is of one class; without matplotlib, or of several, there are the figures of the page.
        has_one_picture = of_class is not None or len(opened.project.task.classes) <= 2
        source = chosen_file(form, desk.files, as_name="rows", endings=TABLE_ENDINGS, what="table to be explained")

        def work(job: Job) -> None:
            _remove(desk)
            desk.explained = opened.explain(
                *(source.path, made / FILE),
                keep=keep,
                figure=made / FIGURE if has_one_picture and find_spec("matplotlib") else None,
                progress=lambda done, n_rows: job.say(f"Row {done} of {n_rows}", done / n_rows),
                **options,
            )

        desk.jobs.start("Explaining", EXPLAIN, work, at_end=source.discard)
        return RedirectResponse("/work", 303)

    def removed(form: FormData) -> Response:
        desk.jobs.start("Removing the explanations", EXPLAIN, lambda job: _remove(desk))
        return RedirectResponse("/work", 303)

    def download(request: Request) -> Response:
        return FileResponse(_wanted(desk, FILE), filename=FILE, media_type="text/csv")

    def figure(request: Request) -> Response:
        return FileResponse(_wanted(desk, FIGURE), media_type="image/png")

    yield Page(EXPLAIN, show)
    yield Action(EXPLAIN, explain)
    yield Action("/explain/remove", removed)
    yield Page(f"/explain/{FILE}", download)
    yield Page(f"/explain/{FIGURE}", figure)


def _wanted(desk: PartyDesk, name: str) -> Any:
    file = desk.files.path / name
    if desk.explained is None or not file.is_file():
        raise FileNotFoundError("There are no explanations to be looked at. Explain a table first.")
    return file


def _remove(desk: PartyDesk) -> None:
    desk.explained = None
    for name in (FILE, FIGURE):
        (desk.files.path / name).unlink(missing_ok=True)


def _context(found: Explained) -> dict[str, Any]:
    """What the page shows of all rows together."""
    importance, outputs = list(found.importance().items()), found.explanation.output_names
    shown = importance[:_MOST_COLUMNS]
    return {
        "importance": [
            {"name": name, "value": value, "picture": picture}
            for (name, value), picture in zip(shown, beam_svgs([value for _, value in shown]), strict=True)
        ],
        "n_columns": len(importance),
        "of": "" if outputs is None else ", ".join(outputs),
        "adjusted": adjusted_text(found.adjusted) if found.adjusted["columns"] else "",
        "adjusted_lines": adjusted_details(found.adjusted),
    }
