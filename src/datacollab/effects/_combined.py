"""The combined rows of all parties in one space, or the reason why no effect can be estimated from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._frames import equal_rows
from .._validation import FloatArray, PartyName
from ..analyst import BaseIntegrator
from ..analyst._analyst import by_party
from ..errors import AgreementError, EffectError
from ..share import Share
from ..targets import TargetKind
from ._estimators import with_parties

_BY_CHANCE = 1e-3
"""Probability, at most, with which equal outcomes in all groups are not taken for chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CombinedRows:
    """Rows of all parties, in the order of their shares."""

    integrator: BaseIntegrator  # fitted
    X: FloatArray  # collaboration representations
    party: NDArray[np.intp]  # position of each row's party among the parties
    target: NDArray[Any]
    groups: NDArray[np.intp]  # rows that are a mean of the same records have the same number, others one of their own
    is_grouped: bool  # whether any rows are such means
    parties: tuple[PartyName, ...]
    anchors: FloatArray  # the anchor under each party's g_k, shape (n_parties, n_anchors, n_components)
    time_steps: tuple[float | None, ...]  # steps to which each party has rounded times up; see `time_step_of`

    @property
    def is_survival(self) -> bool:
        """Return whether the outcome is a time to an event."""
        return "time" in (self.target.dtype.names or ())

    @property
    def treatment(self) -> NDArray[np.int64]:
        """Return 0 or 1, shape (n_rows,)."""
        return np.asarray(self.target["treatment"], dtype=np.int64)

    @property
    def adjusted_for(self) -> FloatArray:
        """Return the columns that models of outcome and treatment see: the representations, and the party."""
        return with_parties(self.X, self.party)

    def take(self, rows: NDArray[np.bool_]) -> CombinedRows:
        """Return some of the rows."""
        groups = np.unique(self.groups[rows], return_inverse=True)[1]
        return replace(self, X=self.X[rows], party=self.party[rows], target=self.target[rows], groups=groups)


def combine_rows(shares: Iterable[Share], integrator: BaseIntegrator) -> CombinedRows:
    """Align the parties' shares; AgreementError or EffectError where no effect can be estimated from them."""
    named = by_party(shares)
    kinds = {party: share.target_kind.value for party, share in named.items()}
    # Numbers of one party and survival of another have no common effect.
    if len(set(kinds.values())) > 1 or not set(kinds.values()) <= _KINDS:
        raise AgreementError(
            f"Expected treatments with outcomes of one kind from all parties; got {kinds}. Have the shares made "
            "with effect_target of datacollab.targets."
        )
    groups = []
    next_group = 0
    for share in named.values():
        own = _groups_of(share)
        groups.append(own + next_group)
        next_group += int(own.max()) + 1
    # Models have a level for each party, which would take all of the effect if no party had both arms.
    if max(np.unique(share.target["treatment"]).size for share in named.values()) < 2:
        raise EffectError(
            f"None of the parties {list(named)!r} has both arms, treated rows and others, so that the arms differ as "
            "parties do. An effect needs a party with both."
        )
    anchors = {party: share.anchor_representation for party, share in named.items()}
    fitted = clone(integrator).fit(anchors)
    # Of the anchor's rows, which all parties have, the maps show how well they are aligned.
    mapped_anchors = fitted.transform(anchors)
    mapped = fitted.transform({party: share.representation for party, share in named.items()})
    return CombinedRows(
        integrator=fitted,
        X=np.vstack([mapped[party] for party in named]),
        party=np.repeat(np.arange(len(named)), [len(share.target) for share in named.values()]),
        target=np.concatenate([share.target for share in named.values()]),
        groups=np.concatenate(groups),
        is_grouped=not all(share.one_to_one for share in named.values()),
        parties=tuple(named),
        anchors=np.stack([mapped_anchors[party] for party in named]),
        time_steps=tuple(time_step_of(share.target) for share in named.values()),
    )


def time_step_of(target: NDArray[Any]) -> float | None:
    """Return the largest number that divides all times, if they were rounded; None if they were not.

    Times count as rounded if there are at most half as many different ones as rows.
    """
    if "time" not in (target.dtype.names or ()):
        return None
    times = np.unique(target["time"])
    if len(times) > len(target) / 2:
        return None
    # If all times are multiples of a step, their least difference is at least that.
    step = float(np.min(np.diff(times, prepend=0.0)))
    multiples = times / step
    if np.allclose(multiples, np.round(multiples), rtol=0.0, atol=1e-6):
        return step
    return None


_KINDS = {TargetKind.EFFECT.value, TargetKind.SURVIVAL_EFFECT.value}


def _groups_of(share: Share) -> NDArray[np.intp]:
    """Number the rows of a share by the mean they are; raise if rows do not serve to estimate effects."""
    if share.one_to_one:
        return np.arange(len(share.target))
    who = f"Party {share.party!r}: "
    instead = "Have the rows shared as they are, or with Microaggregation(by='treatment') alone."
    numbers = equal_rows(share.representation)
    sizes = np.bincount(numbers)
    # A row by itself, where rows were changed, is no mean of several: noise was added, or anchor rows were mixed in.
    if sizes.min() < 2:
        raise EffectError(
            f"{who}the rows were changed by a defence, and not into means of groups alone. Noise in what is adjusted "
            f"for leaves the arms different where they seem alike, and effects biased. {instead}"
        )
    treatment = share.target["treatment"]
    treated = np.bincount(numbers, weights=treatment)
    if ((treated > 0) & (treated < sizes)).any():
        raise EffectError(
            f"{who}treated rows and others were averaged together, so that what tells them apart cannot be adjusted "
            f"for. {instead}"
        )
    # Grouping by the outcome would choose the adjusted columns by it.
    for name in set(share.target.dtype.names or ()) - {"treatment"}:
        if _constant_by_design(share.target[name], treatment, numbers):
            raise EffectError(
                f"{who}all rows of each group have the same {name}, as if groups had been made by it. Rows of like "
                f"outcomes were made alike then, effects are biased, and intervals do not hold. {instead}"
            )
    return numbers


def _constant_by_design(values: NDArray[Any], treatment: NDArray[Any], numbers: NDArray[np.intp]) -> bool:
    """Return whether values are equal within every group, and chance would hardly have it so."""
    order = np.argsort(numbers, kind="stable")
    _, first = np.unique(numbers[order], return_index=True)
    codes = np.unique(values, return_inverse=True)[1][order]
    if (np.minimum.reduceat(codes, first) < np.maximum.reduceat(codes, first)).any():
        return False
    arm = treatment[order][first]
    sizes = np.diff(np.append(first, len(codes)))
    log_probability = 0.0
    # Within an arm, m rows drawn at random are all equal with the sum of the values' frequencies to the power m.
    for each in (0, 1):
        frequencies = np.bincount(codes[treatment[order] == each], minlength=1)
        part = frequencies[frequencies > 0] / max(frequencies.sum(), 1)
        log_probability += sum(math.log((part**size).sum()) for size in sizes[arm == each])
    return log_probability < math.log(_BY_CHANCE)
