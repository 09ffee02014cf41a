"""Models that go out: `analyst export`, and the outbox."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..web import Action, Job, Page, Pages, checked, files_in, handed_out, remote_commands
from ._desk import AnalystDesk

__all__ = ["EXPORT", "export_parts"]

EXPORT = "/export"


def export_parts(desk: AnalystDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and the form of the last step."""

    def show(request: Request) -> Response:
        return pages.page(
            "export.html",
            path=EXPORT,
            files=[
                {"name": file.name, "party": file.stem, "bytes": file.stat().st_size} for file in files_in(desk.outbox)
            ],
            place=desk.outbox,
            is_effect=desk.folder.project.task.kind == "effect",
            remote=remote_commands(desk.path),
            is_single=desk.folder.project.task.is_single,
            command=desk.command("export"),
        )

    def export(form: FormData) -> Response:
        answers = checked(form, "answers")

        def work(job: Job) -> None:
            desk.folder.export(answers=answers, progress=lambda party: job.say(f"For {party}"))

        desk.jobs.start("Writing a file for each party", EXPORT, work)
        return RedirectResponse("/work", 303)

    def download(request: Request) -> Response:
        return handed_out(desk.outbox, request.path_params["name"])

    yield Page(EXPORT, show)
    yield Action(EXPORT, export)
    yield Page("/outbox/{name}", download)
