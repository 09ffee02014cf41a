import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits

from datacollab.anchor import SMOTEAnchor
from datacollab.errors import AnchorError


def make_sources(n_per_class=10, n_classes=10, n_features=5, seed=0):
    generator = np.random.RandomState(seed)
    y = np.repeat(np.arange(n_classes), n_per_class)
    return generator.standard_normal((y.size, n_features)) + 3 * y[:, np.newaxis], y


def segment_of(row, sources):
    """The pair of sources and the weight whose interpolation comes nearest to a row, and how near."""
    start, end = (index.ravel() for index in np.indices((len(sources), len(sources))))
    step = sources[end] - sources[start]
    length = (step**2).sum(axis=1)
    weight = np.divide(((row - sources[start]) * step).sum(axis=1), length, out=np.zeros(len(start)), where=length > 0)
    weight = weight.clip(0, 1)
    distance = np.linalg.norm(sources[start] + weight[:, np.newaxis] * step - row, axis=1)
    best = distance.argmin()
    return start[best], end[best], weight[best], distance[best]


def nearest_others(sources, n_neighbors):
    distance = np.linalg.norm(sources[:, np.newaxis] - sources, axis=2)
    np.fill_diagonal(distance, np.inf)
    return distance.argsort(axis=1)[:, :n_neighbors]


def rows_in(rows, table):
    return (rows[:, np.newaxis] == np.asarray(table)).all(axis=2).any(axis=1)


@pytest.mark.parametrize("include_sources", [False, True])
@pytest.mark.parametrize("n_neighbors", [1, 3, 10])
def test_every_row_lies_between_a_source_and_one_of_its_neighbors_in_its_class(include_sources, n_neighbors):
    X, y = make_sources(n_per_class=6, n_classes=3)
    sampler = SMOTEAnchor(60, n_neighbors=n_neighbors, include_sources=include_sources)
    anchor, target = sampler.sample(X, y, random_state=0)
    n_included = 18 if include_sources else 0
    for row, label in zip(anchor[n_included:], target[n_included:], strict=True):
        members = X[y == label]
        start, end, _, distance = segment_of(row, members)
        neighbors = nearest_others(members, n_neighbors)
        assert distance < 1e-12
        assert end in neighbors[start] or start in neighbors[end]


def test_all_neighbors_and_all_weights_are_drawn():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    anchor, _ = SMOTEAnchor(4000, n_neighbors=1).sample(X, random_state=0)
    pairs = [segment_of(row, X) for row in anchor]
    weights = np.array([weight for *_, weight, _ in pairs])
    assert {frozenset(pair[:2]) for pair in pairs} == {frozenset(p) for p in [(0, 1), (0, 2), (2, 3)]}
    assert_allclose(np.quantile(weights, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.05)


def test_the_papers_anchor():
    X, y = load_digits(return_X_y=True)
    first = np.concatenate([np.flatnonzero(y == label)[:10] for label in range(10)])
    anchor, target = SMOTEAnchor(n_samples=1000, n_neighbors=10, include_sources=True).sample(X[first], y[first])
    assert anchor.shape == (1000, 64)
    assert anchor.dtype == np.float64
    assert_array_equal(np.bincount(target), np.full(10, 100))
    assert_array_equal(anchor[:100], X[first])
    assert_array_equal(target[:100], y[first])


@given(
    sizes=st.lists(st.integers(2, 8), min_size=1, max_size=5),
    n_samples=st.integers(5, 60),
    n_neighbors=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_totals_are_balanced_and_no_source_is_returned(sizes, n_samples, n_neighbors, seed):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.RandomState(seed).standard_normal((y.size, 3))
    anchor, target = SMOTEAnchor(n_samples, n_neighbors=n_neighbors).sample(X, y, random_state=seed)
    quotient, remainder = divmod(n_samples, len(sizes))
    assert anchor.shape == (n_samples, 3)
    assert_array_equal(np.bincount(target), [quotient + (label < remainder) for label in range(len(sizes))])
    assert not rows_in(anchor, X).any()
    for label in range(len(sizes)):
        members, rows = X[y == label], anchor[target == label]
        assert (rows >= members.min(axis=0) - 1e-12).all()
        assert (rows <= members.max(axis=0) + 1e-12).all()


@given(values=st.lists(st.integers(-3, 3), min_size=2, max_size=12), with_target=st.booleans())
def test_no_source_is_returned_when_sources_repeat(values, with_target):
    X = np.array(values, dtype=float).reshape(-1, 1)
    y = X[:, 0] if with_target else None
    if np.unique(X).size == 1:
        with pytest.raises(AnchorError, match="one distinct source"):
            SMOTEAnchor(20).sample(X, y, random_state=0)
    else:
        anchor, _ = SMOTEAnchor(20).sample(X, y, random_state=0)
        assert not rows_in(anchor, X).any()


def test_rows_rounded_onto_a_source_are_drawn_again():
    X = np.array([[0.0], [5e-324], [1.0], [2.0], [3.0]])
    anchor, _ = SMOTEAnchor(500, n_neighbors=4).sample(X, random_state=0)
    assert not rows_in(anchor, X).any()


@pytest.mark.parametrize("y", [None, [0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0]], ids=["none", "classes", "numbers"])
def test_sources_without_a_number_between_them_are_refused(y):
    X = np.array([0.0, 5e-324, 0.0, 5e-324]).reshape(-1, 1)
    with pytest.raises(AnchorError, match="no other row lies"):
        SMOTEAnchor(10).sample(X, y, random_state=0)


def test_one_source_in_some_class_only():
    X, y = make_sources(n_per_class=4, n_classes=3)
    X, y = X[3:], y[3:]
    anchor, target = SMOTEAnchor(30, include_sources=True).sample(X, y, random_state=0)
    assert_array_equal(anchor[target == 0], np.repeat(X[:1], 10, axis=0))
    assert np.unique(anchor[target == 1], axis=0).shape[0] == 10
    with pytest.raises(AnchorError, match="1 of 3 classes in y_source have one distinct source") as caught:
        SMOTEAnchor(30).sample(X, y, random_state=0)
    assert str(X[0, 0])[:6] not in str(caught.value)


def test_more_sources_than_rows_in_a_class():
    X, y = make_sources(n_per_class=12, n_classes=3)
    with pytest.raises(AnchorError, match="n_samples to at least 36") as caught:
        SMOTEAnchor(35, include_sources=True).sample(X, y)
    assert "1 of 3 classes" in str(caught.value)
    anchor, _ = SMOTEAnchor(36, include_sources=True).sample(X, y)
    assert_array_equal(anchor, X)


def test_fewer_rows_than_classes():
    with pytest.raises(AnchorError, match="at least 10"):
        SMOTEAnchor(9).sample(*make_sources())


@pytest.mark.parametrize("include_sources", [False, True])
def test_regression_target_is_interpolated_with_the_weight_of_the_row(include_sources):
    X, _ = make_sources(n_per_class=8, n_classes=1, n_features=4)
    y = np.random.RandomState(1).standard_normal(8)
    anchor, target = SMOTEAnchor(50, n_neighbors=3, include_sources=include_sources).sample(X, y, random_state=0)
    assert target.dtype == np.float64
    neighbors = nearest_others(X, 3)
    n_included = 8 if include_sources else 0
    assert_array_equal(target[:n_included], y[:n_included])
    for row, value in zip(anchor[n_included:], target[n_included:], strict=True):
        start, end, weight, distance = segment_of(row, X)
        assert distance < 1e-12
        assert end in neighbors[start] or start in neighbors[end]
        assert_allclose(value, (1 - weight) * y[start] + weight * y[end], atol=1e-9)


def test_equal_sources_have_their_mean_target_in_regression():
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([1.0, 3.0, 5.0])
    anchor, target = SMOTEAnchor(50).sample(X, y, random_state=0)
    assert_allclose(target, 2 + 3 * anchor[:, 0])


def test_task_says_how_numbers_are_read():
    X, y = make_sources(n_per_class=5, n_classes=2)
    _, as_classes = SMOTEAnchor(40, task="classification").sample(X, y.astype(float), random_state=0)
    _, as_numbers = SMOTEAnchor(40, task="regression").sample(X, y, random_state=0)
    assert set(as_classes) == {0.0, 1.0}
    assert as_numbers.dtype == np.float64
    _, automatic = SMOTEAnchor(40).sample(X, y.astype(float), random_state=0)
    assert_array_equal(automatic, as_numbers)


def test_sampler_keeps_no_source_rows_and_leaves_them_alone():
    X, y = make_sources()
    before = X.copy()
    sampler = SMOTEAnchor(200, include_sources=True)
    parameters = dict(vars(sampler))
    anchor, _ = sampler.sample(X, y, random_state=0)
    anchor[:] = 0
    assert vars(sampler) == parameters
    assert_array_equal(X, before)
    assert clone(sampler).get_params() == sampler.get_params()


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        ([0, 1], "auto", "shape"),
        ([[0], [1], [0], [1]], "auto", "shape"),
        ([0.0, 1.0, np.nan, 2.0], "auto", "NaN"),
        (np.array(["secret", 1, 2, "b"], dtype=object), "auto", "cannot be sorted"),
        (["secret", "b", "c", "d"], "regression", "finite numbers"),
        (np.array([1.0, 2.0, np.inf, 3.0], dtype=object), "regression", "NaN or infinity"),
    ],
)
def test_unusable_targets_are_refused_without_showing_them(y, task, message):
    X, _ = make_sources(n_per_class=4, n_classes=1)
    with pytest.raises(AnchorError, match=message) as caught:
        SMOTEAnchor(20, task=task).sample(X, y)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("sizes", [(5, 5), (12, 2, 30, 4), (40, 15, 11, 9, 3, 3)], ids=str)
def test_classes_are_interpolated_as_by_imbalanced_learn(sizes):
    smote = pytest.importorskip("imblearn.over_sampling").SMOTE
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = make_sources(n_per_class=len(y), n_classes=1)[0]
    sampler = SMOTEAnchor(60 * len(sizes), n_neighbors=1, include_sources=True)
    anchor, target = sampler.sample(X, y, random_state=3)
    totals = dict.fromkeys(range(len(sizes)), 60)
    oracle = smote(sampling_strategy=totals, k_neighbors=1, random_state=np.random.RandomState(3))
    expected, labels = oracle.fit_resample(X, y)
    assert_array_equal(anchor, expected)
    assert_array_equal(target, labels)
