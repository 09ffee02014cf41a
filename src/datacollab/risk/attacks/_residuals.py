"""Residuals of anchor rows, recognised on published means and taken off again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import FloatArray
from ._checks import check_rows

__all__ = ["without_anchor_residuals"]

_ROUNDING = 1e-10
_MOST_PAIRS = 4_000_000


def without_anchor_residuals(
    representation: ArrayLike, anchor_representation: ArrayLike, anchor_class: NDArray[np.intp]
) -> FloatArray:
    r"""Take off what was put on means of groups: how an anchor row differs from the mean of its class.

    Rows of one group and class are :math:`m + a_j - \mu_c` with one m and several j.  Whoever has the anchor's
    representation tries every j for every row, and sees where several rows come to the same: by chance, numbers of
    sixteen digits do not.

    Parameters
    ----------
    representation : array-like of shape (n_shared, n_intermediate)
    anchor_representation : array-like of shape (n_anchors, n_intermediate)
    anchor_class : ndarray of shape (n_anchors,)
        Number of each anchor row's class.

    Returns
    -------
    ndarray of shape (n_shared, n_intermediate)
        The means, equal to the bit within a group, of the rows where they were recognised; other rows as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import without_anchor_residuals
    >>> anchor = np.random.default_rng(0).normal(size=(50, 3))
    >>> shared = np.array([[1.0, 2.0, 3.0]]) + anchor[[7, 8, 9]] - anchor.mean(axis=0)
    >>> without_anchor_residuals(shared, anchor, np.zeros(50, dtype=int)).round(9)
    array([[1., 2., 3.],
           [1., 2., 3.],
           [1., 2., 3.]])
    """
    Z, A = check_rows(representation, "The representation"), check_rows(anchor_representation, "The anchor")
    # Equal rows would come to the same with any anchor row.
    distinct, of_row = np.unique(Z, axis=0, return_inverse=True)
    return np.asarray(_taken_off(distinct, A, anchor_class)[of_row.reshape(-1)])


def _taken_off(Z: FloatArray, A: FloatArray, anchor_class: NDArray[np.intp]) -> FloatArray:
    result = Z.copy()
    if len(Z) * len(A) > _MOST_PAIRS:
        return result
    means = np.stack([A[anchor_class == label].mean(axis=0) for label in range(int(anchor_class.max()) + 1)])
    scale = float(np.abs(np.vstack([Z, A])).max()) or 1.0
    direction = np.random.RandomState(0).standard_normal(Z.shape[1])
    # What is left of each row when each anchor row is taken off, along a direction; equal ones are neighbours.
    along = ((Z @ direction)[:, None] - (A @ direction)[None, :]).reshape(-1)
    order = np.argsort(along)
    ends = np.flatnonzero(np.diff(along[order]) > _ROUNDING * scale)
    runs = [run for run in np.split(order, ends + 1) if len(run) > 1]
    settled = np.zeros(len(Z), dtype=bool)
    # The largest first: a coincidence joins fewer rows than a group has.
    for run in sorted(runs, key=lambda each: -len(np.unique(each // len(A)))):
        rows, anchors = run // len(A), run % len(A)
        left = Z[rows] - A[anchors]
        near = np.abs(left - left[0]).max(axis=1) <= _ROUNDING * scale
        near &= (anchor_class[anchors] == anchor_class[anchors[0]]) & ~settled[rows]
        found = np.unique(rows[near])
        if len(found) > 1:
            result[found] = left[0] + means[anchor_class[anchors[0]]]
            settled[found] = True
    return result
