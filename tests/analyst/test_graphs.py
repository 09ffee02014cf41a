import naive
import numpy as np
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


def test_scale_std_is_a_standardised_target(small, numbers):
    standardised = (numbers - numbers.mean()) / numbers.std()
    assert_allclose(
        TargetSimilarityGraph(5, scale="std").weights(small, 50 * numbers).toarray(),
        TargetSimilarityGraph(5).weights(small, standardised).toarray(),
        atol=1e-12,
    )


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


def test_similarity_and_dissimilarity_add_up_to_the_neighbours(small, numbers):
    total = TargetSimilarityGraph(5).weights(small, numbers) + TargetDissimilarityGraph(5).weights(small, numbers)
    assert_allclose(total.toarray(), GeometricGraph(5).weights(small).toarray(), atol=1e-14)


def test_no_row_is_its_own_neighbour_among_duplicates(rng):
    A = np.repeat(rng.normal(size=(5, 2)), 4, axis=0)
    W = GeometricGraph(3).weights({"a": A}).toarray()
    assert (np.diag(W) == 0).all()
    assert_allclose(W, np.kron(np.eye(5), np.ones((4, 4)) - np.eye(4)))


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
    with pytest.raises(ValueError, match="NaN or infinity"):
        TargetSimilarityGraph(5).weights(small, np.full(40, np.nan))
    with pytest.raises(NumericalError, match="no two neighbouring anchor rows"):
        TargetSimilarityGraph(1).laplacian(small, np.arange(40))
    with pytest.raises(NumericalError, match="all anchor targets are equal"):
        TargetSimilarityGraph(1, scale="std").weights(small, np.ones(40))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of GeometricGraph"):
        GeometricGraph(0).weights(small)


@pytest.mark.slow
def test_approximate_neighbours_are_mostly_the_exact_ones(rng):
    pytest.importorskip("pynndescent")
    A = rng.normal(size=(3000, 6))
    A[100:104] = A[99]  # duplicates: a row is not always its own nearest neighbour
    exact, approximate = (GeometricGraph(8, approximate=fast).weights({"a": A}) for fast in (False, True))
    assert approximate.diagonal().sum() == 0
    assert approximate.sum() == pytest.approx(exact.sum())
    shared = approximate.minimum(exact).sum() / exact.sum()
    assert shared > 0.95
