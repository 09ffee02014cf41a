"""A party's folder: join, share once, install, predict at home."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..bundle import unpack
from ..errors import ExchangeError
from ..model import PartyModel
from ..project import Adjustments, Anchor, EncodedTable, encode_table, read_table, write_table
from ._commit import commit_model, commit_share
from ._installation import check_model_works, check_not_older, open_model, read_model
from ._policy import Policy
from ._prediction import predicted_frames, scored
from ._prediction_file import check_output
from ._prepare import Prepared, largest_possible, prepare
from ._release_summary import ReleaseSummary
from ._share_file import figures, refuse, share_facts, share_file
from ._stored import StoredParty, load_party, state_of
from ._way import USUAL_COMPONENTS
from ._workplace import Workplace

__all__ = ["PartyFolder"]

BATCH_ROWS = 16_384


class PartyFolder(Workplace):
    """What a party keeps of one project, on its own disk.

    Holds its keys, the anchor and the secret map f_k: as sensitive as the raw table.  Only what is in the outbox may
    leave.  A command that is killed at any moment leaves the old or the new state; see `_commit`.

    Parameters
    ----------
    path : Path
    passphrase : str, optional
        Of the keys, the anchor and f_k, where they are encrypted.

    Attributes
    ----------
    path : Path
    project : Project
    name : str
        The party's, by its key.
    key : KeyPair
    log : AuditLog

    Raises
    ------
    ExchangeError
        FOLDER_MISSING, NOT_A_MEMBER, and what reading keys and project may raise.
    """

    def encoded(self, table: Any, *, where: str | None = None) -> EncodedTable:
        """A table with targets as the project's matrix.

        Parameters
        ----------
        table : Path or DataFrame
        where : str, optional
            What an error calls the table; its path where it is one.

        Raises
        ------
        ExchangeError
            Of the kind "schema".
        """
        if isinstance(table, str | os.PathLike):
            where, table = where or os.fspath(table), read_table(Path(table), project=self.project)
        return encode_table(self.project, table, where=where or "the table")

    def prepare(self, table: Any, *, where: str | None = None, **options: Any) -> Prepared:
        """Do all that `share` does but let it leave.

        Parameters
        ----------
        table, where
            As in `encoded`.
        **options
            As for `datacollab.party_folder.prepare`.  By default PCA of standardised columns, with 16
            components, or as many as table, project and policy allow.

        Raises
        ------
        ExchangeError
            Of the kinds "schema", "state" and "policy".
        ObfuscationError
            When the obfuscator cannot be fitted.
        """
        self._settle()
        earlier = self._last_share()
        return self._prepared(self.policy, self.anchor, table, where, options, earlier)

    def share(
        self,
        table: Any,
        *,
        approve: Callable[[ReleaseSummary], str | None],
        again: bool = False,
        where: str | None = None,
        **options: Any,
    ) -> Path:
        """Obfuscate the table, have it approved, and put the share into the outbox.

        Parameters
        ----------
        table : Path or DataFrame
        approve : callable
            Gets what would leave; returns the name of whoever approves it, or None.  Called only where project and
            policy allow it.
        again : bool, default=False
            Whether a share made before is to be replaced.  The analyst then has two of the same rows, which tell more
            than one, and the installed model no longer fits.
        where, **options
            As in `prepare`.

        Returns
        -------
        Path
            The file to be sent.

        Raises
        ------
        ExchangeError
            DEADLINE_PASSED, ALREADY_SHARED, NOT_APPROVED, STATE_UNSUPPORTED, PROJECT_HASH_MISMATCH or BUSY where the
            folder was joined to something else meanwhile, or what `prepare` raises or finds.
            Nothing left the party.
        """
        self.project.check_deadline(datetime.now(UTC).date())
        with self._locked():
            earlier = self._replaceable(again)
        policy, anchor = self.policy, self.anchor
        prepared = self._prepared(policy, anchor, table, where, options, earlier)
        refuse(prepared.reasons)
        state, members = state_of(prepared.party, prepared.share, anchor)
        approved_by = approve(prepared.summary)
        if not approved_by:
            raise ExchangeError(
                "NOT_APPROVED",
                f"Nobody has approved the share of party {self.name!r}; nothing left. Look at what would leave, and "
                "run the command again with --approve.",
            )
        policy.check_approver(approved_by)
        # Attacks and whoever approves take their time, in which other commands may work here.
        with self._locked():
            self._check_unchanged(anchor)
            supersedes = _digest_of(self._replaceable(again))
            data = self._share_file(prepared, anchor, approved_by, supersedes)
            share_digest = unpack(data, signed_by=self.key.public).digest
            entry = {
                "digest": share_digest,
                "bytes": len(data),
                "approved_by": approved_by,
                "supersedes": supersedes,
                "project_digest": self.project.digest,
                "policy": policy.digest,
                # The analyst knows the log's head before this entry, and could test guesses on the next one.
                "nonce": secrets.token_hex(16),
                **figures(prepared.summary),
            }
            state |= {"share_digest": share_digest, "project_digest": self.project.digest, "entry": entry}
            return commit_share(self._files, self._own, self.name, data, facts=state, members=members)

    def install(self, model_file: Path, *, older: bool = False) -> dict[str, Any]:
        """Check the analyst's model, try it on the anchor, and install it.

        Parameters
        ----------
        model_file : Path
        older : bool, default=False
            Whether it may take the place of a later model that was made from the same share.

        Returns
        -------
        dict of str to object
            What the model says of itself.

        Raises
        ------
        ExchangeError
            NOT_SHARED, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ALREADY_THERE, and whatever makes a model
            unfit.
        """
        model_file = Path(model_file)
        with self._locked():
            stored = load_party(self._files, self._own)
            data = read_model(model_file)
            model, bundle = open_model(data, model_file, self.project, self.key, self.name, stored.share_digest)
            if not older:
                check_not_older(bundle, model_file, self._files.model)
            anchor = self.anchor
            check_model_works(model, stored.party.obfuscate(anchor.rows), self.project)
            told = {name: bundle.facts.get(name) for name in ("estimator", "created")}
            entry = {"digest": bundle.digest, "file": model_file.name, **told}
            commit_model(self._files, data, entry)
        return bundle.facts

    def predict_batches(
        self,
        source: Path,
        *,
        proba: bool = False,
        keep: Sequence[str] = (),
        batch_rows: int = BATCH_ROWS,
        tell: Callable[[Adjustments], None] = lambda adjusted: None,
    ) -> Iterator[Any]:
        """Predict a table of any length at home, a batch of rows at a time.

        Parameters
        ----------
        source : Path
            CSV, Parquet or Arrow; it needs no target.
        proba : bool, default=False
            Whether probabilities of the classes follow, in columns "proba_CLASS".
        keep : sequence of str, default=()
            Columns of the table to be put in front, such as an identifier.
        batch_rows : int, default=16384
        tell : callable, optional
            Called after the last batch with the counts of entries that the project's rules made something else.

        Returns
        -------
        iterator of DataFrame
            With the column "prediction", in the order of the rows.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, or of the kind "schema".
        """
        stored, model = self._ready()
        return predicted_frames(
            self.project, stored.party, model, Path(source), proba=proba, keep=keep, batch_rows=batch_rows, tell=tell
        )

    def predict(
        self,
        source: Path,
        output: Path,
        *,
        proba: bool = False,
        keep: Sequence[str] = (),
        force: bool = False,
        batch_rows: int = BATCH_ROWS,
        tell: Callable[[Adjustments], None] = lambda adjusted: None,
    ) -> int:
        """Predict a table of any length at home, into a file that is closed to others; see `predict_batches`.

        Parameters
        ----------
        source, proba, keep, batch_rows, tell
            As in `predict_batches`.
        output : Path
            CSV, Parquet or Arrow, by its name.  Predictions that are there already are replaced.
        force : bool, default=False
            Whether another file may be replaced, too.

        Returns
        -------
        int
            How many rows there were.

        Raises
        ------
        ExchangeError
            ALREADY_THERE, and what `predict_batches` raises.
        FileNotFoundError
            When there is no folder for the output.
        """
        check_output(Path(output), Path(source), force=force)
        batches = self.predict_batches(source, proba=proba, keep=keep, batch_rows=batch_rows, tell=tell)
        n_rows = write_table(Path(output), batches, mode=0o600)
        self.record("predict", file=Path(source).name, n_rows=n_rows)
        return n_rows

    def evaluate(self, source: Path, *, batch_rows: int = BATCH_ROWS) -> dict[str, Any]:
        """Hold predictions against the targets of a table, at home.

        Returns
        -------
        dict of str to object
            For a classification "accuracy", "accuracy_interval" (Wilson), "balanced_accuracy", "classes" and
            "confusion", a row for each true class; for a regression "rmse", "mae" and "r2", the first two with t
            intervals; "n_rows", "task" and "adjusted", the counts of entries that the project's rules made something
            else, for both.  Intervals are of 95 %.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, or of the kind "schema".
        """
        stored, model = self._ready()
        scores = scored(self.project, stored.party, model, Path(source), batch_rows=batch_rows)
        figures = {name: scores[name] for name in ("accuracy", "rmse") if name in scores}
        self.record("evaluate", file=Path(source).name, n_rows=scores["n_rows"], **figures)
        return scores

    def _ready(self) -> tuple[StoredParty, PartyModel]:
        """The map f_k and the model that belongs to it; another command may work here meanwhile."""
        self._settle()
        stored = load_party(self._files, self._own)
        if not self._files.model.exists():
            raise ExchangeError(
                "NOT_INSTALLED",
                f"{self.path} holds no model. Run `datacollab party install FILE` with the file that the analyst sent.",
            )
        data = read_model(self._files.model)
        model, _ = open_model(data, self._files.model, self.project, self.key, self.name, stored.share_digest)
        return stored, model

    def _settle(self) -> None:
        """Put in order what a killed command left, unless another one works here."""
        try:
            with self._locked():
                pass
        except ExchangeError as error:
            if error.code != "BUSY":
                raise

    def shared(self) -> str | None:
        """Identity of the last share in this project, whatever became of a command that was interrupted.

        Raises
        ------
        ExchangeError
            BUSY.
        """
        with self._locked():
            return _digest_of(self._last_share())

    def _last_share(self) -> dict[str, Any] | None:
        """What the log says of the last share in this project, if there is any."""
        shares = [entry for entry in self.log.entries() if entry["event"] == "share"]
        ours = [entry for entry in shares if entry["facts"].get("project_digest") == self.project.digest]
        return ours[-1] if ours else None

    def _replaceable(self, again: bool) -> dict[str, Any] | None:
        """The last share; refused where there is one, unless again."""
        last, file = self._last_share(), self._files.share(self.name)
        if last is None or again:
            return last
        found = "has shared already"
        if file.exists():
            found += f": {file}. Send that file."
        else:
            found += f", but {file} is not there any more. If the analyst has it, there is nothing to do."
        if not self._files.state.exists():
            found += f" {self._files.state} is lost, without which no model can be used: restore it from a backup."
        raise ExchangeError(
            "ALREADY_SHARED",
            f"Party {self.name!r} {found} A second share of the same rows tells the analyst more; --again makes one "
            "all the same.",
        )

    def _prepared(
        self,
        policy: Policy,
        anchor: Anchor,
        table: Any,
        where: str | None,
        options: dict[str, Any],
        earlier: dict[str, Any] | None,
    ) -> Prepared:
        encoded = self.encoded(table, where=where)
        most = min(largest_possible(self.project, policy, encoded), USUAL_COMPONENTS, self.project.n_features - 1)
        chosen = {name: value for name, value in options.items() if value is not None}
        completed = {"n_components": max(most, 1), "standardize": True, **chosen}
        prepared = prepare(self.project, policy, self.name, encoded, anchor, **completed)
        size = len(self._share_file(prepared, anchor, "", _digest_of(earlier)))
        date = None if earlier is None else earlier["time"][:10]
        return replace(prepared, summary=replace(prepared.summary, n_bytes=size, earlier_share=date))

    def _share_file(self, prepared: Prepared, anchor: Anchor, approved_by: str, supersedes: str | None) -> bytes:
        facts = share_facts(prepared, self.project, anchor, supersedes=supersedes, log_head=self.log.head)
        return share_file(prepared.share, self.project, self.key, facts | {"approved_by": approved_by})

    def __repr__(self) -> str:
        return f"PartyFolder({os.fspath(self.path)!r}, party={self.name!r}, project={self.project.name!r})"


def _digest_of(share: dict[str, Any] | None) -> str | None:
    return None if share is None else str(share["facts"]["digest"])
