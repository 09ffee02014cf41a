"""Aligning the shares and training: `analyst integrate`, and the card of the model that came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...analyst import Candidate
from ...exchange.analyst_folder import (
    METHODS,
    MODELS,
    SURVIVAL_MODELS,
    AnalystFolder,
    Integration,
    make_integrator,
    make_model,
)
from ..web import Action, Job, Page, Pages, interval_svgs, number, text, whole_number
from ._desk import AnalystDesk

__all__ = ["INTEGRATE", "MODEL", "integrate_parts"]

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
            result=desk.integration(),
            command=desk.command("effect" if kind == "effect" else "integrate"),
        )

    def integrate(form: FormData) -> Response:
        known = tuple(dict.fromkeys((*MODELS, *SURVIVAL_MODELS)))
        method, model = _one_of(form, "method", METHODS), _one_of(form, "model", known)
        clusters, budget = whole_number(form, "clusters", least=2), number(form, "budget")

        def work(job: Job) -> None:
            _integrate(desk.folder, job, method, model, clusters, budget)

        desk.jobs.start("Aligning the shares, and training", MODEL, work)
        return RedirectResponse("/work", 303)

    def card(request: Request) -> Response:
        result = desk.integration()
        context = {} if result is None else _card(result)
        project = desk.folder.project
        return pages.page(
            "card.html",
            path=MODEL,
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
