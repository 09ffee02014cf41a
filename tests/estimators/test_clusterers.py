"""Clusters: all roles in one process, and what scikit-learn asks of estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import datacollab as dc
from datacollab import KTI, Central, DataCollaborationClassifier, DataCollaborationRegressor
from datacollab.analyst import AnchorScaled
from datacollab.errors import AnchorError
from datacollab.estimators import DataCollaborationClusterer
from datacollab.party import Microaggregation
from datacollab.sums import CommonMap


@pytest.fixture(scope="module")
def world():
    X, y = make_blobs(300, centers=4, n_features=5, cluster_std=1.5, random_state=0)
    return X[:200], X[200:], y[:200], np.array(["a", "b", "c", "d"])[np.arange(200) % 4]


def clusterer(**options):
    return DataCollaborationClusterer(dc.obfuscator("pca", 5), **{"n_clusters": 4, "random_state": 0} | options)


def test_it_is_the_central_clustering(world):
    X, anchor, _, groups = world
    found = clusterer().fit(X, groups=groups, anchor=anchor)
    central = KMeans(4, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(central.labels_, found.labels_) == 1.0
    assert adjusted_rand_score(central.predict(anchor), found.predict(anchor, groups=["b"] * 100)) == 1.0
    assert found.collaboration_.agreement_ == 1.0


def test_labels_are_in_the_order_of_the_rows(world):
    """Although parties share their rows in another order."""
    X, anchor, _, groups = world
    fitted = clusterer()
    labels = fitted.fit_predict(X, groups=groups, anchor=anchor)
    np.testing.assert_array_equal(labels, fitted.predict(X, groups=groups))
    assert labels.shape == (200,)
    shared = np.concatenate(list(fitted.collaboration_.labels_.values()))
    np.testing.assert_array_equal(np.bincount(shared), np.bincount(labels))


def test_a_party_column_and_a_frame(world):
    X, anchor, _, groups = world
    names = [f"x{i}" for i in range(5)]
    frame = pd.DataFrame(X, columns=names).assign(owner=groups)
    given = clusterer(party_column="owner").fit(frame, anchor=pd.DataFrame(anchor, columns=names))
    wanted = clusterer().fit_predict(X, groups=groups, anchor=anchor)
    np.testing.assert_array_equal(given.labels_, wanted)
    assert given.transform(frame).shape == (200, 5)


def test_transform_gives_rows_at_their_distances(world):
    X, anchor, _, groups = world
    Z = clusterer().fit_transform(X, groups=groups, anchor=anchor)
    np.testing.assert_allclose(
        np.linalg.norm(Z[:50, None] - Z, axis=2), np.linalg.norm(X[:50, None] - X, axis=2), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": GaussianMixture(4, n_init=3)},
        {"estimator": AgglomerativeClustering(4)},
        {"estimator": SpectralClustering(4, gamma=0.3)},
        {"estimator": AgglomerativeClustering(4), "assignment": LogisticRegression(max_iter=1000)},
        {"integrator": AnchorScaled(dc.KTI(5, alpha=0.01, center=True))},
        {"fit_on": "anchor", "defences": [Microaggregation(k=3)]},
    ],
    ids=str,
)
def test_others_find_well_parted_clusters_too(world, options):
    X, anchor, y, groups = world
    labels = clusterer(**options).fit_predict(X, groups=groups, anchor=anchor)
    assert adjusted_rand_score(y, labels) > 0.9


def test_no_anchor_and_no_owners_are_refused(world):
    X, anchor, _, groups = world
    with pytest.raises(AnchorError, match="anchor"):
        clusterer().fit(X, groups=groups)
    with pytest.raises(ValueError, match="Who owns each row"):
        clusterer().fit(X, anchor=anchor)


def test_owners_and_anchor_travel_by_metadata_routing(world):
    X, anchor, _, groups = world
    with sklearn.config_context(enable_metadata_routing=True):
        requested = clusterer().get_metadata_routing().fit.requests
    assert requested == {"groups": True, "anchor": True}


def n_rows(X):
    return X.shape[0] if getattr(X, "shape", ()) else len(np.asarray(X))


class _Adapter:
    n_parties = 2

    def fit(self, X, y=None):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        anchor = np.random.default_rng(0).normal(size=(60, shape[1])) if len(shape) == 2 else X
        if hasattr(X, "columns"):
            anchor = pd.DataFrame(anchor, columns=X.columns)
        return super().fit(X, y, groups=np.arange(n_rows(X)) % self.n_parties, anchor=anchor)

    def predict(self, X, groups=None):
        return super().predict(X, groups=first_party(X))

    def transform(self, X, groups=None):
        return super().transform(X, groups=first_party(X))

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class _Scored(_Adapter):
    def score(self, X, y):
        return super().score(X, y, groups=first_party(X))


class Classifier(_Scored, DataCollaborationClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X, groups=first_party(X))


class Regressor(_Scored, DataCollaborationRegressor):
    pass


class Clusterer(_Adapter, DataCollaborationClusterer):
    def fit_predict(self, X, y=None):
        return self.fit(X).labels_


class ClassifierBySums(Classifier):
    n_parties = 3


class RegressorBySums(Regressor):
    n_parties = 3


def first_party(X):
    return np.zeros(n_rows(X), dtype=int)


def identity():
    return FunctionTransformer(validate=True)


ESTIMATORS = [
    Classifier(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), LogisticRegression())),
    Regressor(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), Ridge(1e-3))),
    Clusterer(identity(), n_clusters=2, least_rows=1),
    ClassifierBySums(random_state=0),
    RegressorBySums(random_state=0),
    Central(LogisticRegression()),
    Central(Ridge()),
]


WHY = "an entry that is no number is not shown, so it is not a TypeError that quotes it"


@pytest.mark.slow
# The adapter's anchor is drawn without a look at X, which the checks place where they like.
@pytest.mark.filterwarnings("ignore:In most columns the anchor", "ignore:The anchor has as many rows")
@pytest.mark.filterwarnings("ignore:The total says hardly more")
@pytest.mark.parametrize(
    "estimator",
    [
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ESTIMATORS[:2]),
        *ESTIMATORS[2:4],
        *(pytest.param(each, marks=pytest.mark.nightly) for each in ESTIMATORS[4:]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn_contract(estimator, monkeypatch):
    # A common map of the anchor's rows alone, without a thousand between them.
    monkeypatch.setitem(CommonMap.from_anchor.__func__.__kwdefaults__, "n_rows", 0)
    expected = {"check_dtype_object": WHY} if isinstance(estimator, _Adapter) else {}
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
