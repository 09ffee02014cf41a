"""The total of all parties' sums: added up, checked, and made into a model or tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ..._version import __version__
from ...agreement import Project
from ...bundle import KeyPair, digest, now, pack, seal, write_atomically
from ...errors import AgreementError, DataCollabError, ExchangeError, NumericalError
from ...folder.analyst import SEALED, AnalystWay, Export, ReceivedFile
from ...linalg import largest_noise
from ...study import RoundResult, StatisticResult
from ...sums import SUMS_MODEL_KIND, SumsModel, not_of_rows
from ..plan import fewest_rows, plan_of, purpose_of_model
from ..rounds import ROUND_FILE, NextRound, read_round, round_to_bytes
from ._messages import check_sums_fit, receive_sums
from ._study_files import study_files

_FEWEST_IN_TOTAL = 10
"""Each row of a class with fewer rows in the total may be recognised."""


@dataclass(frozen=True, kw_only=True)
class SumsIntegration:
    """A total of sums in numbers, all of them blurred by its noise, and the model or the tables that were made of it.

    `alpha`, its penalty, and `model_digest`, which is the same for all parties, are None if there is no model.
    `n_rows` are of all parties, and labelled public ones, or None if a study's statistics do not say; `rare` are
    classes that have, or levels that may have, fewer than ten.  `results` are those of a study's statistics, by title.
    `most_rows` is the most that a total has, as the parties agreed, or None.
    """

    n_rows: int | None
    most_rows: int | None
    n_parties: int
    n_components: int
    alpha: float | None
    results: dict[str, StatisticResult]
    class_counts: dict[str, int]
    rare: tuple[str, ...]
    constant: tuple[str, ...]
    """Classes that the model predicts by their shares of rows alone."""
    context: str
    model_digest: str | None
    created: str

    def facts(self) -> dict[str, Any]:
        """Return the same as JSON holds it."""
        facts = {name: each for name, each in vars(self).items() if name != "results"}
        return facts | {"rare": list(self.rare), "constant": list(self.constant), "cautions": self.cautions}

    @property
    def asks_again(self) -> bool:
        """Whether a further round follows."""
        return any(isinstance(each, RoundResult) for each in self.results.values())

    @property
    def cautions(self) -> list[str]:
        """Return sentences to look at before the results are used."""
        return [each for result in self.results.values() for each in result.cautions]


def solve_sums(
    received: Sequence[ReceivedFile], project: Project, key: KeyPair, next_round: NextRound | None = None
) -> tuple[bytes | None, SumsIntegration]:
    """Add up the messages of all parties, and check the total; return the bytes of the model, if there is one."""
    _check_all_there(received, project)
    facts = {name: received[0].facts[name] for name in ("anchor_commitment", "n_components")}
    plan = plan_of(project, **facts, next_round=next_round)
    try:
        results = plan.read([each.share for each in received])
    # These say already which code and which way on.
    except ExchangeError:
        raise
    except NumericalError as error:
        raise ExchangeError(
            "STUDY_REFUSED", f"No statistic of project {project.name!r} can be given. {error}"
        ) from None
    except DataCollabError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    by_title = {each.title: result for each, result in zip(plan.statistics, results, strict=True)}
    n_rows = _check_results(by_title, project)
    try:
        # Ridge regression, which makes a model, is alone in its message.
        model = results[0].model(plan.agreed.context)
    except NumericalError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    counts = results[0].class_counts
    rare = [f"{name}" for name, count in counts.items() if round(count) < _FEWEST_IN_TOTAL]
    rare += dict.fromkeys(f"{name}={level}" for each in results for name, level in each.rare)
    data = None
    of_model: dict[str, Any] = {"alpha": None, "constant": (), "model_digest": None}
    if model is not None:
        data = model.to_bytes(key=key)
        by_title = {}
        constant = tuple(map(str, model.constant_classes))
        of_model = {"alpha": float(model.fit.alpha), "constant": constant, "model_digest": digest(data)}
    return data, SumsIntegration(
        n_rows=None if n_rows is None else round(n_rows),
        most_rows=project.most_rows,
        n_parties=len(project.parties),
        n_components=facts["n_components"],
        results=by_title,
        class_counts={str(name): max(0, round(count)) for name, count in counts.items()},
        rare=tuple(rare),
        context=plan.agreed.context.hex(),
        created=now(),
        **of_model,
    )


def _check_all_there(received: Sequence[ReceivedFile], project: Project) -> None:
    """Raise QUORUM_NOT_MET unless all parties have sent sums: masks cancel in the total of all alone."""
    there = {each.party for each in received}
    if missing := [name for name in project.parties if name not in there]:
        raise ExchangeError(
            "QUORUM_NOT_MET",
            f"The sums of {', '.join(missing)} are missing, and without them nothing can be added up; what you gave is "
            "kept. Wait for them; if one never comes, the owner raises the run, with new mask keys of the others.",
        )


def _check_results(results: Mapping[str, StatisticResult], project: Project) -> float | None:
    """Return the number of rows, if a result tells it; refuse totals that rows of the project cannot give."""
    n_rows = None
    for title, result in results.items():
        faults: list[str | None] = []
        if result.size is not None:
            n_rows, noise = result.size
            faults.append(_too_few(n_rows, largest_noise(1, noise), project))
        if result.complete is not None:
            n_complete, noise = result.complete
            faults.append(_too_many(n_complete, largest_noise(1, noise), project))
        for fault in [*faults, result.fault]:
            if fault is not None:
                raise ExchangeError("SHARE_MALFORMED", not_of_rows(fault, f"{title} in project {project.name!r}"))
    return n_rows


def _too_few(n: float, slack: float, project: Project) -> str | None:
    K = len(project.parties)
    least = K * fewest_rows(project)
    if n >= least - slack:
        return None
    return f"it says that there are {n:.0f} rows, and {K} parties add at least {least}"


def _too_many(n: float, slack: float, project: Project) -> str | None:
    most = project.most_rows
    if most is None or n <= most + slack:
        return None
    return f"it says that there are {n:.0f} rows, and its parties add at most {most} ([sharing.most_rows])"


def model_to_bytes(model: SumsModel, project: Project, party: str, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcmodel` file for one party.

    The sealed part is the same for all parties, so that they can compare its digest.  `key` is the analyst's.
    """
    data = model.to_bytes(key=key)
    outside = {
        "party": party,
        "project": project.name,
        "project_digest": project.digest,
        "context": model.context.hex(),
        "model_digest": digest(data),
        "estimator": "ridge regression on sums",
        "n_components": len(model.fit.coefficients),
        "n_parties": len(project.parties),
        "n_rows": round(model.fit.n_rows),
        "created": now(),
        "versions": {"datacollab": __version__},
    }
    # Sealed to one party for one version of the project: a file in the wrong hands opens nowhere else.
    sealed = seal(data, [project.parties[party]], purpose=purpose_of_model(party, project))
    return pack(SUMS_MODEL_KIND, outside, {SEALED: sealed}, key=key)


class SumsAtAnalyst(AnalystWay):
    """Sums for one model, at the analyst: added up once all are there."""

    ending: ClassVar[str] = ".dcsum"
    made: ClassVar[str] = "sums-model.dcstate"

    def receive(self, data: bytes, *, where: str) -> ReceivedFile:
        """Read and check a party's file of sums."""
        return receive_sums(data, self.folder.project, self.folder.key, next_round=self.read_next_round(), where=where)

    def read_next_round(self) -> NextRound | None:
        """Return the round that is being collected, if it is not the first."""
        return None

    def check_fits(self, received: ReceivedFile, present: Mapping[str, ReceivedFile], *, where: str) -> None:
        """Refuse a second file of a party, and one of another anchor or another number of columns."""
        check_sums_fit(received, present, where=where)

    def facts_to_log(self, received: ReceivedFile) -> dict[str, Any]:
        """Return an entry for the log, which tells nothing of the numbers."""
        return {"way": "sums"}

    def describe(self, n_rows: int | None, n_components: int) -> str:
        """Return the size of a message in words."""
        return f"sums of {n_components} columns"

    def made_of(self, received: ReceivedFile) -> dict[str, Any]:
        """Return the context of the run, by which a model names its sum."""
        return {"context": received.share.context.hex()}

    def integrate(self, *args: Any, **options: Any) -> SumsIntegration:
        """Add up the sums, and keep the model; options are for rows."""
        folder = self.folder
        data, total = solve_sums(self.shares(), folder.project, folder.key, self.read_next_round())
        if data is not None:
            write_atomically(folder.path / self.made, data, mode=0o600)
        self.keep_results(total)
        folder.log.append("integrate", **total.facts())
        return total

    def keep_results(self, total: SumsIntegration) -> None:
        """Keep nothing but the model."""

    def model(self) -> SumsModel:
        """Return the model of all parties' sums; raise NOT_INTEGRATED or STATE_DAMAGED."""
        data = self.read_made()
        try:
            return SumsModel.from_bytes(data, signed_by=self.folder.project.analyst)
        except ExchangeError as error:
            made = self.folder.path / self.made
            raise ExchangeError(
                "STATE_DAMAGED", f"{made} is damaged ({error.code}). Run `datacollab analyst integrate` again."
            ) from None

    def export(self, *, anchor_predictions: bool) -> Export:
        """Return the same model for all parties."""
        model = self.model()
        data_for = partial(model_to_bytes, model, self.folder.project, key=self.folder.key)
        return Export(
            parties=list(self.folder.project.parties), facts={"context": model.context.hex()}, data_for=data_for
        )


class StudyAtAnalyst(SumsAtAnalyst):
    """Sums of a study's statistics, which make tables and no model; a regression by rounds asks for the next one."""

    def read_next_round(self) -> NextRound | None:
        """Return the round that is being collected, if it is not the first."""
        folder = self.folder
        path = folder.path / ROUND_FILE
        if not path.is_file():
            return None
        return read_round(path.read_bytes(), folder.project, folder.key, where=str(path))

    def file_of(self, party: str) -> Path:
        """Return the path of a party's file of the round that is being collected."""
        next_round = self.read_next_round()
        if next_round is None:
            return super().file_of(party)
        return self.folder.path / "shares" / f"{party}.round-{next_round.number}{self.ending}"

    def integrate(self, *args: Any, **options: Any) -> SumsIntegration:
        """Add up the sums, and keep the files of a study, or ask for the next round; options are for rows."""
        request = self.folder.path / ROUND_FILE
        # It may have been tidied away before it was sent.
        if request.is_file():
            self._send_round(request.read_bytes())
        return super().integrate(*args, **options)

    def keep_results(self, total: SumsIntegration) -> None:
        """Keep the files of the study; or ask for the next round."""
        folder = self.folder
        result = next(iter(total.results.values()), None)
        if isinstance(result, RoundResult):
            so_far = result.so_far
            next_round = NextRound(number=so_far.n_done + 1, after=total.context, so_far=so_far)
            data = round_to_bytes(next_round, folder.project, folder.key)
            # From here on, files of the next round are collected.
            write_atomically(folder.path / ROUND_FILE, data, mode=0o600)
            self._send_round(data)
            return
        for name, content in study_files(total.results, folder.project).items():
            write_atomically(folder.path / name, content, mode=0o600)

    def _send_round(self, data: bytes) -> None:
        """Put a request into the outbox, unless it lies there."""
        path = self.folder.path / "outbox" / ROUND_FILE
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, data, mode=0o600)

    def describe(self, n_rows: int | None, n_components: int) -> str:
        """Return the same words for each message."""
        return "sums of a study"

    def model(self) -> SumsModel:
        """Raise an AgreementError: a study makes no model."""
        project = self.folder.project
        raise AgreementError(
            f"Project {project.name!r} is of {' and '.join(project.sums.statistics)}, and makes no model. For a model "
            "the owner takes the statistics out, merges rare levels and raises the run; then all parties share again."
        )
