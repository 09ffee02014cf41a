"""All that sharing does before anything leaves: for `party check` and `party share` alike."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...anchor import find_private_rows
from ...errors import ExchangeError, ObfuscationError, PrivateRowsWarning, SuppressedRowsWarning
from ...party import Party
from ...share import Share
from ..project import Anchor, EncodedTable, Project
from ._own_rows import OwnRows
from ._policy import Policy
from ._release_check import check_row_wise, reasons_against, reasons_before
from ._release_summary import ReleaseSummary, release_summary
from ._risk import RiskFigures, risk_figures
from ._way import Way, of_task

__all__ = ["Prepared", "largest_possible", "prepare", "prepare_way"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A share that has not left, and what speaks against it.

    Attributes
    ----------
    party : Party
        Fitted.
    share : Share
    order : ndarray of shape (n_rows,) or None
        Position in the table of each row that would leave, see `Party.share_with_order`.  It stays.
    way : Way
        How the rows were obfuscated.
    summary : ReleaseSummary
    reasons : list of ExchangeError
        Why it must not leave; empty where it may.
    own : OwnRows
        The rows themselves, for the party's own disk.
    """

    party: Party
    share: Share
    order: NDArray[np.intp] | None = field(repr=False)
    way: Way
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
    """Obfuscate as the options say, attack the result, and hold it against policy and project; see `prepare_way`.

    Parameters
    ----------
    obfuscator, n_components, preset, standardize, epsilon, group_size, noise, fit_on_anchor
        As in `Way.of`.

    Raises
    ------
    ValueError
        When options are unknown, or exclude one another.
    """
    way = Way.of(
        obfuscator=obfuscator,
        n_components=n_components,
        preset=preset,
        standardize=standardize,
        epsilon=epsilon,
        group_size=group_size,
        noise=noise,
        fit_on_anchor=fit_on_anchor,
        **of_task(project.task),
        largest=largest_possible(project, policy, encoded),
    )
    return prepare_way(
        project, policy, name, encoded, anchor, way, audit=audit, time_budget=time_budget, progress=progress
    )


def prepare_way(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    way: Way,
    *,
    audit: bool = True,
    time_budget: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Prepared:
    """Obfuscate, attack the result, and hold it against policy and project.  Nothing is written.

    Parameters
    ----------
    project : Project
    policy : Policy
    name : str
        Of the party.
    encoded : EncodedTable
        The party's table, with targets.
    anchor : Anchor
    way : Way
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
    ExchangeError
        Where it fails, and the reason is one against sharing.
    ObfuscationError
        Where it fails otherwise.
    """
    X, y = encoded.X, encoded.target
    assert y is not None
    n_private = find_private_rows(anchor.rows, X).size if len(X) else 0
    try:
        with warnings.catch_warnings():
            # The summary says both.
            warnings.simplefilter("ignore", SuppressedRowsWarning)
            warnings.simplefilter("ignore", PrivateRowsWarning)
            party = way.party(name, anchor, shuffle=policy.shuffle).fit(X, y)
            share, order = party.share_with_order(anchor.rows, anchor.target)
    except ObfuscationError:
        n_anchors = len(anchor.rows)
        for reason in reasons_before(
            name, way, policy, project, n_rows=len(X), n_anchors=n_anchors, n_private_in_anchor=n_private
        ):
            raise reason from None
        raise
    not_row_wise = _not_row_wise(party, X if way.fit_on_anchor else anchor.rows)
    risk: RiskFigures | None = None
    if audit and policy.audit != "off":
        risk = risk_figures(
            party, X, anchor.rows, y=y, anchor_target=anchor.target, time_budget=time_budget, progress=progress
        )
    summary = release_summary(
        project,
        party,
        share,
        encoded,
        anchor,
        order=order,
        obfuscator=way.obfuscator,
        n_bytes=share.nbytes,
        risk=risk,
        limits=policy.risk_limits,
        n_private_in_anchor=n_private,
    )
    own = OwnRows(X=X, target=y, order=order if share.one_to_one else None, n_shared=len(share.target))
    reasons = [*reasons_against(summary, policy, project), *not_row_wise]
    return Prepared(party=party, share=share, order=order, way=way, summary=summary, reasons=reasons, own=own)


def largest_possible(project: Project, policy: Policy, encoded: EncodedTable) -> int:
    """The most columns that table, project and policy permit."""
    return max(1, min(project.n_features, project.max_components, policy.max_components, encoded.n_rows - 2))


def _not_row_wise(party: Party, rows: NDArray[np.float64]) -> list[ExchangeError]:
    try:
        check_row_wise(party, rows)
    except ExchangeError as error:
        return [error]
    return []
