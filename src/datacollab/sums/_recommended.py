"""How many components and how much noise sums have unless parties agree on something else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["UNITS_PER_RANGE", "Recommended", "columns_alike", "recommended"]

UNITS_PER_RANGE = 4.0
"""How wide the declared range of a number is in the common map, beside zeros and ones."""

_FEWEST_ALIKE = 50


@dataclass(frozen=True)
class Recommended:
    """What docs/results/sums found for one kind of data.

    Attributes
    ----------
    n_components : int
        The most columns of the common map.
    noise : float
        s, the standard deviation of the noise on the diagonal of the total.
    least_penalty : float
        The smallest ridge penalty, as a multiple of the operator norm of all noise in the total.
    """

    n_components: int
    noise: float
    least_penalty: float


_TABLE = Recommended(n_components=128, noise=0.1, least_penalty=1.0)
_ALIKE = Recommended(n_components=128, noise=0.04, least_penalty=0.5)


def recommended(*, alike: bool = False) -> Recommended:
    """Return the settings for a table, or for columns that are all alike.

    Parameters
    ----------
    alike : bool
        Whether all columns are of one kind, as pixels and signal strengths are; see `columns_alike`.

    Examples
    --------
    >>> recommended().noise, recommended(alike=True).noise
    (0.1, 0.04)
    """
    return _ALIKE if alike else _TABLE


def columns_alike(widths: ArrayLike, n_columns: int) -> bool:
    """Return whether a table's columns are all alike: at least 50, all of them numbers with one range.

    Parameters
    ----------
    widths : array-like of shape (n_numbers,)
        Widths of the numeric columns' ranges.
    n_columns : int
        Of all columns; those that are no numbers included.

    Examples
    --------
    >>> columns_alike([16.0] * 64, 64), columns_alike([16.0] * 64, 65), columns_alike([16.0, 1.0] * 32, 64)
    (True, False, False)
    """
    ranges = np.asarray(widths, dtype=np.float64)
    if len(ranges) < max(_FEWEST_ALIKE, n_columns):
        return False
    return bool(np.allclose(ranges, ranges[0], rtol=1e-9))
