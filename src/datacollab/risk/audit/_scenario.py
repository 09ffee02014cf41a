"""What attacker and auditor hold: the rows under attack, and all that the attacks are run and scored with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..._validation import FloatArray, PartyName
from ...errors import AgreementError, RepresentationError
from ...party import Party
from ...party._class_shift import anchor_classes
from ...share import Share
from ...targets import TargetKind
from ..attacks import KernelRidgeAttack, class_means, without_anchor_residuals
from ..attacks._attack import check_rows
from ._alignment import check_alignment
from ._named_targets import single_out, target_numbers
from ._recipe import recipe_of, with_numbers
from ._scenario_targets import all_targets, drawn_targets, other_targets, own_targets
from ._text import BY_LOT

__all__ = ["Scenario", "make_scenario", "split_public"]

CANDIDATES = 100
"""Originals among which the attacker looks for the right one: rates are then of the same kind at every party."""
OPEN_WORLD = 10
"""Candidates in the open world, in multiples of those."""
_OUTSIDERS = 900
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
    n_anchors : int
        Rows of the whole anchor.
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
    remarks : tuple of str
        What was left out, and why.
    share : Share
        With all rows and the whole anchor.
    places : ndarray of shape (n_attacked,)
        Positions of the attacked rows in the share.
    is_paired : bool
        Whether shared rows stand for rows of the table.
    has_fields : bool
        Whether targets are times to events or effects: numbers here, which no defence averages.
    table_target : ndarray of shape (n_samples,)
        Of the table; where that is not known, drawn from the share's, as many as the table has rows.
    record_target, outsider_target : ndarray or None
        Of the originals under attack, and of the outsiders, where known.
    candidate_target : ndarray of shape (n_samples + n_outsiders,) or None
        Of all rows of the table, as these are in it, then of the outsiders; None where some are not known.
    images : ndarray of shape (n_samples, n_intermediate) or None
        All rows of the table through f_k, before any defence; None where a share was given.
    recipe : callable or None
        The party's way of sharing images, see `recipe_of`; None without defences, or where a share was given.
    """

    party: PartyName
    table: FloatArray
    n_anchors: int
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
    remarks: tuple[str, ...]
    share: Share
    places: NDArray[np.intp]
    is_paired: bool
    has_fields: bool
    table_target: NDArray[Any]
    record_target: NDArray[Any] | None
    outsider_target: NDArray[Any] | None
    candidate_target: NDArray[Any] | None
    images: FloatArray | None
    recipe: Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share] | None

    @cached_property
    def clusters(self) -> NDArray[np.intp]:
        """Numbers of the attacked rows, the same for those that are shared as one; shape (n_attacked,)."""
        return np.unique(self.Z, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)

    @cached_property
    def grouped(self) -> Scenario | None:
        """The share as groups of equal rows: as it is, or once residuals of anchor rows are taken off; else None."""
        if not self.is_paired or self.share.anchor_rows is not None:
            return None
        classes = np.zeros(len(self.anchor_representation), dtype=np.intp)
        if self.anchor_target is not None:
            classes = anchor_classes(self.shared_target, self.anchor_target, "auto").anchor
        bare = without_anchor_residuals(self.shared, self.anchor_representation, classes)
        groups = len(np.unique(bare, axis=0))
        if groups < len(np.unique(self.shared, axis=0)):
            return replace(self, shared=bare, Z=bare[self.places])
        return self if groups < len(bare) else None

    @property
    def decoys(self) -> FloatArray:
        """Rows that stand among the originals in the open world; the attacker holds none of them."""
        return self.X[:0] if self.outsiders is None else self.outsiders[: (OPEN_WORLD - 1) * len(self.groups[0])]

    @cached_property
    def label_only(self) -> list[FloatArray]:
        """What an attacker may answer who knows targets and the domain, and nothing of the share."""
        pools = ((self.public, self.public_target), (self.anchor, self.anchor_target))
        known = next(((rows, target) for rows, target in pools if rows is not None and target is not None), None)
        if known is None:
            return [self.mean_rows]
        guesses = [class_means(*known, self.target)]
        if self.target.dtype.kind == "f":
            # Groups of targets waste what a number tells.
            regression = KernelRidgeAttack().fit(known[1].reshape(-1, 1), known[0])
            guesses.append(regression.reconstruct(self.target.reshape(-1, 1)))
        return guesses

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
    y: ArrayLike | None,
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
    original, order, through = _shared(party, X, anchor, anchor_target)
    coding = target_numbers(original.target)
    share = with_numbers(original, coding)
    places = np.arange(len(share.representation))
    raw, anchor_rows = _table(X, share.party, "X"), _table(anchor, share.party, "anchor")
    known = None if public is None else _table(public, share.party, "public")
    others = None if control is None else _table(control, share.party, "control")
    _check_columns(share.party, {"X": raw, "anchor": anchor_rows, "public": known, "control": others})
    scale = _scale(np.vstack([raw, anchor_rows if known is None else known]))
    shown = party.shown_target if isinstance(party, Party) else np.asarray
    known_target = other_targets(public_target, known, share.party, "public_target", coding, shown)
    other_target = other_targets(control_target, others, share.party, "control_target", coding, shown)
    remarks = []
    is_paired = order is not None
    own_target = own_targets(y, party, X, share, order, coding)
    if isinstance(party, Party) and (sentence := single_out(party.fitted_target, shown(party.fitted_target))):
        remarks.append(sentence)
    if order is None:
        # Who took part can be asked all the same; which row is whose has no answer but chance.
        n_pairs = min(len(raw), len(places))
        order, places = random.permutation(len(raw))[:n_pairs], random.permutation(places)[:n_pairs]
        remarks.append(BY_LOT)
    if known is not None:
        keep = ~_is_in(known, raw)
        known, known_target = known[keep], None if known_target is None else known_target[keep]
        remarks += _dropped(keep, "public rows are the party’s own, and were left out")
    n_in_anchor = int(_is_in(anchor_rows, raw).sum())
    if n_in_anchor:
        remarks.append(f"{n_in_anchor} anchor rows are the party’s own: every party sees them as they are.")
    kept = np.arange(0)
    if others is not None:
        taken = [raw, anchor_rows]
        if isinstance(party, Party) and party.fit_on is not None:
            taken.append(_table(party.fit_on, share.party, "fit_on"))
        free = ~np.any([_is_in(others, rows) for rows in taken], axis=0)
        remarks += _dropped(
            free, "rows that nobody should hold are in the table, the anchor or what f was fitted on, and were left out"
        )
        kept = random.permutation(np.flatnonzero(free))[:_OUTSIDERS]
    outsiders = None if others is None or not len(kept) else others[kept]
    if isinstance(party, Share):
        check_alignment(share, raw / scale, anchor_rows / scale, random)
    if len(order) < len(raw):
        why = "are not shared, and were not attacked" if is_paired else "were left out by lot, as the share has fewer"
        remarks.append(f"{len(raw) - len(order)} rows {why}.")
    if len(anchor_rows) > _LONGEST_LEAK:
        remarks.append(f"Attacks learn from {_LONGEST_LEAK} of the {len(anchor_rows)} anchor rows.")
    chosen = random.permutation(len(order))[:n_attacked]
    leak = np.sort(random.permutation(len(anchor_rows))[:_LONGEST_LEAK])
    controls = kept[:CANDIDATES]
    compared = through is not None and len(controls) > 0
    outsider_target = None if other_target is None or outsiders is None else other_target[kept]
    # Without y a defence's targets are all there is, and it may have made others of the table's.
    own = own_target if y is not None or not (isinstance(party, Party) and party.defences) else None
    return Scenario(
        party=share.party,
        table=raw,
        n_anchors=len(anchor_rows),
        X=raw[order[chosen]] / scale,
        index=order[chosen],
        Z=share.representation[places[chosen]],
        target=share.target[places[chosen]],
        groups=np.array_split(np.arange(len(chosen)), max(1, len(chosen) // CANDIDATES)),
        shared=share.representation,
        shared_target=share.target,
        anchor=anchor_rows[leak] / scale,
        anchor_representation=share.anchor_representation[leak],
        anchor_target=None if share.anchor_target is None else share.anchor_target[leak],
        public=None if known is None else known / scale,
        public_target=known_target,
        outsiders=None if outsiders is None else outsiders / scale,
        control_representation=through(_safe_indexing(control, controls)) if through is not None and compared else None,
        control_target=None if other_target is None or not compared else other_target[controls],
        scale=scale,
        remarks=tuple(remarks),
        share=share,
        places=places[chosen],
        is_paired=is_paired,
        has_fields=coding.kind not in (TargetKind.SINGLE, TargetKind.NONE),
        table_target=own_target if own_target is not None else drawn_targets(share, len(raw), random),
        record_target=None if own_target is None else own_target[order[chosen]],
        outsider_target=outsider_target,
        candidate_target=all_targets(own, outsiders, outsider_target, share.target),
        images=party.obfuscate(X) if isinstance(party, Party) and own_target is not None else None,
        recipe=recipe_of(party, share.anchor_representation, original.anchor_target, coding)
        if isinstance(party, Party) and party.defences
        else None,
    )


def _is_in(rows: FloatArray, others: FloatArray) -> NDArray[np.bool_]:
    """Which rows are, number by number, among others."""
    known = {row.tobytes() for row in np.ascontiguousarray(others) + 0.0}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(rows) + 0.0], dtype=bool)


def _dropped(keep: NDArray[np.bool_], what: str) -> list[str]:
    n_dropped = int((~keep).sum())
    return [f"{n_dropped} {what}."] if n_dropped else []


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
) -> tuple[Share, NDArray[np.intp] | None, Callable[[ArrayLike], FloatArray] | None]:
    """A share, the row of X that each of its rows is about, and f_k where it may be applied to other rows."""
    n_rows = _num_samples(X)
    if isinstance(party, Share):
        if n_rows != len(party.representation):
            raise AgreementError(
                f"Party {party.party!r}: X has {n_rows} rows but the share has {len(party.representation)}. Give the "
                "rows in the share's order, or a Party, which knows the order."
            )
        return party, np.arange(n_rows), None
    if not party.was_fitted_on(X):
        raise AgreementError(
            f"Party {party.name!r} was not fitted on these {n_rows} rows of X in this order, with these columns; give "
            "exactly the table that was given to fit."
        )
    share, order = party.share_with_order(anchor, anchor_target)
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


def _scale(rows: FloatArray) -> FloatArray:
    """Units in which rows are compared: one for all columns, or each column's own where they differ much."""
    ranges = np.ptp(rows, axis=0)
    varying = ranges > 0
    if not varying.any() or ranges.max() <= _UNEVEN * np.median(ranges[varying]):
        return np.ones(rows.shape[1])
    return np.where(varying, rows.std(axis=0), 1.0)
