"""What would be shared, and the file that it becomes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...anchor import anchor_fit, find_private_rows
from ...bundle import KeyPair, pack, seal
from ...errors import ExchangeError, ObfuscationError, PrivateRowsWarning, SuppressedRowsWarning
from ...party import Party, SharingPlan
from ...party._release import RowDigests
from ...share import SHARE_KIND, Share, share_contents
from ..project import Anchor, EncodedTable, Project, Task
from ._policy import Policy
from ._release_check import check_row_wise, crafted_anchor, reasons_against, reasons_before
from ._release_summary import ReleaseSummary, release_summary
from ._risk import RiskFigures, risk_figures
from ._rows_only import check_shares_rows
from ._stored import OwnRows

__all__ = ["Prepared", "figures", "largest_possible", "prepare", "refuse", "share_facts", "share_file"]


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
        How the rows were obfuscated.
    summary : ReleaseSummary
    reasons : list of ExchangeError
        Why it must not leave; empty where it may.
    own : OwnRows
        The rows themselves, for the party's own disk.
    """

    party: Party
    share: Share
    order: NDArray[np.intp] = field(repr=False)
    plan: SharingPlan
    summary: ReleaseSummary
    reasons: list[ExchangeError]
    own: OwnRows = field(repr=False)


def prepare(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    *,
    obfuscator: str | None = None,
    n_components: int | None = None,
    preset: str | None = None,
    standardize: bool | None = None,
    epsilon: float | None = None,
    group_size: int | None = None,
    noise: float | None = None,
    fit_on_anchor: bool = False,
    audit: bool = True,
    time_budget: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Prepared:
    """Obfuscate as the options say, attack the result, and hold it against policy and project.  Nothing is written.

    Parameters
    ----------
    project : Project
    policy : Policy
    name : str
        Of the party.
    encoded : EncodedTable
        The party's table, with targets.
    anchor : Anchor
    obfuscator, n_components, preset, standardize, epsilon, group_size, noise, fit_on_anchor
        As in `SharingPlan.of`.
    audit : bool, default=True
        Whether attacks are made, where the policy does not say "off".
    time_budget : float, optional
        Seconds after which no attack is begun.
    progress : callable, optional
        Called with a line before each attack.

    Returns
    -------
    Prepared

    Raises
    ------
    ValueError
        When options are unknown, or exclude one another.
    ExchangeError
        Where it fails, and the reason is one against sharing.
    ObfuscationError
        Where it fails otherwise.

    Notes
    -----
    With an epsilon, rows that equal an anchor row are left out one by one, and attacks are made on another draw than
    the one that would leave: what they find informs, and decides nothing.  Nor is the anchor compared with own rows.
    """
    plan = SharingPlan.of(
        obfuscator=obfuscator,
        n_components=n_components,
        preset=preset,
        standardize=standardize,
        epsilon=epsilon,
        group_size=group_size,
        noise=noise,
        fit_on_anchor=fit_on_anchor,
        **_of_task(project.task),
        largest=largest_possible(project, policy, encoded),
    )
    check_shares_rows(project)
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
        n_anchors = len(anchor.rows)
        for reason in reasons_before(
            name, plan, policy, project, n_rows=len(X), n_anchors=n_anchors, n_private_in_anchor=n_private
        ):
            raise reason from None
        raise
    not_row_wise = _not_row_wise(party, X if plan.fit_on_anchor and not plan.has_promise else anchor.rows)
    risk: RiskFigures | None = None
    if audit and policy.audit != "off":
        attacked = party if not plan.has_promise else plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y)
        risk = risk_figures(
            attacked, X, anchor.rows, y=y, anchor_target=anchor.target, time_budget=time_budget, progress=progress
        )
    summary = release_summary(
        project,
        party,
        share,
        encoded,
        anchor,
        obfuscator=plan.obfuscator,
        n_bytes=share.nbytes,
        risk=risk,
        limits=policy.risk_limits,
        n_private_in_anchor=n_private,
    )
    order = taken[order]
    places = order if share.one_to_one else None
    own = OwnRows(X=encoded.X, target=encoded.target, order=places, n_shared=len(share.target))
    crafted = [] if plan.has_promise else crafted_anchor(name, anchor_fit(anchor.rows, X))
    reasons = [*reasons_against(summary, policy, project), *crafted, *not_row_wise]
    return Prepared(party=party, share=share, order=order, plan=plan, summary=summary, reasons=reasons, own=own)


def _of_task(task: Task) -> dict[str, Any]:
    """Return what a plan depends on in the targets."""
    return {"is_regression": task.kind == "regression", "target_kind": task.target_kind, "time_step": task.time_step}


def largest_possible(project: Project, policy: Policy, encoded: EncodedTable) -> int:
    """The most columns that table, project and policy permit."""
    return max(1, min(project.n_features, project.max_components, policy.max_components, encoded.n_rows - 2))


def _not_row_wise(party: Party, rows: NDArray[np.float64]) -> list[ExchangeError]:
    try:
        check_row_wise(party, rows)
    except ExchangeError as error:
        return [error]
    return []


SEALED = "sealed.bin"


def share_file(share: Share, project: Project, key: KeyPair, facts: Mapping[str, Any]) -> bytes:
    """A signed `.dcshare` file, its arrays sealed to the analyst where the project wants that.

    Parameters
    ----------
    share : Share
    project : Project
    key : KeyPair
        The party's.
    facts : mapping of str to object
        What the manifest says besides what follows from the arrays.
    """
    own_facts, members = share_contents(share)
    own_facts |= {"task": project.task.kind, "project": project.name, "project_digest": project.digest}
    if project.seal_shares:
        inner = pack(SHARE_KIND, own_facts, members)
        purpose = f"share of {share.party} in {project.digest}"
        members = {SEALED: seal(inner, [project.analyst], purpose=purpose)}
        # What the targets are called is for the analyst, like the targets.
        own_facts = {name: value for name, value in own_facts.items() if name != "target"}
    return pack(SHARE_KIND, {**own_facts, **facts}, members, key=key)


def share_facts(
    prepared: Prepared, project: Project, anchor: Anchor, *, supersedes: str | None, log_head: str
) -> dict[str, Any]:
    """What the manifest says of how and when the share was made.

    Parameters
    ----------
    prepared : Prepared
    project : Project
    anchor : Anchor
    supersedes : str or None
        Identity of the share that it takes the place of.
    log_head : str
        Of the party's log.
    """
    return {
        "party": prepared.summary.party,
        "anchor_commitment": anchor.commitment(project),
        "row_order": prepared.summary.row_order,
        "supersedes": supersedes,
        "log_head": log_head,
    }


def figures(summary: ReleaseSummary) -> dict[str, Any]:
    """What the log says of what would leave: counts, and what attacks achieved."""
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


def refuse(reasons: Sequence[ExchangeError]) -> None:
    """Raise the first of the reasons against sharing, and say how many more there are."""
    if not reasons:
        return
    first, *others = reasons
    count = "is 1 more reason" if len(others) == 1 else f"are {len(others)} more reasons"
    more = f" There {count} against it: run `datacollab party check`." if others else ""
    raise ExchangeError(first.code, f"{first}{more}")
