"""Whether a record is in the table: scores, and their curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from scipy.stats import rankdata
from sklearn.utils import gen_batches

from ..._validation import FloatArray
from ...errors import AgreementError, RepresentationError
from ...linalg import column_space, leading_left_singular
from ._attack import check_rows
from ._measures import clustered_interval, wilson_interval

__all__ = [
    "Membership",
    "membership",
    "reconstruction_distance_scores",
    "representation_distance_scores",
    "subspace_scores",
]

_BLOCK_ENTRIES = 2**22
"""Distances in memory at a time (32 MiB)."""


def representation_distance_scores(
    rows: ArrayLike, representation: ArrayLike, emulator: Callable[[FloatArray], ArrayLike] | Any
) -> FloatArray:
    r"""Score rows by how close f, as the attacker knows it, maps them to a shared row.

    .. math:: -\min_i |\hat f(x) - z_i|

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Of whom the attacker wants to know whether they took part.
    representation : array-like of shape (n_samples, n_intermediate)
        As shared.
    emulator : callable or regressor
        The attacker's estimate of f: maps (n_rows, n_features) to (n_rows, n_intermediate), by itself or by its
        ``predict``.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    RepresentationError
        When a table is not finite, two-dimensional and numeric.
    AgreementError
        When the emulator returns other columns than the representation has.

    Examples
    --------
    >>> from datacollab.risk.attacks import representation_distance_scores
    >>> representation_distance_scores([[1.5], [4.0]], [[2.0], [3.5]], lambda rows: 2 * rows)
    array([-0.5, -4.5])
    """
    X = check_rows(rows, "The table of rows")
    Z = check_rows(representation, "The representation")
    mapped = check_rows(getattr(emulator, "predict", emulator)(X), "What the emulator returned")
    if mapped.shape != (len(X), Z.shape[1]):
        raise AgreementError(
            f"The emulator returned shape {mapped.shape}, but {(len(X), Z.shape[1])} is wanted; fit it to the same "
            "representation."
        )
    return -_smallest_distances(mapped, Z, 1)[:, 0]


def reconstruction_distance_scores(
    rows: ArrayLike, reconstructions: ArrayLike, public: ArrayLike, *, n_neighbors: int = 5
) -> FloatArray:
    r"""Score rows by how close a reconstruction is, in units of how close public rows are.

    .. math:: -\min_i |x - \hat x_i| / d(x)

    with d(x) the mean distance of x from its nearest public rows, for a row like many others has a close reconstruction
    anyway.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        None of them among the public rows.
    reconstructions : array-like of shape (n_samples, n_features)
    public : array-like of shape (n_public, n_features)
    n_neighbors : int, default=5
        Public rows that d(x) is taken over.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    RepresentationError
        When a table is not finite, two-dimensional and numeric, or there are too few public rows.
    AgreementError
        When the columns differ.

    Examples
    --------
    >>> from datacollab.risk.attacks import reconstruction_distance_scores
    >>> reconstruction_distance_scores([[1.0]], [[1.5], [9.0]], [[0.0], [3.0], [7.0]], n_neighbors=2)
    array([-0.33333333])
    """
    X = check_rows(rows, "The table of rows")
    guesses, P = check_rows(reconstructions, "The table of reconstructions"), check_rows(public, "The public table")
    _check_columns(X, guesses, "the reconstructions")
    _check_columns(X, P, "the public table")
    if not 1 <= n_neighbors <= len(P):
        raise RepresentationError(
            f"n_neighbors={n_neighbors} public rows are wanted near each row, and there are {len(P)}; give more public "
            "rows."
        )
    usual = _smallest_distances(X, P, n_neighbors).mean(axis=1)
    nearest = _smallest_distances(X, guesses, 1)[:, 0]
    # Repeated in the public table, a row was close by to begin with, and scores lowest.
    return np.asarray(-nearest / np.maximum(usual, np.finfo(np.float64).tiny ** 0.5))


def subspace_scores(
    rows: ArrayLike, anchor: ArrayLike, anchor_representation: ArrayLike, public: ArrayLike
) -> FloatArray:
    r"""Score rows by how much of them the subspace of a linear f contains, beyond what is usual.

    f fitted on few rows keeps more of those than of others.  With F the linear estimate of f from leaked anchors,
    :math:`(A^c)^\dagger \tilde A^c`, P the orthogonal projection onto its range, and :math:`P_0` that onto as many
    principal axes of public rows with mean :math:`\mu`:

    .. math:: (|P (x - \mu)|^2 - |P_0 (x - \mu)|^2) / |x - \mu|^2

    The shared rows are not used, so no defence of theirs lowers this.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Of whom the attacker wants to know whether f was fitted on them.
    anchor : array-like of shape (n_leaked, n_features)
        Leaked anchor rows.
    anchor_representation : array-like of shape (n_leaked, n_intermediate)
        What f made of them.
    public : array-like of shape (n_public, n_features)
        Rows of the same kind.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 for a row that is the public mean.

    Raises
    ------
    RepresentationError
        When a table is not finite, two-dimensional and numeric, or does not vary.
    AgreementError
        When rows or columns do not fit together.

    Notes
    -----
    Columns in large units decide: give tables in the units that f sees, such as standardised columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from datacollab.risk.attacks import subspace_scores
    >>> members, others, public, anchor = np.random.default_rng(0).normal(size=(4, 50, 20))
    >>> f = PCA(5).fit(members[:15])
    >>> scores = [subspace_scores(X, anchor, f.transform(anchor), public) for X in (members[:15], others)]
    >>> bool(scores[0].mean() > scores[1].mean() + 0.2)
    True
    """
    X, A = check_rows(rows, "The table of rows"), check_rows(anchor, "The leaked anchor")
    Z = check_rows(anchor_representation, "The leaked anchor's representation")
    P = check_rows(public, "The public table")
    _check_columns(X, A, "the leaked anchor")
    _check_columns(X, P, "the public table")
    if len(A) != len(Z):
        raise AgreementError(f"The leaked anchor has {len(A)} rows but its representation has {len(Z)}; give pairs.")
    A, Z, mean = A - A.mean(axis=0), Z - Z.mean(axis=0), P.mean(axis=0)
    P = P - mean
    for table, what in ((A, "leaked anchor"), (Z, "leaked anchor's representation"), (P, "public table")):
        if not table.any():
            raise RepresentationError(f"All rows of the {what} are equal, so nothing can be learnt from it.")
    U, singular_values, V = leading_left_singular(A)
    kept = column_space((V / singular_values) @ (U.T @ Z)).basis
    _, _, axes = leading_left_singular(P)
    X = X - mean
    lengths = (X**2).sum(axis=1)
    excess = ((X @ kept) ** 2).sum(axis=1) - ((X @ axes[:, : kept.shape[1]]) ** 2).sum(axis=1)
    rounding = 1e-24 * (float((P**2).sum(axis=1).mean()) + float(mean @ mean))
    return np.asarray(np.divide(excess, lengths, out=np.zeros(len(X)), where=lengths > rounding))


def _check_columns(X: FloatArray, other: FloatArray, what: str) -> None:
    if X.shape[1] != other.shape[1]:
        raise AgreementError(f"The table of rows has {X.shape[1]} columns but {what} {other.shape[1]}; give the same.")


def _smallest_distances(X: FloatArray, others: FloatArray, k: int) -> FloatArray:
    """Distances of each row from its k nearest others, in no order, shape (n_rows, k)."""
    centre = others.mean(axis=0)
    near = np.empty((len(X), k), dtype=np.intp)
    centred = others - centre
    squares = (centred**2).sum(axis=1)
    for block in gen_batches(len(X), max(1, _BLOCK_ENTRIES // len(others))):
        costs = squares - 2 * ((X[block] - centre) @ centred.T)
        near[block] = np.argpartition(costs, k - 1, axis=1)[:, :k]
    # The product cancels near zero, which is where it matters most here.
    return np.stack([np.linalg.norm(X - others[column], axis=1) for column in near.T], axis=1)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """How well a score tells members from others.

    Attributes
    ----------
    auc : float
        Probability that a member scores above another row, ties counting half: 0.5 by chance.
    low, high : float
        95 % interval of `auc`.
    tpr : float
        Share of the members found while at most `fpr` of the others are taken for members: `fpr` by chance.
    tpr_low, tpr_high : float
        95 % interval of `tpr`, the threshold taken as given.
    fpr : float
    n_members, n_others : int
    """

    auc: float
    low: float
    high: float
    tpr: float
    tpr_low: float
    tpr_high: float
    fpr: float
    n_members: int
    n_others: int


def membership(
    member_scores: ArrayLike,
    other_scores: ArrayLike,
    fpr: float = 0.01,
    *,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Membership:
    """Measure how well a score, high for supposed members, tells members from others.

    Parameters
    ----------
    member_scores : array-like of shape (n_members,)
    other_scores : array-like of shape (n_others,)
        Of rows of the same kind that took no part.
    fpr : float, default=0.01
        Share of the others that may be taken for members.
    groups : array-like of shape (n_members,), optional
        Numbers of groups of members whose scores rise and fall together, such as rows that share a published mean.
        Intervals then count groups, not members.
    confidence : float, default=0.95

    Returns
    -------
    Membership

    Raises
    ------
    ValueError
        When scores are not one-dimensional and finite, there is none, or a parameter is out of range.

    Notes
    -----
    The interval has DeLong's variance [1]_, with sums over groups in place of members where there are groups, and is
    that of Student's t for the log odds of the area, with as many degrees of freedom as there are groups of members, or
    others, less one.  So it covers the truth about as often as it says with thirty members in six groups, but for areas
    above .95, where it is still too narrow.  It has no width where the score tells all members from all others; the
    probability that it fails is then bounded as by Wilson's interval for the smaller of the two numbers.  With a single
    group or row on either side it is [0, 1].

    The average hides who is found with certainty, so look at `tpr` as well; with fewer than ``1 / fpr`` others, none
    of them may be taken for a member.

    References
    ----------
    .. [1] DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver
       operating characteristic curves: a nonparametric approach. Biometrics 44(3), 837-845.

    Examples
    --------
    >>> from datacollab.risk.attacks import membership
    >>> result = membership([0.9, 0.8, 0.3], [0.4, 0.3, 0.2, 0.1])
    >>> result.auc, result.tpr
    (0.875, 0.6666666666666666)
    """
    members, others = _checked(member_scores, "member_scores"), _checked(other_scores, "other_scores")
    if not 0 <= fpr <= 1 or not 0 < confidence < 1:
        raise ValueError(f"fpr={fpr!r} must lie in [0, 1] and confidence={confidence!r} between 0 and 1.")
    group = _numbered(groups, len(members))
    auc, low, high = _auc_interval(members, others, group, confidence)
    # Rounded, lest 0.07 * 100 allow six; above this score there are no more others than allowed.
    allowed = math.floor(round(fpr * len(others), 9))
    threshold = np.sort(others)[::-1][allowed] if allowed < len(others) else -np.inf
    found = members > threshold
    tpr_low, tpr_high = clustered_interval(found, group, confidence)
    return Membership(
        auc=auc,
        low=low,
        high=high,
        tpr=float(np.mean(found)),
        tpr_low=tpr_low,
        tpr_high=tpr_high,
        fpr=fpr,
        n_members=len(members),
        n_others=len(others),
    )


def _numbered(groups: ArrayLike | None, n_members: int) -> NDArray[np.intp]:
    if groups is None:
        return np.arange(n_members)
    given = np.asarray(groups)
    if given.shape != (n_members,):
        raise ValueError(f"groups must have one entry per member, shape ({n_members},); got {given.shape}.")
    return np.unique(given, return_inverse=True)[1].astype(np.intp)


def _auc_interval(
    members: FloatArray, others: FloatArray, group: NDArray[np.intp], confidence: float
) -> tuple[float, float, float]:
    """AUC with an interval by its log odds, from ranks in place of all pairs."""
    m, n = len(members), len(others)
    ranks = rankdata(np.concatenate([members, others]))
    # For each member the share of the others below it; for each other row the share of the members above it.
    above = (ranks[:m] - rankdata(members)) / n
    below = 1 - (ranks[m:] - rankdata(others)) / m
    auc = float(above.mean())
    sums = np.bincount(group, above - auc)
    smaller = min(len(sums), n)
    if smaller < 2:
        return auc, 0.0, 1.0
    variance = float(len(sums) / (len(sums) - 1) * (sums**2).sum() / m**2 + below.var(ddof=1) / n)
    if auc in (0.0, 1.0):
        return auc, *wilson_interval(round(auc) * smaller, smaller, confidence)
    half_width = stats.t.ppf((1 + confidence) / 2, smaller - 1) * math.sqrt(variance) / (auc * (1 - auc))
    low, high = special.expit(special.logit(auc) + np.array([-half_width, half_width]))
    return auc, min(auc, float(low)), max(auc, float(high))


def _checked(scores: ArrayLike, name: str) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be one-dimensional, finite and not empty; got shape {values.shape} with "
            f"{int((~np.isfinite(values)).sum())} entries that are not finite."
        )
    return values
