"""Kernel ridge regressions for many penalties, and what they say of rows left out."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from datacollab.linalg import Kernel, full_ridge_path, ridge_path, ridge_path_of_features, ridge_with_intercept


def gram(rng, n=30, rank=30):
    X = rng.normal(size=(n, rank))
    return X @ X.T / rank


@given(seed=st.integers(0, 1000), rank=st.integers(1, 30), alpha=st.floats(1e-3, 10))
def test_every_penalty_from_one_decomposition(seed, rank, alpha):
    """Smoother and coefficients against the inverse, whatever the rank and the penalty."""
    rng = np.random.default_rng(seed)
    S, Z = gram(rng, rank=rank), rng.normal(size=(30, 3))
    path = ridge_path(S.copy(), 1e-3)
    inverse = np.linalg.inv(S + alpha * np.eye(30))
    M = np.zeros((30, 30), order="F")
    path.add_smoother(M, alpha)
    assert_allclose(np.tril(M), np.tril(S @ inverse), atol=1e-8)
    assert_allclose(path.coefficients(alpha, Z), inverse @ Z, rtol=1e-7, atol=1e-8 / alpha)


def test_a_nearly_semidefinite_matrix_keeps_its_negative_eigenvalues(rng):
    """KTI solves with the matrix as it is, so the search must."""
    U = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    S = U * np.r_[-0.05, np.linspace(0.1, 3, 29)] @ U.T
    path = ridge_path(S.copy(), 0.1)
    M = np.zeros((30, 30), order="F")
    path.add_smoother(M, 0.1)
    assert_allclose(np.tril(M), np.tril(S @ np.linalg.inv(S + 0.1 * np.eye(30))), atol=1e-10)
    with pytest.raises(scipy.linalg.LinAlgError, match="not positive definite"):
        ridge_path(S.copy(), 0.04)


def problem(seed, n=30, m=2):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)), random.normal(size=(n, m)) + random.normal(size=m) * 5


KERNEL = Kernel(metric="rbf", parameters={"gamma": 0.4})


def solution_by_hand(K, alpha, T):
    """Of the whole bordered system, by a general solver."""
    n = len(K)
    system = np.block([[K + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([T, np.zeros((1, T.shape[1]))]))
    return solved[:n], solved[n]


@given(seed=st.integers(0, 1000), alpha=st.sampled_from([1e-3, 0.1, 1.0, 30.0]))
def test_it_solves_the_bordered_system(seed, alpha):
    X, T = problem(seed)
    coefficients, intercepts = ridge_with_intercept(KERNEL.gram(X), alpha, T)
    expected, expected_intercepts = solution_by_hand(KERNEL.gram(X), alpha, T)
    assert_allclose(coefficients, expected, atol=1e-8)
    assert_allclose(intercepts, expected_intercepts, atol=1e-8)


@given(seed=st.integers(0, 1000), alpha=st.sampled_from([1e-4, 0.1, 1.0, 30.0]))
def test_each_row_is_left_out_as_if_it_had_not_been_there(seed, alpha):
    X, T = problem(seed, n=12)
    K = KERNEL.gram(X)
    errors = full_ridge_path(K).errors_left_out(alpha, T, intercept=True)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        coefficients, intercepts = solution_by_hand(K[np.ix_(rest, rest)], alpha, T[rest])
        assert_allclose(errors[i], T[i] - K[i, rest] @ coefficients - intercepts, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-2, 1.0])
def test_rows_of_a_group_are_left_out_together(alpha, intercept):
    X, T = problem(0, n=20)
    X[5], X[11], X[12] = X[4], X[10], X[10]
    groups, K = np.arange(20), KERNEL.gram(X)
    groups[5], groups[11:13] = 4, 10
    path = full_ridge_path(K)
    errors = path.errors_left_out(alpha, T, intercept=intercept, groups=groups)
    for i in range(20):
        rest = np.flatnonzero(groups != groups[i])
        among = K[np.ix_(rest, rest)]
        if intercept:
            coefficients, intercepts = solution_by_hand(among, alpha, T[rest])
        else:
            coefficients, intercepts = KernelRidge(alpha=alpha, kernel="precomputed").fit(among, T[rest]).dual_coef_, 0
        assert_allclose(errors[i], T[i] - K[i, rest] @ coefficients - intercepts, atol=1e-8)
    assert not np.allclose(errors[4], path.errors_left_out(alpha, T, intercept=intercept)[4])


def weighted_problem(rng, n=30, r=5, m=3):
    return rng.normal(size=(n, r)) + 2.0, rng.normal(size=(n, m)) - 1.0, rng.uniform(0.2, 3.0, size=n)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_solution_is_scikit_learns(rng, alpha):
    X, T, weights = weighted_problem(rng)
    coefficients, intercept = ridge_path_of_features(X, weights).solve(alpha, T)
    ridge = Ridge(alpha).fit(X, T, sample_weight=weights)
    assert_allclose(coefficients, ridge.coef_.T, atol=1e-9)
    assert_allclose(intercept, ridge.intercept_, atol=1e-9)


@given(seed=st.integers(0, 10**6), n_groups=st.integers(3, 20), alpha=st.sampled_from([1e-2, 1.0, 30.0]))
def test_left_out_is_what_a_fit_without_the_group_says(seed, n_groups, alpha):
    rng = np.random.default_rng(seed)
    X, T, weights = weighted_problem(rng, n=20)
    weights[rng.random(20) < 0.2] = 0.0
    groups = rng.integers(n_groups, size=20)
    found = ridge_path_of_features(X, weights).predict_left_out(alpha, T, groups)
    for group in np.unique(groups):
        rows = groups == group
        if weights[~rows].sum() == 0:
            continue
        refit = Ridge(alpha).fit(X[~rows], T[~rows], sample_weight=weights[~rows])
        assert_allclose(found[rows], refit.predict(X[rows]), atol=1e-7)


def test_a_group_of_more_rows_than_features(rng):
    X, T, weights = weighted_problem(rng, n=60, r=3)
    groups = np.r_[np.zeros(40, dtype=int), np.arange(1, 21)]
    found = ridge_path_of_features(X, weights).predict_left_out(0.7, T, groups)
    refit = Ridge(0.7).fit(X[40:], T[40:], sample_weight=weights[40:])
    assert_allclose(found[:40], refit.predict(X[:40]), atol=1e-8)
