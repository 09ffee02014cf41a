"""Reconstruction without leaked rows: the representation is laid over public rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ..._validation import FloatArray
from ...errors import RepresentationError
from ._attack import IntArray, Reconstructing, check_columns, check_rows, check_targets, column_scale, own_generator

STARTS = 12
FIRST_STEPS = 5
PROMISING = 4
MOMENT_STEPS = 40
REFINED = 2
"""Rotations from which moments are matched, and steps; the best of them that go on, and steps; and that are refined."""
Effort = tuple[int, int]
ROUGH = (300, 12)
MIDDLE = (500, 25)
THOROUGH = (1200, 8)
"""Rows that are matched over all groups, to four times as many or more, and steps: to choose start and whitening, to
choose scaling, and in the end."""
STILL = 2e-3
"""Change of a rotation's entries below which its steps end."""
MAX_DIRECTIONS = 100
"""Directions, at most, that are computed."""
Groups = Sequence[tuple[IntArray, IntArray]]
"""For each group the numbers of its rows in one cloud and in the other."""


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components: directions of shape (n_columns, n_directions), orthonormal, by descending variance."""

    mean: FloatArray
    scale: FloatArray
    directions: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Return coordinates of rows, shape (n_rows, n_directions)."""
        return np.asarray(((X - self.mean) / self.scale) @ self.directions)

    def rows(self, scores: FloatArray) -> FloatArray:
        """Return rows with these coordinates and nothing else, shape (n_rows, n_columns)."""
        return np.asarray(self.mean + (scores @ self.directions.T) * self.scale)


def principal_components(X: FloatArray, most: int, standardize: bool) -> Components:
    """Compute the leading components of rows, `most` at most, and none that does not vary but one."""
    most = min(most, MAX_DIRECTIONS, *X.shape)
    factors = column_scale(X, standardize)
    scale = np.divide(1.0, factors, out=np.ones_like(factors), where=factors > 0)
    centred = (X - X.mean(axis=0)) / scale
    # The smaller of the two products has the same eigenvalues.
    wide = X.shape[1] > X.shape[0]
    gram = centred @ centred.T if wide else centred.T @ centred
    eigenvalues, V = scipy.linalg.eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    eigenvalues = eigenvalues[::-1]
    V = V[:, ::-1]
    kept = eigenvalues > len(gram) * np.finfo(np.float64).eps * max(eigenvalues[0], np.finfo(np.float64).tiny)
    # Rows that are all equal keep one direction, so that nothing below need deal with none.
    kept[0] = True
    V = V[:, kept]
    if wide:
        V, _ = scipy.linalg.qr(centred.T @ V, mode="economic")
    return Components(X.mean(axis=0), scale, V)


@dataclass(frozen=True, eq=False)
class Overlay:
    """Affine map from one cloud to another, with the rotation between the clouds in unit size, or whitened."""

    rotation: FloatArray
    origin: FloatArray
    linear: FloatArray
    destination: FloatArray
    misfit: float

    def apply(self, Q: FloatArray) -> FloatArray:
        return np.asarray((Q - self.origin) @ self.linear + self.destination)


def match_groups(of_rows: IntArray | None, of_others: IntArray | None, n_rows: int, n_others: int) -> Groups:
    """Pair rows by group; rows without a group, or whose group the others lack, are compared with all others."""
    everyone = np.arange(n_others)
    if of_rows is None or of_others is None:
        return [(np.arange(n_rows), everyone)]
    common = np.intersect1d(of_rows, of_others)
    groups = [(np.flatnonzero(of_rows == group), np.flatnonzero(of_others == group)) for group in common]
    rest = np.flatnonzero(~np.isin(of_rows, common))
    if len(rest):
        groups.append((rest, everyone))
    return groups


def overlay(
    Q: FloatArray,
    S: FloatArray,
    groups: Groups,
    *,
    whiten: bool,
    random: np.random.Generator,
    effort: Effort = ROUGH,
    start: FloatArray | None = None,
) -> Overlay:
    r"""Find the rotation that lays the rows of ``Q`` over those of ``S``, or refine one with more rows (``start``).

    With the means and covariances :math:`m_g, C_g` and :math:`n_g, D_g` of group g, R is replaced by the orthogonal
    factor of :math:`\sum_g p_g (m_g n_g^\top + C_g R D_g)` until it stays, from several starts.
    """
    shares = np.array([len(rows) for rows, _ in groups]) / sum(len(rows) for rows, _ in groups)
    q_mean, q_covariance = _pool_moments(Q, [rows for rows, _ in groups], shares)
    s_mean, s_covariance = _pool_moments(S, [others for _, others in groups], shares)
    to_work, _ = _roots(q_covariance, whiten)
    to_other, from_other = _roots(s_covariance, whiten)
    working = (Q - q_mean) @ to_work
    other = (S - s_mean) @ to_other
    most, steps = effort
    # Classes' means and covariances lead near the end; a cloud without classes has a longer way.
    if len(groups) > 1:
        steps = steps // 2
    # Rows are drawn before starts are, and for `_own_cost` after both: the order of draws is part of a seed's meaning.
    some = _thin(groups, most, random)
    starts = [start] if start is not None else _turn_by_moments(working, other, groups, shares, random)
    ends = [_refine(working, other, R, some, steps) for R in starts]
    # Costs are compared where distances are those of the other cloud, whitened or not.
    gaps = [(working @ R @ from_other)[pairs] - (S - s_mean)[partners] for R, pairs, partners in ends]
    costs = [float((gap**2).sum() / len(gap)) for gap in gaps]
    best = int(np.argmin(costs))
    R = ends[best][0]
    return Overlay(R, q_mean, to_work @ R @ from_other, s_mean, costs[best] / _own_cost(other, S, some, random))


def _pool_moments(X: FloatArray, groups: Sequence[IntArray], shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute mean and covariance of rows in which each group has its share."""
    means = np.array([X[rows].mean(axis=0) for rows in groups])
    mean = shares @ means
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for rows, share in zip(groups, shares, strict=True):
        centred = X[rows] - mean
        covariance += share * (centred.T @ centred) / len(rows)
    return mean, covariance


def _roots(covariance: FloatArray, whiten: bool) -> tuple[FloatArray, FloatArray]:
    """Return matrices that take rows to size one, and back."""
    if not whiten:
        size = float(np.sqrt(np.trace(covariance))) or 1.0
        return np.eye(len(covariance)) / size, np.eye(len(covariance)) * size
    eigenvalues, V = scipy.linalg.eigh(covariance)
    # Directions that hardly vary would be blown up, and are noise.
    deviations = np.sqrt(np.maximum(eigenvalues, 1e-6 * max(eigenvalues[-1], np.finfo(np.float64).tiny)))
    deviations = deviations * np.sqrt(len(deviations))
    return (V / deviations) @ V.T, (V * deviations) @ V.T


def _turn_by_moments(
    Q: FloatArray, S: FloatArray, groups: Groups, shares: FloatArray, random: np.random.Generator
) -> list[FloatArray]:
    """Find the best rotations by the groups' moments."""
    moments = [(*_moments(Q[rows]), *_moments(S[others])) for rows, others in groups]
    first = np.array([share * np.outer(m, n) for share, (m, _, n, _) in zip(shares, moments, strict=True)]).sum(axis=0)
    C = np.array([share * one[1] for share, one in zip(shares, moments, strict=True)])
    D = np.concatenate([one[3] for one in moments])

    third_moments = _third_moments(S)

    def second(R: FloatArray) -> FloatArray:
        # The sum over groups, of products of three matrices, as one product.
        return np.asarray(np.concatenate(list(C @ R), axis=1) @ D)

    def score(R: FloatArray) -> float:
        # Where neither means nor covariances tell the sign of an axis, skewness may.
        third = _third_moments(Q @ R) @ third_moments
        return float((R * (first + second(R) / 2)).sum() + third)

    def turn_for(R: FloatArray, steps: int) -> FloatArray:
        for _ in range(steps):
            last = R
            R = _orthogonal(first + second(R))
            # Far below what tells rotations apart: more steps would only refine this one.
            if np.abs(R - last).max() < 1e-4:
                break
        return R

    starts = _starts(first, _third_moments(Q) * third_moments, random)
    rotations = sorted((turn_for(R, FIRST_STEPS) for R in starts), key=score, reverse=True)
    rotations = sorted((turn_for(R, MOMENT_STEPS) for R in rotations[:PROMISING]), key=score, reverse=True)
    kept: list[FloatArray] = []
    for R in rotations:
        # Starts that end closer than this, some three degrees, would be refined to the same rotation.
        if all(np.abs(R - other).max() > 0.05 for other in kept):
            kept.append(R)
    return kept[:REFINED]


def _moments(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    centred = X - X.mean(axis=0)
    return X.mean(axis=0), centred.T @ centred / len(X)


def _third_moments(X: FloatArray) -> FloatArray:
    # A power of three takes ten times as long as two products.
    return np.asarray((X * X * X).mean(axis=0))


def _starts(first: FloatArray, skewness: FloatArray, random: np.random.Generator) -> list[FloatArray]:
    """Lay principal axis on principal axis, with signs by means or skewness, then try other rotations."""

    def signs(negative: NDArray[np.bool_]) -> FloatArray:
        return np.diag(np.where(negative, -1.0, 1.0))

    by_means = signs(np.diag(first) < 0)
    d = len(first)
    # The small term decides where the groups' means leave directions open.
    starts = [by_means, _orthogonal(first + 1e-9 * by_means), signs(skewness < 0)]
    for number in range(len(starts), STARTS):
        # Other signs on the same axes are likelier than any rotation; both are tried in turn.
        if number % 2:
            starts.append(signs(random.random(d) < 0.5))
        else:
            starts.append(_orthogonal(random.normal(size=(d, d))))
    return starts


def _orthogonal(M: FloatArray) -> FloatArray:
    """Return the orthogonal matrix R with the largest tr(R'M)."""
    # Schönemann's solution of the orthogonal Procrustes problem; reflections are allowed.
    U, _, Vt = scipy.linalg.svd(M)
    return np.asarray(U @ Vt)


def _thin(groups: Groups, most: int, random: np.random.Generator) -> Groups:
    """Draw no more rows of a group than its share of `most`, and of the others as many as make equally many pairs."""
    # A matching of fewer than twenty rows would tell little of a group.
    most = max(20, most // len(groups))

    def some(rows: IntArray, n: int) -> IntArray:
        return random.choice(rows, min(len(rows), n), replace=False)

    return [(some(rows, most), some(others, 4 * most**2 // min(len(rows), most))) for rows, others in groups]


def _refine(
    Q: FloatArray, S: FloatArray, R: FloatArray, groups: Groups, steps: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Match rows and turn in turn until the rotation stays; return it, and the numbers of matched rows."""
    for _ in range(steps):
        matches = [_assign(Q[rows] @ R, S[others]) for rows, others in groups]
        pairs = np.concatenate([rows[i] for (rows, _), (i, _) in zip(groups, matches, strict=True)])
        partners = np.concatenate([others[j] for (_, others), (_, j) in zip(groups, matches, strict=True)])
        last = R
        R = _orthogonal(Q[pairs].T @ S[partners])
        if np.abs(R - last).max() < STILL:
            break
    return R, pairs, partners


def _assign(rows: FloatArray, others: FloatArray) -> tuple[IntArray, IntArray]:
    """Pair rows, each in one pair at most, with the least total squared distance."""
    i, j = linear_sum_assignment(cdist(rows, others, "sqeuclidean"))
    return i, j


def _own_cost(matched: FloatArray, S: FloatArray, groups: Groups, random: np.random.Generator) -> float:
    """Return the mean squared distance of as many rows of ``S`` from their matches among others of their group."""
    cost = 0.0
    n_pairs = 0
    for rows, others in groups:
        # Two parts of one cloud, of the sizes that are matched above: a misfit of one is as close as clouds come.
        some, rest = np.split(random.permutation(others), [min(len(rows), len(others) // 2)])
        i, j = _assign(matched[some], matched[rest])
        cost += float(((S[some[i]] - S[rest[j]]) ** 2).sum())
        n_pairs += len(i)
    if cost == 0:
        return 1.0
    return cost / n_pairs


class ProcrustesAttack(Reconstructing):
    """Attack of an analyst to whom no original has leaked, by laying two clouds of points over each other.

    The principal components of public rows are close, up to a rotation, to the representation that a linear obfuscator
    gives of private rows.  The rotation is found class by class, from the classes' means and covariances, and then from
    single rows that are matched one to one, turn by turn, as in the iterative closest point algorithm [1]_.  The public
    components, inverted, turn a representation into an original.  Without targets all rows are one group; numeric
    targets make groups between quantiles.  Columns are standardised or not, and clouds whitened or not, whichever has
    the least misfit.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    misfit_ : float
        Mean squared distance of the private rows from their matches, over that of public rows from other public ones.
        About 1 if the clouds coincide.
    standardize_, whiten_ : bool

    References
    ----------
    .. [1] Besl and McKay (1992). A method for registration of 3-D shapes. IEEE Transactions on Pattern Analysis and
       Machine Intelligence 14(2), 239-256.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def fit(
        self,
        representation: ArrayLike,
        target: ArrayLike | None = None,
        *,
        public: ArrayLike,
        public_target: ArrayLike | None = None,
        anchor_representation: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Find out how the representation lies to the public rows.

        The representation, shape (n_rows, n_intermediate), and its targets, if any, are as one party shares them.
        Public rows, shape (n_public, n_features), are of the same kind as the private ones; they need targets if the
        representation has some.  Representations of the anchor are further rows of the cloud, compared with all public
        ones if they come without targets.

        Raise AgreementError or RepresentationError if tables or targets do not fit each other, or are not numeric,
        finite and of two rows at least.
        """
        self._validate_params()
        Z = check_rows(representation, "The representation")
        P = check_rows(public, "The public table")
        if min(len(Z), len(P)) < 2:
            raise RepresentationError(
                f"ProcrustesAttack needs at least 2 private and 2 public rows; got {len(Z)} and {len(P)}."
            )
        y, y_public = self._learn_targets(target, len(Z), P, public_target, "private rows")
        cloud = Z
        cloud_groups = self._groups(y)
        public_groups = self._groups(y_public)
        if anchor_representation is not None:
            anchors = check_rows(anchor_representation, "The anchor representation")
            check_columns(anchors, Z, "The anchor representation has", "the representation has")
            cloud = np.vstack([Z, anchors])
            if self._code is not None and cloud_groups is not None:
                # -1 stands for an anchor row without a target.
                of_anchors = np.full(len(anchors), -1)
                if anchor_target is not None:
                    known = check_targets(anchor_target, len(anchors), "The anchor's target", like=self._target_like)
                    of_anchors = self._code.groups(known)
                cloud_groups = np.append(cloud_groups, of_anchors)
        groups = match_groups(cloud_groups, public_groups, len(cloud), len(P))
        seed = own_generator(self.random_state).randint(2**31)

        def refine_overlay(
            clouds: tuple[FloatArray, FloatArray], whiten: bool, effort: Effort, found: Overlay
        ) -> Overlay:
            # The same seed each time: settings differ by themselves, not by the rows that were drawn.
            random = np.random.default_rng(seed)
            own, others = clouds
            return overlay(own, others, groups, whiten=whiten, random=random, effort=effort, start=found.rotation)

        tried = []
        # The attacker does not know whether f standardises columns, nor how it scales components: all are tried.
        for standardize in (False, True):
            others = principal_components(P, Z.shape[1], standardize)
            own = principal_components(cloud, others.directions.shape[1], False)
            # Both clouds need as many columns, and the shared rows may span fewer.
            others = replace(others, directions=others.directions[:, : own.directions.shape[1]])
            clouds = own.scores(cloud), others.scores(P)
            rough = [
                (overlay(*clouds, groups, whiten=whiten, random=np.random.default_rng(seed)), whiten)
                for whiten in (False, True)
            ]
            found, whiten = min(rough, key=lambda one: one[0].misfit)
            tried.append((refine_overlay(clouds, whiten, MIDDLE, found), clouds, whiten, standardize, own, others))
        best = min(tried, key=lambda one: one[0].misfit)
        found, clouds, self.whiten_, self.standardize_, self._own, self._public = best
        self._overlay = refine_overlay(clouds, self.whiten_, THOROUGH, found)
        self.misfit_ = self._overlay.misfit
        # What the directions leave out of the mean public row of each group.
        self._rest: dict[int, FloatArray] = {}
        if public_groups is not None:
            for group in np.unique(public_groups):
                mean = P[public_groups == group].mean(axis=0)[np.newaxis]
                self._rest[int(group)] = (mean - self._public.rows(self._public.scores(mean)))[0]
        self.n_features_in_ = Z.shape[1]
        self.n_features_out_ = P.shape[1]
        return self

    def reconstruct(self, representation: ArrayLike, *, target: ArrayLike | None = None) -> FloatArray:
        """Guess the original rows, as `ReconstructionAttack.reconstruct` does, with its parameters and errors."""
        Z, y = self._check_shared(representation, target)
        rows = self._public.rows(self._overlay.apply(self._own.scores(Z)))
        if y is not None and self._code is not None:
            # The mean of the group's public rows fills in what the directions leave open.
            rows += np.array([self._rest.get(int(group), np.zeros(rows.shape[1])) for group in self._code.groups(y)])
        return rows
