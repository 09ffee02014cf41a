"""The attacks of an audit, one after the other, each with what it found."""

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
    ForwardMap,
    Score,
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
    strongest_of,
)
from ._scenario import Scenario

__all__ = ["Outcome", "Trial", "Trials"]


class Collusion:
    """A party j whose f_j is fitted on public rows, integrated with the one under attack by KTI.

    Parameters
    ----------
    scenario : Scenario
        With public rows.
    seed : int
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed

    def reconstruct(self, Z: FloatArray, target: NDArray[Any] | None) -> FloatArray:
        """Rows from intermediate representations of the party under attack, by way of the common feature space."""
        scenario = self._scenario
        assert scenario.public is not None
        n_components = min(scenario.anchor_representation.shape[1], *scenario.public.shape)
        f_j = obfuscator("pca", n_components=n_components, random_state=np.random.RandomState(self._seed))
        own = f_j.fit(scenario.public).transform(scenario.anchor)
        integrator = KTI(n_components).fit({"attacked": scenario.anchor_representation, "other": own})
        common = integrator.transform({"attacked": Z})["attacked"]
        pairs = integrator.transform({"other": own})["other"]
        return KernelRidgeAttack().fit(pairs, scenario.anchor).reconstruct(common)


NO_LEAK = "nothing"
_TIE_DRAWS = 5
"""Guesses of equal rows are matched at random; their average counts."""
DEMIXING_SECONDS = 120.0
"""Of one search; what is not found by then counts as not found."""
STORED_ROWS = "search for stored rows"
_LINKAGES = ("linkage", "open-world linkage")
Reconstruct = Callable[[FloatArray, NDArray[Any] | None], FloatArray]
"""From a representation, and targets where the attack uses them, to rows."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one attack found.

    Attributes
    ----------
    findings : tuple of Finding
    margins : ndarray of shape (n_attacked,) or None
        How far each row under attack is singled out.
    remarks : tuple of str
        What a figure does not tell, in sentences.
    """

    findings: tuple[Finding, ...]
    margins: FloatArray | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Trial:
    """One attack that is still to be made."""

    level: str
    leak: str
    attack: str
    run: Callable[[], Outcome]

    def __str__(self) -> str:
        return f"{self.level} ({LEVELS[self.level].title}), leaked: {self.leak}, attack: {self.attack}"


class Trials:
    """All attacks on one party.

    Parameters
    ----------
    scenario : Scenario
    attributes : mapping of str to attribute
    artefacts : mapping of str to object
    random : numpy.random.RandomState
        Of leaks, ties and attacks.
    deadline : float, default=inf
        Of `time.monotonic`, after which searches are given up.
    """

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
        self._label_only = strongest_of(
            [measure(scenario, rows, attributes, random) for rows in scenario.label_only for _ in range(_TIE_DRAWS)],
            _TIE_DRAWS,
        )
        self._mean_rows = measure(scenario, scenario.mean_rows, attributes, random)

    def of(self, level: str) -> Iterator[Trial]:
        """The attacks of one threat level, where what they need is there; to be run one by one, as they come."""
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
            yield self._trial(level, NO_LEAK, "Procrustes", partial(_fit_and_reconstruct, fit, informed), informed)

    def _paired(self, level: str) -> Iterator[Trial]:
        scenario = self._scenario
        labels = scenario.anchor_target is not None and (scenario.public is None or scenario.public_target is not None)
        for leak in LEAKS[level]:
            drawn = leaked_rows(leak, scenario.anchor, scenario.anchor_target, self._random)
            if drawn is None:
                continue
            name, rows = drawn
            found: dict[str, FloatArray] = {}
            for attack, make in PAIRED_ATTACKS.items():
                if make.needs_public and scenario.public is None:
                    continue
                for informed in (False, True) if labels else (False,):
                    made = make()
                    if "random_state" in made.get_params():
                        made.set_params(random_state=self._random.randint(2**31))
                    reconstruct = partial(_fit_and_reconstruct, self._fit(made, rows, informed), informed)
                    yield self._trial(level, name, attack, reconstruct, informed, found)
            for _ in range(1 + labels):
                # No attack takes these: the published figures rest on what is drawn after them.
                self._random.randint(2**31)
            if all(attack in found for attack in AVERAGED):
                yield Trial(level, name, AVERAGED_NAME, partial(self._averaged, level, name, found))
            emulate = cache(partial(self._emulator, rows))
            maps = cache(partial(self._maps, rows, emulate))
            yield Trial(level, name, FORWARD, partial(self._forward, level, name, maps))
            if scenario.outsiders is not None:
                yield Trial(level, name, "membership", partial(self._membership, level, name, maps, found))
            if scenario.has_groups:
                yield Trial(level, name, DEMIXING, partial(self._demixing, level, name, rows, emulate))
            if leak.kind == "all":
                yield from self._remade(level, name, emulate)

    def _remade(self, level: str, leak: str, emulate: Callable[[], ReconstructionAttack]) -> Iterator[Trial]:
        """Attacks that make shares as the party does."""
        scenario = self._scenario
        if scenario.recipe is None or scenario.outsiders is None:
            return
        for attack, find in ((SHADOWS, shadow_findings), (SECOND_SHARE, second_share_findings)):
            if shadow_rows(scenario) is None if attack == SHADOWS else scenario.images is None:
                continue
            yield Trial(level, leak, attack, partial(self._by_remaking, find, level, leak, emulate))

    def _by_remaking(
        self,
        find: Callable[[Scenario, str, str, Callable[[FloatArray], FloatArray], int], tuple[Finding, ...]],
        level: str,
        leak: str,
        emulate: Callable[[], ReconstructionAttack],
    ) -> Outcome:
        estimate = AffineEstimate(self._scenario.anchor, self._scenario.anchor_representation)
        # An affine f is known to rounding, which no kernel can match.
        known = estimate if estimate.is_close else emulate().reconstruct
        findings = find(self._scenario, level, leak, known, self._random.randint(2**31))
        told = "; ".join(
            f"{shown(one.value, one.metric)} of the time (at most {shown(one.high, one.metric)} by the attack tried), "
            f"by {one.leak}"
            for one in findings
            if one.metric == "added row named"
        )
        said = f"{level}: if you share again after adding a row, it is named among strangers {told}."
        return Outcome(findings, remarks=(said,) if told else ())

    def _demixing(
        self, level: str, leak: str, rows: NDArray[np.intp], emulate: Callable[[], ReconstructionAttack]
    ) -> Outcome:
        seconds = min(DEMIXING_SECONDS, self._deadline - time.monotonic())
        worlds = {"linkage": False} | ({"open-world linkage": True} if len(self._scenario.decoys) else {})
        forward = {
            metric: forward_chances(self._scenario, emulate().reconstruct, is_open, self._random)
            for metric, is_open in worlds.items()
        }
        findings, remarks = demixing_findings(self._scenario, level, leak, rows, forward, seconds)
        told = tuple(
            each if each.baseline is not None else replace(each, baseline=self._baseline(each.metric))
            for each in findings
        )
        return Outcome(told, remarks=remarks)

    def _baseline(self, metric: str) -> float | None:
        return self._label_only[metric].value if metric in self._label_only else None

    def _subspace(self, level: str) -> Iterator[Trial]:
        if self._scenario.public is not None and self._scenario.outsiders is not None:
            run = partial(membership_of_subspace, self._scenario, level)
            yield Trial(level, "all anchor rows", "subspace", lambda: Outcome(run()))

    def _collusion(self, level: str) -> Iterator[Trial]:
        if self._scenario.public is None:
            return
        collusion = Collusion(self._scenario, self._random.randint(2**31))
        yield self._trial(level, "all anchor rows", "kernel ridge", collusion.reconstruct, False)

    def _files(self, level: str) -> Iterator[Trial]:
        for name, artefact in self._artefacts.items():
            yield Trial(level, name, STORED_ROWS, partial(self._search, level, name, artefact))

    def _fit(self, attack: ReconstructionAttack, rows: NDArray[np.intp], informed: bool) -> Callable[[], Any]:
        scenario = self._scenario
        targets: dict[str, Any] = {}
        if informed:
            assert scenario.anchor_target is not None
            targets = {"target": scenario.anchor_target[rows], "public_target": scenario.public_target}
        return partial(
            attack.fit, scenario.anchor_representation[rows], scenario.anchor[rows], public=scenario.public, **targets
        )

    def _trial(
        self,
        level: str,
        leak: str,
        attack: str,
        reconstruct: Reconstruct,
        informed: bool,
        keep: dict[str, FloatArray] | None = None,
    ) -> Trial:
        name = with_labels(attack) if informed else attack
        return Trial(level, leak, name, partial(self._run, level, leak, name, reconstruct, informed, keep))

    def _run(
        self,
        level: str,
        leak: str,
        attack: str,
        reconstruct: Reconstruct,
        informed: bool,
        keep: dict[str, FloatArray] | None,
    ) -> Outcome:
        scenario = self._scenario
        # One call for all, since it may fit.
        Z, target, n = scenario.Z, scenario.target, len(scenario.Z)
        controls = scenario.control_representation
        controlled = controls is not None and not (informed and scenario.control_target is None)
        if controls is not None and controlled:
            Z = np.vstack([Z, controls])
            target = np.concatenate([target, scenario.control_target]) if informed else target
        rows = reconstruct(Z, target if informed else None)
        if keep is not None:
            keep[attack] = rows[:n]
        return self._outcome(level, leak, attack, rows[:n], rows[n:] if controlled else None)

    def _averaged(self, level: str, leak: str, found: Mapping[str, FloatArray]) -> Outcome:
        return self._outcome(level, leak, AVERAGED_NAME, averaged_reconstructions(found), None)

    def _emulator(self, rows: NDArray[np.intp]) -> ReconstructionAttack:
        # What learns to undo f_k learns f_k itself when originals and representations change places.
        return KernelRidgeAttack().fit(self._scenario.anchor[rows], self._scenario.anchor_representation[rows])

    def _maps(self, rows: NDArray[np.intp], emulate: Callable[[], ReconstructionAttack]) -> list[ForwardMap]:
        return forward_maps(self._scenario, rows, emulate().reconstruct)

    def _forward(self, level: str, leak: str, maps: Callable[[], list[ForwardMap]]) -> Outcome:
        """Match where the attacker need not undo f_k: its estimate of f_k brings the candidates to the share."""
        findings: tuple[Finding, ...] = ()
        for each in maps():
            score = matched_representations(self._scenario, each, self._random)
            found = self._findings(level, leak, each.attack, score, {})
            if each.with_targets:
                found = tuple(
                    replace(one, baseline=linked_by_targets(self._scenario, one.metric))
                    for one in found
                    if one.metric in _LINKAGES
                )
            findings += found
        return Outcome(findings)

    def _outcome(self, level: str, leak: str, attack: str, rows: FloatArray, controls: FloatArray | None) -> Outcome:
        scenario = self._scenario
        control = {} if controls is None else measure_control(scenario, controls, self._random)
        score = measure(scenario, rows, self._attributes, self._random)
        margins = np.empty(len(rows))
        for group in scenario.groups:
            margins[group] = match_margins(scenario.X[group], rows[group])
        return Outcome(self._findings(level, leak, attack, score, control), margins)

    def _findings(self, level: str, leak: str, attack: str, score: Score, control: Score) -> tuple[Finding, ...]:
        return tuple(
            Finding(
                level=level,
                leak=leak,
                metric=metric,
                attack=attack,
                value=measured.value,
                low=measured.low,
                high=measured.high,
                baseline=self._label_only[metric].value,
                chance=measured.chance,
                mean_reconstruction=self._mean_rows[metric].value,
                control=control[metric].value if metric in control else None,
                n=len(self._scenario.X),
            )
            for metric, measured in score.items()
        )

    def _membership(
        self, level: str, leak: str, maps: Callable[[], list[ForwardMap]], found: Mapping[str, FloatArray]
    ) -> Outcome:
        return Outcome(membership_of_share(self._scenario, level, leak, maps(), found))

    def _search(self, level: str, name: str, artefact: Any) -> Outcome:
        stored = find_training_rows(artefact, self._scenario.table)
        share = max((each.n_found / each.n_rows for each in stored), default=0.0)
        gaps = sum(each.kind == "unsearched" for each in stored)
        means = [each.path for each in stored if each.kind == "mean"]
        remarks = [f"{name}: {gaps} parts were too large to look into."] if gaps else []
        remarks += [f"{name}: {path} is the mean of the party's rows." for path in means]
        finding = Finding(
            level=level,
            leak=name,
            metric="training rows in files",
            attack=STORED_ROWS,
            value=share,
            chance=0.0,
            n=len(self._scenario.table),
        )
        return Outcome((finding,), remarks=tuple(remarks))


def _fit_and_reconstruct(
    fit: Callable[[], Any], informed: bool, Z: FloatArray, target: NDArray[Any] | None
) -> FloatArray:
    rows: FloatArray = fit().reconstruct(Z, target=target if informed else None)
    return rows
