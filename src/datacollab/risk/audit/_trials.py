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
    KernelRidgeAttack,
    ProcrustesAttack,
    ReconstructionAttack,
    find_training_rows,
    match_margins,
)
from ..attacks._attack import IntArray
from ._findings import Finding, shown
from ._levels import (
    AVERAGED,
    AVERAGED_NAME,
    DEMIXING,
    FORWARD,
    LEAKS,
    LEVELS,
    PAIRED_ATTACKS,
    SECOND_SHARE,
    SHADOWS,
    averaged_reconstructions,
    leaked_rows,
    with_labels,
)
from ._measure import (
    Attribute,
    Emulate,
    ForwardMap,
    demixing_findings,
    forward_chances,
    forward_maps,
    linked_by_targets,
    matched_representations,
    measure,
    measure_control,
    membership_of_share,
    membership_of_subspace,
    second_share_findings,
    shadow_findings,
    shadow_rows,
)
from ._scenario import Scenario

_ALL = "all anchor rows"
_TIE_DRAWS = 5
"""Guesses of equal rows are matched at random; their average counts."""
DEMIXING_SECONDS = 120.0
"""Limit of one search; means that are not taken apart by then count as such."""
_LINKAGES = ("linkage", "open-world linkage")


class _Collusion:
    """Party j whose f_j is fitted on public rows, integrated with the one under attack by KTI.

    It undoes its own pairs of anchor rows and points of the common feature space, and with them the other's points.
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed

    def reconstruct(self, Z: FloatArray, *, target: NDArray[Any] | None) -> FloatArray:
        """Guess rows from intermediate representations of the party under attack."""
        scenario = self._scenario
        assert scenario.public is not None
        n_components = min(scenario.anchor_representation.shape[1], *scenario.public.shape)
        f_j = obfuscator("pca", n_components=n_components, random_state=np.random.RandomState(self._seed))
        own = f_j.fit(scenario.public).transform(scenario.anchor)
        integrator = KTI(n_components).fit({"attacked": scenario.anchor_representation, "other": own})
        common = integrator.transform({"attacked": Z})["attacked"]
        pairs = integrator.transform({"other": own})["other"]
        return KernelRidgeAttack().fit(pairs, scenario.anchor).reconstruct(common)


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
            replace(one, level=self.level, leak=one.leak or self.leak, attack=one.attack or self.attack)
            for one in outcome.findings
        )
        return replace(outcome, findings=tuple(named))


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
        self._deadline = deadline
        self._scenario = scenario
        self._attributes = attributes
        self._artefacts = artefacts
        self._random = random
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
        makers = {
            "T0": self._zero_leak,
            "T1": self._paired,
            "T2": self._paired,
            "T2f": self._subspace,
            "T3": self._collusion,
            "T4": self._files,
        }
        return makers[level](level)

    def _zero_leak(self, level: str) -> Iterator[Trial]:
        scenario = self._scenario
        if scenario.public is None:
            return
        for informed in (False, True) if scenario.public_target is not None else (False,):
            fit = partial(
                ProcrustesAttack(random_state=self._random.randint(2**31)).fit,
                scenario.shared,
                scenario.shared_target if informed else None,
                public=scenario.public,
                public_target=scenario.public_target if informed else None,
                anchor_representation=scenario.anchor_representation,
                anchor_target=scenario.anchor_target if informed else None,
            )
            yield self._reconstructing(level, "nothing", "Procrustes", fit, informed)

    def _paired(self, level: str) -> Iterator[Trial]:
        scenario = self._scenario
        labels = scenario.anchor_target is not None and (scenario.public is None or scenario.public_target is not None)
        for leak in LEAKS[level]:
            drawn = leaked_rows(leak, scenario.anchor, scenario.anchor_target, self._random)
            if drawn is None:
                continue
            yield from self._with_leak(level, *drawn, labels=labels, everything=leak.kind == "all")

    def _with_leak(self, level: str, name: str, rows: IntArray, *, labels: bool, everything: bool) -> Iterator[Trial]:
        scenario = self._scenario
        Z, A = scenario.anchor_representation[rows], scenario.anchor[rows]
        found: dict[str, FloatArray] = {}
        for attack, make in PAIRED_ATTACKS.items():
            if make.needs_public and scenario.public is None:
                continue
            for informed in (False, True) if labels else (False,):
                known: dict[str, Any] = {"public": scenario.public}
                if informed:
                    assert scenario.anchor_target is not None
                    known |= {"target": scenario.anchor_target[rows], "public_target": scenario.public_target}
                yield self._reconstructing(level, name, attack, partial(make().fit, Z, A, **known), informed, found)
        for _ in range(1 + labels):
            # No attack takes these: the published figures rest on what is drawn after them.
            self._random.randint(2**31)
        if all(attack in found for attack in AVERAGED):
            averaged = averaged_reconstructions(found)
            yield Trial(level, name, AVERAGED_NAME, partial(self._outcome, averaged, None))
        # What learns to undo f_k learns f_k itself when originals and representations change places.
        emulate = cache(partial(KernelRidgeAttack().fit, A, Z))
        maps = cache(lambda: forward_maps(scenario, rows, emulate().reconstruct))
        yield Trial(level, name, FORWARD, partial(self._forward, maps))
        if scenario.outsiders is not None:
            yield Trial(level, name, "membership", lambda: Outcome(membership_of_share(scenario, maps(), found)))
        if scenario.has_groups:
            yield Trial(level, name, DEMIXING, partial(self._demixing, f"{level}, {name}", rows, emulate))
        if not everything or scenario.recipe is None or scenario.outsiders is None:
            return
        if shadow_rows(scenario) is not None:
            yield Trial(
                level,
                name,
                SHADOWS,
                lambda: Outcome(shadow_findings(scenario, self._known(emulate), self._random.randint(2**31))),
            )
        if scenario.images is not None:
            yield Trial(level, name, SECOND_SHARE, partial(self._second_share, level, name, emulate))

    def _subspace(self, level: str) -> Iterator[Trial]:
        if self._scenario.public is not None and self._scenario.outsiders is not None:
            yield Trial(level, _ALL, "subspace", lambda: Outcome(membership_of_subspace(self._scenario)))

    def _collusion(self, level: str) -> Iterator[Trial]:
        if self._scenario.public is not None:
            collusion = _Collusion(self._scenario, self._random.randint(2**31))
            yield self._reconstructing(level, _ALL, "kernel ridge", lambda: collusion, False)

    def _files(self, level: str) -> Iterator[Trial]:
        for name, artefact in self._artefacts.items():
            yield Trial(level, name, "search for stored rows", partial(self._search, name, artefact))

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
        name = with_labels(attack) if informed else attack
        return Trial(level, leak, name, partial(self._reconstruct, name, fit, informed, keep))

    def _reconstruct(
        self, name: str, fit: Callable[[], Any], informed: bool, keep: dict[str, FloatArray] | None
    ) -> Outcome:
        scenario = self._scenario
        # One call for all, since it may fit.
        Z, target, n = scenario.Z, scenario.target, len(scenario.Z)
        controls = scenario.control_representation
        controlled = controls is not None and not (informed and scenario.control_target is None)
        if controls is not None and controlled:
            Z = np.vstack([Z, controls])
            target = np.concatenate([target, scenario.control_target]) if informed else target
        rows = fit().reconstruct(Z, target=target if informed else None)
        if keep is not None:
            keep[name] = rows[:n]
        return self._outcome(rows[:n], rows[n:] if controlled else None)

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

    def _forward(self, maps: Callable[[], list[ForwardMap]]) -> Outcome:
        """Match without undoing f_k: an estimate of f_k brings the candidates to the share."""
        findings: tuple[Finding, ...] = ()
        for each in maps():
            found = self._compared(matched_representations(self._scenario, each, self._random), {})
            if each.with_targets:
                found = tuple(
                    replace(one, baseline=linked_by_targets(self._scenario, one.metric))
                    for one in found
                    if one.metric in _LINKAGES
                )
            findings += tuple(replace(one, attack=each.attack) for one in found)
        return Outcome(findings)

    def _demixing(self, where: str, rows: IntArray, emulate: Callable[[], ReconstructionAttack]) -> Outcome:
        scenario = self._scenario
        seconds = min(DEMIXING_SECONDS, self._deadline - time.monotonic())
        worlds = {"linkage": False} | ({"open-world linkage": True} if len(scenario.decoys) else {})
        forward = {
            metric: forward_chances(scenario, emulate().reconstruct, is_open, self._random)
            for metric, is_open in worlds.items()
        }
        findings, remarks = demixing_findings(scenario, where, rows, forward, seconds)
        compared = (
            one if one.baseline is not None else replace(one, baseline=self._label_only.get(one.metric))
            for one in findings
        )
        return Outcome(tuple(compared), remarks=remarks)

    def _known(self, emulate: Callable[[], ReconstructionAttack]) -> Emulate:
        """Return f if it is affine, which is then known to rounding, as no kernel can match."""
        estimate = AffineEstimate(self._scenario.anchor, self._scenario.anchor_representation)
        return estimate if estimate.is_close else emulate().reconstruct

    def _second_share(self, level: str, leak: str, emulate: Callable[[], ReconstructionAttack]) -> Outcome:
        findings = second_share_findings(self._scenario, leak, self._known(emulate), self._random.randint(2**31))
        named = "; ".join(
            f"{shown(one.value, one.metric)} of the time (at most {shown(one.high, one.metric)} by the attack tried), "
            f"by {one.leak}"
            for one in findings
        )
        said = f"{level}: if you share again after adding a row, it is named among strangers {named}."
        return Outcome(findings, remarks=(said,))

    def _search(self, name: str, artefact: Any) -> Outcome:
        table = self._scenario.table
        stored = find_training_rows(artefact, table)
        share = max((each.n_found / each.n_rows for each in stored), default=0.0)
        gaps = sum(each.kind == "unsearched" for each in stored)
        remarks = [f"{name}: {gaps} parts were too large to look into."] if gaps else []
        remarks += [f"{name}: {each.path} is the mean of the party's rows." for each in stored if each.kind == "mean"]
        finding = Finding(metric="training rows in files", value=share, chance=0.0, n=len(table))
        return Outcome((finding,), remarks=tuple(remarks))
