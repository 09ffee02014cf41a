"""Intervals and tests over seeds.

Several comparisons are decided together: all of them by the intersection-union test [1]_, some of them by Holm's
step-down method [2]_, most of them by a partial conjunction [3]_.

References
----------
.. [1] R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24(4), 295-300, 1982.
.. [2] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2),
   65-70, 1979.
.. [3] Y. Benjamini and R. Heller, "Screening for partial conjunction hypotheses", Biometrics 64(4), 1215-1222, 2008.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..paper import Row
from ._published import PublishedValue

_LEVEL = 0.95
# Seeds that a test needs.
FEWEST = 3

# Relative size below which a difference is one of floating-point arithmetic.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and its 95 % confidence interval.

    Attributes
    ----------
    mean : float
        NaN over no seed.
    half_width : float
        NaN over fewer than two seeds.
    """

    mean: float
    half_width: float
    n: int

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN over fewer than two seeds."""
        return _standard_error(self.half_width, self.n)


def interval(values: Iterable[float]) -> Interval:
    """Mean and Student's t interval of values, one per seed."""
    array = np.array(list(values), dtype=np.float64)
    if len(array) < 2:
        return Interval(float(array[0]) if len(array) else math.nan, math.nan, len(array))
    half_width = _quantile(len(array)) * array.std(ddof=1) / math.sqrt(len(array))
    return Interval(float(array.mean()), float(half_width), len(array))


def by_seed(rows: Iterable[Row], measure: str) -> dict[int, float]:
    """Return values of one method, or attack, in one condition, in the order of the seeds; failed rows have none.

    The measure is a key of ``Row.scores`` or of ``Row.seconds``.

    Raises
    ------
    ValueError
        When two rows of a seed have the measure: they are of several methods or conditions, or the same result twice.
    """
    values: dict[int, float] = {}
    for row in rows:
        measured = {} if row.error is not None else {**row.seconds, **row.scores}
        # A failed row has no value, and enters no mean.
        if measure not in measured:
            continue
        if row.seed in values:
            raise ValueError(
                f"{row.name!r} of experiment {row.experiment!r}: seed {row.seed} has a second row with {measure!r}, "
                "where one is wanted. Give the rows of one method in one condition, each result once."
            )
        values[row.seed] = float(measured[measure])
    return dict(sorted(values.items()))


def standardise_difference(ours: Interval, published: PublishedValue) -> float:
    """Difference to a printed value in standard errors of the difference.

    The published standard error follows from the printed half width as a Student's t interval over the published number
    of trials; a printed half width of zero counts as zero.

    Returns
    -------
    float
        NaN where either standard error is unknown, ours is one of fewer than three seeds, or both are zero.
    """
    if ours.n < FEWEST:
        return math.nan
    printed = math.nan if published.half_width is None else published.half_width
    # Ours and theirs are independent, so their variances add up.
    error = math.hypot(ours.standard_error, _standard_error(printed, published.n_trials))
    if error > 0:
        return (ours.mean - published.mean) / error
    return math.nan


def p_above(values: Sequence[float], threshold: float = 0.0) -> float:
    """p-value of the one-sided t-test that the mean is above a threshold.

    Returns
    -------
    float
        1 for fewer than three values, which may agree by chance.  Values that do not vary decide by their side of the
        threshold: 0 above it, 1 else.
    """
    if len(values) < FEWEST:
        return 1.0
    # Equal values have no spread but rounding, and no t-value.
    excess = np.asarray(values, dtype=np.float64) - threshold
    mean = float(excess.mean())
    spread = float(excess.std(ddof=1))
    rounding = _ROUNDING * max(abs(threshold), float(np.abs(values).max()))
    if spread <= rounding:
        if mean > rounding:
            return 0.0
        return 1.0
    return float(stats.t.sf(math.sqrt(len(excess)) * mean / spread, len(excess) - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted by Holm's step-down method, in the order given."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    # Holm: the smallest p-value times n, the next times n - 1, and so on, never falling.
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted


def partial_conjunction(p_values: Sequence[float], n_true: int) -> float:
    r"""p-value of at least ``n_true`` of several statements being true.

    :math:`\min(1, (n - u + 1)\, p_{(u)})` with the u-th smallest of n p-values, however they depend on each other: with
    fewer than u true statements there are n - u + 1 false ones, and of any n - u + 1 p-values one is among the u
    smallest.  For u = n it is the largest p-value, the intersection-union test; for u = 1 it is Bonferroni's, and below
    a level just when some statement passes Holm's method at that level.
    """
    return min(1.0, (len(p_values) - n_true + 1) * sorted(p_values)[n_true - 1])


def _quantile(n: int) -> float:
    return float(stats.t.ppf((1 + _LEVEL) / 2, n - 1))


def _standard_error(half_width: float, n: int) -> float:
    if n > 1:
        return half_width / _quantile(n)
    return math.nan
