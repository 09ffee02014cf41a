"""Membership inference: telling who took part from who did not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from scipy.stats import rankdata

from ..._validation import FloatArray
from ._intervals import clustered_interval, wilson_interval

__all__ = ["Membership", "membership"]


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
