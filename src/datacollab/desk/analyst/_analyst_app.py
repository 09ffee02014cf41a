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
from ...folder.step_table import STEPS, ranking_rows
from ...steps.analyst import EFFECT_FILES, MODELS, STUDY_FILES, SURVIVAL_MODELS, AnalystFolder, Integration, effect_of
from ..web import Action, Desk, Job, Page, Pages, Session, StepForm, StepPlace, create_app, download_of, take_files

SHARES = "/shares"
INTEGRATE = "/integrate"
MODEL = "/model"
EFFECT = "/effect"
EXPORT = "/export"
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
    def n_there(self) -> int:
        """How many parties' files were taken."""
        # By files alone: to open each for every page would take seconds.
        return sum(self.folder.way.file_of(name).is_file() for name in self.folder.project.parties)

    def integration(self) -> Integration | None:
        """Return the integration of the shares that are there; None if they were not integrated yet."""
        try:
            return self.folder.read_integration()[1]
        except ExchangeError as error:
            if error.code == "NOT_INTEGRATED":
                return None
            raise

    def lacks(self, path: str) -> tuple[str, str]:
        """Return a sentence on anything missing before the step at a path can be taken, and the page to go to."""
        # Below the quorum, a total or a model would say too much of the few.
        if path in (INTEGRATE, EFFECT) and self.n_there < self.folder.quorum:
            return f"{self.n_there} of {self.folder.quorum} files are there.", SHARES
        if path != EXPORT:
            return "", ""
        if self.of_study or self.folder.project.task.kind == "effect":
            return "There is nothing to be sent: no model goes back in a project of this kind.", ""
        if self.of_sums:
            is_made = _state_of(self, self.folder.way.made)["is_done"]
        else:
            result = self.integration()
            is_made = result is not None
            if result is not None and result.row_findings:
                return "The model carries training rows, and is not exported. Choose another model.", INTEGRATE
        if not is_made:
            return "No model was made of the files that are there.", INTEGRATE
        return "", ""

    def share_names(self) -> list[str]:
        """Return the names of the files that parties send."""
        return [self.folder.way.file_of(name).name for name in self.folder.project.parties]


def analyst_app(desk: AnalystDesk, session: Session) -> ASGIApp:
    """Put the analyst's desk together."""
    title = f"Analyst of project {desk.folder.project.name}"
    pages = Pages(
        session, desk.jobs, Path(__file__).parent / "templates", lambda: title, lambda: _places(desk), desk=desk
    )
    return create_app(session, pages, desk.jobs, _parts(desk))


def _places(desk: AnalystDesk) -> Sequence[StepPlace]:
    """Return the analyst's steps, and how far it is, by files alone, which are quick to look at."""
    parties = desk.folder.project.parties
    note = f"{desk.n_there} of {len(parties)} parties"
    is_enough = desk.n_there >= desk.folder.quorum
    shares = StepPlace(path=SHARES, name=STEPS["analyst add"].title, note=note, is_done=is_enough)
    if desk.of_study:
        added_up = _state_of(desk, _STUDY)
        return (shares, *(StepPlace(path=path, name=name, **added_up) for path, name in _OF_STUDY))
    if desk.folder.project.task.kind == "effect":
        return (shares, StepPlace(path=EFFECT, name=STEPS["analyst effect"].title, **_state_of(desk, _FIGURES)))
    name = "Add up" if desk.of_sums else STEPS["analyst integrate"].title
    integrated = _state_of(desk, desk.folder.way.made)
    exported = any(desk.outbox.glob("*.dc*"))
    note = "to be sent by you" if exported else ""
    return (
        shares,
        StepPlace(path=INTEGRATE, name=name, **integrated),
        StepPlace(path=MODEL, name="The model's card", **integrated),
        StepPlace(path=EXPORT, name=STEPS["analyst export"].title, note=note, is_done=exported),
    )


def _state_of(desk: AnalystDesk, name: str) -> dict[str, Any]:
    """Return whether a file was made of the shares that are there, and a note on later ones."""
    made = desk.path / name
    if not made.is_file():
        return {"is_done": False}
    when = made.stat().st_mtime_ns
    if any(share.stat().st_mtime_ns > when for share in (desk.path / "shares").glob(f"*{desk.folder.way.ending}")):
        return {"is_done": False, "note": "shares came in since"}
    return {"is_done": True, "note": ""}


def _parts(desk: AnalystDesk) -> Iterator[Page | Action]:
    project = desk.folder.project
    task = project.task

    def home(request: Request) -> dict[str, Any]:
        return {"following": next((place for place in _places(desk) if not place.is_done), None)}

    def add(form: FormData) -> None:
        step = STEPS["analyst add"]
        files = take_files(form, desk.files, step["files"], as_name="share-", ending=desk.folder.way.ending)

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
        page = ""
        if desk.of_study and _state_of(desk, _STUDY)["is_done"]:
            page = _STUDY
        values = {"of_sums": desk.of_sums, "result": result, "page": page}
        if not isinstance(result, Integration):
            return values
        missing = [name for name in project.parties if name not in result.share_digests]
        return values | {"missing": missing} | _card(result)

    def export(job: Job, **options: Any) -> None:
        desk.folder.export(progress=lambda party: job.say(f"For {party}"), **options)

    yield Page("/", home, "analyst.html")
    yield Page(SHARES, template="shares.html")
    yield Action(SHARES, add, most_files=len(project.parties))
    models = SURVIVAL_MODELS if task.kind == "survival" else MODELS
    yield Page(INTEGRATE, lambda request: {"models": models}, "integrate.html")
    doing = "Adding up all files" if desk.of_sums else ""
    choices = ("integrator", "estimator", "n_clusters", "budget")
    form = StepForm(verb="integrate", path=INTEGRATE, shown=MODEL, fields=choices, doing=doing)
    yield desk.form(form, integrate)
    yield Page(MODEL, card, "card.html")
    yield from _effect_parts(desk)
    yield Page(EXPORT, template="export.html")
    yield desk.form(StepForm(verb="export", path=EXPORT, fields=("anchor_predictions",)), export)
    yield Page("/outbox/{name}", lambda request: download_of(desk.outbox, request.path_params["name"]))


def _effect_parts(desk: AnalystDesk) -> Iterator[Page | Action]:
    """Yield the page and form of an effect, and downloads of reports."""
    task = desk.folder.project.task

    def effect(request: Request) -> dict[str, Any]:
        file = desk.path / _FIGURES
        found = None
        is_old = False
        if file.is_file():
            found = dict(json.loads(file.read_bytes()))
            # A share that came in since makes another estimate.
            is_old = found["shares"] != {share.party: share.digest for share in desk.folder.shares()}
        return {"task": task, "estimands": _ESTIMANDS, "found": found, "is_old": is_old, "report": _REPORT}

    def estimate(job: Job, **options: Any) -> None:
        job.say("Estimating, and judging rows by models that were fitted without them")
        effect_of(desk.folder, **options)

    def report(request: Request) -> Response:
        # Routes with whole names alone lead here, so the name is one of two.
        name = request.url.path.rsplit("/", 1)[-1]
        if not (desk.path / name).is_file():
            raise FileNotFoundError(f"There is no {name} in the folder yet. Make it first.")
        return FileResponse(desk.path / name, filename=name, media_type="application/octet-stream")

    yield Page(EFFECT, effect, "effect.html")
    yield desk.form(StepForm(verb="effect", path=EFFECT, fields=("target", "horizon")), estimate)
    yield Page(f"{EFFECT}/{_REPORT}", report)
    yield Page(f"{MODEL}/{_STUDY}", report)


def _card(result: Integration) -> dict[str, Any]:
    """Return the values of the model's card."""
    ranked: list[Candidate] = []
    n_candidates = 0
    if result.selection is not None:
        ranked = result.selection.best(_MOST)
        n_candidates = len(result.selection.candidates)
    return {
        "candidates": [{"name": _name_of(each), "found": each, "figures": _difference(each)} for each in ranked],
        "n_candidates": n_candidates,
        "concordance": result.concordance,
        "score": result.score,
        "ranking_rows": ranking_rows,
        "repeated": {party: count for party, count in result.n_repeated.items() if count},
    }


def _difference(candidate: Candidate) -> tuple[float, float, float]:
    """Return how much more a candidate loses than the one that was taken, with its interval."""
    if candidate.chosen:
        return 0.0, 0.0, 0.0
    low = candidate.difference_low
    high = candidate.difference_high
    return (low + high) / 2, low, high


def _name_of(candidate: Candidate) -> str:
    names = [candidate.integrator, candidate.model]
    if candidate.alpha is not None:
        names.append(f"penalty {candidate.alpha:g}")
    return ", ".join(filter(None, names))
