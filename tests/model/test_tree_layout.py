"""Trees as one list of features: children, ends and depth as a naive reader finds them; rows in the right leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from datacollab.errors import ExchangeError
from datacollab.model.predictors._trees import LEAF, MOST_DEPTH, Trees, places_in_order, structure_of
from refusals import refused_with

N_COLUMNS = 3
TREES = st.recursive(st.just(LEAF), lambda inner: st.tuples(st.integers(0, N_COLUMNS - 1), inner, inner), max_leaves=40)
"""A tree is -1, or a feature and two trees."""


def listed(tree):
    return [tree] if tree == LEAF else [tree[0], *listed(tree[1]), *listed(tree[2])]


def read_one(features, place, depth=0):
    """Naive: right children and depth of the tree that begins here, and the place behind it."""
    if features[place] == LEAF:
        return {}, depth, place + 1
    left, left_depth, middle = read_one(features, place + 1, depth + 1)
    right, right_depth, end = read_one(features, middle, depth + 1)
    return {place: middle} | left | right, max(left_depth, right_depth), end


def leaf_of(row, features, thresholds):
    """Naive: the number of the leaf of the first tree, by walking with a list of thresholds of all nodes."""
    right, _, _ = read_one(features, 0)
    place = 0
    while features[place] != LEAF:
        place = place + 1 if row[features[place]] <= thresholds[place] else right[place]
    return sum(feature == LEAF for feature in features[:place])


@given(st.lists(TREES, min_size=1, max_size=5))
@settings(max_examples=200, deadline=None)
def test_structure_is_what_a_naive_reader_finds(trees):
    features = np.array([feature for tree in trees for feature in listed(tree)], dtype=np.int32)
    found = structure_of(features)
    place, depths, ends = 0, [], []
    for _ in trees:
        right, depth, place = read_one(features, place)
        for split, child in right.items():
            assert found.right[split] == child
        depths.append(depth)
        ends.append(place)
    assert found.ends.tolist() == ends
    assert (found.n_trees, found.depth) == (len(trees), max(depths))


@given(TREES)
@settings(max_examples=100, deadline=None)
def test_a_list_that_ends_too_early_is_refused(tree):
    features = listed(tree)
    if len(features) > 1:
        with pytest.raises(ExchangeError, match="not complete"):
            structure_of(np.array(features[:-1], dtype=np.int32))


def test_a_deep_tree_is_refused_before_it_is_walked():
    """Each split's left child is the next split: a chain."""
    chain = np.array([0] * (MOST_DEPTH + 1) + [LEAF] * (MOST_DEPTH + 2), dtype=np.int32)
    with refused_with("TOO_LARGE"):
        structure_of(chain)
    assert structure_of(chain[1:-1]).depth == MOST_DEPTH


@given(
    TREES,
    st.sampled_from(["float32", "float64"]),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=200, deadline=None)
def test_rows_fall_into_the_leaves_of_a_naive_walk(tree, precision, seed):
    """Also rows that lie on thresholds, of which there are many: both are small integers or thirds of them."""
    generator = np.random.default_rng(seed)
    features = np.array(listed(tree), dtype=np.int32)
    is_leaf = features == LEAF
    thresholds = generator.integers(-3, 4, size=len(features)) / 3
    rows = generator.integers(-3, 4, size=(20, N_COLUMNS)) / 3
    n_leaves = int(is_leaf.sum())
    step = Trees(
        N_COLUMNS,
        features,
        thresholds[~is_leaf],
        np.arange(n_leaves, dtype=np.float64)[:, None],
        precision=precision,
    )
    compared = rows.astype(precision).astype(np.float64)
    expected = [leaf_of(row, features, thresholds) for row in compared]
    assert step(rows)[:, 0].tolist() == expected


def test_numbers_that_single_precision_cannot_part_are_parted_in_double():
    step = {
        precision: Trees(
            1,
            np.array([0, LEAF, LEAF], dtype=np.int32),
            np.array([1.0]),
            np.array([[0.0], [1.0]]),
            precision=precision,
        )
        for precision in Trees.PRECISIONS
    }
    rows = np.array([[1.0], [1.0 + 1e-12], [1e300], [-1e300]])
    assert step["float64"](rows)[:, 0].tolist() == [0, 1, 1, 0]
    assert step["float32"](rows)[:, 0].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("parameters", [{}, {"max_leaf_nodes": 9}], ids=["depth first", "best first"])
def test_nodes_of_a_fitted_tree_in_order(parameters):
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(80, 3)), generator.normal(size=80)
    tree = DecisionTreeRegressor(random_state=0, **parameters).fit(X, y).tree_

    def from_the_root(node):
        if tree.children_left[node] == LEAF:
            return [node]
        return [node, *from_the_root(tree.children_left[node]), *from_the_root(tree.children_right[node])]

    assert places_in_order(tree.children_left, tree.children_right).tolist() == from_the_root(0)
