"""Whether a weighted sum and an unweighted one, taken together, single out a few rows."""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray

__all__ = ["least_effective_rows", "rounded_weights", "truncated_weights"]

_DECIMALS = 3
_ROUNDING = 1e-9


def rounded_weights(weights: FloatArray) -> FloatArray:
    """Weights to 3 decimals: later digits adjust for nothing, and could tell rows apart that count as equal."""
    return np.asarray(np.round(weights, _DECIMALS))


def least_effective_rows(weights: FloatArray) -> float:
    r"""Fewest rows on which any combination of :math:`\sum x` and :math:`\sum w x` rests.

    Up to a factor the combinations are :math:`\sum x` and :math:`\sum d x` with d = w - c, for any number c.  Rows are
    counted as

    .. math:: n(c) = \frac{(\sum d^2)^2}{\sum d^4},

    which is 1 where d is zero for all rows but one, and k for k rows alike.  No row has more than :math:`1/\sqrt{n(c)}`
    of :math:`\sum d^2`, the variance of a combination of independent rows.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Of one arm.

    Returns
    -------
    float
        The minimum over all c; the number of rows where weights are equal, so that there is no other sum.

    Notes
    -----
    With weights of mean 0, variance 1 and moments m3 and m4, n(c) has its extrema where
    :math:`2c^3 - 3 m_3 c^2 + (m_4 - 3) c + m_3 = 0`, and tends to the number of rows for large c.

    A sum over both arms rests on no fewer rows than the worse of the two: with :math:`a = \sum d^2` of one arm and b of
    the other, :math:`(a + b)^2 / (a^2 / n_0 + b^2 / n_1) \ge \min(n_0, n_1)`.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party._dominance import least_effective_rows
    >>> round(least_effective_rows(np.array([1.0] * 40 + [3.0])), 6)
    1.0
    >>> round(least_effective_rows(np.array([1.0] * 40 + [3.0] * 12)), 6)
    12.0
    """
    # The difference of weights that are nearly equal is exact, and that to their mean is not.
    steps = weights - np.median(weights)
    if not steps.any():
        return float(len(weights))
    steps = steps / np.abs(steps).max()
    steps = steps - steps.mean()
    steps = steps / np.sqrt((steps**2).mean())
    m3, m4 = (steps**3).mean(), (steps**4).mean()
    # n(c) at a point that is no extremum is no smaller than the minimum, so that real parts of all roots will do.
    at = np.roots([2.0, -3.0 * m3, m4 - 3.0, m3]).real
    squared = (steps[:, None] - at) ** 2
    found = squared.sum(axis=0) ** 2 / (squared**2).sum(axis=0)
    return float(min(len(weights), found.min()))


def truncated_weights(weights: FloatArray, fewest: int) -> FloatArray:
    r"""Weights with the outermost brought in, as little as makes `least_effective_rows` reach `fewest`.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
    fewest : int
        At most n_rows.

    Returns
    -------
    ndarray of shape (n_rows,)
        Weights beyond the k-th smallest and the k-th largest are set to these.  Any d = w - c is then largest for k
        rows at least, and n(c) is at least :math:`\sum d^2 / \max d^2 \ge k`, so that k need not exceed `fewest`;
        in arms too small for that all weights become the median.
    """
    order = np.sort(weights)
    k, found = 0, weights
    while least_effective_rows(found) < fewest * (1.0 - _ROUNDING):
        k += 1
        found = np.clip(weights, order[k], max(order[-1 - k], order[k]))
    return found
