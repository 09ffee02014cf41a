"""Clusters and novelty without targets, against everything in one place."""

import numpy as np
import pytest
from sklearn.cluster import (
    DBSCAN,
    HDBSCAN,
    OPTICS,
    AffinityPropagation,
    AgglomerativeClustering,
    BisectingKMeans,
    KMeans,
    SpectralClustering,
)
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import datacollab as dc
from datacollab.analyst import cluster, integrate, novelty
from datacollab.errors import AgreementError, RepresentationError
from datacollab.party import Microaggregation

N_COLUMNS = 5


def blobs(seed, n_rows=240):
    X, y = make_blobs(n_rows, centers=4, n_features=N_COLUMNS, cluster_std=2.0, random_state=seed)
    return X * [10.0, 3.0, 1.0, 1.0, 0.1], y


def shared(X, anchor, n_parties=3, **options):
    """Parties with PCA of all columns, and the rows of each in the order in which they are shared."""
    parties = [
        dc.Party(k, dc.obfuscator("pca", N_COLUMNS), shuffle=False, **options).fit(X[k::n_parties])
        for k in range(n_parties)
    ]
    return parties, [party.share(anchor) for party in parties]


def in_shares_order(X):
    """The rows of all three parties, one party after the other."""
    return np.vstack([X[:150][k::3] for k in range(3)])


@pytest.fixture(scope="module")
def world():
    X, y = blobs(0)
    parties, shares = shared(X[:150], X[150:])
    return X, y, parties, shares


def test_representations_are_the_raw_rows_but_for_a_motion(world):
    X, _, _, shares = world
    integrated = integrate(shares)
    raw = in_shares_order(X)
    centred = raw - raw.mean(axis=0)
    found = integrated.combined - integrated.combined.mean(axis=0)
    np.testing.assert_allclose(found @ found.T, centred @ centred.T, rtol=0, atol=1e-8 * np.sum(centred**2))
    assert integrated.repeated == ()


@pytest.mark.parametrize("seed", range(5))
def test_k_means_from_the_same_centres_is_the_central_one(seed):
    """With all columns and isometric maps, every step of Lloyd's algorithm is the same."""
    X, _ = blobs(seed)
    parties, shares = shared(X[:150], X[150:])
    integrated = integrate(shares)
    raw, begin = in_shares_order(X), [0, 40, 80, 120]
    central = KMeans(4, init=raw[begin], n_init=1).fit(raw)
    found = cluster(integrated, KMeans(4, init=integrated.combined[begin], n_init=1))
    np.testing.assert_array_equal(np.concatenate(list(found.labels_.values())), central.labels_)
    for k, party in enumerate(parties):
        np.testing.assert_array_equal(party.predict(X[150:], found.party_model(k)), central.predict(X[150:]))
    assert found.agreement_ == 1.0


def test_a_mixture_is_the_central_one():
    X, _ = blobs(1)
    parties, shares = shared(X[:150], X[150:])
    integrated = integrate(shares)
    raw = in_shares_order(X)
    begin = KMeans(4, random_state=0).fit(raw).labels_
    means = [[rows[begin == label].mean(axis=0) for label in range(4)] for rows in (raw, integrated.combined)]
    fits = [GaussianMixture(4, means_init=each, random_state=0, reg_covar=1e-9) for each in means]
    central = fits[0].fit(raw)
    found = cluster(integrated, fits[1])
    assert adjusted_rand_score(central.predict(raw), np.concatenate(list(found.labels_.values()))) == 1.0
    assert found.agreement_ == 1.0
    probabilities = parties[0].predict_proba(X[150:], found.party_model(0))
    assert probabilities.shape == (90, 4)


@pytest.mark.parametrize(
    "clusterer",
    [AgglomerativeClustering(4), DBSCAN(eps=25.0), HDBSCAN(copy=True), BisectingKMeans(4, random_state=0)],
    ids=str,
)
def test_other_clusterers_send_the_means_of_their_clusters(world, clusterer):
    _, _, _, shares = world
    integrated = integrate(shares)
    found = cluster(integrated, clusterer)
    labels = np.concatenate(list(found.labels_.values()))
    inside = labels >= 0
    means = np.stack([integrated.combined[labels == each].mean(axis=0) for each in np.unique(labels[inside])])
    nearest = np.unique(labels[inside])[((integrated.combined[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)]
    np.testing.assert_array_equal(found.estimator_.predict(integrated.combined), nearest)
    assert found.agreement_ == pytest.approx(np.mean(nearest[inside] == labels[inside]))


def test_exemplars_are_not_sent(world):
    """AffinityPropagation's centres are rows of single parties."""
    _, _, _, shares = world
    integrated = integrate(shares)
    found = cluster(integrated, AffinityPropagation(preference=-1e5, random_state=0))
    exemplars = found.clusterer_.cluster_centers_
    sent = found.estimator_.chain.steps[0].coefficients.T / 2
    gaps = np.abs(sent - (exemplars - exemplars.mean(axis=0))).max(axis=1)
    assert (gaps > 1e-3).all()


def test_what_goes_back_is_a_file_of_numbers(world, tmp_path):
    X, _, parties, shares = world
    for model in (cluster(integrate(shares), KMeans(4, random_state=0)), novelty(integrate(shares))):
        sent = model.party_model(1)
        sent.save(tmp_path / "1.dcmodel")
        read = dc.PartyModel.load(tmp_path / "1.dcmodel")
        np.testing.assert_array_equal(parties[1].predict(X[150:], read), parties[1].predict(X[150:], sent))


def test_no_row_of_another_party_goes_back(world, tmp_path):
    _, _, _, shares = world
    for found in (cluster(integrate(shares), KMeans(4, random_state=0)), novelty(integrate(shares))):
        found.party_model(0).save(tmp_path / "0.dcmodel")
        content = (tmp_path / "0.dcmodel").read_bytes()
        others = np.vstack([found.representations_[1], found.representations_[2]])
        assert not any(row.tobytes() in content for row in others)
        assert not any(row.tobytes() in content for share in shares[1:] for row in share.representation)


def test_small_clusters_are_not_sent():
    X, _ = blobs(2)
    X[0] = 1e4
    _, shares = shared(X[:150], X[150:])
    with pytest.raises(ValueError, match="1 of 2 clusters have fewer than 5 rows"):
        cluster(integrate(shares), KMeans(2, random_state=0))
    assert len(cluster(integrate(shares), KMeans(2, random_state=0), least_rows=1).estimator_.classes_) == 2


@pytest.mark.parametrize("clusterer", [SpectralClustering(4), DBSCAN(), OPTICS(), HDBSCAN(copy=True)], ids=str)
def test_neighbours_of_means_of_groups_are_refused(clusterer):
    X, _ = blobs(3)
    _, shares = shared(X[:150], X[150:], fit_on=X[150:], defences=[Microaggregation(k=3)])
    integrated = integrate(shares)
    assert integrated.repeated == (0, 1, 2)
    with pytest.raises(RepresentationError, match="copies"):
        cluster(integrated, clusterer)


def test_parameters_that_are_none_and_twice_the_same_name_are_refused(world):
    _, _, _, shares = world
    integrated = integrate(shares)
    with pytest.raises(TypeError, match="fit_predict"):
        cluster(integrated, LogisticRegression())
    with pytest.raises(TypeError, match="classifier"):
        cluster(integrated, KMeans(2), assignment=KMeans(2))
    with pytest.raises(AgreementError, match="Two shares"):
        integrate([shares[0], shares[0]])
    with pytest.raises(ValueError, match="none of 150 rows"):
        cluster(integrated, DBSCAN(eps=1e-9))


def test_novelty_is_that_of_a_central_mixture(world):
    """With all columns the mixture of one component is a Gaussian of the raw rows, whatever the motion."""
    X, _, parties, shares = world
    raw = in_shares_order(X)
    ridge = 0.1 * raw.var(axis=0).mean()
    central = -GaussianMixture(1, reg_covar=ridge).fit(raw).score_samples(X[150:])
    model = novelty(integrate(shares), 1)
    for k, party in enumerate(parties):
        scores = party.predict(X[150:], model.party_model(k))
        np.testing.assert_allclose(scores - scores[0], central - central[0], rtol=1e-6, atol=1e-6)


def test_components_of_few_rows_are_not_sent():
    X, _ = blobs(6)
    X[0] = 1e3
    _, shares = shared(X[:150], X[150:])
    integrated = integrate(shares)
    ridge = 0.1 * integrated.combined.var(axis=0).mean()
    n_sent = novelty(integrated, 6).estimator_.chain.steps[1].n_out
    fewest = [
        150 * GaussianMixture(n, reg_covar=ridge, max_iter=500, random_state=0).fit(integrated.combined).weights_.min()
        for n in (n_sent, n_sent + 1)
    ]
    assert n_sent < 6
    assert fewest[0] >= 5 > fewest[1]
    with pytest.raises(ValueError, match="fewer than least_rows"):
        novelty(integrate(shares), least_rows=1000)
