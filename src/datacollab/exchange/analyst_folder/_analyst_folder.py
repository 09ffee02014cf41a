"""The analyst's folder: shares in, models out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from ...agreement import Project, load_project, read_project
from ...bundle import KeyPair, PublicKey, canonical_json, read_regular, unpack, write_atomically
from ...errors import AgreementError, ExchangeError
from ...folder.log import AuditLog, locked
from ...sums import SumsModel
from ..sums import model_to_bytes
from ._integration import (
    Integration,
    SumsIntegration,
    describe,
    pack_collaboration,
    sign_model,
    sign_predictions,
    solve_sums,
    unpack_collaboration,
)
from ._methods import cluster_rows, make_integrator, make_model
from ._received import ReceivedFile, check_fits, receive
from ._study import study_files

if TYPE_CHECKING:
    from ...analyst import BaseIntegrator, Collaboration
    from ...effects import EffectEstimate
    from ...share import Share

_MODEL = ".dcmodel"
_ANCHOR_PREDICTIONS = ".dcanswers"
EFFECT_FILES = ("effect.json", "effect.html")
"""Files that `effect_of` writes into the folder."""


class AnalystFolder:
    """An analyst's folder for one project: shares, the fitted collaboration, and models to be sent.

    It never holds an anchor row, a raw row or an f_k.  Every step writes whole files in place of others: a step that is
    killed leaves the old or the new state.  The passphrase is that of the key file, if it is encrypted.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        if not (self.path / "project.toml").is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{self.path} is no analyst's folder: there is no project.toml. Run `datacollab analyst init "
                "project.toml -C FOLDER` first.",
            )
        self.project: Project = load_project(self.path / "project.toml")
        self.log = AuditLog(self.path / "log.jsonl")
        self._key = _analysts_key(self.path, self.project, passphrase)
        self._of_sums = self.project.shares_sums
        self._made = self.path / ("sums-model.dcstate" if self._of_sums else "collaboration.dcstate")

    @classmethod
    def init(
        cls, path: Path, project_file: Path, *, owner: PublicKey | None = None, passphrase: str | None = None
    ) -> Self:
        """Set up a folder that holds the analyst's key; `owner` is as in `read_project`."""
        project, text = read_project(project_file, owner=owner)
        _analysts_key(path, project, passphrase)
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
                if removed := list(path.glob("shares/*.dcsum")):
                    facts["removed"] = [file.name for file in removed]
                for file in removed:
                    file.unlink()
                (path / "sums-model.dcstate").unlink(missing_ok=True)
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
                received = receive(source, self.project, self._key, where=str(file))
                check_fits(received, present, of_sums=self._of_sums, where=str(file))
                # The same sums a second time are no news; `check_fits` has refused others.
                if not (self._of_sums and received.party in present):
                    accepted.append((received, source))
                present[received.party] = received
            (self.path / "shares").mkdir(mode=0o700, exist_ok=True)
            # Only now, as all files are in order.
            for received, source in accepted:
                write_atomically(self._file_of(received.party), source, mode=0o600)
                facts = {"way": "sums"}
                if not self._of_sums:
                    facts = {name: received.facts[name] for name in ("n_rows", "n_components", "n_anchors")}
                self.log.append("add", party=received.party, share=received.digest, **facts)
        return [received for received, _ in accepted]

    def shares(self) -> list[ReceivedFile]:
        """Return the files that parties sent, in the project's order; all are checked anew."""
        files = [file for file in map(self._file_of, self.project.parties) if file.is_file()]
        return [receive(file.read_bytes(), self.project, self._key, where=str(file)) for file in files]

    def _file_of(self, party: str) -> Path:
        ending = ".dcsum" if self._of_sums else ".dcshare"
        return self.path / "shares" / f"{party}{ending}"

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
        made_of = {"share_digest": received.digest}
        if self._of_sums:
            made_of = {"context": received.share.context.hex()}
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
        with locked(self.path):
            if self._of_sums:
                return self._add_up()
            self._check_kind(n_clusters)
            received = self.shares()
            self.check_quorum(len(received))
            shares = [each.share for each in received]
            if n_clusters is not None:
                collaboration = cluster_rows(shares, n_clusters, random_state or 0)
            else:
                if isinstance(integrator, str):
                    kind = self.project.task.kind
                    integrator = make_integrator(integrator, shares, task=kind, n_components=n_components, alpha=alpha)
                collaboration = self._train(shares, integrator, estimator, random_state, options)
            result = describe(collaboration, received, self.project, n_folds)
            write_atomically(self._made, pack_collaboration(collaboration, result), mode=0o600)
            self.log.append("integrate", **result.facts_to_log())
        return result

    def _add_up(self) -> SumsIntegration:
        """Add up the sums, and keep the model, or the files of a study; the folder must be locked."""
        data, total = solve_sums(self.shares(), self.project, self._key)
        if data is not None:
            write_atomically(self._made, data, mode=0o600)
        if total.results:
            for name, content in study_files(total.results, self.project).items():
                write_atomically(self.path / name, content, mode=0o600)
        self.log.append("integrate", **total.facts())
        return total

    def _train(
        self,
        shares: list[Share],
        integrator: BaseIntegrator | str,
        estimator: Any,
        random_state: int | None,
        options: dict[str, Any],
    ) -> Collaboration:
        """Train the collaboration's model; an analyst that is left a choice makes it here."""
        from ...analyst import Analyst

        task = self.project.task
        if isinstance(estimator, str):
            # Means of groups lie closer together than the rows that will be predicted.
            of_means = not all(share.one_to_one for share in shares)
            estimator = make_model(estimator, task.kind, random_state, of_means=of_means)
        kind = task.kind if task.is_single else "auto"
        return Analyst(integrator, estimator, task=kind, random_state=random_state or 0, **options).fit(shares)

    def export(self, *, anchor_predictions: bool = False, progress: Callable[[str], None] | None = None) -> list[Path]:
        """Write one signed model per party into the outbox, or predictions for the anchor in its place.

        Predictions are of classes and numbers alone, and not of sums.  `progress` is called with each party's name.
        An ExchangeError is raised: NOT_INTEGRATED, also if shares have changed since, MODEL_LEAKS_ROWS or
        MODEL_UNSUPPORTED.
        """
        if anchor_predictions and (self._of_sums or not self.project.task.is_single):
            raise AgreementError(
                "Predictions are given for classes and numbers alone, and not of sums. Export models (no "
                "--anchor-predictions)."
            )
        data_for: Callable[[str], bytes]
        with locked(self.path):
            if self._of_sums:
                model = self.sums_model()
                parties = list(self.project.parties)
                facts: dict[str, Any] = {"context": model.context.hex()}
                data_for = partial(model_to_bytes, model, self.project, key=self._key)
            else:
                parties, facts, data_for = self._files_of_rows(anchor_predictions)
            ending = _ANCHOR_PREDICTIONS if anchor_predictions else _MODEL
            outbox = self.path / "outbox"
            outbox.mkdir(mode=0o700, exist_ok=True)
            for leftover in self.path.glob(".export-*"):  # of an export that was killed
                shutil.rmtree(leftover, ignore_errors=True)
            # Nothing lies where it may be sent from before the log knows of it.
            with TemporaryDirectory(prefix=".export-", dir=self.path) as staged:
                for party in parties:
                    if progress is not None:
                        progress(party)
                    write_atomically(Path(staged) / f"{party}{ending}", data_for(party), mode=0o600)
                self.log.append("export", parties=parties, **facts)
                names = [f"{party}{ending}" for party in parties]
                return [(Path(staged) / name).replace(outbox / name) for name in names]

    def _files_of_rows(self, anchor_predictions: bool) -> tuple[list[str], dict[str, Any], Callable[[str], bytes]]:
        """Return the parties of the integration, facts for the log, and a function that writes a party's file."""
        models, result = self.read_integration()
        if anchor_predictions:
            anchors = {each.party: each.share.anchor_representation for each in self.shares()}

            def sign_answers(party: str) -> bytes:
                return sign_predictions(models[party], anchors[party], result, self.project, self._key)

            return list(models), {"answers": True}, sign_answers
        # Kernel and neighbour models hold the rows that they were trained on.
        if result.row_findings:
            raise ExchangeError(
                "MODEL_LEAKS_ROWS",
                f"The model {result.estimator} carries rows that it was trained on "
                f"({', '.join(result.row_findings)}); each party would get the collaboration "
                "representations of all others. Integrate with another model, such as random-forest.",
            )
        return list(models), {}, lambda party: sign_model(models[party], result, self.project, self._key)

    @property
    def quorum(self) -> int:
        """How many parties must have shared; all of them, if they share sums."""
        return self.project.fewest_parties

    def check_quorum(self, n_shares: int) -> None:
        """Raise if fewer parties have shared than the project needs."""
        if n_shares < self.project.quorum:
            raise ExchangeError(
                "QUORUM_NOT_MET",
                f"{n_shares} of {len(self.project.parties)} parties have shared; project {self.project.name!r} wants "
                f"{self.project.quorum}. Wait for the others.",
            )

    def _check_kind(self, n_clusters: int | None) -> None:
        """Refuse a model for an effect, clusters where there are targets, and a model where there are none."""
        kind = self.project.task.kind
        name = self.project.name
        if kind == "effect":
            raise AgreementError(
                f"Project {name!r} is of an effect: there is no model to send. Run `datacollab analyst effect`."
            )
        if (kind == "none") != (n_clusters is not None):
            how = "give the number of clusters (--clusters)" if kind == "none" else "leave out the number of clusters"
            raise AgreementError(f"Project {name!r} is of kind {kind!r}: {how}.")

    def read_integration(self) -> tuple[dict[str, Any], Integration]:
        """Return models by party, and their integration, of the shares of rows there; or raise NOT_INTEGRATED."""
        models, result = unpack_collaboration(self._read_made(), where=str(self._made))
        # A model of shares that were replaced fits the map of no party.
        if result.share_digests != {received.party: received.digest for received in self.shares()}:
            raise ExchangeError(
                "NOT_INTEGRATED", "Shares came in after the last integration. Run `datacollab analyst integrate` again."
            )
        return models, result

    def sums_model(self) -> SumsModel:
        """Return the model of all parties' sums; raise NOT_INTEGRATED, STATE_DAMAGED, or AgreementError in a study."""
        if self.project.is_study:
            raise AgreementError(
                f"Project {self.project.name!r} is of {' and '.join(self.project.sums.statistics)}, and makes no "
                "model. For a model the owner takes the statistics out, merges rare levels and raises the run; then "
                "all parties share again."
            )
        data = self._read_made()
        try:
            return SumsModel.from_bytes(data, signed_by=self.project.analyst)
        except ExchangeError as error:
            raise ExchangeError(
                "STATE_DAMAGED", f"{self._made} is damaged ({error.code}). Run `datacollab analyst integrate` again."
            ) from None

    def _read_made(self) -> bytes:
        """Return the file of the last integration."""
        if not self._made.is_file():
            run = "integrate` first"
            if self.project.task.kind == "effect":
                run = "effect`: no model goes back"
            raise ExchangeError("NOT_INTEGRATED", f"{self.path} holds no integration. Run `datacollab analyst {run}.")
        return self._made.read_bytes()

    def __repr__(self) -> str:
        return f"AnalystFolder({os.fspath(self.path)!r}, project={self.project.name!r})"


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


def _analysts_key(path: Path, project: Project, passphrase: str | None) -> KeyPair:
    key = KeyPair.load(path / "keys.json", passphrase)
    if key.public == project.analyst:
        return key
    whose = "not the analyst's"
    way_on = "Send the owner the file public.key of this folder"
    for name, public in project.parties.items():
        if public == key.public:
            whose = f"that of party {name!r}"
            way_on = "This is a step of the analyst's: name their folder with -C"
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in {path} ({key.public.fingerprint}) is {whose} in project {project.name!r}; the analyst's is "
        f"{project.analyst.fingerprint}. {way_on}.",
    )
