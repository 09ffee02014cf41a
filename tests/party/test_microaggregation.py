import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.errors import ObfuscationError, SuppressedRowsWarning
from datacollab.party import Microaggregation


def naive_mdav(X, k):
    """The algorithm as Domingo-Ferrer and Torra state it, row by row."""

    def distance(i, point):
        return float(np.sum((X[i] - point) ** 2))

    def group_around(left, pivot):
        return sorted(left, key=lambda i: distance(i, X[pivot]))[:k]

    left, groups = list(range(len(X))), []
    while len(left) >= 3 * k:
        mean = np.mean(X[left], axis=0)
        first = max(left, key=lambda i: distance(i, mean))
        groups.append(group_around(left, first))
        left = [i for i in left if i not in groups[-1]]
        second = max(left, key=lambda i: distance(i, X[first]))
        groups.append(group_around(left, second))
        left = [i for i in left if i not in groups[-1]]
    if len(left) >= 2 * k:
        mean = np.mean(X[left], axis=0)
        groups.append(group_around(left, max(left, key=lambda i: distance(i, mean))))
        left = [i for i in left if i not in groups[-1]]
    return {frozenset(group) for group in [*groups, left]}


def groups_of(X, k):
    """Rows that are published as one."""
    published, *_ = Microaggregation(k).apply(X, np.zeros(len(X)))
    labels = np.unique(published, axis=0, return_inverse=True)[1].ravel()
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@st.composite
def tables(draw):
    """Rows without ties, targets of a few classes, and k."""
    n_rows, n_columns = draw(st.integers(8, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target = rng.integers(draw(st.integers(1, 4)), size=n_rows)
    return rng.normal(size=(n_rows, n_columns)) * 10.0 ** draw(st.integers(-6, 6)), target, draw(st.integers(2, 6))


def quietly(defence, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuppressedRowsWarning)
        return defence.apply(*arguments)[:2]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("n_rows", [5, 9, 10, 14, 15, 16, 31, 74])
def test_groups_are_those_of_the_algorithm(rng, n_rows, k):
    X = rng.normal(size=(n_rows, 3))
    assert groups_of(X, k) == naive_mdav(X, k)


@given(tables())
def test_every_group_has_k_to_2k_minus_1_rows(table):
    X, _, k = table
    sizes = [*map(len, groups_of(X, k))]
    assert k <= min(sizes) <= max(sizes) <= 2 * k - 1


@given(tables(), st.sampled_from(["suppress", "group"]))
def test_every_published_row_is_shared_by_k_rows(table, small_classes):
    X, target, k = table
    sizes = np.bincount(target)
    if small_classes == "suppress" and sizes.max() < k:
        return
    published, shared = quietly(Microaggregation(k, small_classes=small_classes), X, target)
    _, counts = np.unique(published, axis=0, return_counts=True)
    assert counts.min() >= k
    for label in np.unique(shared):
        rows = published[shared == label]
        if sizes[label] >= k and small_classes == "suppress":
            assert np.unique(rows, axis=0, return_counts=True)[1].min() >= k
            assert_allclose(rows.mean(axis=0), X[target == label].mean(axis=0), atol=1e-12 * np.abs(X).max())
    expected = target if small_classes == "group" else target[sizes[target] >= k]
    assert_array_equal(shared, expected)
    if small_classes == "group":
        assert_allclose(published.mean(axis=0), X.mean(axis=0), atol=1e-12 * np.abs(X).max())


@given(tables(), st.randoms(use_true_random=False))
def test_rows_in_another_order_are_published_alike(table, random):
    X, target, k = table
    order = np.array(random.sample(range(len(X)), len(X)))
    defence = Microaggregation(k, small_classes="group")
    published, *_ = defence.apply(X, target)
    permuted, *_ = defence.apply(X[order], target[order])
    assert_allclose(permuted, published[order], atol=1e-9 * np.abs(X).max())


def test_small_classes_are_suppressed_openly(rng):
    X, target = rng.normal(size=(23, 2)), np.array(["common"] * 20 + ["rare-secret"] * 3)
    with pytest.warns(SuppressedRowsWarning, match=r"3 of 23 rows are of classes with fewer than k=5 rows") as caught:
        published, shared, _ = Microaggregation(5).apply(X, target)
    assert "secret" not in str(caught[0].message)
    assert published.shape == (20, 2)
    assert set(shared) == {"common"}


@pytest.mark.parametrize(
    ("sizes", "joined"), [((20, 3, 3), [1, 2]), ((20, 9, 2), [1, 2]), ((20, 5, 1), [1, 2]), ((3, 3, 3), [0, 1, 2])]
)
def test_small_classes_are_pooled(rng, sizes, joined):
    """Among each other where they are k rows together, otherwise with the smallest of the others."""
    target = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(target), 2))
    published, shared, _ = Microaggregation(5, small_classes="group").apply(X, target)
    assert_array_equal(shared, target)
    pool = np.isin(target, joined)
    assert_allclose(published[pool].mean(axis=0), X[pool].mean(axis=0), atol=1e-12)
    assert np.unique(published[pool], axis=0, return_counts=True)[1].min() >= 5
    if not pool.all():
        assert_allclose(published[~pool].mean(axis=0), X[~pool].mean(axis=0), atol=1e-12)


def test_too_few_rows_are_not_shared(rng):
    with pytest.raises(ObfuscationError, match="4 rows are fewer than k=5"):
        Microaggregation(5, small_classes="group").apply(rng.normal(size=(4, 2)), np.zeros(4))
    with pytest.raises(ObfuscationError, match="none could be shared"):
        Microaggregation(5).apply(rng.normal(size=(8, 2)), np.arange(8))


def test_numeric_targets_are_cut_into_intervals(rng):
    y = rng.gamma(2.0, size=400)
    X = np.column_stack([y, rng.normal(size=400)])
    published, shared, _ = Microaggregation(4).apply(X, y)
    # Rows of a group have equal targets, the mean of theirs, so that these do not tell them apart.
    for row in np.unique(published, axis=0):
        group = (published == row).all(axis=1)
        assert_allclose(shared[group], y[group].mean(), rtol=1e-12)
        assert group.sum() >= 4
    order = np.argsort(y)
    for interval in np.split(order, 10):
        assert_allclose(published[interval].mean(axis=0), X[interval].mean(axis=0), atol=1e-12)
    one, *_ = Microaggregation(4, n_bins=1).apply(X, y)
    assert_array_equal(one, Microaggregation(4).apply(X, np.zeros(400))[0])
    assert not np.allclose(one, published)


@given(st.integers(0, 10**6), st.integers(8, 80), st.integers(2, 6), st.integers(1, 12))
def test_intervals_never_split_equal_targets_nor_fall_below_k(seed, n_rows, k, n_bins):
    rng = np.random.default_rng(seed)
    y = np.round(rng.normal(size=n_rows), 1)
    published, *_ = Microaggregation(k, n_bins=n_bins).apply(rng.normal(size=(n_rows, 2)), y)
    assert len(published) == n_rows
    assert np.unique(published, axis=0, return_counts=True)[1].min() >= k


def test_whole_numbers_are_classes_unless_bins_are_asked_for(rng):
    X, y = rng.normal(size=(40, 2)), np.repeat([0.0, 1.0, 2.0, 7.0], 10)
    assert_array_equal(Microaggregation(5).apply(X, y)[0], Microaggregation(5, n_bins=None).apply(X, y)[0])
    with pytest.raises(ObfuscationError, match="n_bins=3 needs numeric targets; got dtype <U"):
        Microaggregation(5, n_bins=3).apply(X, y.astype(int).astype(str))


def test_five_thousand_rows_take_seconds(rng):
    X = rng.normal(size=(5000, 16))
    start = time.process_time()
    published, *_ = Microaggregation(5).apply(X, np.zeros(5000))
    assert time.process_time() - start < 10
    assert len(np.unique(published, axis=0)) == 1000


def test_counts_of_many_kinds_are_averaged_and_none_is_shared_as_it_is(rng):
    """Whole numbers of more than twenty kinds: as classes nearly all rows would be kept back, or tell who is who."""
    X, y = rng.normal(size=(90, 3)), np.arange(90.0) ** 2
    rows, target, _ = Microaggregation(k=5).apply(X, y)
    assert len(rows) == 90
    assert not np.isin(target, y).any()
    values, counts = np.unique(target, return_counts=True)
    assert counts.min() >= 5
    assert_allclose(target.mean(), y.mean())
    with pytest.raises(ObfuscationError, match="90 of 90 rows are of classes"):
        Microaggregation(k=5, n_bins=None).apply(X, y)


@pytest.mark.parametrize(
    ("target", "numbers"),
    [
        (np.arange(80.0) % 20, False),
        (np.arange(84.0) % 21, True),
        (np.arange(80) // 2, False),
        (np.arange(80.0) // 2 / 2, True),
        (np.repeat(["a", "b"], 9), False),
    ],
)
def test_what_counts_as_numbers_where_nobody_says_so(rng, target, numbers):
    """Numbers are averaged in groups, and classes stay."""
    _, shared, _ = Microaggregation(2).apply(rng.normal(size=(len(target), 2)), target)
    assert np.array_equal(shared, target) is not numbers
