"""The rows that h is trained on: the parties', and the anchor's where these have targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from .._frames import equal_rows
from .._validation import FloatArray, PartyName
from ..errors import AgreementError, NumericalError
from ..model import fit_weighted
from ..share import Share
from ..targets import TargetKind, check_coding
from ._linear import BaseIntegrator

_MOST_ENTRY = 1e30
"""Largest entry, as of shares: squares are finite in double precision, and entries in single."""
_CLUSTER = 10
"""Anchor rows that are left out together on average, where they judge; as many as are made of one public row, often."""
_MOST_CLUSTERS = 100
_ON_SEGMENTS = 0.36
"""Median ratio of distances below which rows look interpolated; see `looks_interpolated`."""
_MOST_LOOKED_AT = 1000
_FEWEST_OF_CLASS = 30
"""Rows from which a class's median is looked at by itself."""
_FEWEST_JUDGES = 50
"""Own rows that judge for everybody, where some parties' shares were changed by defences."""
ANCHOR_STRATUM = "rows of the anchor"
_MEANS = 0.9
"""Part of rows equal to others from which a share counts as one of means of groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingRows:
    """Targets of the parties' rows and the anchor's, and which rows judge a model."""

    parties: dict[PartyName, slice]
    are_own: dict[PartyName, bool]
    anchor: slice
    anchor_target: NDArray[Any] | None
    target: NDArray[Any]
    groups: NDArray[np.intp]
    judges: FloatArray
    interpolated: bool
    judged_on: str
    anchor_factors: FloatArray | float = 1.0

    def at_parties_frequencies(self) -> TrainingRows:
        """Weigh the anchor's rows to the parties' class frequencies, among classes that both have.

        An anchor with other frequencies, as SMOTE's balanced one, would move all probabilities towards its own.
        """
        if not self.has_anchor:
            return self
        classes, codes = np.unique(self.target, return_inverse=True)
        anchors = codes[self.anchor]
        own = np.bincount(codes[: self.anchor.start], minlength=len(classes))
        of_anchor = np.bincount(anchors, minlength=len(classes))
        both = (own > 0) & (of_anchor > 0)
        factors = np.ones(len(classes))
        factors[both] = own[both] / own[both].sum() / (of_anchor[both] / of_anchor[both].sum())
        judges = self.judges.copy()
        judges[self.anchor] *= factors[anchors]
        return replace(self, judges=judges, anchor_factors=factors[anchors])

    @property
    def group_size(self) -> float:
        """Rows per mean on average, where means of groups within classes judge; otherwise 1."""
        _, first, codes = np.unique(self.groups, return_index=True, return_inverse=True)
        if self.judged_on != "groups" or (self.target != self.target[first[codes]]).any():
            return 1.0
        return len(self.groups) / len(first)

    @property
    def strata(self) -> NDArray[np.object_]:
        """Name of each row's party, and for anchor rows a name of their own; shape (n_rows,)."""
        names = np.full(len(self.target), ANCHOR_STRATUM, dtype=object)
        for party, place in self.parties.items():
            names[place] = party
        return names

    @property
    def has_anchor(self) -> bool:
        """True if the anchor has targets."""
        return bool(self.anchor.stop > self.anchor.start)

    def map_rows(self, integrator: BaseIntegrator, shares: Mapping[PartyName, Share]) -> FloatArray:
        """Return all rows as a fitted integration method sees them, shape (n_rows, n_components).

        An anchor row is the mean of its images under the parties' functions.
        """
        own = _map_tables(integrator, {party: share.representation for party, share in shares.items()})
        rows = [own[party] for party in self.parties]
        if self.has_anchor:
            rows.append(mean_anchor(integrator, shares))
        return np.vstack(rows)

    def train(
        self,
        estimator: Any,
        integrator: BaseIntegrator,
        shares: Mapping[PartyName, Share],
        weights: FloatArray,
        *,
        strata: NDArray[Any] | None = None,
    ) -> tuple[Any, dict[PartyName, FloatArray]]:
        """Return a fitted clone of a model, and each party's rows as the integration method sees them."""
        rows = self.map_rows(integrator, shares)
        fitted = fit_weighted(clone(estimator), rows, self.target, weights, strata=strata)
        return fitted, {party: rows[place] for party, place in self.parties.items()}

    def weights(self, anchor_weight: float, class_weight: str | Mapping[Any, float] | None) -> FloatArray:
        """Return how much each row counts in training, shape (n_rows,)."""
        weights = np.ones(len(self.target))
        weights[self.anchor] = anchor_weight * self.anchor_factors
        return weights * self._class_weights(class_weight, weights)

    def counts(self, class_weight: str | Mapping[Any, float] | None) -> FloatArray:
        """Return how much each row counts in judging, shape (n_rows,)."""
        return self.judges * self._class_weights(class_weight, self.judges)

    def _class_weights(self, class_weight: str | Mapping[Any, float] | None, beside: FloatArray) -> FloatArray:
        """Return the weight of each row's class; "balanced" makes all classes weigh the same together with `beside`."""
        if class_weight is None:
            return np.ones(len(self.target))
        classes, codes = np.unique(self.target, return_inverse=True)
        if isinstance(class_weight, str):
            totals = np.bincount(codes, weights=beside, minlength=len(classes))
            # A class of anchor rows alone, at weight 0, has no rows to balance.
            occurs = totals > 0
            factors = np.divide(totals.sum() / occurs.sum(), totals, out=np.ones(len(classes)), where=occurs)
        else:
            factors = np.array([class_weight.get(each, 1.0) for each in classes.tolist()])
        return np.asarray(factors[codes])


def mean_anchor(integrator: BaseIntegrator, shares: Mapping[PartyName, Share]) -> FloatArray:
    """Return mean over the parties of their mapped anchor, shape (n_anchors, n_components)."""
    mapped = _map_tables(integrator, {party: share.anchor_representation for party, share in shares.items()})
    return np.asarray(np.mean(list(mapped.values()), axis=0))


def _map_tables(integrator: BaseIntegrator, tables: Mapping[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
    """Map rows by the parties' functions, and name the party whose rows no model can take."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Overflows are reported below, with the name of the party.
        mapped = integrator.transform(tables)
    for party, rows in mapped.items():
        if not (np.abs(rows) <= _MOST_ENTRY).all():
            raise NumericalError(
                f"Party {party!r}: in the common space its rows have entries beyond {_MOST_ENTRY:g}, with which no "
                "model can be trained. They are of another size than its anchor's rows; the party should map both with "
                "the same fitted obfuscator, and share again."
            )
    return mapped


def training_rows(shares: Mapping[PartyName, Share], *, as_classes: bool = False) -> TrainingRows:
    """Return targets, groups and judges of these shares."""
    check_trainable(shares)
    # Numbers in one share and texts in another would all become texts.
    check_coding({party: share.target for party, share in shares.items()}, are_classes=False)
    target = np.concatenate([share.target for share in shares.values()])
    anchor_target = common_anchor_target(shares)
    anchor = next(iter(shares.values())).anchor_representation
    n_own = len(target)
    n_anchors = len(anchor)
    n_labelled = 0
    if anchor_target is not None:
        n_labelled = n_anchors
        target = _join(target, anchor_target)
    parties: dict[PartyName, slice] = {}
    are_own: dict[PartyName, bool] = {}
    # Numbers below n_anchors are anchor rows.
    groups: list[NDArray[np.intp]] = []
    judges: list[FloatArray] = []
    start = 0
    for party, share in shares.items():
        n_rows = len(share.target)
        parties[party] = slice(start, start + n_rows)
        # Equal rows are left out together, or one would give the other away.
        equal = equal_rows(share.representation)
        groups.append(n_anchors + start + equal)
        are_own[party] = share.one_to_one and not are_means(equal)
        judges.append(np.full(n_rows, float(are_own[party])))
        start += n_rows
    judged_on = "rows"
    n_judges = sum(int(each.sum()) for each in judges)
    if n_judges < _FEWEST_JUDGES and not all(are_own.values()):
        # Defences changed too many rows for the others to judge: the anchor's rows do, or the changed ones.
        judged_on = "groups" if anchor_target is None else "anchor"
        judges = [np.full(len(each), float(anchor_target is None)) for each in judges]
    groups.append(np.arange(n_labelled))
    judges.append(np.full(n_labelled, float(judged_on == "anchor")))
    numbers = np.concatenate(groups)
    interpolated = judged_on != "rows" and looks_interpolated(anchor, anchor_target)
    if interpolated:
        # Near anchor rows go together: close relatives would give interpolated ones away.
        n_clusters = min(_MOST_CLUSTERS, max(2, n_anchors // _CLUSTER), len(np.unique(anchor, axis=0)))
        clusters = KMeans(n_clusters, n_init=1, random_state=0).fit_predict(anchor)
        are_anchors = numbers < n_anchors
        numbers = np.where(are_anchors, clusters[np.where(are_anchors, numbers, 0)], numbers)
    if as_classes and anchor_target is not None:
        # Integration methods' graphs take whole numbers for classes.
        anchor_target = np.unique(anchor_target, return_inverse=True)[1]
    return TrainingRows(
        parties=parties,
        are_own=are_own,
        anchor=slice(n_own, n_own + n_labelled),
        anchor_target=anchor_target,
        target=target,
        groups=numbers,
        judges=np.concatenate(judges),
        interpolated=interpolated,
        judged_on=judged_on,
    )


def common_kind(shares: Mapping[PartyName, Share]) -> TargetKind:
    """Return the kind of all parties' targets."""
    kinds = {party: share.target_kind for party, share in shares.items()}
    if len(set(kinds.values())) > 1:
        names = {party: kind.value for party, kind in kinds.items()}
        raise AgreementError(f"The parties' targets are of different kinds: {names}. Agree on one, and share again.")
    return next(iter(kinds.values()))


def check_trainable(shares: Mapping[PartyName, Share]) -> None:
    """Refuse shares from which no model of a target is to be learnt."""
    kind = common_kind(shares)
    if kind is TargetKind.NONE:
        raise AgreementError(
            "The shares have no targets, so there is nothing to predict. Cluster them with "
            "DataCollaborationClusterer, or have the parties share targets."
        )
    if kind in (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT):
        raise AgreementError(
            "The shares have treatments and outcomes: effects are estimated from these, and no model is trained. Call "
            "datacollab.effects.estimate_effect with these shares."
        )


def _join(target: NDArray[Any], anchor_target: NDArray[Any]) -> NDArray[Any]:
    """Return both in the type of the parties' targets, where that changes none of the anchor's."""
    if target.dtype.kind != anchor_target.dtype.kind and "U" not in (target.dtype.kind, anchor_target.dtype.kind):
        in_type = anchor_target.astype(target.dtype)
        if np.array_equal(in_type, anchor_target):
            anchor_target = in_type
    return np.concatenate([target, anchor_target])


def looks_interpolated(anchor: FloatArray, target: NDArray[Any] | None = None) -> bool:
    """Return whether rows seem to have been made on segments between a few others, as by SMOTE.

    A row on a segment has others from its ends very near, and its tenth neighbour far.  Rows of few dimensions are
    like that by themselves.  Of twelve tables, real rows had a median ratio of these distances of .40 and more,
    interpolated ones of .34 and less.
    Each class is looked at, too: of a rare one SMOTE makes many rows from few.
    """
    # The same rows at every run: what is judged must not depend on luck.
    drawn = np.random.default_rng(0).permutation(len(anchor))[:_MOST_LOOKED_AT]
    rows = anchor[drawn]
    n_neighbors = min(10, len(anchor) - 1)
    distances, _ = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(anchor).kneighbors(rows)
    # The nearest of all is the row itself.
    ratios = distances[:, 1] / np.maximum(distances[:, n_neighbors], np.finfo(float).tiny)
    medians = [np.median(ratios)]
    if target is not None and target.dtype.kind != "f":
        _, codes, counts = np.unique(target[drawn], return_inverse=True, return_counts=True)
        medians += [np.median(ratios[codes == code]) for code in np.flatnonzero(counts >= _FEWEST_OF_CLASS)]
    return bool(min(medians) < _ON_SEGMENTS)


def are_means(numbers: NDArray[np.intp]) -> bool:
    """Return whether nearly all rows equal another, as means of groups do; equal rows have one number."""
    return bool(np.mean(np.bincount(numbers)[numbers] > 1) >= _MEANS)


def common_anchor_target(shares: Mapping[PartyName, Share]) -> NDArray[Any] | None:
    """Return the anchor targets, which every party that sends them must send alike."""
    senders = {party: share.anchor_target for party, share in shares.items() if share.anchor_target is not None}
    if not senders:
        return None
    first, reference = next(iter(senders.items()))
    for party, target in senders.items():
        if not np.array_equal(target, reference):
            raise AgreementError(
                f"Parties {first!r} and {party!r} sent different anchor targets, so they used different anchors or "
                "row orders. Send the same anchor to all parties and ask for new shares."
            )
    return reference
