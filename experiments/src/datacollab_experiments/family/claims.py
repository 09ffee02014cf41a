"""Rows of the family's table, and verdicts on what papers claim."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..pays.intervals import Difference, student

__all__ = ["Claim", "Figure", "Row", "Scores", "at_least", "at_most"]

Figure = tuple[str, str, str, float]
"""Data, method, measure and value of one draw."""
Scores = Mapping[tuple[str, str, str], Mapping[int, float]]
"""Values by data, method and measure, and by seed."""


@dataclass(frozen=True)
class Claim:
    """Bounds for a figure or, `beside` another method, for its difference to that one's figure of the same draw."""

    says: str
    beside: str = ""
    least: float = -math.inf
    most: float = math.inf

    def verdict(self, found: Difference) -> str:
        """Return "held" or "not held" if all of the interval is within or beyond the bounds, and else "open"."""
        if self.least <= found.low and found.high <= self.most:
            return "held"
        return "not held" if found.high < self.least or found.low > self.most else "open"


def at_least(bound: float, beside: str = "") -> Claim:
    """Return the claim that a figure, or its difference to another method's, has a lower bound."""
    says = f"at least {bound:g}" if not beside else f"at most {-bound:g} below {beside}" if bound else f"above {beside}"
    return Claim(says, beside, least=bound)


def at_most(bound: float, beside: str = "") -> Claim:
    """Return the claim that a figure, or its difference to another method's, has an upper bound."""
    says = f"at most {bound:g}" if not beside else f"at most {bound:g} above {beside}" if bound else f"below {beside}"
    return Claim(says, beside, most=bound)


@dataclass(frozen=True)
class Row:
    """One figure of one method, beside what its paper prints, "–" if nothing could be had."""

    paper: str
    method: str
    data: str
    measure: str
    printed: str
    claims: tuple[Claim, ...]
    caveat: str = ""
    """What the page says with claims that are not held."""

    def values(self, scores: Scores, method: str) -> Mapping[int, float]:
        """Return the values of a method in this row, by seed."""
        return scores.get((self.data, method, self.measure), {})

    def verdicts(self, scores: Scores) -> Iterator[tuple[Claim, Difference, str]]:
        """Judge each claim by the 95 % interval over draws."""
        ours = self.values(scores, self.method)
        for claim in self.claims:
            other = self.values(scores, claim.beside) if claim.beside else dict.fromkeys(ours, 0.0)
            found = student([ours[seed] - other[seed] for seed in sorted(ours.keys() & other.keys())])
            yield claim, found, claim.verdict(found)
