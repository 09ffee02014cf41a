"""Integration without targets: clusters of all rows, and novelty, as models that can be sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS, KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from .._frames import equal_rows
from .._validation import FloatArray, PartyName
from ..errors import RepresentationError
from ..model import mixture_classes, mixture_novelty, nearest_centre
from ..share import Share
from ._analyst import Collaboration, by_party
from ._linear import AnchorScaled, BaseIntegrator
from ._training import are_means

BY_NEIGHBOURS = (SpectralClustering, DBSCAN, HDBSCAN, OPTICS)
"""Clusterers for which rows are near or dense; among copies, all are."""
LEAST_ROWS = 5
"""Rows of a cluster, at least, whose centre goes to all parties."""


class Clustering(Collaboration):
    """A `Collaboration` after clustering, whose estimator's classes are the clusters.

    Attributes
    ----------
    clusterer_ : clusterer
        Fitted on the combined collaboration representations.
    labels_ : dict of party to ndarray of shape (n_samples,)
        The clusterer's label of each shared row, in the order of the share; -1 for none.
    agreement_ : float
        Part of the rows with a label that `estimator_` puts where the clusterer did; 1 for `KMeans` and
        `GaussianMixture`.
    """

    def __init__(self, integrated: Integrated, estimator: Any, clusterer: Any, labels: NDArray[np.intp]) -> None:
        super().__init__(integrated.integrator, estimator, integrated.representations)
        self.clusterer_ = clusterer
        self.labels_: dict[PartyName, NDArray[np.intp]] = integrated.split(labels)
        inside = labels >= 0
        # The classifier that is sent may put rows at the border elsewhere than the clusterer.
        self.agreement_ = float(np.mean(estimator.predict(integrated.combined[inside]) == labels[inside]))


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
        Trained on the combined rows with their labels, to tell the cluster of another row; cloned.  None takes the
        nearest centre with `KMeans`, the most probable component with `GaussianMixture`, and otherwise the nearest of
        the clusters' means, which may differ from the clusterer's own answer: see ``agreement_``.
    least_rows : int, default=5
        Fewest rows of a cluster whose centre, or component, goes to all parties.  The centre of one row is the row, and
        another party could undo the maps.

    Returns
    -------
    Clustering
        Its `party_model` holds a party's own g_k, and the same centres, components or `assignment` for all.

    Raises
    ------
    TypeError
        If the clusterer or `assignment` is none.
    RepresentationError
        If the clusterer goes by neighbours, and some parties' shared rows are nearly all equal to others.
    ValueError
        If a cluster has too few rows, or no row has one.

    Examples
    --------
    >>> import datacollab as dc
    >>> from sklearn.cluster import KMeans
    >>> from datacollab.analyst import cluster, integrate
    >>> X, _ = dc.datasets.load("digits")
    >>> f = dc.obfuscator("pca", n_components=8)
    >>> rows = {"a": slice(0, 100), "b": slice(100, 200)}
    >>> parties = {name: dc.Party(name, f).fit(X[own]) for name, own in rows.items()}
    >>> integrated = integrate(party.share(X[200:400]) for party in parties.values())
    >>> integrated
    Integrated(integrator=AnchorScaled, representations={'a': (100, 8), 'b': (100, 8)})
    >>> found = cluster(integrated, KMeans(10, random_state=0))
    >>> found.agreement_
    1.0
    >>> parties["a"].predict(X[:3], found.party_model("a")).shape
    (3,)
    """
    if not hasattr(clusterer, "fit_predict"):
        raise TypeError(f"Expected a clusterer with fit_predict, got {type(clusterer).__name__}.")
    if assignment is not None and not is_classifier(assignment):
        raise TypeError(f"assignment must be a classifier; got {type(assignment).__name__}.")
    if integrated.repeated and isinstance(clusterer, BY_NEIGHBOURS):
        raise RepresentationError(
            f"Nearly all rows that parties {list(integrated.repeated)!r} shared equal others, as with "
            f"Microaggregation. {type(clusterer).__name__} goes by the nearest neighbours, which are copies here. Take "
            "KMeans, GaussianMixture or AgglomerativeClustering, or ask for shares without this defence."
        )
    rows = integrated.combined
    fitted = clone(clusterer)
    labels = np.asarray(fitted.fit_predict(rows))
    # Clusterers by density give -1 to rows in none.
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
    h = _fit_assignment(fitted, rows[inside], labels[inside], classes, assignment)
    return Clustering(integrated, h, fitted, labels)


def _fit_assignment(clusterer: Any, rows: Any, labels: NDArray[Any], classes: NDArray[Any], assignment: Any) -> Any:
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Integrated:
    """The integrator and the rows that the analyst has before anything is trained.

    Attributes
    ----------
    integrator : BaseIntegrator
        Fitted, with one g_k per party.
    representations : dict of party to ndarray of shape (n_samples, n_components)
        Collaboration representations, in the order of the shares.  They stay with the analyst: a colluding party could
        invert them.
    repeated : tuple of party
        Parties of whose shared rows nearly all equal others, as means of groups do.
    """

    integrator: BaseIntegrator
    representations: Mapping[PartyName, FloatArray]
    repeated: tuple[PartyName, ...]

    @property
    def parties(self) -> list[PartyName]:
        """Names of the parties, in the order of their shares."""
        return list(self.representations)

    @property
    def combined(self) -> FloatArray:
        """Rows of all parties, one party after the other, shape (n_rows, n_components)."""
        return np.vstack(list(self.representations.values()))

    def split(self, values: Any) -> dict[PartyName, Any]:
        """Return values of the combined rows, by party."""
        ends = np.cumsum([len(rows) for rows in self.representations.values()])[:-1]
        return dict(zip(self.representations, np.split(values, ends), strict=True))

    def __repr__(self) -> str:
        rows = {party: rows.shape for party, rows in self.representations.items()}
        return f"Integrated(integrator={type(self.integrator).__name__}, representations={rows})"


def integrate(shares: Iterable[Share], integrator: BaseIntegrator | None = None) -> Integrated:
    """Align the shares, one from each party; their targets are not looked at.

    Parameters
    ----------
    shares : iterable of Share
    integrator : BaseIntegrator or None, default=None
        Cloned before it is fitted.  None takes `AnchorScaled`: distances mean something, which clusters, neighbours and
        scores of novelty need.

    Raises
    ------
    TypeError, AgreementError, RepresentationError
        As `Analyst.fit` raises them.
    """
    named = by_party(shares)
    if integrator is None:
        integrator = AnchorScaled()
    fitted = clone(integrator)
    # Without targets: clusters are sought that nobody has named.
    fitted.fit({party: share.anchor_representation for party, share in named.items()})
    return Integrated(
        integrator=fitted,
        representations=fitted.transform({party: share.representation for party, share in named.items()}),
        repeated=tuple(party for party, share in named.items() if are_means(equal_rows(share.representation))),
    )


_RIDGE = 0.1
"""Added to all variances, in their mean: few rows in many columns leave some with next to none."""


def novelty(
    integrated: Integrated,
    n_components: int = 8,
    *,
    least_rows: int = LEAST_ROWS,
    random_state: int | np.random.RandomState | None = 0,
) -> Collaboration:
    r"""Return scores of novelty: :math:`-\log p(x)` under a mixture of normal distributions of all parties' rows.

    The estimator that goes back predicts a number for each row, the larger, the less it is like any that the parties
    had; see `datacollab.model.mixture_novelty`.  Where to draw a line is the party's choice.

    Parameters
    ----------
    integrated : Integrated
        From an integrator that keeps distances; see `AnchorScaled`.
    n_components : int, default=8
        Components of the mixture.  Covariances are full; each gets a tenth of the mean variance of a column.
    least_rows : int, default=5
        Fewest rows of each component, in sums of the rows' probabilities; else the mixture gets one component less.
    random_state : int, RandomState or None, default=0

    Raises
    ------
    ValueError
        If there are fewer than `least_rows` rows.

    Notes
    -----
    All parties get a weight, a mean and a covariance for each component.  Where one party's rows are like no other's, a
    component may be of these alone, and tell how they lie.  Scores by nearest neighbours would take the parties'
    representations along, which another party could invert.  Shared rows that are means of groups vary less than rows
    do, so that scores of own rows come out larger on the whole.
    """
    rows = integrated.combined
    if len(rows) < least_rows:
        raise ValueError(f"{len(rows)} rows are fewer than least_rows={least_rows}; nothing can be said of them.")
    ridge = _RIDGE * float(np.mean(rows.var(axis=0)))
    # One component less until none stands for a few rows alone, which it would give away.
    for n_left in range(min(n_components, len(rows)), 0, -1):
        mixture = GaussianMixture(n_left, reg_covar=ridge, max_iter=500, random_state=random_state).fit(rows)
        # Weights are mean probabilities, so that this is the rows' number in the smallest component.
        if len(rows) * mixture.weights_.min() >= least_rows:
            break
    return Collaboration(integrated.integrator, mixture_novelty(mixture), integrated.representations)
