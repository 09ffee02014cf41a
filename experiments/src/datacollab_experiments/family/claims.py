"""Rows of the family's table, and verdicts on the papers' claims."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..pays.intervals import Difference, student

# Data, method, measure and value of one draw.
Figure = tuple[str, str, str, float]
# Values by data, method and measure, and by seed.
Scores = Mapping[tuple[str, str, str], Mapping[int, float]]


@dataclass(frozen=True)
class Bound:
    """Bounds for a figure or, `beside` another method, for its difference to that one's figure of the same draw."""

    says: str
    beside: str = ""
    least: float = -math.inf
    most: float = math.inf

    def verdict(self, found: Difference) -> str:
        """Return "held" or "not held" if all of the interval is within or beyond the bounds, and else "open"."""
        # The whole interval decides, so chance alone neither holds nor refutes a claim.
        if self.least <= found.low and found.high <= self.most:
            return "held"
        if found.high < self.least or found.low > self.most:
            return "not held"
        return "open"


def at_least(bound: float, beside: str = "") -> Bound:
    """Return the claim that a figure, or its difference to another method's, has a lower bound."""
    says = f"at least {bound:g}"
    if beside:
        says = f"at most {-bound:g} below {beside}" if bound else f"above {beside}"
    return Bound(says, beside, least=bound)


def at_most(bound: float, beside: str = "") -> Bound:
    """Return the claim that a figure, or its difference to another method's, has an upper bound."""
    says = f"at most {bound:g}"
    if beside:
        says = f"at most {bound:g} above {beside}" if bound else f"below {beside}"
    return Bound(says, beside, most=bound)


@dataclass(frozen=True)
class FamilyRow:
    """One figure of one method, beside its paper's, "–" if nothing could be had."""

    paper: str
    method: str
    data: str
    measure: str
    printed: str
    claims: tuple[Bound, ...]
    # The page says this with claims that are not held.
    caveat: str = ""

    def values(self, scores: Scores, method: str) -> Mapping[int, float]:
        """Return the values of a method in this row, by seed."""
        return scores.get((self.data, method, self.measure), {})

    def verdicts(self, scores: Scores) -> Iterator[tuple[Bound, Difference, str]]:
        """Judge each claim by the 95 % interval over draws."""
        ours = self.values(scores, self.method)
        for claim in self.claims:
            other: Mapping[int, float] = dict.fromkeys(ours, 0.0)
            if claim.beside:
                other = self.values(scores, claim.beside)
            found = student([ours[seed] - other[seed] for seed in sorted(ours.keys() & other.keys())])
            yield claim, found, claim.verdict(found)
