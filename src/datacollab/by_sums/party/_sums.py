"""Share sums: add the rows up in the common map, have the message approved, mask it, and put it into the outbox."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...agreement import Anchor, Project, are_declared_alike, draw_expected_rows, sharing_sentences
from ...bundle import now, read_regular, unpack, write_atomically
from ...errors import AgreementError, DataCollabError, ExchangeError
from ...folder.ledger import Ledger, LedgerEntry, RowKeys, joint_noise
from ...folder.party import (
    KEEP_FOLDER,
    AtHome,
    Folder,
    PartyWay,
    Policy,
    ask_approver,
    check_unchanged,
    commit_sum,
    default_policy_text,
    erase_file,
    judge_anchor_density,
    judge_anchor_fit,
    judge_private_rows,
    last_share,
    load_mask_key,
    locked,
    open_outbox,
    read_sum,
    refuse,
    send_again,
)
from ...folder.table_codes import TableCodes
from ...study import StudyPlan, new_secret, study_membership_figures
from ...sums import MaskKey, MeasuredMembership, RidgeSums, membership_figures, message_to_bytes
from ...sums._recommended import TABLE
from ...table import table_source
from ..plan import fewest_rows, plan_of
from ..rounds import ROUND_FILE, NextRound, read_round
from ._added_rows import (
    AddedRows,
    Batch,
    PartMaker,
    ProjectMap,
    add_rows,
    check_version,
    effect_project_map,
    project_map,
    read_batches,
    sums_over,
)
from ._common_model import install_sums, sums_at_home
from ._heard import check_confirmed, confirm, n_unconfirmed, other_parties
from ._own_model import OwnSample, own_model_state, read_own_model
from ._sums_summary import (
    LESS_NOISE,
    NOT_COUNTED,
    ONE_CLASS,
    SumsSummary,
    also_in_anchor,
    classes_not_counted,
    message_bytes,
    still_alone,
)
from ._withdrawal import Withdrawal, leave_out_runs, read_withdrawal, withdrawal_to_bytes

_LEDGER_KEY = b"datacollab ledger key 1\n"
"""The text that a party's key signs for the key of its ledger, which is so the same for all its projects."""
_OF_ROWS = ("obfuscator", "n_components", "preset", "epsilon", "group_size", "noise", "fit_on_anchor")
"""Options of `share` that are for rows alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSum:
    """A message of sums that has not left, and the reasons against it.

    `part` are the party's sums, as sensitive as its rows; `witness` compares maps; `own` the means of its own rows, for
    the intercept of the model that comes back; `sample` own rows and targets, for the own model; `total` the ledger's
    entry; `fewest` rows in which tables have to differ; and `void` the agreements that a party has left, so that their
    totals are never made.
    """

    plan: StudyPlan
    common: ProjectMap | None
    outside: dict[str, Any]
    part: FloatArray = field(repr=False)
    witness: NDArray[np.uint64] | None = field(repr=False)
    own: dict[str, Any] | None = field(repr=False)
    sample: OwnSample = field(repr=False)
    total: LedgerEntry = field(repr=False)
    fewest: int
    void: frozenset[str]
    mask_key: MaskKey = field(repr=False)
    round: int
    summary: SumsSummary
    reasons: list[ExchangeError]
    options: ClassVar[str] = ""
    """Sums leave behind fixed defences: the command that shares them has no options."""
    is_undefended: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True, eq=False)
class _Agreed:
    """The plan of a run and its common map, and the party's mask key, which the project names."""

    mask_key: MaskKey
    common: ProjectMap | None
    commitment: str
    plan: StudyPlan
    round: int


class SumsAtParty(PartyWay):
    """Sums for one model, at a party: added up in the common map, masked, and shared once."""

    of_study: ClassVar[bool] = False

    def prepare(self, table: Any, *, where: str | None, options: dict[str, Any]) -> PreparedSum:
        """Do all that `share` does but let it leave; see `PartyFolder.prepare`."""
        self._refuse_options_of_rows(options)
        folder = self.folder
        policy = folder.policy
        ledger = _ledger_of(folder, policy)
        if folder.project.digest not in ledger.closed and (sentence := self.describe_share()) is not None:
            path = folder.files.sum_file(folder.name)
            raise ExchangeError(
                "ALREADY_SHARED", f"{sentence} {_name(table, where)} was not read. Send {path} to the analyst."
            )
        batches = table if isinstance(table, AddedRows) else read_batches(folder, table, where)
        return self._prepare(policy, self._anchor(), ledger, batches, (), (), None)

    def part_maker(self) -> PartMaker:
        """Return the maker of parts of this party's sums; see `PartyFolder.part_maker`."""
        folder = self.folder
        project = folder.project
        agreed = self._agree(self._anchor(), None)
        if kept := [each.title for each in agreed.plan.statistics if each.keeps_rows]:
            raise AgreementError(
                f"Project {project.name!r}: {' and '.join(kept)} cannot be made in parts, as its numbers follow from "
                "all rows of a party together. Share one table, as a file or a frame."
            )
        row_keys = _ledger_of(folder, folder.policy).row_keys
        return PartMaker(
            project=project, plan=agreed.plan, common=agreed.common, row_keys=row_keys, secret=new_secret()
        )

    def _refuse_options_of_rows(self, options: dict[str, Any]) -> None:
        if meant := sorted(name for name in _OF_ROWS if options.get(name) not in (None, False)):
            raise AgreementError(
                f"Project {self.folder.project.name!r} shares sums, which have no {', '.join(meant)}. Leave that out."
            )

    def share(
        self,
        table: Any,
        *,
        approve: Callable[[Any], str | None],
        where: str | None,
        withdrawals: Sequence[Path],
        without: Sequence[str],
        heard: Sequence[str],
        round_file: Path | None,
        options: dict[str, Any],
        **of_rows: Any,
    ) -> Path:
        """Add up the table, have it approved, and put the message into the outbox; see `PartyFolder.share`."""
        # Sums leave once and behind fixed defences: `again`, `undefended` and `prepared` are for rows.
        self._refuse_options_of_rows(options)
        folder = self.folder
        policy = folder.policy
        project = folder.project
        ledger = _ledger_of(folder, policy)
        sent = None
        with locked(folder):
            next_round = self._read_round(round_file)
            # Who has left the run sends nothing again.
            if project.digest not in ledger.closed and self._is_sent(next_round):
                sent = send_again(folder)
        if sent is not None:
            self._make_own_model_again(table, where)
            return sent
        project.check_deadline(datetime.now(UTC).date())
        self.confirm(heard)
        anchor = self._anchor()
        read = [read_withdrawal(read_regular(file), where=str(file)) for file in map(Path, withdrawals)]
        batches = table if isinstance(table, AddedRows) else read_batches(folder, table, where)
        prepared = self._prepare(policy, anchor, ledger, batches, read, without, next_round)
        refuse(prepared.reasons)
        approved_by = self._find_approval(policy) if next_round is not None else None
        if approved_by is None:
            approved_by = ask_approver(policy, approve, prepared.summary)
        # The approver may have rung up the others only after having seen what would leave.
        check_confirmed(folder)
        own = self._own_state(anchor, prepared.sample, prepared.common)
        with locked(folder):
            check_unchanged(folder, anchor)
            # Another command may have shared meanwhile: one message leaves, and always the same.
            if self._is_sent(next_round) and (sent := send_again(folder)) is not None:
                return sent
            summary = prepared.summary
            outside = prepared.outside
            agreed = prepared.plan.agreed
            _make_folder(ledger.path.parent)
            open_outbox(folder, folder.files.sum_file(folder.name))
            mask_public = ""
            if prepared.round == project.sums.n_rounds:
                mask_public = prepared.mask_key.public.hex()
            message = agreed.mask(folder.name, prepared.part, prepared.mask_key, witness=prepared.witness)
            data = message_to_bytes(message, folder.key, project.analyst, outside=outside)
            entry = {
                "digest": unpack(data).digest,
                "bytes": len(data),
                "context": agreed.context.hex(),
                "project_digest": project.digest,
                "n_rows": summary.n_rows,
                "n_numbers": summary.n_numbers,
                "statistic": summary.statistic,
                "noise": summary.noise,
                # The analyst knows the log's head before this entry, and could test guesses on the next one.
                "nonce": secrets.token_hex(16),
                "approved_by": approved_by,
                "policy": policy.digest,
                "round": prepared.round,
            }
            kept = ("project_digest", "anchor_commitment", "n_components", "created")
            facts = {name: outside[name] for name in kept} | {
                "party": folder.name,
                "file": _name(table, where),
                "own": prepared.own,
                "context": entry["context"],
                "after": "" if next_round is None else next_round.after,
                "mask_public": mask_public,
                "ledger": str(ledger.path.resolve()),
                "entry": entry,
            }
            return commit_sum(folder, ledger, data, facts, prepared.total, prepared.fewest, prepared.void, own)

    def _read_round(self, round_file: Path | None) -> NextRound | None:
        """Read the analyst's request for a further round, and refuse one that is not the next; None without one."""
        if round_file is None:
            return None
        folder = self.folder
        where = str(round_file)
        next_round = read_round(read_regular(Path(round_file)), folder.project, folder.key, where=where)
        kept = read_sum(folder, folder.project)
        if kept is None:
            raise ExchangeError(
                "NOT_SHARED",
                f"{where} asks for round {next_round.number}, and this party has not shared in the first. Share the "
                "table without --round first.",
            )
        done = kept.facts["entry"]["round"]
        expected = kept.facts["context"]
        # Two answers to different requests of one round would be two totals.
        if next_round.number == done:
            expected = kept.facts["after"]
        is_in_order = next_round.number < done or next_round.after == expected
        if not is_in_order or next_round.number > done + 1:
            raise ExchangeError(
                "ROUND_UNFIT",
                f"{where} asks for round {next_round.number} after another sum than this party's round {done}. Nothing "
                "leaves: ask the analyst for the request that goes with the files of all parties.",
            )
        return next_round

    def _is_sent(self, next_round: NextRound | None) -> bool:
        """Return whether the message of this round, or of a later one, has been released."""
        kept = read_sum(self.folder, self.folder.project)
        if kept is None:
            return False
        return next_round is None or next_round.number <= kept.facts["entry"]["round"]

    def _find_approval(self, policy: Policy) -> str | None:
        """Return who said yes to all rounds, if the policy is still the one of then; None otherwise."""
        kept = read_sum(self.folder, self.folder.project)
        if kept is None or kept.facts["entry"]["policy"] != policy.digest:
            return None
        return str(kept.facts["entry"]["approved_by"])

    def _anchor(self) -> Anchor | None:
        """Return the anchor, by which all parties make the common map."""
        return self.folder.anchor

    def _own_state(
        self, anchor: Anchor | None, sample: OwnSample, common: ProjectMap | None = None
    ) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """Return facts and members of the own model's file; None where no model comes back."""
        assert anchor is not None
        project = self.folder.project
        common = common or self._map(anchor)
        plan = plan_of(project, anchor_commitment=anchor.commitment(project), n_components=common.n_components)
        assert plan.ridge is not None
        parts = [(common.encode(X), target) for X, target in sample.parts]
        # Public rows with targets are real ones in projects that share sums.
        if anchor.target is not None:
            parts.append((common.encode(anchor.labelled_rows), anchor.target))
        return own_model_state(project, plan.ridge, parts)

    def _make_own_model_again(self, table: Any, where: str | None) -> None:
        """Make the own model of a party that has shared, if it has none; nothing of that leaves."""
        folder = self.folder
        # Between columns that are all alike, as pixels are, there is no own model.
        if are_declared_alike(folder.project.columns):
            return
        kept, _ = read_own_model(folder)
        if kept is not None:
            return
        anchor = self._anchor()
        sample = OwnSample()
        try:
            if isinstance(table, AddedRows):
                sample = table.sample
            else:
                for batch, _, _ in read_batches(folder, table, where):
                    assert batch.target is not None
                    sample.add(batch.X, batch.target)
        # The message is sent again whatever the table; without one that can be read there is still no own model.
        except (DataCollabError, OSError, ValueError):
            return
        if (own := self._own_state(anchor, sample)) is not None:
            with locked(folder):
                folder.write(folder.files.own, *own)

    def withdraw(self) -> Path:
        """Leave a run of sums for good, and return the file of the signed withdrawal; see `PartyFolder.withdraw`."""
        folder = self.folder
        project = folder.project
        files = folder.files
        with locked(folder):
            ledger = _ledger_of(folder, folder.policy)
            _make_folder(ledger.path.parent)
            path = files.withdrawal(folder.name)
            open_outbox(folder, path)
            # A folder from a backup has lost its message, which may have left all the same.
            entered = any(entry.agreement == project.digest for entry in ledger.entries)
            had_shared = entered or read_sum(folder, project) is not None or last_share(folder) is not None
            # The ledger first: from then on no message of this run is made or sent again.
            ledger.close(project.digest)
            files.sum_file(folder.name).unlink(missing_ok=True)
            erase_file(files.mask)
            erase_file(files.own)
            if had_shared:
                self._write_that_own_model_is_erased()
            if files.public.exists():
                write_atomically(files.public, folder.public_text().encode())
            folder.log.append("withdraw", project_digest=project.digest, had_shared=had_shared)
            data = withdrawal_to_bytes(folder.name, project.name, project.digest, had_shared, folder.key)
            write_atomically(path, data, mode=0o600)
            return path

    def _write_that_own_model_is_erased(self) -> None:
        """Write why there is no own model any more."""
        reason = "It was erased when this institution left the run."
        self.folder.write(self.folder.files.own, {"project_digest": self.folder.project.digest, "reason": reason}, {})

    def check_anchor(self, commitment: str) -> None:
        """Refuse another anchor than the one by which the party has added up its rows."""
        kept = read_sum(self.folder, self.folder.project)
        if kept is not None and commitment != str(kept.facts["anchor_commitment"]):
            raise ExchangeError(
                "ALREADY_THERE",
                f"{self.folder.path} has added up its rows by another anchor than the one in this file. If all parties "
                "are to share again, the owner raises the run, and takes new mask keys.",
            )

    def policy_text(self) -> str:
        """Return the policy that a new folder gets."""
        return default_policy_text(None)

    def describe_share(self) -> str | None:
        """Say how many rows were added to this project's sums, and when; None if none were."""
        if (kept := read_sum(self.folder, self.folder.project)) is None:
            return None
        facts = kept.facts
        return f"You shared {facts['entry']['n_rows']} rows of {facts['file']} on {facts['created'][:10]}."

    def own_model_words(self) -> str:
        """Say which own model is kept in the folder, or why there is none."""
        own, reason = read_own_model(self.folder)
        if own is None:
            return f"There is no own model beside the common one. {reason}"
        return f"Your own model, {own.words}, is kept here, to be combined with the common one. It is never sent."

    def words_after_share(self) -> list[str]:
        """Return sentences for a party that has shared."""
        return [self.own_model_words(), KEEP_FOLDER]

    def n_unconfirmed(self) -> int:
        """Return how many other institutions have still to be confirmed before sums leave."""
        return n_unconfirmed(self.folder)

    def confirm(self, heard: Sequence[str]) -> list[str]:
        """Keep fingerprints that other institutions read out; see `PartyFolder.confirm`."""
        return confirm(self.folder, heard)

    def check_confirmed(self) -> None:
        """Raise NOT_CONFIRMED unless the keys of two other institutions were confirmed."""
        check_confirmed(self.folder)

    def install(self, model_file: Path, *, older: bool, **options: Any) -> dict[str, Any]:
        """Install the one model of all parties' sums; options are for rows.  See `PartyFolder.install`."""
        return install_sums(self.folder, model_file, older=older)

    def at_home(self) -> AtHome:
        """Return the sides of the common model and the party's own."""
        return sums_at_home(self.folder)

    def _agree(self, anchor: Anchor | None, next_round: NextRound | None) -> _Agreed:
        """Make the plan of the project's run; refuse a mask key that the project does not name."""
        folder = self.folder
        project = folder.project
        mask_key = _load_unused_mask_key(folder)
        common = None if anchor is None else self._map(anchor)
        commitment = "" if anchor is None else anchor.commitment(project)
        n_components = 0 if common is None else common.n_components
        plan = plan_of(project, anchor_commitment=commitment, n_components=n_components, next_round=next_round)
        # Under another key the masks would not cancel, and the total would be noise.
        if plan.roster[folder.name] != mask_key.public:
            raise ExchangeError(
                "NOT_A_MEMBER",
                f"Party {folder.name!r}: the mask key in {folder.files.mask} is not the one that project "
                f"{project.name!r} names. Send public.key to the project's owner, who writes its third line into the "
                "project and signs it again.",
            )
        number = 1 if next_round is None else next_round.number
        return _Agreed(mask_key=mask_key, common=common, commitment=commitment, plan=plan, round=number)

    def _map(self, anchor: Anchor) -> ProjectMap:
        """Return the common map, which all parties make of the anchor."""
        return project_map(self.folder.project, anchor)

    def _prepare(
        self,
        policy: Policy,
        anchor: Anchor | None,
        ledger: Ledger,
        batches: Iterable[Batch] | AddedRows,
        withdrawals: Sequence[Withdrawal],
        without: Sequence[str],
        next_round: NextRound | None,
    ) -> PreparedSum:
        """Add up batches of rows in the common map, and sum up the message."""
        folder = self.folder
        project = folder.project
        name = folder.name
        sharing = project.sums
        agreed = self._agree(anchor, next_round)
        common = agreed.common
        plan = agreed.plan
        own_rows = batches
        if isinstance(own_rows, AddedRows):
            check_version(own_rows, plan, project)
        else:
            own_rows = add_rows(project, plan, common, ledger.row_keys, own_rows)
        sums = own_rows.sums
        rows = own_rows.hashed
        table = own_rows.table
        own = None
        if plan.ridge is not None and len(rows):
            own = _own_means(plan.ridge, sums[0])
        correction, n_alone = own_rows.alone.correction()
        if shortens := plan.shortens and policy.shorten_rows:
            sums = [sums[0] + correction]
        n_public = 0
        if sharing.labelled_by == name and anchor is not None and anchor.target is not None and plan.ridge is not None:
            sums = plan.join(sums, sums_over(project, plan, common, anchor.labelled_rows, anchor.target, b""))
            n_public = len(anchor.target)
        part = plan.finish(sums)
        void: frozenset[str] = frozenset()
        of_left: list[str] = []
        if withdrawals or without:
            void, of_left = leave_out_runs(ledger, project, withdrawals, without)
        n_rows_together = len(rows) + (len(project.parties) - 1) * fewest_rows(project)
        # Rows in which two tables differ are a total of their own, of this party alone.
        fewest = max(len(project.parties) * fewest_rows(project), policy.min_rows)
        of_left += self._warn_of_rows(plan, own_rows, n_alone=0 if shortens else n_alone)
        if "counts" not in sharing.statistics and not _are_counted(ledger, table, fewest):
            of_left += self._warn_of_counts(own_rows, n_rows_together)
        earlier = ledger.earlier(table)
        noise_before = joint_noise(earlier)
        reasons = _judge_number(project, name, len(rows), policy)
        if anchor is not None:
            of_anchor, warnings = _judge_anchor(folder, policy, anchor, common, own_rows, ledger.row_keys)
            reasons += of_anchor
            of_left += warnings
        # The noise of all rounds together is that of the plan.
        of_round = plan.noise_of_sums * math.sqrt(sharing.n_rounds)
        total = _ledger_entry(project, plan.agreed.context, of_round, table, agreed.round)
        reasons += _judge_total(ledger, total, fewest, void)
        summary = SumsSummary(
            **self._describe_run(agreed),
            n_rows=len(rows),
            n_public=n_public,
            n_numbers=len(part),
            n_bytes=message_bytes(len(part)),
            noise_before=None if math.isinf(noise_before) else noise_before,
            earlier=tuple(f"{each.purpose} ({each.statistic}, {each.time[:10]})" for each in earlier),
            sentences=(*sharing_sentences(sharing), *of_left),
            n_rows_together=n_rows_together,
            adjusted=own_rows.adjusted.to_dict(fills=project.fills_missing),
            n_shortened=n_alone if shortens else 0,
        )
        return PreparedSum(
            plan=plan,
            common=common,
            outside=_describe_outside(project, agreed),
            part=part,
            witness=None if common is None else common.common.witness(plan.agreed.context),
            own=own,
            sample=own_rows.sample,
            total=total,
            fewest=fewest,
            void=void,
            mask_key=agreed.mask_key,
            round=agreed.round,
            summary=summary,
            reasons=reasons,
        )

    def _warn_of_counts(self, own_rows: AddedRows, n_rows_together: int) -> list[str]:
        """Return warnings if rows were never counted."""
        return classes_not_counted(own_rows.targets, n_rows_together)

    def _warn_of_rows(self, plan: StudyPlan, own_rows: AddedRows, *, n_alone: int) -> list[str]:
        """Return warnings about own rows that stand alone, and targets that are all alike."""
        sentences = []
        # Of a model, epsilon bounds all that a row tells, also of one that stands alone.
        is_proven = plan.ridge is not None and plan.epsilon is not None
        if n_alone and not is_proven:
            sentences.append(still_alone(n_alone, of_study=self.of_study))
        sentences += self._warn_of_noise(plan)
        if len(+own_rows.targets) == 1:
            sentences.append(ONE_CLASS)
        return sentences

    def _warn_of_noise(self, plan: StudyPlan) -> list[str]:
        """Return a warning of less noise than that of totals that were attacked; a model's summary has its own."""
        return []

    def _find_attacks(self, common: ProjectMap | None) -> Sequence[MeasuredMembership]:
        """Return attacks on totals like this one."""
        assert common is not None
        return membership_figures(common.kind)

    def _describe_run(self, agreed: _Agreed) -> dict[str, Any]:
        """Return the facts of a summary that do not depend on own rows."""
        folder = self.folder
        project = folder.project
        sharing = project.sums
        plan = agreed.plan
        n_components = 0 if agreed.common is None else agreed.common.n_components
        measured = study_membership_figures(
            sharing.statistics, errors=sharing.errors or "robust", by_rounds=sharing.rounds is not None
        )
        return {
            "party": folder.name,
            "project": project.name,
            "analyst": project.analyst.fingerprint,
            "statistic": ", ".join(sharing.statistics),
            "tells": tuple(f"{each.title}: {each.tells}" for each in plan.statistics if each.tells),
            "of_study": self.of_study,
            "n_components": n_components,
            "noise": plan.noise_of_sums,
            "epsilon": sharing.epsilon,
            "n_parties": len(project.parties),
            "n_entities": len({sharing.entity(each) for each in project.parties}),
            "others": other_parties(folder),
            "n_unconfirmed": n_unconfirmed(folder),
            "measured": self._find_attacks(agreed.common),
            "measured_study": measured,
        }


class StudyAtParty(SumsAtParty):
    """Sums of a study's statistics, which make no model; of an effect's columns there is a common map."""

    of_study: ClassVar[bool] = True

    def _anchor(self) -> Anchor | None:
        return self.folder.anchor if self.folder.project.has_anchor else None

    def _map(self, anchor: Anchor) -> ProjectMap:
        return effect_project_map(self.folder.project, anchor)

    def _own_state(self, *_: object) -> None:
        return None

    def _make_own_model_again(self, table: Any, where: str | None) -> None:
        """Make none: no model comes back from a study to stand beside."""

    def _write_that_own_model_is_erased(self) -> None:
        """Write nothing: there was none."""

    def words_after_share(self) -> list[str]:
        """Return sentences for a party that has shared."""
        if n_left := self.n_rounds_left():
            return [
                f"Rounds to come: {n_left}. Keep the table as it is. The analyst sends {ROUND_FILE}; answer it with "
                f"`datacollab party share TABLE --round {ROUND_FILE}`; or run `datacollab party follow TABLE`, over a "
                "remote."
            ]
        return ["No model comes back from a study."]

    def n_rounds_left(self) -> int:
        """Return how many further rounds the party has to answer; raise NOT_SHARED before the first."""
        kept = read_sum(self.folder, self.folder.project)
        if kept is None:
            raise ExchangeError(
                "NOT_SHARED",
                f"{self.folder.path} has not shared in the first round. Share the table first, as somebody has to "
                "approve it: datacollab party share TABLE",
            )
        return int(self.folder.project.sums.n_rounds - kept.facts["entry"]["round"])

    def own_model_words(self) -> str:
        """Return no words: a study has no own model."""
        return ""

    def _warn_of_counts(self, own_rows: AddedRows, n_rows_together: int) -> list[str]:
        return [NOT_COUNTED]

    def _warn_of_noise(self, plan: StudyPlan) -> list[str]:
        if self.folder.project.sums.noise * plan.raised < TABLE.noise:
            return [LESS_NOISE]
        return []

    def _find_attacks(self, common: ProjectMap | None) -> Sequence[MeasuredMembership]:
        return ()


def _describe_outside(project: Project, agreed: _Agreed) -> dict[str, Any]:
    """Return the facts of a message that the analyst reads before it is opened."""
    common = agreed.common
    return {
        "project_digest": project.digest,
        "anchor_commitment": agreed.commitment,
        "n_components": 0 if common is None else common.n_components,
        "created": now(),
    }


def _own_means(ridge: RidgeSums, sums: FloatArray) -> dict[str, Any]:
    """Return the party's number of rows, and their means in the map and of targets."""
    n_rows, mean_v, mean_t = ridge.means(sums)
    return {"n_rows": n_rows, "mean_v": mean_v.tolist(), "mean_t": mean_t.tolist()}


def _judge_total(ledger: Ledger, total: LedgerEntry, fewest: int, void: frozenset[str]) -> list[ExchangeError]:
    """Return the ledger's refusal of a second total, if it has one."""
    try:
        ledger.check(total, fewest=fewest, void=void)
    except ExchangeError as error:
        return [error]
    return []


def _name(table: Any, where: str | None) -> str:
    return table_source(table, where or "the table").name


def _ledger_of(folder: Folder, policy: Policy) -> Ledger:
    """Return the institution's ledger: in the policy's folder, or else beside the file that holds the keys."""
    files = folder.files
    # Folders of several projects link to the keys of one institution, and so share its ledger.
    place = files.keys.resolve().parent / "ledger"
    if policy.ledger:
        place = files.root / policy.ledger
    # A copy of the folder would take the ledger with it, and an older copy lacks totals.
    if place.resolve() == files.root.resolve():
        raise ExchangeError(
            "POLICY_INVALID",
            f"Policy {files.policy.name}: ledger is the party's own folder. Name another folder, best one for all "
            "projects of the institution.",
        )
    return Ledger(place / "ledger.json", key=sha256(folder.key.sign(_LEDGER_KEY)).digest())


def _make_folder(path: Path) -> None:
    """Make the folder of a ledger, closed to others, if there is none."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except (FileNotFoundError, FileExistsError, NotADirectoryError):
        raise ExchangeError(
            "POLICY_INVALID", f"The ledger's folder {path} cannot be made. Make it, or name another in policy.toml."
        ) from None


def _load_unused_mask_key(folder: Folder) -> MaskKey:
    """Return the folder's mask key, or raise KEY_MISSING if a share has used it up."""
    mask_key = load_mask_key(folder)
    if mask_key is None:
        raise ExchangeError(
            "KEY_MISSING",
            f"Party {folder.name!r}: {folder.path} holds no unused mask key. If it has shared, send the file in the "
            "outbox. For a new run make one with `datacollab keys mask`, and send public.key to the owner of project "
            f"{folder.project.name!r}.",
        )
    return mask_key


def _are_counted(ledger: Ledger, table: TableCodes, fewest: int) -> bool:
    """Return whether counts of exactly these rows have left before."""
    counted = [entry.table for entry in ledger.entries if "counts" in entry.statistic.split(", ")]
    return any(table.n_different(each, fewest) == 0 for each in counted)


def _ledger_entry(project: Project, context: bytes, noise: float, table: TableCodes, number: int) -> LedgerEntry:
    return LedgerEntry(
        context=context.hex(),
        purpose=f"{project.name}, run {project.sums.run}",
        statistic=", ".join(project.sums.statistics),
        noise=noise,
        agreement=project.digest,
        parties={each: key.text for each, key in project.parties.items()},
        table=table,
        round=number,
    )


def _judge_number(project: Project, name: str, n_rows: int, policy: Policy) -> list[ExchangeError]:
    """Return the reason against fewer rows than hide each other, or more than the project says."""
    least = max(fewest_rows(project), policy.min_rows)
    if n_rows < least:
        fault = f"Party {name!r} would add {n_rows} rows; it needs {least} at least, or its part hides nobody. "
        fault += "Take more rows, or have the owner leave the party out."
        return [ExchangeError("TOO_FEW_ROWS", fault)]
    # The analyst refuses a total of more rows.
    if project.sums.most_rows is not None and n_rows > project.sums.most_rows[name]:
        most = project.sums.most_rows[name]
        fault = f"Party {name!r} would add {n_rows} rows; [sharing.most_rows] of project {project.name!r} says {most} "
        fault += "at most. Leave rows out, or ask the owner to write a higher number there, sign the file again "
        fault += "(`datacollab project revise`) and send it to all; then join again."
        return [ExchangeError("TOO_MANY_ROWS", fault)]
    return []


def _judge_anchor(
    folder: Folder,
    policy: Policy,
    anchor: Anchor,
    common: ProjectMap | None,
    own_rows: AddedRows,
    row_keys: RowKeys,
) -> tuple[list[ExchangeError], list[str]]:
    """Return the reasons against an anchor beside own rows, and a warning about those that are in it."""
    from ...anchor import equal_rows

    in_anchor = equal_rows(row_keys.fingerprints(anchor.rows), own_rows.hashed)
    reasons = [*judge_private_rows(folder.name, in_anchor, len(anchor.rows), policy)]
    reasons += _judge_reading(folder, policy, anchor, common, own_rows)
    warnings = []
    if in_anchor.n_equal:
        warnings.append(also_in_anchor(in_anchor))
    return reasons, warnings


def _judge_reading(
    folder: Folder, policy: Policy, anchor: Anchor, common: ProjectMap | None, own_rows: AddedRows
) -> list[ExchangeError]:
    """Return the reasons against an anchor by which others could read single rows."""
    from ...anchor import anchor_fit

    if common is None or not len(own_rows.hashed):
        return []
    kept = common.kept
    expected = draw_expected_rows(folder.project)
    if expected is not None:
        expected = expected[:, kept]
    # In the columns that are mapped alone.  The map stretches numbers by their ranks, unless all columns are alike.
    rows = own_rows.some[:, kept]
    fit = anchor_fit(anchor.rows[:, kept], rows, expected=expected, by_column=not common.alike)
    return [*judge_anchor_fit(folder.name, fit, policy), *judge_anchor_density(folder.name, fit, policy)]
