"""The party's rows and share under attack, and all else that an attacker holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..._encoder import TableEncoder
from ..._frames import equal_rows, has_numbers_alone, plain_column, rows_among
from ..._validation import FloatArray, check_single_targets
from ...errors import AgreementError, DataCollabWarning
from ...party import Party
from ...share import Share
from ...targets import TargetKind, effect_target, no_target, survival_target, target_kind
from ..attacks import KernelRidgeAttack, class_means
from ..attacks._attack import IntArray, check_columns, check_rows

_APART = 10.0
"""Distance of the treated from the others, in multiples of the span of outcomes or times."""


@dataclass(frozen=True)
class TargetNumbers:
    """One number for each target: a time is negative if the event was not seen, the treated are `apart` from others."""

    kind: TargetKind
    low: float = 0.0
    apart: float = 0.0

    def numbers(self, target: NDArray[Any]) -> NDArray[Any]:
        """Number targets of this kind, shape (n_samples,)."""
        if self.kind is TargetKind.SINGLE:
            return target
        if self.kind is TargetKind.NONE:
            return np.zeros(len(target), dtype=np.int64)
        if self.kind is TargetKind.EFFECT:
            return np.asarray(target["outcome"] - self.low + self.apart * target["treatment"])
        treated: Any = 0
        if self.kind is TargetKind.SURVIVAL_EFFECT:
            treated = target["treatment"]
        return np.asarray(np.where(target["event"], 1.0, -1.0) * (target["time"] + self.apart * treated))

    def targets(self, numbers: FloatArray) -> NDArray[Any]:
        """Return targets of these numbers, up to rounding."""
        if self.kind is TargetKind.SINGLE:
            return numbers
        if self.kind is TargetKind.NONE:
            return no_target(len(numbers))
        if self.kind is TargetKind.SURVIVAL:
            return survival_target(numbers > 0, np.abs(numbers))
        # The sign tells an event that was seen from one that was not; a time itself is never negative.
        size = numbers
        if self.kind is TargetKind.SURVIVAL_EFFECT:
            size = np.abs(numbers)
        # The treated lie ten spans from the others, so that no rounding takes one past the middle.
        treated = size > self.apart / 2
        outcome = size - self.apart * treated
        if self.kind is TargetKind.EFFECT:
            return effect_target(treated, outcome + self.low)
        return effect_target(treated, event=numbers > 0, time=outcome)


def target_numbers(target: NDArray[Any]) -> TargetNumbers:
    """Learn how targets like these become numbers."""
    kind = target_kind(target)
    if kind is TargetKind.EFFECT:
        low = float(target["outcome"].min())
        return TargetNumbers(kind, low, _APART * ((float(target["outcome"].max()) - low) or 1.0))
    if kind is TargetKind.SURVIVAL_EFFECT:
        return TargetNumbers(kind, apart=_APART * float(target["time"].max()))
    return TargetNumbers(kind)


def single_out(target: NDArray[Any], shown: NDArray[Any]) -> list[str]:
    """Say how many rows have a time that no other has, before and after rounding, if there are times."""
    if "time" not in (target.dtype.names or ()):
        return []
    # Sharing times as rounded is the party's own defence, so both figures are given: before it and after.
    exact, rounded = (100 * np.sum(np.unique(each, return_counts=True)[1] == 1) / len(each) for each in (target, shown))
    return [
        f"{exact:.0f} % of the rows have a time, with all else of their target, that no other row of the party "
        f"has; as times are shared, {rounded:.0f} % do. Somebody who knows such a time finds the row by it, "
        "whatever hides its features."
    ]


def with_numbers(share: Share, coding: TargetNumbers) -> Share:
    """Return the share with numbers for targets."""
    if coding.kind is TargetKind.SINGLE:
        return share
    anchor_target = share.anchor_target
    if anchor_target is not None:
        anchor_target = coding.numbers(anchor_target)
    return replace(share, target=coding.numbers(share.target), anchor_target=anchor_target)


MakeShare = Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share]
"""From images under f_k, shape (n_rows, n_intermediate), their targets and a generator to a share of them."""


def recipe_of(
    party: Party, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None, coding: TargetNumbers
) -> MakeShare:
    """Return the party's way of sharing rows that are images under f_k, their targets numbers of `coding`."""

    def make_share(images: FloatArray, target: NDArray[Any], random: np.random.RandomState) -> Share:
        with warnings.catch_warnings():
            # Suppressed rows of a made-up table are no news.
            warnings.simplefilter("ignore", DataCollabWarning)
            kept = tuple(clone(defence) for defence in party.defences)
            # Times were rounded before they became numbers.
            made = Party("shadow", FunctionTransformer(), defences=kept, time_step=None, random_state=random)
            share = made.fit(images, coding.targets(target)).share(anchor_representation, anchor_target)
        return with_numbers(share, coding)

    return make_share


def _own_targets(
    y: ArrayLike | None, party: Party, X: ArrayLike, share: Share, order: IntArray, coding: TargetNumbers
) -> NDArray[Any] | None:
    """Return targets of the whole table: those given, else those shared if every row is shared."""
    if y is not None:
        # A defence may share others than the party has.
        if not party.was_fitted_on(X, y):
            raise AgreementError(
                f"Party {share.party!r}: y differs from the targets that are shared; give the rows and targets the "
                "party was fitted on, in the same order."
            )
        return coding.numbers(party.shown_target(y))
    if len(order) < _num_samples(X):
        return None
    target = np.empty_like(share.target)
    target[order] = share.target
    return target


def _other_targets(
    values: ArrayLike | None, rows: Any, party: Party, what: str, coding: TargetNumbers
) -> NDArray[Any] | None:
    if values is None or rows is None:
        return None
    target = plain_column(values)
    if coding.kind is TargetKind.SINGLE or target.dtype.names is None:
        check_single_targets(target, f"Party {party.name!r}: {what}", AgreementError)
    if target.dtype.names != coding.kind.names:
        raise AgreementError(
            f"Party {party.name!r}: {what} is not of kind {coding.kind.value!r}, as the party's targets are. Give such "
            "targets, made with datacollab.targets, or none."
        )
    if target.shape != (len(rows),):
        raise AgreementError(
            f"Party {party.name!r}: {what} must have one entry per row, shape ({len(rows)},); got {target.shape}."
        )
    return coding.numbers(party.shown_target(target))


_CANDIDATES = 100
_OPEN_WORLD = 10
_OUTSIDERS = 900
_LONGEST_LEAK = 2000
"""Originals among which the attacker seeks the right one; candidates in the open world, in multiples of those."""
_UNEVEN = 3.0
"""Range of a column, in multiples of the median one, from which all columns are put on one scale."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scenario:
    """Rows of one party, known to the auditor alone, and those of attackers; rows but `table` in units of `scale`.

    `X` and `Z` are the rows under attack and their representation, at positions `index` in the table and `places` in
    the share, in `groups` that are closed worlds.  Nobody holds the `outsiders`: non-members, and decoys.  If it
    `has_fields`, targets are times to events or effects.  Controls are there without defences, a recipe with them.
    """

    share: Share
    table: FloatArray
    X: FloatArray
    index: IntArray
    places: IntArray
    Z: FloatArray
    target: NDArray[Any]
    groups: list[IntArray]
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
    has_fields: bool
    table_target: NDArray[Any]
    """Targets of the table; if unknown, drawn from the share's, as many as the table has rows."""
    record_target: NDArray[Any] | None
    outsider_target: NDArray[Any] | None
    candidate_target: NDArray[Any] | None
    """Targets of all rows of the table, as these are in it, then of the outsiders."""
    recipe: MakeShare | None

    @property
    def shared(self) -> FloatArray:
        return self.share.representation

    @property
    def shared_target(self) -> NDArray[Any]:
        return self.share.target

    @cached_property
    def clusters(self) -> IntArray:
        """Number the attacked rows, with the same number for those that are shared as one; shape (n_attacked,)."""
        return equal_rows(self.Z)

    @cached_property
    def has_groups(self) -> bool:
        """Return whether some shared rows equal each other, as means of groups do."""
        return len(np.unique(self.shared, axis=0)) < len(self.shared)

    @cached_property
    def persons(self) -> IntArray:
        """Number originals and decoys, with the same number for equal rows."""
        return equal_rows(np.vstack([self.X, self.decoys]))

    @property
    def people(self) -> FloatArray:
        """Stack the originals under attack and the outsiders."""
        if self.outsiders is None:
            return self.X
        return np.vstack([self.X, self.outsiders])

    @property
    def decoys(self) -> FloatArray:
        """Return rows that stand among the originals in the open world; the attacker holds none of them."""
        if self.outsiders is None:
            return self.X[:0]
        return self.outsiders[: (_OPEN_WORLD - 1) * len(self.groups[0])]

    @property
    def can_be_remade(self) -> bool:
        """Return whether an attacker can make shares like this one, and there are strangers to compare with."""
        return self.recipe is not None and self.outsiders is not None

    @property
    def with_targets(self) -> list[tuple[FloatArray, NDArray[Any]]]:
        """List the rows that an attacker holds with their targets: public ones, then the anchor's."""
        pools = ((self.public, self.public_target), (self.anchor, self.anchor_target))
        return [(rows, target) for rows, target in pools if rows is not None and target is not None]

    @cached_property
    def label_only(self) -> list[FloatArray]:
        """List the guesses of an attacker who knows targets and the domain, and nothing of the share."""
        if not self.with_targets:
            return [self.mean_rows]
        rows, known = self.with_targets[0]
        guesses = [class_means(rows, known, self.target)]
        if self.target.dtype.kind == "f":
            # Groups of targets waste what a number tells.
            regression = KernelRidgeAttack().fit(known.reshape(-1, 1), rows)
            guesses.append(regression.reconstruct(self.target.reshape(-1, 1)))
        return guesses

    @property
    def given_away(self) -> float:
        """Return the share of the attacked rows that leave with their record's own target, which no other row has."""
        if self.candidate_target is None:
            return 0.0
        values, counts = np.unique(self.shared_target, return_counts=True)
        single = np.isin(self.target, values[counts == 1])
        return float((single & (self.target == self.candidate_target[self.index])).mean())

    @property
    def mean_rows(self) -> FloatArray:
        """Return the guess of an attacker who knows the domain alone."""
        # Anchor rows may be made up, so public ones tell more of the domain.
        known = self.anchor if self.public is None else self.public
        return np.broadcast_to(known.mean(axis=0), self.X.shape)


@dataclass(frozen=True, eq=False)
class _Tables:
    """All tables of an audit as numbers with the same columns; those that there are not are None."""

    own: FloatArray
    anchor: FloatArray
    public: FloatArray | None
    control: FloatArray | None
    fit_on: FloatArray | None

    @classmethod
    def read(cls, party: Party, X: Any, anchor: Any, public: Any, control: Any, fit_on: Any) -> _Tables:
        """Check tables; columns of codes become zeros and ones, which attackers see and reconstruct."""
        tables = {"X": X, "anchor": anchor, "public": public, "control": control, "fit_on": fit_on}
        present = {name: rows for name, rows in tables.items() if rows is not None}
        # Categories are coded over all tables, so that one that X lacks has a column, too.
        if not all(map(has_numbers_alone, present.values())):
            others = [rows for name, rows in present.items() if name != "X"]
            encoder = TableEncoder(f"Party {party.name!r}: a table of the audit").fit(X, beside=others)
            present = {name: encoder.transform(rows) for name, rows in present.items()}
        checked = {
            name: check_rows(rows, f"Party {party.name!r}: {name}", AgreementError) for name, rows in present.items()
        }
        for name in ("anchor", "public", "control"):
            if name in checked:
                check_columns(checked["X"], checked[name], f"Party {party.name!r}: X has", f"{name} has")
        optional = {name: checked.get(name) for name in ("public", "control", "fit_on")}
        return cls(own=checked["X"], anchor=checked["anchor"], **optional)


class TargetedRows(NamedTuple):
    """Rows as an auditor gives them, with their targets; None stands for either that is not given."""

    rows: Any
    target: Any


def make_scenario(
    party: Party,
    X: ArrayLike,
    anchor: TargetedRows,
    public: TargetedRows,
    control: TargetedRows,
    y: ArrayLike | None,
    n_attacked: int,
    random: np.random.RandomState,
) -> Scenario:
    """Bring all rows into one form, and draw those under attack."""
    X = party._plain(X)
    anchor = anchor._replace(rows=party._plain(anchor.rows, "the anchor"))
    fit_on = party._plain(party.fit_on, "fit_on")
    public = _plain_rows(party, public, "the public rows")
    control = _plain_rows(party, control, "the control rows")
    # Draws follow in this order: rows kept apart, strangers, rows under attack, leaks, targets of the table.
    if control.rows is None and public.rows is not None:
        public, control = _keep_apart(public, random)
    if not party.was_fitted_on(X):
        raise AgreementError(
            f"Party {party.name!r} was not fitted on these {_num_samples(X)} rows of X in this order, with these "
            "columns; give exactly the table that was given to fit."
        )
    original, order = party.share_with_order(anchor.rows, anchor.target)
    coding = target_numbers(original.target)
    share = with_numbers(original, coding)
    tables = _Tables.read(party, X, anchor.rows, public.rows, control.rows, fit_on)
    raw = tables.own
    # Anchor rows may be made up and have ranges of their own, so public rows come first.
    scale = _scale(np.vstack([raw, tables.anchor if tables.public is None else tables.public]))
    known_target = _other_targets(public.target, tables.public, party, "public_target", coding)
    other_target = _other_targets(control.target, tables.control, party, "control_target", coding)
    own_target = _own_targets(y, party, X, share, order, coding)
    remarks = single_out(party.fitted_target, party.shown_target(party.fitted_target))
    known, known_target = _drop_own_rows(tables.public, known_target, raw, remarks)
    if n_in_anchor := int(rows_among(tables.anchor, raw).sum()):
        remarks.append(f"{n_in_anchor} anchor rows are the party’s own: every party sees them as they are.")
    kept = _draw_outsiders(tables, remarks, random)
    if len(order) < len(raw):
        remarks.append(f"{len(raw) - len(order)} rows are not shared, and were not attacked.")
    if len(tables.anchor) > _LONGEST_LEAK:
        remarks.append(f"Attacks learn from {_LONGEST_LEAK} of the {len(tables.anchor)} anchor rows.")
    chosen = random.permutation(len(order))[:n_attacked]
    leak = np.sort(random.permutation(len(tables.anchor))[:_LONGEST_LEAK])
    outsiders = None
    outsider_target = None
    controls = None
    control_target = None
    if tables.control is not None and len(kept):
        outsiders = tables.control[kept]
        outsider_target = _take(other_target, kept)
        # A defence treats all rows together, so that single other rows cannot be put beside them.
        if not party.defences:
            rows = kept[:_CANDIDATES]
            controls = party.obfuscate(_safe_indexing(control.rows, rows))
            control_target = _take(other_target, rows)
    recipe = None
    if party.defences:
        recipe = recipe_of(party, share.anchor_representation, original.anchor_target, coding)
    candidates = None
    # Without y a defence's targets are all there is, and it may have made others of the table's.
    if y is not None or not party.defences:
        candidates = _candidate_targets(own_target, outsiders, outsider_target, share)
    return Scenario(
        share=share,
        table=raw,
        X=raw[order[chosen]] / scale,
        index=order[chosen],
        places=chosen,
        Z=share.representation[chosen],
        target=share.target[chosen],
        groups=np.array_split(np.arange(len(chosen)), max(1, len(chosen) // _CANDIDATES)),
        anchor=tables.anchor[leak] / scale,
        anchor_representation=share.anchor_representation[leak],
        anchor_target=_take(share.anchor_target, leak),
        public=_in_units(known, scale),
        public_target=known_target,
        outsiders=_in_units(outsiders, scale),
        control_representation=controls,
        control_target=control_target,
        scale=scale,
        remarks=tuple(remarks),
        has_fields=coding.kind not in (TargetKind.SINGLE, TargetKind.NONE),
        table_target=_table_targets(own_target, share, len(raw), random),
        record_target=_take(own_target, order[chosen]),
        outsider_target=outsider_target,
        candidate_target=candidates,
        recipe=recipe,
    )


def _plain_rows(party: Party, given: TargetedRows, name: str) -> TargetedRows:
    if given.rows is None:
        return given
    return given._replace(rows=party._plain(given.rows, name))


def _keep_apart(public: TargetedRows, random: np.random.RandomState) -> tuple[TargetedRows, TargetedRows]:
    parts = split_public(*public, random)
    return TargetedRows(*parts[:2]), TargetedRows(*parts[2:])


def _drop_own_rows(known: FloatArray | None, target: Any, own: FloatArray, remarks: list[str]) -> tuple[Any, Any]:
    """Return public rows and targets without the party's own rows; say how many these were."""
    if known is None:
        return None, target
    # An attacker who held the party's own rows would have nothing to find out.
    keep = ~rows_among(known, own)
    if n_dropped := int((~keep).sum()):
        remarks.append(f"{n_dropped} public rows are the party’s own, and were left out.")
    return known[keep], _take(target, keep)


def _draw_outsiders(tables: _Tables, remarks: list[str], random: np.random.RandomState) -> IntArray:
    """Draw rows of the control table that nobody holds; say how many were held, and left out."""
    if tables.control is None:
        return np.arange(0)
    held = [rows for rows in (tables.own, tables.anchor, tables.fit_on) if rows is not None]
    free = ~np.any([rows_among(tables.control, rows) for rows in held], axis=0)
    if n_dropped := int((~free).sum()):
        remarks.append(
            f"{n_dropped} rows that nobody should hold are in the table, the anchor or what f was fitted on, and "
            "were left out."
        )
    return random.permutation(np.flatnonzero(free))[:_OUTSIDERS]


def _candidate_targets(
    own: NDArray[Any] | None, outsiders: FloatArray | None, of_outsiders: NDArray[Any] | None, share: Share
) -> NDArray[Any] | None:
    """Return the targets of all candidates, or None if an attacker cannot know them all."""
    if own is None or (outsiders is not None and of_outsiders is None):
        return None
    targets = own
    if of_outsiders is not None:
        targets = np.concatenate([own, of_outsiders])
    # A defence sends means of targets, which of whole numbers are none.
    if share.target.dtype.kind == "f":
        return targets.astype(share.target.dtype)
    return targets


def _table_targets(own: NDArray[Any] | None, share: Share, n_rows: int, random: np.random.RandomState) -> NDArray[Any]:
    """Return targets of the table; if they are not known, as many of the shared ones."""
    if own is not None:
        return own
    n_shared = len(share.target)
    if n_shared == n_rows:
        return share.target
    return np.asarray(share.target[random.choice(n_shared, n_rows, replace=n_shared < n_rows)])


def _take(values: Any, rows: IntArray | NDArray[np.bool_]) -> Any:
    """Return some rows; None stays None."""
    if values is None:
        return None
    return _safe_indexing(values, rows)


def _in_units(rows: FloatArray | None, scale: FloatArray) -> FloatArray | None:
    return None if rows is None else rows / scale


def split_public(
    public: ArrayLike, public_target: ArrayLike | None, random: np.random.RandomState
) -> tuple[Any, Any, Any, Any]:
    """Draw public rows that the attacker keeps, and some that nobody holds, each with their targets."""
    order = random.permutation(_num_samples(public))
    # Two thirds stay with the attacker, who needs them to learn from; 900 give nine strangers for each candidate.
    held = min(_OUTSIDERS, len(order) // 3)
    known = order[held:]
    apart = order[:held]
    return _take(public, known), _take(public_target, known), _take(public, apart), _take(public_target, apart)


def _scale(rows: FloatArray) -> FloatArray:
    """Return units in which rows are compared: one for all columns, or each column's own if they differ much."""
    ranges = np.ptp(rows, axis=0)
    varying = ranges > 0
    if not varying.any() or ranges.max() <= _UNEVEN * np.median(ranges[varying]):
        return np.ones(rows.shape[1])
    return np.where(varying, rows.std(axis=0), 1.0)
