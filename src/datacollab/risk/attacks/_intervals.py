"""Confidence intervals of rates and of means over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

__all__ = ["Rate", "clustered_interval", "mean_interval", "wilson_interval"]


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
    >>> from datacollab.risk.attacks import Rate
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
    >>> from datacollab.risk.attacks import wilson_interval
    >>> [round(bound, 3) for bound in wilson_interval(0, 100)]
    [0.0, 0.037]
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"hits={hits} of n={n} is no rate; at least one try is wanted, and no more hits than tries.")
    z = float(stats.norm.ppf((1 + _checked(confidence)) / 2))
    return _wilson(hits / n, n, z)


def clustered_interval(values: ArrayLike, groups: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a mean of values from 0 to 1 that come in groups, as hits among rows that share a published mean.

    Wilson's, for as many independent tries as would give the variance of the mean over groups, and no more than there
    are values; with Student's t for as many degrees of freedom as there are groups, less one.

    Parameters
    ----------
    values : array-like of shape (n,)
    groups : array-like of shape (n,)
        Numbers of the groups.
    confidence : float, default=0.95

    Returns
    -------
    low, high : float
        Wilson's interval where every value is a group of its own and 0 or 1; [0, 1] with a single group.

    Raises
    ------
    ValueError
        When there is no value, or one is not from 0 to 1.

    Examples
    --------
    >>> from datacollab.risk.attacks import clustered_interval
    >>> [round(bound, 3) for bound in clustered_interval([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])]
    [0.002, 0.998]
    """
    found, group = np.asarray(values, dtype=np.float64), np.unique(np.asarray(groups), return_inverse=True)[1]
    if not found.size or found.min() < 0 or found.max() > 1:
        raise ValueError("values must be one or more numbers from 0 to 1.")
    n, n_groups, share = len(found), int(group.max()) + 1, float(found.mean())
    if n_groups == n and np.isin(found, (0, 1)).all():
        return wilson_interval(round(float(found.sum())), n, confidence)
    if n_groups == 1:
        return 0.0, 1.0
    sums = np.bincount(group, found - share)
    variance = n_groups / (n_groups - 1) * float((sums**2).sum()) / n**2
    # All groups alike show as much as so many groups, each of one try, could.
    tries = min(n, share * (1 - share) / variance) if variance > 0 else n_groups
    z = float(stats.t.ppf((1 + _checked(confidence)) / 2, n_groups - 1))
    return _wilson(share, tries, z)


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    # At the ends the interval touches 0 or 1 exactly, which rounding would miss.
    return (0.0 if share == 0 else centre - half_width, 1.0 if share == 1 else centre + half_width)


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
    >>> from datacollab.risk.attacks import mean_interval
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
