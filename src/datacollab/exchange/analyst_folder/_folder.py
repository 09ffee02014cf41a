"""The analyst's folder: shares in, models out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from ...bundle import KeyPair, PublicKey, read_regular, write_atomically
from ...errors import AgreementError, ExchangeError
from ...sums import SumsModel
from ..log import AuditLog, locked
from ..project import COUNTS, Project, load_project, read_project
from ..sums import model_to_bytes
from ._collaboration import (
    pack_collaboration,
    refuse_training_rows,
    signed_model,
    signed_predictions,
    unpack_collaboration,
)
from ._integration import Integration, describe
from ._methods import clustered, make_integrator, make_model
from ._shares import PartyStatus, ReceivedShare, check_newer, check_same_anchor, receive
from ._sums import ReceivedSum, SumsIntegration, check_new_sum, receive_sum, solve_sums

if TYPE_CHECKING:
    from ...analyst import BaseIntegrator

__all__ = ["AnalystFolder"]

_MODEL, _ANCHOR_PREDICTIONS = ".dcmodel", ".dcanswers"


class AnalystFolder:
    """An analyst's folder for one project: shares, the fitted collaboration, and models to be sent.

    It never holds an anchor row, a raw row or an f_k. Every step writes whole files in place of others: a step that is
    killed leaves the old or the new state.

    Parameters
    ----------
    path : Path
    passphrase : str, optional
        Of the key file, if it is encrypted.

    Raises
    ------
    ExchangeError
        If the folder was not set up, or a file in it cannot be trusted.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        project_file = self.path / "project.toml"
        if not project_file.is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{self.path} is no analyst's folder: there is no project.toml. Run `datacollab analyst init "
                "project.toml -C FOLDER` first.",
            )
        self.project: Project = load_project(project_file)
        self._key = _analysts_key(self.path, self.project, passphrase)
        self._log = AuditLog(self.path / "log.jsonl")

    @classmethod
    def init(
        cls, path: Path, project_file: Path, *, owner: PublicKey | None = None, passphrase: str | None = None
    ) -> Self:
        """Set up a folder that holds the analyst's key.

        Parameters
        ----------
        path, project_file : Path
        owner : PublicKey, optional
            Of the project's owner, as it came by another way than the file.
        passphrase : str, optional

        Raises
        ------
        ExchangeError
            If the project file cannot be trusted, the key is not the one it names, or another project is there.
        """
        project, text = read_project(project_file)
        if owner is not None and project.owner != owner:
            raise ExchangeError(
                "SIGNATURE_INVALID",
                f"{project_file} is signed by {project.owner.fingerprint}; the owner's key that was given is "
                f"{owner.fingerprint}. Do not use the file; ask the owner by another way.",
            )
        _analysts_key(path, project, passphrase)
        with locked(path):
            target = path / "project.toml"
            if target.exists():
                there = load_project(target)
                _check_same_project(there, project, path)
                project.check_not_older(there, path)
            is_new = not (path / "shares").is_dir()
            if is_new or target.read_bytes() != text:
                gone = [file.name for file in path.glob("shares/*.dcsum")]
                for name in gone:
                    (path / "shares" / name).unlink()
                (path / "sums-model.dcstate").unlink(missing_ok=True)
                write_atomically(target, text)
                facts = {"project": project.name, "project_digest": project.digest}
                AuditLog(path / "log.jsonl").append("init", **facts, **({"removed": gone} if gone else {}))
            path.chmod(0o700)
            for name in ("shares", "outbox"):
                (path / name).mkdir(mode=0o700, exist_ok=True)
        return cls(path, passphrase=passphrase)

    def add_sums(self, files: Iterable[Path]) -> list[ReceivedSum]:
        """Check files of sums and keep them; none is kept unless all are in order.

        A party sends one file. The same bytes may come twice; another file of it is refused.

        Raises
        ------
        ExchangeError
            If a file is refused.
        AgreementError
            If the project shares rows.
        """
        self._check_way("sums")
        with locked(self.path):
            present = {received.party: received for received in self.sums()}
            accepted: list[tuple[ReceivedSum, bytes]] = []
            for file in map(Path, files):
                source = read_regular(file)
                received = receive_sum(source, self.project, self._key, where=str(file))
                check_new_sum(received, present, where=str(file))
                if received.party not in present:
                    accepted.append((received, source))
                present[received.party] = received
            (self.path / "shares").mkdir(mode=0o700, exist_ok=True)
            for received, source in accepted:
                write_atomically(self.path / "shares" / f"{received.party}.dcsum", source, mode=0o600)
                self._log.append("add", party=received.party, share=received.digest, way="sums")
        return [received for received, _ in accepted]

    def sums(self) -> list[ReceivedSum]:
        """Return the files of sums that are there, in the project's order of parties; all are checked anew."""
        return [receive_sum(data, self.project, self._key, where=where) for where, data in self._there(".dcsum")]

    def integrate_sums(self) -> SumsIntegration:
        """Add up the sums of all parties, check the total, fit the one model, and keep it.

        Raises
        ------
        ExchangeError
            QUORUM_NOT_MET, naming who is missing; SHARE_MALFORMED if files do not fit each other, or the total is not
            one of rows.
        AgreementError
            If the project shares rows.
        """
        self._check_way("sums")
        with locked(self.path):
            data, result = solve_sums(self.sums(), self.project, self._key)
            if data is not None:
                write_atomically(self._sums_model_file, data, mode=0o600)
            self._log.append("integrate", **result.facts())
        return result

    def sums_model(self) -> SumsModel:
        """Return the model of all parties' sums.

        Raises
        ------
        AgreementError
            If the project counts classes.
        ExchangeError
            NOT_INTEGRATED or STATE_DAMAGED.
        """
        if self.project.sharing is not None and self.project.sharing.statistic == COUNTS:
            raise AgreementError(
                f"Project {self.project.name!r} counts the rows of each class, and makes no model. The owner merges "
                "rare classes, takes the statistic out and raises the run; then all parties share again."
            )
        file = self._sums_model_file
        if not file.is_file():
            raise ExchangeError(
                "NOT_INTEGRATED", f"{self.path} holds no integration. Run `datacollab analyst integrate` first."
            )
        try:
            return SumsModel.load(file, signed_by=self.project.analyst)
        except ExchangeError as error:
            raise ExchangeError(
                "STATE_DAMAGED", f"{file} is damaged ({error.code}). Run `datacollab analyst integrate` again."
            ) from None

    def add(self, files: Iterable[Path]) -> list[ReceivedShare]:
        """Check shares and keep them; none is kept unless all are in order.

        A share that takes the place of an earlier one does so for the next integration; both have been seen.

        Raises
        ------
        ExchangeError
            If a share is refused.
        """
        self._check_way("rows")
        with locked(self.path):
            present = {received.party: received for received in self.shares()}
            commitments = {party: str(each.facts["anchor_commitment"]) for party, each in present.items()}
            accepted: list[tuple[ReceivedShare, bytes]] = []
            for file in map(Path, files):
                source = read_regular(file)
                received = receive(source, self.project, self._key, where=str(file))
                commitment = str(received.facts["anchor_commitment"])
                check_same_anchor(commitments, received.party, commitment)
                check_newer(received, present.get(received.party), where=str(file))
                present[received.party], commitments[received.party] = received, commitment
                accepted.append((received, source))
            (self.path / "shares").mkdir(mode=0o700, exist_ok=True)
            for received, source in accepted:
                write_atomically(self.path / "shares" / f"{received.party}.dcshare", source, mode=0o600)
                self._log.append("add", party=received.party, share=received.digest, **_counts(received))
        return [received for received, _ in accepted]

    def shares(self) -> list[ReceivedShare]:
        """Return the shares that are there, in the project's order of parties; all are checked anew."""
        return [receive(data, self.project, self._key, where=where) for where, data in self._there(".dcshare")]

    def _there(self, ending: str) -> Iterator[tuple[str, bytes]]:
        """Yield the names and bytes of files that parties have sent, in the project's order of parties."""
        for party in self.project.parties:
            file = self.path / "shares" / f"{party}{ending}"
            if file.is_file():
                yield str(file), file.read_bytes()

    def status(self) -> list[PartyStatus]:
        """Return one entry per party of the project."""
        there: dict[str, dict[str, Any]] = {}
        if self.project.sharing is not None:
            for each in self.sums():
                sent = self._sent(each.party, "context", each.message.context.hex())
                facts = {"created": each.outside.created, "n_components": each.outside.n_components}
                there[each.party] = facts | {"exported": sent}
        else:
            for share in self.shares():
                n_rows, n_components = share.share.representation.shape
                sent = self._sent(share.party, "share_digest", share.digest)
                facts = {"created": str(share.facts["created"]), "n_rows": n_rows, "n_components": n_components}
                there[share.party] = facts | {"exported": sent}
        return [
            PartyStatus(party=party, fingerprint=key.fingerprint, **there.get(party, {}))
            for party, key in self.project.parties.items()
        ]

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
        budget: float | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Integration:
        """Align the representations, train the model, and keep both.

        Parameters
        ----------
        integrator : BaseIntegrator or str, default="auto"
            An integrator, or a name as in `make_integrator`.
        estimator : estimator or str, default="auto"
            A model, or a name as in `make_model`. "auto" is chosen by rows left out; see `datacollab.Analyst`. For
            times to an event it is affine `LTI` and `CoxRegression`. After a choice, each party's file says what the
            model predicts for its rows left out.
        n_components, alpha : optional
            For an integrator by name, as in `make_integrator`.
        n_folds : int or None, default=5
            Folds of the cross-validation of the model on the collaboration representations, if there was no choice.
            None leaves out any score.
        n_clusters : int, optional
            For a project of kind "none" only: how many clusters k-means makes of the rows. Method and model have no
            meaning then.
        random_state : int or None, default=0
            Seed of models by name, of those that are tried, or of the first centres of clusters.
        budget : float, optional
            Seconds after which no further candidate is begun.
        progress : callable, optional
            Called with the number of candidates tried, of all, and the name of the next.

        Raises
        ------
        ExchangeError
            If too few parties have shared.
        AgreementError
            If the project is one of an effect (see `effect_of`), or clusters are asked for or missing.
        DataCollabError
            If the representations cannot be aligned.
        ValueError
            If a name is unknown, or an option does not go with it.
        """
        from ...analyst import Analyst

        self._check_way("rows")
        self._check_kind(n_clusters)
        with locked(self.path):
            received = self.shares()
            self.check_quorum(len(received))
            shares, task, seed = [each.share for each in received], self.project.task, random_state or 0
            if n_clusters is not None:
                collaboration = clustered(shares, n_clusters, seed)
            else:
                if isinstance(integrator, str):
                    integrator = make_integrator(
                        integrator, shares, task=task.kind, n_components=n_components, alpha=alpha
                    )
                if isinstance(estimator, str):
                    of_means = not all(share.one_to_one for share in shares)
                    estimator = make_model(estimator, task.kind, random_state, of_means=of_means)
                collaboration = Analyst(
                    integrator,
                    estimator,
                    task=task.kind if task.is_single else "auto",
                    budget=budget,
                    random_state=seed,
                    progress=progress,
                ).fit(shares)
            result = describe(collaboration, received, self.project, n_folds)
            write_atomically(self._collaboration_file, pack_collaboration(collaboration, result), mode=0o600)
            self._log.append("integrate", **result.facts_to_log())
        return result

    def export(
        self,
        *,
        anchor_predictions: bool = False,
        allow_training_rows: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[Path]:
        """Write one signed model per party into the outbox, or predictions for the anchor in its place.

        Parameters
        ----------
        anchor_predictions : bool, default=False
            Whether predictions leave, and no model.
        allow_training_rows : str, optional
            Who answers for a model that carries training rows; recorded in the models and in the log.
        progress : callable, optional
            Called with each party's name.

        Raises
        ------
        ExchangeError
            If nothing was integrated, shares have changed since, or the model carries training rows.
        AgreementError
            If predictions are asked for of times to an event, of clusters, or of sums.
        """
        data_for: Callable[[str], bytes]
        ending, name = _MODEL, self.project.name
        with locked(self.path):
            if self.project.sharing is not None:
                if anchor_predictions:
                    raise AgreementError(
                        f"Project {name!r} shares sums, and no predictions go back. Leave out --anchor-predictions."
                    )
                model, parties = self.sums_model(), list(self.project.parties)
                facts: dict[str, Any] = {"context": model.context.hex()}
                data_for = partial(model_to_bytes, model, self.project, key=self._key)
            else:
                models, result = self.integrated()
                parties = list(models)
                if not anchor_predictions:
                    refuse_training_rows(result, allow_training_rows)
                    facts = {"overridden_by": allow_training_rows}

                    def data_for(party: str) -> bytes:
                        return signed_model(models[party], result, self.project, self._key, **facts)
                elif not self.project.task.is_single:
                    raise AgreementError(
                        "Predictions are given for classes and numbers alone. Export models (no --anchor-predictions)."
                    )
                else:
                    anchors = {each.party: each.share.anchor_representation for each in self.shares()}
                    ending, facts = _ANCHOR_PREDICTIONS, {"answers": True}

                    def data_for(party: str) -> bytes:
                        return signed_predictions(models[party], anchors[party], result, self.project, self._key)

            return self._release(parties, ending, data_for, facts, progress)

    def _release(
        self,
        parties: list[str],
        ending: str,
        data_for: Callable[[str], bytes],
        facts: dict[str, Any],
        progress: Callable[[str], None] | None,
    ) -> list[Path]:
        """Write one file per party into the outbox, once the log knows of all."""
        outbox = self.path / "outbox"
        outbox.mkdir(mode=0o700, exist_ok=True)
        for leftover in self.path.glob(".export-*"):  # of an export that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        names = [f"{party}{ending}" for party in parties]
        # Nothing lies where it may be sent from before the log knows of it.
        with TemporaryDirectory(prefix=".export-", dir=self.path) as staged:
            for party, name in zip(parties, names, strict=True):
                if progress is not None:
                    progress(party)
                write_atomically(Path(staged) / name, data_for(party), mode=0o600)
            self._log.append("export", parties=parties, **facts)
            return [(Path(staged) / name).replace(outbox / name) for name in names]

    @property
    def quorum(self) -> int:
        """How many parties must have shared; all of them, if they share sums."""
        return self.project.quorum if self.project.sharing is None else len(self.project.parties)

    def check_quorum(self, n_shares: int) -> None:
        """Raise if fewer parties have shared than the project needs."""
        if n_shares < self.project.quorum:
            raise ExchangeError(
                "QUORUM_NOT_MET",
                f"{n_shares} of {len(self.project.parties)} parties have shared; project {self.project.name!r} wants "
                f"{self.project.quorum}. Wait for the others.",
            )

    def _check_way(self, way: str) -> None:
        """Refuse a step that belongs to the other way of sharing."""
        found = "rows" if self.project.sharing is None else self.project.sharing.way
        if found != way:
            raise AgreementError(
                f"Project {self.project.name!r} shares {found}, and this is a step for {way}. In a program call "
                f"{'add_sums and integrate_sums' if found == 'sums' else 'add and integrate'}."
            )

    def _check_kind(self, n_clusters: int | None) -> None:
        """Refuse to integrate for what the project is not about."""
        kind, name = self.project.task.kind, self.project.name
        if kind == "effect":
            raise AgreementError(
                f"Project {name!r} is of an effect: there is no model to send. Run `datacollab analyst effect`."
            )
        if (kind == "none") != (n_clusters is not None):
            how = "give the number of clusters (--clusters)" if kind == "none" else "leave out the number of clusters"
            raise AgreementError(f"Project {name!r} is of kind {kind!r}: {how}.")

    def integrated(self) -> tuple[dict[str, Any], Integration]:
        """Return models by party, and what is known of them, of the shares that are there.

        Raises
        ------
        ExchangeError
            NOT_INTEGRATED, also if shares came in since.
        """
        if not self._collaboration_file.is_file():
            run = "effect`: no model goes back" if self.project.task.kind == "effect" else "integrate` first"
            raise ExchangeError("NOT_INTEGRATED", f"{self.path} holds no integration. Run `datacollab analyst {run}.")
        models, result = unpack_collaboration(
            self._collaboration_file.read_bytes(), where=str(self._collaboration_file)
        )
        now = {received.party: received.digest for received in self.shares()}
        if result.share_digests != now:
            raise ExchangeError(
                "NOT_INTEGRATED", "Shares came in after the last integration. Run `datacollab analyst integrate` again."
            )
        return models, result

    def _sent(self, party: str, fact: str, value: str) -> bool:
        """Return whether a file in the outbox says this of what it was made of."""
        from ...bundle import unpack

        for ending in (_MODEL, _ANCHOR_PREDICTIONS):
            file = self.path / "outbox" / f"{party}{ending}"
            with suppress(ExchangeError):
                if file.is_file() and unpack(file, signed_by=self.project.analyst).facts.get(fact) == value:
                    return True
        return False

    @property
    def _collaboration_file(self) -> Path:
        return self.path / "collaboration.dcstate"

    @property
    def _sums_model_file(self) -> Path:
        return self.path / "sums-model.dcstate"

    def __repr__(self) -> str:
        return f"AnalystFolder({os.fspath(self.path)!r}, project={self.project.name!r})"


def _analysts_key(path: Path, project: Project, passphrase: str | None) -> KeyPair:
    key = KeyPair.load(path / "keys.json", passphrase)
    if key.public != project.analyst:
        for name, public in project.parties.items():
            if public == key.public:
                raise ExchangeError(
                    "NOT_A_MEMBER",
                    f"The key in {path} ({key.public.fingerprint}) is that of party {name!r} in project "
                    f"{project.name!r}, and this is a step of the analyst's. Name their folder with -C.",
                )
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key in {path} ({key.public.fingerprint}) is not the analyst's in project {project.name!r} "
            f"({project.analyst.fingerprint}). Send the owner the file public.key of this folder.",
        )
    return key


def _check_same_project(there: Project, given: Project, path: Path) -> None:
    if there.owner != given.owner:
        raise ExchangeError(
            "ALREADY_THERE",
            f"{path} has a project of {there.owner.fingerprint}, and this one is of {given.owner.fingerprint}. Use "
            "another folder, if both are meant.",
        )
    # Sums of an earlier run are removed: with those of the next one they would show what a party added that left.
    if there.digest != given.digest and any(path.glob("shares/*.dcshare")):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{path} holds shares of another version of a project. Use another folder for this one.",
        )


def _counts(received: ReceivedShare) -> dict[str, int]:
    return {name: received.facts[name] for name in ("n_rows", "n_components", "n_anchors")}
