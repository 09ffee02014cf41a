"""Anchors that were made for single private rows: crowded around them, or too narrow for the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from ._base import check_table

__all__ = ["AnchorFit", "anchor_fit"]

_MOST_ROWS = 5000
_NEAR = 0.2
"""Part of the distance to the nearest own row within which an anchor row is near."""
_FEWEST_NEAR = 10
_MOST_NEAR = 0.1
"""Part of the anchor that may be near own rows by chance, in tables of few columns."""
_LEAST_SPREAD = 0.7


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
    """

    n_crowded: int
    n_near: int
    n_anchors: int
    spread: float

    @property
    def is_crowded(self) -> bool:
        """Whether anchor rows lie around single own rows, as they do not by chance."""
        return self.n_crowded > 0 or self.n_near > max(_FEWEST_NEAR, _MOST_NEAR * self.n_anchors)

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
        return AnchorFit(n_crowded=0, n_near=0, n_anchors=len(A), spread=1.0)
    own, _ = NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)
    radius = _NEAR * own[:, 1]
    near = NearestNeighbors(n_neighbors=min(_FEWEST_NEAR, len(A))).fit(A).kneighbors(X)[0] < radius[:, None]
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(A)
    return AnchorFit(
        n_crowded=int(near.all(axis=1).sum()) if len(A) >= _FEWEST_NEAR else 0,
        n_near=int((distances[:, 0] < radius[nearest[:, 0]]).sum()),
        n_anchors=len(A),
        spread=float(np.median(A.std(axis=0))),
    )
