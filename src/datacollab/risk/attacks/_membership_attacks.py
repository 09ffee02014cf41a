"""Measures of attacks, and membership: scores, and shares made as the party makes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from ..._validation import FloatArray
from ...errors import AgreementError, RepresentationError
from ...linalg import column_space, leading_left_singular, wilson
from ...share import Share
from ._attack import (
    IntArray,
    check_columns,
    check_pairs,
    check_rows,
    check_targets,
    learn_target_code,
    least_squares,
    own_generator,
    row_blocks,
)


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


_NEIGHBOURS = 5


def representation_distance_scores(images: ArrayLike, representation: ArrayLike) -> FloatArray:
    r"""Score rows, supposed members, by how close they are mapped to a shared row, :math:`-\min_i |\hat f(x) - z_i|`.

    The rows' images under an estimate of f, and the shared representation, have n_intermediate columns each.
    """
    mapped = check_rows(images, "The table of images")
    Z = check_rows(representation, "The representation")
    check_columns(mapped, Z, "The images have", "the representation has")
    return -_smallest_distances(mapped, Z, 1)[:, 0]


def reconstruction_distance_scores(rows: ArrayLike, reconstructions: ArrayLike, public: ArrayLike) -> FloatArray:
    r"""Score rows by how close a reconstruction is, :math:`-\min_i |x - \hat x_i| / d(x)`.

    d(x) is the mean distance of x from its five nearest public rows, for a row like many others has a close
    reconstruction anyway.  There are five public rows at least, none of them among the rows; all have n_features
    columns.
    """
    X = check_rows(rows, "The table of rows")
    guesses = check_rows(reconstructions, "The table of reconstructions")
    P = check_rows(public, "The public table")
    check_columns(X, guesses, "The table of rows has", "the reconstructions")
    check_columns(X, P, "The table of rows has", "the public table")
    if len(P) < _NEIGHBOURS:
        raise RepresentationError(f"There are {len(P)} public rows; give at least {_NEIGHBOURS}.")
    usual = _smallest_distances(X, P, _NEIGHBOURS).mean(axis=1)
    nearest = _smallest_distances(X, guesses, 1)[:, 0]
    # Repeated in the public table, a row was close by to begin with, and scores lowest.
    return np.asarray(-nearest / np.maximum(usual, np.finfo(np.float64).tiny ** 0.5))


def subspace_scores(
    rows: ArrayLike, anchor: ArrayLike, anchor_representation: ArrayLike, public: ArrayLike
) -> FloatArray:
    r"""Score rows by how much of them the subspace of a linear f contains, beyond the usual.

    f fitted on few rows keeps more of those than of others.  With F the linear estimate of f from leaked anchors,
    :math:`(A^c)^\dagger \tilde A^c`, P the orthogonal projection onto its range, and :math:`P_0` that onto as many
    principal axes of public rows with mean :math:`\mu`:

    .. math:: (|P (x - \mu)|^2 - |P_0 (x - \mu)|^2) / |x - \mu|^2
    """
    X = check_rows(rows, "The table of rows")
    P = check_rows(public, "The public table")
    A, Z = check_pairs(anchor, anchor_representation)
    check_columns(X, A, "The table of rows has", "the leaked originals")
    check_columns(X, P, "The table of rows has", "the public table")
    A = A - A.mean(axis=0)
    Z = Z - Z.mean(axis=0)
    mean = P.mean(axis=0)
    P = P - mean
    for table, name in ((A, "leaked original"), (Z, "leaked representation"), (P, "public table")):
        if not table.any():
            raise RepresentationError(f"All rows of the {name} are equal, so nothing can be learnt from it.")
    kept = column_space(least_squares(A, Z)).basis
    _, _, axes = leading_left_singular(P)
    X = X - mean
    lengths = (X**2).sum(axis=1)
    excess = ((X @ kept) ** 2).sum(axis=1) - ((X @ axes[:, : kept.shape[1]]) ** 2).sum(axis=1)
    # A row at the mean but for rounding (1e-12 of the usual length, squared) has no direction, and scores zero.
    rounding = 1e-24 * (float((P**2).sum(axis=1).mean()) + float(mean @ mean))
    return np.asarray(np.divide(excess, lengths, out=np.zeros(len(X)), where=lengths > rounding))


def _smallest_distances(X: FloatArray, others: FloatArray, k: int) -> FloatArray:
    """Return distances of each row from its k nearest others, in no order, shape (n_rows, k)."""
    centre = others.mean(axis=0)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(others - centre)
    near = search.kneighbors(X - centre, return_distance=False)
    # The product cancels near zero, which is where it matters most here.
    return np.stack([np.linalg.norm(X - others[column], axis=1) for column in near.T], axis=1)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Ability of a score to tell members from others, with 95 % intervals.

    Attributes
    ----------
    auc, low, high : float
        Probability that a member scores above another row, ties counting half.
    tpr, tpr_low, tpr_high : float
        Share of the members found while no more of the others are taken for members than is allowed.
    """

    auc: float
    low: float
    high: float
    tpr: float
    tpr_low: float
    tpr_high: float


def membership(
    member_scores: ArrayLike, other_scores: ArrayLike, fpr: float = 0.01, *, groups: ArrayLike | None = None
) -> Membership:
    """Measure how well a score, high for supposed members, tells members from others.

    The interval has DeLong's variance [1]_, of sums over groups of members, and is Student's t for the log odds.  For
    areas above .95 it is too narrow.  If the score tells all members from all others, it is Wilson's for the smaller
    of the two numbers; with a single group or row on either side it is [0, 1].

    Parameters
    ----------
    member_scores, other_scores : array-like of shape (n_members,) and (n_others,)
        The others are rows of the same kind that took no part.
    fpr : float, default=0.01
        Share of the others that may be taken for members.
    groups : array-like of shape (n_members,), optional
        Numbers of groups of members whose scores rise and fall together, such as rows that share a published mean.

    Raises
    ------
    ValueError
        If scores are not one-dimensional and finite, or there is none.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver
       operating characteristic curves: a nonparametric approach. Biometrics 44(3), 837-845.
    """
    members = _check_scores(member_scores, "member_scores")
    others = _check_scores(other_scores, "other_scores")
    if not 0 <= fpr <= 1:
        raise ValueError(f"fpr={fpr!r} must lie in [0, 1].")
    group = np.arange(len(members))
    if groups is not None:
        group = np.unique(np.asarray(groups), return_inverse=True)[1]
    if group.shape != (len(members),):
        raise ValueError(f"groups must have one entry per member, shape ({len(members)},); got {group.shape}.")
    auc, low, high = _auc_interval(members, others, group)
    # Rounded, lest 0.07 * 100 allow six; above this score there are no more others than allowed.
    allowed = math.floor(round(fpr * len(others), 9))
    threshold = -np.inf
    if allowed < len(others):
        threshold = np.sort(others)[::-1][allowed]
    # Members that tie with the threshold are not counted: those others that tie would be taken as well.
    found = members > threshold
    tpr_low, tpr_high = interval_of_clusters(found, group)
    return Membership(auc=auc, low=low, high=high, tpr=float(np.mean(found)), tpr_low=tpr_low, tpr_high=tpr_high)


def _auc_interval(members: FloatArray, others: FloatArray, group: IntArray) -> tuple[float, float, float]:
    """Compute the AUC with an interval by its log odds, from ranks in place of all pairs."""
    m = len(members)
    n = len(others)
    ranks = rankdata(np.concatenate([members, others]))
    # For each member the share of the others below it; for each other row the share of the members above it.
    above = (ranks[:m] - rankdata(members)) / n
    below = 1 - (ranks[m:] - rankdata(others)) / m
    auc = float(above.mean())
    sums = np.bincount(group, above - auc)
    smaller = min(len(sums), n)
    # One row or group on either side has no variance to be estimated.
    if smaller < 2:
        return auc, 0.0, 1.0
    # DeLong's variance, with sums over groups in place of single members.
    variance = float(len(sums) / (len(sums) - 1) * (sums**2).sum() / m**2 + below.var(ddof=1) / n)
    # There the variance is zero and the log odds are infinite.
    if auc in (0.0, 1.0):
        return auc, *wilson_interval(round(auc) * smaller, smaller)
    half_width = stats.t.ppf(0.975, smaller - 1) * math.sqrt(variance) / (auc * (1 - auc))
    low, high = special.expit(special.logit(auc) + np.array([-half_width, half_width]))
    return auc, min(auc, float(low)), max(auc, float(high))


def _check_scores(scores: ArrayLike, name: str) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be one-dimensional, finite and not empty; got shape {values.shape} with "
            f"{int((~np.isfinite(values)).sum())} entries that are not finite."
        )
    return values


_RIDGE = 0.1
_MODEL_ROWS = 600
"""Penalty of the model of a share, and rows at most that it learns from: its time grows with their cube."""


class View(NamedTuple):
    """Share as an attacker sees it: rows, and the class of each, or its group of similar numeric targets."""

    rows: FloatArray
    group: IntArray


class Reference:
    """Usual rows of each class, from the anchor's or public rows' images under f."""

    def __init__(self, images: FloatArray, group: IntArray, n_groups: int) -> None:
        d = images.shape[1]
        within = images.copy()
        self.means = np.empty((n_groups, d))
        self.clips = np.empty(n_groups)
        spread = []
        for label in range(n_groups):
            rows = images[group == label]
            if not len(rows):
                # A class that no row of the attacker has: all classes together stand for it.
                rows = images
            self.means[label] = rows.mean(axis=0)
            self.clips[label] = np.median(np.linalg.norm(rows - self.means[label], axis=1))
            covariance = np.eye(d)
            if len(rows) > 1:
                covariance = np.cov(rows, rowvar=False).reshape(d, d)
            spread.append(covariance)
        within -= self.means[group]
        # The small multiple of the identity keeps it invertible where columns are constant.
        self.pooled = within.T @ within / max(1, len(within) - n_groups) + 1e-9 * np.eye(d) * (within**2).mean()
        # A fifth of the pooled covariance: few rows of a class give none that can be inverted.
        self.roots = [_inverse_root(0.8 * own + 0.2 * self.pooled) for own in spread]
        self.n_groups = n_groups
        # The median distance is the usual width of a kernel; 500 rows determine it well enough.
        distances = cdist(images[:500], images[:500])
        self.width = 1.0
        if (distances > 0).any():
            self.width = float(np.median(distances[distances > 0]))

    def towards(self, images: FloatArray, group: IntArray) -> FloatArray:
        """Return rows less their class's mean, no longer than the median row of the class."""
        # Rows far out would dominate any product with them, in the share or not.
        gaps = images - self.means[group]
        lengths = np.linalg.norm(gaps, axis=1)
        return np.asarray(gaps * np.minimum(1.0, self.clips[group] / np.maximum(lengths, 1e-300))[:, None])


def _inverse_root(covariance: FloatArray) -> FloatArray:
    """Return R with R R' the pseudo-inverse of a covariance, so that distances of rows times R are Mahalanobis's."""
    eigenvalues, V = np.linalg.eigh(covariance)
    kept = eigenvalues > 1e-15 * eigenvalues[-1]
    return np.asarray(V[:, kept] / np.sqrt(eigenvalues[kept]))


def share_statistics(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """Compute figures about records, larger the likelier they are in the share; shape (n_records, n_statistics)."""
    distances = cdist(images, view.rows)
    same = group[:, None] == view.group[None, :]
    of_class = np.where(same, distances, np.inf)
    far = distances.max(initial=0.0)
    last = min(_NEIGHBOURS, len(view.rows)) - 1
    # A class with too few shared rows has infinite distances, which stand for the largest there is.
    near = np.minimum(np.sort(np.partition(of_class, last, axis=1)[:, :_NEIGHBOURS], axis=1), far)
    direction = reference.towards(images, group)
    # How far each class's shared rows are off on average.
    sums = np.zeros_like(reference.means)
    np.add.at(sums, view.group, view.rows - reference.means[view.group])
    counts = np.bincount(view.group, minlength=reference.n_groups)
    shift = (sums / np.maximum(counts, 1)[:, None])[group]
    nearest = np.argpartition(distances, last, axis=1)[:, :_NEIGHBOURS]
    figures = (
        # Nearness to shared rows of the class and of any, as a row that is shared alone has.
        -near[:, 0],
        -distances.min(axis=1),
        -near.mean(axis=1),
        _group_likelihood(view, reference, images, group),
        # Of the class's mean, in the record's direction; also in units of the rows' spread.
        (shift * direction).sum(axis=1),
        (shift * np.linalg.solve(reference.pooled, direction.T).T).sum(axis=1),
        _model_scores(view, reference, images, group),
        np.take_along_axis(same, nearest, axis=1).mean(axis=1),
    )
    return np.column_stack(figures)


def _group_likelihood(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """Return the log mean, over the class's shared means, of how much likelier each is with the record than without."""
    found = np.zeros(len(images))
    for label in np.unique(group):
        records = group == label
        rows, counts = np.unique(view.rows[view.group == label], axis=0, return_counts=True)
        if not len(rows):
            continue
        root = reference.roots[label]
        centre = reference.means[label]
        shared = (rows - centre) @ root
        own = (images[records] - centre) @ root
        # A mean of m rows less the record is one of m - 1 others; a row by itself is near the record, or is not it.
        alone = counts == 1
        others = np.where(counts == 1, 0.3**2, counts - 1.0)
        gained = 0.5 * (counts * (shared**2).sum(axis=1) + rows.shape[1] * np.log(counts / others))
        ratios = np.where(alone, 0.0, gained) - 0.5 * cdist(own, counts[:, None] * shared, "sqeuclidean") / others
        found[records] = logsumexp(ratios, axis=1)
    return found


def _model_scores(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """Predict the record's own target by kernel ridge regression on the share."""
    # Rows at equal steps: nothing is drawn, so that scores of one share repeat.
    every = -(-len(view.rows) // _MODEL_ROWS)
    rows = view.rows[::every]
    group_of = view.group[::every]

    def kernel(others: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-cdist(others, rows, "sqeuclidean") / reference.width**2))

    indicators = np.eye(reference.n_groups)[group_of]
    fitted = np.linalg.solve(kernel(rows) + _RIDGE * np.eye(len(rows)), indicators)
    return np.asarray((kernel(images) @ fitted)[np.arange(len(images)), group])


_LEAST_SHADOWS = 8
_RECORDS = 1500
_LEAST_SPREAD = 1e-9
"""Shares that are made at least, and public rows at most that are learnt from; each is in some of the tables."""


@dataclass(eq=False, repr=False)
class ShadowAttack:
    """Membership attack on one share, by shares made for the purpose [1]_.

    The attacker makes many shares of tables of its own with as many rows of each class, and learns how figures about a
    record differ if the record is in the table.  Every record is judged by itself, without a list of candidates.

    Parameters
    ----------
    make_share : callable
        The party's way of sharing: takes images (n_rows, n_intermediate) under f, their targets and a RandomState, and
        returns a `Share` of them.
    n_shadows : int, default=64
    seconds : float, default=inf
        Time after which no further share is made; eight at least are.
    random_state : int, RandomState or None, default=None

    References
    ----------
    .. [1] Carlini, Chien, Nasr, Song, Terzis and Tramer (2022). Membership inference attacks from first principles.
       IEEE Symposium on Security and Privacy.
    """

    make_share: Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share]
    n_shadows: int = 64
    seconds: float = math.inf
    random_state: int | np.random.RandomState | None = None

    def fit(self, images: ArrayLike, target: ArrayLike, table_target: ArrayLike) -> Self:
        """Make shares of public rows, and learn how figures change with a record.

        The rows come as `images` under an estimate of f with their `target`, at least twice as many as the table under
        attack has rows; `table_target` are the targets of that.
        """
        random = check_random_state(self.random_state)
        pool = check_rows(images, "The public images")
        labels = check_targets(target, len(pool), "The public rows' target")
        table = check_targets(table_target, np.size(table_target), "The table's target", like=labels)
        if len(pool) < 2 * len(table):
            raise AgreementError(
                f"Shadow tables of {len(table)} rows need at least {2 * len(table)} public rows; got {len(pool)}."
            )
        self._code = learn_target_code(labels)
        # Classes that the public rows lack count as the first: a shadow table must have as many rows.
        groups = np.maximum(self._code.groups(labels), 0)
        counts = np.bincount(np.maximum(self._code.groups(table), 0), minlength=self._code.n_groups)
        self._reference = Reference(pool, groups, self._code.n_groups)
        tables: list[IntArray] = []
        self._views: list[View] = []
        started = time.monotonic()
        while len(tables) < self.n_shadows:
            if len(tables) >= _LEAST_SHADOWS and time.monotonic() - started > self.seconds:
                break
            # The rows are drawn first and the seed of the party's own randomness after them.
            rows = _draw_rows(groups, counts, random)
            share = self.make_share(pool[rows], labels[rows], np.random.RandomState(random.randint(2**31)))
            tables.append(rows)
            self._views.append(self._view(share))
        # Only rows that were in some tables, and out of others, show what a record changes.
        used = random.permutation(np.unique(np.concatenate(tables)))[:_RECORDS]
        inside = np.array([np.isin(used, rows) for rows in tables])
        statistics = self._statistics(self._views, pool[used], groups[used])
        self._model = _fit(statistics, inside, random)
        return self

    def score(self, share: Share, images: ArrayLike, target: ArrayLike) -> FloatArray:
        """Return log odds of being in a share for records, given as the rows in `fit`, and none of them."""
        rows = check_rows(images, "The images")
        groups = np.maximum(self._code.groups(np.asarray(target)), 0)
        without = self._statistics(self._views, rows, groups)
        found = self._statistics([self._view(share)], rows, groups)[0]
        return np.asarray(self._model.decision_function(_compare(found, without.mean(axis=0), without.std(axis=0))))

    def _view(self, share: Share) -> View:
        return View(share.representation, np.maximum(self._code.groups(share.target), 0))

    def _statistics(self, views: list[View], images: FloatArray, groups: IntArray) -> FloatArray:
        """Compute figures of shape (n_views, n_records, n_statistics)."""
        return np.stack([share_statistics(view, self._reference, images, groups) for view in views])


def _draw_rows(groups: IntArray, counts: IntArray, random: np.random.RandomState) -> IntArray:
    """Draw rows of a shadow table, so many of each class; if a class has too few, others instead."""
    order = random.permutation(len(groups))
    chosen = [order[groups[order] == label][:count] for label, count in enumerate(counts)]
    rows = np.concatenate(chosen)
    missing = int(counts.sum()) - len(rows)
    if not missing:
        return rows
    return np.concatenate([rows, order[~np.isin(order, rows)][:missing]])


def _compare(found: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Compare figures with those without the record, as they are and in units of their spread."""
    difference = found - mean
    return np.hstack([difference, difference / np.maximum(spread, _LEAST_SPREAD)])


def _fit(statistics: FloatArray, inside: NDArray[np.bool_], random: np.random.RandomState) -> Any:
    """Fit a model that tells shares with a record from those without."""
    weights = (~inside)[:, :, None].astype(np.float64)
    examples = []
    truth = []
    for shadow, rows in enumerate(inside):
        # A share of its own table would otherwise count among those that it is compared with.
        others = weights.copy()
        others[shadow] = 0
        n = np.maximum(others.sum(axis=0), 1)
        mean = (others * statistics).sum(axis=0) / n
        spread = np.sqrt(np.maximum((others * statistics**2).sum(axis=0) / n - mean**2, 0))
        # As many without as with the record, so that log odds are about zero where nothing is known.
        outside = random.choice(np.flatnonzero(~rows), min(int(rows.sum()), int((~rows).sum())), replace=False)
        chosen = np.concatenate([np.flatnonzero(rows), outside])
        examples.append(_compare(statistics[shadow][chosen], mean[chosen], spread[chosen]))
        truth.append(rows[chosen])
    # Figures in units of a spread near zero can be huge, and one such example would turn the model; few shadows
    # determine eight figures and their differences only with a strong penalty.
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    return model.fit(np.clip(np.vstack(examples), -1e6, 1e6), np.concatenate(truth))
