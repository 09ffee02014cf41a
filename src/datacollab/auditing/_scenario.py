"""What attacker and auditor hold: the rows under attack, and all that the attacks are run and scored with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, RepresentationError
from ..party import Party
from ..privacy import class_means
from ..privacy._checks import check_rows
from ..share import Share

__all__ = ["Scenario", "make_scenario", "split_public"]

CANDIDATES = 100
"""Originals among which the attacker looks for the right one: rates are then of the same kind at every party."""
OPEN_WORLD = 10
"""Candidates in the open world, in multiples of those."""
_OUTSIDERS = 500
_LONGEST_LEAK = 2000
_UNEVEN = 3.0
"""Range of a column, in multiples of the median one, from which all columns are put on one scale."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario:
    """One party's rows, known to the auditor alone, and what attackers may hold.

    All raw rows are in the units of `scale`.

    Attributes
    ----------
    party : str or int
    table : ndarray of shape (n_samples, n_features)
        All rows of the party, in its own units.
    X : ndarray of shape (n_attacked, n_features)
        Originals of the rows under attack.
    index : ndarray of shape (n_attacked,)
        Their positions in the party's table.
    Z : ndarray of shape (n_attacked, n_intermediate)
        What is shared of them.
    target : ndarray of shape (n_attacked,)
    groups : list of ndarray
        The attacked rows in groups, each of which is a closed world.
    shared, shared_target : ndarray
        The whole share, with all rows.
    anchor, anchor_representation : ndarray
    anchor_target : ndarray or None
    public : ndarray of shape (n_public, n_features) or None
        Rows of the same kind that the attacker holds.
    public_target : ndarray or None
    outsiders : ndarray of shape (n_outsiders, n_features) or None
        Rows of the same kind that nobody holds: non-members, and decoys.
    control_representation, control_target : ndarray or None
        The first outsiders through the party's f_k; only without defences.
    scale : ndarray of shape (n_features,)
    """

    party: PartyName
    table: FloatArray
    X: FloatArray
    index: NDArray[np.intp]
    Z: FloatArray
    target: NDArray[Any]
    groups: list[NDArray[np.intp]]
    shared: FloatArray
    shared_target: NDArray[Any]
    anchor: FloatArray
    anchor_representation: FloatArray
    anchor_target: NDArray[Any] | None
    public: FloatArray | None
    public_target: NDArray[Any] | None
    outsiders: FloatArray | None
    control_representation: FloatArray | None
    control_target: NDArray[Any] | None
    scale: FloatArray

    @property
    def decoys(self) -> FloatArray:
        """Rows that stand among the originals in the open world."""
        others = [rows for rows in (self.outsiders, self.public) if rows is not None]
        wanted = (OPEN_WORLD - 1) * len(self.groups[0])
        return np.vstack(others)[:wanted] if others else self.X[:0]

    @property
    def label_only(self) -> FloatArray:
        """What an attacker answers who knows targets and the domain, and nothing of the share."""
        known = self.anchor if self.public is None else self.public
        known_target = self.anchor_target if self.public is None else self.public_target
        if known_target is None:
            return np.broadcast_to(known.mean(axis=0), self.X.shape)
        return class_means(known, known_target, self.target)

    @property
    def mean_rows(self) -> FloatArray:
        """What an attacker answers who knows the domain alone."""
        known = self.anchor if self.public is None else self.public
        return np.broadcast_to(known.mean(axis=0), self.X.shape)


def make_scenario(
    party: Party | Share,
    X: ArrayLike,
    anchor: ArrayLike,
    *,
    anchor_target: ArrayLike | None,
    public: ArrayLike | None,
    public_target: ArrayLike | None,
    control: ArrayLike | None,
    control_target: ArrayLike | None,
    n_attacked: int,
    random: np.random.RandomState,
) -> Scenario:
    """Bring all rows into one form, and draw those under attack.

    Raises
    ------
    AgreementError
        When tables do not fit each other.
    """
    if control is None and public is not None:
        public, public_target, control, control_target = split_public(public, public_target, random)
    share, order, through = _shared(party, X, anchor, anchor_target)
    raw, anchor_rows = _table(X, share.party, "X"), _table(anchor, share.party, "anchor")
    known = None if public is None else _table(public, share.party, "public")
    outsiders = None if control is None else _table(control, share.party, "control")[:_OUTSIDERS]
    _check_columns(share.party, {"X": raw, "anchor": anchor_rows, "public": known, "control": outsiders})
    scale = _scale(anchor_rows if known is None else known)
    chosen = random.permutation(len(order))[:n_attacked]
    leak = np.sort(random.permutation(len(anchor_rows))[:_LONGEST_LEAK])
    controls = np.arange(0 if outsiders is None else min(len(outsiders), CANDIDATES))
    compared = through is not None and len(controls) > 0
    return Scenario(
        party=share.party,
        table=raw,
        X=raw[order[chosen]] / scale,
        index=order[chosen],
        Z=share.representation[chosen],
        target=share.target[chosen],
        groups=np.array_split(np.arange(len(chosen)), max(1, len(chosen) // CANDIDATES)),
        shared=share.representation,
        shared_target=share.target,
        anchor=anchor_rows[leak] / scale,
        anchor_representation=share.anchor_representation[leak],
        anchor_target=None if share.anchor_target is None else share.anchor_target[leak],
        public=None if known is None else known / scale,
        public_target=_targets(public_target, known, share.party, "public_target"),
        outsiders=None if outsiders is None else outsiders / scale,
        control_representation=through(_safe_indexing(control, controls)) if through is not None and compared else None,
        control_target=_targets(control_target, control, share.party, "control_target", controls) if compared else None,
        scale=scale,
    )


def split_public(
    public: ArrayLike, public_target: ArrayLike | None, random: np.random.RandomState
) -> tuple[Any, Any, Any, Any]:
    """Public rows that the attacker keeps, and some that nobody holds, each with their targets."""
    n = _num_samples(public)
    order = random.permutation(n)
    held = min(_OUTSIDERS, n // 3)
    known, kept = order[held:], order[:held]
    rest, apart = _safe_indexing(public, known), _safe_indexing(public, kept)
    if public_target is None:
        return rest, None, apart, None
    return rest, _safe_indexing(public_target, known), apart, _safe_indexing(public_target, kept)


def _shared(
    party: Party | Share, X: ArrayLike, anchor: ArrayLike, anchor_target: ArrayLike | None
) -> tuple[Share, NDArray[np.intp], Callable[[ArrayLike], FloatArray] | None]:
    """A share, the row of X that each of its rows is about, and f_k where it may be applied to other rows."""
    n_rows = _num_samples(X)
    if isinstance(party, Share):
        if n_rows != len(party.representation):
            raise AgreementError(
                f"Party {party.party!r}: X has {n_rows} rows but the share has {len(party.representation)}. Give the "
                "rows in the share's order, or a Party, which knows the order."
            )
        return party, np.arange(n_rows), None
    share, order = party.share_with_order(anchor, anchor_target)
    if order.max() >= n_rows:
        raise AgreementError(
            f"Party {share.party!r} was fitted on more than the {n_rows} rows of X; give the rows it was fitted on."
        )
    # A defence treats all rows together, so that single other rows cannot be put beside them.
    return share, order, None if party.defences else party.obfuscate


def _table(rows: ArrayLike, party: PartyName, what: str) -> FloatArray:
    try:
        return check_rows(rows, what)
    except RepresentationError as error:
        raise AgreementError(f"Party {party!r}: {error}") from None


def _check_columns(party: PartyName, tables: dict[str, FloatArray | None]) -> None:
    widths = {name: table.shape[1] for name, table in tables.items() if table is not None}
    for name, width in widths.items():
        if width != widths["X"]:
            raise AgreementError(
                f"Party {party!r}: X has {widths['X']} columns but {name} has {width}; give the same columns in the "
                "same order."
            )


def _targets(
    values: ArrayLike | None, rows: Any, party: PartyName, what: str, chosen: NDArray[np.intp] | None = None
) -> NDArray[Any] | None:
    if values is None or rows is None:
        return None
    target = np.asarray(values)
    if target.shape != (_num_samples(rows),):
        raise AgreementError(
            f"Party {party!r}: {what} must have one entry per row, shape ({_num_samples(rows)},); got {target.shape}."
        )
    return target if chosen is None else target[chosen]


def _scale(rows: FloatArray) -> FloatArray:
    """Units in which rows are compared: one for all columns, or each column's own where they differ much."""
    ranges = np.ptp(rows, axis=0)
    varying = ranges > 0
    if not varying.any() or ranges.max() <= _UNEVEN * np.median(ranges[varying]):
        return np.ones(rows.shape[1])
    return np.where(varying, rows.std(axis=0), 1.0)
