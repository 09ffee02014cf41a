"""A party's folder, with the steps that a party takes in it, each by rows or by sums as the project says."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...agreement import Anchor, Project, anchor_to_bytes, load_project, open_anchor, read_project
from ...bundle import PublicKey, write_atomically
from ...by_sums.party import PartMaker, PreparedSum, StudyAtParty, SumsAtParty
from ...errors import AgreementError, ExchangeError
from ...folder.party import (
    ANCHOR,
    Files,
    Folder,
    PartyWay,
    digest_of,
    encode,
    last_share,
    load_anchor,
    locked,
    record,
    settle,
)
from ...table import Adjustments, EncodedTable, table_source, write_table
from ._explain import Explained, ExplainOptions, explain
from ._predict import BATCH_ROWS, FIND, check_output, evaluate, predict_batches

if TYPE_CHECKING:
    from ...by_rows.party import Prepared


def choose_way(folder: Folder) -> PartyWay:
    """Return the way by which a project's parties share: the one place where a party's is chosen."""
    if folder.project.is_study:
        return StudyAtParty(folder)
    if folder.project.shares_sums:
        return SumsAtParty(folder)
    # Rows bring scikit-learn, which takes seconds to load.
    from ...by_rows.party import RowsAtParty

    return RowsAtParty(folder)


class PartyFolder(Folder):
    """A party's folder of one project, on its own disk.

    Holds its keys, the anchor and the secret map f_k: as sensitive as the raw table.  Only files in the outbox may
    leave. A command that is killed at any moment leaves the old or the new state; see `_folder`.

    The passphrase is that of the keys, the anchor and f_k, if they are encrypted.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        path = Path(path)
        files = Files(path)
        if not files.project.is_file():
            # The message names the step that is missing: keys come before a project.
            if not files.keys.is_file():
                raise ExchangeError(
                    "KEY_MISSING",
                    f"{path} has no keys and no project. Run `datacollab keys new -C {shlex.quote(str(path))}` first, "
                    "and send public.key to the project's owner, who sends the project.",
                )
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{path} is no party's folder: there is no project.toml. Run `datacollab party join project.toml "
                "anchor.dcanchor -C FOLDER` first.",
            )
        super().__init__(path, passphrase=passphrase, project=load_project(files.project))
        self.name  # noqa: B018 - refuses a key that is no party's
        self.way = choose_way(self)

    @property
    def sentence(self) -> str:
        """How collaboration helped this party, or why that cannot be said."""
        return self.way.at_home().sentence

    @classmethod
    def join(
        cls,
        path: Path,
        project_file: Path,
        anchor_file: Path | None = None,
        *,
        owner: PublicKey | None = None,
        passphrase: str | None = None,
    ) -> Self:
        """Set up a folder that holds the party's keys.

        The anchor is sealed to this party, among others; without it, join again when it has come.  `owner` is as in
        `read_project`; with the passphrase of the keys, the anchor and f_k are encrypted, too.

        Raises
        ------
        ExchangeError
            SIGNATURE_INVALID, if the project is another owner's; ALREADY_THERE, if the folder belongs to a project of
            another owner or analyst, has shared in another project, or with another anchor; NOT_A_MEMBER.
        """
        project, verified = read_project(project_file, owner=owner)
        folder = Folder(path, passphrase=passphrase, project=project)
        files = folder.files
        name = folder.name
        way = choose_way(folder)
        anchor = None
        if anchor_file is not None:
            anchor = open_anchor(anchor_file, project, folder.key)
        with locked(folder):
            if files.project.exists():
                there = load_project(files.project)
                _check_same_people(there, project, files)
                project.check_not_older(there, files.root)
            if files.state.exists() and folder.read(files.state).facts["project_digest"] != project.digest:
                raise ExchangeError(
                    "ALREADY_THERE",
                    f"{path} has shared in another project, or another version of it. Use a folder of its own for "
                    f"project {project.name!r}.",
                )
            if anchor is not None:
                commitment = anchor.commitment(project)
                way.check_anchor(commitment)
                _check_not_sealed_before(folder, anchor, commitment, anchor_file)
            # From here on there are secrets in it.
            files.root.chmod(0o700)
            files.outbox.mkdir(mode=0o700, exist_ok=True)
            # One that is there is the party's own, and a revised project does not change it.
            if not files.policy.exists():
                write_atomically(files.policy, way.policy_text().encode(), mode=0o600)
            if anchor is not None:
                folder.write(files.anchor, {"project_digest": project.digest}, {ANCHOR: anchor_to_bytes(anchor)})
            # The project last: without it the folder was not set up.
            write_atomically(files.project, verified)
            folder.log.append(
                "join", project=project.name, project_digest=project.digest, party=name, anchor=anchor is not None
            )
        return cls(path, passphrase=passphrase)

    def encode(self, table: Any, *, where: str | None = None) -> EncodedTable:
        """Encode a table, a file or a DataFrame with targets, as the project's matrix; errors call it `where`."""
        return encode(self, table, where=where)

    def prepare(self, table: Any, *, where: str | None = None, **options: Any) -> Prepared | PreparedSum:
        """Do all that `share` does but let it leave.

        Table and `where` are as in `encode`, and options as for `datacollab.party.SharingPlan.of`, with the default
        "groups" on standardised columns.  Others are of the attacks: `audit`, False for none, `time_budget`, seconds
        after which none is begun, and `progress`, called with a line before each and the part that is done.

        Raises
        ------
        ExchangeError, ObfuscationError
            Of the kinds "schema", "state" and "policy"; or if the obfuscator cannot be fitted.
        ValueError, AgreementError
            If options are unknown, exclude one another, or are for rows and the project shares sums.
        """
        # A share that a killed command has made is finished first.
        settle(self)
        prepared: Prepared | PreparedSum = self.way.prepare(table, where=where, options=options)
        return prepared

    def share(  # noqa: PLR0913
        self,
        table: Any,
        *,
        approve: Callable[[Any], str | None],
        again: bool = False,
        undefended: bool = False,
        withdrawals: Sequence[Path] = (),
        without: Sequence[str] = (),
        heard: Sequence[str] = (),
        round_file: Path | None = None,
        where: str | None = None,
        prepared: Prepared | None = None,
        **options: Any,
    ) -> Path:
        """Obfuscate the table, have it approved, and return the share's file in the outbox; or add up rows under masks.

        Of sums, a message that was released is put into the outbox again, whatever the table: the same bytes.

        Parameters
        ----------
        approve : callable
            Gets a `ReleaseSummary` or `SumsSummary`; returns the name of the approver, or None.  Called only if project
            and policy allow the share.
        again : bool, default=False
            Whether a share made before is to be replaced.  The analyst then has two of the same rows, which tell more
            than one, and the installed model no longer fits.
        undefended : bool, default=False
            Whether rows may leave without any defence; the preset "none" is refused otherwise.
        withdrawals : sequence of Path
            Of parties that left an earlier run of sums over these rows; see `withdraw`.
        without : sequence of str
            Parties that left one and gave no withdrawal: if their files arrived, both totals tell their sums.
        heard : sequence of str
            Fingerprints that other institutions read out, for `confirm`: two are needed, once for the same parties.
        round_file : Path, optional
            The analyst's request for a further round of a regression: the same table answers.  Who said yes to the
            first round did so for all, so that `approve` is called only if the policy has changed since.
        prepared : Prepared, optional
            The result of `prepare`, if it is to leave as it is; no secret is drawn anew.  For rows alone.
        table, where, **options
            As in `prepare`.

        Raises
        ------
        ExchangeError
            DEADLINE_PASSED, ALREADY_SHARED, FORGOTTEN, UNDEFENDED, NOT_APPROVED, NOT_CONFIRMED, STATE_UNSUPPORTED,
            PROJECT_HASH_MISMATCH, ROUND_UNFIT, ROWS_CHANGED, BUSY; or the errors and reasons of `prepare`.
            Nothing left the party.
        """
        of_rows = {"again": again, "undefended": undefended, "prepared": prepared}
        of_sums = {"withdrawals": withdrawals, "without": without, "heard": heard, "round_file": round_file}
        return self.way.share(table, approve=approve, where=where, options=options, **of_rows, **of_sums)

    def part_maker(self) -> PartMaker:
        """Return the maker of parts of this party's sums, which adds rows up where they are.

        `PartMaker.part` makes the part of some rows, parts add up by ``+``, and `prepare` and `share` take their sum in
        place of a table.  Over a Dask data frame it is ``dask.delayed(functools.reduce)(operator.add, parts)`` with
        ``parts = [dask.delayed(maker.part)(each) for each in frame.to_delayed()]``.

        Raises
        ------
        AgreementError
            If a statistic follows from all rows of a party together, as survival, additive hazards and regressions by
            rounds do; or if the project shares rows.
        ExchangeError
            KEY_MISSING, NOT_A_MEMBER.
        """
        maker: PartMaker = self.way.part_maker()
        return maker

    def share_digest(self) -> str | None:
        """Return the identity of the last share in this project, also after a command was interrupted."""
        with locked(self):
            return digest_of(last_share(self))

    @property
    def n_rounds_left(self) -> int:
        """How many further rounds of a regression the party has to answer; NOT_SHARED before the first."""
        return self.way.n_rounds_left()

    def confirm(self, heard: Sequence[str]) -> list[str]:
        """Keep fingerprints that other institutions read out of their own keys, and return their parties' names.

        They hold as long as the project has parties of exactly these keys, and the institutions keep their names.  For
        one that is of no other institution's party, NOT_CONFIRMED is raised; those before it are kept.
        """
        return self.way.confirm(heard)

    def n_unconfirmed(self) -> int:
        """Return how many other institutions have still to be confirmed before sums leave; 0 if rows are shared."""
        return self.way.n_unconfirmed()

    def withdraw(self) -> Path:
        """Leave a run of sums for good, and return the file of the signed withdrawal, for the other parties.

        No message of it is made or sent again from here, and the others may share anew without this party.  A file that
        was sent already is out of reach.
        """
        return self.way.withdraw()

    def install(self, model_file: Path, *, older: bool = False, **options: Any) -> dict[str, Any]:
        """Check the analyst's model, try it on the anchor, combine it with own models, and install it.

        Parameters
        ----------
        older : bool, default=False
            Whether it may replace a later model that was made from the same share.
        public : Path or DataFrame, optional
            Public rows that the party has besides its own, with targets or without; by default the anchor's, whose
            targets count only if it is a sample of real rows.
        random_state, progress : int, callable, optional
            Seed of the party's own models; called with the name of each step before it starts.  For rows alone.

        Returns
        -------
        dict of str to object
            The model's own description; "benefit", how collaboration helped, or None; and "sentence", the same in
            words.

        Raises
        ------
        ExchangeError
            NOT_SHARED, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ALREADY_THERE, BUSY, and the codes of unfit
            models.
        """
        return self.way.install(Path(model_file), older=older, **options)

    def distil(self, predictions_file: Path, *, tree: int | None = None) -> dict[str, Any]:
        """Check the analyst's anchor predictions, and distil a model of one's own from them.

        It takes rows of the project's matrix, and no f_k: it works before and after `forget`.  `tree` is the most
        questions of a decision tree for one row; by default it is kernel ridge regression.

        Returns
        -------
        dict of str to object
            The file's own description; "r2", "agreement" and "remoteness" as in `datacollab.party.DistilledModel`, the
            last None if the rows are not in the folder any more; and "tree", its questions in words, or None.

        Raises
        ------
        ExchangeError
            NOT_SHARED, WRONG_RECIPIENT, WRONG_SHARE, PROJECT_HASH_MISMATCH, ANSWERS_MALFORMED; ANSWERS_UNFIT if nothing
            holds.
        """
        return self.way.distil(Path(predictions_file), tree)

    def forget(self) -> None:
        """Destroy the map f_k and all that was made by it: rows, order, own models, the installed model, the share.

        The distilled model, the anchor, the keys and the log stay.  Files are written over before they are removed;
        backups, snapshots, old blocks that a disk keeps, and files that were sent, are not reached.
        """
        self.way.forget()

    def predict_batches(
        self,
        source: Any,
        *,
        using: str | None = None,
        flag_from: float | None = None,
        keep: Sequence[str] = (),
        batch_rows: int = BATCH_ROWS,
        tell: Callable[[Adjustments], None] = lambda adjusted: None,
    ) -> Iterator[Any]:
        """Predict a table of any length at home, a batch of rows at a time, in data frames with column "prediction".

        Probabilities follow in columns "proba_CLASS", if the model has them.  For times to an event the prediction is
        the log risk, and columns "survival_TIME" follow: the probability of no event up to quarters of the longest
        time, empty beyond the end of the observation.

        Parameters
        ----------
        source : Path
            CSV, Excel, Parquet or Arrow; it needs no target.
        using : {"combined", "local", "own", "collaboration", "distilled"}, optional
            The side that predicts; by default the combined one, or the collaboration's if nothing was combined.
            "local" are the party's own models with the public rows it has, "own" without them.
        flag_from : float, optional
            Of two classes, the probability of the sought one from which on rows are flagged, in a column "flagged".
        keep : sequence of str, default=()
            Columns of the table to be put in front, such as an identifier.
        batch_rows : int, default=16384
        tell : callable, optional
            Called after the last batch with the counts of entries that the project's rules changed.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, NOT_POOLED, WRONG_SHARE, or of the kind "schema".
        """
        return predict_batches(self.way, table_source(source), using, flag_from, keep, batch_rows, tell)

    def predict(
        self,
        source: Any,
        output: Path,
        *,
        force: bool = False,
        look: Callable[[Any], None] = lambda frame: None,
        **options: Any,
    ) -> int:
        """Predict a table of any length at home, into a file that is closed to others; return the number of rows.

        The output is CSV, Excel, Parquet or Arrow, by its name.  Predictions that are there already are replaced, and
        another file with `force` alone; ALREADY_THERE otherwise.  `look` is called with the predictions of each batch;
        all other options are those of `predict_batches`.
        """
        # Before the work, which may take hours.
        source = table_source(source)
        check_output(Path(output), source, self.project, force=force)
        batches = self.predict_batches(source, **options)

        def look_at_each() -> Iterator[Any]:
            for frame in batches:
                look(frame)
                yield frame

        n_rows = write_table(Path(output), look_at_each(), mode=0o600)
        self.record("predict", file=source.name, n_rows=n_rows)
        return n_rows

    def threshold(self, tested: Path, *, using: str | None = None, find: float = FIND) -> dict[str, Any]:
        """Choose, on rows that the model has not seen, the probability from which on rows may be flagged.

        Options are as in `evaluate`; `tested` is a table with known targets.  Return "positive", the sought one of two
        classes, and the "threshold" of `linalg.ranking_figures`.  An AgreementError is raised if there are no
        probabilities of two classes, or not both among the rows.
        """
        ranking = self.evaluate(tested, using=using, find=find).get("ranking")
        if ranking is None or ranking["threshold"] is None:
            raise AgreementError(
                f"{tested}: a threshold needs a model with probabilities of two classes, and rows of both. Take more "
                "rows with known targets, or leave out --tested."
            )
        return {"positive": ranking["positive"], **ranking["threshold"]}

    def evaluate(
        self, source: Any, *, using: str | None = None, find: float = FIND, batch_rows: int = BATCH_ROWS
    ) -> dict[str, Any]:
        """Evaluate predictions against the targets of a table.  Runs locally.

        The figures of the side `using` come first; it is as in `predict_batches`.  Of two classes, `find` is the share
        of the sought one's new rows that a threshold is to find, above 0 and at most 1.

        Returns
        -------
        dict of str to object
            "n_rows", "task", and "adjusted", the counts of entries that rules changed.  Intervals are of 95 %.
            "using" names the side, and "sides" has the same figures of all sides.

            * For a classification "accuracy", "accuracy_interval" (Wilson), "balanced_accuracy", "classes" and
              "confusion", a row for each true class.  With probabilities "log_loss" and its interval.
              "accuracy_baseline" and "log_loss_baseline" are those of always answering the most frequent class, and
              the classes' shares.
            * For a regression "rmse", "rmse_baseline" of always answering the mean, "mae", "r2", and "median_error"
              with the interval of the sign test.
            * For a survival "concordance" and "n_events".
            * With probabilities of two classes "ranking" of "positive", the sought one; see `linalg.ranking_figures`.
        """
        return evaluate(self.way, table_source(source), using, find, batch_rows)

    def explain(
        self,
        source: Any,
        output: Path,
        *,
        progress: Callable[[int, int], None] = lambda done, n_rows: None,
        **options: Any,
    ) -> Explained:
        """Write how much each column adds to the model's outputs for rows of a table, into a file closed to others.

        The model is the collaboration's, h(g_k(f_k(x))), without the party's own models.  Masked columns are taken from
        the anchor, which is the same at every party.  Needs the package shap: ``pip install 'datacollab[shap]'``.

        Parameters
        ----------
        source, output : Path
            CSV, Excel, Parquet or Arrow.  The output has the columns "row" (its position, from 1), those of `keep`,
            "class" if the model gives probabilities, "base_value" (the mean output over the anchor), "answer", and
            "contribution_NAME" of each column of the project; these and the base value add up to the answer.
        of_class : str, optional
            Class whose probability is explained; by default the sought one of two, and otherwise all.
        most_rows, n_background : int, default=100
            So many rows of a longer table are explained, and so many of the anchor taken, evenly spaced.
        keep : sequence of str, default=()
            Columns of the table to be put beside the position, such as an identifier.
        log_odds : bool, default=False
            Whether log odds are explained in place of probabilities.
        figure : Path, optional
            PNG, PDF or SVG, by its name, of the most important columns; it shows entries by colours.
        force : bool, default=False
            Whether files that hold something else may be replaced.
        progress : callable, optional
            Called with the number of rows that are done, and of all, after each.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED, WRONG_SHARE, ALREADY_THERE, MODEL_MALFORMED, or of the kind "schema".
        AgreementError
            If outputs of the model are no numbers to be explained, or the table has no rows.
        NumericalError
            If a probability is 0 or 1, whose log odds are infinite.
        MissingExtraError, ValueError, FileNotFoundError
            If shap is not installed, a parameter is out of its range, or there is no folder for a file.
        """
        return explain(self.way, table_source(source), Path(output), ExplainOptions(**options), progress)

    def record(self, event: str, **facts: Any) -> None:
        """Write into the log, never data; raise BUSY if another command works in the folder for ten seconds."""
        record(self, event, **facts)

    def __repr__(self) -> str:
        return f"PartyFolder({os.fspath(self.path)!r}, party={self.name!r}, project={self.project.name!r})"


def _check_same_people(there: Project, project: Project, files: Files) -> None:
    """Refuse a project of another owner or analyst: a file that was swapped on its way is signed, too."""
    for role in ("owner", "analyst"):
        known = getattr(there, role)
        new = getattr(project, role)
        if known != new:
            raise ExchangeError(
                "ALREADY_THERE",
                f"{files.root} has a project whose {role} is {known.fingerprint}; in the new file it is "
                f"{new.fingerprint}. Ask the owner by telephone which is right. For another project use a "
                f"folder of its own; if the {role} has a new key, remove {files.project} and join again.",
            )


def _check_not_sealed_before(folder: Folder, new: Anchor, commitment: str, file: Path | None) -> None:
    """Refuse an anchor that was sealed before the one that is there."""
    project = folder.project
    try:
        known = load_anchor(folder, project)
    except ExchangeError as error:
        # A new anchor takes the place of one that is missing, damaged, or of an earlier version.
        if error.code not in ("ANCHOR_MISSING", "PROJECT_HASH_MISMATCH", "STATE_DAMAGED"):
            raise
        return
    # An anchor that was never sealed is older than any that was.
    if commitment != known.commitment(project) and _time_of_sealing(new) < _time_of_sealing(known):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{file} was sealed {new.sealed_at}, and the folder has an anchor that the owner sealed later, "
            f"{known.sealed_at}. Use that one; if the owner means the older, they seal it again.",
        )


def _time_of_sealing(anchor: Anchor) -> datetime:
    if not anchor.sealed_at:
        return datetime.min.replace(tzinfo=UTC)
    return datetime.fromisoformat(anchor.sealed_at)
