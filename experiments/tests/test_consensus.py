"""Consensus of clusterings: what must come out, and against all partitions of a few rows."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from datacollab.errors import AgreementError, AnchorError
from datacollab_experiments.consensus import ConsensusClusterer, consensus_labels, indicators


def category_utility(partition, labels):
    """How much better a row's label is guessed (by its frequency) where its part is known: from counted frequencies."""
    found = 0.0
    for label in set(labels):
        found -= np.mean(labels == label) ** 2
        for part in set(partition):
            found += np.mean(partition == part) * np.mean(labels[partition == part] == label) ** 2
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_no_partition_shares_more_with_the_parties(seed):
    """All partitions of seven rows; the quadratic mutual information is the sum of the parties' category utilities."""
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, size, 7) for size in (2, 3, 4)]
    shared = [
        sum(category_utility(np.array(partition), each) for each in labels) for partition in product(range(3), repeat=7)
    ]
    found = consensus_labels(labels, 3, random_state=0)
    assert sum(category_utility(found, each) for each in labels) == pytest.approx(max(shared), abs=1e-12)


@settings(deadline=None)
@given(data=st.data())
def test_indicators_count_what_tells_two_rows_apart(data):
    """Half the squared distance of two rows is the number of parties that put them apart, where all name both."""
    n_parties, n_rows = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 8))
    row = st.lists(st.integers(-1, 2), min_size=n_rows, max_size=n_rows)
    codes = np.array(data.draw(st.lists(row, min_size=n_parties, max_size=n_parties)))
    assume((codes >= 0).any(axis=1).all())
    found = indicators(codes)
    for i, j in product(range(n_rows), repeat=2):
        if (codes[:, [i, j]] >= 0).all():
            assert 0.5 * np.sum((found[i] - found[j]) ** 2) == pytest.approx(np.sum(codes[:, i] != codes[:, j]))
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_identical_parties_get_their_labels(seed):
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(4), rng.integers(0, 4, 40)]
    renamed = [rng.permutation(10)[:4][labels] for _ in range(3)]
    np.testing.assert_array_equal(consensus_labels(renamed, 4, random_state=seed), labels)


def test_names_and_order_of_parties_do_not_matter():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    labels = {name: np.where(rng.random(60) < 0.15, rng.integers(0, 3, 60), truth) for name in "abcde"}
    first = consensus_labels(labels, 3, random_state=0)
    again = consensus_labels({name: 7 - labels[name] for name in "ebdac"}, 3, random_state=0)
    np.testing.assert_array_equal(first, again)


def test_the_consensus_is_nearer_to_the_truth_than_the_parties():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 200)
    labels = [np.where(rng.random(200) < 0.25, rng.integers(0, 4, 200), truth) for _ in range(9)]
    alone = [adjusted_rand_score(truth, each) for each in labels]
    assert adjusted_rand_score(truth, consensus_labels(labels, 4, random_state=0)) > max(alone) + 0.2


def test_a_party_that_tells_nothing_apart_changes_nothing():
    labels = [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 2, 2]]
    np.testing.assert_array_equal(consensus_labels(labels, 3, random_state=0), [0, 0, 1, 1, 2, 2])


def test_parties_may_have_more_clusters_than_wanted_or_fewer():
    labels = [[0, 0, 1, 1, 2, 3], [0, 0, 1, 1, 1, 1]]
    np.testing.assert_array_equal(consensus_labels(labels, 2, random_state=0), [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(consensus_labels([[0, 0, 1], [3, 3, 1]], 8, random_state=0), [0, 0, 1])


def test_a_party_may_say_nothing_of_a_row():
    labels = {"a": [0, 0, 1, 1, -1], "b": [1, 1, 0, 0, 0], "c": [0, 0, 1, -1, 1]}
    np.testing.assert_array_equal(consensus_labels(labels, 2, random_state=0), [0, 0, 1, 1, 1])


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(AgreementError, match="shapes"):
        consensus_labels({"a": [0, 1], "b": [0, 1, 1]}, 2)
    with pytest.raises(AgreementError, match="whole numbers"):
        consensus_labels({"a": [0.5, 1.0]}, 2)
    with pytest.raises(AgreementError, match="No party"):
        consensus_labels({}, 2)
    with pytest.raises(AgreementError, match="Of 1 of 3 anchor rows"):
        consensus_labels([[0, 1, -1], [1, 0, -1]], 2)
    with pytest.raises(AgreementError, match="no anchor row in common"):
        consensus_labels([[0, 1, -1], [-1, -1, 0]], 2)


@pytest.fixture(scope="module")
def world():
    X, y = make_blobs(300, centers=4, n_features=5, cluster_std=1.5, random_state=0)
    return X[:200], X[200:], y[:200], np.array(["a", "b", "c", "d"])[np.arange(200) % 4]


def test_no_anchor_and_no_owners_are_refused(world):
    X, anchor, _, groups = world
    with pytest.raises(AnchorError, match="anchor"):
        ConsensusClusterer(n_clusters=4).fit(X, groups=groups)
    with pytest.raises(ValueError, match="Who owns each row"):
        ConsensusClusterer(n_clusters=4).fit(X, anchor=anchor)


def test_owners_and_anchor_travel_by_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        requested = ConsensusClusterer(n_clusters=4).get_metadata_routing().fit.requests
    assert requested == {"groups": True, "anchor": True}


def test_the_consensus_plays_the_roles(world):
    X, anchor, y, groups = world
    found = ConsensusClusterer(KMeans(4, n_init=5, random_state=0), n_clusters=4, random_state=0).fit(
        X, groups=groups, anchor=anchor
    )
    for party, sent in found.anchor_labels_.items():
        alone = KMeans(4, n_init=5, random_state=0).fit(X[groups == party])
        np.testing.assert_array_equal(sent, alone.predict(anchor))
    np.testing.assert_array_equal(found.consensus_, consensus_labels(found.anchor_labels_, 4, random_state=0))
    assert adjusted_rand_score(y, found.labels_) > 0.9
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_identical_parties_agree_on_what_each_says(world):
    X, anchor, _, _ = world
    twice, groups = np.vstack([X, X]), np.repeat(["a", "b"], 200)
    found = ConsensusClusterer(KMeans(4, random_state=0), n_clusters=4).fit(twice, groups=groups, anchor=anchor)
    assert adjusted_rand_score(found.consensus_, found.anchor_labels_["a"]) == 1.0


def test_a_consensus_with_a_party_column(world):
    X, anchor, _, groups = world
    frame = pd.DataFrame(X).rename(columns=str).assign(owner=groups)
    public = pd.DataFrame(anchor).rename(columns=str)
    found = ConsensusClusterer(n_clusters=4, party_column="owner", random_state=0).fit(frame, anchor=public)
    wanted = ConsensusClusterer(n_clusters=4, random_state=0).fit_predict(X, groups=groups, anchor=anchor)
    np.testing.assert_array_equal(found.labels_, wanted)
    np.testing.assert_array_equal(found.predict(frame), wanted)


class Consensus(ConsensusClusterer):
    """scikit-learn calls fit(X): rows are two parties' in turn, and the anchor is drawn around them."""

    def fit(self, X, y=None):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        anchor = np.random.default_rng(0).normal(size=(60, shape[1])) if len(shape) == 2 else X
        return super().fit(X, groups=np.arange(_num_samples(X)) % 2, anchor=anchor)

    def predict(self, X):
        return super().predict(X, groups=np.zeros(_num_samples(X), dtype=int))

    def fit_predict(self, X, y=None):
        return self.fit(X).labels_


@parametrize_with_checks([Consensus(n_clusters=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
