"""The attacks of an audit, one after the other, each with its findings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...analyst import KTI
from ...party import obfuscator
from ..attacks import (
    AffineEstimate,
    EmulatorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    NearestNeighborsAttack,
    ProcrustesAttack,
    ReconstructionAttack,
    find_training_rows,
    match_margins,
)
from ..attacks._attack import IntArray
from ._findings import AVERAGED, AVERAGED_NAME, DEMIXING, FORWARD, LEVELS, SHADOWS, WITH_LABELS, Finding
from ._measure import (
    Attribute,
    Emulate,
    ForwardMap,
    averaged_reconstructions,
    demixing_findings,
    forward_chances,
    forward_maps,
    linked_by_targets,
    matched_representations,
    measure,
    measure_control,
    membership_of_share,
    membership_of_subspace,
    shadow_findings,
    shadow_rows,
)
from ._scenario import Scenario

_ALL = "all anchor rows"
_PAIRED: Mapping[str, type[ReconstructionAttack]] = {
    "linear regression": LinearRegressionAttack,
    "nearest neighbours": NearestNeighborsAttack,
    "kernel ridge": KernelRidgeAttack,
    "emulator": EmulatorAttack,
}
"""Attacks that learn from leaked anchor rows and their representation."""
_LEAKED_ROWS, _LEAKED_SHARE = 30, 0.3
"""Anchor rows that leak at level T1: so many at random, and such a share at random, or of the first classes."""
_TIE_DRAWS = 5
"""Guesses of equal rows are matched at random; their average counts."""
_DEMIXING_SECONDS = 120.0
"""Limit of one search; means that are not taken apart by then count as such."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Findings of one attack, how far each row under attack is singled out, and remarks in sentences."""

    findings: tuple[Finding, ...]
    margins: FloatArray | None = None
    remarks: tuple[str, ...] = ()


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
        named = (
            replace(one, level=self.level, leak=self.leak, attack=one.attack or self.attack) for one in outcome.findings
        )
        return replace(outcome, findings=tuple(named))


@dataclass(frozen=True, eq=False)
class _Collusion:
    """Party j whose f_j is fitted on public rows, integrated with the one under attack by KTI.

    It undoes its own pairs of anchor rows and points of the common feature space, and with them the other's points.
    """

    scenario: Scenario
    seed: int

    def reconstruct(self, Z: FloatArray, *, target: NDArray[Any] | None) -> FloatArray:
        """Guess rows from intermediate representations of the party under attack."""
        public, anchor = self.scenario.public, self.scenario.anchor
        assert public is not None
        n_components = min(self.scenario.anchor_representation.shape[1], *public.shape)
        f_j = obfuscator("pca", n_components=n_components, random_state=np.random.RandomState(self.seed))
        own = f_j.fit(public).transform(anchor)
        integrator = KTI(n_components).fit({"attacked": self.scenario.anchor_representation, "other": own})
        common = integrator.transform({"attacked": Z})["attacked"]
        pairs = integrator.transform({"other": own})["other"]
        return KernelRidgeAttack().fit(pairs, anchor).reconstruct(common)


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
        self._scenario, self._attributes, self._artefacts = scenario, attributes, artefacts
        self._random, self._deadline = random, deadline
        guesses = [self._values(rows) for rows in scenario.label_only for _ in range(_TIE_DRAWS)]
        self._label_only = {
            metric: float(np.reshape([one[metric] for one in guesses], (-1, _TIE_DRAWS)).mean(axis=1).max())
            for metric in guesses[0]
        }
        self._mean_rows = self._values(scenario.mean_rows)

    def _values(self, rows: FloatArray) -> dict[str, float]:
        return {one.metric: one.value for one in measure(self._scenario, rows, self._attributes, self._random)}

    def of(self, level: str) -> Iterator[Trial]:
        """Yield the attacks of one threat level that have what they need, to be run one by one, as they come."""
        scenario = self._scenario
        if level == "T0":
            yield from self._zero_leak()
        elif level in ("T1", "T2"):
            for leak, rows in self._leaks(level):
                yield from self._paired(level, leak, rows)
        elif level == "T2f" and scenario.public is not None and scenario.outsiders is not None:
            yield Trial(level, _ALL, "subspace", lambda: Outcome(membership_of_subspace(scenario)))
        elif level == "T3" and scenario.public is not None:
            collusion = _Collusion(scenario, self._random.randint(2**31))
            yield self._reconstructing(level, _ALL, "kernel ridge", lambda: collusion, False)
        elif level == "T4":
            for name, artefact in self._artefacts.items():
                yield Trial(level, name, "search for stored rows", partial(self._search, name, artefact))

    def _zero_leak(self) -> Iterator[Trial]:
        scenario = self._scenario
        if scenario.public is None:
            return
        for informed in (False, True) if scenario.public_target is not None else (False,):
            attack = ProcrustesAttack(random_state=self._random.randint(2**31))
            fit = partial(
                attack.fit,
                scenario.shared,
                scenario.shared_target if informed else None,
                public=scenario.public,
                public_target=scenario.public_target if informed else None,
                anchor_representation=scenario.anchor_representation,
                anchor_target=scenario.anchor_target if informed else None,
            )
            yield self._reconstructing("T0", "nothing", "Procrustes", fit, informed)

    def _leaks(self, level: str) -> Iterator[tuple[str, IntArray]]:
        """Yield, one after the other, what has leaked: its name, and the positions of its anchor rows."""
        n, target = len(self._scenario.anchor), self._scenario.anchor_target
        if level == "T2":
            yield _ALL, np.arange(n)
            return
        for count in (_LEAKED_ROWS, round(_LEAKED_SHARE * n)):
            if 2 <= count < n:
                yield f"{count} anchor rows at random", np.sort(self._random.choice(n, count, replace=False))
        if target is None:
            return
        if target.dtype.kind == "f":
            rows = np.flatnonzero(target <= np.quantile(target, _LEAKED_SHARE))
            name = f"the {len(rows)} anchor rows with the lowest targets"
        else:
            classes = np.unique(target)
            first = classes[: max(1, round(_LEAKED_SHARE * len(classes)))]
            rows = np.flatnonzero(np.isin(target, first))
            name = f"the {len(rows)} anchor rows of {len(first)} of {len(classes)} classes"
        if 2 <= len(rows) < n:
            yield name, rows

    def _paired(self, level: str, leak: str, rows: IntArray) -> Iterator[Trial]:
        scenario = self._scenario
        labels = scenario.anchor_target is not None and (scenario.public is None or scenario.public_target is not None)
        Z, A = scenario.anchor_representation[rows], scenario.anchor[rows]
        found: dict[str, FloatArray] = {}
        for attack, make in _PAIRED.items():
            if make.needs_public and scenario.public is None:
                continue
            for informed in (False, True) if labels else (False,):
                known: dict[str, Any] = {"public": scenario.public}
                if informed:
                    assert scenario.anchor_target is not None
                    known |= {"target": scenario.anchor_target[rows], "public_target": scenario.public_target}
                fit = partial(make().fit, Z, A, **known)
                yield self._reconstructing(level, leak, attack, fit, informed, found)
        for _ in range(1 + labels):
            # No attack takes these: the published figures rest on what is drawn after them.
            self._random.randint(2**31)
        if all(attack in found for attack in AVERAGED):
            yield Trial(level, leak, AVERAGED_NAME, partial(self._outcome, averaged_reconstructions(found), None))
        # What learns to undo f_k learns f_k itself when originals and representations change places.
        emulate = cache(lambda: KernelRidgeAttack().fit(A, Z).reconstruct)
        maps = cache(lambda: forward_maps(scenario, rows, emulate()))
        yield Trial(level, leak, FORWARD, lambda: Outcome(self._forward(maps())))
        if scenario.outsiders is not None:
            yield Trial(level, leak, "membership", lambda: Outcome(membership_of_share(scenario, maps(), found)))
        if scenario.has_groups:
            yield Trial(level, leak, DEMIXING, lambda: self._demixing(f"{level}, {leak}", rows, emulate()))
        could_remake = scenario.recipe is not None and scenario.outsiders is not None
        if level == "T2" and could_remake and shadow_rows(scenario) is not None:
            yield Trial(level, leak, SHADOWS, lambda: Outcome(self._shadows(emulate)))

    def _reconstructing(
        self,
        level: str,
        leak: str,
        attack: str,
        fit: Callable[[], Any],
        informed: bool,
        keep: dict[str, FloatArray] | None = None,
    ) -> Trial:
        """Make a trial of an attack that reconstructs rows, with targets if it is informed."""
        name, scenario, n = attack + WITH_LABELS if informed else attack, self._scenario, len(self._scenario.Z)

        def make() -> Outcome:
            # One call for all, since it may fit.
            Z, target = scenario.Z, scenario.target
            controls = None if informed and scenario.control_target is None else scenario.control_representation
            if controls is not None:
                Z = np.vstack([Z, controls])
                target = np.concatenate([target, scenario.control_target]) if informed else target
            rows = fit().reconstruct(Z, target=target if informed else None)
            if keep is not None:
                keep[name] = rows[:n]
            return self._outcome(rows[:n], None if controls is None else rows[n:])

        return Trial(level, leak, name, make)

    def _outcome(self, rows: FloatArray, controls: FloatArray | None) -> Outcome:
        scenario = self._scenario
        measured = () if controls is None else measure_control(scenario, controls, self._random)
        control = {one.metric: one.value for one in measured}
        findings = self._compared(measure(scenario, rows, self._attributes, self._random), control)
        margins = np.empty(len(rows))
        for group in scenario.groups:
            margins[group] = match_margins(scenario.X[group], rows[group])
        return Outcome(findings, margins)

    def _compared(self, findings: tuple[Finding, ...], control: Mapping[str, float]) -> tuple[Finding, ...]:
        return tuple(
            replace(
                one,
                baseline=self._label_only[one.metric],
                mean_reconstruction=self._mean_rows[one.metric],
                control=control.get(one.metric),
            )
            for one in findings
        )

    def _forward(self, maps: list[ForwardMap]) -> tuple[Finding, ...]:
        """Match without undoing f_k: an estimate of f_k brings the candidates to the share."""
        findings: tuple[Finding, ...] = ()
        for each in maps:
            found = self._compared(matched_representations(self._scenario, each, self._random), {})
            if each.with_targets:
                found = tuple(
                    replace(one, baseline=linked_by_targets(self._scenario, one.metric))
                    for one in found
                    if one.metric in ("linkage", "open-world linkage")
                )
            findings += tuple(replace(one, attack=each.attack) for one in found)
        return findings

    def _demixing(self, where: str, rows: IntArray, emulate: Emulate) -> Outcome:
        scenario = self._scenario
        seconds = min(_DEMIXING_SECONDS, self._deadline - time.monotonic())
        worlds = {"linkage": False} | ({"open-world linkage": True} if len(scenario.decoys) else {})
        forward = {
            metric: forward_chances(scenario, emulate, is_open, self._random) for metric, is_open in worlds.items()
        }
        findings, remarks = demixing_findings(scenario, where, rows, forward, seconds)
        compared = (
            one if one.baseline is not None else replace(one, baseline=self._label_only.get(one.metric))
            for one in findings
        )
        return Outcome(tuple(compared), remarks=remarks)

    def _shadows(self, emulate: Callable[[], Emulate]) -> tuple[Finding, ...]:
        # If f is affine it is known to rounding, as no kernel can match.
        estimate = AffineEstimate(self._scenario.anchor, self._scenario.anchor_representation)
        known = estimate if estimate.is_close else emulate()
        return shadow_findings(self._scenario, known, self._random.randint(2**31))

    def _search(self, name: str, artefact: Any) -> Outcome:
        table = self._scenario.table
        stored = find_training_rows(artefact, table)
        share = max((each.n_found / each.n_rows for each in stored), default=0.0)
        gaps = sum(each.kind == "unsearched" for each in stored)
        remarks = [f"{name}: {gaps} parts were too large to look into."] if gaps else []
        remarks += [f"{name}: {each.path} is the mean of the party's rows." for each in stored if each.kind == "mean"]
        finding = Finding(metric="training rows in files", value=share, chance=0.0, n=len(table))
        return Outcome((finding,), remarks=tuple(remarks))
