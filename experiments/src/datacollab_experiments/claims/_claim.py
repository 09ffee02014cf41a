"""A statement about results, and what rows say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ._claim_tests import QUOTAS
from ._contrasts import Finder, value

__all__ = ["ABOVE", "ACCURACY", "AT_LEAST", "BELOW", "KERNEL", "LINEAR", "Claim", "Verdict", "claims_of"]

LINEAR = ("MPP", "GEP", "ODC", "LTI")
KERNEL = ("KTI", "KTI+TSL")

ABOVE = (0.0, math.inf)
BELOW = (-math.inf, 0.0)
AT_LEAST = (-0.01, math.inf)
"""A loss of one point of accuracy still counts as a tie."""

ACCURACY = value("accuracy")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement about results, and how it is tested.

    Attributes
    ----------
    id : str
    source : str
        LaTeX label of the figure or table of the paper whose discussion says it.
    sentence : str
    experiments : tuple of str
        Whose rows it is about.
    compared : str
        What the comparisons are.
    quota : {"all", "most"}
        How many of them must come out as the sentence says.
    comparisons : callable
        Makes them from `Results`.
    """

    id: str
    source: str
    sentence: str
    experiments: tuple[str, ...]
    compared: str
    quota: str
    comparisons: Finder = field(repr=False, compare=False)

    @property
    def test(self) -> str:
        """What is compared, and by which rule the comparisons decide."""
        return f"{self.compared} {QUOTAS[self.quota]}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What rows say of a claim.

    Attributes
    ----------
    claim : Claim
    verdict : {"holds", "does not hold", "undecided", "not run"}
    evidence : str
        The numbers behind it, with 95 % intervals.
    n_seeds : int
        Seeds of the comparison that has fewest; 0 where none was run.
    most_seeds : int
        Seeds of the comparison that has most.
    """

    claim: Claim
    verdict: str
    evidence: str
    n_seeds: int
    most_seeds: int


def claims_of(experiments: str, source: str, *entries: tuple[str, str, str, str, Finder]) -> tuple[Claim, ...]:
    """Claims of one figure or table.

    Parameters
    ----------
    experiments : str
        Names, separated by blanks; the first opens the ids.
    source : str
    *entries : tuple
        End of the id, sentence, quota, what is compared, and what makes the comparisons.
    """
    prefix = experiments.split()[0]
    return tuple(
        Claim(
            id=f"{prefix}-{name}",
            source=source,
            sentence=sentence,
            experiments=tuple(experiments.split()),
            compared=compared,
            quota=quota,
            comparisons=comparisons,
        )
        for name, sentence, quota, compared, comparisons in entries
    )
