"""How it is decided whether measured numbers bear a claim out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ._statistics import FEWEST, Interval, holm, interval, p_above, partial_conjunction

# The level of all tests, as the paper's 95 % intervals have it.
_LEVEL = 0.05
# How many reversed comparisons a text names.
_NAMED = 3

# How many of a claim's comparisons must come out as it says, and how that is tested.
QUOTAS = {
    "all": (
        "Wanted in every comparison. Holds if each one-sided t-test over seeds has p < .05 (intersection-union); does "
        "not hold if some comparison is significantly reversed, p < .05 after Holm; undecided otherwise."
    ),
    "most": (
        "Wanted in more than half of the comparisons. With one-sided t-tests over seeds, holds if at least u = "
        "floor(n/2) + 1 of n comparisons are shown at once, (n - u + 1) p_(u) < .05 for the u-th smallest p-value "
        "(partial conjunction); does not hold if at least n - u + 1 are shown to be reversed in the same sense; "
        "undecided otherwise."
    ),
}


@dataclass(frozen=True)
class Contrast:
    """Numbers whose mean a claim says to lie between two bounds.

    Attributes
    ----------
    values : tuple of float
        One per seed.
    low, high : float
        The bounds; infinite where there is none.
    """

    label: str
    values: tuple[float, ...]
    low: float = -math.inf
    high: float = math.inf

    @property
    def p_for(self) -> float:
        """p-value of the mean lying within the bounds: of both one-sided tests, the larger."""
        inside = [0.0]
        # A bound at infinity holds of itself.
        if math.isfinite(self.low):
            inside.append(p_above(self.values, self.low))
        if math.isfinite(self.high):
            inside.append(p_above([-value for value in self.values], -self.high))
        return max(inside)

    @property
    def p_against(self) -> float:
        """p-value of the mean lying outside."""
        outside = []
        if math.isfinite(self.low):
            outside.append(p_above([-value for value in self.values], -self.low))
        if math.isfinite(self.high):
            outside.append(p_above(self.values, self.high))
        # Outside means beyond either bound: Bonferroni over the two.
        return partial_conjunction(outside, 1)


@dataclass(frozen=True)
class Contrasts:
    """Contrasts that only count together, such as one method against each of several others in one condition."""

    label: str
    contrasts: tuple[Contrast, ...]

    @property
    def p_for(self) -> float:
        """p-value of all contrasts being as claimed."""
        return partial_conjunction([contrast.p_for for contrast in self.contrasts], len(self.contrasts))

    @property
    def p_against(self) -> float:
        """p-value of some contrast being the reverse of the claim."""
        return partial_conjunction([contrast.p_against for contrast in self.contrasts], 1)


def decide(comparisons: Sequence[Contrasts], quota: str) -> str:
    """Whether the comparisons come out as claimed, by the rule of a key of `QUOTAS`."""
    if not comparisons:
        return "not run"
    # Most is more than half: floor(n / 2) + 1.
    n = len(comparisons)
    wanted = n if quota == "all" else n // 2 + 1
    if partial_conjunction([comparison.p_for for comparison in comparisons], wanted) < _LEVEL:
        return "holds"
    # More than n - wanted reversed comparisons leave too few for the claim.
    if partial_conjunction([comparison.p_against for comparison in comparisons], n - wanted + 1) < _LEVEL:
        return "does not hold"
    return "undecided"


def describe(comparisons: Sequence[Contrasts]) -> str:
    """The numbers behind a decision: how many comparisons were shown or reversed, and the range of the means."""
    contrasts = [contrast for comparison in comparisons for contrast in comparison.contrasts]
    if not contrasts:
        return "No result to compare."
    n_seeds = min(len(contrast.values) for contrast in contrasts)
    texts = []
    if len(comparisons) > 1:
        shown = sum(comparison.p_for < _LEVEL for comparison in comparisons)
        adjusted = holm([comparison.p_against for comparison in comparisons])
        reverse = [each.label for each, p in zip(comparisons, adjusted, strict=True) if p < _LEVEL]
        named = "; ".join([*reverse[:_NAMED], *["..."][: len(reverse) > _NAMED]])
        text = f"{shown} of {len(comparisons)} comparisons shown, {len(reverse)} reversed"
        if named:
            text += f" ({named})"
        texts.append(f"{text}.")
    means = {contrast: interval(contrast.values) for contrast in contrasts}
    # Two ends of the range say more than a list of all.
    ends = sorted(contrasts, key=lambda contrast: means[contrast].mean)
    texts += [f"{name}{_write_contrast(contrast, means[contrast])}." for name, contrast in _ends(ends)]
    if n_seeds < FEWEST:
        texts.append("Fewer than three seeds, so no test.")
    return " ".join(texts)


def _ends(ordered: Sequence[Contrast]) -> list[tuple[str, Contrast]]:
    if len(ordered) == 1:
        return [("", ordered[0])]
    return [("Lowest: ", ordered[0]), ("Highest: ", ordered[-1])]


def _write_contrast(contrast: Contrast, mean: Interval) -> str:
    width = ""
    if not math.isnan(mean.half_width):
        width = f" ± {mean.half_width:.3f}"
    return f"{contrast.label} = {mean.mean:z.3f}{width}"
