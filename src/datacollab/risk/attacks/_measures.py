"""What reconstructions are worth: matches, explained variation, labels, and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..._validation import FloatArray
from ...errors import AgreementError
from ._attack import check_rows, check_targets, learn_target_code

__all__ = [
    "LabelMatch",
    "Rate",
    "class_means",
    "clustered_interval",
    "confused",
    "explained",
    "label_match",
    "link_chances",
    "linked",
    "match_margins",
    "mean_interval",
    "nearest_ranks",
    "wilson_interval",
]


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
    z = float(stats.norm.ppf((1 + _checked_level(confidence)) / 2))
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
    z = float(stats.t.ppf((1 + _checked_level(confidence)) / 2, n_groups - 1))
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
    quantile_level = (1 + _checked_level(confidence)) / 2
    if array.size == 0:
        raise ValueError("A mean of no values is wanted; give at least one.")
    mean = float(array.mean())
    if array.size == 1:
        return mean, math.nan, math.nan
    half_width = float(stats.t.ppf(quantile_level, array.size - 1) * array.std(ddof=1) / math.sqrt(array.size))
    return mean, mean - half_width, mean + half_width


def _checked_level(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    return confidence


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


def explained(originals: ArrayLike, reconstructions: ArrayLike, baseline: ArrayLike) -> float:
    r"""Share of the originals' variation about a baseline that the reconstructions explain.

    .. math:: 1 - \sum_i |x_i - \hat x_i|^2 / \sum_i |x_i - b_i|^2

    With the mean of public rows as baseline this is R2: 0 for an attacker that knows only what such rows are like.
    With the public mean of each row's class (`class_means`) it is R2c: 0 for an attacker that knows the targets as
    well, which data collaboration discloses; what is above 0 leaks beyond them.

    Parameters
    ----------
    originals, reconstructions : array-like of shape (n_rows, n_features)
    baseline : array-like of shape (n_rows, n_features) or (n_features,)

    Returns
    -------
    float
        1 for perfect reconstructions; negative for worse ones than the baseline.  NaN where the baseline is perfect.

    Raises
    ------
    AgreementError
        When the shapes differ.
    RepresentationError
        When a table is not finite, two-dimensional and numeric.

    Notes
    -----
    A large value means a leak.  A negative one does not mean that there is none: reconstructions may be far off and
    still each be nearest to its own original.

    Examples
    --------
    >>> from datacollab.risk.attacks import explained
    >>> explained([[0.0], [2.0]], [[0.0], [1.0]], [1.0])
    0.5
    """
    X, guesses = _checked_pair(originals, reconstructions)
    known = check_rows(np.atleast_2d(np.asarray(baseline)), "The baseline")
    if known.shape not in (X.shape, (1, X.shape[1])):
        raise AgreementError(
            f"The baseline has shape {known.shape}, but the originals have {X.shape}; one row for all, or one for each "
            "original is wanted."
        )
    left, total = float(((X - guesses) ** 2).sum()), float(((X - known) ** 2).sum())
    return 1 - left / total if total > 0 else math.nan


def class_means(public: ArrayLike, public_target: ArrayLike, target: ArrayLike) -> FloatArray:
    """For each target the mean of the public rows that share it: the guess of an attacker that knows nothing else.

    Parameters
    ----------
    public : array-like of shape (n_public, n_features)
    public_target : array-like of shape (n_public,)
    target : array-like of shape (n_rows,)
        Of the rows under attack.  Floating-point targets are grouped by quantiles of the public ones.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        The mean of all public rows for a class that has none.

    Raises
    ------
    AgreementError
        When there is not one target per row, some are missing, or they are of different kinds.
    RepresentationError
        When the table is not finite, two-dimensional and numeric.

    Examples
    --------
    >>> from datacollab.risk.attacks import class_means
    >>> class_means([[0.0], [2.0], [7.0]], ["a", "a", "b"], ["b", "a", "c"])
    array([[7.],
           [1.],
           [3.]])
    """
    rows = check_rows(public, "The public table")
    known = check_targets(public_target, len(rows), "The public rows' target")
    wanted = check_targets(target, np.size(target), "The target", like=known)
    code = learn_target_code(known)
    members = np.equal.outer(np.arange(code.n_groups), code.groups(known))
    # The mean of all rows comes last, where -1, a class not known, finds it.
    means = np.vstack([(members @ rows) / members.sum(axis=1, keepdims=True), rows.mean(axis=0)])
    return np.asarray(means[code.groups(wanted)])


def _checked_pair(originals: ArrayLike, reconstructions: ArrayLike) -> tuple[FloatArray, FloatArray]:
    X = check_rows(originals, "The table of originals")
    guesses = check_rows(reconstructions, "The table of reconstructions")
    if X.shape != guesses.shape:
        raise AgreementError(
            f"The originals have shape {X.shape} but the reconstructions have {guesses.shape}; give one reconstruction "
            "for each original, in the same order."
        )
    return X, guesses


@dataclass(frozen=True, kw_only=True)
class LabelMatch:
    """What a judge made of reconstructions.

    Attributes
    ----------
    accuracy : float
        Share of the reconstructions that the judge puts into the class of the original row.
    most_common_share : float
        Share of the reconstructions in the judge's most frequent class.  At 1 the judge sees one class only, and
        `accuracy` is that class's share of the targets, whatever the representation contains.
    n_rows : int
        Reconstructions judged.
    """

    accuracy: float
    most_common_share: float
    n_rows: int


def label_match(judge: Any, reconstructions: ArrayLike, targets: ArrayLike) -> LabelMatch:
    """Rate at which reconstructions are classified as their originals would have to be.

    Parameters
    ----------
    judge : classifier
        Fitted on original rows that no attack has seen.
    reconstructions : array-like of shape (n_rows, n_features)
    targets : array-like of shape (n_rows,)
        Classes of the original rows.

    Returns
    -------
    LabelMatch

    Raises
    ------
    RepresentationError
        When the reconstructions are not a finite table.
    AgreementError
        When there is not one target per reconstruction, or the judge does not know all classes among the targets.

    Notes
    -----
    This is what the paper [1]_ calls reconstruction accuracy, and is here to compare with it.  **It is not a measure
    of risk**, for three reasons:

    * Data collaboration hands the targets to the analyst anyway, so to recover them is no leak.
    * It depends on how well the judge copes with blurred rows.  Even the true class's mean row, which has the right
      class by construction, need not be recognised.
    * It says nothing about re-identification.  A reconstruction that is assigned to a wrong class can still be closer
      to its own original than to any other, and a rate at chance level does not exclude that most rows can be
      linked to their originals.

    A rate at or below chance means that the attack was too weak, not that the representation is safe.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from datacollab.risk.attacks import label_match
    >>> judge = KNeighborsClassifier(1).fit([[0.0], [1.0]], ["low", "high"])
    >>> label_match(judge, [[0.1], [0.2], [0.3], [0.9]], ["low", "low", "high", "high"])
    LabelMatch(accuracy=0.75, most_common_share=0.75, n_rows=4)
    """
    check_is_fitted(judge)
    X = check_rows(reconstructions, "The table of reconstructions")
    y = np.asarray(targets)
    if y.shape != (X.shape[0],):
        raise AgreementError(
            f"targets has shape {y.shape}, but there are {X.shape[0]} reconstructions; one target per row is wanted, "
            f"shape ({X.shape[0]},)."
        )
    # Classes of another type would never match, and the attack would look harmless.
    unknown = set(y.tolist()) - set(judge.classes_.tolist())
    if unknown:
        raise AgreementError(
            f"The judge does not know {len(unknown)} of the {len(set(y.tolist()))} classes in targets; fit it on all "
            "classes, with labels of the same type."
        )
    predicted = judge.predict(X)
    _, counts = np.unique(predicted, return_counts=True)
    return LabelMatch(
        accuracy=float(np.mean(predicted == y)),
        most_common_share=float(counts.max() / y.size),
        n_rows=y.size,
    )
