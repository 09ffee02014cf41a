"""Clusters of all parties' rows in one process, behind scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .._validation import FloatArray, HasMethods, Interval
from ..analyst import AnchorScaled, BaseIntegrator, Clustering, cluster, integrate
from ..errors import AnchorError
from ..party import Defence
from ._groups import owners
from ._roles import PlayedRoles, seeded, warn_of_anchor

__all__ = ["DataCollaborationClusterer"]


class DataCollaborationClusterer(ClusterMixin, PlayedRoles):
    """Data collaboration for clustering, all roles in one process.

    Built on `Party`, `datacollab.analyst.integrate` and `PartyModel`, so it gives the clusters that the real roles
    would.  For trying out methods on data that may be in one place; a real collaboration uses the roles themselves.
    No labels are needed or looked at.

    Parameters
    ----------
    obfuscator : transformer, mapping of party to transformer, or callable, default=None
        f_k, as in `DataCollaborationClassifier`.  Distances are those that it leaves: columns in different units should
        be standardised, as with ``obfuscator("pca", standardize=True)``.  None takes ``obfuscator("pca")``.
    integrator : BaseIntegrator or None, default=None
        How representations are aligned.  None takes `AnchorScaled`, whose distances are those that parties see on the
        anchor.  Other methods have orthonormal targets, in which all directions are equally long; put them into
        `AnchorScaled`.
    estimator : clusterer or None, default=None
        Any with `fit_predict`.  None takes `KMeans`, begun ten times.
    n_clusters : int, default=8
        Of `KMeans` where `estimator` is None.
    assignment : classifier or None, default=None
        What tells which cluster a row is of; see `datacollab.analyst.cluster`.
    least_rows : int, default=5
        Rows of a cluster, at least.
    fit_on, defences, shuffle, party_column, n_jobs, random_state
        As in `DataCollaborationClassifier`.  Defences that need targets are refused.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row of `fit`, as its own party's model says.  Without defences, these are the clusterer's
        labels for `KMeans` and `GaussianMixture`; how often for others is in ``collaboration_.agreement_``.
    parties_ : dict of party to Party
    models_ : dict of party to PartyModel
    collaboration_ : Clustering
        What the analyst holds.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has column names.

    Examples
    --------
    >>> import numpy as np, datacollab as dc
    >>> from datacollab.estimators import DataCollaborationClusterer
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, _ = dc.datasets.load("digits")
    >>> rows, hospital, anchor = X[:300], np.arange(300) % 3, X[300:600]
    >>> clusterer = DataCollaborationClusterer(dc.obfuscator("pca", 30), n_clusters=10, random_state=0)
    >>> labels = clusterer.fit_predict(rows, groups=hospital, anchor=anchor)
    >>> central = KMeans(10, n_init=10, random_state=0).fit_predict(rows)
    >>> bool(adjusted_rand_score(central, labels) > 0.6)
    True
    """

    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlayedRoles._parameter_constraints,
        "integrator": [BaseIntegrator, None],
        "estimator": [HasMethods(["fit_predict"]), None],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "assignment": [HasMethods(["fit", "predict"]), None],
        "least_rows": [Interval(Integral, 1, None, closed="left")],
    }

    collaboration_: Clustering
    labels_: NDArray[np.intp]

    def __init__(
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | None = None,
        estimator: Any = None,
        *,
        n_clusters: int = 8,
        assignment: Any = None,
        least_rows: int = 5,
        fit_on: Any = None,
        defences: Sequence[Defence] = (),
        shuffle: bool = True,
        party_column: str | int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            obfuscator,
            integrator,
            estimator,
            fit_on=fit_on,
            defences=defences,
            shuffle=shuffle,
            party_column=party_column,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_clusters = n_clusters
        self.assignment = assignment
        self.least_rows = least_rows

    def fit(
        self, X: ArrayLike, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> Self:
        """Play all roles: every party obfuscates and shares, the analyst integrates and clusters.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            Rows of all parties.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            Public or synthetic rows that all parties obfuscate.

        Returns
        -------
        self

        Raises
        ------
        AnchorError
            When there is no anchor.
        ObfuscationError
            When a party's obfuscator or a defence fails; the message names the party.
        AgreementError, RepresentationError, NumericalError
            When the representations cannot be integrated, or the clusterer cannot work on what was shared.
        ValueError
            When a cluster has fewer than `least_rows` rows.

        Warns
        -----
        UserWarning
            When the anchor looks as if it were in other units than `X`, or, in cross-validation, has as many rows.
        """
        self._validate_params()
        X = validate_data(self, self._checked(X), skip_check_array=True)
        if anchor is None:
            raise AnchorError(
                "Data collaboration needs an anchor: public or synthetic rows that all parties obfuscate. Pass "
                "anchor=..., for example from datacollab.UniformAnchor or datacollab.SMOTEAnchor."
            )
        X, names = owners(X, groups, self.party_column)
        warn_of_anchor(X, anchor)
        random_state = None if self.random_state is None else check_random_state(self.random_state)
        shares = self._shared(X, None, names, anchor, None, random_state)
        integrator = self._default_integrator() if self.integrator is None else self.integrator
        self.collaboration_ = cluster(
            integrate(shares, seeded(integrator, random_state)),
            seeded(self._default_estimator(), random_state),
            assignment=None if self.assignment is None else seeded(self.assignment, random_state),
            least_rows=self.least_rows,
        )
        self.models_ = {party: self.collaboration_.party_model(party) for party in self.parties_}
        self.labels_ = self._of_fitted("predict", X, names)
        return self

    def fit_predict(
        self, X: ArrayLike, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Fit, and give ``labels_``."""
        return self.fit(X, groups=groups, anchor=anchor).labels_

    def fit_transform(
        self, X: ArrayLike, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> FloatArray:
        """Fit, and give the collaboration representations of all rows in their order."""
        return np.asarray(self.fit(X, groups=groups, anchor=anchor).represent(X, groups=groups))

    def _default_integrator(self) -> BaseIntegrator:
        return AnchorScaled()

    def _default_estimator(self) -> Any:
        return KMeans(self.n_clusters, n_init=10) if self.estimator is None else self.estimator
