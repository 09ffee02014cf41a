import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from datacollab import GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.errors import AgreementError, NumericalError


@pytest.fixture
def small(views):
    return {party: A[:40] for party, A in views.items()}


@pytest.fixture
def classes(anchor_classes):
    return anchor_classes[:40]


@pytest.fixture
def numbers(rng):
    return rng.normal(size=40)


def test_geometric_weights_by_a_loop(small):
    expected = naive.graph_weights(small, 5, lambda i, j: 1.0)
    assert_allclose(GeometricGraph(5).weights(small).toarray(), expected)
    assert_allclose(GeometricGraph(5).laplacian(small).toarray(), naive.laplacian(expected), atol=1e-14)


def test_class_weights_by_a_loop(small, classes):
    same = naive.graph_weights(small, 5, lambda i, j: float(classes[i] == classes[j]))
    other = naive.graph_weights(small, 5, lambda i, j: float(classes[i] != classes[j]))
    assert_allclose(TargetSimilarityGraph(5).weights(small, classes).toarray(), same)
    assert_allclose(TargetDissimilarityGraph(5).weights(small, classes).toarray(), other)
    names = np.array(["low", "mid", "high"])[classes]
    assert_allclose(TargetSimilarityGraph(5).weights(small, names).toarray(), same)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_numeric_weights_by_a_loop(small, numbers, scale):
    def similarity(i, j):
        return np.exp(-((numbers[i] - numbers[j]) ** 2) / scale**2)

    near = naive.graph_weights(small, 5, similarity)
    far = naive.graph_weights(small, 5, lambda i, j: 1 - similarity(i, j))
    assert_allclose(TargetSimilarityGraph(5, scale=scale).weights(small, numbers).toarray(), near, atol=1e-14)
    assert_allclose(TargetDissimilarityGraph(5, scale=scale).weights(small, numbers).toarray(), far, atol=1e-14)


def test_small_integer_types_do_not_wrap_around(small, rng):
    y = rng.integers(0, 255, size=40)
    expected = TargetSimilarityGraph(5, scale=50.0, task="regression").weights(small, y).toarray()
    for dtype in (np.uint8, np.float32, object):
        graph = TargetSimilarityGraph(5, scale=50.0, task="regression")
        assert_allclose(graph.weights(small, y.astype(dtype)).toarray(), expected, atol=1e-6)


def test_the_origin_does_not_matter():
    """Beyond 15 columns scikit-learn takes distances from inner products, which cancel far from the origin."""
    far = np.random.default_rng(0).normal(size=(200, 20)) + 1e7
    near = far - 1e7  # the same rows, with the rounding that the shift causes
    assert_allclose(GeometricGraph(10).weights({"a": far}).toarray(), GeometricGraph(10).weights({"a": near}).toarray())


def test_task_overrides_the_guess(small, classes):
    as_classes = TargetSimilarityGraph(5).weights(small, classes).toarray()
    as_numbers = TargetSimilarityGraph(5, task="regression").weights(small, classes).toarray()
    assert not np.allclose(as_classes, as_numbers)
    assert_allclose(TargetSimilarityGraph(5).weights(small, classes.astype(float)).toarray(), as_numbers)
    assert_allclose(
        TargetSimilarityGraph(5, task="classification").weights(small, classes.astype(float)).toarray(), as_classes
    )


def test_several_targets_by_a_loop(small, classes, numbers):
    """Weights are multiplied; what is dissimilar in one target is dissimilar."""
    other = np.roll(numbers, 7)

    def similarity(i, j):
        return float(classes[i] == classes[j]) * np.exp(-((numbers[i] - numbers[j]) ** 2) - (other[i] - other[j]) ** 2)

    columns = [np.array(["low", "mid", "high"])[classes], numbers, other]
    near = naive.graph_weights(small, 5, similarity)
    far = naive.graph_weights(small, 5, lambda i, j: 1 - similarity(i, j))
    assert_allclose(TargetSimilarityGraph(5).weights(small, columns).toarray(), near, atol=1e-14)
    assert_allclose(TargetDissimilarityGraph(5).weights(small, columns).toarray(), far, atol=1e-14)
    frame = pd.DataFrame({"class": columns[0], "first": numbers, "second": other})
    rows = [list(row) for row in zip(*columns, strict=True)]
    for same in (frame, rows, np.array(rows, dtype=object)):
        assert_allclose(TargetSimilarityGraph(5).weights(small, same).toarray(), near, atol=1e-14)


def test_a_vector_of_numbers_counts_by_its_euclidean_distance(small, rng):
    Y = rng.normal(size=(40, 3))
    expected = naive.graph_weights(small, 5, lambda i, j: np.exp(-np.sum((Y[i] - Y[j]) ** 2) / 0.49))
    assert_allclose(TargetSimilarityGraph(5, scale=0.7).weights(small, Y).toarray(), expected, atol=1e-14)
    turned = Y @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert_allclose(TargetSimilarityGraph(5, scale=0.7).weights(small, turned).toarray(), expected, atol=1e-12)
    standardised = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    assert_allclose(
        TargetSimilarityGraph(5, scale="std").weights(small, Y * [1.0, 20.0, 0.1]).toarray(),
        TargetSimilarityGraph(5).weights(small, standardised).toarray(),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", [TargetSimilarityGraph, TargetDissimilarityGraph])
@pytest.mark.parametrize("seed", range(3))
def test_unlabelled_rows_are_as_if_they_were_not_there(kind, seed):
    """The graph of the labelled rows alone, with zeros for all others; whatever stands for a missing target."""
    rng = np.random.default_rng(seed)
    known = rng.permutation(40) < (7, 20, 39)[seed]
    views = {"a": rng.normal(size=(40, 2)), "b": rng.normal(size=(40, 3))}
    classes, numbers = rng.integers(0, 3, size=40), rng.normal(size=40)
    gap = ~known

    def embedded(target):
        alone = kind(5).weights({party: A[known] for party, A in views.items()}, target).toarray()
        expected = np.zeros((40, 40))
        expected[np.ix_(known, known)] = alone
        return expected

    names = np.array(["low", "mid", "high"])[classes]
    forms = {
        "None among whole numbers": (np.where(gap, None, classes), classes[known]),
        "pandas": (pd.array(np.where(gap, None, classes), dtype="Int64"), classes[known]),
        "masked": (np.ma.masked_array(classes, mask=gap), classes[known]),
        "None among names": (np.where(gap, None, names), names[known]),
        "NaN among names": (
            [np.nan if missing else str(n) for missing, n in zip(gap, names, strict=True)],
            names[known],
        ),
        "NaN among numbers": (np.where(gap, np.nan, numbers), numbers[known]),
        "None among numbers": (np.where(gap, None, numbers), numbers[known]),
        "several": ([np.where(gap, np.nan, numbers), classes], [numbers[known], classes[known]]),
    }
    for form, (target, labelled) in forms.items():
        assert_allclose(kind(5).weights(views, target).toarray(), embedded(labelled), atol=1e-15, err_msg=form)


def with_entry(value):
    """Weights of 1, but for that of the last pair."""
    return lambda first: np.where(np.arange(len(first)) < len(first) - 1, 1.0, value)


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        (with_entry(np.nan), r"shape \(200,\) with 1 NaN, 0 infinite and 0 negative entries"),
        (with_entry(np.inf), "with 0 NaN, 1 infinite and 0 negative entries"),
        (with_entry(-1e-9), "with 0 NaN, 0 infinite and 1 negative entries"),
        (lambda first: -1, r"shape \(\) with 0 NaN, 0 infinite and 1 negative entries"),
        (lambda first: None, r"shape \(\) with 1 NaN"),
        (lambda first: np.ones(3), r"shape \(3,\) with 0 NaN"),
        (lambda first: np.ones(1), r"shape \(1,\) with 0 NaN"),
        (lambda first: np.ones((len(first), 1)), r"shape \(200, 1\) with 0 NaN"),
        (lambda first: ["much"] * len(first), "entries that are no numbers"),
    ],
)
@pytest.mark.parametrize("base", [GeometricGraph, TargetSimilarityGraph])
def test_own_weights_that_make_no_laplacian_are_refused(small, classes, weights, found, base):
    class Own(base):
        def pair_weights(self, first, second):
            return weights(np.zeros(200) if first is None else first)

    for asked in (Own(5).weights, Own(5).laplacian):
        with pytest.raises(
            ValueError, match=rf"Own.pair_weights returned .*{found}.*; expected .* shape \(200,\), or one"
        ):
            asked(small, classes)


def test_whole_numbers_are_classes_and_floats_numbers(small, rng):
    ages = rng.integers(20, 90, size=40)
    as_classes, as_numbers = (TargetSimilarityGraph(5).weights(small, each) for each in (ages, ages.astype(float)))
    assert_allclose(as_classes.toarray(), TargetSimilarityGraph(5).weights(small, ages.astype(str)).toarray())
    assert as_numbers.nnz > as_classes.nnz
    with pytest.raises(NumericalError, match="whole numbers are classes, floats are numbers"):
        TargetSimilarityGraph(5).laplacian(small, np.arange(40))


@given(seed=st.integers(0, 100), n_neighbors=st.integers(1, 6))
def test_laplacian_identity(seed, n_neighbors):
    """eq. laplacian-distance-identity: the quadratic form is half the weighted sum of squared distances."""
    rng = np.random.default_rng(seed)
    views = {"a": rng.normal(size=(15, 2)), "b": rng.normal(size=(15, 3))}
    graph = GeometricGraph(n_neighbors)
    B, W, Z = graph.laplacian(views).toarray(), graph.weights(views).toarray(), rng.normal(size=(15, 2))
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    assert_allclose(B, B.T)
    assert_allclose(B @ np.ones(15), 0, atol=1e-12)
    assert np.trace(Z.T @ B @ Z) == pytest.approx(0.5 * np.sum(W * distances))


def test_clear_errors(small, classes, numbers):
    with pytest.raises(ValueError, match="n_neighbors=40 must be below the number of anchor rows, 40"):
        GeometricGraph(40).weights(small)
    with pytest.raises(ValueError, match="needs the targets of the anchor rows"):
        TargetSimilarityGraph(5).weights(small)
    with pytest.raises(AgreementError, match=r"shape \(40,\); got \(39,\)"):
        TargetSimilarityGraph(5).weights(small, classes[1:])
    with pytest.raises(ValueError, match=r"n_neighbors=5 .* rows that have a target, 4\. Lower it"):
        TargetSimilarityGraph(5).weights(small, np.where(np.arange(40) < 4, numbers, np.nan))
    with pytest.raises(ValueError, match="contain infinity"):
        TargetSimilarityGraph(5).weights(small, np.where(np.arange(40) < 4, np.inf, numbers))
    with pytest.raises(AgreementError, match=r"shape \(40,\); got \(39,\)"):
        TargetSimilarityGraph(5).weights(small, [numbers, classes[1:]])
    with pytest.raises(NumericalError, match="no two neighbouring anchor rows"):
        TargetSimilarityGraph(1).laplacian(small, np.arange(40))
    with pytest.raises(NumericalError, match="all anchor targets are equal"):
        TargetSimilarityGraph(1, scale="std").weights(small, np.ones(40))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of GeometricGraph"):
        GeometricGraph(0).weights(small)


@pytest.mark.nightly
def test_approximate_neighbours_are_mostly_the_exact_ones(rng):
    pytest.importorskip("pynndescent")
    A = rng.normal(size=(3000, 6))
    A[100:104] = A[99]  # duplicates: a row is not always its own nearest neighbour
    exact, approximate = (GeometricGraph(8, approximate=fast).weights({"a": A}) for fast in (False, True))
    assert approximate.diagonal().sum() == 0
    assert approximate.sum() == pytest.approx(exact.sum())
    shared = approximate.minimum(exact).sum() / exact.sum()
    assert shared > 0.95
