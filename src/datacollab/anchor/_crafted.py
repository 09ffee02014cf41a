"""Anchors that were made for single private rows: crowded around them, or too narrow for the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.stats import beta
from sklearn.neighbors import NearestNeighbors

from .._typing import FloatArray
from ._base import check_table

__all__ = ["AnchorFit", "anchor_fit"]

_MOST_ROWS = 5000
_NEAR = 0.2
"""Part of the distance to the nearest own row within which an anchor row is near."""
_FEWEST_NEAR = 10
_MOST_NEAR = 0.1
"""Part of the anchor that may be near own rows by chance, in tables of few columns."""
_LEAST_SPREAD = 0.7
_MOST_COMPARED = 2000
_FEWEST_AROUND, _PART_AROUND = 3, 0.05
"""How many own rows a ball around an own row holds, at least, and as a part of them."""
_LEVEL = 1e-3
_MOST_DENSE = 1.2


@dataclass(frozen=True, kw_only=True)
class AnchorFit:
    """How an anchor lies among a party's own rows.

    Attributes
    ----------
    n_crowded : int
        Own rows with at least ten anchor rows much nearer than any other own row.
    n_near : int
        Anchor rows that are much nearer to an own row than any other own row is.
    n_anchors : int
    spread : float
        Median over columns of the anchor's standard deviation over that of the own rows.
    density : float
        How many times as much of the anchor as of the own rows lies around an own row, at its densest.  Both parts are
        taken at the ends of 99.8 % intervals that are nearest to each other, so that rows of one kind have less than 1.
    """

    n_crowded: int
    n_near: int
    n_anchors: int
    spread: float
    density: float

    @property
    def is_crowded(self) -> bool:
        """Whether anchor rows lie around single own rows, as they do not by chance."""
        near = self.n_crowded > 0 or self.n_near > max(_FEWEST_NEAR, _MOST_NEAR * self.n_anchors)
        return near or self.density > _MOST_DENSE

    @property
    def is_narrow(self) -> bool:
        """Whether the anchor varies less than .7 times as much as the own rows in most columns."""
        return self.spread < _LEAST_SPREAD


def anchor_fit(anchor: ArrayLike, X_private: ArrayLike) -> AnchorFit:
    """Compare an anchor with a party's own rows, at the party.

    An anchor that was planted around people lets others read what these people add, and a map of a narrow anchor sees
    little of the table.  Of more than 5,000 own rows, as many at even distances are looked at.

    Parameters
    ----------
    anchor : array-like of shape (n_anchors, n_features)
    X_private : array-like of shape (n_samples, n_features)
        At least two rows.

    Raises
    ------
    AnchorError
        If a table cannot be used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> own = rng.normal(size=(100, 5))
    >>> anchor_fit(rng.normal(size=(300, 5)), own).is_crowded
    False
    >>> anchor_fit(own[7] + 0.01 * rng.normal(size=(300, 5)), own).is_crowded
    True
    """
    A, X = check_table(anchor, "anchor"), check_table(X_private, "X_private")
    X = X[:: -(-len(X) // _MOST_ROWS)]
    # The own rows give the units, which the maker of the anchor does not know.
    deviation = X.std(axis=0)
    varies = deviation > 0
    A, X = A[:, varies] / deviation[varies], X[:, varies] / deviation[varies]
    if not varies.any() or len(X) < 2:
        return AnchorFit(n_crowded=0, n_near=0, n_anchors=len(A), spread=1.0, density=0.0)
    own, _ = NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)
    radius = _NEAR * own[:, 1]
    near = NearestNeighbors(n_neighbors=min(_FEWEST_NEAR, len(A))).fit(A).kneighbors(X)[0] < radius[:, None]
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(A)
    return AnchorFit(
        n_crowded=int(near.all(axis=1).sum()) if len(A) >= _FEWEST_NEAR else 0,
        n_near=int((distances[:, 0] < radius[nearest[:, 0]]).sum()),
        n_anchors=len(A),
        spread=float(np.median(A.std(axis=0))),
        density=_density(A, X),
    )


def _density(A: FloatArray, X: FloatArray) -> float:
    """Compare, around each own row, the anchor's part with that of the own rows."""
    A, X = (rows[:: -(-len(rows) // _MOST_COMPARED)] for rows in (A, X))
    n_others = len(X) - 1
    k = min(n_others, max(_FEWEST_AROUND, round(_PART_AROUND * n_others)))
    among = cdist(X, X)
    np.fill_diagonal(among, np.inf)
    radius = np.partition(among, k - 1, axis=1)[:, k - 1 : k] * (1 + 1e-9)
    n_own, n_anchors = (among <= radius).sum(axis=1), (cdist(X, A) <= radius).sum(axis=1)
    most_own = beta.ppf(1 - _LEVEL, n_own + 1, np.maximum(n_others - n_own, 1e-9))
    least_anchors = np.where(n_anchors, beta.ppf(_LEVEL, np.maximum(n_anchors, 1), len(A) - n_anchors + 1), 0.0)
    return float((least_anchors / most_own).max())
