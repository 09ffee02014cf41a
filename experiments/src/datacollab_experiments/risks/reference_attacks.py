"""Attackers at full strength, written without the library's attacks: an audit's upper ends have to be above them.

They hold the share, the whole anchor with targets, public rows, and a list of candidates: everybody in the table and
as many strangers as there are.  f is solved for by least squares; means of equal rows are taken apart by hashing all
sums of halves; rows of a group are joined to its members by their numbers.  Who took part is told by distance, by the
groups, by how well a model of the shared rows judges a record, by how far its class was moved towards it, and by the
library's shadow shares with tables of its own.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score

from datacollab.party import Party
from datacollab.risk.attacks import ShadowAttack
from datacollab.risk.audit._scenario import recipe_of, target_numbers
from datacollab.share import Share

from ..pays.tables import Array

Rows = tuple[Array, NDArray[Any]]
# Candidates nearest to a mean among which its members are sought, by their number.
_NEAREST = {2: 400, 3: 200, 4: 190, 5: 190, 6: 130, 7: 70, 8: 60, 9: 45}


@dataclass(frozen=True, eq=False)
class AttackedShare:
    """A share, and all that the attacker holds; `places` are the table's rows of the shared ones."""

    own: Rows
    anchor: Rows
    public: Rows
    strangers: Rows
    party: Party
    share: Share
    places: NDArray[np.intp]
    random: np.random.RandomState

    @property
    def is_numeric(self) -> bool:
        return self.share.target.dtype.kind == "f"


def strongest(world: AttackedShare) -> dict[str, tuple[float, str]]:
    """The largest rate of linkage and the largest area under the curve, each with the attack's name."""
    A = world.anchor[0]
    Z = world.share.representation
    design = np.column_stack([np.ones(len(A)), A - A.mean(axis=0)])
    # Every f here is affine, so the anchor's pairs determine it.
    coefficients = np.linalg.lstsq(design, world.share.anchor_representation, rcond=1e-10)[0]

    def f(rows: Array) -> Array:
        return np.asarray(np.column_stack([np.ones(len(rows)), rows - A.mean(axis=0)]) @ coefficients)

    own = f(world.own[0])
    strangers = f(world.strangers[0])
    spread = np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    links = {}
    scores = {}
    for name, unit in {"distance": np.ones_like(spread), "distance, columns alike": spread}.items():
        links[name] = link(own / unit, Z / unit, world)
        # Of a member, some shared row lies near.
        near = -cdist(np.vstack([own, strangers]) / unit, Z / unit).min(axis=1)
        scores[name] = near
    # Equal shared rows are the mean of a group, once for each member.
    groups = equal_groups(Z)
    if len(groups) < len(Z):
        people = np.vstack([own, strangers])
        solved = [(group, solve(people, Z[group[0]], len(group))) for group in groups]
        found = np.zeros(len(people))
        for _, members in solved:
            found[members] = 1
        scores["groups"] = found + 1e-3 * rank(scores["distance"])
        # Who is in the table is known where rows are linked, so that there are fewer to be tried.
        among_own = [(group, solve(own, Z[group[0]], len(group))) for group in groups]
        links["groups"] = link_in_groups(world, own, among_own, links["distance"])
    scores["model"] = judge(world, np.vstack([own, strangers]))
    scores["shift"] = shift(world, np.vstack([own, strangers]))
    shadows = attack_by_shadows(world, np.vstack([own, strangers]), f)
    if shadows is not None:
        scores["shadow shares"] = shadows
    truth = np.arange(len(own) + len(strangers)) < len(own)
    areas = {name: float(roc_auc_score(truth, values)) for name, values in scores.items()}
    rates = {name: float(np.mean(values)) for name, values in links.items()}
    return {"linkage": best(rates), "membership AUC": best(areas)}


def best(found: dict[str, float]) -> tuple[float, str]:
    return max((value, name) for name, value in found.items())


def rank(values: Array) -> Array:
    return np.asarray(np.argsort(np.argsort(values)) / len(values))


def link(images: Array, Z: Array, world: AttackedShare) -> Array:
    """Whether each shared row is joined to its record, everybody in the table being a candidate; ties by a coin."""
    hits = []
    for _ in range(20):
        rows = world.random.permutation(len(Z))
        columns = world.random.permutation(len(images))
        i, j = linear_sum_assignment(cdist(Z[rows], images[columns]))
        hits.append(columns[j][np.argsort(rows[i])] == world.places)
    return np.asarray(np.mean(hits, axis=0))


def equal_groups(Z: Array) -> list[NDArray[np.intp]]:
    _, number = np.unique(Z, axis=0, return_inverse=True)
    return [np.flatnonzero(number.ravel() == each) for each in range(int(number.max()) + 1)]


def solve(people: Array, mean: Array, size: int) -> list[int]:
    """Members of a group: all sums of one half of them, against all of the other, along one direction."""
    # Rounding of sums in double precision, with some room.
    tolerance = 1e-9 * float(np.abs(people).max())
    if size == 1:
        gap = np.abs(people - mean).max(axis=1)
        if gap.min() <= tolerance:
            return [int(gap.argmin())]
        return []
    # Larger groups have too many sums of halves to try.
    if size not in _NEAREST:
        return []
    # Members lie near their mean, and sums of fewer candidates are fewer.
    order = np.argsort(((people - mean) ** 2).sum(axis=1))[: _NEAREST[size]]
    gaps = people[order] - mean
    along = gaps @ np.random.RandomState(0).standard_normal(gaps.shape[1])
    left, right = (subsets(len(order), part) for part in (size // 2, size - size // 2))
    sums = along[right].sum(axis=1)
    by_sum = np.argsort(sums)
    wanted = -along[left].sum(axis=1)
    starts = np.searchsorted(sums[by_sum], wanted - tolerance)
    ends = np.searchsorted(sums[by_sum], wanted + tolerance)
    for number in np.flatnonzero(ends > starts):
        for other in by_sum[starts[number] : ends[number]]:
            members = {*left[number].tolist(), *right[other].tolist()}
            if len(members) == size and np.abs(gaps[list(members)].sum(axis=0)).max() < 100 * tolerance:
                return [int(order[member]) for member in members]
    return []


@lru_cache(maxsize=12)
def subsets(n: int, size: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(n), size)), dtype=np.intp).reshape(-1, size)


def link_in_groups(
    world: AttackedShare, own: Array, solved: list[tuple[NDArray[np.intp], list[int]]], otherwise: Array
) -> Array:
    """Rows of solved groups go to members by how near their numbers are to a model's, else by chance."""
    hits = otherwise.copy()
    predicted = None
    if world.is_numeric:
        model = RandomForestRegressor(200, random_state=0).fit(world.share.anchor_representation, world.anchor[1])
        predicted = model.predict(own)
    for group, members in solved:
        if not members:
            continue
        told = np.array([member for member in members if member < len(own)], dtype=np.intp)
        shown = world.share.target[group]
        if predicted is None or len(np.unique(shown)) == 1 or not len(told):
            hits[group] = np.isin(world.places[group], told) / len(group)
            continue
        i, j = linear_sum_assignment((shown[:, None] - predicted[told][None, :]) ** 2)
        hits[group] = 0
        hits[group[i]] = told[j] == world.places[group[i]]
    return hits


def judge(world: AttackedShare, images: Array) -> Array:
    """How well a model of the shared rows says each record's own target."""
    y = np.concatenate([world.own[1], world.strangers[1]])
    Z = world.share.representation
    target = world.share.target
    if world.is_numeric:
        numbers = RandomForestRegressor(200, random_state=0).fit(Z, target)
        return np.asarray(-np.abs(numbers.predict(images) - y))
    model = RandomForestClassifier(200, random_state=0).fit(Z, target)
    chances = np.column_stack([np.zeros(len(images)), model.predict_proba(images)])
    column = {label: 1 + number for number, label in enumerate(model.classes_.tolist())}
    return np.asarray(chances[np.arange(len(y)), [column.get(label, 0) for label in y.tolist()]])


def shift(world: AttackedShare, images: Array) -> Array:
    """How far each class's shared rows lie off the anchor's, in the direction of the record."""
    y = np.concatenate([world.own[1], world.strangers[1]])
    bins = [y, world.share.target, world.anchor[1]]
    if world.is_numeric:
        # Numbers stand in tenths for classes.
        ends = np.unique(np.quantile(world.anchor[1], np.arange(1, 10) / 10, method="inverted_cdf"))
        bins = [np.searchsorted(ends, each) for each in bins]
    of_record, of_row, of_anchor = bins
    A = world.share.anchor_representation
    Z = world.share.representation
    scores = np.zeros(len(images))
    for label in np.unique(of_anchor):
        rows = of_row == label
        usual = A[of_anchor == label]
        # A class that nobody shared moved nothing.
        if not rows.any():
            continue
        some = of_record == label
        scores[some] = (images[some] - usual.mean(axis=0)) @ (Z[rows].mean(axis=0) - usual.mean(axis=0))
    return scores


def attack_by_shadows(world: AttackedShare, images: Array, f: Any) -> Array | None:
    """The library's shadow shares, with anchor and public rows together for made-up tables."""
    # Without a defence a member's row is there as it is, and distance finds it.
    if not world.party.defences:
        return None
    coding = target_numbers(world.share.target)
    recipe = recipe_of(world.party, world.share.anchor_representation, world.anchor[1], coding)
    known = np.vstack([f(world.anchor[0]), f(world.public[0])])
    target = np.concatenate([world.anchor[1], world.public[1]])
    attack = ShadowAttack(recipe, 32, random_state=world.random).fit(known, target, world.own[1])
    return attack.score(world.share, images, np.concatenate([world.own[1], world.strangers[1]]))
