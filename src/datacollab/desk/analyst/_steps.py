"""Shares, alignment and training, effects, and export, as pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ...analyst import Candidate
from ...exchange.analyst_folder import (
    EFFECT_FILES,
    METHODS,
    MODELS,
    SURVIVAL_MODELS,
    AnalystFolder,
    Integration,
    effect_of,
    make_integrator,
    make_model,
)
from ..web import (
    Action,
    Job,
    Page,
    Pages,
    checked,
    chosen_files,
    files_in,
    handed_out,
    interval_svgs,
    number,
    remote_commands,
    text,
    whole_number,
)
from ._desk import AnalystDesk

__all__ = [
    "EFFECT",
    "EXPORT",
    "INTEGRATE",
    "MODEL",
    "SHARES",
    "effect_parts",
    "export_parts",
    "integrate_parts",
    "share_parts",
]

SHARES, UPLOAD = "/shares", "share-"


def share_parts(desk: AnalystDesk, pages: Pages) -> Iterator[Page | Action]:
    """The page and the form of the first step."""

    def show(request: Request) -> Response:
        parties = desk.folder.status()
        return pages.page(
            "shares.html",
            path=SHARES,
            parties=parties,
            n_there=sum(each.created is not None for each in parties),
            quorum=len(parties) if desk.of_sums else desk.folder.project.quorum,
            ending=desk.ending,
            inbox=desk.files.in_inbox((desk.ending,)),
            command=desk.command("add", *(f"{name}{desk.ending}" for name in desk.folder.project.parties)),
        )

    def add(form: FormData) -> Response:
        files = chosen_files(form, desk.files, as_name=UPLOAD, ending=desk.ending, what="share that a party sent")

        def work(job: Job) -> None:
            job.say(f"Checking {len(files)} files: signature, project, anchor, sizes, targets")
            add = desk.folder.add_sums if desk.of_sums else desk.folder.add
            add(each.path for each in files)

        def discard() -> None:
            for each in files:
                each.discard()

        desk.jobs.start("Taking shares", SHARES, work, at_end=discard)
        return RedirectResponse("/work", 303)

    yield Page(SHARES, show)
    yield Action(SHARES, add, most_files=len(desk.folder.project.parties))


INTEGRATE, MODEL = "/integrate", "/model"
_MOST = 10
"""Candidates that are shown."""


def integrate_parts(desk: AnalystDesk, pages: Pages) -> Iterator[Page | Action]:
    """Pages and forms of the second and third step."""

    def begin(request: Request) -> Response:
        kind = desk.folder.project.task.kind
        return pages.page(
            "integrate.html",
            path=INTEGRATE,
            kind=kind,
            methods=METHODS,
            models=SURVIVAL_MODELS if kind == "survival" else MODELS,
            of_sums=desk.of_sums,
            result=None if desk.of_sums else desk.integration(),
            command=desk.command("effect" if kind == "effect" else "integrate"),
        )

    def integrate(form: FormData) -> Response:
        known = tuple(dict.fromkeys((*MODELS, *SURVIVAL_MODELS)))
        method, model = _one_of(form, "method", METHODS), _one_of(form, "model", known)
        clusters, budget = whole_number(form, "clusters", least=2), number(form, "budget")

        def work(job: Job) -> None:
            if desk.of_sums:
                desk.summed = desk.folder.integrate_sums()
                return
            _integrate(desk.folder, job, method, model, clusters, budget)

        what = "Adding up all files" if desk.of_sums else "Aligning the shares, and training"
        desk.jobs.start(what, MODEL, work)
        return RedirectResponse("/work", 303)

    def card(request: Request) -> Response:
        if desk.of_sums:
            return pages.page(
                "card.html", path=MODEL, of_sums=True, result=desk.summed, command=desk.command("integrate")
            )
        result = desk.integration()
        context = {} if result is None else _card(result)
        project = desk.folder.project
        return pages.page(
            "card.html",
            path=MODEL,
            of_sums=False,
            result=result,
            missing=[] if result is None else [name for name in project.parties if name not in result.share_digests],
            command=desk.command("integrate"),
            **context,
        )

    yield Page(INTEGRATE, begin)
    yield Action(INTEGRATE, integrate)
    yield Page(MODEL, card)


def _integrate(
    folder: AnalystFolder, job: Job, method: str, model: str, clusters: int | None, budget: float | None
) -> None:
    received = [each.share for each in folder.shares()]
    folder.check_quorum(len(received))
    kind, of_means = folder.project.task.kind, not all(each.one_to_one for each in received)
    folder.integrate(
        make_integrator(method, received, task=kind),
        make_model(model, kind, None, of_means=of_means),
        n_clusters=clusters,
        budget=budget,
        progress=lambda done, total, name: job.say(f"{done + 1} of {total}: {name}", done / total),
    )


def _one_of(form: FormData, name: str, known: tuple[str, ...]) -> str:
    written = text(form, name) or known[0]
    if written not in known:
        raise ValueError(f"{name.capitalize()}: one of {', '.join(known)} is wanted. Choose one of them.")
    return written


def _card(result: Integration) -> dict[str, Any]:
    """What the card shows."""
    ranked = [] if result.selection is None else result.selection.ranked()[:_MOST]
    score = result.score
    return {
        "candidates": [
            {"name": _named(each), "found": each, "picture": picture}
            for each, picture in zip(ranked, _differences(ranked), strict=True)
        ],
        "n_candidates": 0 if result.selection is None else len(result.selection.candidates),
        "concordance": result.concordance,
        "score": score,
        "score_picture": Markup()
        if score is None
        else interval_svgs([(score.value, score.low, score.high)], baseline=score.baseline)[0],
        "repeated": {party: count for party, count in result.n_repeated.items() if count},
    }


def _differences(candidates: list[Candidate]) -> list[Markup]:
    """How much more each candidate loses than the one that was taken, with intervals."""
    ends = [(0.0, 0.0) if each.chosen else (each.difference_low, each.difference_high) for each in candidates]
    return interval_svgs([((low + high) / 2, low, high) for low, high in ends], baseline=0.0)


def _named(candidate: Candidate) -> str:
    parts = [candidate.integrator, candidate.model]
    parts += [] if candidate.alpha is None else [f"penalty {candidate.alpha:g}"]
    return ", ".join(part for part in parts if part)


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
            has_predictions=desk.folder.project.task.is_single and not desk.of_sums,
            command=desk.command("export"),
        )

    def export(form: FormData) -> Response:
        anchor_predictions = checked(form, "anchor_predictions")

        def work(job: Job) -> None:
            desk.folder.export(anchor_predictions=anchor_predictions, progress=lambda party: job.say(f"For {party}"))

        desk.jobs.start("Writing a file for each party", EXPORT, work)
        return RedirectResponse("/work", 303)

    def download(request: Request) -> Response:
        return handed_out(desk.outbox, request.path_params["name"])

    yield Page(EXPORT, show)
    yield Action(EXPORT, export)
    yield Page("/outbox/{name}", download)
