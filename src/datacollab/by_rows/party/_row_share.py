"""Share rows: obfuscate them, attack the result, have it approved, and put the share into the outbox."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...agreement import Anchor, Project, usual_components
from ...anchor import anchor_fit, equal_rows
from ...bundle import pack, seal, unpack
from ...errors import AgreementError, ExchangeError, ObfuscationError, PrivateRowsWarning, SuppressedRowsWarning
from ...folder.party import (
    SEALED,
    AtHome,
    Folder,
    PartyWay,
    Policy,
    ask_approver,
    check_not_forgotten,
    check_unchanged,
    commit_share,
    digest_of,
    encode,
    judge_anchor_fit,
    last_share,
    load_anchor,
    locked,
    refuse,
)
from ...party import UNDEFENDED, Party, SharingPlan
from ...party._defended_rows import RowDigests
from ...share import SHARE_KIND, Share, share_contents
from ...table import EncodedTable
from ._row_model import distil, forget, install_rows, rows_at_home
from ._rows_summary import (
    FIGURES,
    Attacks,
    ReleaseSummary,
    judge_row_wise,
    no_defence,
    reasons_against,
    reasons_before,
    release_summary,
    risk_figures,
)
from ._stored_party import OwnRows, state_of

_LOGGED = ("n_rows", "n_components", "n_anchors", "obfuscator", "row_order", "adjusted")
"""Figures of a share that the log has, besides the results of attacks."""
_OVERHEAD_BYTES = 3000
"""Signatures, seals and facts of a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A share that has not left, and the reasons against it.

    `order` is the position in the table of each row that would leave, and `own` the rows themselves: both stay.
    `message` are facts and members of the share alone, which are packed and sealed only when it leaves, and `basis`
    are digests of the project, the policy and the anchor.
    """

    party: Party
    share: Share
    order: NDArray[np.intp] = field(repr=False)
    plan: SharingPlan
    summary: ReleaseSummary
    reasons: list[ExchangeError]
    own: OwnRows = field(repr=False)
    message: tuple[dict[str, Any], dict[str, bytes]] = field(default_factory=lambda: ({}, {}), repr=False)
    basis: tuple[str, ...] = field(default=(), repr=False)

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that mean this plan."""
        return self.plan.options

    @property
    def is_undefended(self) -> bool:
        """Whether the rows themselves would leave."""
        return not self.plan.defences


class RowsAtParty(PartyWay):
    """Rows, at a party: obfuscated, attacked and shared; the analyst's model is combined with own ones."""

    may_share_again: ClassVar[bool] = True

    def prepare(self, table: Any, *, where: str | None, options: dict[str, Any]) -> Prepared:
        """Do all that `share` does but let it leave; see `PartyFolder.prepare`."""
        folder = self.folder
        return self._prepare(folder.policy, folder.anchor, table, where, options, last_share(folder))

    def share(
        self,
        table: Any,
        *,
        approve: Callable[[Any], str | None],
        where: str | None,
        again: bool,
        undefended: bool,
        prepared: Prepared | None,
        options: dict[str, Any],
        **of_sums: Any,
    ) -> Path:
        """Obfuscate the table, have it approved, and put the share into the outbox; see `PartyFolder.share`."""
        folder = self.folder
        project = folder.project
        # Refused before the table is read, if it is refused in any case.
        project.check_deadline(datetime.now(UTC).date())
        if options.get("preset") == UNDEFENDED and not undefended:
            raise no_defence(folder.name, options.get("obfuscator") or "pca")
        again = again and options.get("epsilon") is None  # A promise is for one draw.
        with locked(folder):
            earlier = _replaceable(folder, again)
        policy = folder.policy
        anchor = folder.anchor
        if prepared is None:
            prepared = self._prepare(policy, anchor, table, where, options, earlier)
        elif prepared.basis != _basis(project, policy, anchor):
            raise ExchangeError(
                "NOT_APPROVED",
                f"Party {folder.name!r}: the project, the policy or the anchor changed after this share was looked at. "
                "Look at what would leave once more.",
            )
        refuse(prepared.reasons)
        state, members = state_of(prepared.party, prepared.share, anchor, prepared.own)
        approved_by = ask_approver(policy, approve, prepared.summary)
        # Attacks and approvers take their time, in which other commands may work here.
        with locked(folder):
            check_unchanged(folder, anchor)
            supersedes = digest_of(_replaceable(folder, again))
            data = _pack(folder, prepared, anchor, supersedes, approved_by)
            share_digest = unpack(data, signed_by=folder.key.public).digest
            entry = {
                "digest": share_digest,
                "bytes": len(data),
                "approved_by": approved_by,
                "supersedes": supersedes,
                "project_digest": project.digest,
                "policy": policy.digest,
                # The analyst knows the log's head before this entry, and could test guesses on the next one.
                "nonce": secrets.token_hex(16),
                **_figures_for_log(prepared.summary),
            }
            state |= {"share_digest": share_digest, "project_digest": project.digest, "entry": entry}
            return commit_share(folder, data, facts=state, members=members)

    def _prepare(
        self,
        policy: Policy,
        anchor: Anchor,
        table: Any,
        where: str | None,
        options: dict[str, Any],
        earlier: dict[str, Any] | None,
    ) -> Prepared:
        """Do all that `share` does but let rows leave; `earlier` is the last share."""
        folder = self.folder
        project = folder.project
        rows = encode(folder, table, where=where)
        attacks = {name: options[name] for name in ("audit", "time_budget", "progress") if name in options}
        plan = plan_of(project, policy, rows.n_rows, {name: options[name] for name in options if name not in attacks})
        prepared = prepare_rows(project, policy, folder.name, rows, anchor, plan, Attacks(**attacks))
        facts, members = share_contents(prepared.share)
        size = sum(map(len, members.values())) + _OVERHEAD_BYTES
        summary = replace(prepared.summary, n_bytes=size)
        if earlier is not None:
            summary = replace(summary, earlier_share=earlier["time"][:10])
        return replace(prepared, summary=summary, message=(facts, members), basis=_basis(project, policy, anchor))

    def withdraw(self) -> Path:
        """Raise an AgreementError: there is no run to leave."""
        raise AgreementError(
            f"Project {self.folder.project.name!r} shares rows, where each share stands by itself: tell the analyst to "
            "remove it. `datacollab party forget` removes the map."
        )

    def check_anchor(self, commitment: str) -> None:
        """Refuse another anchor than the one that the party has shared with."""
        folder = self.folder
        project = folder.project
        # The map f_k and its share were made beside the anchor of then.
        if folder.files.state.exists() and commitment != load_anchor(folder, project).commitment(project):
            raise ExchangeError(
                "ALREADY_THERE",
                f"{folder.path} has shared with another anchor than the one in this file. If all parties are to share "
                "again with a new one, use a new folder with the same keys.",
            )

    def install(self, model_file: Path, *, older: bool, **options: Any) -> dict[str, Any]:
        """Install a model for rows, and combine it with own models; see `PartyFolder.install`."""
        return install_rows(self.folder, model_file, older=older, **options)

    def at_home(self) -> AtHome:
        """Return the sides of the common model, of own models, and of the distilled one."""
        return rows_at_home(self.folder)

    def distil(self, predictions_file: Path, tree: int | None) -> dict[str, Any]:
        """Distil a model from the analyst's anchor predictions; see `PartyFolder.distil`."""
        return distil(self.folder, predictions_file, tree)

    def forget(self) -> None:
        """Destroy the map f_k and all that was made by it; see `PartyFolder.forget`."""
        forget(self.folder)

    def check_explains(self) -> None:
        """Accept: there is a model behind a map f_k."""


def _figures_for_log(summary: ReleaseSummary) -> dict[str, Any]:
    figures = {name: getattr(summary, name) for name in _LOGGED} | {"defences": list(summary.defences)}
    if summary.risk is not None:
        risk = {name: summary.risk.of(name) for name in FIGURES}
        figures |= {name: value for name, value in risk.items() if value is not None}
    return figures


def plan_of(project: Project, policy: Policy, n_rows: int, options: dict[str, Any]) -> SharingPlan:
    """Complete options by project, policy and the size of the table."""
    task = project.task
    # Centred, n rows span n - 1 dimensions. Some maps find one fewer.
    largest = max(1, min(project.n_features, project.max_components, policy.max_components, n_rows - 2))
    chosen = {
        "n_components": min(largest, usual_components(project.n_free, task)),
        "standardize": True,
        **{name: value for name, value in options.items() if value is not None},
    }
    return SharingPlan.of(
        **chosen,
        is_regression=task.kind == "regression",
        target_kind=task.target_kind,
        time_step=task.time_step,
        largest=largest,
    )


def _basis(project: Project, policy: Policy, anchor: Anchor) -> tuple[str, ...]:
    return project.digest, policy.digest, anchor.commitment(project)


def prepare_rows(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    plan: SharingPlan,
    attacks: Attacks,
) -> Prepared:
    """Obfuscate by a plan, attack the result, and compare it with policy and project.  Nothing is written."""
    assert encoded.target is not None
    taken = np.arange(encoded.n_rows)
    if plan.has_promise:
        # One by one: leaving a row out because of the others would make the promise depend on these.
        taken = np.flatnonzero(~RowDigests(anchor.rows).are_in(encoded.X))
    X = encoded.X[taken]
    y = encoded.target[taken]
    in_anchor = equal_rows(anchor.rows, X)
    try:
        with warnings.catch_warnings():
            # The summary says both.
            warnings.simplefilter("ignore", SuppressedRowsWarning)
            warnings.simplefilter("ignore", PrivateRowsWarning)
            party = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y)
            share, order = party.share_with_order(anchor.rows, anchor.full_target)
    except ObfuscationError:
        # A reason that people can do something about comes first, such as too few rows for any map.
        for reason in reasons_before(name, plan, policy, project, len(X), len(anchor.rows), in_anchor):
            raise reason from None
        raise
    order = taken[order]
    unseen = X if plan.fit_on_anchor and not plan.has_promise else anchor.rows
    not_row_wise = list(judge_row_wise(party, unseen))
    summary = release_summary(project, policy, plan, party, share, encoded, anchor, in_anchor)
    if attacks.audit and policy.audit != "off":
        attacked = party
        if plan.has_promise:
            # Another draw than the one that would leave: so attacks inform, and decide nothing.
            attacked = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y)
        limits: dict[str, Any] = {"time_budget": attacks.time_budget, "progress": attacks.progress}
        risk = risk_figures(attacked, X, anchor.rows, y=y, anchor_target=anchor.full_target, **limits)
        summary = replace(summary, risk=risk)
    reasons = reasons_against(summary, policy, project)
    # With a promise the anchor is not compared with own rows: whether a draw leaves would tell of them.
    if not plan.has_promise:
        reasons += judge_anchor_fit(name, anchor_fit(anchor.rows, X), policy)
    own = OwnRows(X=encoded.X, target=encoded.target, order=None, n_shared=len(share.target))
    if share.one_to_one:
        own = replace(own, order=order)
    return Prepared(
        party=party, share=share, order=order, plan=plan, summary=summary, reasons=reasons + not_row_wise, own=own
    )


def _pack(folder: Folder, prepared: Prepared, anchor: Anchor, supersedes: str | None, approved_by: str) -> bytes:
    """Return the file; the folder must be locked."""
    project = folder.project
    facts, members = prepared.message
    facts = facts | {"task": project.task.kind, "project": project.name, "project_digest": project.digest}
    if project.seal_shares:
        inner = pack(SHARE_KIND, facts, members)
        members = {SEALED: seal(inner, [project.analyst], purpose=f"share of {folder.name} in {project.digest}")}
        facts.pop("target", None)  # names of the targets are for the analyst, like the targets
    facts |= {
        "party": folder.name,
        "anchor_commitment": anchor.commitment(project),
        "row_order": prepared.summary.row_order,
        "supersedes": supersedes,
        "log_head": folder.log.head,
        "approved_by": approved_by,
    }
    return pack(SHARE_KIND, facts, members, key=folder.key)


def _replaceable(folder: Folder, again: bool) -> dict[str, Any] | None:
    """Return the last share; refuse if there is one, unless again, and if its map was forgotten."""
    check_not_forgotten(folder)
    last = last_share(folder)
    if last is None or again:
        return last
    file = folder.files.share(folder.name)
    state = "has shared already"
    if file.exists():
        state += f": {file}. Send that file."
    else:
        state += f", but {file} is not there any more. If the analyst has it, there is nothing to do."
    # Sharing again would not help: the model that comes back is of the first share.
    if not folder.files.state.exists():
        state += f" {folder.files.state} is lost, without which no model can be used: restore it from a backup."
    raise ExchangeError(
        "ALREADY_SHARED",
        f"Party {folder.name!r} {state} A second share of the same rows tells the analyst more; --again makes one "
        "all the same, but none with an epsilon, which is promised for one draw alone.",
    )
