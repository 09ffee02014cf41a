"""Means of groups taken apart into their rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.special import gammaln
from scipy.stats import rankdata

from ..._validation import FloatArray
from ._attack import IntArray, check_pairs, check_rows, check_targets, least_squares

_MOST_VECTORS = 1500
_FEASIBLE = 1e-7
"""Vectors that the programme chooses from, and the largest number that its solver takes for zero."""


def find_subset_by_programme(vectors: FloatArray, size: int, tolerance: float, seconds: float) -> IntArray | None:
    r"""Find vectors, so many of them, that add up to zero; return their positions, ascending, or None.

    .. math:: \min c^\top x \quad \text{subject to} \quad V^\top x \approx 0, \; 1^\top x = m, \; x \in \{0, 1\}^n

    The likeliest vectors come first, and the costs c are their squared lengths.
    """
    some = np.asarray(vectors[:_MOST_VECTORS], dtype=np.float64)
    n = len(some)
    scale = float(np.abs(some).max(initial=0.0))
    if n < size or scale == 0 or seconds <= 0:
        return None
    weights = (some**2).sum(axis=1)
    slack = np.full(some.shape[1], max(_FEASIBLE, tolerance / scale))
    sums = np.vstack([some.T / scale, np.ones(n)])
    found = milp(
        weights / max(float(np.abs(weights).max()), np.finfo(float).tiny),
        integrality=np.ones(n),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(sums, np.append(-slack, size), np.append(slack, size)),
        options={"time_limit": seconds},
    )
    if found.x is None:
        return None
    # The solver's zero is not ours: its answer counts only if the vectors themselves add up.
    chosen = np.flatnonzero(found.x > 0.5)
    if len(chosen) != size or np.linalg.norm(some[chosen].sum(axis=0)) > tolerance:
        return None
    return chosen.astype(np.intp)


_STAGES = {1: (2000,), 2: (100, 300, 1000), 3: (60, 130, 280), 4: (40, 90, 125)}
"""Among how many of the first vectors a subset is sought, one after the other, by the size of the halves."""
_LARGEST_SUBSET = 9
_PIVOTS = 120
"""Vectors of a subset, and that are tried as the one outside of both halves, at most."""
_BLOCK = 2_000_000
_LARGEST_MEETING = 30_000_000
"""Pairs of halves that agree along one direction, at a time and in all: with more, the tolerance tells too little."""


def find_subset(vectors: FloatArray, size: int, tolerance: float, seconds: float = math.inf) -> IntArray | None:
    r"""Find vectors, 1 to 9 of them, that add up to zero; return their positions, ascending, or None.

    The sums of all halves are sorted along one direction, and each meets those that complete it; of an odd number, one
    vector is tried after the other.  Pairs that fit along the direction are compared in all coordinates.
    """
    ends = time.monotonic() + seconds
    if size == 1:
        distances = np.linalg.norm(vectors, axis=1)
        if not len(vectors) or distances.min() > tolerance:
            return None
        return np.array([distances.argmin()])
    half, odd = divmod(size, 2)
    # The direction in which the vectors differ most has the fewest sums that fit by chance.
    direction = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)[2][0]
    for n in dict.fromkeys(min(most, len(vectors)) for most in _STAGES[half]):
        if n < size or time.monotonic() > ends:
            break
        first = vectors[:n]
        table = _Halves(first, direction, half)
        if not odd:
            found = table.meet(np.zeros(vectors.shape[1]), tolerance, -1)
            if found is not None:
                return found
            continue
        # One vector of the subset is enough, and it is rare that none of the first ones is in it.
        for pivot in range(min(n, _PIVOTS)):
            found = table.meet(-first[pivot], tolerance, pivot)
            if found is not None or time.monotonic() > ends:
                return found
    return None


class _Halves:
    """Sums of all subsets of one size, sorted along a direction."""

    def __init__(self, vectors: FloatArray, direction: FloatArray, size: int) -> None:
        along = vectors @ direction
        sums, members = _all_sums(along, size)
        order = np.argsort(sums)
        self._vectors = vectors
        self._direction = direction
        self._sums = sums[order]
        self._members = members[order]

    def meet(self, total: FloatArray, tolerance: float, pivot: int) -> IntArray | None:
        """Find two halves without a vector in common, and without the pivot, that add up to the total."""
        # As in a merge of two sorted lists: each sum's partners lie in one interval of the same list.
        missing = float(total @ self._direction) - self._sums
        starts = np.searchsorted(self._sums, missing - tolerance, side="left")
        counts = np.searchsorted(self._sums, missing + tolerance, side="right") - starts
        left = np.flatnonzero(counts)
        if not len(left) or counts.sum() > _LARGEST_MEETING:
            return None
        best = None
        closest = tolerance
        blocks = np.searchsorted(np.cumsum(counts[left]), np.arange(_BLOCK, counts[left].sum(), _BLOCK))
        for rows in filter(len, np.split(left, blocks)):
            repeated = np.repeat(rows, counts[rows])
            offsets = np.arange(len(repeated)) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
            right = starts[repeated] + offsets
            # Each pair of halves is met from both sides.
            once = repeated < right
            found = self._closest(repeated[once], right[once], total, tolerance, pivot)
            if found is not None and found[0] <= closest:
                closest, best = found
        return best

    def _closest(
        self, left: IntArray, right: IntArray, total: FloatArray, tolerance: float, pivot: int
    ) -> tuple[float, IntArray] | None:
        """Return distance and members of the best of some pairs of halves."""
        members = np.hstack([self._members[left], self._members[right]])
        # One more coordinate sorts most of them out, before all are added up.
        members = members[np.abs(total[0] - self._vectors[members, 0].sum(axis=1)) <= tolerance]
        # A vector in both halves, or beside the pivot, would count twice, and a record is in a mean once.
        twice = (np.diff(np.sort(members, axis=1), axis=1) == 0).any(axis=1)
        members = members[~twice & (members != pivot).all(axis=1)]
        if not len(members):
            return None
        distances = np.linalg.norm(self._vectors[members].sum(axis=1) - total, axis=1)
        best = int(distances.argmin())
        chosen = members[best]
        if pivot >= 0:
            chosen = np.append(chosen, pivot)
        return float(distances[best]), np.sort(chosen).astype(np.intp)


def _all_sums(values: FloatArray, size: int) -> tuple[FloatArray, NDArray[np.int16]]:
    """Return sums of all subsets, shape (n_subsets,), and their members, shape (n_subsets, size)."""
    n = len(values)
    sums = values.copy()
    members = np.arange(n, dtype=np.int16)[:, None]
    for smaller in range(1, size):
        # Subsets come in the order of their largest member, so those below it are the first ones.
        counts = [math.comb(last, smaller) for last in range(n)]
        sums = np.concatenate([sums[:count] + values[last] for last, count in enumerate(counts)])
        lasts = np.repeat(np.arange(n, dtype=np.int16), counts)[:, None]
        members = np.hstack([np.vstack([members[:count] for count in counts]), lasts])
    return sums, members


_FOLDS = 5
_ROUNDING = 1e-9
_LARGEST_ERROR = 0.05
"""Errors up to which an estimate is exact, and close enough for sums to tell anything, in standard deviations."""
_FALSE_SOLUTIONS = 1e-4
"""Subsets that may fit a mean by chance."""
_SECONDS_PER_GROUP = 15.0
_SECONDS_PER_PROGRAMME = 5.0
_FAILURES = 2
"""After so many programmes in a row without a solution no more are tried: there is noise, or members are missing."""


class AffineEstimate:
    r"""Estimate of f as an affine map from anchor rows, with its errors.

    Of all maps :math:`x \mapsto b + x F` that fit the pairs best, it is the one with the smallest F; in units of each
    column's spread if that predicts rows left out better.  ``errors`` are the distances of each row's image from its
    representation, the row left out of the fit, in standard deviations: infinite with fewer than five rows.
    """

    errors: FloatArray
    scale: float

    def __init__(self, anchor: ArrayLike, representation: ArrayLike) -> None:
        A, Z = check_pairs(anchor, representation)
        self.scale = float(np.sqrt(((Z - Z.mean(axis=0)) ** 2).mean())) or 1.0
        self._unit = np.ones(A.shape[1])
        self.errors = self._leave_out_errors(A, Z)
        spread = A.std(axis=0)
        if np.median(self.errors) > _ROUNDING and np.ptp(spread) > 0:
            # Where rows do not determine F, the smallest is another one in other units: f may standardise columns.
            standardised = np.where(spread > 0, spread, 1.0)
            errors = self._leave_out_errors(A / standardised, Z)
            if np.median(errors) < np.median(self.errors):
                self._unit = standardised
                self.errors = errors
        self._map = _affine(A / self._unit, Z)

    def _leave_out_errors(self, A: FloatArray, Z: FloatArray) -> FloatArray:
        errors = np.full(len(A), np.inf)
        if len(A) >= _FOLDS:
            for fold in range(_FOLDS):
                out = np.arange(len(A)) % _FOLDS == fold
                # Errors of rows that were fitted would be zero for as many columns as rows, for any f.
                errors[out] = np.linalg.norm(_affine(A[~out], Z[~out])(A[out]) - Z[out], axis=1) / self.scale
        return errors

    @property
    def is_close(self) -> bool:
        """Return whether it is off by less than a twentieth of a standard deviation for most rows."""
        return bool(np.median(self.errors) <= _LARGEST_ERROR)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Map rows, shape (n_rows, n_intermediate)."""
        return self._map(rows / self._unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Demixing:
    """Positions of the shared rows that are equal, by group, and those of the candidates whose mean each group is.

    There are no groups if f is not known well enough to try, and `members` are None if none were found.
    """

    groups: tuple[IntArray, ...]
    members: tuple[IntArray | None, ...]

    @property
    def n_solved(self) -> int:
        """Count the groups taken apart."""
        return sum(each is not None for each in self.members)

    def scores(self, otherwise: ArrayLike) -> FloatArray:
        """Score membership: a candidate in some group before all others, and the others by another attack's scores."""
        # Ranks lie below one, so that one more puts members found by their mean before all others.
        scores = rankdata(otherwise) / (np.size(otherwise) + 1)
        for each in self.members:
            if each is not None:
                scores[each] += 1
        return np.asarray(scores)


def demix(
    representation: ArrayLike,
    target: ArrayLike,
    candidates: ArrayLike,
    estimate: AffineEstimate,
    *,
    candidate_target: ArrayLike | None = None,
    anchor_representation: ArrayLike | None = None,
    anchor_target: ArrayLike | None = None,
    seconds: float = 300.0,
) -> Demixing:
    r"""Take the means of a microaggregated share apart.

    m equal rows of a share are the mean of m rows, :math:`m z = \sum_{i \in S} f(x_i)`: a sum of m of the candidates'
    images, which is found by meeting in the middle, or by an integer programme.  It counts only if fewer than one in
    ten thousand groups would fit any subset by chance.

    Parameters
    ----------
    representation, target : array-like of shape (n_shared, n_intermediate) and (n_shared,)
        As shared.
    candidates : array-like of shape (n_candidates, n_features)
        Supposed rows of the table.
    estimate : AffineEstimate
        The attacker's knowledge of f.  If it is not close, nothing is tried.
    candidate_target : array-like of shape (n_candidates,), optional
        With these, only candidates of a group's classes are tried, and the mean of their numbers has to be the shared
        one.
    anchor_representation, anchor_target : array-like, optional
        With these, candidates are tried in the order in which they look like the group's class.
    seconds : float, default=300
        Time after which groups are left as they are.
    """
    Z = check_rows(representation, "The representation")
    X = check_rows(candidates, "The table of candidates")
    ends = time.monotonic() + seconds
    if not estimate.is_close:
        return Demixing(groups=(), members=())
    shown = np.asarray(target)
    known = None
    is_numeric = shown.dtype.kind == "f"
    unit = 0.0
    if candidate_target is not None:
        known = check_targets(candidate_target, len(X), "The candidates' target", like=shown)
        # In units of the images, a number's error weighs as much as one of a coordinate.
        if is_numeric and np.std(known) > 0:
            unit = estimate.scale / float(np.std(known))
    # A row like no other is a group of its own.
    group = np.unique(Z, axis=0, return_inverse=True)[1].reshape(-1)
    groups = tuple(np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]))
    images = estimate(X)
    classes = _class_moments(anchor_representation, anchor_target)
    # First as for an exact map, to rounding; then as loosely as the worst anchor row was predicted.
    tolerances = sorted({_ROUNDING, max(_ROUNDING, float(estimate.errors.max()))})
    free = np.ones(len(X), dtype=bool)
    members: list[IntArray | None] = [None] * len(groups)
    for tolerance in tolerances:
        failures = 0
        # Small groups first: they are quick, and what they are made of need not be sought any more.
        for number in sorted(range(len(groups)), key=lambda each: len(groups[each])):
            rows = groups[number]
            size = len(groups[number])
            if members[number] is not None or time.monotonic() >= ends:
                continue
            mean = Z[rows[0]]
            targets = shown[rows]
            may_be = free
            # A single number is the mean of the members' numbers; else each member has one of the group's targets.
            if known is not None and not (is_numeric and len(np.unique(targets)) == 1):
                may_be = free & np.isin(known, targets)
            open_ = np.flatnonzero(may_be)
            rank = rankdata(((images[open_] - mean) ** 2).sum(axis=1), method="ordinal")
            if len(np.unique(targets)) == 1 and targets[0] in classes:
                # The better of two ranks: by distance from the mean, and by likeness to the class.
                centre, precision = classes[targets[0]]
                of_class = images[open_] - centre
                distance = np.einsum("ij,jk,ik->i", of_class, precision, of_class)
                rank = np.minimum(rank, rankdata(0.5 * distance, method="ordinal"))
            order = open_[np.argsort(rank, kind="stable")]
            gaps = images[order] - mean
            if known is not None and unit:
                # The members' numbers have to add up as well.
                gaps = np.hstack([gaps, (known[order] - targets.mean())[:, None] * unit])
            if len(order) < size:
                continue
            # Independent errors of so many images add up like the root of their number.
            allowed = _tolerance(gaps, size, tolerance * estimate.scale * math.sqrt(size))
            found = None
            left = ends - time.monotonic()
            if size <= _LARGEST_SUBSET:
                found = find_subset(gaps, size, allowed, min(left, _SECONDS_PER_GROUP))
            if found is None and size > 1 and failures < _FAILURES:
                left = min(ends - time.monotonic(), _SECONDS_PER_PROGRAMME)
                found = find_subset_by_programme(gaps, size, allowed, left)
                if found is None:
                    failures += 1
                else:
                    failures = 0
            if found is not None:
                # A record is in one group, so the next groups are sought among the others.
                members[number] = np.sort(order[found])
                free[members[number]] = False
    return Demixing(groups=groups, members=tuple(members))


def _affine(A: FloatArray, Z: FloatArray) -> Callable[[FloatArray], FloatArray]:
    centre = A.mean(axis=0)
    image = Z.mean(axis=0)
    coefficients = least_squares(A - centre, Z - image)
    return lambda rows: np.asarray(image + (rows - centre) @ coefficients)


def _tolerance(images: FloatArray, size: int, allowed: float) -> float:
    """Return the tolerance asked for, or less if too many subsets would fit by chance."""
    n, d = images.shape
    spread = np.linalg.svd(images - images.mean(axis=0), compute_uv=False) / math.sqrt(n)
    # Directions without spread are rounding: without a floor the density there would have no bound.
    spread = np.maximum(spread, 1e-12 * spread.max(initial=1e-300))
    subsets = gammaln(n + 1) - gammaln(size + 1) - gammaln(n - size + 1)
    # Sums of so many independent vectors, taken to be normal, at their densest.
    density = -0.5 * d * math.log(2 * math.pi * size) - float(np.log(spread).sum())
    ball = 0.5 * d * math.log(math.pi) - float(gammaln(d / 2 + 1))
    # Subsets times density times the ball's volume are those that fit by chance; solved for the radius.
    return min(allowed, math.exp((math.log(_FALSE_SOLUTIONS) - subsets - density - ball) / d))


def _class_moments(
    representation: ArrayLike | None, target: ArrayLike | None
) -> dict[Any, tuple[FloatArray, FloatArray]]:
    """Return mean and precision of the anchor's representation by class; nothing without classes."""
    if representation is None or target is None or np.asarray(target).dtype.kind == "f":
        return {}
    Z = np.asarray(representation, dtype=np.float64)
    y = np.asarray(target)
    of_all = np.cov(Z, rowvar=False).reshape(Z.shape[1], Z.shape[1])
    classes = {}
    for label in np.unique(y):
        rows = Z[y == label]
        if len(rows) > 1:
            own = np.cov(rows, rowvar=False).reshape(of_all.shape)
            # A tenth of the covariance of all rows: a class of few rows has none of full rank.
            classes[label] = rows.mean(axis=0), np.asarray(np.linalg.pinv(0.9 * own + 0.1 * of_all))
    return classes
