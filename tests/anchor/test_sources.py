"""What every sampler does with sources it cannot use."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

import datacollab as dc
from datacollab.anchor import AnchorSampler, GaussianAnchor, SampleAnchor, SMOTEAnchor, UniformAnchor
from datacollab.errors import AnchorError, ObfuscationError

SAMPLERS = [SMOTEAnchor(3), UniformAnchor(3), GaussianAnchor(3), SampleAnchor(3)]
UNUSABLE = {
    "text": ([["secret", 1], ["other", 2], ["third", 3]], "real numbers"),
    "text frame": (pd.DataFrame({"name": ["secret", "other", "third"]}), "real numbers"),
    "polars text frame": (pl.DataFrame({"name": ["secret", "other", "third"]}), "real numbers"),
    "complex": (np.full((3, 2), 4711 + 1j), "real numbers"),
    "missing": ([[4711.0, np.nan], [1.0, 2.0], [3.0, 4.0]], "NaN or infinity in 1 of 3 rows"),
    "polars missing": (pl.DataFrame({"a": [4711, None, 2]}), "NaN or infinity in 1 of 3 rows"),
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


def test_columns_in_another_order_than_the_anchors_are_refused():
    rows = np.random.default_rng(0).normal(size=(120, 3))
    public = pd.DataFrame(rows[:60], columns=["dose", "age", "bmi"])
    anchor, _ = SMOTEAnchor(50).sample(public, random_state=0)
    own = pd.DataFrame(rows[60:], columns=["dose", "age", "bmi"])
    party = dc.Party("a", dc.obfuscator("pca", 2))
    party.fit(own, np.arange(60) % 2).share(anchor)
    with pytest.raises(ObfuscationError, match="another order"):
        dc.Party("b", dc.obfuscator("pca", 2)).fit(own[["age", "dose", "bmi"]], np.arange(60) % 2).share(anchor)
