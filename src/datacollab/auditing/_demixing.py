"""Groups of a microaggregated share taken apart: who took part, and who stands behind which row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._validation import FloatArray
from ..privacy import (
    AffineEstimate,
    Demixing,
    KernelRidgeAttack,
    clustered_interval,
    demix,
    representation_distance_scores,
)
from ._attacks import DEMIXING
from ._findings import Finding
from ._membership import membership_findings
from ._scenario import Scenario

__all__ = ["demixing_findings"]


def demixing_findings(
    scenario: Scenario, level: str, leak: str, rows: NDArray[np.intp], forward: Mapping[str, FloatArray], seconds: float
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Take the share's groups apart, with all originals and strangers as candidates.

    Parameters
    ----------
    scenario : Scenario
    level, leak : str
    rows : ndarray of shape (n_leaked,)
        Positions of the leaked anchor rows.
    forward : mapping of str to ndarray of shape (n_attacked,)
        For each measure of linkage the chance of each row under attack to be linked if its group is not taken apart.
    seconds : float
        Of the search.

    Returns
    -------
    findings : tuple of Finding
        None where the attack does not apply.
    remarks : tuple of str
    """
    anchor, representation = scenario.anchor[rows], scenario.anchor_representation[rows]
    estimate = AffineEstimate(anchor, representation)
    people = scenario.X if scenario.outsiders is None else np.vstack([scenario.X, scenario.outsiders])
    known = None if scenario.anchor_target is None else scenario.anchor_target[rows]
    found = demix(
        scenario.shared,
        scenario.shared_target,
        people,
        estimate,
        anchor_representation=representation,
        anchor_target=known,
        seconds=seconds,
    )
    said = () if found.obstacle is None else (f"{level}, {leak}: {found.obstacle}",)
    if not found.applies:
        return (), said
    n_solved = f"{found.n_solved} of {len(found.groups)} groups of equal rows were taken apart into their records"
    findings: tuple[Finding, ...] = ()
    if scenario.outsiders is not None:
        scores = found.scores(representation_distance_scores(people, scenario.shared, estimate))
        findings += membership_findings(scenario, level, leak, DEMIXING, scores)
    findings += _linkage(scenario, level, leak, found, estimate(scenario.X), forward)
    return findings, (*said, f"{level}, {leak}: {n_solved}.")


def _linkage(
    scenario: Scenario, level: str, leak: str, found: Demixing, images: FloatArray, forward: Mapping[str, FloatArray]
) -> tuple[Finding, ...]:
    """Chance of each attacked row to be joined to its record: within its group by targets, where these differ."""
    attacked = {int(row): place for place, row in enumerate(scenario.places)}
    predicted = _predicted(scenario, images)
    n = len(scenario.X)
    settled: dict[int, float] = {}
    for group, members in zip(found.groups, found.members, strict=True):
        if members is None:
            continue
        guessed = _assigned(scenario, group, members[members < n], predicted)
        places = [(row, attacked[int(row)]) for row in group if int(row) in attacked]
        settled |= {place: guessed.get((int(row), place), 0.0) for row, place in places}
    findings = []
    for metric, otherwise in forward.items():
        chances = otherwise.copy()
        chances[list(settled)] = list(settled.values())
        low, high = clustered_interval(chances, scenario.clusters)
        n_candidates = n + len(scenario.decoys) if metric.startswith("open-world") else n
        findings.append(
            Finding(
                level=level,
                leak=leak,
                metric=metric,
                attack=DEMIXING,
                value=float(chances.mean()),
                low=low,
                high=high,
                chance=1 / n_candidates,
                n=n,
            )
        )
    return tuple(findings)


def _predicted(scenario: Scenario, images: FloatArray) -> FloatArray | None:
    """Numeric targets of the records under attack as the attacker predicts them."""
    target = scenario.anchor_target
    if target is None or target.dtype.kind != "f":
        return None
    model = KernelRidgeAttack().fit(scenario.anchor_representation, target.reshape(-1, 1))
    return np.asarray(model.reconstruct(images)[:, 0])


def _assigned(
    scenario: Scenario, group: NDArray[np.intp], members: NDArray[np.intp], predicted: FloatArray | None
) -> dict[tuple[int, int], float]:
    """Chance that the attacker joins a row of a group to a member, by row and member."""
    targets = scenario.shared_target[group]
    if predicted is None or len(np.unique(targets)) == 1:
        return {(int(row), int(member)): 1 / len(group) for row in group for member in members}
    rows, columns = linear_sum_assignment((targets[:, None] - predicted[members][None, :]) ** 2)
    chances: dict[tuple[int, int], float] = {}
    for row, column in zip(rows, columns, strict=True):
        # Rows with one target are told apart by nothing.
        equal = group[targets == targets[row]]
        chances |= {(int(each), int(members[column])): 1 / len(equal) for each in equal}
    return chances
