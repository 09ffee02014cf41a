"""The effect of a treatment, and whether its arms are alike: `analyst effect` and `analyst balance`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...exchange.analyst_folder import BALANCE_FILE, EFFECT_FILES, balance_of, effect_of
from ..web import Action, Job, Page, Pages, checked, chosen_files, interval_svgs, number, text
from ._desk import AnalystDesk

__all__ = ["BALANCE", "EFFECT", "effect_parts"]

EFFECT, BALANCE = "/effect", "/balance"
_ENDING = ".dcbalance"
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
        target, horizon, balance = text(form, "estimand"), number(form, "horizon"), checked(form, "balance")
        if target not in dict(_ESTIMANDS):
            raise ValueError("Over which rows is unknown. Choose one of the list.")

        def work(job: Job) -> None:
            job.say("Estimating, and judging rows by models that were fitted without them")
            effect_of(desk.folder, target=target, horizon=horizon, balance=balance)

        desk.jobs.start("Estimating the effect", EFFECT, work)
        return RedirectResponse("/work", 303)

    def report(request: Request) -> Response:
        file = desk.path / _REPORT
        if not file.is_file():
            raise FileNotFoundError(f"There is no {_REPORT} in the folder yet. Estimate the effect first.")
        return FileResponse(file, filename=_REPORT, media_type="application/octet-stream")

    def balance(request: Request) -> Response:
        found = _read(desk, BALANCE_FILE)
        return pages.page(
            "balance.html",
            path=BALANCE,
            ending=_ENDING,
            inbox=desk.files.in_inbox((_ENDING,)),
            found=found,
            columns=[] if found is None else _columns(found),
            parties=desk.folder.project.parties,
            command=desk.command("balance", *(f"{name}{_ENDING}" for name in desk.folder.project.parties)),
        )

    def add_up(form: FormData) -> Response:
        files = chosen_files(form, desk.files, as_name="sums-", ending=_ENDING, what="file of sums that a party sent")

        def work(job: Job) -> None:
            job.say(f"Checking {len(files)} files, and adding them up")
            balance_of(desk.folder, [each.path for each in files])

        def discard() -> None:
            for each in files:
                each.discard()

        desk.jobs.start("Comparing the arms", BALANCE, work, at_end=discard)
        return RedirectResponse("/work", 303)

    yield Page(EFFECT, show)
    yield Action(EFFECT, estimate)
    yield Page(f"/effect/{_REPORT}", report)
    yield Page(BALANCE, balance)
    yield Action(BALANCE, add_up, most_files=len(desk.folder.project.parties))


def _read(desk: AnalystDesk, name: str) -> dict[str, Any] | None:
    """What a command wrote into the folder last."""
    file = desk.path / name
    return dict(json.loads(file.read_bytes())) if file.is_file() else None


def _picture(found: Mapping[str, Any]) -> Any:
    return interval_svgs([(found["estimate"], *found["interval"])], baseline=0.0)[0]


def _columns(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns with the largest difference before weighting first; one without a figure is infinite."""
    rows = [{"name": name, **each} for name, each in found["columns"].items()]
    return sorted(rows, key=lambda row: float("-inf") if row["before"] is None else -abs(row["before"]))
