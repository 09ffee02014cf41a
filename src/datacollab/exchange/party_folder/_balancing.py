"""Sums by which arms of an effect are compared in raw columns: made once, looked at, and put into the outbox."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...bundle import pack, seal, unpack
from ...errors import AgreementError, DataCollabError, ExchangeError
from ...party import balance_sums
from ...share import BALANCE_KIND, BalanceSums, balance_contents
from ._commit import commit_balance
from ._explaining import Explaining
from ._propensity import open_propensity
from ._share_file import SEALED
from ._stored import load_party

__all__ = ["BalanceRelease", "Balancing"]

_FEW = 5
_ARMS = ("untreated", "treated")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BalanceRelease:
    """What would leave, for whoever approves it.

    Attributes
    ----------
    sums : BalanceSums
        All of it, but for the names below.
    few : tuple of (str, str, int, int)
        Columns of zeros and ones, arms, which of the two, and how many rows have it, where these are fewer than five.
    sealed : bool
        Whether only the analyst can read it.
    """

    sums: BalanceSums
    few: tuple[tuple[str, str, int, int], ...]
    sealed: bool = field(default=False)

    def to_dict(self) -> dict[str, Any]:
        """All figures that would leave, and what to look at, as JSON can hold them."""
        sums = self.sums
        arrays = ("counts", "truncated", "kept", "weights", "squared_weights", "sums", "squares")
        return {
            "party": sums.party,
            "target": sums.target,
            "columns": list(sums.columns),
            **{name: getattr(sums, name).tolist() for name in arrays},
            "few": [list(each) for each in self.few],
            "sealed": self.sealed,
        }

    def to_text(self) -> str:
        """The same in lines."""
        sums, width = self.sums, max(map(len, self.sums.columns))
        lines = [
            f"What would leave party {sums.party}, once, for the analyst{' alone' if self.sealed else ''}:",
            f"  rows: {sums.counts[0]} untreated, {sums.counts[1]} treated",
            f"  sums of weights ({sums.target}): {sums.weights[0]:.6g} and {sums.weights[1]:.6g}; of their squares: "
            f"{sums.squared_weights[0]:.6g} and {sums.squared_weights[1]:.6g}",
            f"  rows whose weights were brought in, lest they stand out: {sums.truncated[0]} and {sums.truncated[1]}",
            "  of each column, in standard deviations from the anchor's mean: sums and sums of squares, untreated and",
            "  treated, first without weights and then with them; and how much of it the representation kept",
        ]
        for j, name in enumerate(sums.columns):
            for v, which in enumerate(("", "weighted")):
                kept = f"{sums.kept[j]:.0%} kept" if v == 0 else ""
                (x0, x1), (xx0, xx1) = sums.sums[v, :, j], sums.squares[v, :, j]
                figures = f"{x0:+.5g}, {x1:+.5g}; {xx0:.5g}, {xx1:.5g}  {kept}"
                lines.append(f"    {'' if v else name:{width}}  {which:8}  {figures}".rstrip())
        lines.append(
            "  the names of the columns, of the party and of who approves it, the time, and which share it is of"
        )
        lines.extend(
            f"Look at this: {name} is {value} in {n} {arm} row{'s' if n != 1 else ''}; whoever has the sums can tell."
            for name, arm, value, n in self.few
        )
        lines.append(
            "Nothing here is differentially private. Weights come from the analyst's model, and what is excluded is "
            "that two sums together rest on fewer than ten rows of an arm."
        )
        return "\n".join(lines)


class Balancing(Explaining):
    """What a party does in its folder after an effect was estimated."""

    def balance(self, propensity_file: Path, *, approve: Callable[[BalanceRelease], str | None]) -> Path:
        """Add up the rows that were shared, by arm, have it approved, and put the sums into the outbox: once.

        Weights that stand out are brought in until no sum rests on few rows; `datacollab.party.balance_sums` says more.

        The rows are those kept in the folder when they were shared, and no other table.

        Parameters
        ----------
        propensity_file : Path
            What the analyst sent for this.
        approve : callable
            Gets what would leave; returns the name of whoever approves it, or None.

        Returns
        -------
        Path
            The file to be sent.

        Raises
        ------
        AgreementError
            When the project has no treatment.
        ExchangeError
            NOT_SHARED, FORGOTTEN, ALREADY_SHARED where sums were made before, WRONG_RECIPIENT, WRONG_SHARE,
            MODEL_MALFORMED, NOT_APPROVED or BUSY.  Nothing left the party.
        ObfuscationError
            When an arm has fewer than ten rows.  Nothing is to be sent then.
        """
        propensity_file = Path(propensity_file)
        task = self.project.task
        if task.kind != "effect":
            raise AgreementError(
                f"Project {self.project.name!r} is of kind {task.kind!r}, which has no arms to compare."
            )
        self._settle()
        self._check_no_balance()
        stored = load_party(self._files, self._own)
        model, bundle = open_propensity(propensity_file, self.project, self.key, self.name, stored.share_digest)
        if stored.own is None:
            raise ExchangeError(
                "STATE_UNSUPPORTED",
                f"{self._files.state} holds no rows: an earlier version wrote it. Share again first.",
            )
        X, treatment = stored.own.X, np.asarray(stored.own.target["treatment"]).astype(np.int64)
        try:
            sums = balance_sums(
                stored.party,
                X,
                treatment,
                model,
                anchor=self.anchor.rows,
                target=str(bundle.facts["target"]),
                columns=self.project.feature_names,
                truncate=True,
            )
        except DataCollabError:
            raise
        # A model that was tampered with may fail in any way, and with words that quote the rows.
        except Exception as error:
            raise ExchangeError(
                "MODEL_MALFORMED",
                f"The propensity in {propensity_file} fails on this party's rows ({type(error).__name__}). Do not use "
                "it, and ask the analyst.",
            ) from None
        found = BalanceRelease(sums=sums, few=_few(X, treatment, sums), sealed=self.project.seal_shares)
        policy = self.policy
        approved_by = approve(found)
        if not approved_by:
            raise ExchangeError(
                "NOT_APPROVED",
                f"Nobody has approved the sums of party {self.name!r}; nothing left. Look at what would leave, and run "
                "the command again with --approve.",
            )
        policy.check_approver(approved_by)
        with self._locked():
            self._check_no_balance()
            if self._logged_share() != stored.share_digest:
                raise ExchangeError("BUSY", f"{self.path} shared again while this command ran. Run it again.")
            facts = {
                "project": self.project.name,
                "project_digest": self.project.digest,
                "share_digest": stored.share_digest,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "approved_by": approved_by,
            }
            data = self._balance_file(sums, facts)
            entry = {
                "digest": unpack(data, signed_by=self.key.public).digest,
                "bytes": len(data),
                "approved_by": approved_by,
                "project_digest": self.project.digest,
                "share": stored.share_digest,
                "propensity": bundle.digest,
                "nonce": secrets.token_hex(16),
            }
            return commit_balance(self._files, self.name, data, entry)

    def _balance_file(self, sums: BalanceSums, facts: Mapping[str, Any]) -> bytes:
        own, members = balance_contents(sums)
        if self.project.seal_shares:
            purpose = f"balance of {self.name} in {self.project.digest}"
            members = {SEALED: seal(pack(BALANCE_KIND, own, members), [self.project.analyst], purpose=purpose)}
            own = {"party": self.name}
        return pack(BALANCE_KIND, {**own, **facts}, members, key=self.key)

    def _check_no_balance(self) -> None:
        made = [entry["facts"] for entry in self.log.entries() if entry["event"] == "balance"]
        # The file alone says so where the log was lost.
        there = self._files.balance(self.name).exists()
        if there or any(facts.get("project_digest") == self.project.digest for facts in made):
            raise ExchangeError(
                "ALREADY_SHARED",
                f"Party {self.name!r} has made its sums already: {self._files.balance(self.name)}. Send that file. No "
                "others are made: two that differ by a row, or by weights, tell more than one.",
            )


def _few(X: FloatArray, treatment: Any, sums: BalanceSums) -> tuple[tuple[str, str, int, int], ...]:
    """Of columns of zeros and ones, counts of either in an arm that are small but not none."""
    found = []
    for j, name in enumerate(sums.columns):
        if not np.isin(X[:, j], (0.0, 1.0)).all():
            continue
        for arm, words in enumerate(_ARMS):
            for value in (0, 1):
                n = int((X[treatment == arm, j] == value).sum())
                if 0 < n < _FEW:
                    found.append((name, words, value, n))
    return tuple(found)
