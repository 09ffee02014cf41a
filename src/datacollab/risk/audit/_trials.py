"""The attacks of an audit, one after the other, and measures of their reconstructions, estimates of f_k and scores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import RandomForestClassifier

from ..._validation import FloatArray
from ...analyst import KTI
from ...party import obfuscator
from ..attacks import (
    AffineEstimate,
    Demixing,
    EmulatorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    Matches,
    NearestNeighborsAttack,
    ProcrustesAttack,
    ReconstructionAttack,
    ShadowAttack,
    demix,
    find_training_rows,
    interval_of_clusters,
    match_margins,
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
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
    LEVELS,
    SHADOWS,
    UNIT_SPREAD,
    WITH_LABELS,
    Finding,
)
from ._scenario import Scenario

Emulate = Callable[[FloatArray], FloatArray]
Reconstruct = Callable[[FloatArray, NDArray[Any] | None], FloatArray]
"""From representations and, for an attack that uses them, targets to originals."""
Attribute = int | Sequence[int] | Callable[[FloatArray], NDArray[Any]]
"""A column of numbers, the columns of a one-hot encoded category, or a function of the table that gives numbers."""
Tables = Sequence[FloatArray]
"""Originals, strangers and shared rows."""
_ALL = "all anchor rows"
_PAIRED: Mapping[str, type[ReconstructionAttack]] = {
    "linear regression": LinearRegressionAttack,
    "nearest neighbours": NearestNeighborsAttack,
    "kernel ridge": KernelRidgeAttack,
    "emulator": EmulatorAttack,
}
"""Attacks that learn from leaked anchor rows and their representation."""
_LEAKED_ROWS = 30
_LEAKED_SHARE = 0.3
"""Anchor rows that leak at level T1: so many at random, and such a share at random, or of the first classes."""
_TIE_DRAWS = 5
"""Guesses of equal rows are matched at random; their average counts."""
_RESAMPLES = 400
_FALSE_POSITIVES = 0.01
_LEAST_PROBABILITY = 1e-3
_DEMIXING_SECONDS = 120.0
"""Limit of one search; means that are not taken apart by then count as such."""
_SHADOWS = 48
_SHADOW_SECONDS = 30.0
_LARGEST_TABLE = 3000
"""Shares that are made, seconds after which no more are, and rows from which on making tables takes too long."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Findings of one attack, how far each row under attack is singled out, and remarks in sentences."""

    findings: Sequence[Finding]
    margins: FloatArray | None = None
    remarks: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Trial:
    """Attack that is still to be made."""

    level: str
    leak: str
    attack: str
    make: Callable[[], Outcome]

    def __str__(self) -> str:
        return f"{self.level} ({LEVELS[self.level].title}), leaked: {self.leak}, attack: {self.attack}"

    def run(self) -> Outcome:
        outcome = self.make()
        named = [
            replace(one, level=self.level, leak=self.leak, attack=one.attack or self.attack) for one in outcome.findings
        ]
        return replace(outcome, findings=named)


@dataclass(frozen=True, eq=False)
class Leak:
    """Pairs of anchor rows and their representation that an attacker holds, and the attacker's estimates from them.

    `reconstructed` keeps the rows under attack as each attack reconstructs them.
    """

    level: str
    name: str
    scenario: Scenario
    original: FloatArray
    representation: FloatArray
    target: NDArray[Any] | None
    reconstructed: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def averaged(self) -> FloatArray | None:
        """Average the reconstructions of the attacks in `AVERAGED`, if all were made."""
        found = [self.reconstructed[attack] for attack in AVERAGED if attack in self.reconstructed]
        if len(found) < len(AVERAGED):
            return None
        return np.asarray(np.mean(found, axis=0))

    @cached_property
    def emulator_attack(self) -> EmulatorAttack:
        """The one attack that `emulator` and the trial of it share, so that f_k is learnt once."""
        return EmulatorAttack()

    @cached_property
    def emulator(self) -> Emulate:
        """An estimate of f_k by kernel ridge regression from originals to representations."""
        return self.emulator_attack.emulate(self.original, self.representation)

    @cached_property
    def affine(self) -> AffineEstimate:
        return AffineEstimate(self.original, self.representation)

    @property
    def best_map(self) -> Emulate:
        """Return the affine estimate of f_k if it is close: it is exact to rounding then, as no kernel can be."""
        if self.affine.is_close:
            return self.affine
        return self.emulator

    @cached_property
    def maps(self) -> list[ForwardMap]:
        """List an emulator's distances, those of the exact map if f is affine, and the better in units of spread."""
        scenario = self.scenario
        ones = np.ones(scenario.Z.shape[1])
        spread = scenario.shared.std(axis=0)
        maps = [ForwardMap(FORWARD, self.emulator, ones)]
        if self.affine.is_close:
            maps.append(ForwardMap(EXACT_MAP, self.affine, ones))
        unit = np.where(spread > 0, spread, 1.0)
        maps.append(ForwardMap(UNIT_SPREAD, self.best_map, unit))
        # Numbers may be means of several rows'; fields leave as they are, and tell the more the finer they are.
        telling = scenario.has_fields or scenario.shared_target.dtype.kind != "f"
        if scenario.candidate_target is not None and telling:
            maps.append(ForwardMap(FORWARD_KNOWN, self.best_map, unit, with_targets=True))
        return maps


class Trials:
    """All attacks on one party; `random` draws leaks, ties and attacks, and searches end at the deadline."""

    def __init__(
        self,
        scenario: Scenario,
        attributes: Mapping[str, Attribute],
        artefacts: Mapping[str, Any],
        random: np.random.RandomState,
        deadline: float = math.inf,
    ) -> None:
        self._scenario = scenario
        self._attributes = attributes
        self._artefacts = artefacts
        self._random = random
        self._deadline = deadline
        # Drawn before any attack, so that the same labels have the same baseline for all attacks.
        guesses = [self._values(rows) for rows in scenario.label_only for _ in range(_TIE_DRAWS)]
        self._label_only = {
            metric: float(np.reshape([one[metric] for one in guesses], (-1, _TIE_DRAWS)).mean(axis=1).max())
            for metric in guesses[0]
        }
        self._mean_rows = self._values(scenario.mean_rows)

    def count(self, levels: Iterable[str], is_asked: Callable[[Trial], bool]) -> int:
        """Count the attacks of these levels that are asked for; nothing is drawn for it."""
        apart = copy(self)
        apart._random = deepcopy(self._random)
        return sum(is_asked(trial) for level in levels for trial in apart.of(level))

    def of(self, level: str) -> Iterator[Trial]:
        """Yield the attacks of one threat level that lack nothing they need, to be run one by one, as they come."""
        scenario = self._scenario
        if level == "T0":
            yield from self._zero_leak()
        elif level in ("T1", "T2"):
            for leak in self._leaks(level):
                yield from self._pair(leak)
        elif level == "T2f" and scenario.public is not None and scenario.outsiders is not None:
            yield Trial(level, _ALL, "subspace", lambda: Outcome(membership_of_subspace(scenario)))
        elif level == "T3" and scenario.public is not None:
            reconstruct = partial(_colluding, scenario, self._random.randint(2**31))
            leak = self._leak(level, _ALL, np.arange(len(scenario.anchor)))
            yield self._reconstructing(leak, "kernel ridge", reconstruct)
        elif level == "T4":
            for name, artefact in self._artefacts.items():
                yield Trial(level, name, "search for stored rows", partial(self._search, name, artefact))

    def _zero_leak(self) -> Iterator[Trial]:
        scenario = self._scenario
        if scenario.public is None:
            return
        nothing = self._leak("T0", "nothing", np.arange(0))
        known = {"public": scenario.public, "anchor_representation": scenario.anchor_representation}
        targets = {
            "target": scenario.shared_target,
            "public_target": scenario.public_target,
            "anchor_target": scenario.anchor_target,
        }
        ways: dict[str, dict[str, Any]] = {"Procrustes": {}}
        if scenario.public_target is not None:
            ways["Procrustes" + WITH_LABELS] = targets
        for name, labels in ways.items():
            # The seed is drawn as the attack comes up, after all that the attacks before it drew.
            attack = ProcrustesAttack(random_state=self._random.randint(2**31))
            reconstruct = _learning(attack.fit, scenario.shared, **known, **labels)
            yield self._reconstructing(nothing, name, reconstruct)

    def _leak(self, level: str, name: str, rows: IntArray) -> Leak:
        scenario = self._scenario
        target = scenario.anchor_target
        if target is not None:
            target = target[rows]
        return Leak(level, name, scenario, scenario.anchor[rows], scenario.anchor_representation[rows], target)

    def _leaks(self, level: str) -> Iterator[Leak]:
        """Yield a level's leaks, one after the other."""
        n = len(self._scenario.anchor)
        target = self._scenario.anchor_target
        if level == "T2":
            yield self._leak(level, _ALL, np.arange(n))
            return
        for count in (_LEAKED_ROWS, round(_LEAKED_SHARE * n)):
            if 2 <= count < n:
                rows = np.sort(self._random.choice(n, count, replace=False))
                yield self._leak(level, f"{count} anchor rows at random", rows)
        if target is None:
            return
        # A leak that is no random sample: a ward's rows, say, or those of the mildest cases.
        if target.dtype.kind == "f":
            rows = np.flatnonzero(target <= np.quantile(target, _LEAKED_SHARE))
            name = f"the {len(rows)} anchor rows with the lowest targets"
        else:
            classes = np.unique(target)
            first = classes[: max(1, round(_LEAKED_SHARE * len(classes)))]
            rows = np.flatnonzero(np.isin(target, first))
            name = f"the {len(rows)} anchor rows of {len(first)} of {len(classes)} classes"
        if 2 <= len(rows) < n:
            yield self._leak(level, name, rows)

    def _pair(self, leak: Leak) -> Iterator[Trial]:
        scenario = self._scenario
        where = (leak.level, leak.name)
        # Public rows without targets would be of no class, so an attack uses all targets or none.
        labels = scenario.anchor_target is not None and (scenario.public is None or scenario.public_target is not None)
        known = {"public": scenario.public}
        ways: dict[str, dict[str, Any]] = {"": known}
        if labels:
            ways[WITH_LABELS] = known | {"target": leak.target, "public_target": scenario.public_target}
        for attack, make in _PAIRED.items():
            if make.needs_public and scenario.public is None:
                continue
            learner = make()
            if make is EmulatorAttack:
                learner = leak.emulator_attack
            for ending, tables in ways.items():
                reconstruct = _learning(learner.fit, leak.representation, leak.original, **tables)
                yield self._reconstructing(leak, attack + ending, reconstruct)
        for _ in range(1 + labels):
            # No attack takes these: the published figures rest on what is drawn after them.
            self._random.randint(2**31)
        if (averaged := leak.averaged) is not None:
            yield Trial(*where, AVERAGED_NAME, lambda: self._outcome(averaged, None))
        yield Trial(*where, FORWARD, lambda: Outcome(self._forward(leak)))
        if scenario.outsiders is not None:
            yield Trial(*where, "membership", lambda: Outcome(membership_of_share(leak)))
        if scenario.has_groups:
            yield Trial(*where, DEMIXING, lambda: self._demixing(leak))
        if leak.level == "T2" and scenario.can_be_remade and (pool := shadow_rows(scenario)) is not None:
            yield Trial(*where, SHADOWS, lambda: Outcome(self._shadows(leak, *pool)))

    def _reconstructing(self, leak: Leak, attack: str, reconstruct: Reconstruct) -> Trial:
        """Make a trial of an attack that reconstructs rows, with targets if its name says so."""
        scenario = self._scenario
        n = len(self._scenario.Z)
        informed = attack.endswith(WITH_LABELS)

        def make() -> Outcome:
            Z = scenario.Z
            target = None
            controls = scenario.control_representation
            if informed:
                target = scenario.target
                # An attack that uses targets cannot be made on controls without any.
                if scenario.control_target is None:
                    controls = None
            if controls is None:
                rows = reconstruct(Z, target)
                leak.reconstructed[attack] = rows
                return self._outcome(rows, None)
            if target is not None:
                target = np.concatenate([target, scenario.control_target])
            # One call for all, since it may fit.
            rows = reconstruct(np.vstack([Z, controls]), target)
            leak.reconstructed[attack] = rows[:n]
            return self._outcome(rows[:n], rows[n:])

        return Trial(leak.level, leak.name, attack, make)

    def _outcome(self, rows: FloatArray, controls: FloatArray | None) -> Outcome:
        scenario = self._scenario
        control = dict[str, float]()
        if controls is not None:
            assert scenario.outsiders is not None
            originals = scenario.outsiders[: len(controls)]
            alone = (originals, originals[:0], controls)
            control = {one.metric: one.value for one in _matches(None, alone, self._random)}
        findings = self._compare(self._measure(rows), control)
        margins = [match_margins(scenario.X[group], rows[group]) for group in scenario.groups]
        return Outcome(findings, np.concatenate(margins))

    def _values(self, rows: FloatArray) -> dict[str, float]:
        return {one.metric: one.value for one in self._measure(rows)}

    def _measure(self, rows: FloatArray) -> list[Finding]:
        """Compute all measures that need nothing but reconstructions of the attacked rows."""
        scenario = self._scenario
        X = self._scenario.X
        n = len(self._scenario.X)
        found = list(_matches(scenario, (X, scenario.decoys, rows), self._random))
        squared = ((X - rows) ** 2).sum(axis=1)
        # The better of the guesses by labels: an attacker without the share would take it.
        within = min((((X - guess) ** 2).sum(axis=1) for guess in scenario.label_only), key=np.sum)
        found.append(self._one_less_ratio("R2c", squared, within))
        found.append(self._one_less_ratio("R2", squared, ((X - scenario.mean_rows) ** 2).sum(axis=1)))
        for name, attribute in self._attributes.items():
            true, guessed = (_attribute_values(attribute, each * scenario.scale) for each in (X, rows))
            metric = f"attribute {name}"
            if true.dtype.kind == "i":
                found.append(_rate(metric, true == guessed, np.arange(n)))
            else:
                found.append(self._one_less_ratio(metric, (true - guessed) ** 2, (true - true.mean()) ** 2))
        return found

    def _one_less_ratio(self, metric: str, numerator: FloatArray, denominator: FloatArray) -> Finding:
        """Compute 1 - sum / sum over rows, with a bootstrap interval over the rows."""
        n = len(numerator)
        # Without spread there is nothing to guess; NaN stands for "not measured", and is not rated.
        if denominator.sum() == 0:
            return Finding(metric=metric, value=float("nan"), n=n)
        drawn = self._random.randint(n, size=(_RESAMPLES, n))
        below = np.maximum(denominator[drawn].sum(axis=1), np.finfo(float).tiny)
        low, high = np.quantile(1 - numerator[drawn].sum(axis=1) / below, [0.025, 0.975])
        value = float(1 - numerator.sum() / denominator.sum())
        return Finding(metric=metric, value=value, low=float(low), high=float(high), n=n)

    def _compare(self, findings: Sequence[Finding], control: Mapping[str, float]) -> list[Finding]:
        return [
            replace(
                one,
                baseline=self._label_only[one.metric],
                mean_reconstruction=self._mean_rows[one.metric],
                control=control.get(one.metric),
            )
            for one in findings
        ]

    def _forward(self, leak: Leak) -> list[Finding]:
        """Match without undoing f_k: an estimate of f_k brings the candidates to the share."""
        scenario = self._scenario
        findings = []
        for each in leak.maps:
            tables = each.tables(scenario, scenario.decoys, scenario.Z, scenario.target)
            found = self._compare(list(_matches(scenario, tables, self._random)), {})
            if each.with_targets:
                linked = (one for one in found if one.metric.endswith("linkage"))
                found = [replace(one, baseline=link_by_targets(scenario, one.metric)) for one in linked]
            findings += [replace(one, attack=each.attack) for one in found]
        return findings

    def _demixing(self, leak: Leak) -> Outcome:
        """Take the share's groups apart, without the candidates' targets, and then with them, if they are there."""
        scenario = self._scenario
        where = f"{leak.level}, {leak.name}"
        ends = time.monotonic() + min(_DEMIXING_SECONDS, self._deadline - time.monotonic())
        tables = leak.maps[0].tables(scenario, scenario.decoys, scenario.Z, scenario.target)
        forward = {
            f"{world}linkage": np.concatenate(
                [Matches(C, R, persons=who, random_state=self._random).chances for C, R, who in cases]
            )
            for world, cases in _worlds(scenario, tables).items()
        }
        if not leak.affine.is_close:
            why = "f is not affine, or too few anchor rows are known to recover it."
            return Outcome((), remarks=(f"{where}: means were not taken apart: {why}",))
        tries: dict[str, NDArray[Any] | None] = {DEMIXING: None}
        if scenario.candidate_target is not None:
            tries[KNOWN_TARGETS] = scenario.candidate_target
        findings: list[Finding] = []
        remarks = []
        for attack, targets in tries.items():
            left = ends - time.monotonic()
            how = ", with the candidates’ labels known"
            if targets is None:
                # Half of the time is kept for the second search, with the candidates' targets.
                left = left / 2
                how = ""
            found, of_attack = self._demix(leak, attack, targets, forward, left)
            findings += of_attack
            n_groups = len(found.groups)
            n_solved = found.n_solved
            remarks.append(
                f"{where}: {n_solved} of {n_groups} groups of equal rows were taken apart into their records{how}."
            )
            if n_solved == n_groups and not _differ(scenario.shared_target, found.groups):
                # Targets say nothing more then.
                break
        return Outcome(findings, remarks=remarks)

    def _demix(
        self, leak: Leak, attack: str, targets: NDArray[Any] | None, forward: Mapping[str, FloatArray], seconds: float
    ) -> tuple[Demixing, list[Finding]]:
        """Search with the table's rows alone as candidates, and with strangers among them; return the last search too.

        `forward` has each attacked row's chance to be linked if its group is not taken apart.
        """
        scenario = self._scenario
        ends = time.monotonic() + seconds
        table = scenario.table / scenario.scale

        def search(people: FloatArray, left: float) -> Demixing:
            known = targets
            if known is not None:
                known = known[: len(people)]
            return demix(
                scenario.shared,
                scenario.shared_target,
                people,
                leak.affine,
                candidate_target=known,
                anchor_representation=leak.representation,
                anchor_target=leak.target,
                seconds=left,
            )

        # Two searches share the time if there are strangers; the first has at most its half.
        halves = 1 if scenario.outsiders is None else 2
        closed = found = search(table, seconds / halves)
        findings: list[Finding] = []
        if scenario.outsiders is not None:
            people = np.vstack([table, scenario.outsiders])
            found = search(people, ends - time.monotonic())
            # Those that no group holds are ranked by their distance from the share, behind the members found.
            scores = found.scores(representation_distance_scores(leak.affine(people), scenario.shared))
            of_attacked = np.concatenate([scores[scenario.index], scores[len(table) :]])
            findings = _membership_findings(scenario, attack, of_attacked)
        guess = None
        if _differ(scenario.shared_target, closed.groups):
            if targets is not None:
                guess = compare_known_targets(targets)
            elif leak.target is not None:
                guess = compare_predicted_targets(leak.representation, leak.target, leak.affine(table))
        for metric, otherwise in forward.items():
            demixing = found
            n_candidates = len(table) + len(scenario.decoys)
            if metric == "linkage":
                demixing = closed
                n_candidates = len(table)
            chances = _chances(scenario, demixing, guess, otherwise)
            baseline = self._label_only[metric]
            # An attacker who knows the candidates' targets links some by these alone.
            if targets is not None:
                baseline = link_by_targets(scenario, metric)
            known = {"attack": attack, "chance": 1 / n_candidates, "baseline": baseline}
            findings.append(_rate(metric, chances, scenario.clusters, **known))
        return found, findings

    def _shadows(self, leak: Leak, pool: FloatArray, target: NDArray[Any]) -> list[Finding]:
        """Measure membership, record by record, by targets that the auditor knows, or a model of the anchor guesses."""
        scenario = self._scenario
        # One seed for the attack, however much it draws: what comes after it stays the same.
        random = np.random.RandomState(self._random.randint(2**31))
        assert scenario.recipe is not None
        images = leak.best_map(scenario.people)
        rows = leak.best_map(pool)
        if scenario.record_target is not None and scenario.outsider_target is not None:
            targets = np.concatenate([scenario.record_target, scenario.outsider_target])
        elif target.dtype.kind == "f":
            # The nearest known row's target is as good as the groups of targets that are distinguished.
            targets = target[((images[:, None, :] - rows[None, :500, :]) ** 2).sum(axis=2).argmin(axis=1)]
        else:
            targets = RandomForestClassifier(100, random_state=random).fit(rows, target).predict(images)
        made = ShadowAttack(scenario.recipe, _SHADOWS, seconds=_SHADOW_SECONDS, random_state=random)
        made.fit(rows, target, scenario.table_target)
        return _membership_findings(scenario, SHADOWS, made.score(scenario.share, images, targets))

    def _search(self, name: str, artefact: Any) -> Outcome:
        table = self._scenario.table
        stored = find_training_rows(artefact, table)
        share = max((each.n_found / each.n_rows for each in stored), default=0.0)
        gaps = sum(each.kind == "unsearched" for each in stored)
        remarks = []
        if gaps:
            remarks.append(f"{name}: {gaps} parts were too large to look into.")
        remarks += [f"{name}: {each.path} is the mean of the party's rows." for each in stored if each.kind == "mean"]
        finding = Finding(metric="training rows in files", value=share, chance=0.0, n=len(table))
        return Outcome((finding,), remarks=remarks)


def _learning(fit: Callable[..., Any], *pairs: Any, **known: Any) -> Reconstruct:
    """Return an attack that is fitted when it is asked for rows."""
    return lambda Z, target: np.asarray(fit(*pairs, **known).reconstruct(Z, target=target))


def _colluding(scenario: Scenario, seed: int, Z: FloatArray, target: NDArray[Any] | None) -> FloatArray:
    """Guess rows with the help of a party j whose f_j is fitted on public rows, integrated with the attacked by KTI.

    It undoes its own pairs of anchor rows and points of the common feature space, and with them the other's points.
    """
    public = scenario.public
    anchor = scenario.anchor
    attacked = scenario.anchor_representation
    assert public is not None
    # A malicious party chooses its own map; PCA is the plainest, and as wide as the attacked party's where it can be.
    n_components = min(attacked.shape[1], *public.shape)
    f_j = obfuscator("pca", n_components=n_components, random_state=np.random.RandomState(seed))
    own = f_j.fit(public).transform(anchor)
    integrator = KTI(n_components).fit({"attacked": attacked, "other": own})
    common = integrator.transform({"attacked": Z})["attacked"]
    pairs = integrator.transform({"other": own})["other"]
    return KernelRidgeAttack().fit(pairs, anchor).reconstruct(common)


def _attribute_values(attribute: Attribute, rows: FloatArray) -> NDArray[Any]:
    """Return numbers, or integers for a category."""
    if isinstance(attribute, int | np.integer):
        return np.asarray(rows[:, attribute])
    if callable(attribute):
        return np.asarray(attribute(rows), dtype=np.float64)
    return np.asarray(rows[:, list(attribute)].argmax(axis=1))


Case = tuple[FloatArray, FloatArray, IntArray]
"""Candidates, guesses and the candidates' numbers in one closed world."""


def _worlds(scenario: Scenario | None, tables: Tables) -> dict[str, list[Case]]:
    """Return the closed worlds and, if there are strangers, the open ones; without a scenario there is one world."""
    originals, decoys, guesses = tables
    if scenario is None:
        return {"": [(originals, guesses, np.arange(len(originals)))]}
    own, strangers = np.split(scenario.persons, [len(originals)])
    return {
        world: [
            (np.vstack([originals[rows], others]), guesses[rows], np.append(own[rows], strangers[: len(others)]))
            for rows in scenario.groups
        ]
        for world, others in {"": decoys[:0], "open-world ": decoys}.items()
        if not world or len(decoys)
    }


def _rate(metric: str, hits: NDArray[Any], clusters: IntArray, **given: Any) -> Finding:
    """Compute the share of hits, or the mean of chances; those of one cluster count as one try."""
    low, high = interval_of_clusters(hits, clusters)
    return Finding(metric=metric, value=float(hits.mean()), low=low, high=high, n=len(hits), **given)


def _matches(scenario: Scenario | None, tables: Tables, random: np.random.RandomState) -> Iterator[Finding]:
    """Yield rates in closed worlds, and in open ones if there are strangers.

    Originals and strangers are as they are or through an estimate of f_k.
    """
    alone = np.arange(len(tables[2]))
    groups = [alone]
    clusters = alone
    if scenario is not None:
        groups = scenario.groups
        clusters = scenario.clusters
    for world, cases in _worlds(scenario, tables).items():
        matches = [Matches(C, R, persons=who, random_state=random) for C, R, who in cases]
        ranks = np.concatenate([each.ranks for each in matches])
        right = np.concatenate([each.chances for each in matches])
        hits = {"re-identification@1": ranks <= 1, "re-identification@5": ranks <= 5, "linkage": right}
        # The agencies' limit among strangers is on single records, not on lists of five.
        if world:
            hits = {"re-identification": ranks <= 1, "linkage": right}
        for name, hit in hits.items():
            together = clusters
            if name == "linkage" and len(np.unique(clusters)) == len(clusters):
                # Rows that are taken for each other are one try, and so are those that are shared as one.
                together = np.concatenate([group[each.tries] for group, each in zip(groups, matches, strict=True)])
            # By guessing, one or five of the candidates of a world are pointed to.
            pointed = 5 if name.endswith("@5") else 1
            chance = min(1.0, pointed / len(cases[0][0]))
            yield _rate(world + name, hit, together, chance=chance)


def _target_columns(scenario: Scenario, shared: NDArray[Any]) -> Tables:
    """Code targets of originals, outsiders and shared rows: numbers as one column, classes as indicators."""
    known = scenario.candidate_target
    assert known is not None
    own = known[scenario.index]
    strangers = known[len(scenario.table) :]
    target = np.concatenate([own, strangers, shared])[:, None]
    if target.dtype.kind != "f":
        target = (target == np.unique(target)).astype(np.float64)
    return np.split(target, [len(own), len(own) + len(strangers)])


def link_by_targets(scenario: Scenario, metric: str) -> float:
    """Return the linkage with the candidates' targets and the shared ones, and no representation."""
    originals, strangers, shared = _target_columns(scenario, scenario.target)
    worlds = _worlds(scenario, (originals, strangers[: len(scenario.decoys)], shared))
    chances = [Matches(C, R, random_state=0).chances for C, R, _ in worlds[metric.removesuffix("linkage")]]
    return float(np.concatenate(chances).mean())


@dataclass(frozen=True, eq=False)
class ForwardMap:
    """Way to compare shared rows with candidates, of their class if `with_targets`: an estimate of f, and units."""

    attack: str
    emulate: Emulate
    unit: FloatArray
    with_targets: bool = False

    def tables(self, scenario: Scenario, others: FloatArray, shared: FloatArray, target: NDArray[Any]) -> Tables:
        """Bring originals, some strangers, and shared rows with their targets into one space."""
        own = self.emulate(scenario.X) / self.unit
        strangers = np.empty((0, len(self.unit)))
        # A kernel cannot be taken of no rows.
        if len(others):
            strangers = self.emulate(others) / self.unit
        tables = [own, strangers, shared / self.unit]
        if not self.with_targets:
            return tables
        # One class is farther from the next than all else.
        gap = 10 * float(np.ptp(np.vstack(tables), axis=0).sum()) or 1.0
        codes = _target_columns(scenario, target)
        return [np.hstack([each, gap * code[: len(each)]]) for each, code in zip(tables, codes, strict=True)]


def membership_of_share(leak: Leak) -> list[Finding]:
    """Measure how well distances between representations, and from reconstructions, tell members from others."""
    scenario = leak.scenario
    scores = {}
    assert scenario.outsiders is not None
    for each in leak.maps:
        # The shared row nearest to the image counts; of the same class, if that is known.
        *people, shared = each.tables(scenario, scenario.outsiders, scenario.shared, scenario.shared_target)
        scores[f"{each.attack}, distance"] = representation_distance_scores(np.vstack(people), shared)
    if scenario.public is not None:
        # The average links better than its parts, mostly, and one attack has fewer chances to be right by accident.
        reconstructed = leak.reconstructed
        if leak.averaged is not None:
            reconstructed = {AVERAGED_NAME: leak.averaged}
        for attack, rows in reconstructed.items():
            scores[f"{attack}, distance"] = reconstruction_distance_scores(scenario.people, rows, scenario.public)
    return [finding for attack, each in scores.items() for finding in _membership_findings(scenario, attack, each)]


def membership_of_subspace(scenario: Scenario) -> list[Finding]:
    """Measure how well the subspace that f_k keeps tells members from others; the share's rows are not used."""
    assert scenario.public is not None
    found: list[Finding] = []
    # In which units f works is not known; where all columns have one, both are the same.
    units = {"subspace": np.ones_like(scenario.scale)}
    if (scenario.scale != 1).any():
        units["subspace, in the table's units"] = scenario.scale
    for attack, unit in units.items():
        people, anchor, public = (rows * unit for rows in (scenario.people, scenario.anchor, scenario.public))
        scores = subspace_scores(people, anchor, scenario.anchor_representation, public)
        found += _membership_findings(scenario, attack, scores)
    return found


def _membership_findings(scenario: Scenario, attack: str, scores: FloatArray) -> list[Finding]:
    """Measure AUC and TPR of scores for the rows under attack, then the strangers; rows of one mean count as one."""
    n = len(scenario.X)
    found = membership(scores[:n], scores[n:], fpr=_FALSE_POSITIVES, groups=scenario.clusters)
    auc = Finding(
        metric="membership AUC", attack=attack, value=found.auc, low=found.low, high=found.high, chance=0.5, n=n
    )
    tpr = replace(auc, metric="membership TPR", value=found.tpr, low=found.tpr_low, high=found.tpr_high)
    return [auc, replace(tpr, chance=_FALSE_POSITIVES)]


def shadow_rows(scenario: Scenario) -> tuple[FloatArray, NDArray[Any]] | None:
    """Return rows with targets for made-up tables: public ones, else the anchor's; None if there are too few."""
    n = len(scenario.table_target)
    return next((pair for pair in scenario.with_targets if len(pair[0]) >= 2 * n and n <= _LARGEST_TABLE), None)


Guess = Callable[[NDArray[Any], IntArray], FloatArray]
"""From targets of rows (n,) and numbers of records (m,) to how little each fits each, shape (n, m)."""


def compare_known_targets(target: NDArray[Any]) -> Guess:
    """Compare shown targets with the records' targets, shape (n_records,), which the attacker knows."""
    if target.dtype.kind == "f":
        return lambda shown, records: np.asarray(np.abs(shown[:, None] - target[records][None, :]))
    return lambda shown, records: np.asarray(shown[:, None] != target[records][None, :], dtype=np.float64)


def compare_predicted_targets(representation: FloatArray, target: NDArray[Any], images: FloatArray) -> Guess:
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


def chance_of_assignment(target: NDArray[Any], members: IntArray, guess: Guess | None) -> FloatArray:
    """Return the chance that the attacker joins each row of a group to each member, shape (n_rows, n_members).

    Strangers taken for members are left out of `members`; without `guess` nothing tells rows apart.
    """
    if guess is None:
        return np.full((len(target), len(members)), 1 / len(target))
    joined = np.zeros((len(target), len(members)))
    joined[linear_sum_assignment(guess(target, members))] = 1
    # Nothing distinguishes rows with one target.
    alike = np.equal.outer(target, target)
    return np.asarray(alike @ joined / alike.sum(axis=1, keepdims=True))


def _differ(target: NDArray[Any], groups: Sequence[IntArray]) -> bool:
    """Return whether rows of some group have different targets."""
    return any(len(np.unique(target[group])) > 1 for group in groups)


def _chances(scenario: Scenario, found: Demixing, guess: Guess | None, otherwise: FloatArray) -> FloatArray:
    """Return each attacked row's chance to be joined to its record: within its group by targets, if these differ."""
    chances = otherwise.copy()
    for group, members in zip(found.groups, found.members, strict=True):
        if members is not None:
            # Strangers taken for members have no row here, and their part of the chance is lost.
            own = members[members < len(scenario.table)]
            joined = chance_of_assignment(scenario.shared_target[group], own, guess)
            row, place = np.nonzero(group[:, None] == scenario.places)
            chances[place] = (joined[row] * (own == scenario.index[place][:, None])).sum(axis=1)
    return chances
