"""Share rows: read a table, encode it, apply the plan, have it approved, and put the message into the outbox."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...anchor import anchor_fit, find_private_rows
from ...bundle import pack, seal, unpack
from ...errors import ExchangeError, ObfuscationError, PrivateRowsWarning, SuppressedRowsWarning
from ...party import UNDEFENDED, Party, SharingPlan
from ...party._release import RowDigests
from ...share import SHARE_KIND, Share, share_contents
from ..log import CHAIN_START
from ..project import Anchor, EncodedTable, Project, encode_table, read_table, usual_components
from ._commit import check_unchanged, commit_share, last_share, locked, settle
from ._folder import SEALED, Folder, OwnRows, check_not_forgotten, check_shares_rows, state_of
from ._policy import Policy
from ._release import (
    ReleaseSummary,
    crafted_anchor,
    not_row_wise,
    reasons_against,
    reasons_before,
    refuse,
    release_summary,
    undefended_rows,
)
from ._risk import RiskFigures, risk_figures


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A share that has not left, and what speaks against it.

    Attributes
    ----------
    party : Party
        Fitted.
    share : Share
    order : ndarray of shape (n_rows,)
        Position in the table of each row that would leave, see `Party.share_with_order`.  It stays.
    plan : SharingPlan
    summary : ReleaseSummary
    reasons : list of ExchangeError
        Why it must not leave; empty if it may.
    own : OwnRows
        The rows themselves, for the party's own disk.
    message : tuple of (dict, dict)
        Facts and members of the file, without what is known only when it leaves.
    """

    party: Party
    share: Share
    order: NDArray[np.intp] = field(repr=False)
    plan: SharingPlan
    summary: ReleaseSummary
    reasons: list[ExchangeError]
    own: OwnRows = field(repr=False)
    message: tuple[dict[str, Any], dict[str, bytes]] = field(default_factory=lambda: ({}, {}), repr=False)


def encoded(folder: Folder, table: Any, *, where: str | None = None) -> EncodedTable:
    """Encode a table, a file or a DataFrame with targets, as the project's matrix; errors call it `where`."""
    if isinstance(table, str | os.PathLike):
        where, table = where or os.fspath(table), read_table(Path(table), project=folder.project)
    return encode_table(folder.project, table, where=where or "the table")


def plan_of(project: Project, policy: Policy, n_rows: int, options: dict[str, Any]) -> SharingPlan:
    """Complete options by project, policy and the size of the table."""
    task = project.task
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


def prepare(
    folder: Folder,
    table: Any,
    *,
    where: str | None = None,
    **options: Any,
) -> Prepared:
    """Do all that `share` does but let it leave.

    Parameters
    ----------
    folder : Folder
    table, where
        As in `encoded`.
    **options
        As for `datacollab.party.SharingPlan.of`, with the default "groups" on standardised columns; and of the attacks:
        `audit`, False for none, `time_budget`, seconds after which none is begun, and `progress`, called with a line
        before each.

    Raises
    ------
    ValueError
        If options are unknown, or exclude one another.
    ExchangeError
        Of the kinds "schema", "state" and "policy".
    ObfuscationError
        If the obfuscator cannot be fitted.
    """
    check_shares_rows(folder.project)
    settle(folder)
    return _prepared(folder, folder.policy, folder.anchor, table, where, options, last_share(folder))


def share_rows(
    folder: Folder,
    table: Any,
    *,
    approve: Callable[[Any], str | None],
    again: bool = False,
    undefended: bool = False,
    where: str | None = None,
    **options: Any,
) -> Path:
    """Obfuscate the table, have it approved, and put the share into the outbox; see `PartyFolder.share`."""
    project = folder.project
    project.check_deadline(datetime.now(UTC).date())
    if options.get("preset") == UNDEFENDED and not undefended:
        raise undefended_rows(folder.name, options.get("obfuscator") or "pca")
    again = again and options.get("epsilon") is None  # A promise is for one draw.
    with locked(folder):
        earlier = _replaceable(folder, again)
    policy, anchor = folder.policy, folder.anchor
    prepared = _prepared(folder, policy, anchor, table, where, options, earlier)
    refuse(prepared.reasons)
    state, members = state_of(prepared.party, prepared.share, anchor, prepared.own)
    approved_by = approved(folder, policy, approve, prepared.summary)
    # Attacks and approvers take their time, in which other commands may work here.
    with locked(folder):
        check_unchanged(folder, anchor)
        supersedes = _digest_of(_replaceable(folder, again))
        data = _packed(folder, prepared, supersedes, approved_by, folder.log.head)
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
            **_figures(prepared.summary),
        }
        state |= {"share_digest": share_digest, "project_digest": project.digest, "entry": entry}
        return commit_share(folder, data, facts=state, members=members)


def shared(folder: Folder) -> str | None:
    """Return the identity of the last share in this project, also after a command was interrupted."""
    with locked(folder):
        return _digest_of(last_share(folder))


def approved(folder: Folder, policy: Policy, approve: Callable[[Any], str | None], summary: Any) -> str:
    """Return who approves, or raise NOT_APPROVED."""
    approved_by = approve(summary)
    if not approved_by:
        raise ExchangeError(
            "NOT_APPROVED",
            f"Nobody has approved the share of party {folder.name!r}; nothing left. Look at what would leave, and "
            "run the command again with --approve.",
        )
    policy.check_approver(approved_by)
    return approved_by


def _prepared(
    folder: Folder,
    policy: Policy,
    anchor: Anchor,
    table: Any,
    where: str | None,
    options: dict[str, Any],
    earlier: dict[str, Any] | None,
) -> Prepared:
    project, rows = folder.project, encoded(folder, table, where=where)
    attacks = {name: options[name] for name in ("audit", "time_budget", "progress") if name in options}
    plan = plan_of(project, policy, rows.n_rows, {name: options[name] for name in options if name not in attacks})
    prepared = prepare_rows(project, policy, folder.name, rows, anchor, plan, **attacks)
    facts, members = _message(prepared.share, project)
    facts |= {"anchor_commitment": anchor.commitment(project), "row_order": prepared.summary.row_order}
    prepared = replace(prepared, message=(facts | {"party": folder.name}, members))
    size = len(_packed(folder, prepared, _digest_of(earlier), "", CHAIN_START))
    date = None if earlier is None else earlier["time"][:10]
    return replace(prepared, summary=replace(prepared.summary, n_bytes=size, earlier_share=date))


def prepare_rows(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    plan: SharingPlan,
    *,
    audit: bool = True,
    time_budget: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Prepared:
    """Obfuscate by a plan, attack the result, and compare it with policy and project.  Nothing is written.

    With a promise, rows that equal an anchor row are left out one by one, and attacks are made on another draw than the
    one that would leave: they inform, and decide nothing.  Nor is the anchor compared with own rows.
    """
    assert encoded.target is not None
    taken = np.arange(encoded.n_rows)
    if plan.has_promise:
        taken = np.flatnonzero(~RowDigests(anchor.rows).are_in(encoded.X))
    X, y = encoded.X[taken], encoded.target[taken]
    n_private = find_private_rows(anchor.rows, X).size if len(X) else 0
    try:
        with warnings.catch_warnings():
            # The summary says both.
            warnings.simplefilter("ignore", SuppressedRowsWarning)
            warnings.simplefilter("ignore", PrivateRowsWarning)
            party = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y)
            share, order = party.share_with_order(anchor.rows, anchor.target)
    except ObfuscationError:
        counts = {"n_rows": len(X), "n_anchors": len(anchor.rows), "n_private_in_anchor": n_private}
        for reason in reasons_before(name, plan, policy, project, **counts):
            raise reason from None
        raise
    risk: RiskFigures | None = None
    alone = list(not_row_wise(party, X if plan.fit_on_anchor and not plan.has_promise else anchor.rows))
    if audit and policy.audit != "off":
        attacked = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y) if plan.has_promise else party
        risk = risk_figures(
            attacked, X, anchor.rows, y=y, anchor_target=anchor.target, time_budget=time_budget, progress=progress
        )
    summary = release_summary(project, policy, plan, party, share, encoded, anchor, risk, n_private)
    order = taken[order]
    return Prepared(
        party=party,
        share=share,
        order=order,
        plan=plan,
        summary=summary,
        reasons=[
            *reasons_against(summary, policy, project),
            *([] if plan.has_promise else crafted_anchor(name, anchor_fit(anchor.rows, X))),
            *alone,
        ],
        own=OwnRows(
            X=encoded.X,
            target=encoded.target,
            order=order if share.one_to_one else None,
            n_shared=len(share.target),
        ),
    )


def _message(share: Share, project: Project) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a share's file, sealed to the analyst if the project says so."""
    facts, members = share_contents(share)
    facts |= {"task": project.task.kind, "project": project.name, "project_digest": project.digest}
    if project.seal_shares:
        inner = pack(SHARE_KIND, facts, members)
        purpose = f"share of {share.party} in {project.digest}"
        members = {SEALED: seal(inner, [project.analyst], purpose=purpose)}
        # Names of the targets are for the analyst, like the targets.
        facts = {name: value for name, value in facts.items() if name != "target"}
    return facts, members


def _packed(folder: Folder, prepared: Prepared, supersedes: str | None, approved_by: str, log_head: str) -> bytes:
    facts, members = prepared.message
    last = {"supersedes": supersedes, "log_head": log_head, "approved_by": approved_by}
    return pack(SHARE_KIND, facts | last, members, key=folder.key)


def _figures(summary: ReleaseSummary) -> dict[str, Any]:
    """Return what the log says of a share: counts, and the results of attacks."""
    risk = summary.risk
    found = (
        {} if risk is None else {name: getattr(risk, name) for name in ("linkage", "reidentification", "membership")}
    )
    return {
        "n_rows": summary.n_rows,
        "n_components": summary.n_components,
        "n_anchors": summary.n_anchors,
        "obfuscator": summary.obfuscator,
        "defences": list(summary.defences),
        "row_order": summary.row_order,
        "adjusted": summary.adjusted,
        **{name: value for name, value in found.items() if value is not None},
    }


def _replaceable(folder: Folder, again: bool) -> dict[str, Any] | None:
    """Return the last share; refuse if there is one, unless again, and if its map was forgotten."""
    check_not_forgotten(folder)
    last, file = last_share(folder), folder.files.share(folder.name)
    if last is None or again:
        return last
    found = "has shared already"
    if file.exists():
        found += f": {file}. Send that file."
    else:
        found += f", but {file} is not there any more. If the analyst has it, there is nothing to do."
    if not folder.files.state.exists():
        found += f" {folder.files.state} is lost, without which no model can be used: restore it from a backup."
    raise ExchangeError(
        "ALREADY_SHARED",
        f"Party {folder.name!r} {found} A second share of the same rows tells the analyst more; --again makes one "
        "all the same, but none with an epsilon, which is promised for one draw alone.",
    )


def _digest_of(share: dict[str, Any] | None) -> str | None:
    return None if share is None else str(share["facts"]["digest"])
