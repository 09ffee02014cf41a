"""Install the analyst's model, pool it with what the party has alone, and predict at home."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...bundle import Bundle, read_regular
from ...errors import AgreementError, ExchangeError
from ...model import PartyModel
from ..project import Adjustments, EncodedTable, encode_table, read_table, write_table
from ..sums import read_model
from ._commit import commit_model
from ._installation import NOT_SAID, Pooled, check_model_works, check_not_older, open_model, pool, pooled_from
from ._prediction import check_output, predicted_frames, scored
from ._sides import AtHome
from ._stored import StoredParty, load_party
from ._sums_commit import kept_sum
from ._sums_model import SENTENCE, CommonModel, check_common_model
from ._workplace import Workplace

__all__ = ["Predictions"]

BATCH_ROWS = 16_384


class Predictions(Workplace):
    """What a party does in its folder once the analyst has sent a model."""

    def install(
        self,
        model_file: Path,
        *,
        older: bool = False,
        public: Any = None,
        random_state: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Check the analyst's model, try it on the anchor, pool it with what the party has alone, and install it.

        Parameters
        ----------
        model_file : Path
        older : bool, default=False
            Whether it may take the place of a later model that was made from the same share.
        public : Path or DataFrame, optional
            Public rows that the party has besides its own, with targets or without; by default the anchor's.
        random_state : int, optional
            Of the party's own models.
        progress : callable, optional
            Called with the name of each step before it starts.

        Returns
        -------
        dict of str to object
            What the model says of itself; "benefit", what collaboration brought, or None; and "sentence", the same in
            words, or why nothing can be said.

        Raises
        ------
        ExchangeError
            NOT_SHARED, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ALREADY_THERE, BUSY where the party has
            shared meanwhile, and whatever makes a model unfit.
        """
        model_file = Path(model_file)
        if self.project.sharing is not None:
            return self._install_common(model_file, older=older)
        self._settle()
        stored = load_party(self._files, self._own)
        data = read_regular(model_file)
        model, bundle = open_model(data, model_file, self.project, self.key, self.name, stored.share_digest)
        if not older:
            check_not_older(bundle, model_file, self._files.model)
        pooled = self._pooled(stored, model, public, random_state, progress)
        # The party's own models take their time, in which other commands may work here.
        with self._locked():
            if load_party(self._files, self._own).share_digest != stored.share_digest:
                raise ExchangeError(
                    "BUSY",
                    f"{self.path} shared again while this command ran, and the model is of the share before. Send the "
                    "new share, and install the model made from it.",
                )
            self._check_logged(stored.share_digest)
            if not older:
                check_not_older(bundle, model_file, self._files.model)
            told = {name: bundle.facts.get(name) for name in ("estimator", "created")}
            entry = {"digest": bundle.digest, "file": model_file.name, "pooled": bool(pooled.members), **told}
            facts = {"model_digest": bundle.digest, **pooled.facts}
            commit_model(self._files, self._own, data, entry, facts=facts, members=pooled.members)
        return bundle.facts | pooled.facts

    def _install_common(self, model_file: Path, *, older: bool) -> dict[str, Any]:
        """Check the common model of a project that shares sums, try it on the anchor, and install it."""
        data = read_regular(model_file)
        with self._locked():
            kept = self._kept_sum()
            model, bundle = read_model(data, self.project, self.name, self.key, where=str(model_file))
            check_common_model(model, kept, self.project, self.anchor, where=str(model_file))
            if not older:
                check_not_older(bundle, model_file, self._files.model)
            self._check_logged(kept.facts["entry"]["digest"])
            entry = {"digest": bundle.digest, "file": model_file.name, "model_digest": bundle.facts["model_digest"]}
            entry |= {name: bundle.facts[name] for name in ("estimator", "created", "context")}
            told = {"sentence": SENTENCE, "benefit": None}
            commit_model(self._files, self._own, data, entry, facts={"model_digest": bundle.digest, **told}, members={})
        return bundle.facts | {"method": "sums", **told}

    def _kept_sum(self) -> Bundle:
        """What is kept of the message that was released in this project."""
        kept = kept_sum(self._files, self._own, self.project)
        if kept is None:
            raise ExchangeError(
                "NOT_SHARED",
                f"{self.path} has added nothing to this project's sums. Run `datacollab party share` first.",
            )
        return kept

    def predict_batches(
        self,
        source: Path,
        *,
        using: str | None = None,
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
        using : {"combined", "local", "own", "collaboration"}, optional
            Whose predictions; by default the pool's, or the collaboration's where nothing was pooled.  "local" are the
            party's own models with the public rows it has, "own" without them.
        proba : bool, default=False
            Whether probabilities of the classes follow, in columns "proba_CLASS".  Of times to an event the prediction
            is the log risk, and columns "survival_TIME" with the probability of no event up to quarters of the longest
            time follow in any case; they are empty beyond the end of the observation.
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
            NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
        """
        side = self._predictors().side(using)
        return predicted_frames(
            self.project, side, Path(source), proba=proba, keep=keep, batch_rows=batch_rows, tell=tell
        )

    def predict(
        self,
        source: Path,
        output: Path,
        *,
        using: str | None = None,
        proba: bool = False,
        keep: Sequence[str] = (),
        force: bool = False,
        batch_rows: int = BATCH_ROWS,
        tell: Callable[[Adjustments], None] = lambda adjusted: None,
    ) -> int:
        """Predict a table of any length at home, into a file that is closed to others; see `predict_batches`.

        Parameters
        ----------
        source, using, proba, keep, batch_rows, tell
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
        batches = self.predict_batches(source, using=using, proba=proba, keep=keep, batch_rows=batch_rows, tell=tell)
        n_rows = write_table(Path(output), batches, mode=0o600)
        self.record("predict", file=Path(source).name, n_rows=n_rows)
        return n_rows

    def evaluate(
        self, source: Path, *, using: str | None = None, find: float = 0.8, batch_rows: int = BATCH_ROWS
    ) -> dict[str, Any]:
        """Hold predictions against the targets of a table, at home.

        Parameters
        ----------
        source : Path
        using : {"combined", "local", "own", "collaboration"}, optional
            Whose figures come first; as in `predict_batches`.
        find : float, default=0.8
            Of two classes, the share of the second one's rows that a threshold is to find; above 0, at most 1.
        batch_rows : int, default=16384

        Returns
        -------
        dict of str to object
            For a classification "accuracy", "accuracy_interval" (Wilson), "balanced_accuracy", "classes" and
            "confusion", a row for each true class; for a regression "rmse", "mae" and "r2", the first two with t
            intervals; for a survival "concordance" and "n_events"; where there are two classes and probabilities,
            "ranking" of the second: "auc" with DeLong's interval, "average_precision", "prevalence", "expected" (the
            mean probability), "brier" and "threshold", from which probability on the wanted share is found; "n_rows",
            "task" and "adjusted", the counts of entries that the project's rules made something else, for both.
            Intervals are of 95 %. "using" says whose they are, and "sides" has the same figures of all that there are,
            by name.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
        """
        if not 0 < find <= 1:
            raise ValueError(f"find must be above 0 and at most 1; got {find}.")
        if self.project.task.kind == "none":
            raise AgreementError(f"Project {self.project.name!r} has no targets to hold predictions against.")
        at_home = self._predictors()
        at_home.side(using)
        sides = at_home.sides()
        chosen = using or next(iter(sides))
        scores = scored(self.project, sides, Path(source), batch_rows=batch_rows, find=find)
        told = ("accuracy", "rmse", "concordance")
        figures = {name: scores[chosen][name] for name in told if name in scores[chosen]}
        self.record("evaluate", file=Path(source).name, n_rows=scores[chosen]["n_rows"], using=chosen, **figures)
        return scores[chosen] | {"using": chosen, "sides": scores}

    @property
    def sentence(self) -> str:
        """What collaboration brought to this party, or why that cannot be said.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED or WRONG_SHARE.
        """
        return self._predictors().sentence

    def _pooled(
        self,
        stored: StoredParty,
        model: PartyModel,
        public: Any,
        random_state: int | None,
        progress: Callable[[str], None] | None,
    ) -> Pooled:
        anchor = self.anchor
        representation = stored.party.obfuscate(anchor.rows)
        check_model_works(model, representation, self.project)
        return pool(
            self.project,
            stored.party,
            stored.own,
            model,
            anchor,
            None if public is None else self._encoded_public(public),
            anchor_representation=representation,
            random_state=random_state,
            progress=progress,
        )

    def _check_logged(self, share_digest: str | None) -> None:
        """The model says that the analyst has a share of which the log has to know, too."""
        if not any(entry["facts"].get("digest") == share_digest for entry in self.log.entries()):
            raise ExchangeError(
                "LOG_BROKEN",
                f"{self.log.path} does not know of the share that the model was made of: entries are missing. Keep the "
                "file, and compare it with a copy.",
            )

    def _encoded_public(self, table: Any) -> EncodedTable:
        """Public rows as the project's matrix, with targets where the table has any."""
        where = os.fspath(table) if isinstance(table, str | os.PathLike) else "the public table"
        if isinstance(table, str | os.PathLike):
            table = read_table(Path(table), project=self.project)
        task = self.project.task
        with_target = task.is_single and task.target in table.columns
        return encode_table(self.project, table, where=where, with_target=with_target)

    def _at_home_of_sums(self) -> CommonModel:
        self._settle()
        kept = self._kept_sum()
        if not self._files.model.exists():
            raise ExchangeError(
                "NOT_INSTALLED",
                f"{self.path} holds no model. Run `datacollab party install FILE` with the file that the analyst sent.",
            )
        where, data = str(self._files.model), read_regular(self._files.model)
        model, _ = read_model(data, self.project, self.name, self.key, where=where)
        return check_common_model(model, kept, self.project, self.anchor, where=where)

    def _predictors(self) -> AtHome | CommonModel:
        """All that there is to predict with, whichever way the project shares."""
        return self._at_home() if self.project.sharing is None else self._at_home_of_sums()

    def _at_home(self) -> AtHome:
        """The map f_k, the model that belongs to it, and what was pooled; another command may work here meanwhile."""
        self._settle()
        stored = load_party(self._files, self._own)
        if not self._files.model.exists():
            what = "Run `datacollab party install FILE` with the file that the analyst sent."
            if self.project.task.kind == "effect":
                what = "Of an effect no model comes back: the estimate is the analyst's."
            raise ExchangeError("NOT_INSTALLED", f"{self.path} holds no model. {what}")
        data = read_regular(self._files.model)
        kept = self._own.read(self._files.personal) if self._files.personal.exists() else None
        known = None if kept is None else kept.facts.get("model_digest")
        model, bundle = open_model(data, self._files.model, self.project, self.key, self.name, stored.share_digest)
        again = f"{NOT_SAID}: nothing was pooled with the installed model. Run `datacollab party install` again."
        if kept is None or known != bundle.digest:
            return AtHome(party=stored.party, model=model, personal=None, sentence=again)
        personal = pooled_from(kept.members, stored.party, model)
        return AtHome(party=stored.party, model=model, personal=personal, sentence=str(kept.facts["sentence"]))
