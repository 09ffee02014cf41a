"""Means of groups taken apart into the records that they are the means of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import RandomForestClassifier

from ..._validation import FloatArray
from ..attacks import (
    AffineEstimate,
    Demixing,
    KernelRidgeAttack,
    clustered_interval,
    demix,
    representation_distance_scores,
)
from ._findings import Finding
from ._levels import DEMIXING, KNOWN_TARGETS
from ._measure import linked_by_targets
from ._membership import membership_findings
from ._scenario import Scenario

__all__ = ["assigned", "demixing_findings", "known_targets", "predicted_targets"]

Guess = Callable[[NDArray[Any], NDArray[np.intp]], FloatArray]
"""From targets of rows (n,) and numbers of records (m,) to how little each fits each, shape (n, m)."""
_LEAST_PROBABILITY = 1e-3


def differ(target: NDArray[Any], groups: Sequence[NDArray[np.intp]]) -> bool:
    """Whether rows of some group have different targets."""
    return any(len(np.unique(target[group])) > 1 for group in groups)


def known_targets(target: NDArray[Any]) -> Guess:
    """The attacker knows the records' targets, shape (n_records,)."""
    if target.dtype.kind == "f":
        return lambda shown, records: np.asarray(np.abs(shown[:, None] - target[records][None, :]))
    return lambda shown, records: np.asarray(shown[:, None] != target[records][None, :], dtype=np.float64)


def predicted_targets(representation: FloatArray, target: NDArray[Any], images: FloatArray) -> Guess:
    """The attacker predicts them from the records' images, by what the anchor's targets teach.

    Parameters
    ----------
    representation : ndarray of shape (n_leaked, n_intermediate)
    target : ndarray of shape (n_leaked,)
    images : ndarray of shape (n_records, n_intermediate)
    """
    if target.dtype.kind == "f":
        numbers = KernelRidgeAttack().fit(representation, target.reshape(-1, 1)).reconstruct(images)[:, 0]
        return lambda shown, records: np.asarray((shown[:, None] - numbers[records][None, :]) ** 2)
    # A seed of its own: nothing of the forest is secret.
    forest = RandomForestClassifier(100, random_state=0).fit(representation, target)
    surprise = -np.log(np.maximum(forest.predict_proba(images), _LEAST_PROBABILITY))
    unknown = np.full((len(images), 1), -np.log(_LEAST_PROBABILITY))
    surprise = np.hstack([surprise, unknown])

    def fits(shown: NDArray[Any], records: NDArray[np.intp]) -> FloatArray:
        column = {label: number for number, label in enumerate(forest.classes_.tolist())}
        chosen = [column.get(label, surprise.shape[1] - 1) for label in shown.tolist()]
        return np.asarray(surprise[records][:, chosen].T)

    return fits


def assigned(target: NDArray[Any], members: NDArray[np.intp], guess: Guess | None) -> list[dict[int, float]]:
    """Chance that the attacker joins each row of a group to each member.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)
        Of the group's rows.
    members : ndarray of shape (n_members,)
        Numbers of the records that the group was taken apart into; strangers taken for members are left out.
    guess : callable or None
        None where nothing tells rows apart.

    Returns
    -------
    list of dict of int to float
        For each row.
    """
    if guess is None or len(np.unique(target)) == 1 or not len(members):
        return [dict.fromkeys(members.tolist(), 1 / len(target)) for _ in target]
    rows, columns = linear_sum_assignment(guess(target, members))
    joined: dict[Any, list[int]] = {}
    for row, column in zip(rows, columns, strict=True):
        joined.setdefault(target[row].item(), []).append(int(members[column]))
    # Rows with one target are told apart by nothing.
    return [dict.fromkeys(joined.get(shown.item(), []), 1 / max(1, int((target == shown).sum()))) for shown in target]


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
