"""The analyst's desk as an application: shares, alignment and training, effects, and export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp

from ...analyst import Candidate
from ...errors import ExchangeError
from ...exchange.analyst_folder import (
    EFFECT_FILES,
    MODELS,
    STUDY_FILES,
    SURVIVAL_MODELS,
    AnalystFolder,
    Integration,
    effect_of,
)
from ...exchange.steps import STEPS, ranking_rows
from ..web import Action, Desk, Job, Page, Pages, Place, Session, chosen_files, create_app, handed_out

SHARES, INTEGRATE, MODEL, EFFECT, EXPORT = "/shares", "/integrate", "/model", "/effect", "/export"
_FIGURES, _REPORT = EFFECT_FILES
_STUDY = STUDY_FILES[-1]
_ESTIMANDS = (
    ("ATE", "on average over all rows"),
    ("ATT", "on average over the treated ones"),
    ("overlap", "on average over rows weighted by overlap"),
)
_OF_STUDY = ((INTEGRATE, "Add up"), (MODEL, "The study's results"))
_MOST = 10
"""Candidates that are shown."""


class AnalystDesk(Desk):
    """The analyst's desk over the analyst's folder, with the passphrase of its keys."""

    role = "analyst"

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        super().__init__(path)
        self.folder = AnalystFolder(self.path, passphrase=passphrase)
        self.outbox = self.path / "outbox"

    @property
    def of_sums(self) -> bool:
        """Whether parties share sums, and no rows."""
        return self.folder.project.shares_sums

    @property
    def of_study(self) -> bool:
        """Whether a study's statistics are added up, which make no model."""
        return self.folder.project.is_study

    @property
    def ending(self) -> str:
        """Of the files that parties send."""
        return ".dcsum" if self.of_sums else ".dcshare"

    @property
    def n_there(self) -> int:
        """How many parties' files were taken."""
        return sum((self.path / "shares" / f"{name}{self.ending}").is_file() for name in self.folder.project.parties)

    def integration(self) -> Integration | None:
        """Return what came of the shares that are there; None if they were not integrated yet."""
        try:
            return self.folder.read_integration()[1]
        except ExchangeError as error:
            if error.code == "NOT_INTEGRATED":
                return None
            raise

    def lacks(self, path: str) -> tuple[str, str]:
        """Return what is missing before the step at a path can be taken, and the page to go to."""
        if path in (INTEGRATE, EFFECT) and self.n_there < self.folder.quorum:
            return f"{self.n_there} of {self.folder.quorum} files are there.", SHARES
        if path != EXPORT:
            return "", ""
        if self.of_study or self.folder.project.task.kind == "effect":
            return "There is nothing to be sent: no model goes back in a project of this kind.", ""
        result = None if self.of_sums else self.integration()
        if result is not None and result.row_findings:
            return "The model carries training rows, and is not exported. Choose another model.", INTEGRATE
        is_made = _made(self, "sums-model.dcstate")["is_done"] if self.of_sums else result is not None
        return ("", "") if is_made else ("No model was made of the files that are there.", INTEGRATE)

    def share_names(self) -> list[str]:
        """Return the names of the files that parties send."""
        return [f"{name}{self.ending}" for name in self.folder.project.parties]


def analyst_app(desk: AnalystDesk, session: Session) -> ASGIApp:
    """Put the analyst's desk together."""
    title = f"Analyst of project {desk.folder.project.name}"
    pages = Pages(
        session, desk.jobs, Path(__file__).parent / "templates", lambda: title, lambda: _places(desk), desk=desk
    )
    return create_app(session, pages, desk.jobs, _parts(desk))


def _places(desk: AnalystDesk) -> Sequence[Place]:
    """Return the analyst's steps, and how far it is, by files alone, which are quick to look at."""
    parties = desk.folder.project.parties
    note = f"{desk.n_there} of {len(parties)} parties"
    shares = Place(path=SHARES, name=STEPS["analyst add"].title, note=note, is_done=desk.n_there >= desk.folder.quorum)
    if desk.of_study:
        added_up = _made(desk, _STUDY)
        return (shares, *(Place(path=path, name=name, **added_up) for path, name in _OF_STUDY))
    if desk.folder.project.task.kind == "effect":
        return (shares, Place(path=EFFECT, name=STEPS["analyst effect"].title, **_made(desk, _FIGURES)))
    integrated = _made(desk, "sums-model.dcstate" if desk.of_sums else "collaboration.dcstate")
    exported = any(desk.outbox.glob("*.dc*"))
    integrate, export = STEPS["analyst integrate"].title, STEPS["analyst export"].title
    return (
        shares,
        Place(path=INTEGRATE, name="Add up" if desk.of_sums else integrate, **integrated),
        Place(path=MODEL, name="The model's card", **integrated),
        Place(path=EXPORT, name=export, note="to be sent by you" if exported else "", is_done=exported),
    )


def _made(desk: AnalystDesk, name: str) -> dict[str, Any]:
    """Return whether a file was made of the shares that are there, and what there is to say."""
    made = desk.path / name
    if not made.is_file():
        return {"is_done": False}
    when = made.stat().st_mtime_ns
    newer = any(share.stat().st_mtime_ns > when for share in (desk.path / "shares").glob(f"*{desk.ending}"))
    return {"is_done": not newer, "note": "shares came in since" if newer else ""}


def _parts(desk: AnalystDesk) -> Iterator[Page | Action]:
    project = desk.folder.project
    task = project.task

    def home(request: Request) -> dict[str, Any]:
        return {"following": next((place for place in _places(desk) if not place.is_done), None)}

    def add(form: FormData) -> None:
        step = STEPS["analyst add"]
        files = chosen_files(form, desk.files, step["files"], as_name="share-", ending=desk.ending)

        def work(job: Job) -> None:
            job.say(f"Checking {len(files)} files: signature, project, anchor, sizes, targets")
            desk.folder.add(each.path for each in files)

        def discard() -> None:
            for each in files:
                each.discard()

        desk.jobs.start(step.doing, SHARES, work, at_end=discard)

    def integrate(job: Job, **options: Any) -> Any:
        return desk.folder.integrate(
            random_state=None,
            progress=lambda done, total, name: job.say(f"{done + 1} of {total}: {name}", done / total),
            **options,
        )

    def card(request: Request) -> dict[str, Any]:
        result = desk.done.get("integrate") if desk.of_sums else desk.integration()
        made = _STUDY if desk.of_study and _made(desk, _STUDY)["is_done"] else ""
        shown = {"of_sums": desk.of_sums, "result": result, "page": made}
        if not isinstance(result, Integration):
            return shown
        missing = [name for name in project.parties if name not in result.share_digests]
        return shown | {"missing": missing} | _card(result)

    def effect(request: Request) -> dict[str, Any]:
        file = desk.path / _FIGURES
        found = dict(json.loads(file.read_bytes())) if file.is_file() else None
        now = {received.party: received.digest for received in desk.folder.shares()}
        is_old = found is not None and found["shares"] != now
        return {"task": task, "estimands": _ESTIMANDS, "found": found, "is_old": is_old, "report": _REPORT}

    def estimate(job: Job, **options: Any) -> None:
        job.say("Estimating, and judging rows by models that were fitted without them")
        effect_of(desk.folder, **options)

    def report(request: Request) -> Response:
        name = request.url.path.rsplit("/", 1)[-1]
        if not (desk.path / name).is_file():
            raise FileNotFoundError(f"There is no {name} in the folder yet. Make it first.")
        return FileResponse(desk.path / name, filename=name, media_type="application/octet-stream")

    def export(job: Job, **options: Any) -> None:
        desk.folder.export(progress=lambda party: job.say(f"For {party}"), **options)

    yield Page("/", home, "analyst.html")
    yield Page(SHARES, template="shares.html")
    yield Action(SHARES, add, most_files=len(project.parties))
    models = SURVIVAL_MODELS if task.kind == "survival" else MODELS
    yield Page(INTEGRATE, lambda request: {"models": models}, "integrate.html")
    doing, choices = "Adding up all files" if desk.of_sums else "", ("integrator", "estimator", "n_clusters", "budget")
    yield desk.form("integrate", integrate, path=INTEGRATE, shown=MODEL, fields=choices, doing=doing)
    yield Page(MODEL, card, "card.html")
    yield Page(EFFECT, effect, "effect.html")
    yield desk.form("effect", estimate, path=EFFECT, fields=("target", "horizon"))
    yield Page(f"{EFFECT}/{_REPORT}", report)
    yield Page(f"{MODEL}/{_STUDY}", report)
    yield Page(EXPORT, template="export.html")
    yield desk.form("export", export, path=EXPORT, fields=("anchor_predictions",))
    yield Page("/outbox/{name}", lambda request: handed_out(desk.outbox, request.path_params["name"]))


def _card(result: Integration) -> dict[str, Any]:
    """Return what the card shows."""
    ranked = [] if result.selection is None else result.selection.best(_MOST)
    return {
        "candidates": [{"name": _named(each), "found": each, "figures": _difference(each)} for each in ranked],
        "n_candidates": 0 if result.selection is None else len(result.selection.candidates),
        "concordance": result.concordance,
        "score": result.score,
        "ranking_rows": ranking_rows,
        "repeated": {party: count for party, count in result.n_repeated.items() if count},
    }


def _difference(found: Candidate) -> tuple[float, float, float]:
    """Return how much more a candidate loses than the one that was taken, with its interval."""
    low, high = (0.0, 0.0) if found.chosen else (found.difference_low, found.difference_high)
    return (low + high) / 2, low, high


def _named(candidate: Candidate) -> str:
    penalty = "" if candidate.alpha is None else f"penalty {candidate.alpha:g}"
    return ", ".join(filter(None, (candidate.integrator, candidate.model, penalty)))
