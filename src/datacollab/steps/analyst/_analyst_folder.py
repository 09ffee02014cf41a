"""The analyst's folder: shares in, models out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from ...agreement import Project, load_project, read_project
from ...bundle import PublicKey, canonical_json, read_regular, unpack, write_atomically
from ...by_sums.analyst import StudyAtAnalyst, SumsAtAnalyst, SumsIntegration
from ...by_sums.rounds import ROUND_FILE
from ...errors import AgreementError, ExchangeError
from ...folder.analyst import AnalystFiles, AnalystWay, ReceivedFile, load_analysts_key
from ...folder.log import AuditLog, locked

if TYPE_CHECKING:
    from ...analyst import BaseIntegrator
    from ...by_rows.analyst import Integration
    from ...effects import EffectEstimate


_MODEL = ".dcmodel"
_ANCHOR_PREDICTIONS = ".dcanswers"


def choose_way(folder: AnalystFiles) -> AnalystWay:
    """Return the way by which a project's parties share: the one place where the analyst's is chosen."""
    if folder.project.is_study:
        return StudyAtAnalyst(folder)
    if folder.project.shares_sums:
        return SumsAtAnalyst(folder)
    # Rows bring scikit-learn, which takes seconds to load.
    from ...by_rows.analyst import RowsAtAnalyst

    return RowsAtAnalyst(folder)


class AnalystFolder(AnalystFiles):
    """An analyst's folder for one project: shares, the fitted collaboration, and models to be sent.

    It never holds an anchor row, a raw row or an f_k.  Every step writes whole files in place of others: a step that is
    killed leaves the old or the new state.  The passphrase is that of the key file, if it is encrypted.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        super().__init__(path, passphrase=passphrase)
        self.way = choose_way(self)

    @classmethod
    def init(
        cls, path: Path, project_file: Path, *, owner: PublicKey | None = None, passphrase: str | None = None
    ) -> Self:
        """Set up a folder that holds the analyst's key; `owner` is as in `read_project`."""
        project, text = read_project(project_file, owner=owner)
        load_analysts_key(path, project, passphrase)
        with locked(path):
            target = path / "project.toml"
            if target.exists():
                there = load_project(target)
                # The owner names the parties: another owner is another project.
                if there.owner != project.owner:
                    raise ExchangeError(
                        "ALREADY_THERE",
                        f"{path} has a project of {there.owner.fingerprint}, and this one is of "
                        f"{project.owner.fingerprint}. Use another folder, if both are meant.",
                    )
                # Rows were made for one version of the matrix; sums of an earlier run are removed below.
                if there.digest != project.digest and any(path.glob("shares/*.dcshare")):
                    raise ExchangeError(
                        "ALREADY_THERE",
                        f"{path} holds shares of another version of a project. Use another folder for this one.",
                    )
                project.check_not_older(there, path)
            if not (path / "shares").is_dir() or target.read_bytes() != text:
                facts: dict[str, Any] = {"project": project.name, "project_digest": project.digest}
                # Sums of an earlier run, with those of the next, show the part of a party that left.
                came = [file for file in path.glob("inbox/*.dcsum") if _is_of_another_version(file, project)]
                if removed := [*path.glob("shares/*.dcsum"), *came]:
                    facts["removed"] = sorted({file.name for file in removed})
                for file in removed:
                    file.unlink()
                for made in ("sums-model.dcstate", ROUND_FILE, f"outbox/{ROUND_FILE}"):
                    (path / made).unlink(missing_ok=True)
                write_atomically(target, text)
                AuditLog(path / "log.jsonl").append("init", **facts)
            path.chmod(0o700)
            for name in ("shares", "outbox"):
                (path / name).mkdir(mode=0o700, exist_ok=True)
        return cls(path, passphrase=passphrase)

    def add(self, files: Iterable[Path]) -> list[ReceivedFile]:
        """Check files of parties and keep them; raise an error and keep nothing unless all files are in order.

        A share of rows may take the place of an earlier one that it names; both have been seen.  Of sums a party sends
        one file, and the same bytes may come twice.
        """
        with locked(self.path):
            present = {each.party: each for each in self.shares()}
            accepted: list[tuple[ReceivedFile, bytes]] = []
            for file in map(Path, files):
                source = read_regular(file)
                received = self.way.receive(source, where=str(file))
                known = present.get(received.party)
                self.way.check_fits(received, present, where=str(file))
                # The same sums a second time are no news; `check_fits` has refused others.
                if known is None or self.way.takes_again:
                    accepted.append((received, source))
                present[received.party] = received
            (self.path / "shares").mkdir(mode=0o700, exist_ok=True)
            # Only now, as all files are in order.
            for received, source in accepted:
                write_atomically(self.way.file_of(received.party), source, mode=0o600)
                self.log.append("add", party=received.party, share=received.digest, **self.way.facts_to_log(received))
        return [received for received, _ in accepted]

    def shares(self) -> list[ReceivedFile]:
        """Return the files that parties sent, in the project's order; all are checked anew."""
        return self.way.shares()

    def status(self) -> list[dict[str, Any]]:
        """Return for each party the facts of its file, and whether something made of that lies in the outbox."""
        there = {each.party: each for each in self.shares()}
        parties = []
        for party, key in self.project.parties.items():
            entry: dict[str, Any] = {"party": party, "fingerprint": key.fingerprint}
            entry |= dict.fromkeys(("created", "n_rows", "n_components"))
            entry["exported"] = False
            if (received := there.get(party)) is not None:
                entry |= {name: received.facts.get(name) for name in ("created", "n_rows", "n_components")}
                entry["exported"] = self._is_exported(received)
            parties.append(entry)
        return parties

    def _is_exported(self, received: ReceivedFile) -> bool:
        made_of = self.way.made_of(received)
        for ending in (_MODEL, _ANCHOR_PREDICTIONS):
            file = self.path / "outbox" / f"{received.party}{ending}"
            with suppress(ExchangeError):
                # A file of an earlier share is none for this one.
                if file.is_file() and made_of.items() <= unpack(file, signed_by=self.project.analyst).facts.items():
                    return True
        return False

    def integrate(
        self,
        integrator: BaseIntegrator | str = "auto",
        estimator: Any = "auto",
        *,
        n_components: int | None = None,
        alpha: float | None = None,
        n_folds: int | None = 5,
        n_clusters: int | None = None,
        random_state: int | None = 0,
        **options: Any,
    ) -> Integration | SumsIntegration:
        """Align the representations, train the model, and keep both; or add up the sums, and fit the one model of them.

        Parameters
        ----------
        integrator : BaseIntegrator or str, default="auto"
            An integrator, or a name as in `make_integrator`.  All options are for rows.
        estimator : estimator or str, default="auto"
            A model, or a name as in `make_model`.  "auto" is chosen by rows left out (see `datacollab.Analyst`); after
            that, each party's file has the model's predictions for its rows left out.
        n_components, alpha
            For an integrator by name, as in `make_integrator`.
        n_folds : int or None, default=5
            Folds of the cross-validation of the model, if there was no choice.  None leaves out any score.
        n_clusters : int, optional
            For a project of kind "none" only: how many clusters k-means makes of the rows, without method and model.
        random_state : int or None, default=0
            Seed of models by name, of those that are tried, or of the first centres of clusters.
        **options
            `budget`, seconds after which no further candidate is begun, and `progress`, called with the number of
            candidates tried, of all, and the name of the next.

        Raises
        ------
        ExchangeError
            QUORUM_NOT_MET; SHARE_MALFORMED if sums do not fit each other, or their total is not one of rows; or
            STUDY_REFUSED if no statistic of a study can be given.
        AgreementError
            If the project is one of an effect (see `effect_of`), or clusters are asked for or missing.
        DataCollabError, ValueError
            If the representations cannot be aligned, a name is unknown, or an option does not go with it.
        """
        options |= {"n_components": n_components, "alpha": alpha, "n_folds": n_folds, "n_clusters": n_clusters}
        with locked(self.path):
            made: Integration | SumsIntegration = self.way.integrate(
                integrator, estimator, random_state=random_state, **options
            )
        return made

    def export(self, *, anchor_predictions: bool = False, progress: Callable[[str], None] | None = None) -> list[Path]:
        """Write one signed model per party into the outbox, or predictions for the anchor in its place.

        Predictions are of classes and numbers alone, and not of sums.  `progress` is called with each party's name.
        An ExchangeError is raised: NOT_INTEGRATED, also if shares have changed since, MODEL_LEAKS_ROWS or
        MODEL_UNSUPPORTED.
        """
        if anchor_predictions and not (self.way.predicts_anchor and self.project.task.is_single):
            raise AgreementError(
                "Predictions are given for classes and numbers alone, and not of sums. Export models (no "
                "--anchor-predictions)."
            )
        with locked(self.path):
            outgoing = self.way.export(anchor_predictions=anchor_predictions)
            ending = _ANCHOR_PREDICTIONS if anchor_predictions else _MODEL
            outbox = self.path / "outbox"
            outbox.mkdir(mode=0o700, exist_ok=True)
            for leftover in self.path.glob(".export-*"):  # of an export that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            # Nothing lies where it may be sent from before the log knows of it.
            with TemporaryDirectory(prefix=".export-", dir=self.path) as staged:
                for party in outgoing.parties:
                    if progress is not None:
                        progress(party)
                    write_atomically(Path(staged) / f"{party}{ending}", outgoing.data_for(party), mode=0o600)
                self.log.append("export", parties=outgoing.parties, **outgoing.facts)
                names = [f"{party}{ending}" for party in outgoing.parties]
                return [(Path(staged) / name).replace(outbox / name) for name in names]

    @property
    def quorum(self) -> int:
        """How many parties must have shared; all of them, if they share sums."""
        return self.project.fewest_parties

    def read_integration(self) -> tuple[dict[str, Any], Integration]:
        """Return models by party, and their integration, of the shares of rows there; or raise NOT_INTEGRATED."""
        return self.way.read_integration()

    def __repr__(self) -> str:
        return f"AnalystFolder({os.fspath(self.path)!r}, project={self.project.name!r})"


def _is_of_another_version(file: Path, project: Project) -> bool:
    """Return whether a file that came was made for another version of the project; a damaged one tells nothing."""
    try:
        return unpack(file).facts.get("project_digest") != project.digest
    except ExchangeError:
        return False


EFFECT_FILES = ("effect.json", "effect.html")
"""Files that `effect_of` writes into the folder."""


def effect_of(
    folder: AnalystFolder,
    *,
    integration: str = "auto",
    n_components: int | None = None,
    horizon: float | None = None,
    random_state: int = 0,
    **options: Any,
) -> EffectEstimate:
    """Estimate the project's effect, and write it into the folder as `EFFECT_FILES`.

    The report holds figures over all rows, and none of a row.  Nothing is sent to the parties.  Integration and
    components are as in `make_integrator`, with affine `LTI` for "auto"; all else is as in
    `datacollab.effects.estimate_effect`.

    Raises
    ------
    AgreementError, ExchangeError, EffectError
        If the project is of another kind, or times to events have no horizon, or a number has one; QUORUM_NOT_MET; or
        if shares do not serve for estimates with intervals that hold.
    """
    from ...by_rows.analyst import make_integrator
    from ...effects import estimate_effect

    task = folder.project.task
    if task.kind != "effect":
        raise AgreementError(
            f"Project {folder.project.name!r} is of kind {task.kind!r}, which has no treatment. Run "
            "`datacollab analyst integrate` instead."
        )
    if task.time and horizon is None:
        raise AgreementError(
            f"The outcome is {task.event!r} after {task.time!r}: give the time at which it is compared (--horizon)."
        )
    if horizon is not None and not task.time:
        raise AgreementError(f"The outcome {task.outcome!r} is a number and has no horizon. Leave it out.")
    # The shares that are estimated from are those that the log names.
    with locked(folder.path):
        received = folder.shares()
        folder.check_quorum(len(received))
        shares = [each.share for each in received]
        integrator = make_integrator(integration, shares, task=task.kind, n_components=n_components)
        assert not isinstance(integrator, str)  # "auto" is settled for effects
        effect = estimate_effect(shares, integrator, horizon=horizon, random_state=random_state, **options)
        facts = effect.to_dict() | {
            "project": folder.project.name,
            "project_digest": folder.project.digest,
            "task": task.words,
            "unit": task.unit,
            "shares": {each.party: each.digest for each in received},
        }
        for name, data in zip(EFFECT_FILES, (canonical_json(facts), effect.to_html().encode()), strict=True):
            write_atomically(folder.path / name, data, mode=0o600)
        logged = ("estimate", "interval", "target", "method", "errors", "horizon", "n_rows", "shares")
        folder.log.append("effect", **{name: facts[name] for name in logged})
    return effect
