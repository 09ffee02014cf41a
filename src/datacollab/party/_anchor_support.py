"""Whether a party's own rows lie where an anchor's rows are; found at home."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._validation import FloatArray

__all__ = ["remoteness"]

_REPEATS = 5
_MOST_ROWS = 1000


def remoteness(own: FloatArray, anchor: FloatArray) -> float:
    """How much farther the nearest anchor row is than the nearest other own row.

    The ratio of the two mean distances, between as many rows of each; it is 1 for rows of one distribution, whatever
    their number, and near 1 for rows that were interpolated between such.  Columns count by their spread over both.

    Parameters
    ----------
    own : ndarray of shape (n_rows, n_features)
        At least two.
    anchor : ndarray of shape (n_anchors, n_features)

    Returns
    -------
    float
        Infinity where the own rows are all equal and the anchor's are elsewhere; 0 where these are among the own.

    Notes
    -----
    The mean over five random halves or draws; always the same ones.  A two-sample test by nearest neighbours
    [1]_ counts how often the nearest row is an own one; of rows in many dimensions that is soon always, though an
    anchor may still be learned from.

    References
    ----------
    .. [1] M. F. Schilling. "Multivariate Two-Sample Tests Based on Nearest Neighbors". Journal of the American
       Statistical Association, 81(395), 1986.
    """
    scale = np.vstack([own, anchor]).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    own, anchor = own / scale, anchor / scale
    generator = np.random.default_rng(0)
    size = min(len(own), len(anchor), _MOST_ROWS)
    to_anchor = to_own = 0.0
    for _ in range(_REPEATS):
        mine = own[generator.permutation(len(own))[:size]]
        theirs = anchor[generator.permutation(len(anchor))[:size]]
        to_own += float(NearestNeighbors(n_neighbors=1).fit(mine).kneighbors()[0].mean())
        to_anchor += float(NearestNeighbors(n_neighbors=1).fit(theirs).kneighbors(mine)[0].mean())
    if to_anchor == 0:
        return 0.0
    return to_anchor / to_own if to_own > 0 else np.inf
