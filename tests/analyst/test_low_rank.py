"""Landmarks by randomly pivoted Cholesky, and ridge regression restricted to them."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern

from datacollab.analyst._nystroem import (
    LandmarkFeatures,
    draw_pivots,
    feature_gram,
    fit_smoother,
    landmark_root,
    smoother_trace,
)
from datacollab.linalg import Kernel

RBF = Kernel(metric="rbf", parameters={"gamma": 0.3})


def pivoted(kernel, A, rank, seed=0):
    return draw_pivots(kernel, A, rank, np.random.default_rng(seed))


def restricted(kernel, A, S, Z, alpha):
    """Return the restricted ridge regression of Z: its values, its coefficients, and its factor."""
    features = LandmarkFeatures.prepare(kernel, A, S, alpha)
    factor = feature_gram(features)
    weights = scipy.linalg.cho_solve((factor, True), features.moments(Z))
    coefficients = features.expansion(weights)
    return features.combine(coefficients), coefficients, factor


def nystroem(K, S):
    return K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)]) @ K[S]


@given(seed=st.integers(0, 1000), rank=st.integers(1, 40))
def test_the_factor_is_the_nystroem_approximation(seed, rank):
    A = np.random.default_rng(seed).normal(size=(60, 3))
    found, K = pivoted(RBF, A, rank, seed), RBF.gram(A)
    assert len(found.pivots) == len(set(found.pivots)) == rank
    approximation = found.factor @ found.factor.T
    assert_allclose(approximation, nystroem(K, found.pivots), atol=1e-6)
    assert_allclose(found.unexplained, np.diag(K - approximation), atol=1e-10)
    assert np.linalg.eigvalsh(K - approximation).min() > -1e-10
    assert_allclose(np.triu(found.factor[found.pivots], 1), 0, atol=1e-10)


def test_a_kernel_of_low_rank_is_exhausted(rng):
    A = rng.normal(size=(50, 3))
    linear = pivoted(Kernel(metric="linear"), A, 20)
    assert len(linear.pivots) == 3
    assert linear.exhausted
    assert_allclose(linear.factor @ linear.factor.T, A @ A.T, atol=1e-10)
    assert not pivoted(RBF, A, 3).exhausted


def test_landmarks_are_better_than_random_rows(rng):
    """Clusters of very different sizes: uniform rows miss the small ones."""
    centres, sizes = rng.normal(size=(30, 4)) * 6, [300] * 5 + [3] * 25
    A = np.vstack([centre + 0.1 * rng.normal(size=(size, 4)) for centre, size in zip(centres, sizes, strict=True)])
    K = RBF.gram(A)
    drawn = [np.trace(K - nystroem(K, pivoted(RBF, A, 60, seed).pivots)) for seed in range(5)]
    uniform = [np.trace(K - nystroem(K, rng.choice(len(A), 60, replace=False))) for _ in range(5)]
    assert max(drawn) < 0.3 * min(uniform)


@pytest.mark.parametrize("metric", ["rbf", "laplacian", "poly", "linear", "cosine", Matern(nu=1.5)], ids=str)
def test_diagonal_without_the_matrix(rng, metric):
    parameters = {"gamma": 0.2, "coef0": 2} if isinstance(metric, str) else {}
    kernel = Kernel(metric=metric, parameters=parameters)
    A = rng.normal(size=(20, 3))
    assert_allclose(kernel.diagonal(A), np.diag(kernel.gram(A)), atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_smoother_is_that_of_the_restricted_problem(rng, alpha):
    """g in span{k(., s)}: the normal equations of kernel ridge regression with those functions alone."""
    A, Z = rng.normal(size=(120, 3)), rng.normal(size=(120, 4))
    S = A[:15]
    C, G = RBF.between(A, S), RBF.gram(S)
    W = np.linalg.solve(C.T @ C + alpha * G, C.T @ Z)
    values, coefficients, factor = restricted(RBF, A, S, Z, alpha)
    assert_allclose(values, C @ W, atol=2e-5)
    assert_allclose(coefficients, W, atol=2e-4 * np.abs(W).max())
    P = C @ np.linalg.solve(C.T @ C + alpha * G, C.T)
    assert smoother_trace(factor, alpha) == pytest.approx(np.trace(P), rel=1e-5)


@given(
    seed=st.integers(0, 1000),
    rank=st.integers(1, 60),
    alpha=st.sampled_from([1e-4, 1e-2, 1.0]),
    metric=st.sampled_from(["rbf", "laplacian", "poly", "linear"]),
)
def test_the_smoother_keeps_the_diagonal_of_the_kernel(seed, rank, alpha, metric):
    """The formula with an inverse; the factor of the restricted ridge regression comes from the same features."""
    rng = np.random.default_rng(seed)
    A, Z = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    kernel = Kernel(metric=metric, parameters={} if metric == "linear" else {"gamma": 0.3})
    K = kernel.gram(A)
    S = pivoted(kernel, A, rank, seed).pivots
    Q = nystroem(K, S)
    smoother = fit_smoother(LandmarkFeatures.prepare(kernel, A, A[S], alpha))
    wanted = Z - alpha * np.linalg.solve(Q + np.diag(np.diag(K - Q)) + alpha * np.eye(60), Z)
    # Features in float32, where few rows are landmarks and alpha is not small, divided by alpha.
    is_single = smoother.features.dtype == np.float32
    assert_allclose(smoother.apply(Z), wanted, atol=1e-3 if is_single else 1e-6)
    P = Q @ np.linalg.inv(Q + alpha * np.eye(60))
    assert smoother_trace(smoother.feature_gram(), alpha) == pytest.approx(np.trace(P), rel=1e-3)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_rounding_of_large_entries_does_not_reach_small_ones(rng, alpha):
    """Many rows under a wide kernel: entries of the Gram matrix are far above the penalty."""
    A, Z = rng.normal(size=(5000, 8)), rng.normal(size=(5000, 3))
    wide = Kernel(metric="rbf", parameters={"gamma": 0.02})
    S = A[pivoted(wide, A[:1000], 150).pivots]
    L = np.linalg.solve(landmark_root(wide, S), wide.between(S, A)).T
    wanted = L @ np.linalg.solve(L.T @ L + alpha * np.eye(150), L.T @ Z)
    values, _, _ = restricted(wide, A, S, Z, alpha)
    assert np.linalg.norm(values - wanted) < 2e-5 * np.linalg.norm(wanted)
