"""What reconstructions and estimates of f_k are worth to the attacker, with and without known targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ..attacks import AffineEstimate, Rate, clustered_interval, confused, link_chances, nearest_ranks
from ._levels import EXACT_MAP, FORWARD, FORWARD_KNOWN, UNIT_SPREAD
from ._scenario import Scenario

__all__ = [
    "Attribute",
    "ForwardMap",
    "Score",
    "apart_by_class",
    "forward_chances",
    "forward_maps",
    "linked_by_targets",
    "matched_representations",
    "measure",
    "measure_control",
    "strongest_of",
    "target_columns",
    "told_by_targets",
]


def linked_by_targets(scenario: Scenario, metric: str) -> float:
    """What is linked by whoever knows the candidates' targets and the shared ones, and no representation.

    Parameters
    ----------
    scenario : Scenario
        With `candidate_target`.
    metric : str
        "linkage" or "open-world linkage".
    """
    originals, strangers, shared = target_columns(scenario, scenario.target)
    decoys = strangers[: len(scenario.decoys) if metric.startswith("open-world") else 0]
    chances = [
        link_chances(np.vstack([originals[group], decoys]), shared[group], random_state=0) for group in scenario.groups
    ]
    return float(np.concatenate(chances).mean())


def target_columns(scenario: Scenario, shared: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Targets of originals, outsiders and shared rows: numbers as one column, classes as indicators."""
    known = scenario.candidate_target
    assert known is not None
    own, strangers = known[scenario.index], known[len(scenario.table) :]
    code = _code(np.concatenate([own, strangers, shared]))
    first, second, third = np.split(code, [len(own), len(own) + len(strangers)])
    return first, second, third


def apart_by_class(
    rows: tuple[FloatArray, FloatArray, FloatArray], columns: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Originals, strangers and shared rows with further columns, so that one class is farther from the next than else.

    There may be fewer strangers than columns of them.
    """
    gap = 10 * float(np.ptp(np.vstack(rows), axis=0).sum()) or 1.0
    first, second, third = (
        np.hstack([each, gap * code[: len(each)]]) for each, code in zip(rows, columns, strict=True)
    )
    return first, second, third


def told_by_targets(scenario: Scenario) -> float:
    """Share of the attacked rows that leave with their record's own target, which no other row has."""
    known = scenario.candidate_target
    if known is None:
        return 0.0
    values, counts = np.unique(scenario.shared_target, return_counts=True)
    single = np.isin(scenario.target, values[counts == 1])
    return float((single & (scenario.target == known[scenario.index])).mean())


def _code(target: NDArray[Any]) -> FloatArray:
    if target.dtype.kind == "f":
        return np.asarray(target[:, None])
    return np.asarray(target[:, None] == np.unique(target), dtype=np.float64)


Emulate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ForwardMap:
    """One way to compare candidates with shared rows.

    Attributes
    ----------
    attack : str
    emulate : callable
        From candidates to representations.
    unit : ndarray of shape (n_intermediate,)
        Of each column.
    with_targets : bool
        Whether only candidates of a row's class come into question.
    """

    attack: str
    emulate: Emulate
    unit: FloatArray
    with_targets: bool = False

    def images(self, rows: FloatArray) -> FloatArray:
        """Candidates as they would be shared, shape (n_rows, n_intermediate)."""
        return self.emulate(rows) / self.unit if len(rows) else np.empty((0, len(self.unit)))

    def shared(self, Z: FloatArray) -> FloatArray:
        """Shared rows in the same units."""
        return Z / self.unit


def forward_maps(scenario: Scenario, rows: NDArray[np.intp], emulate: Emulate) -> list[ForwardMap]:
    """An emulator's distances; those of the exact map where f is affine; and either in units of each column's spread.

    Noise that is as large as each column's spread hides much in the first columns and little in the last: in its units
    every column counts alike, as the likelihood has it.

    Parameters
    ----------
    scenario : Scenario
    rows : ndarray of shape (n_leaked,)
        Positions of the leaked anchor rows.
    emulate : callable
        An emulator learnt from these.
    """
    ones = np.ones(scenario.Z.shape[1])
    maps = [ForwardMap(FORWARD, emulate, ones)]
    exact = AffineEstimate(scenario.anchor[rows], scenario.anchor_representation[rows])
    best: Emulate = exact if exact.is_close else emulate
    if exact.is_close:
        maps.append(ForwardMap(EXACT_MAP, exact, ones))
    spread = scenario.shared.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    maps.append(ForwardMap(UNIT_SPREAD, best, unit))
    # Numbers may be means of several rows'; fields leave as they are, and tell the more the finer they are.
    told = scenario.has_fields or scenario.shared_target.dtype.kind != "f"
    if scenario.candidate_target is not None and told:
        maps.append(ForwardMap(FORWARD_KNOWN, best, unit, with_targets=True))
    return maps


Attribute = int | Sequence[int] | Callable[[FloatArray], NDArray[Any]]
"""A column of numbers, the columns of a one-hot encoded category, or a function of the table that gives numbers."""
_RESAMPLES = 400


@dataclass(frozen=True)
class Measured:
    """One number with its 95 % interval."""

    value: float
    low: float | None
    high: float | None
    chance: float | None = None


Score = Mapping[str, Measured]
"""What one set of reconstructions comes to, by metric."""


def measure(
    scenario: Scenario,
    reconstructions: FloatArray,
    attributes: Mapping[str, Attribute],
    random: np.random.RandomState,
) -> Score:
    """All measures that need nothing but reconstructions of the attacked rows, shape (n_attacked, n_features)."""
    candidates, persons = (scenario.X, scenario.decoys), _persons_of(scenario)
    scores = dict(_matches(candidates, reconstructions, scenario.groups, persons, random, scenario.clusters))
    squared = ((scenario.X - reconstructions) ** 2).sum(axis=1)
    within = min((((scenario.X - rows) ** 2).sum(axis=1) for rows in scenario.label_only), key=np.sum)
    overall = ((scenario.X - scenario.mean_rows) ** 2).sum(axis=1)
    scores["R2c"] = _one_less_ratio(squared, within, random)
    scores["R2"] = _one_less_ratio(squared, overall, random)
    for name, attribute in attributes.items():
        wanted, found = (_values(attribute, rows * scenario.scale) for rows in (scenario.X, reconstructions))
        scores[f"attribute {name}"] = _attribute(wanted, found, random)
    return scores


def measure_control(scenario: Scenario, reconstructions: FloatArray, random: np.random.RandomState) -> Score:
    """The same rates for rows that are not the party's, shape (n_control, n_features)."""
    assert scenario.outsiders is not None
    originals = scenario.outsiders[: len(reconstructions)]
    alone = np.arange(len(originals))
    return dict(_matches((originals, originals[:0]), reconstructions, [alone], alone, random, alone))


def matched_representations(scenario: Scenario, forward: ForwardMap, random: np.random.RandomState) -> Score:
    """Rates where candidates are mapped by an estimate of f_k and compared with the share itself."""
    images, decoys, shared = forward.images(scenario.X), forward.images(scenario.decoys), forward.shared(scenario.Z)
    if forward.with_targets:
        columns = target_columns(scenario, scenario.target)
        own, strangers, of_rows = apart_by_class((images, decoys, shared), columns)
        images, decoys, shared = own, strangers, of_rows
    return dict(_matches((images, decoys), shared, scenario.groups, _persons_of(scenario), random, scenario.clusters))


def forward_chances(
    scenario: Scenario, emulate: Callable[[FloatArray], FloatArray], is_open: bool, random: np.random.RandomState
) -> FloatArray:
    """Chance of each attacked row to be linked, by an estimate of f_k; among decoys in an open world."""
    decoys = emulate(scenario.decoys) if is_open and len(scenario.decoys) else scenario.Z[:0]
    images, chances, persons = emulate(scenario.X), np.empty(len(scenario.X)), _persons_of(scenario)
    for group in scenario.groups:
        rows, among = np.vstack([images[group], decoys]), _persons_among(persons, group, len(decoys))
        chances[group] = link_chances(rows, scenario.Z[group], persons=among, random_state=random)
    return chances


def strongest_of(scores: Sequence[Score], n_draws: int) -> Score:
    """The larger of several scores by metric, each the mean of its draws, which follow one another."""
    found = {}
    for metric in scores[0]:
        values = np.reshape([score[metric].value for score in scores], (-1, n_draws)).mean(axis=1)
        found[metric] = Measured(float(values.max()), None, None)
    return found


def _matches(
    candidates: tuple[FloatArray, FloatArray],
    reconstructions: FloatArray,
    groups: list[NDArray[np.intp]],
    persons: NDArray[np.intp],
    random: np.random.RandomState,
    clusters: NDArray[np.intp],
) -> Iterator[tuple[str, Measured]]:
    """Rates in closed worlds, and in open ones where there are decoys.

    `candidates` are originals and decoys, as they are or through an estimate of f_k, and `persons` their numbers.
    """
    originals, decoys = candidates
    for world, strangers in {"": decoys[:0], "open-world ": decoys}.items():
        if world and not len(decoys):
            continue
        cases = [
            (
                np.vstack([originals[group], strangers]),
                reconstructions[group],
                _persons_among(persons, group, len(strangers)),
            )
            for group in groups
        ]
        ranks = np.concatenate([nearest_ranks(C, R, persons=who, random_state=random) for C, R, who in cases])
        right = np.concatenate([link_chances(C, R, persons=who, random_state=random) for C, R, who in cases])
        n_candidates = len(cases[0][0])
        hits = {"re-identification@1": ranks <= 1, "re-identification@5": ranks <= 5, "linkage": right}
        if world:
            hits = {"re-identification": ranks <= 1, "linkage": right}
        for name, hit in hits.items():
            together = _together(cases, groups, clusters, random) if name == "linkage" else clusters
            low, high = clustered_interval(hit, together)
            tries = 5 if name.endswith("@5") else 1
            yield world + name, Measured(float(hit.mean()), low, high, min(1.0, tries / n_candidates))


def _together(
    cases: list[tuple[FloatArray, FloatArray, NDArray[np.intp]]],
    groups: list[NDArray[np.intp]],
    clusters: NDArray[np.intp],
    random: np.random.RandomState,
) -> NDArray[np.intp]:
    """Numbers of rows that are one try for linkage: those shared as one, else those that are taken for each other."""
    if len(np.unique(clusters)) < len(clusters):
        return clusters
    numbers = [group[confused(C, R, random_state=random)] for group, (C, R, _) in zip(groups, cases, strict=True)]
    found = np.empty(len(clusters), dtype=np.intp)
    found[np.concatenate(groups)] = np.concatenate(numbers)
    return found


def _persons_of(scenario: Scenario) -> NDArray[np.intp]:
    """Numbers of originals and decoys, the same for equal rows."""
    rows = np.vstack([scenario.X, scenario.decoys])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _persons_among(persons: NDArray[np.intp], group: NDArray[np.intp], n_decoys: int) -> NDArray[np.intp]:
    """Those of a group of originals, and of the decoys, which come last."""
    return np.concatenate([persons[group], persons[len(persons) - n_decoys :]])


def _values(attribute: Attribute, rows: FloatArray) -> NDArray[Any]:
    """Numbers, or integers for a category."""
    if isinstance(attribute, int | np.integer):
        return np.asarray(rows[:, attribute])
    if callable(attribute):
        return np.asarray(attribute(rows), dtype=np.float64)
    return np.asarray(rows[:, list(attribute)].argmax(axis=1))


def _attribute(wanted: NDArray[Any], found: NDArray[Any], random: np.random.RandomState) -> Measured:
    """R2 of a number, accuracy of a category."""
    if wanted.dtype.kind == "i":
        rate = Rate(int((wanted == found).sum()), len(wanted))
        return Measured(rate.value, rate.low, rate.high)
    return _one_less_ratio((wanted - found) ** 2, (wanted - wanted.mean()) ** 2, random)


def _one_less_ratio(numerator: FloatArray, denominator: FloatArray, random: np.random.RandomState) -> Measured:
    """1 - sum / sum over rows, with a bootstrap interval over the rows."""
    if denominator.sum() == 0:
        return Measured(float("nan"), None, None)
    drawn = random.randint(len(numerator), size=(_RESAMPLES, len(numerator)))
    below = np.maximum(denominator[drawn].sum(axis=1), np.finfo(float).tiny)
    low, high = np.quantile(1 - numerator[drawn].sum(axis=1) / below, [0.025, 0.975])
    return Measured(float(1 - numerator.sum() / denominator.sum()), float(low), float(high))
