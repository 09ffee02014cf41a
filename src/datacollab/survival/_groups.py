"""Groups of risk, and whether groups differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from ..errors import AgreementError
from ._rows import check_survival

__all__ = ["LogRank", "log_rank_test", "risk_groups"]


def risk_groups(risk: ArrayLike, n_groups: int = 3, *, reference: ArrayLike | None = None) -> NDArray[np.int64]:
    """Groups of about equally many rows by risk, from 0, the lowest.

    Parameters
    ----------
    risk : array-like of shape (n_rows,)
    n_groups : int, default=3
    reference : array-like of shape (n_reference,), optional
        Risks whose quantiles bound the groups; those of the rows by default.  With risks of rows that all parties have,
        such as the anchor's, a group means the same everywhere.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> from datacollab.survival import risk_groups
    >>> risk_groups([0.3, 2.0, -1.0, 0.9], n_groups=2)
    array([0, 1, 0, 1])
    """
    if n_groups < 2:
        raise ValueError(f"n_groups must be 2 or more; got {n_groups}.")
    values = np.asarray(risk, dtype=np.float64)
    bounds = np.quantile(
        values if reference is None else np.asarray(reference, dtype=np.float64), np.arange(1, n_groups) / n_groups
    )
    # A row at a bound belongs below it, in whatever order rows come.
    return np.searchsorted(bounds, values, side="left").astype(np.int64)


@dataclass(frozen=True)
class LogRank:
    """Whether groups have one survival curve.

    Attributes
    ----------
    statistic : float
        χ².
    degrees_of_freedom : int
    p_value : float
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def log_rank_test(y: ArrayLike, groups: ArrayLike) -> LogRank:
    """Mantel's log-rank test of two or more groups ([Mantel1966]_).

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    groups : array-like of shape (n_rows,)

    Raises
    ------
    AgreementError
        When there are fewer than two groups, or not one label per row.

    Examples
    --------
    >>> from datacollab.survival import log_rank_test
    >>> from datacollab.targets import survival_target
    >>> log_rank_test(survival_target([1, 1, 1, 1], [1.0, 2.0, 3.0, 4.0]), [0, 0, 1, 1]).p_value < 0.1
    True
    """
    event, time = check_survival(y)
    labels = np.asarray(groups)
    if labels.shape != time.shape:
        raise AgreementError(f"One group is wanted per row, shape {time.shape}; got shape {labels.shape}.")
    names, group = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        raise AgreementError("Two groups or more are wanted; all rows are of one.")
    times, place = np.unique(time, return_inverse=True)
    member = group[:, None] == np.arange(len(names))
    left, events = np.zeros((2, len(times), len(names)))
    np.add.at(left, place, member)
    np.add.at(events, place, member & event[:, None])
    at_risk = np.cumsum(left[::-1], axis=0)[::-1]
    n, d = at_risk.sum(axis=1), events.sum(axis=1)
    part = at_risk / n[:, None]
    expected = (d[:, None] * part).sum(axis=0)
    difference = events.sum(axis=0) - expected
    # Hypergeometric: how d events spread over the groups if all are alike.  One row alone has no choice.
    factor = np.divide(d * (n - d), n - 1, out=np.zeros(len(times)), where=n > 1)
    covariance = np.diag(factor @ part) - (part * factor[:, None]).T @ part
    # The differences add up to 0, so one of them is left out.
    statistic = float(difference[:-1] @ np.linalg.pinv(covariance[:-1, :-1], hermitian=True) @ difference[:-1])
    # A group that was not watched at any event has no say.
    degrees = max(1, int((expected > 0).sum()) - 1)
    return LogRank(statistic, degrees, float(chi2.sf(statistic, degrees)))
