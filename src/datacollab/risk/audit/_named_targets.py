"""Targets with fields as attackers use them: one number each, from which the fields can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...targets import TargetKind, effect_target, no_target, survival_target, target_kind

__all__ = ["TargetNumbers", "single_out", "target_numbers"]

_APART = 10.0
"""How far the treated are from the others, in multiples of what outcomes or times span."""


@dataclass(frozen=True)
class TargetNumbers:
    """One number for each target, different for different targets and near for those of like times or outcomes.

    A time is positive where the event was seen and negative where not; the treated are far from the others.

    Attributes
    ----------
    kind : TargetKind
    low : float
        The lowest outcome.
    apart : float
        What is added for the treated.
    """

    kind: TargetKind
    low: float = 0.0
    apart: float = 0.0

    def numbers(self, target: NDArray[Any]) -> NDArray[Any]:
        """Numbers of targets of this kind, shape (n_samples,); single targets stay, and no targets are all alike."""
        if self.kind is TargetKind.SINGLE:
            return target
        if self.kind is TargetKind.NONE:
            return np.zeros(len(target), dtype=np.int64)
        if self.kind is TargetKind.EFFECT:
            return np.asarray(target["outcome"] - self.low + self.apart * target["treatment"])
        treated = target["treatment"] if self.kind is TargetKind.SURVIVAL_EFFECT else 0
        return np.asarray(np.where(target["event"], 1.0, -1.0) * (target["time"] + self.apart * treated))

    def targets(self, numbers: FloatArray) -> NDArray[Any]:
        """Targets of these numbers, up to rounding."""
        if self.kind is TargetKind.SINGLE:
            return numbers
        if self.kind is TargetKind.NONE:
            return no_target(len(numbers))
        if self.kind is TargetKind.SURVIVAL:
            return survival_target(numbers > 0, np.abs(numbers))
        size = numbers if self.kind is TargetKind.EFFECT else np.abs(numbers)
        treated = size > self.apart / 2
        rest = size - self.apart * treated
        if self.kind is TargetKind.EFFECT:
            return effect_target(treated, rest + self.low)
        return effect_target(treated, event=numbers > 0, time=rest)


def target_numbers(target: NDArray[Any]) -> TargetNumbers:
    """How targets like these become numbers."""
    kind = target_kind(target)
    if kind is TargetKind.EFFECT:
        low = float(target["outcome"].min())
        return TargetNumbers(kind, low, _APART * ((float(target["outcome"].max()) - low) or 1.0))
    if kind is TargetKind.SURVIVAL_EFFECT:
        return TargetNumbers(kind, apart=_APART * float(target["time"].max()))
    return TargetNumbers(kind)


def single_out(target: NDArray[Any], shown: NDArray[Any]) -> str | None:
    """In a sentence, how many rows have a time, with their other fields, that no other row has, before and after.

    Parameters
    ----------
    target, shown : ndarray of shape (n_samples,)
        As the party has them, and as they are shared.

    Returns
    -------
    str or None
        None where targets have no times.
    """
    if "time" not in (target.dtype.names or ()):
        return None
    exact, rounded = (_unique_share(each) for each in (target, shown))
    return (
        f"{100 * exact:.0f} % of the rows have a time, with all else of their target, that no other row of the party "
        f"has; as times are shared, {100 * rounded:.0f} % do. Whoever knows such a time finds the row by it, whatever "
        "hides its features."
    )


def _unique_share(target: NDArray[Any]) -> float:
    _, numbers, counts = np.unique(target, return_inverse=True, return_counts=True)
    return float(np.mean(counts[numbers] == 1))
