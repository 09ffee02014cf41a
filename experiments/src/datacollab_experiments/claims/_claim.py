"""A statement about results, and the verdict of rows on it."""

import math
from dataclasses import dataclass, field

from ._claim_tests import QUOTAS
from ._contrasts import Finder, value

LINEAR = ("MPP", "GEP", "ODC", "LTI")
KERNEL = ("KTI", "KTI+TSL")

ABOVE = (0.0, math.inf)
BELOW = (-math.inf, 0.0)
# A loss of one point of accuracy still counts as a tie.
AT_LEAST = (-0.01, math.inf)

ACCURACY = value("accuracy")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement about results, and how it is tested.

    Attributes
    ----------
    source : str
        LaTeX label of the figure or table of the paper whose discussion says it.
    experiments : tuple of str
        Whose rows it is about.
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
        """The comparisons, and the rule by which they decide."""
        return f"{self.compared} {QUOTAS[self.quota]}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of rows on a claim.

    Attributes
    ----------
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
    """Claims of one figure or table; the first of the experiments, which blanks separate, opens the ids.

    Each entry has the end of the id, the sentence, the quota, the comparisons in words, and the function that makes
    them.
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
