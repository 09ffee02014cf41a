"""Trees as one list of features: rows fall into the leaves that a naive reader finds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollab.model._trees import LEAF, Trees

N_COLUMNS = 3
TREES = st.recursive(st.just(LEAF), lambda inner: st.tuples(st.integers(0, N_COLUMNS - 1), inner, inner), max_leaves=40)
"""A tree is -1, or a feature and two trees."""


def listed(tree):
    return [tree] if tree == LEAF else [tree[0], *listed(tree[1]), *listed(tree[2])]


def read_one(features, place):
    """Naive: right children of the tree that begins here, and the place behind it."""
    if features[place] == LEAF:
        return {}, place + 1
    left, middle = read_one(features, place + 1)
    right, end = read_one(features, middle)
    return {place: middle} | left | right, end


def leaf_of(row, features, thresholds):
    """Naive: the number of the leaf of the first tree, by walking with a list of thresholds of all nodes."""
    right, _ = read_one(features, 0)
    place = 0
    while features[place] != LEAF:
        place = place + 1 if row[features[place]] <= thresholds[place] else right[place]
    return sum(feature == LEAF for feature in features[:place])


@given(TREES, st.sampled_from(["float32", "float64"]), st.integers(0, 2**32 - 1))
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
        N_COLUMNS, features, thresholds[~is_leaf], np.arange(n_leaves, dtype=np.float64)[:, None], precision=precision
    )
    compared = rows.astype(precision).astype(np.float64)
    expected = [leaf_of(row, features, thresholds) for row in compared]
    assert step(rows)[:, 0].tolist() == expected


def test_numbers_that_single_precision_cannot_part_are_parted_in_double():
    step = {
        precision: Trees(
            1, np.array([0, LEAF, LEAF], dtype=np.int32), np.array([1.0]), np.array([[0.0], [1.0]]), precision=precision
        )
        for precision in Trees.PRECISIONS
    }
    rows = np.array([[1.0], [1.0 + 1e-12], [1e300], [-1e300]])
    assert step["float64"](rows)[:, 0].tolist() == [0, 1, 1, 0]
    assert step["float32"](rows)[:, 0].tolist() == [0, 0, 1, 0]
