"""Measures of what reconstructions, estimates of f_k, and scores of membership give the attacker.

Findings get their level, and where it is missing their leak and attack, from the trial that makes them.
"""

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
    ShadowAttack,
    clustered_interval,
    confused,
    demix,
    link_chances,
    membership,
    nearest_ranks,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
    wilson_interval,
)
from ..attacks._attack import IntArray
from ._findings import (
    AVERAGED,
    AVERAGED_NAME,
    DEMIXING,
    EXACT_MAP,
    FORWARD,
    FORWARD_KNOWN,
    KNOWN_TARGETS,
    SHADOWS,
    UNIT_SPREAD,
    Finding,
)
from ._scenario import Scenario

Emulate = Callable[[FloatArray], FloatArray]
Attribute = int | Sequence[int] | Callable[[FloatArray], NDArray[Any]]
"""A column of numbers, the columns of a one-hot encoded category, or a function of the table that gives numbers."""
_RESAMPLES = 400
Tables = tuple[FloatArray, FloatArray, FloatArray]
"""Originals, strangers and shared rows."""


def averaged_reconstructions(found: Mapping[str, FloatArray]) -> FloatArray:
    """Average the reconstructions of the attacks in `AVERAGED`, given all by name."""
    return np.asarray(np.mean([found[attack] for attack in AVERAGED], axis=0))


def linked_by_targets(scenario: Scenario, metric: str) -> float:
    """Return the linkage with the candidates' targets and the shared ones, and no representation."""
    originals, strangers, shared = _target_columns(scenario, scenario.target)
    decoys = strangers[: len(scenario.decoys) if metric.startswith("open-world") else 0]
    chances = [
        link_chances(np.vstack([originals[group], decoys]), shared[group], random_state=0) for group in scenario.groups
    ]
    return float(np.concatenate(chances).mean())


def _target_columns(scenario: Scenario, shared: NDArray[Any]) -> Tables:
    """Code targets of originals, outsiders and shared rows: numbers as one column, classes as indicators."""
    known = scenario.candidate_target
    assert known is not None
    own, strangers = known[scenario.index], known[len(scenario.table) :]
    target = np.concatenate([own, strangers, shared])[:, None]
    code = target if target.dtype.kind == "f" else (target == np.unique(target)).astype(np.float64)
    first, second, third = np.split(code, [len(own), len(own) + len(strangers)])
    return first, second, third


def given_away_by_targets(scenario: Scenario) -> float:
    """Return the share of the attacked rows that leave with their record's own target, which no other row has."""
    known = scenario.candidate_target
    if known is None:
        return 0.0
    values, counts = np.unique(scenario.shared_target, return_counts=True)
    single = np.isin(scenario.target, values[counts == 1])
    return float((single & (scenario.target == known[scenario.index])).mean())


@dataclass(frozen=True, eq=False)
class ForwardMap:
    """Way to compare candidates with shared rows: an estimate of f, and a unit for each column.

    If `with_targets`, only candidates of a row's class come into question.
    """

    attack: str
    emulate: Emulate
    unit: FloatArray
    with_targets: bool = False

    def tables(self, scenario: Scenario, others: FloatArray, shared: FloatArray, target: NDArray[Any]) -> Tables:
        """Bring originals, some strangers, and shared rows with their targets into one space."""
        own, strangers = (
            self.emulate(rows) / self.unit if len(rows) else np.empty((0, len(self.unit)))
            for rows in (scenario.X, others)
        )
        tables = own, strangers, shared / self.unit
        if not self.with_targets:
            return tables
        # One class is farther from the next than all else.
        gap = 10 * float(np.ptp(np.vstack(tables), axis=0).sum()) or 1.0
        first, second, third = (
            np.hstack([each, gap * code[: len(each)]])
            for each, code in zip(tables, _target_columns(scenario, target), strict=True)
        )
        return first, second, third


def forward_maps(scenario: Scenario, rows: IntArray, emulate: Emulate) -> list[ForwardMap]:
    """List an emulator's distances; those of the exact map if f is affine; and either in units of each column's spread.

    Noise that is as large as each column's spread hides much in the first columns and little in the last: in its units
    every column counts alike, as the likelihood has it.
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
    telling = scenario.has_fields or scenario.shared_target.dtype.kind != "f"
    if scenario.candidate_target is not None and telling:
        maps.append(ForwardMap(FORWARD_KNOWN, best, unit, with_targets=True))
    return maps


def measure(
    scenario: Scenario,
    reconstructions: FloatArray,
    attributes: Mapping[str, Attribute],
    random: np.random.RandomState,
) -> tuple[Finding, ...]:
    """Compute all measures that need nothing but reconstructions of the attacked rows."""
    X, n = scenario.X, len(scenario.X)
    given = scenario.groups, scenario.persons, random, scenario.clusters
    found = list(_matches(X, scenario.decoys, reconstructions, *given))
    squared = ((X - reconstructions) ** 2).sum(axis=1)
    within = min((((X - rows) ** 2).sum(axis=1) for rows in scenario.label_only), key=np.sum)
    found.append(_one_less_ratio("R2c", squared, within, random))
    found.append(_one_less_ratio("R2", squared, ((X - scenario.mean_rows) ** 2).sum(axis=1), random))
    for name, attribute in attributes.items():
        true, guessed = (_values(attribute, rows * scenario.scale) for rows in (X, reconstructions))
        metric = f"attribute {name}"
        if true.dtype.kind == "i":
            right = int((true == guessed).sum())
            low, high = wilson_interval(right, n)
            found.append(Finding(metric=metric, value=right / n, low=low, high=high, n=n))
        else:
            found.append(_one_less_ratio(metric, (true - guessed) ** 2, (true - true.mean()) ** 2, random))
    return tuple(found)


def measure_control(
    scenario: Scenario, reconstructions: FloatArray, random: np.random.RandomState
) -> tuple[Finding, ...]:
    """Compute the same rates for rows that are not the party's, shape (n_control, n_features)."""
    assert scenario.outsiders is not None
    originals = scenario.outsiders[: len(reconstructions)]
    alone = np.arange(len(originals))
    return tuple(_matches(originals, originals[:0], reconstructions, [alone], alone, random, alone))


def matched_representations(
    scenario: Scenario, forward: ForwardMap, random: np.random.RandomState
) -> tuple[Finding, ...]:
    """Compute rates where candidates are mapped by an estimate of f_k and compared with the share itself."""
    tables = forward.tables(scenario, scenario.decoys, scenario.Z, scenario.target)
    return tuple(_matches(*tables, scenario.groups, scenario.persons, random, scenario.clusters))


def forward_chances(scenario: Scenario, emulate: Emulate, is_open: bool, random: np.random.RandomState) -> FloatArray:
    """Compute the chance of each attacked row to be linked by an estimate of f_k; among decoys in an open world."""
    decoys = emulate(scenario.decoys) if is_open and len(scenario.decoys) else scenario.Z[:0]
    images, chances = emulate(scenario.X), np.empty(len(scenario.X))
    for group in scenario.groups:
        rows, among = np.vstack([images[group], decoys]), _persons_among(scenario.persons, group, len(decoys))
        chances[group] = link_chances(rows, scenario.Z[group], persons=among, random_state=random)
    return chances


def _matches(
    originals: FloatArray,
    decoys: FloatArray,
    reconstructions: FloatArray,
    groups: list[IntArray],
    persons: IntArray,
    random: np.random.RandomState,
    clusters: IntArray,
) -> Iterator[Finding]:
    """Yield rates in closed worlds, and in open ones if there are decoys.

    Originals and decoys are as they are or through an estimate of f_k; `persons` are their numbers.
    """
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
            together = clusters
            if name == "linkage" and len(np.unique(clusters)) == len(clusters):
                # Rows that are taken for each other are one try, and so are those that are shared as one.
                numbers = [
                    group[confused(C, R, random_state=random)] for group, (C, R, _) in zip(groups, cases, strict=True)
                ]
                together = np.empty(len(clusters), dtype=np.intp)
                together[np.concatenate(groups)] = np.concatenate(numbers)
            low, high = clustered_interval(hit, together)
            chance = min(1.0, (5 if name.endswith("@5") else 1) / n_candidates)
            value = float(hit.mean())
            yield Finding(metric=world + name, value=value, low=low, high=high, chance=chance, n=len(clusters))


def _persons_among(persons: IntArray, group: IntArray, n_decoys: int) -> IntArray:
    """Return the numbers of a group of originals, and of the decoys, which come last."""
    return np.concatenate([persons[group], persons[len(persons) - n_decoys :]])


def _values(attribute: Attribute, rows: FloatArray) -> NDArray[Any]:
    """Return numbers, or integers for a category."""
    if isinstance(attribute, int | np.integer):
        return np.asarray(rows[:, attribute])
    if callable(attribute):
        return np.asarray(attribute(rows), dtype=np.float64)
    return np.asarray(rows[:, list(attribute)].argmax(axis=1))


def _one_less_ratio(
    metric: str, numerator: FloatArray, denominator: FloatArray, random: np.random.RandomState
) -> Finding:
    """Compute 1 - sum / sum over rows, with a bootstrap interval over the rows."""
    n = len(numerator)
    if denominator.sum() == 0:
        return Finding(metric=metric, value=float("nan"), n=n)
    drawn = random.randint(n, size=(_RESAMPLES, n))
    below = np.maximum(denominator[drawn].sum(axis=1), np.finfo(float).tiny)
    low, high = np.quantile(1 - numerator[drawn].sum(axis=1) / below, [0.025, 0.975])
    value = float(1 - numerator.sum() / denominator.sum())
    return Finding(metric=metric, value=value, low=float(low), high=float(high), n=n)


_FALSE_POSITIVES = 0.01


def membership_of_share(
    scenario: Scenario, maps: Sequence[ForwardMap], found: Mapping[str, FloatArray]
) -> tuple[Finding, ...]:
    """Measure how well distances tell members from others: between representations, and from reconstructions by attack.

    Of the reconstructions that are usually averaged, the average counts.
    """
    assert scenario.outsiders is not None
    scores = {}
    for each in maps:
        # The shared row nearest to the image counts; of the same class, if that is known.
        *people, shared = each.tables(scenario, scenario.outsiders, scenario.shared, scenario.shared_target)
        scores[f"{each.attack}, distance"] = representation_distance_scores(
            np.vstack(people), shared, lambda images: images
        )
    if scenario.public is not None:
        averaged = {AVERAGED_NAME: averaged_reconstructions(found)} if set(AVERAGED) <= set(found) else found
        for attack, rows in averaged.items():
            scores[f"{attack}, distance"] = reconstruction_distance_scores(scenario.people, rows, scenario.public)
    return tuple(
        finding for attack, values in scores.items() for finding in _membership_findings(scenario, attack, values)
    )


def membership_of_subspace(scenario: Scenario) -> tuple[Finding, ...]:
    """Measure how well the subspace that f_k keeps tells members from others; the share's rows are not used."""
    assert scenario.public is not None
    found: tuple[Finding, ...] = ()
    # In which units f works is not known; where all columns have one, both are the same.
    units = {"subspace": np.ones_like(scenario.scale)}
    if (scenario.scale != 1).any():
        units["subspace, in the table's units"] = scenario.scale
    for attack, unit in units.items():
        scores = subspace_scores(
            scenario.people * unit, scenario.anchor * unit, scenario.anchor_representation, scenario.public * unit
        )
        found += _membership_findings(scenario, attack, scores)
    return found


def _membership_findings(scenario: Scenario, attack: str, scores: FloatArray) -> tuple[Finding, Finding]:
    """Measure AUC and TPR of scores for the rows under attack, then the strangers; shape (n_attacked + n_outsiders,).

    Intervals count rows of one published mean as one.
    """
    n = len(scenario.X)
    found = membership(scores[:n], scores[n:], fpr=_FALSE_POSITIVES, groups=scenario.clusters)
    auc = Finding(
        metric="membership AUC", attack=attack, value=found.auc, low=found.low, high=found.high, chance=0.5, n=n
    )
    tpr = replace(auc, metric="membership TPR", value=found.tpr, low=found.tpr_low, high=found.tpr_high)
    return auc, replace(tpr, chance=_FALSE_POSITIVES)


_SHADOWS = 48
_SECONDS = 30.0
"""After which no further share is made."""
_LARGEST_TABLE = 3000
"""Rows from which on making tables takes too long."""


def shadow_findings(scenario: Scenario, emulate: Emulate, seed: int) -> tuple[Finding, ...]:
    """Measure membership, record by record, without a list of candidates.

    The attacker knows the records' targets if the auditor does for members and strangers alike, and else takes them
    from a model of the anchor.
    """
    assert scenario.recipe is not None
    known = shadow_rows(scenario)
    assert known is not None
    random = np.random.RandomState(seed)
    images = emulate(scenario.people)
    if scenario.record_target is not None and scenario.outsider_target is not None:
        targets = np.concatenate([scenario.record_target, scenario.outsider_target])
    else:
        rows, target = emulate(known[0]), known[1]
        if target.dtype.kind == "f":
            # The nearest known row's target is as good as the groups of targets that are distinguished.
            targets = target[((images[:, None, :] - rows[None, :500, :]) ** 2).sum(axis=2).argmin(axis=1)]
        else:
            targets = RandomForestClassifier(100, random_state=random).fit(rows, target).predict(images)
    made = ShadowAttack(scenario.recipe, _SHADOWS, seconds=_SECONDS, random_state=random)
    made.fit(emulate(known[0]), known[1], scenario.table_target)
    return _membership_findings(scenario, SHADOWS, made.score(scenario.share, images, targets))


def shadow_rows(scenario: Scenario) -> tuple[FloatArray, NDArray[Any]] | None:
    """Return rows with targets for made-up tables: public ones, else the anchor's; None if there are too few."""
    if len(scenario.table_target) > _LARGEST_TABLE:
        return None
    pools = ((scenario.public, scenario.public_target), (scenario.anchor, scenario.anchor_target))
    for rows, target in pools:
        if rows is not None and target is not None and len(rows) >= 2 * len(scenario.table_target):
            return rows, target
    return None


Guess = Callable[[NDArray[Any], IntArray], FloatArray]
"""From targets of rows (n,) and numbers of records (m,) to how little each fits each, shape (n, m)."""
_LEAST_PROBABILITY = 1e-3


def known_targets(target: NDArray[Any]) -> Guess:
    """Compare shown targets with the records' targets, shape (n_records,), which the attacker knows."""
    if target.dtype.kind == "f":
        return lambda shown, records: np.asarray(np.abs(shown[:, None] - target[records][None, :]))
    return lambda shown, records: np.asarray(shown[:, None] != target[records][None, :], dtype=np.float64)


def predicted_targets(representation: FloatArray, target: NDArray[Any], images: FloatArray) -> Guess:
    """Compare shown targets with those that the attacker predicts from the records' images, by the anchor's targets."""
    if target.dtype.kind == "f":
        numbers = KernelRidgeAttack().fit(representation, target.reshape(-1, 1)).reconstruct(images)[:, 0]
        return lambda shown, records: np.asarray((shown[:, None] - numbers[records][None, :]) ** 2)
    # A seed of its own: nothing of the forest is secret.
    forest = RandomForestClassifier(100, random_state=0).fit(representation, target)
    surprise = -np.log(np.maximum(forest.predict_proba(images), _LEAST_PROBABILITY))
    # The last column stands for a class that the anchor has not.
    surprise = np.hstack([surprise, np.full((len(images), 1), -np.log(_LEAST_PROBABILITY))])
    column = {label: number for number, label in enumerate(forest.classes_.tolist())}

    def fits(shown: NDArray[Any], records: IntArray) -> FloatArray:
        chosen = [column.get(label, surprise.shape[1] - 1) for label in shown.tolist()]
        return np.asarray(surprise[records][:, chosen].T)

    return fits


def assigned(target: NDArray[Any], members: IntArray, guess: Guess | None) -> list[dict[int, float]]:
    """Return the chance that the attacker joins each row of a group to each member, a dictionary for each row.

    Strangers taken for members are left out of `members`; without `guess` nothing tells rows apart.
    """
    if guess is None or len(np.unique(target)) == 1 or not len(members):
        return [dict.fromkeys(members.tolist(), 1 / len(target)) for _ in target]
    rows, columns = linear_sum_assignment(guess(target, members))
    joined: dict[Any, list[int]] = {}
    for row, column in zip(rows, columns, strict=True):
        joined.setdefault(target[row].item(), []).append(int(members[column]))
    # Nothing distinguishes rows with one target.
    return [dict.fromkeys(joined.get(shown.item(), []), 1 / max(1, int((target == shown).sum()))) for shown in target]


def demixing_findings(
    scenario: Scenario, where: str, rows: IntArray, forward: Mapping[str, FloatArray], seconds: float
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Take the share's groups apart; return findings and remarks.

    Once without the candidates' targets, and once with them, if they are there.  `forward` has, for each measure of
    linkage, the chance of each row under attack to be linked if its group is not taken apart.
    """
    estimate = AffineEstimate(scenario.anchor[rows], scenario.anchor_representation[rows])
    if not estimate.is_close:
        return (), (
            f"{where}: means were not taken apart: f is not affine, or too few anchor rows are known to recover it.",
        )
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    ends = time.monotonic() + seconds
    for attack, targets in {DEMIXING: None, KNOWN_TARGETS: scenario.candidate_target}.items():
        if attack == KNOWN_TARGETS and targets is None:
            break
        left = (ends - time.monotonic()) / (2 if attack == DEMIXING else 1)
        found, of_attack = _demixed_with(scenario, attack, rows, estimate, targets, forward, left)
        findings += of_attack
        how = "" if targets is None else ", with the candidates’ labels known"
        n_groups, n_solved = len(found.groups), found.n_solved
        remarks += (
            f"{where}: {n_solved} of {n_groups} groups of equal rows were taken apart into their records{how}.",
        )
        if n_solved == n_groups and not _differ(scenario.shared_target, found.groups):
            # Targets say nothing more then.
            break
    return findings, remarks


def _demixed_with(
    scenario: Scenario,
    attack: str,
    rows: IntArray,
    estimate: AffineEstimate,
    targets: NDArray[Any] | None,
    forward: Mapping[str, FloatArray],
    seconds: float,
) -> tuple[Demixing, tuple[Finding, ...]]:
    """Search with the table's rows alone as candidates, and with strangers among them; return the last search too."""
    ends = time.monotonic() + seconds
    table = scenario.table / scenario.scale
    anchor_target = None if scenario.anchor_target is None else scenario.anchor_target[rows]

    def search(people: FloatArray, left: float) -> Demixing:
        return demix(
            scenario.shared,
            scenario.shared_target,
            people,
            estimate,
            candidate_target=None if targets is None else targets[: len(people)],
            anchor_representation=scenario.anchor_representation[rows],
            anchor_target=anchor_target,
            seconds=left,
        )

    closed = search(table, seconds if scenario.outsiders is None else seconds / 2)
    found: dict[str, Demixing] = {"linkage": closed}
    findings: tuple[Finding, ...] = ()
    if scenario.outsiders is not None:
        people = np.vstack([table, scenario.outsiders])
        opened = found["open-world linkage"] = search(people, ends - time.monotonic())
        scores = opened.scores(representation_distance_scores(people, scenario.shared, estimate))
        findings = _membership_findings(
            scenario, attack, np.concatenate([scores[scenario.index], scores[len(table) :]])
        )
    guess = None
    if _differ(scenario.shared_target, closed.groups):
        if targets is not None:
            guess = known_targets(targets)
        elif anchor_target is not None:
            guess = predicted_targets(scenario.anchor_representation[rows], anchor_target, estimate(table))
    for metric, otherwise in forward.items():
        chances = _chances(scenario, found[metric], guess, otherwise)
        low, high = clustered_interval(chances, scenario.clusters)
        n_strangers = len(scenario.decoys) if metric.startswith("open-world") else 0
        findings += (
            Finding(
                metric=metric,
                attack=attack,
                value=float(chances.mean()),
                low=low,
                high=high,
                chance=1 / (len(table) + n_strangers),
                baseline=None if targets is None else linked_by_targets(scenario, metric),
                n=len(scenario.X),
            ),
        )
    return list(found.values())[-1], findings


def _differ(target: NDArray[Any], groups: Sequence[IntArray]) -> bool:
    """Return whether rows of some group have different targets."""
    return any(len(np.unique(target[group])) > 1 for group in groups)


def _chances(scenario: Scenario, found: Demixing, guess: Guess | None, otherwise: FloatArray) -> FloatArray:
    """Return each attacked row's chance to be joined to its record: within its group by targets, if these differ."""
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
