"""Clusters of all parties' rows, and who belongs where as a model that can be sent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS, KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from .._validation import PartyName
from ..errors import RepresentationError
from ..model import mixture_classes, nearest_centre
from ._collaboration import Collaboration
from ._integrated import Integrated

__all__ = ["BY_NEIGHBOURS", "LEAST_ROWS", "Clustering", "check_not_repeated", "cluster"]

BY_NEIGHBOURS = (SpectralClustering, DBSCAN, HDBSCAN, OPTICS)
"""Clusterers for which rows are near or dense; among copies, all are."""
LEAST_ROWS = 5
"""Rows of a cluster, at least, whose centre goes to all parties."""


class Clustering(Collaboration):
    """What the analyst holds after clustering; `party_model` gives what goes back to a party.

    Attributes
    ----------
    clusterer_ : clusterer
        Fitted on the pooled collaboration representations.
    labels_ : dict of party to ndarray of shape (n_samples,)
        The clusterer's label of each shared row, in the order of the share; -1 for none.
    agreement_ : float
        Part of the rows with a label that `estimator_` puts where the clusterer did; 1 for `KMeans` and
        `GaussianMixture`.
    integrator_, estimator_, representations_
        As in `Collaboration`; the estimator is a classifier whose classes are the clusters.
    """

    def __init__(self, integrated: Integrated, estimator: Any, clusterer: Any, labels: NDArray[np.intp]) -> None:
        super().__init__(integrated.integrator, estimator, integrated.representations)
        self.clusterer_ = clusterer
        self.labels_: dict[PartyName, NDArray[np.intp]] = integrated.split(labels)
        inside = labels >= 0
        self.agreement_ = float(np.mean(estimator.predict(integrated.pooled[inside]) == labels[inside]))


def cluster(
    integrated: Integrated, clusterer: Any, *, assignment: Any = None, least_rows: int = LEAST_ROWS
) -> Clustering:
    """Cluster the rows of all parties together.

    Parameters
    ----------
    integrated : Integrated
    clusterer : clusterer
        Any with `fit_predict`; cloned.
    assignment : classifier or None, default=None
        What tells which cluster another row is of: trained on the pooled rows with their labels; cloned.  None takes
        the nearest centre with `KMeans`, the most probable component with `GaussianMixture`, which is what these would
        say, and otherwise the nearest of the clusters' means, which may be something else: see ``agreement_``.
    least_rows : int, default=5
        Of a cluster whose centre, or component, goes to all parties.  The centre of one row is the row, and another
        party could undo the maps.

    Returns
    -------
    Clustering

    Raises
    ------
    TypeError
        When the clusterer or `assignment` is none.
    RepresentationError
        When the clusterer goes by neighbours, and some parties' shared rows are nearly all equal to others.
    ValueError
        When a cluster has too few rows, or no row has one.

    Notes
    -----
    Goes back to each party: its own g_k, and the same centres or components to all, which are means over rows of all
    parties.  With other `assignment`, what that holds.

    Examples
    --------
    >>> import datacollab as dc
    >>> from sklearn.cluster import KMeans
    >>> from datacollab.analyst import cluster, integrate
    >>> X, _ = dc.datasets.load("digits")
    >>> f = dc.obfuscator("pca", n_components=8)
    >>> rows = {"a": slice(0, 100), "b": slice(100, 200)}
    >>> parties = {name: dc.Party(name, f).fit(X[own]) for name, own in rows.items()}
    >>> shares = [party.share(X[200:400]) for party in parties.values()]
    >>> found = cluster(integrate(shares), KMeans(10, random_state=0))
    >>> found.agreement_
    1.0
    >>> parties["a"].predict(X[:3], found.party_model("a")).shape
    (3,)
    """
    if not hasattr(clusterer, "fit_predict"):
        raise TypeError(f"A clusterer with fit_predict is wanted; got {type(clusterer).__name__}.")
    if assignment is not None and not is_classifier(assignment):
        raise TypeError(f"assignment must be a classifier; got {type(assignment).__name__}.")
    check_not_repeated(integrated, clusterer, BY_NEIGHBOURS)
    rows = integrated.pooled
    fitted = clone(clusterer)
    labels = np.asarray(fitted.fit_predict(rows))
    inside = labels >= 0
    classes, counts = np.unique(labels[inside], return_counts=True)
    if not len(classes):
        raise ValueError(f"{type(clusterer).__name__} put none of {len(labels)} rows into a cluster; set it otherwise.")
    if counts.min() < least_rows:
        raise ValueError(
            f"{int((counts < least_rows).sum())} of {len(classes)} clusters have fewer than {least_rows} rows, the "
            f"smallest {counts.min()}. Its centre would give single rows to the other parties. Ask for fewer clusters, "
            "or lower least_rows if the parties agree."
        )
    h = _assignment(fitted, rows[inside], labels[inside], classes, assignment)
    return Clustering(integrated, h, fitted, labels)


def check_not_repeated(integrated: Integrated, estimator: Any, by_neighbours: tuple[type, ...]) -> None:
    """Refuse what goes by neighbours where these are copies.

    Raises
    ------
    RepresentationError
        Naming the parties.
    """
    if integrated.repeated and isinstance(estimator, by_neighbours):
        raise RepresentationError(
            f"Nearly all rows that parties {list(integrated.repeated)!r} shared equal others, as with "
            f"Microaggregation. {type(estimator).__name__} goes by the nearest neighbours, which are copies here. Take "
            "KMeans, GaussianMixture or AgglomerativeClustering, or ask for shares without this defence."
        )


def _assignment(clusterer: Any, rows: Any, labels: NDArray[Any], classes: NDArray[Any], assignment: Any) -> Any:
    if assignment is not None:
        return clone(assignment).fit(rows, labels)
    # Not isinstance: a subclass, such as BisectingKMeans, may decide otherwise.
    kind = type(clusterer)
    if kind in (KMeans, MiniBatchKMeans) and len(classes) == len(clusterer.cluster_centers_):
        return nearest_centre(clusterer.cluster_centers_, classes, name=kind.__name__)
    if kind is GaussianMixture and len(classes) == clusterer.n_components:
        return mixture_classes(clusterer, classes)
    # Other centres may be rows themselves, as those of AffinityPropagation are.
    return nearest_centre(np.stack([rows[labels == each].mean(axis=0) for each in classes]), classes)
