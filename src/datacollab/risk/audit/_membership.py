"""Whether a person took part: from the share, and from f_k alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..._validation import FloatArray
from ..attacks import membership, reconstruction_distance_scores, representation_distance_scores, subspace_scores
from ._attacks import AVERAGED, AVERAGED_NAME, averaged_reconstructions
from ._findings import Finding
from ._forward import ForwardMap
from ._known_targets import apart_by_class, target_columns
from ._scenario import Scenario

__all__ = ["membership_findings", "membership_of_share", "membership_of_subspace"]

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
