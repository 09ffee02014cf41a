"""Samplers of anchors: what all do with sources that they cannot use, and the rows of each."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from datacollab.anchor import AnchorSampler, GaussianAnchor, SampleAnchor, SMOTEAnchor, UniformAnchor
from datacollab.errors import AnchorError

SAMPLERS = [SMOTEAnchor(3), UniformAnchor(3), GaussianAnchor(3), SampleAnchor(3)]
UNUSABLE = {
    "complex": (np.full((3, 2), 4711 + 1j), "real numbers"),
    "infinite": ([[4711.0, np.inf], [1.0, 2.0], [3.0, 4.0]], "NaN or infinity in 1 of 3 rows"),
    "infinite beside text": (pd.DataFrame({"name": ["secret", "other", "third"], "a": [4711, np.inf, 2]}), "infinity"),
    "one-dimensional": ([4711.0, 1.0], r"shape \(2,\)"),
    "three-dimensional": (np.full((2, 2, 2), 4711.0), r"shape \(2, 2, 2\)"),
    "empty": (np.empty((0, 3)), "empty"),
    "sparse": (sparse.csr_array(np.eye(3)), "sparse"),
}


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize("unusable", UNUSABLE)
def test_unusable_sources_are_refused_without_showing_them(sampler, unusable):
    X, message = UNUSABLE[unusable]
    with pytest.raises(AnchorError, match=message) as caught:
        sampler.sample(X)
    assert "secret" not in str(caught.value)
    assert "4711" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_data_frames_and_integers_give_the_same_float64_anchor_with_their_columns(sampler):
    X = np.random.RandomState(0).randint(100, size=(8, 2))
    expected, _ = sampler.sample(X, random_state=0)
    assert isinstance(sampler, AnchorSampler)
    assert expected.dtype == np.float64
    assert expected.shape == (3, 2)
    assert type(expected) is np.ndarray
    for frame in (pd.DataFrame, pl.DataFrame):
        anchor, _ = sampler.sample(frame({"b": X[:, 0], "a": X[:, 1]}), random_state=0)
        assert type(anchor) is frame
        assert list(anchor.columns) == ["b", "a"]
        assert_array_equal(anchor, expected)


@pytest.mark.parametrize("target", [None, np.arange(80) % 4, np.arange(80) / 7], ids=["none", "classes", "numbers"])
@pytest.mark.parametrize(
    "sampler",
    [
        SMOTEAnchor(20),
        UniformAnchor(20),
        GaussianAnchor(20),
        GaussianAnchor(20, covariance="diagonal"),
        SampleAnchor(20),
    ],
)
def test_same_seed_same_anchor(sampler, target):
    X = np.random.default_rng(0).normal(size=(80, 3))
    one, two, other = (clone(sampler).sample(X, target, random_state=seed) for seed in (5, 5, 6))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])
    assert not np.array_equal(one[0], other[0])


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_repr_shows_parameters_only(sampler):
    sampler.sample(np.eye(5) * 4711, random_state=0)
    assert repr(sampler).startswith(f"{type(sampler).__name__}(n_samples=3")
    assert "4711" not in repr(sampler)


@pytest.mark.parametrize("sampler", [SMOTEAnchor(20), SampleAnchor(20), GaussianAnchor(20), UniformAnchor(20)])
def test_no_seed_of_numpy_makes_an_anchor_predictable(sampler):
    """Who guesses the anchor can test the guess against a share, to the last digit."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(sampler.sample(X)[0])
    assert not np.array_equal(*drawn)


@pytest.fixture
def sources():
    generator = np.random.RandomState(0)
    return generator.standard_normal((60, 4)) @ generator.standard_normal((4, 4)) + [0, 10, -5, 2]


@pytest.mark.parametrize("seed", range(3))
def test_full_has_mean_and_covariance_of_the_source(sources, seed):
    anchor, target = GaussianAnchor(200_000).sample(sources, random_state=seed)
    assert target is None
    assert_allclose(anchor.mean(axis=0), sources.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(anchor.T), np.cov(sources.T), atol=0.1)


def test_diagonal_has_the_variances_only(sources):
    anchor, _ = GaussianAnchor(200_000, covariance="diagonal").sample(sources, random_state=0)
    assert_allclose(anchor.mean(axis=0), sources.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(anchor.T), np.diag(sources.var(axis=0, ddof=1)), atol=0.1)


def test_fewer_sources_than_columns_stay_in_their_affine_span():
    X = np.random.RandomState(0).standard_normal((5, 60))
    anchor, _ = GaussianAnchor(10_000).sample(X, random_state=0)
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4]
    offset = anchor - X.mean(axis=0)
    assert_allclose(offset @ basis.T @ basis, offset, atol=1e-10)
    assert_allclose(np.cov((anchor @ basis.T).T), np.cov((X @ basis.T).T), atol=3)


def test_one_row_has_no_covariance():
    with pytest.raises(AnchorError, match="at least two"):
        GaussianAnchor().sample([[1.0, 2.0]])


@given(n_rows=st.integers(1, 40), data=st.data())
def test_rows_are_distinct_source_rows_with_their_targets(n_rows, data):
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    n_samples = data.draw(st.integers(1, n_rows))
    anchor, target = SampleAnchor(n_samples).sample(X, X[:, 0] / 2, random_state=data.draw(st.integers(0, 99)))
    positions = anchor[:, 0] / 2
    assert np.unique(positions).size == n_samples
    assert_array_equal(anchor, X[positions.astype(int)])
    assert_array_equal(target, positions)


def test_balanced_totals_and_random_order():
    y = np.repeat(["a", "b", "c"], [20, 50, 500])
    X = np.arange(570.0).reshape(-1, 1)
    anchor, target = SampleAnchor(50, balanced=True).sample(X, pd.Series(y), random_state=0)
    assert [int((target == label).sum()) for label in "abc"] == [17, 17, 16]
    assert np.unique(anchor).size == 50
    assert_array_equal(target, y[anchor[:, 0].astype(int)])
    assert list(target) != sorted(target)


def test_every_row_of_a_class_is_as_likely():
    y = np.repeat([0, 1], [4, 12])
    X = np.arange(16.0).reshape(-1, 1)
    generator = np.random.RandomState(0)
    chosen = np.concatenate(
        [SampleAnchor(4, balanced=True).sample(X, y, random_state=generator)[0].ravel() for _ in range(1200)]
    )
    expected = np.where(y == 0, 1200 * 2 / 4, 1200 * 2 / 12)
    assert (abs(np.bincount(chosen.astype(int)) - expected) < 5 * np.sqrt(expected)).all()


def test_too_few_rows_are_refused():
    with pytest.raises(AnchorError, match="5 rows, too few for n_samples=6"):
        SampleAnchor(6).sample(np.eye(5))
    with pytest.raises(AnchorError, match=r"1 of 2 classes.*at most 2"):
        SampleAnchor(4, balanced=True).sample(np.eye(5), [0, 1, 1, 1, 1])
    with pytest.raises(AnchorError, match="needs class labels"):
        SampleAnchor(4, balanced=True).sample(np.eye(5))


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(bounds=arrays(np.float64, (2, 4), elements=FINITE), seed=st.integers(0, 1000))
def test_rows_stay_inside_any_finite_box(bounds, seed):
    low, high = bounds.min(axis=0), bounds.max(axis=0)
    anchor, target = UniformAnchor(20, low=low, high=high).sample(random_state=seed)
    assert anchor.shape == (20, 4)
    assert target is None
    assert (anchor >= low).all()
    assert (anchor <= high).all()


def test_rows_fill_the_box_evenly():
    anchor, _ = UniformAnchor(50_000, low=-2, high=[0, 4]).sample(random_state=0)
    assert_allclose(np.quantile(anchor, [0.25, 0.5, 0.75], axis=0).T, [[-1.5, -1, -0.5], [-0.5, 1, 2.5]], atol=0.06)
    assert abs(np.corrcoef(anchor.T)[0, 1]) < 0.02


def test_bounds_of_the_source_fill_in_for_missing_ones():
    X = np.array([[0.0, 10.0], [1.0, 30.0]])
    anchor, _ = UniformAnchor(2000).sample(X, random_state=0)
    assert_allclose(anchor.min(axis=0), [0, 10], atol=0.05)
    assert_allclose(anchor.max(axis=0), [1, 30], atol=0.05)
    anchor, _ = UniformAnchor(2000, low=-5).sample(X, random_state=0)
    assert_allclose(anchor.min(axis=0), -5, atol=0.05)
    assert_allclose(anchor.max(axis=0), [1, 30], atol=0.05)


def test_single_numbers_with_a_number_of_columns():
    assert UniformAnchor(7, low=0, high=1, n_features=3).sample()[0].shape == (7, 3)


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, None, "'low' is missing"),
        ({"low": 0}, None, "'high' is missing"),
        ({"low": 0, "high": 1}, None, "number of columns is unknown"),
        ({"low": [0, 0], "high": [1, 1, 1]}, None, "do not agree"),
        ({"low": [0, 0], "high": 1, "n_features": 3}, None, "do not agree"),
        ({"low": [0, 0]}, [[1, 2, 3]], "do not agree"),
        ({"low": [], "high": []}, None, "do not agree"),
        ({"low": [0, 2, 0], "high": 1}, None, r"low is above high in 1 of 3 columns \(first: \[1\]\)"),
        ({"low": [0, np.nan], "high": 1}, None, "low must be a finite number"),
        ({"low": 0, "high": [[1, 2]]}, None, "high must be a finite number"),
        ({"low": 0, "high": ["one", "two"]}, None, "high must be a number"),
    ],
)
def test_unusable_boxes_are_refused(parameters, X, message):
    with pytest.raises(AnchorError, match=message):
        UniformAnchor(5, **parameters).sample(X)
