"""Groups of at least k rows that lie close together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["group_means", "mdav"]


def mdav(X: FloatArray, k: int) -> NDArray[np.intp]:
    """Group rows by MDAV, maximum distance to average vector [1]_.

    While 3k rows or more are left, the row farthest from their mean is grouped with its k - 1 nearest rows, and so is
    the row farthest from that one; of what is left, k rows are split off once more where at least k remain.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    k : int
        At most `n_rows`.

    Returns
    -------
    ndarray of shape (n_rows,)
        Number of each row's group, from 0 on.  Every group has from k to 2k - 1 rows.

    Notes
    -----
    Takes time proportional to ``n_rows ** 2 * n_columns / k``.

    References
    ----------
    .. [1] Domingo-Ferrer and Torra (2005). Ordinal, continuous and heterogeneous k-anonymity through microaggregation.
       Data Mining and Knowledge Discovery 11(2), 195-212.
    """
    labels = np.zeros(len(X), dtype=np.intp)
    index, rest, group = np.arange(len(X)), X - X.mean(axis=0), 0
    while len(index) >= 2 * k:
        pivots = 2 if len(index) >= 3 * k else 1
        pivot = rest.mean(axis=0)
        for _ in range(pivots):
            pivot = rest[np.argmax(_squared_distances(rest, pivot))]
            near = np.argpartition(_squared_distances(rest, pivot), k - 1)[:k]
            labels[index[near]] = group
            group += 1
            left = np.ones(len(index), dtype=bool)
            left[near] = False
            index, rest = index[left], rest[left]
    labels[index] = group
    return labels


def _squared_distances(X: FloatArray, point: FloatArray) -> FloatArray:
    difference = X - point
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def group_means(X: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    """Each row replaced by the mean of its group, shape (n_rows, n_columns); rows of a group are equal to the bit."""
    sums = np.zeros((labels.max() + 1, X.shape[1]))
    np.add.at(sums, labels, X)
    return np.asarray((sums / np.bincount(labels)[:, None])[labels])
