"""What reconstructions and estimates of f_k are worth to the attacker, with and without known targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    Rate,
    ShadowAttack,
    added_row_scores,
    clustered_interval,
    confused,
    demix,
    link_chances,
    membership,
    nearest_ranks,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
)
from ._findings import Finding
from ._levels import (
    AVERAGED,
    AVERAGED_NAME,
    DEMIXING,
    EXACT_MAP,
    FORWARD,
    FORWARD_KNOWN,
    KNOWN_TARGETS,
    SECOND_SHARE,
    SHADOWS,
    UNIT_SPREAD,
    averaged_reconstructions,
)
from ._scenario import Scenario

__all__ = [
    "Attribute",
    "ForwardMap",
    "Score",
    "demixing_findings",
    "forward_chances",
    "forward_maps",
    "linked_by_targets",
    "matched_representations",
    "measure",
    "measure_control",
    "membership_of_share",
    "membership_of_subspace",
    "second_share_findings",
    "shadow_findings",
    "shadow_rows",
    "strongest_of",
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
