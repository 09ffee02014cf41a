"""Subset sums of vectors by meeting in the middle."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray

__all__ = ["LARGEST_SUBSET", "find_subset"]

LARGEST_SUBSET = 9
_STAGES = {1: (2000,), 2: (100, 300, 1000), 3: (60, 130, 280), 4: (40, 90, 125)}
"""Among how many of the first vectors a subset is sought, one after the other, by the size of the halves."""
_PIVOTS = 120
"""How many vectors are tried at most where one is outside of both halves."""
_LARGEST_MEETING = 30_000_000
"""Pairs of halves that agree along one direction; with more, the tolerance tells too little apart to go on."""
_BLOCK = 2_000_000

IntArray = NDArray[np.intp]


def find_subset(
    vectors: FloatArray, total: FloatArray, size: int, tolerance: float, seconds: float = math.inf
) -> IntArray | None:
    r"""Find vectors, so many of them, that add up to a total.

    With :math:`h = \lfloor m / 2 \rfloor` the sums of all h vectors are sorted along one direction, and each meets
    those that complete it; of an odd number, one vector is tried after the other.  What fits along the direction is
    looked at in all coordinates.  Larger subsets are sought among fewer of the vectors, the first ones.

    Parameters
    ----------
    vectors : ndarray of shape (n_vectors, n_columns)
        The likeliest first.
    total : ndarray of shape (n_columns,)
    size : int
        From 1 to `LARGEST_SUBSET`.
    tolerance : float
        Largest distance of the sum from the total.
    seconds : float, default=inf
        After which the search is given up.

    Returns
    -------
    ndarray of shape (size,) or None
        Positions, ascending; of several subsets that fit, the closest one of those that meet first.
    """
    ends = time.monotonic() + seconds
    if size == 1:
        distances = np.linalg.norm(vectors - total, axis=1)
        return np.array([distances.argmin()]) if len(vectors) and distances.min() <= tolerance else None
    half, odd = divmod(size, 2)
    # The direction in which the vectors differ most has the fewest sums that fit by chance.
    direction = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)[2][0]
    done = 0
    for wanted in _STAGES[half]:
        n = min(wanted, len(vectors))
        if n < size or n == done or time.monotonic() > ends:
            break
        done = n
        first = vectors[:n]
        table = _Halves(first, direction, half)
        # One vector of the subset is enough, and it is rare that none of the first ones is in it.
        for pivot in range(min(n, _PIVOTS)) if odd else (-1,):
            rest = total - first[pivot] if odd else total
            found = table.meet(rest, tolerance, pivot)
            if found is not None:
                return found
            if time.monotonic() > ends:
                return None
    return None


class _Halves:
    """Sums of all subsets of one size, sorted along a direction."""

    def __init__(self, vectors: FloatArray, direction: FloatArray, size: int) -> None:
        along = vectors @ direction
        sums, members = _all_sums(along, size)
        order = np.argsort(sums)
        self._vectors, self._direction = vectors, direction
        self._sums, self._members = sums[order], members[order]

    def meet(self, total: FloatArray, tolerance: float, pivot: int) -> IntArray | None:
        """Two halves without a vector in common, and without the pivot, that add up to the total."""
        wanted = float(total @ self._direction) - self._sums
        starts = np.searchsorted(self._sums, wanted - tolerance, side="left")
        counts = np.searchsorted(self._sums, wanted + tolerance, side="right") - starts
        left = np.flatnonzero(counts)
        if not len(left) or counts.sum() > _LARGEST_MEETING:
            return None
        best, closest = None, tolerance
        blocks = np.searchsorted(np.cumsum(counts[left]), np.arange(_BLOCK, counts[left].sum(), _BLOCK))
        for rows in np.split(left, blocks):
            if not len(rows):
                continue
            repeated = np.repeat(rows, counts[rows])
            offsets = np.arange(len(repeated)) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
            right = starts[repeated] + offsets
            once = repeated < right
            found = self._closest(repeated[once], right[once], total, tolerance, pivot)
            if found is not None and found[0] <= closest:
                closest, best = found
        return best

    def _closest(
        self, left: IntArray, right: IntArray, total: FloatArray, tolerance: float, pivot: int
    ) -> tuple[float, IntArray] | None:
        """Distance and members of the best of some pairs of halves."""
        if not len(left):
            return None
        members = np.hstack([self._members[left], self._members[right]])
        gaps = total[0] - self._vectors[members, 0].sum(axis=1)
        # One more coordinate sorts most of them out, before all are added up.
        members = members[np.abs(gaps) <= tolerance]
        if not len(members):
            return None
        distances = np.linalg.norm(self._vectors[members].sum(axis=1) - total, axis=1)
        ordered = np.sort(members, axis=1)
        distances[(np.diff(ordered, axis=1) == 0).any(axis=1) | (members == pivot).any(axis=1)] = np.inf
        best = int(distances.argmin())
        if not math.isfinite(distances[best]):
            return None
        chosen = members[best] if pivot < 0 else np.append(members[best], pivot)
        return float(distances[best]), np.sort(chosen).astype(np.intp)


def _all_sums(values: FloatArray, size: int) -> tuple[FloatArray, NDArray[np.int16]]:
    """Sums of all subsets, shape (n_subsets,), and their members, shape (n_subsets, size)."""
    n = len(values)
    sums, members = values.copy(), np.arange(n, dtype=np.int16)[:, None]
    for smaller in range(1, size):
        # Subsets come in the order of their largest member, so those below it are the first ones.
        counts = [math.comb(last, smaller) for last in range(n)]
        sums = np.concatenate([sums[:count] + values[last] for last, count in enumerate(counts)])
        members = np.vstack(
            [
                np.hstack([members[:count], np.full((count, 1), last, dtype=np.int16)])
                for last, count in enumerate(counts)
            ]
        )
    return sums, members
