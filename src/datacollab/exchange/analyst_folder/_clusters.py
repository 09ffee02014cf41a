"""Clusters of all parties' rows, where a project has nothing to predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...share import Share

if TYPE_CHECKING:
    from ...analyst import Collaboration

__all__ = ["clustered"]


def clustered(shares: Sequence[Share], n_clusters: int, random_state: int) -> Collaboration:
    """k-means of the rows of all parties, in a common space with the distances of the anchor.

    Parameters
    ----------
    shares : sequence of Share
    n_clusters : int
    random_state : int
        Of the first centres.

    Raises
    ------
    ValueError
        When a cluster has too few rows to let its centre go to all parties.
    """
    from sklearn.cluster import KMeans

    from ...analyst import cluster, integrate

    return cluster(integrate(shares), KMeans(n_clusters, n_init=10, random_state=random_state))
