"""Groups of a microaggregated share taken apart: who took part, and who stands behind which row."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ..attacks import AffineEstimate, Demixing, clustered_interval, demix, representation_distance_scores
from ._attacks import DEMIXING, KNOWN_TARGETS
from ._findings import Finding
from ._group_rows import Guess, assigned, differ, known_targets, predicted_targets
from ._known_targets import linked_by_targets
from ._membership import membership_findings
from ._scenario import Scenario

__all__ = ["demixing_findings"]


def demixing_findings(
    scenario: Scenario, level: str, leak: str, rows: NDArray[np.intp], forward: Mapping[str, FloatArray], seconds: float
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Take the share's groups apart, with all rows of the table as candidates, and with strangers among them.

    Once without the candidates' targets, where the targets of a solved group's rows are held against what the anchor
    says of its members; and once with them, where they are there.

    Parameters
    ----------
    scenario : Scenario
    level, leak : str
    rows : ndarray of shape (n_leaked,)
        Positions of the leaked anchor rows.
    forward : mapping of str to ndarray of shape (n_attacked,)
        For each measure of linkage the chance of each row under attack to be linked if its group is not taken apart.
    seconds : float
        Of all searches together.

    Returns
    -------
    findings : tuple of Finding
        None where the attack does not apply.
    remarks : tuple of str
    """
    estimate = AffineEstimate(scenario.anchor[rows], scenario.anchor_representation[rows])
    if not estimate.is_close:
        return (), (
            f"{level}, {leak}: means were not taken apart: f is not affine, or too few anchor rows are known to "
            "recover it.",
        )
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    ends = time.monotonic() + seconds
    is_done = False
    for attack, targets in {DEMIXING: None, KNOWN_TARGETS: scenario.candidate_target}.items():
        if attack == KNOWN_TARGETS and (targets is None or is_done):
            continue
        left = (ends - time.monotonic()) / (2 if attack == DEMIXING else 1)
        world = _World(scenario, level, leak, attack, rows, estimate, targets)
        found, of_attack = world.findings(forward, left)
        findings += of_attack
        how = "" if targets is None else ", with the candidates’ labels known"
        remarks += (
            f"{level}, {leak}: {found.n_solved} of {len(found.groups)} groups of equal rows were taken apart into "
            f"their records{how}.",
        )
        # Targets say nothing more then.
        is_done = found.n_solved == len(found.groups) and not differ(scenario.shared_target, found.groups)
    return findings, remarks


@dataclass(frozen=True, eq=False)
class _World:
    """What the attacker knows when it takes groups apart."""

    scenario: Scenario
    level: str
    leak: str
    attack: str
    rows: NDArray[np.intp]
    estimate: AffineEstimate
    targets: NDArray[Any] | None

    def findings(self, forward: Mapping[str, FloatArray], seconds: float) -> tuple[Demixing, tuple[Finding, ...]]:
        """With the table's rows alone as candidates, and with strangers among them; the last of the two searches."""
        ends = time.monotonic() + seconds
        table = self.scenario.table / self.scenario.scale
        outsiders = self.scenario.outsiders
        closed = self._demixed(table, seconds if outsiders is None else seconds / 2)
        found = {"linkage": closed}
        told: tuple[Finding, ...] = ()
        if outsiders is not None:
            people = np.vstack([table, outsiders])
            found["open-world linkage"] = self._demixed(people, ends - time.monotonic())
            scores = found["open-world linkage"].scores(
                representation_distance_scores(people, self.scenario.shared, self.estimate)
            )
            asked = np.concatenate([scores[self.scenario.index], scores[len(table) :]])
            told += membership_findings(self.scenario, self.level, self.leak, self.attack, asked)
        guess = _guess(self.scenario, closed, self.rows, self.targets, self.estimate(table))
        for metric, otherwise in forward.items():
            chances = _chances(self.scenario, found[metric], guess, otherwise)
            told += (self._linkage(metric, chances),)
        return list(found.values())[-1], told

    def _demixed(self, people: FloatArray, seconds: float) -> Demixing:
        scenario, rows = self.scenario, self.rows
        return demix(
            scenario.shared,
            scenario.shared_target,
            people,
            self.estimate,
            candidate_target=None if self.targets is None else self.targets[: len(people)],
            anchor_representation=scenario.anchor_representation[rows],
            anchor_target=None if scenario.anchor_target is None else scenario.anchor_target[rows],
            seconds=seconds,
        )

    def _linkage(self, metric: str, chances: FloatArray) -> Finding:
        low, high = clustered_interval(chances, self.scenario.clusters)
        n_strangers = len(self.scenario.decoys) if metric.startswith("open-world") else 0
        return Finding(
            level=self.level,
            leak=self.leak,
            metric=metric,
            attack=self.attack,
            value=float(chances.mean()),
            low=low,
            high=high,
            chance=1 / (len(self.scenario.table) + n_strangers),
            baseline=None if self.targets is None else linked_by_targets(self.scenario, metric),
            n=len(self.scenario.X),
        )


def _guess(
    scenario: Scenario,
    found: Demixing,
    rows: NDArray[np.intp],
    known: NDArray[Any] | None,
    images: FloatArray,
) -> Guess | None:
    """What tells rows of one group apart, where these have several targets."""
    if not differ(scenario.shared_target, found.groups):
        return None
    if known is not None:
        return known_targets(known)
    if scenario.anchor_target is None:
        return None
    return predicted_targets(scenario.anchor_representation[rows], scenario.anchor_target[rows], images)


def _chances(scenario: Scenario, found: Demixing, guess: Guess | None, otherwise: FloatArray) -> FloatArray:
    """Of each attacked row to be joined to its record: within its group by targets, where these differ."""
    attacked = {int(row): place for place, row in enumerate(scenario.places)}
    chances, n_rows = otherwise.copy(), len(scenario.table)
    for group, members in zip(found.groups, found.members, strict=True):
        if members is None:
            continue
        of_rows = assigned(scenario.shared_target[group], members[members < n_rows], guess)
        for row, joined in zip(group, of_rows, strict=True):
            if int(row) in attacked:
                place = attacked[int(row)]
                chances[place] = joined.get(int(scenario.index[place]), 0.0)
    return chances
