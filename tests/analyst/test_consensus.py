"""Consensus of clusterings: what must come out, and against naive forms."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from datacollab.analyst import consensus_labels
from datacollab.analyst._consensus import coassociation, renamed_as
from datacollab.errors import AgreementError

METHODS = ("vote", "coassociation")


@st.composite
def clusterings(draw, most_parties=5):
    n_rows, k, n = (
        draw(st.integers(2, 10)),
        draw(st.integers(1, 3)),
        draw(st.integers(min(2, most_parties), most_parties)),
    )
    row = st.lists(st.integers(-1, k - 1), min_size=n_rows, max_size=n_rows)
    return np.array(draw(st.lists(row, min_size=n, max_size=n)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(5))
def test_identical_parties_get_their_labels(method, seed):
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(4), rng.integers(0, 4, 40)]
    renamed = [rng.permutation(10)[:4][labels] for _ in range(3)]
    np.testing.assert_array_equal(consensus_labels(renamed, 4, method=method), labels)


@pytest.mark.parametrize("method", METHODS)
def test_names_and_order_of_parties_do_not_matter(method):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    labels = {name: np.where(rng.random(60) < 0.15, rng.integers(0, 3, 60), truth) for name in "abcde"}
    first = consensus_labels(labels, 3, method=method)
    again = consensus_labels({name: 7 - labels[name] for name in "ebdac"}, 3, method=method)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("method", METHODS)
def test_the_consensus_is_nearer_to_the_truth_than_the_parties(method):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 200)
    labels = [np.where(rng.random(200) < 0.25, rng.integers(0, 4, 200), truth) for _ in range(9)]
    alone = [adjusted_rand_score(truth, each) for each in labels]
    assert adjusted_rand_score(truth, consensus_labels(labels, 4, method=method)) > max(alone) + 0.2


@settings(deadline=None)
@given(codes=clusterings())
def test_coassociation_is_counted_pair_by_pair(codes):
    found = coassociation(codes)
    for i, first in enumerate(codes.T):
        for j, second in enumerate(codes.T):
            said = [(a, b) for a, b in zip(first, second, strict=True) if a >= 0 and b >= 0]
            assert found[i, j] == pytest.approx(sum(a == b for a, b in said) / len(said) if said else 0.0)


@settings(deadline=None, max_examples=100)
@given(codes=clusterings(most_parties=2))
def test_names_are_matched_as_well_as_they_can_be(codes):
    """No way of giving clusters names, one to one as far as these go, agrees with the reference in more rows."""
    reference, labels = codes
    names, clusters = (np.unique(each[each >= 0]) for each in codes)
    found = renamed_as(reference, labels)
    agreed = np.sum((found >= 0) & (reference >= 0) & (np.append(names, -1)[found] == reference))
    # As many spare names as there are clusters, which agree with nothing.
    best = max(
        sum(np.sum((labels == cluster) & (reference == name)) for cluster, name in zip(clusters, chosen, strict=True))
        for chosen in permutations([*names, *[-2] * len(clusters)], len(clusters))
    )
    assert agreed >= best
    for cluster in clusters:
        (position,) = set(found[labels == cluster])
        beside = reference[(labels == cluster) & (reference >= 0)]
        assert names[position] in beside if position >= 0 else not len(beside)
    np.testing.assert_array_equal(found[labels < 0], -1)


def test_names_are_matched_one_to_one():
    """Both clusters overlap most with the first of the reference's; the second is left for one of them."""
    reference = np.repeat([0, 1], [6, 2])
    np.testing.assert_array_equal(renamed_as(reference, np.array([5, 5, 5, 7, 7, 7, 7, 7])), [0, 0, 0, 1, 1, 1, 1, 1])


def test_a_party_with_few_clusters_is_no_reference():
    """It would agree with everybody, for it says nothing."""
    labels = [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 2, 2]]
    np.testing.assert_array_equal(consensus_labels(labels, 3), [0, 0, 1, 1, 2, 2])


def test_more_clusters_than_wanted():
    labels = [[0, 0, 1, 1, 2, 3], [0, 0, 1, 1, 1, 1]]
    np.testing.assert_array_equal(consensus_labels(labels, 2), [0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="more than n_clusters=2"):
        consensus_labels(labels[:1], 2)


def test_a_party_may_say_nothing_of_a_row():
    labels = {"a": [0, 0, 1, 1, -1], "b": [1, 1, 0, 0, 0], "c": [0, 0, 1, -1, 1]}
    for method in METHODS:
        np.testing.assert_array_equal(consensus_labels(labels, 2, method=method), [0, 0, 1, 1, 1])


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(AgreementError, match="shapes"):
        consensus_labels({"a": [0, 1], "b": [0, 1, 1]}, 2)
    with pytest.raises(AgreementError, match="whole numbers"):
        consensus_labels({"a": [0.5, 1.0]}, 2)
    with pytest.raises(AgreementError, match="No party"):
        consensus_labels({}, 2)
    with pytest.raises(AgreementError, match="Of 1 of 3 anchor rows"):
        consensus_labels([[0, 1, -1], [1, 0, -1]], 2)
    with pytest.raises(AgreementError, match="1 of 3 anchor rows are in clusters"):
        consensus_labels([[0, 1, -1], [-1, -1, 0]], 2)
    with pytest.raises(ValueError, match="method"):
        consensus_labels({"a": [0, 1]}, 2, method="union")
    with pytest.raises(ValueError, match="pairs"):
        consensus_labels({"a": np.zeros(20_001, dtype=int)}, 2, method="coassociation")
