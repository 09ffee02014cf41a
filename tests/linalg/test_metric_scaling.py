"""The metric scaling against the formula written out, and against what distances have to be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from datacollab.linalg import metric_scaling


def naive(Z, representations):
    """As printed: C, QR of the centred Z, singular value decomposition of QᵀC, W = R⁺ U Σ."""
    C = np.hstack([A - A.mean(axis=0) for A in representations]) / np.sqrt(len(representations))
    Q, R = np.linalg.qr(Z - Z.mean(axis=0))
    U, S, _ = np.linalg.svd(Q.T @ C, full_matrices=False)
    return np.linalg.pinv(R) @ U * S


@pytest.fixture
def drawn(request):
    rng = np.random.default_rng(getattr(request, "param", 0))
    return rng.normal(size=(40, 3)), [rng.normal(size=(40, d)) * 10.0 ** rng.integers(-2, 3) for d in (2, 4, 5)]


@pytest.mark.parametrize("drawn", range(5), indirect=True)
def test_it_is_the_formula(drawn):
    Z, representations = drawn
    W, _ = metric_scaling(Z, representations)
    np.testing.assert_allclose(pdist(Z @ W), pdist(Z @ naive(Z, representations)), rtol=1e-9)


@pytest.mark.parametrize("drawn", range(5), indirect=True)
def test_it_is_least_squares(drawn):
    """Distances after W are those of the regression of all representations on Z."""
    Z, representations = drawn
    W, kept = metric_scaling(Z, representations)
    C = np.hstack([A - A.mean(axis=0) for A in representations]) / np.sqrt(3)
    fitted = (Z - Z.mean(axis=0)) @ np.linalg.lstsq(Z - Z.mean(axis=0), C, rcond=None)[0]
    np.testing.assert_allclose(pdist(Z @ W), pdist(fitted), rtol=1e-9)
    assert kept == pytest.approx(1 - np.sum((C - fitted) ** 2) / np.sum(C**2), abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31 - 1), n_columns=st.integers(1, 5), n_parties=st.integers(1, 4))
def test_squared_distances_are_the_parties_mean_where_the_space_holds_all(seed, n_columns, n_parties):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(20, n_columns))
    representations = [latent @ rng.normal(size=(n_columns, n_columns)) + rng.normal() for _ in range(n_parties)]
    Z = np.linalg.qr(latent - latent.mean(axis=0))[0] + 3.0
    W, kept = metric_scaling(Z, representations)
    wanted = np.mean([pdist(A) ** 2 for A in representations], axis=0)
    np.testing.assert_allclose(pdist(Z @ W) ** 2, wanted, rtol=1e-6, atol=1e-9)
    assert kept == pytest.approx(1.0, abs=1e-9)


def test_distances_never_grow_beyond_the_parties_mean(drawn):
    """What is projected is no longer than what it is projected from, in the mean over all pairs."""
    Z, representations = drawn
    W, kept = metric_scaling(Z, representations)
    mean = np.mean([np.sum(pdist(A) ** 2) for A in representations])
    assert np.sum(pdist(Z @ W) ** 2) == pytest.approx(kept * mean)
    assert 0 < kept < 1


def test_columns_are_principal_axes(drawn):
    Z, representations = drawn
    scaled = (Z - Z.mean(axis=0)) @ metric_scaling(Z, representations)[0]
    covariance = scaled.T @ scaled
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-9 * covariance.max())
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert (scaled[np.abs(scaled).argmax(axis=0), np.arange(scaled.shape[1])] > 0).all()


def test_a_common_space_of_lower_rank_is_no_trouble(drawn):
    Z, representations = drawn
    twice = np.hstack([Z, Z @ [[1.0], [2.0], [0.0]], np.ones((40, 1))])
    np.testing.assert_allclose(
        pdist(twice @ metric_scaling(twice, representations)[0]), pdist(Z @ metric_scaling(Z, representations)[0])
    )


def test_fewer_directions_than_the_common_space_has_give_fewer_columns(drawn):
    Z, _ = drawn
    W, _ = metric_scaling(Z, [Z[:, :1] * 5.0, Z[:, :1]])
    assert W.shape == (3, 1)
