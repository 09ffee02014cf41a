"""Matches between reconstructions and originals, class means, and intervals of rates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import linear_sum_assignment

from ..._validation import FloatArray
from ...errors import AgreementError
from ...linalg import wilson
from ._attack import IntArray, check_columns, check_rows, check_targets, learn_target_code, own_generator, row_blocks


def wilson_interval(hits: int, n: int) -> tuple[float, float]:
    """Compute Wilson's 95 % score interval [1]_ of a share of tries that hit, taken as independent.

    Rows of one party share one f_k, so the interval is somewhat too narrow for them.

    References
    ----------
    .. [1] Wilson (1927). Probable inference, the law of succession, and statistical inference. Journal of the American
       Statistical Association 22(158), 209-212.
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"hits={hits} of n={n} is no rate; give at least one try, and no more hits than tries.")
    return wilson(hits / n, n)


def interval_of_clusters(values: ArrayLike, groups: ArrayLike) -> tuple[float, float]:
    """Compute the 95 % interval of a mean of values in [0, 1] that come in groups, as rows that share a published mean.

    It is Wilson's, for as many independent tries as would give the variance of the mean over groups, with Student's t
    for one degree of freedom less than there are groups.  With a single group it is [0, 1].
    """
    found = np.asarray(values, dtype=np.float64)
    group = np.unique(np.asarray(groups), return_inverse=True)[1]
    if not found.size or found.min() < 0 or found.max() > 1:
        raise ValueError("values must be one or more numbers from 0 to 1.")
    n = len(found)
    n_groups = int(group.max()) + 1
    share = float(found.mean())
    # Rows that each stand alone, and hit or miss, are binomial: no need to estimate the variance.
    if n_groups == n and np.isin(found, (0, 1)).all():
        return wilson_interval(round(float(found.sum())), n)
    # One group shows nothing about how groups vary.
    if n_groups == 1:
        return 0.0, 1.0
    sums = np.bincount(group, found - share)
    variance = n_groups / (n_groups - 1) * float((sums**2).sum()) / n**2
    # All groups alike show as much as so many groups, each of one try, could.
    tries: float = n_groups
    if variance > 0:
        tries = min(n, share * (1 - share) / variance)
    return wilson(share, tries, float(stats.t.ppf(0.975, n_groups - 1)))


_JITTER = 1e-15
_LEAST_JITTER = 1e-290
"""Size of the noise that decides ties, relative to the terms of a squared distance: that of rounding."""
_SHORT_ROUND = 3


class Matches:
    """Matches of reconstructions with candidates, by Euclidean distances that are computed once.

    Parameters
    ----------
    candidates : array-like of shape (n_candidates, n_features)
        First the originals of the reconstructions, in the same order; after them any number of decoys.
    reconstructions : array-like of shape (n_rows, n_features)
    persons : array-like of shape (n_candidates,), optional
        Numbers of the candidates, the same for equal originals: to point to one of them is to point to all.
    random_state : int, RandomState or None, default=None
        Decides between equally near candidates: by position, ties would fall to the right row too often.

    Attributes
    ----------
    ranks : ndarray of shape (n_rows,)
        Rank of each row's original among the candidates, by distance; 1 is the nearest.  The share of ranks up to k is
        the re-identification rate at k; by chance it is k / n_candidates.
    chances : ndarray of shape (n_rows,)
        Chance that each row is linked to its original by the one-to-one assignment with the least sum of squared
        distances.  Rows with equal reconstructions get some candidates together, and which gets which is a guess: each
        is linked with the chance of one over their number, if its original, or an equal of it, is among these.  The
        mean is the linkage rate; by chance it is 1 / n_candidates.
    tries : ndarray of shape (n_rows,)
        Numbers of the rows, in which two or three that are linked to each other's originals are one try.  In a
        one-to-one assignment an error seldom comes alone.  Longer rounds are those of guesses, which are apart.

    Raises
    ------
    AgreementError, RepresentationError
        If tables do not fit each other, or are not finite, two-dimensional and numeric.

    Examples
    --------
    >>> matches = Matches([[0.0], [2.0], [9.0]], [[-0.1], [0.9], [9.0]])
    >>> matches.ranks.tolist(), matches.chances.tolist()
    ([1, 2, 1], [1.0, 1.0, 1.0])
    """

    def __init__(
        self,
        candidates: ArrayLike,
        reconstructions: ArrayLike,
        *,
        persons: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        C, self._reconstructions = _check_pair(candidates, reconstructions)
        self._persons = _persons(persons, C)
        random = own_generator(random_state)
        # Rounding depends on the place in a product, so ties are only fair if the places are random, too.
        self._rows = random.permutation(len(self._reconstructions))
        self._columns = random.permutation(len(C))
        blocks = _cost_blocks(C[self._columns], self._reconstructions[self._rows], random)
        self._costs = np.concatenate([costs for _, costs in blocks])

    @cached_property
    def ranks(self) -> IntArray:
        """Rank each row's original."""
        is_own = self._persons[self._columns] == self._persons[self._rows][:, None]
        # To point to an equal of the original is to point to it, so the nearest of the equals counts.
        own = np.where(is_own, self._costs, np.inf).min(axis=1)
        ranks = np.empty(len(own), dtype=np.intp)
        ranks[self._rows] = 1 + (self._costs < own[:, None]).sum(axis=1)
        return ranks

    @cached_property
    def chances(self) -> FloatArray:
        """Compute each row's chance to be linked to its original."""
        R = self._reconstructions
        persons = self._persons
        scale = float(np.abs(R).max()) or 1.0
        # Rows that are equal but for rounding have one number.
        # NumPy 2.0 alone gives the inverse the shape of the table.
        guesses = np.unique(np.round(R / scale, 11), axis=0, return_inverse=True)[1].reshape(-1)
        among = (guesses[:, None] == guesses[None, :]) & (persons[self._linked][None, :] == persons[: len(R), None])
        return np.asarray(among.sum(axis=1) / np.bincount(guesses)[guesses])

    @cached_property
    def tries(self) -> IntArray:
        """Number the rows by try."""
        linked = self._linked
        numbers = np.arange(len(linked))
        for row in range(len(linked)):
            # Follow the links from original to original, until they come back or go on too long.
            ring = [row]
            while len(ring) <= _SHORT_ROUND and linked[ring[-1]] < len(linked) and linked[ring[-1]] != row:
                ring.append(int(linked[ring[-1]]))
            if len(ring) <= _SHORT_ROUND and linked[ring[-1]] == row:
                numbers[row] = min(ring)
        return numbers

    @cached_property
    def _linked(self) -> IntArray:
        """Return the number of the candidate to which each row is assigned."""
        chosen_rows, chosen_columns = linear_sum_assignment(self._costs)
        linked = np.empty(len(self._rows), dtype=np.intp)
        linked[self._rows[chosen_rows]] = self._columns[chosen_columns]
        return linked


def _persons(given: ArrayLike | None, C: FloatArray) -> IntArray:
    if given is None:
        return np.arange(len(C))
    persons = np.asarray(given)
    if persons.shape != (len(C),):
        raise AgreementError(f"persons must have one number per candidate, shape ({len(C)},); got {persons.shape}.")
    return persons.astype(np.intp)


def match_margins(candidates: ArrayLike, reconstructions: ArrayLike) -> FloatArray:
    """Measure how clearly each reconstruction points to its original, among two candidates at least.

    It is the distance to the nearest *other* candidate over that to the own original: above 1 the row is singled out.
    """
    C, R = _check_pair(candidates, reconstructions)
    if len(C) < 2:
        raise AgreementError("A margin needs a second candidate; got one. Add decoys, or more rows.")
    nearest = np.empty(len(R), dtype=np.intp)
    for rows, costs in _cost_blocks(C, R, None):
        # Row i's own original is candidate i, and only the others count here.
        costs[np.arange(len(costs)), np.arange(rows.start, rows.stop)] = np.inf
        nearest[rows] = costs.argmin(axis=1)
    # The products above cancel near zero; of the two distances that count, every digit does.
    other = np.sqrt(((R - C[nearest]) ** 2).sum(axis=1))
    own = np.sqrt(((R - C[: len(R)]) ** 2).sum(axis=1))
    margins = np.divide(other, own, out=np.full(len(R), np.inf), where=own > 0)
    # An equal of the original stands among the others, and nothing tells the two apart.
    margins[(own == 0) & (other == 0)] = 1.0
    return np.asarray(margins)


def _check_pair(candidates: ArrayLike, reconstructions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    C = check_rows(candidates, "The table of candidates")
    R = check_rows(reconstructions, "The table of reconstructions")
    check_columns(C, R, "The candidates have", "the reconstructions have")
    if len(C) < len(R):
        raise AgreementError(
            f"There are {len(R)} reconstructions but only {len(C)} candidates; give the original of every "
            "reconstruction first, in the same order, and decoys after them."
        )
    return C, R


def _cost_blocks(
    C: FloatArray, R: FloatArray, random: np.random.RandomState | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield squared distances less |r|^2, which would cost digits, in blocks of rows, with noise that decides ties."""
    # About their centre, entries are as small as they can be, and the products lose the fewest digits.
    centre = C.mean(axis=0)
    C = C - centre
    R = R - centre
    squares = (C**2).sum(axis=1)
    lengths = np.sqrt(squares)
    for rows in row_blocks(len(R), len(C)):
        costs = squares - 2 * (R[rows] @ C.T)
        if random is not None:
            scale = _JITTER * (squares + np.linalg.norm(R[rows], axis=1)[:, None] * lengths)
            # Candidates in the centre would get no noise at all.
            costs += np.maximum(scale, _LEAST_JITTER) * random.random_sample(costs.shape)
        yield rows, costs


def class_means(public: ArrayLike, public_target: ArrayLike, target: ArrayLike) -> FloatArray:
    """Guess each target's row, shape (n_rows, n_features), by the mean of the public rows that share it.

    Floating-point targets are grouped by quantiles of the public ones; a class that these lack gets the mean of all.
    """
    rows = check_rows(public, "The public table")
    known = check_targets(public_target, len(rows), "The public rows' target")
    asked = check_targets(target, np.size(target), "The target", like=known)
    code = learn_target_code(known)
    members = np.equal.outer(np.arange(code.n_groups), code.groups(known))
    # The mean of all rows comes last, where -1, an unknown class, finds it.
    means = np.vstack([(members @ rows) / members.sum(axis=1, keepdims=True), rows.mean(axis=0)])
    return np.asarray(means[code.groups(asked)])
