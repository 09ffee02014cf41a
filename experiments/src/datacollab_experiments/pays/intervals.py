"""Paired differences with intervals, and how often intervals hold the truth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Difference:
    """A mean difference, and its 95 % interval; no numbers for the ends where there is one seed only."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether all of the interval is above zero ("+") or below ("-"), or neither ("0")."""
        if self.low > 0:
            return "+"
        if self.high < 0:
            return "-"
        return "0"


# Scores by seed and party.
Scores = Mapping[int, Mapping[str, float]]


def pair_differences(left: Scores, right: Scores, *, relative: bool = False) -> Difference:
    r"""Mean of left minus right over parties and seeds.

    Parties of one seed have the test rows, the public rows and the other parties' rows in common, so that they are
    one observation: the interval is Student's of the seeds' mean differences, :math:`\bar d \pm t_{S-1} s/\sqrt{S}`.

    Parameters
    ----------
    left, right : mapping of int to mapping of str to float
        Scores by seed and party; seeds and parties that only one of them has are left out.
    relative : bool, default=False
        Whether each difference is divided by the right score: for errors in units.
    """
    means = []
    for seed in sorted(left.keys() & right.keys()):
        parties = left[seed].keys() & right[seed].keys()
        differences = [
            (left[seed][p] - right[seed][p]) / (right[seed][p] if relative else 1.0) for p in sorted(parties)
        ]
        if differences:
            means.append(float(np.mean(differences)))
    return student(means)


def student(values: Sequence[float]) -> Difference:
    """Mean of independent values and its 95 % interval."""
    if not values:
        return Difference(math.nan, math.nan, math.nan)
    mean = float(np.mean(values))
    # One seed has no spread.
    if len(values) == 1:
        return Difference(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return Difference(mean, mean - half, mean + half)


def coverage(
    lows: Sequence[float], highs: Sequence[float], truths: Sequence[float], clusters: Sequence[str]
) -> tuple[Difference, int]:
    """Share of intervals that hold the truth, its interval with clusters as observations, and how many there are."""
    held = (np.asarray(lows) <= np.asarray(truths)) & (np.asarray(truths) <= np.asarray(highs))
    # Parties of one trial share rows, so trials are the observations.
    names = np.asarray(clusters)
    shares = [float(held[names == name].mean()) for name in dict.fromkeys(clusters)]
    interval = student(shares)
    mean = float(held.mean()) if len(held) else math.nan
    # The share is over all intervals, and its width over trials.
    low = mean - (interval.mean - interval.low)
    high = mean + (interval.high - interval.mean)
    return Difference(mean, max(low, 0.0), min(high, 1.0)), len(held)
