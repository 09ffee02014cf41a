"""Laying one cloud of rows over another, group by group, when no row is known in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ..._validation import FloatArray
from ._targets import IntArray

__all__ = ["Overlay", "matched_groups", "overlay"]

STARTS = 12
"""Rotations from which the moments are matched."""

PROMISING = 4
"""Best of them after the first steps, which go on."""

REFINED = 2
"""Best of those, from which single rows are matched."""

FIRST_STEPS, MOMENT_STEPS = 5, 40
"""Steps of matching moments: of all starts, and of the promising ones after that."""

ROUGH = (700, 12)
"""Rows that are matched, over all groups, and steps, to choose a start; four times as many are matched to."""

THOROUGH = (1200, 25)
"""The same, in the end."""

Groups = Sequence[tuple[IntArray, IntArray]]
"""For each group the numbers of its rows in one cloud and in the other."""


@dataclass(frozen=True, eq=False)
class Overlay:
    """An affine map from one cloud to another.

    Attributes
    ----------
    rotation : ndarray of shape (d, d)
        Between the clouds in unit size, or whitened.
    origin : ndarray of shape (d,)
    linear : ndarray of shape (d, d)
    destination : ndarray of shape (d,)
    misfit : float
        Mean squared distance of mapped rows from their matches, over that of rows of the other cloud from theirs; about
        1 where the clouds coincide.
    """

    rotation: FloatArray
    origin: FloatArray
    linear: FloatArray
    destination: FloatArray
    misfit: float

    def apply(self, Q: FloatArray) -> FloatArray:
        """Rows mapped, shape (n_rows, d)."""
        mapped: FloatArray = (Q - self.origin) @ self.linear + self.destination
        return mapped


def matched_groups(of_rows: IntArray | None, of_others: IntArray | None, n_rows: int, n_others: int) -> Groups:
    """Rows by group; rows without a group, or whose group the others lack, are compared with all others."""
    everyone = np.arange(n_others)
    if of_rows is None or of_others is None:
        return [(np.arange(n_rows), everyone)]
    common = np.intersect1d(of_rows, of_others)
    groups = [(np.flatnonzero(of_rows == group), np.flatnonzero(of_others == group)) for group in common]
    rest = np.flatnonzero(~np.isin(of_rows, common))
    return [*groups, (rest, everyone)] if len(rest) else groups


def overlay(
    Q: FloatArray,
    S: FloatArray,
    groups: Groups,
    *,
    whiten: bool,
    random: np.random.Generator,
    start: FloatArray | None = None,
) -> Overlay:
    r"""Find the rotation, with reflections, that lays the rows of ``Q`` over those of ``S``.

    From several starts the groups' means and covariances are matched: with those of group g, :math:`m_g, C_g` in one
    cloud and :math:`n_g, D_g` in the other, R is replaced by the orthogonal factor of
    :math:`\sum_g p_g (m_g n_g^\top + C_g R D_g)` until it stays.  The best are refined by matching single rows, each to
    one other of its group at the least total cost, and rotating the matched rows onto each other.

    Parameters
    ----------
    Q, S : ndarray of shape (n_rows, d) and (n_others, d)
        Both with their principal axes for columns, in the same order.
    groups : sequence of (rows, others)
    whiten : bool
        Whether both clouds are first given the identity for their covariance; otherwise they get the same size.
    random : Generator
    start : ndarray of shape (d, d), optional
        A rotation found before: it is refined with more rows.

    Returns
    -------
    Overlay
    """
    shares = np.array([len(rows) for rows, _ in groups]) / sum(len(rows) for rows, _ in groups)
    q_mean, q_covariance = _pooled(Q, [rows for rows, _ in groups], shares)
    s_mean, s_covariance = _pooled(S, [others for _, others in groups], shares)
    to_work, _ = _roots(q_covariance, whiten)
    to_other, from_other = _roots(s_covariance, whiten)
    working, other = (Q - q_mean) @ to_work, (S - s_mean) @ to_other
    most, steps = ROUGH if start is None else THOROUGH
    some = _thinned(groups, most, random)
    starts = _turned_by_moments(working, other, groups, shares, random) if start is None else [start]
    ends = [_refined(working, other, R, some, steps) for R in starts]
    # Costs are compared where distances are those of the other cloud, whitened or not.
    costs = [_cost((working @ R @ from_other)[pairs], (S - s_mean)[partners]) for R, pairs, partners in ends]
    best = int(np.argmin(costs))
    R = ends[best][0]
    standard = _own_cost(other, S, some, random)
    return Overlay(R, q_mean, to_work @ R @ from_other, s_mean, costs[best] / standard)


def _pooled(X: FloatArray, groups: Sequence[IntArray], shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of rows in which each group has its share."""
    means = np.array([X[rows].mean(axis=0) for rows in groups])
    mean = shares @ means
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for rows, share in zip(groups, shares, strict=True):
        centred = X[rows] - mean
        covariance += share * (centred.T @ centred) / len(rows)
    return mean, covariance


def _roots(covariance: FloatArray, whiten: bool) -> tuple[FloatArray, FloatArray]:
    """Matrices that take rows to size one, and back."""
    if not whiten:
        size = float(np.sqrt(np.trace(covariance)))
        size = size if size > 0 else 1.0
        return np.eye(len(covariance)) / size, np.eye(len(covariance)) * size
    eigenvalues, V = scipy.linalg.eigh(covariance)
    # Directions that hardly vary would be blown up, and are noise.
    deviations = np.sqrt(np.maximum(eigenvalues, 1e-6 * max(eigenvalues[-1], np.finfo(np.float64).tiny)))
    deviations = deviations * np.sqrt(len(deviations))
    return (V / deviations) @ V.T, (V * deviations) @ V.T


def _turned_by_moments(
    Q: FloatArray, S: FloatArray, groups: Groups, shares: FloatArray, random: np.random.Generator
) -> list[FloatArray]:
    """The best rotations by the groups' moments."""
    moments = [(*_moments(Q[rows]), *_moments(S[others])) for rows, others in groups]
    first = np.array([share * np.outer(m, n) for share, (m, _, n, _) in zip(shares, moments, strict=True)]).sum(axis=0)
    C = np.array([share * one[1] for share, one in zip(shares, moments, strict=True)])
    D = np.concatenate([one[3] for one in moments])

    third_moments = (S**3).mean(axis=0)

    def second(R: FloatArray) -> FloatArray:
        # The sum over groups, of products of three matrices, as one product.
        product: FloatArray = np.concatenate(list(C @ R), axis=1) @ D
        return product

    def score(R: FloatArray) -> float:
        # Where neither means nor covariances tell the sign of an axis, skewness may.
        third = ((Q @ R) ** 3).mean(axis=0) @ third_moments
        return float((R * (first + second(R) / 2)).sum() + third)

    def turned(R: FloatArray, steps: int) -> FloatArray:
        for _ in range(steps):
            last, R = R, _orthogonal(first + second(R))
            if np.abs(R - last).max() < 1e-4:
                break
        return R

    starts = _starts(first, (Q**3).mean(axis=0) * third_moments, random)
    rotations = sorted((turned(R, FIRST_STEPS) for R in starts), key=score, reverse=True)
    rotations = sorted((turned(R, MOMENT_STEPS) for R in rotations[:PROMISING]), key=score, reverse=True)
    kept: list[FloatArray] = []
    for R in rotations:
        if all(np.abs(R - other).max() > 0.05 for other in kept):
            kept.append(R)
    return kept[:REFINED]


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    centred = X - X.mean(axis=0)
    return X.mean(axis=0), centred.T @ centred / len(X)


def _starts(first: FloatArray, skewness: FloatArray, random: np.random.Generator) -> list[FloatArray]:
    """Principal axis on principal axis, with signs that the groups' means or the skewness suggest, then other ones."""
    d = len(first)
    signs = np.where(np.diag(first) < 0, -1.0, 1.0)
    starts = [np.diag(signs), _orthogonal(first + 1e-9 * np.diag(signs)), np.diag(np.where(skewness < 0, -1.0, 1.0))]
    while len(starts) < STARTS:
        if len(starts) % 2:
            starts.append(np.diag(np.where(random.random(d) < 0.5, -1.0, 1.0)))
        else:
            starts.append(_orthogonal(random.normal(size=(d, d))))
    return starts


def _orthogonal(M: FloatArray) -> FloatArray:
    """The orthogonal matrix R with the largest tr(R'M)."""
    U, _, Vt = scipy.linalg.svd(M)
    R: FloatArray = U @ Vt
    return R


def _thinned(groups: Groups, most: int, random: np.random.Generator) -> Groups:
    """No more rows of a group than its share of `most`."""
    most = max(20, most // len(groups))
    return [
        (
            random.choice(rows, min(len(rows), most), replace=False),
            random.choice(others, min(len(others), 4 * most), replace=False),
        )
        for rows, others in groups
    ]


def _refined(
    Q: FloatArray, S: FloatArray, R: FloatArray, groups: Groups, steps: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Match rows and turn in turn until no match changes; the rotation, and the numbers of matched rows."""
    last: IntArray = np.empty(0, dtype=np.intp)
    for _ in range(steps):
        matches = [_assigned(Q[rows] @ R, S[others]) for rows, others in groups]
        pairs = np.concatenate([rows[i] for (rows, _), (i, _) in zip(groups, matches, strict=True)])
        partners = np.concatenate([others[j] for (_, others), (_, j) in zip(groups, matches, strict=True)])
        R = _orthogonal(Q[pairs].T @ S[partners])
        if np.array_equal(partners, last):
            break
        last = partners
    return R, pairs, partners


def _cost(rows: FloatArray, others: FloatArray) -> float:
    return float(((rows - others) ** 2).sum() / len(rows))


def _assigned(rows: FloatArray, others: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs of rows, each in one pair at most, with the least total squared distance."""
    i, j = linear_sum_assignment(cdist(rows, others, "sqeuclidean"))
    return i, j


def _own_cost(matched: FloatArray, S: FloatArray, groups: Groups, random: np.random.Generator) -> float:
    """Mean squared distance of as many rows of ``S`` from others of their group, to which they are matched."""
    cost, n_pairs = 0.0, 0
    for rows, others in groups:
        shuffled = random.permutation(others)
        some, rest = np.split(shuffled, [min(len(rows), len(others) // 2)])
        i, j = _assigned(matched[some], matched[rest])
        cost += float(((S[some[i]] - S[rest[j]]) ** 2).sum())
        n_pairs += len(i)
    return cost / n_pairs if cost > 0 else 1.0
