"""Clusters by agreement on the anchor alone: no rows are shared."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, clone
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from datacollab._validation import HasMethods, Interval, PartyName
from datacollab.errors import AnchorError
from datacollab.estimators._roles import by_party, clone_with_seeds, owners

from ._labels import consensus_labels

__all__ = ["ConsensusClusterer"]


class ConsensusClusterer(ClusterMixin, MetaEstimatorMixin, BaseEstimator):
    """Clusters on which the parties agree by naming the anchor's rows, all roles in one process.

    Each party clusters its own rows at home, and tells in which of its clusters each anchor row would be: one number
    for each anchor row, and nothing else, leaves it.  The analyst makes one clustering of the anchor of these
    (`consensus_labels`) and sends it to all parties.  Each then finds the clusters of its own rows
    at home, by a classifier trained on the anchor.

    Parameters
    ----------
    estimator : clusterer or None, default=None
        Of each party, fitted on its own rows.  It has to have `predict`.  None takes `KMeans` on standardised columns.
    n_clusters : int, default=8
        Of the consensus, and of `KMeans` where `estimator` is None.
    assignment : classifier or None, default=None
        Trained on the anchor with the consensus.  None takes the five nearest anchor rows in standardised columns.
    party_column : str or int, default=None
        Column of X that names the owner of each row.  It replaces `groups`.  Anchors come without it.
    random_state : int, RandomState or None, default=None
        Seeds every ``random_state`` left at None.

    Attributes
    ----------
    anchor_labels_ : dict of party to ndarray of shape (n_anchors,)
        What each party sends.
    consensus_ : ndarray of shape (n_anchors,)
        What goes back.
    assignment_ : classifier
        The same at every party, for it is made of what all have.
    labels_ : ndarray of shape (n_samples,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Notes
    -----
    What leaves a party is a partition of public rows.  It depends on all of its rows through as many centres as there
    are clusters; nothing is proven of what it tells.  Parties with few rows, or without some of the clusters, partition
    the anchor at random in part, and the anchor has to have rows like theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab_experiments.consensus import ConsensusClusterer
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(50, 2)), rng.normal(5.0, size=(50, 2))])
    >>> anchor = rng.uniform(-2, 7, size=(100, 2))
    >>> clusterer = ConsensusClusterer(n_clusters=2, random_state=0)
    >>> labels = clusterer.fit_predict(X, groups=np.arange(100) % 4, anchor=anchor)
    >>> len(set(labels[:50])), len(set(labels[50:]))
    (1, 1)
    """

    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "assignment": [HasMethods(["fit", "predict"]), None],
        "party_column": [str, Integral, None],
        "random_state": ["random_state"],
    }

    anchor_labels_: dict[PartyName, NDArray[np.intp]]
    consensus_: NDArray[np.intp]
    assignment_: Any
    labels_: NDArray[np.intp]

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_clusters: int = 8,
        assignment: Any = None,
        party_column: str | int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_clusters = n_clusters
        self.assignment = assignment
        self.party_column = party_column
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> Self:
        """Cluster at each party, agree on the anchor, and assign all rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            Rows of all parties.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            Public or synthetic rows that all parties have.

        Returns
        -------
        self

        Raises
        ------
        AnchorError
            When there is no anchor.
        """
        self._validate_params()
        X = validate_data(self, X, dtype=None, skip_check_array=hasattr(X, "columns"))
        if anchor is None:
            raise AnchorError("A consensus needs an anchor: public or synthetic rows that all parties have.")
        rows, names = owners(X, groups, self.party_column)
        rows, anchor = _numbers(rows, "X"), _numbers(anchor, "anchor")
        random_state = None if self.random_state is None else check_random_state(self.random_state)
        self.anchor_labels_ = {
            party: np.asarray(
                clone_with_seeds(self._clusterer(), random_state).fit(_safe_indexing(rows, index)).predict(anchor)
            )
            for party, index in by_party(names).items()
        }
        self.consensus_ = consensus_labels(self.anchor_labels_, self.n_clusters, random_state=random_state)
        default = make_pipeline(StandardScaler(), KNeighborsClassifier(min(5, len(self.consensus_))))
        self.assignment_ = clone(default if self.assignment is None else self.assignment).fit(anchor, self.consensus_)
        self.labels_ = np.asarray(self.assignment_.predict(rows))
        return self

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """The cluster of each row, whoever owns it, shape (n_samples,); `groups` are not looked at."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=None, reset=False, skip_check_array=hasattr(X, "columns"))
        rows = X if self.party_column is None else owners(X, None, self.party_column)[0]
        return np.asarray(self.assignment_.predict(_numbers(rows, "X")))

    def fit_predict(
        self, X: ArrayLike, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Fit, and give ``labels_``."""
        return self.fit(X, groups=groups, anchor=anchor).labels_

    def _clusterer(self) -> Any:
        return (
            make_pipeline(StandardScaler(), KMeans(self.n_clusters, n_init=10))
            if self.estimator is None
            else self.estimator
        )


def _numbers(rows: Any, name: str) -> Any:
    """In double precision, or a dataframe as it is: some clusterers fail on rows of another type than those of fit."""
    return rows if hasattr(rows, "columns") else check_array(rows, dtype=np.float64, input_name=name)
