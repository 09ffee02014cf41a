"""Whether a person took part: from the share, from f_k alone, and by shares made as the party makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from ..._validation import FloatArray
from ..attacks import (
    Rate,
    ShadowAttack,
    added_row_scores,
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
)
from ._findings import Finding
from ._levels import AVERAGED, AVERAGED_NAME, SECOND_SHARE, SHADOWS, averaged_reconstructions
from ._measure import ForwardMap, apart_by_class, target_columns
from ._scenario import Scenario

__all__ = [
    "membership_findings",
    "membership_of_share",
    "membership_of_subspace",
    "second_share_findings",
    "shadow_findings",
    "shadow_rows",
]

_FALSE_POSITIVES = 0.01


def membership_of_share(
    scenario: Scenario,
    level: str,
    leak: str,
    maps: Sequence[ForwardMap],
    found: Mapping[str, FloatArray],
) -> tuple[Finding, ...]:
    """How well distances tell members from others: between representations, and from each attack's reconstructions.

    Parameters
    ----------
    scenario : Scenario
        With outsiders.
    level, leak : str
    emulate : callable
        The attacker's estimate of f_k.
    found : mapping of str to ndarray of shape (n_attacked, n_features)
        Reconstructions by attack; of those that are usually averaged, the average counts.
    """
    assert scenario.outsiders is not None
    people = np.vstack([scenario.X, scenario.outsiders])
    scores = {f"{each.attack}, distance": _nearness(scenario, each) for each in maps}
    if scenario.public is not None:
        averaged = {AVERAGED_NAME: averaged_reconstructions(found)} if set(AVERAGED) <= set(found) else found
        for attack, reconstructions in averaged.items():
            scores[f"{attack}, distance"] = reconstruction_distance_scores(people, reconstructions, scenario.public)
    return tuple(
        finding
        for attack, values in scores.items()
        for finding in membership_findings(scenario, level, leak, attack, values)
    )


def _nearness(scenario: Scenario, forward: ForwardMap) -> FloatArray:
    """How near some shared row is to the image of each original and outsider; of its class, where that is known."""
    assert scenario.outsiders is not None
    rows = forward.images(scenario.X), forward.images(scenario.outsiders), forward.shared(scenario.shared)
    if forward.with_targets:
        rows = apart_by_class(rows, target_columns(scenario, scenario.shared_target))
    own, strangers, shared = rows
    return representation_distance_scores(np.vstack([own, strangers]), shared, lambda images: images)


def membership_of_subspace(scenario: Scenario, level: str) -> tuple[Finding, ...]:
    """How well the subspace that f_k keeps tells members from others; the share's rows are not used."""
    assert scenario.outsiders is not None
    assert scenario.public is not None
    people = np.vstack([scenario.X, scenario.outsiders])
    found: tuple[Finding, ...] = ()
    # In which units f works is not known; where all columns have one, both are the same.
    units = {"subspace": np.ones_like(scenario.scale), "subspace, in the table's units": scenario.scale}
    for attack, unit in units.items():
        if attack == "subspace" or not np.array_equal(unit, np.ones_like(unit)):
            scores = subspace_scores(
                people * unit, scenario.anchor * unit, scenario.anchor_representation, scenario.public * unit
            )
            found += membership_findings(scenario, level, "all anchor rows", attack, scores)
    return found


def membership_findings(
    scenario: Scenario, level: str, leak: str, attack: str, scores: FloatArray
) -> tuple[Finding, Finding]:
    """AUC and TPR of scores for the rows under attack, then the strangers; shape (n_attacked + n_outsiders,).

    Intervals count rows of one published mean as one.
    """
    n = len(scenario.X)
    found = membership(scores[:n], scores[n:], fpr=_FALSE_POSITIVES, groups=scenario.clusters)
    curve = Finding(
        level=level,
        leak=leak,
        metric="membership AUC",
        attack=attack,
        value=found.auc,
        low=found.low,
        high=found.high,
        chance=0.5,
        n=n,
    )
    return curve, replace(
        curve,
        metric="membership TPR",
        value=found.tpr,
        low=found.tpr_low,
        high=found.tpr_high,
        chance=_FALSE_POSITIVES,
    )


_SHADOWS = 48
_SECONDS = 30.0
"""After which no further row is added, and no further share made."""
_LARGEST_TABLE = 3000
"""Rows from which on making tables takes too long."""
_ADDED = 20
"""Rows added to the table, one at a time."""
_AVERAGED = 10
_DECOYS = 900


def shadow_findings(
    scenario: Scenario, level: str, leak: str, emulate: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[Finding, ...]:
    """Who took part, record by record, without a list of candidates.

    The attacker knows the records' targets where the auditor does for members and strangers alike, and else takes them
    for what a model of the anchor says.
    """
    assert scenario.recipe is not None
    assert scenario.outsiders is not None
    known = shadow_rows(scenario)
    assert known is not None
    random = np.random.RandomState(seed)
    images = emulate(np.vstack([scenario.X, scenario.outsiders]))
    if scenario.record_target is not None and scenario.outsider_target is not None:
        targets = np.concatenate([scenario.record_target, scenario.outsider_target])
    else:
        targets = _recognised(emulate(known[0]), known[1], images, random)
    attack = ShadowAttack(scenario.recipe, _SHADOWS, seconds=_SECONDS, random_state=random)
    attack.fit(emulate(known[0]), known[1], scenario.table_target)
    scores = attack.score(scenario.share, images, targets)
    return membership_findings(scenario, level, leak, SHADOWS, scores)


def shadow_rows(scenario: Scenario) -> tuple[FloatArray, NDArray[Any]] | None:
    """Rows with targets for made-up tables: public ones, else the anchor's; None where there are too few."""
    if len(scenario.table_target) > _LARGEST_TABLE:
        return None
    pools = ((scenario.public, scenario.public_target), (scenario.anchor, scenario.anchor_target))
    for rows, target in pools:
        if rows is not None and target is not None and len(rows) >= 2 * len(scenario.table_target):
            return rows, target
    return None


def second_share_findings(
    scenario: Scenario, level: str, leak: str, emulate: Callable[[FloatArray], FloatArray], seed: int
) -> tuple[Finding, ...]:
    """How often a row that was added between two shares is told among strangers; with one share each, and with ten.

    f_k is the same for both, and the targets of the added row's class are seen to grow.
    """
    assert scenario.recipe is not None
    assert scenario.outsiders is not None
    assert scenario.images is not None
    random = np.random.RandomState(seed)
    target = scenario.table_target
    strangers = emulate(scenario.outsiders[:_DECOYS])
    own = emulate(scenario.X)
    chosen = random.permutation(len(scenario.X))[:_ADDED]
    started, n_added = time.monotonic(), 0
    hits = {1: 0, _AVERAGED: 0}
    for place in chosen:
        if n_added and time.monotonic() - started > _SECONDS:
            break
        rest = np.arange(len(target)) != scenario.index[place]
        candidates = np.vstack([own[place : place + 1], strangers])
        tables = (rest, np.ones(len(target), dtype=bool))
        before, after = (
            [scenario.recipe(scenario.images[kept], target[kept], random) for _ in range(_AVERAGED)] for kept in tables
        )
        for n_shares in hits:
            scores = added_row_scores(before[:n_shares], after[:n_shares], candidates)
            hits[n_shares] += int((scores[1:] < scores[0]).all())
        n_added += 1
    template = Finding(
        level=level,
        leak=f"{leak}, and a second share",
        metric="added row named",
        attack=SECOND_SHARE,
        value=0.0,
        chance=1 / (1 + len(strangers)),
        n=n_added,
    )
    found = []
    for n_shares, count in hits.items():
        rate = Rate(count, n_added)
        leaked = f"{leak}, and a second share" if n_shares == 1 else f"{leak}, and {n_shares} shares before and after"
        found.append(replace(template, leak=leaked, value=rate.value, low=rate.low, high=rate.high))
    return tuple(found)


def _recognised(
    known: FloatArray, target: NDArray[Any], images: FloatArray, random: np.random.RandomState
) -> NDArray[Any]:
    if target.dtype.kind == "f":
        # The nearest known row's target is as good as the groups of targets that are told apart.
        nearest = ((images[:, None, :] - known[None, :500, :]) ** 2).sum(axis=2).argmin(axis=1)
        return np.asarray(target[:500][nearest])
    model = RandomForestClassifier(100, random_state=random).fit(known, target)
    return np.asarray(model.predict(images))
