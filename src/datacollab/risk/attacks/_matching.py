"""Whether reconstructions lead to the right person: ranks, one-to-one linkage and margins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_random_state, gen_batches

from ..._validation import FloatArray
from ...errors import AgreementError
from ._checks import check_rows

__all__ = ["confused", "link_chances", "linked", "match_margins", "nearest_ranks"]

_JITTER = 1e-15
"""Size of the noise that decides ties, relative to the terms of a squared distance: that of rounding."""

_LEAST_JITTER = 1e-290

_SHORT_ROUND = 3
_BLOCK_ENTRIES = 2**22
"""Distances in memory at a time where not all are needed at once (32 MiB)."""


def nearest_ranks(
    candidates: ArrayLike,
    reconstructions: ArrayLike,
    *,
    persons: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Rank of each row's original among the candidates, by distance from its reconstruction.

    Parameters
    ----------
    candidates : array-like of shape (n_candidates, n_features)
        First the originals of the reconstructions, in the same order; after them any number of decoys.
    reconstructions : array-like of shape (n_rows, n_features)
    persons : array-like of shape (n_candidates,), optional
        Numbers of the candidates, the same for those whose originals are equal: to point to one of them is to point to
        all.
    random_state : int, RandomState or None, default=None
        Decides between equally near candidates.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 where the own original is the nearest.  The share of ranks up to k is the re-identification rate at k; by
        chance it is k / n_candidates.

    Raises
    ------
    AgreementError
        When the columns differ, or there are fewer candidates than reconstructions.
    RepresentationError
        When a table is not finite, two-dimensional and numeric.

    Notes
    -----
    Ties are broken at random.  By position they would fall to the right row too often, for reconstructions of equal
    rows are equal.  Distances are Euclidean: bring the columns of a table to comparable units first.

    Examples
    --------
    >>> from datacollab.risk.attacks import nearest_ranks
    >>> nearest_ranks([[0.0], [1.0], [5.0]], [[0.1], [4.0]])
    array([1, 2])
    """
    C, R = _checked(candidates, reconstructions)
    random = _generator(random_state)
    # Rounding depends on the place in a product, so ties are only fair if the places are random, too.
    order = random.permutation(len(C))
    places = np.argsort(order)
    ranks = np.empty(len(R), dtype=np.intp)
    known = _persons(persons, C)[order]
    for rows, costs in _cost_blocks(C[order], R, random):
        own = np.where(known == known[places[rows]][:, None], costs, np.inf).min(axis=1)
        ranks[rows] = 1 + (costs < own[:, None]).sum(axis=1)
    return ranks


def linked(
    candidates: ArrayLike, reconstructions: ArrayLike, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.bool_]:
    """Whether each row is linked to its original by the one-to-one assignment of least cost.

    An attacker that knows who may be in the table, one row each, does better than to look for the nearest candidate of
    each row by itself: it looks for the assignment of rows to candidates with the least sum of squared distances.

    Parameters
    ----------
    candidates : array-like of shape (n_candidates, n_features)
        First the originals of the reconstructions, in the same order; after them any number of decoys.  Without decoys
        the world is closed: the attacker knows exactly who is in the table.
    reconstructions : array-like of shape (n_rows, n_features)
    random_state : int, RandomState or None, default=None
        Decides between assignments of equal cost.

    Returns
    -------
    ndarray of shape (n_rows,)
        Their mean is the linkage rate; by chance it is 1 / n_candidates.

    Raises
    ------
    AgreementError, RepresentationError
        As in `nearest_ranks`.

    Notes
    -----
    Ties are broken at random, as in `nearest_ranks`.  Memory is that of all distances; time grows with the cube of the
    rows in the worst case, and 1,000 rows take about a second.

    Examples
    --------
    Both reconstructions are nearest to the first candidate, but only one row can be that person's:

    >>> from datacollab.risk.attacks import linked
    >>> linked([[0.0], [2.0]], [[-0.1], [0.9]])
    array([ True,  True])
    """
    C, R = _checked(candidates, reconstructions)
    result: NDArray[np.bool_] = _assigned(C, R, _generator(random_state)) == np.arange(len(R))
    return result


def link_chances(
    candidates: ArrayLike,
    reconstructions: ArrayLike,
    *,
    persons: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> FloatArray:
    """Chance that each row is linked to its original, over all ways to decide between equal rows.

    Rows with equal reconstructions get some candidates together; which of them gets which is the attacker's guess.  So
    each is linked with the chance of one over their number, if its original is among these, or a candidate that equals
    it.

    Parameters
    ----------
    candidates, reconstructions, random_state
        As in `linked`.
    persons : array-like of shape (n_candidates,), optional
        As in `nearest_ranks`.

    Returns
    -------
    ndarray of shape (n_rows,)
        Their mean is the linkage rate.

    Raises
    ------
    AgreementError, RepresentationError
        As in `nearest_ranks`.

    Examples
    --------
    >>> from datacollab.risk.attacks import link_chances
    >>> link_chances([[0.0], [2.0], [7.0]], [[1.0], [1.0], [6.0]])
    array([0.5, 0.5, 1. ])
    """
    C, R = _checked(candidates, reconstructions)
    known, guesses = _persons(persons, C), _numbers(R)
    named = known[_assigned(C, R, _generator(random_state))]
    among = (guesses[:, None] == guesses[None, :]) & (named[None, :] == known[: len(R), None])
    return np.asarray(among.sum(axis=1) / np.bincount(guesses)[guesses])


def confused(
    candidates: ArrayLike, reconstructions: ArrayLike, *, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.intp]:
    """Numbers of rows, the same for two or three that are linked to each other's originals in turn.

    Where rows are assigned one to one, an error seldom comes alone: who gets another's candidate leaves its own to
    somebody.  Such rows are one try for an interval.  Longer rounds are those of guesses, which are as good as apart.

    Parameters
    ----------
    candidates, reconstructions, random_state
        As in `linked`.

    Returns
    -------
    ndarray of shape (n_rows,)
        Each the position of one of the rows concerned.

    Examples
    --------
    >>> from datacollab.risk.attacks import confused
    >>> confused([[0.0], [1.0], [7.0]], [[1.1], [-0.1], [7.0]])
    array([0, 0, 2])
    """
    C, R = _checked(candidates, reconstructions)
    named = _assigned(C, R, _generator(random_state))
    numbers = np.arange(len(R))
    for row in range(len(R)):
        ring = [row]
        while len(ring) <= _SHORT_ROUND and named[ring[-1]] < len(R) and named[ring[-1]] != row:
            ring.append(int(named[ring[-1]]))
        if len(ring) <= _SHORT_ROUND and named[ring[-1]] == row:
            numbers[row] = min(ring)
    return numbers


def _assigned(C: FloatArray, R: FloatArray, random: np.random.RandomState) -> NDArray[np.intp]:
    """The candidate of each row in the one-to-one assignment of least cost."""
    rows, columns = random.permutation(len(R)), random.permutation(len(C))
    costs = np.concatenate([block for _, block in _cost_blocks(C[columns], R[rows], random)])
    chosen_rows, chosen_columns = linear_sum_assignment(costs)
    result = np.empty(len(R), dtype=np.intp)
    result[rows[chosen_rows]] = columns[chosen_columns]
    return result


def _persons(given: ArrayLike | None, C: FloatArray) -> NDArray[np.intp]:
    if given is None:
        return np.arange(len(C))
    persons = np.asarray(given)
    if persons.shape != (len(C),):
        raise AgreementError(f"persons must have one number per candidate, shape ({len(C)},); got {persons.shape}.")
    return persons.astype(np.intp)


def _numbers(rows: FloatArray) -> NDArray[np.intp]:
    """The same number for rows that are equal but for rounding."""
    scale = float(np.abs(rows).max()) or 1.0
    return np.unique(np.round(rows / scale, 11), axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def match_margins(candidates: ArrayLike, reconstructions: ArrayLike) -> FloatArray:
    """How clearly each reconstruction points to its original.

    Parameters
    ----------
    candidates : array-like of shape (n_candidates, n_features)
        At least two; first the originals of the reconstructions, in the same order.
    reconstructions : array-like of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows,)
        Distance to the nearest *other* candidate over the distance to the own original.  Above 1 the row is singled
        out, and the more so the larger.  Infinite where the reconstruction is the original; 1 where another candidate
        equals the original.

    Raises
    ------
    AgreementError, RepresentationError
        As in `nearest_ranks`, and with a single candidate.

    Examples
    --------
    >>> from datacollab.risk.attacks import match_margins
    >>> match_margins([[0.0], [3.0]], [[1.0], [2.5]])
    array([2., 5.])
    """
    C, R = _checked(candidates, reconstructions)
    if len(C) < 2:
        raise AgreementError("A margin needs a second candidate; got one. Add decoys, or more rows.")
    nearest = np.empty(len(R), dtype=np.intp)
    for rows, costs in _cost_blocks(C, R, None):
        costs[np.arange(len(costs)), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = costs.argmin(axis=1)
    # The products above cancel near zero; of the two distances that count, every digit does.
    other = np.sqrt(((R - C[nearest]) ** 2).sum(axis=1))
    own = np.sqrt(((R - C[: len(R)]) ** 2).sum(axis=1))
    margins = np.divide(other, own, out=np.full(len(R), np.inf), where=own > 0)
    margins[(own == 0) & (other == 0)] = 1.0
    return np.asarray(margins)


def _generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    # None: entropy of its own, whatever was done to NumPy's global generator.
    return np.random.RandomState() if random_state is None else check_random_state(random_state)


def _checked(candidates: ArrayLike, reconstructions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    C, R = (
        check_rows(candidates, "The table of candidates"),
        check_rows(reconstructions, "The table of reconstructions"),
    )
    if C.shape[1] != R.shape[1]:
        raise AgreementError(
            f"The candidates have {C.shape[1]} columns but the reconstructions have {R.shape[1]}; compare rows of the "
            "same table."
        )
    if len(C) < len(R):
        raise AgreementError(
            f"There are {len(R)} reconstructions but only {len(C)} candidates; give the original of every "
            "reconstruction first, in the same order, and decoys after them."
        )
    return C, R


def _cost_blocks(
    C: FloatArray, R: FloatArray, random: np.random.RandomState | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Squared distances less a constant per reconstruction, in blocks of rows, with noise that decides ties.

    Without |r|^2, which changes neither ranks nor assignments, a reconstruction far off loses no digits.
    """
    centre = C.mean(axis=0)
    C, R = C - centre, R - centre
    squares = (C**2).sum(axis=1)
    lengths = np.sqrt(squares)
    for rows in gen_batches(len(R), max(1, _BLOCK_ENTRIES // len(C))):
        costs = squares - 2 * (R[rows] @ C.T)
        if random is not None:
            scale = _JITTER * (squares + np.linalg.norm(R[rows], axis=1)[:, None] * lengths)
            # Candidates in the centre would get no noise at all.
            costs += np.maximum(scale, _LEAST_JITTER) * random.random_sample(costs.shape)
        yield rows, costs
