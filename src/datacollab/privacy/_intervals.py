"""Confidence intervals of rates and of means over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["Rate", "mean_interval", "wilson_interval"]


@dataclass(frozen=True)
class Rate:
    """How often something happened, with Wilson's interval.

    Parameters
    ----------
    hits : int
    n : int
        Tries, at least one.
    confidence : float, default=0.95

    Raises
    ------
    ValueError
        When the numbers do not make a rate.

    Notes
    -----
    The interval takes the tries as independent.  Rows of one party share one f_k, so it is somewhat too narrow for
    them: report the spread over seeds beside it.

    Examples
    --------
    >>> from datacollab.privacy import Rate
    >>> linked = Rate(13, 100)
    >>> linked.value, round(linked.low, 3), round(linked.high, 3)
    (0.13, 0.078, 0.21)
    """

    hits: int
    n: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        wilson_interval(self.hits, self.n, self.confidence)

    @property
    def value(self) -> float:
        """Hits per try."""
        return self.hits / self.n

    @property
    def low(self) -> float:
        """Lower bound of the interval."""
        return wilson_interval(self.hits, self.n, self.confidence)[0]

    @property
    def high(self) -> float:
        """Upper bound of the interval."""
        return wilson_interval(self.hits, self.n, self.confidence)[1]


def wilson_interval(hits: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a probability [1]_.

    Parameters
    ----------
    hits : int
    n : int
        Independent tries, at least one.
    confidence : float, default=0.95

    Returns
    -------
    low, high : float
        Within [0, 1]; `low` is 0 without a hit, and `high` is 1 without a miss.

    Raises
    ------
    ValueError
        When the numbers do not make a rate.

    References
    ----------
    .. [1] Wilson (1927). Probable inference, the law of succession, and statistical inference. Journal of the American
       Statistical Association 22(158), 209-212.

    Examples
    --------
    >>> from datacollab.privacy import wilson_interval
    >>> [round(bound, 3) for bound in wilson_interval(0, 100)]
    [0.0, 0.037]
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"hits={hits} of n={n} is no rate; at least one try is wanted, and no more hits than tries.")
    z = float(stats.norm.ppf((1 + _checked(confidence)) / 2))
    share = hits / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    # At the ends the interval touches 0 or 1 exactly, which rounding would miss.
    return (0.0 if hits == 0 else centre - half_width, 1.0 if hits == n else centre + half_width)


def mean_interval(values: Iterable[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """Mean of values, one per seed, with Student's t interval.

    Parameters
    ----------
    values : iterable of float
        At least one.
    confidence : float, default=0.95

    Returns
    -------
    mean, low, high : float
        The bounds are NaN for a single value, whose spread is unknown.

    Raises
    ------
    ValueError
        When there is no value.

    Examples
    --------
    >>> from datacollab.privacy import mean_interval
    >>> [round(number, 3) for number in mean_interval([0.5, 0.6, 0.7])]
    [0.6, 0.352, 0.848]
    """
    array = np.array(list(values), dtype=np.float64)
    quantile_level = (1 + _checked(confidence)) / 2
    if array.size == 0:
        raise ValueError("A mean of no values is wanted; give at least one.")
    mean = float(array.mean())
    if array.size == 1:
        return mean, math.nan, math.nan
    half_width = float(stats.t.ppf(quantile_level, array.size - 1) * array.std(ddof=1) / math.sqrt(array.size))
    return mean, mean - half_width, mean + half_width


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    return confidence
