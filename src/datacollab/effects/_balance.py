"""Whether treated rows and others are alike in the raw columns, from the parties' sums."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, EffectWarning
from ..share import BALANCE_STEP, BalanceSums
from ._plots import love_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Balance", "pooled_balance"]

_WELL_KEPT = 0.95
_FINE = 5.0
"""Of a variance in its rounding: then a standard deviation is off by a tenth at most."""
_APART = 10.0
"""Standard deviations beyond which arms whose values all but agree have each their own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Balance:
    """Standardised differences between the arms, over all parties' rows.

    Attributes
    ----------
    columns : tuple of str
    before, after : ndarray of shape (n_columns,)
        Mean of the treated less that of the others, in standard deviations; without weights, and with.
    kept : ndarray of shape (n_columns,)
        Part of each column that reached the analyst, at the party that kept least of it; from 0 to 1.
    target : {"ATE", "ATT"}
    n_untreated, n_treated : int
    effective_untreated, effective_treated : float
        Rows of equal weight that would say as much as the weighted ones.
    n_truncated : int
        Rows whose weight parties brought in, for it would have singled them out; ``after`` is the worse for it.
    parties : tuple of str or int
        Whose rows these are.
    lost : tuple of str
        Columns that vary, and of which less than 95 % reached the analyst.
    coarse : tuple of str
        Columns so narrow beside the anchor that rounded sums tell their differences by the tenth at best.
    of_means : bool
        Whether the propensity was fitted on means of rows, so that ``after`` says little.
    """

    columns: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    kept: FloatArray
    target: str
    n_untreated: int
    n_treated: int
    effective_untreated: float
    effective_treated: float
    n_truncated: int
    parties: tuple[PartyName, ...]
    lost: tuple[str, ...] = ()
    coarse: tuple[str, ...] = ()
    of_means: bool = False

    @property
    def largest(self) -> float:
        """Largest absolute difference after weighting; below 0.1 is commonly called balance."""
        return float(np.abs(self.after).max())

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        rows = zip(self.columns, self.before.tolist(), self.after.tolist(), self.kept.tolist(), strict=True)
        return {
            "columns": {name: {"before": b, "after": a, "kept": k} for name, b, a, k in rows},
            "target": self.target,
            "n_untreated": self.n_untreated,
            "n_treated": self.n_treated,
            "effective_untreated": self.effective_untreated,
            "effective_treated": self.effective_treated,
            "n_truncated": self.n_truncated,
            "parties": list(self.parties),
            "lost": list(self.lost),
            "coarse": list(self.coarse),
            "of_means": self.of_means,
        }

    def to_text(self) -> str:
        """A line for each column, the largest difference before weighting first."""
        width = max(map(len, self.columns))
        lines = [f"{'':{width}}  before   after   kept"]
        for j in np.argsort(-np.abs(self.before)):
            lines.append(f"{self.columns[j]:{width}}  {self.before[j]:+.3f}  {self.after[j]:+.3f}  {self.kept[j]:5.0%}")
        return "\n".join(lines)

    def love_plot(self, ax: Axes | None = None) -> Axes:
        """Draw the absolute differences before and after weighting.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            In which to draw; otherwise a figure is made, which no window shows.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        return love_axes(self.columns, self.before, self.after, ax)

    def __str__(self) -> str:
        return self.to_text()


def pooled_balance(sums: Iterable[BalanceSums], *, of_means: bool = False) -> Balance:
    r"""Add up the parties' sums, and compare the arms.

    .. math:: d_j = \frac{\bar x_{1j} - \bar x_{0j}}{s_j}, \qquad
       s_j^2 = \tfrac12 (s_{1j}^2 + s_{0j}^2) \text{ for "ATE"}, \quad s_{1j}^2 \text{ for "ATT"}

    with unweighted variances before and after, so that the two can be compared [1]_.

    Parameters
    ----------
    sums : iterable of BalanceSums
        One of each party that has 10 rows of either arm.
    of_means : bool, default=False
        Whether parties had shared means of rows (`Effect.n_groups` is less than `Effect.n_rows`).  A propensity of
        means is steeper than that of rows, and rows weighted with it differ by more than what the estimate rests on.

    Returns
    -------
    Balance

    Raises
    ------
    AgreementError
        When parties sent different columns or targets, or one of them twice.

    Warns
    -----
    EffectWarning
        When less than 95 % of a column reached the analyst, so that it is not fully adjusted for, or the anchor cannot
        tell.

    References
    ----------
    .. [1] Austin and Stuart (2015). Moving towards best practice when using inverse probability of treatment weighting.
       Statistics in Medicine 34(28), 3661-3679.
    """
    given = list(sums)
    _check_common(given)
    counts: NDArray[np.int64] = np.sum([each.counts for each in given], axis=0)
    weights = np.sum([each.weights for each in given], axis=0)
    totals = np.sum([each.sums for each in given], axis=0)
    squares = np.sum([each.squares[0] for each in given], axis=0)
    means = totals / np.stack([counts, weights])[:, :, None]
    arms = (squares - counts[:, None] * means[0] ** 2) / (counts[:, None] - 1)
    # Sums are rounded, and a variance is a difference of two of them.
    rounding = BALANCE_STEP * (0.5 + np.abs(means[0])) * (counts / (counts - 1))[:, None]
    target = given[0].target
    variance, unsure = (each[1] if target == "ATT" else each.mean(axis=0) for each in (arms, rounding))
    before, after = (_standardised(mean[1] - mean[0], variance, unsure) for mean in means)
    effective = weights**2 / np.sum([each.squared_weights for each in given], axis=0)
    kept = np.min([each.kept for each in given], axis=0)
    # A column that is the same in all rows, as a category that nobody has, has nothing to be adjusted for.
    varies = (variance > unsure) | (before != 0)
    lost = tuple(np.array(given[0].columns)[varies & (kept < _WELL_KEPT)].tolist())
    coarse = tuple(np.array(given[0].columns)[varies & (variance < _FINE * unsure)].tolist())
    if lost:
        warnings.warn(
            f"Less than {_WELL_KEPT:.0%} of {', '.join(lost)} reached the analyst, so that an effect is not fully "
            "adjusted for what treatment has to do with it. Have the parties share more components, or take "
            "LTI(fit_intercept=True) with more of them; where a column is constant over the anchor, or the anchor has "
            "few rows, take another.",
            EffectWarning,
            stacklevel=2,
        )
    return Balance(
        columns=given[0].columns,
        before=before,
        after=after,
        kept=kept,
        target=target,
        n_untreated=int(counts[0]),
        n_treated=int(counts[1]),
        effective_untreated=float(effective[0]),
        effective_treated=float(effective[1]),
        n_truncated=int(np.sum([each.truncated for each in given])),
        parties=tuple(each.party for each in given),
        lost=lost,
        coarse=coarse,
        of_means=of_means,
    )


def _standardised(difference: FloatArray, variance: FloatArray, rounding: FloatArray) -> FloatArray:
    """Differences in standard deviations; 0 where a column has one value, infinite where each arm has its own.

    Where a variance is no more than its rounding may be, the largest that fits is taken.
    """
    told = variance > rounding
    scale = np.sqrt(np.where(told, variance, np.maximum(variance, 0.0) + rounding))
    one_value = ~told & (np.abs(difference) <= BALANCE_STEP)
    apart = ~told & (np.abs(difference) > _APART * scale)
    return np.where(one_value, 0.0, np.where(apart, np.copysign(np.inf, difference), difference / scale))


def _check_common(sums: list[BalanceSums]) -> None:
    if not sums:
        raise AgreementError("No party sent sums; those of one party at least are wanted.")
    names = [each.party for each in sums]
    if len(set(names)) < len(names):
        raise AgreementError("A party is there twice; its rows would count twice.")
    first = sums[0]
    for each in sums[1:]:
        if (each.columns, each.target) != (first.columns, first.target):
            raise AgreementError(
                f"Parties {first.party!r} and {each.party!r} sent sums of different columns, or for different targets. "
                "Agree on names, order and target, and ask for new sums."
            )
