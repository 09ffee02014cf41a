import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from datacollab.linalg import weighted_ridge_path


def problem(rng, n=30, r=5, m=3):
    return rng.normal(size=(n, r)) + 2.0, rng.normal(size=(n, m)) - 1.0, rng.uniform(0.2, 3.0, size=n)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
def test_solution_is_scikit_learns(rng, alpha):
    X, T, weights = problem(rng)
    coefficients, intercept = weighted_ridge_path(X, weights).solve(alpha, T)
    ridge = Ridge(alpha).fit(X, T, sample_weight=weights)
    assert_allclose(coefficients, ridge.coef_.T, atol=1e-9)
    assert_allclose(intercept, ridge.intercept_, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(3, 20), alpha=st.sampled_from([1e-2, 1.0, 30.0]))
def test_left_out_is_what_a_fit_without_the_group_says(seed, n_groups, alpha):
    rng = np.random.default_rng(seed)
    X, T, weights = problem(rng, n=20)
    weights[rng.random(20) < 0.2] = 0.0
    groups = rng.integers(n_groups, size=20)
    found = weighted_ridge_path(X, weights).left_out(alpha, T, groups)
    for group in np.unique(groups):
        rows = groups == group
        if weights[~rows].sum() == 0:
            continue
        refit = Ridge(alpha).fit(X[~rows], T[~rows], sample_weight=weights[~rows])
        assert_allclose(found[rows], refit.predict(X[rows]), atol=1e-7)


def test_a_group_of_more_rows_than_features(rng):
    X, T, weights = problem(rng, n=60, r=3)
    groups = np.r_[np.zeros(40, dtype=int), np.arange(1, 21)]
    found = weighted_ridge_path(X, weights).left_out(0.7, T, groups)
    refit = Ridge(0.7).fit(X[40:], T[40:], sample_weight=weights[40:])
    assert_allclose(found[:40], refit.predict(X[:40]), atol=1e-8)


def test_more_features_than_rows(rng):
    X, T, weights = problem(rng, n=10, r=25)
    found = weighted_ridge_path(X, weights).left_out(0.5, T, np.arange(10))
    refit = Ridge(0.5).fit(X[1:], T[1:], sample_weight=weights[1:])
    assert_allclose(found[0], refit.predict(X[:1])[0], atol=1e-8)
