"""A party's folder: join, share once, install, predict at home."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...bundle import read_regular, unpack
from ...errors import AgreementError, ExchangeError
from ...party import UNDEFENDED
from ..project import Adjustments, Anchor, EncodedTable, encode_table, read_table, table_batches, usual_components
from ..sums import read_withdrawal
from ._commit import commit_share
from ._explaining import Explaining
from ._policy import Policy
from ._prepare import Prepared, figures, largest_possible, prepare, refuse, share_facts, share_file
from ._release_check import undefended_rows
from ._rows_only import check_shares_rows
from ._stored import state_of
from ._sums_commit import commit_sum, send_again, withdraw
from ._sums_share import PreparedSum, ledger_of, prepare_sum

__all__ = ["PartyFolder"]

_OF_ROWS = ("obfuscator", "n_components", "preset", "epsilon", "group_size", "noise", "fit_on_anchor")
"""Options of `share` that say how rows leave."""
_BATCH_ROWS = 32768
"""Rows of a file that are in memory at once, where only their sums are needed."""


class PartyFolder(Explaining):
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
            As for `prepare`.  By default the preset "groups": means of five rows, with noise, by PCA of standardised
            columns, fitted on the anchor, with 16 components, or as many as table, project and policy allow.  For
            effects it is means of five rows without noise.

        Raises
        ------
        ExchangeError
            Of the kinds "schema", "state" and "policy".
        ObfuscationError
            When the obfuscator cannot be fitted.
        """
        check_shares_rows(self.project)
        self._settle()
        earlier = self._last_share()
        return self._prepared(self.policy, self.anchor, table, where, options, earlier)

    def share(
        self,
        table: Any,
        *,
        approve: Callable[[Any], str | None],
        again: bool = False,
        undefended: bool = False,
        withdrawals: Sequence[Path] = (),
        without: Sequence[str] = (),
        where: str | None = None,
        **options: Any,
    ) -> Path:
        """Obfuscate the table, have it approved, and put the share into the outbox.

        If the project shares sums, the rows are added up under masks in place of that.  A message that was released
        is put into the outbox again, whatever is given here: the same bytes.

        Parameters
        ----------
        table : Path or DataFrame
        approve : callable
            Gets what would leave, a `ReleaseSummary` or `SumsSummary`; returns the name of whoever approves it, or
            None.  Called only where project and policy allow it.
        again : bool, default=False
            Whether a share made before is to be replaced.  The analyst then has two of the same rows, which tell more
            than one, and the installed model no longer fits.
        undefended : bool, default=False
            Whether rows may leave without any defence; the preset "none" is refused otherwise.
        withdrawals : sequence of Path
            Of parties that left an earlier run of sums over these rows; see `withdraw`.
        without : sequence of str
            Parties that left one and gave no withdrawal: if their files arrived, both totals tell their sums.
        where, **options
            As in `prepare`.

        Returns
        -------
        Path
            The file to be sent.

        Raises
        ------
        ExchangeError
            DEADLINE_PASSED, ALREADY_SHARED, FORGOTTEN, UNDEFENDED, NOT_APPROVED, STATE_UNSUPPORTED,
            PROJECT_HASH_MISMATCH or BUSY where the folder was joined to something else meanwhile, or what `prepare`
            raises or finds.  Nothing left the party.
        """
        if self.project.sharing is not None:
            return self._share_sums(table, approve, where, options, withdrawals, without)
        self.project.check_deadline(datetime.now(UTC).date())
        if options.get("preset") == UNDEFENDED and not undefended:
            raise undefended_rows(self.name, options.get("obfuscator") or "pca")
        with self._locked():
            # A promise is for one draw.
            earlier = self._replaceable(again and options.get("epsilon") is None)
        policy, anchor = self.policy, self.anchor
        prepared = self._prepared(policy, anchor, table, where, options, earlier)
        refuse(prepared.reasons)
        state, members = state_of(prepared.party, prepared.share, anchor, prepared.own)
        approved_by = self._approved(approve, prepared.summary, policy)
        # Attacks and whoever approves take their time, in which other commands may work here.
        with self._locked():
            self._check_unchanged(anchor)
            supersedes = _digest_of(self._replaceable(again and options.get("epsilon") is None))
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

    def prepare_sum(self, table: Any, *, where: str | None = None) -> PreparedSum:
        """Do all that `share` does in a project that shares sums, but let it leave.

        Parameters
        ----------
        table, where
            As in `encoded`.

        Raises
        ------
        ExchangeError
            Of the kinds "schema", "state", "keys" and "policy".
        """
        return self._prepared_sum(self.policy, self.anchor, table, where)

    def withdraw(self) -> Path:
        """Leave a run of sums for good: no message of it is made or sent again from here.

        The others may then share anew without this party.  A file that was sent already is out of reach.

        Returns
        -------
        Path
            The signed withdrawal, for the other parties.

        Raises
        ------
        AgreementError
            If the project shares rows.
        ExchangeError
            BUSY or POLICY_INVALID.
        """
        if self.project.sharing is None:
            raise AgreementError(
                f"Project {self.project.name!r} shares rows, where each share stands by itself: tell the analyst to "
                "remove it. `datacollab party forget` removes the map."
            )
        with self._locked():
            ledger = ledger_of(self._files, self.policy, self.key)
            return withdraw(self._files, self._own, ledger, self.project, self.name)

    def _prepared_sum(self, policy: Policy, anchor: Anchor, table: Any, where: str | None, **left: Any) -> PreparedSum:
        batches = self._encoded_batches(table, where)
        return prepare_sum(self.project, policy, self.name, batches, anchor, self._files, self._own, **left)

    def _encoded_batches(self, table: Any, where: str | None) -> Iterator[EncodedTable]:
        """Encode a file in batches of rows, so that it need not fit into memory; a frame is one batch."""
        if not isinstance(table, str | os.PathLike):
            yield self.encoded(table, where=where)
            return
        before, where = Adjustments(), where or os.fspath(table)
        for frame in table_batches(Path(table), batch_rows=_BATCH_ROWS, project=self.project):
            encoded = encode_table(self.project, frame, where=where, first_row=before.n_rows, before=before)
            before = encoded.adjusted
            yield encoded

    def _share_sums(
        self,
        table: Any,
        approve: Callable[[Any], str | None],
        where: str | None,
        options: dict[str, Any],
        withdrawals: Sequence[Path],
        without: Sequence[str],
    ) -> Path:
        """Have sums approved and released; or send those that were released again."""
        assert self.project.sharing is not None
        if meant := sorted(name for name in _OF_ROWS if options.get(name) not in (None, False)):
            raise AgreementError(
                f"Project {self.project.name!r} shares sums, which have no {', '.join(meant)}. Leave that out."
            )
        policy = self.policy
        ledger = ledger_of(self._files, policy, self.key)
        with self._locked():
            closed = self.project.digest in ledger.closed
            if not closed and (sent := send_again(self._files, self._own, self.project)) is not None:
                return sent
        self.project.check_deadline(datetime.now(UTC).date())
        anchor = self.anchor
        said = [read_withdrawal(read_regular(file), where=str(file)) for file in map(Path, withdrawals)]
        prepared = self._prepared_sum(policy, anchor, table, where, withdrawals=said, without=without)
        refuse(prepared.reasons)
        approved_by = self._approved(approve, prepared.summary, policy)
        with self._locked():
            self._check_unchanged(anchor)
            if (sent := send_again(self._files, self._own, self.project)) is not None:
                return sent
            return commit_sum(
                self._files,
                self._own,
                ledger,
                prepared,
                project=self.project,
                entry={"approved_by": approved_by, "policy": policy.digest},
            )

    def _approved(self, approve: Callable[[Any], str | None], summary: Any, policy: Policy) -> str:
        """Who approves; raised where nobody does who may."""
        approved_by = approve(summary)
        if not approved_by:
            raise ExchangeError(
                "NOT_APPROVED",
                f"Nobody has approved the share of party {self.name!r}; nothing left. Look at what would leave, and "
                "run the command again with --approve.",
            )
        policy.check_approver(approved_by)
        return approved_by

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
        """The last share; refused where there is one, unless again, and where its map was forgotten."""
        self._check_not_forgotten()
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
            "all the same, but none with an epsilon, which is promised for one draw alone.",
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
        prepared = prepare(
            self.project, policy, self.name, encoded, anchor, **self._completed(encoded, policy, options)
        )
        size = len(self._share_file(prepared, anchor, "", _digest_of(earlier)))
        date = None if earlier is None else earlier["time"][:10]
        return replace(prepared, summary=replace(prepared.summary, n_bytes=size, earlier_share=date))

    def _completed(self, encoded: EncodedTable, policy: Policy, options: dict[str, Any]) -> dict[str, Any]:
        most = min(
            largest_possible(self.project, policy, encoded), usual_components(self.project.n_free, self.project.task)
        )
        chosen = {name: value for name, value in options.items() if value is not None}
        return {"n_components": most, "standardize": True, **chosen}

    def _share_file(self, prepared: Prepared, anchor: Anchor, approved_by: str, supersedes: str | None) -> bytes:
        facts = share_facts(prepared, self.project, anchor, supersedes=supersedes, log_head=self.log.head)
        return share_file(prepared.share, self.project, self.key, facts | {"approved_by": approved_by})

    def __repr__(self) -> str:
        return f"PartyFolder({os.fspath(self.path)!r}, party={self.name!r}, project={self.project.name!r})"


def _digest_of(share: dict[str, Any] | None) -> str | None:
    return None if share is None else str(share["facts"]["digest"])
