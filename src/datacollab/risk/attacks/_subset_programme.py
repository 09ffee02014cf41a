"""Subset sums of vectors as an integer programme: for subsets that are too large to meet in the middle."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from ..._validation import FloatArray
from ._subset_sums import IntArray

__all__ = ["find_subset_by_programme"]

_MOST_VECTORS = 1500
_FEASIBLE = 1e-7
"""What the solver takes for zero; its answers are checked against the tolerance wanted."""


def find_subset_by_programme(
    vectors: FloatArray, size: int, tolerance: float, seconds: float, costs: FloatArray | None = None
) -> IntArray | None:
    r"""Find vectors, so many of them, that add up to zero.

    .. math:: \min c^\top x \quad \text{subject to} \quad V^\top x \approx 0, \; 1^\top x = m, \; x \in \{0, 1\}^n

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, n_columns)
        The likeliest first: the first 1,500 are used.
    size : int
    tolerance : float
        Largest distance of the sum from zero.
    seconds : float
        After which the search is given up.
    costs : ndarray of shape (n_vectors,), optional
        The less, the likelier; by default the squared lengths.

    Returns
    -------
    ndarray of shape (size,) or None
        Positions, ascending.

    Notes
    -----
    There are no more columns than a relaxation to :math:`0 \le x \le 1` can leave fractional, so that the more
    columns there are, the less is left to branch on: ten of a thousand vectors in 32 columns take a fraction of a
    second, twelve of a hundred in 16 some seconds.
    """
    some = np.asarray(vectors[:_MOST_VECTORS], dtype=np.float64)
    n = len(some)
    scale = float(np.abs(some).max(initial=0.0))
    if n < size or scale == 0 or seconds <= 0:
        return None
    weights = (some**2).sum(axis=1) if costs is None else np.asarray(costs[:n], dtype=np.float64)
    slack = max(_FEASIBLE, tolerance / scale)
    sums = np.vstack([some.T / scale, np.ones(n)])
    low = np.append(np.full(some.shape[1], -slack), size)
    high = np.append(np.full(some.shape[1], slack), size)
    found = milp(
        weights / max(float(np.abs(weights).max()), np.finfo(float).tiny),
        integrality=np.ones(n),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(sums, low, high),
        options={"time_limit": seconds},
    )
    if found.x is None:
        return None
    chosen = np.flatnonzero(found.x > 0.5)
    if len(chosen) != size or np.linalg.norm(some[chosen].sum(axis=0)) > tolerance:
        return None
    return chosen.astype(np.intp)
