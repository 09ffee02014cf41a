import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles

from datacollab.linalg import column_space, leading_left_singular


def matrix(seed, n, d, rank):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))


@given(seed=st.integers(0, 1000), d=st.integers(1, 8), rank=st.integers(1, 8))
def test_splits_any_rank(seed, d, rank):
    rank = min(rank, d)
    A = matrix(seed, 30, d, rank)
    space = column_space(A)
    assert space.rank == rank
    assert_allclose(space.basis.T @ space.basis, np.eye(rank), atol=1e-12)
    assert_allclose(space.basis @ space.rows, A, atol=1e-12 * np.abs(A).max())


@given(seed=st.integers(0, 1000), d=st.integers(1, 8), rank=st.integers(1, 8))
def test_coefficients_are_those_of_the_pseudo_inverse(seed, d, rank):
    A = matrix(seed, 30, d, min(rank, d))
    Z = np.random.default_rng(seed + 1).normal(size=(30, 3))
    space = column_space(A)
    assert_allclose(space.coefficients(space.basis.T @ Z), np.linalg.pinv(A) @ Z, rtol=1e-6, atol=1e-8)


def test_columns_in_other_units_are_no_rounding_errors(rng):
    A = rng.normal(size=(50, 4))
    units = np.array([1e-7, 1.0, 1e3, 1e-3])
    plain, scaled = column_space(A), column_space(A * units)
    assert scaled.rank == 4
    assert subspace_angles(plain.basis, scaled.basis).max() < 1e-10
    Z = rng.normal(size=(50, 2))
    G, G_scaled = (space.coefficients(space.basis.T @ Z) for space in (plain, scaled))
    assert_allclose(G_scaled * units[:, None], G, rtol=1e-8)


def test_minimum_norm_survives_bad_units_and_duplicates(rng):
    a, b = rng.normal(size=(2, 40))
    A = np.column_stack([a, a, 1e-5 * b, np.zeros(40)])
    space = column_space(A)
    G = space.coefficients(space.basis.T @ (3 * a + b)[:, None])[:, 0]
    assert_allclose(G, [1.5, 1.5, 1e5, 0.0], rtol=1e-6, atol=1e-6)


def test_columns_of_rounding_noise_do_not_count(rng):
    """A principal component beyond the rank is noise of relative size 1e-15; no map may rest on it."""
    A = matrix(1, 50, 3, 3)
    noisy = np.column_stack([A, 1e-15 * rng.normal(size=(50, 2))])
    space = column_space(noisy)
    assert space.rank == 3
    Z = rng.normal(size=(50, 2))
    G = space.coefficients(space.basis.T @ Z)
    assert_allclose(G[3:], 0)
    assert_allclose(G[:3], np.linalg.pinv(A) @ Z, rtol=1e-8)


@pytest.mark.parametrize("size", [1e-11, 1e-9])
def test_small_columns_do_count(rng, size):
    A = np.column_stack([rng.normal(size=(50, 3)), size * rng.normal(size=50)])
    assert column_space(A).rank == 4
    A[:, 3] = A[:, 0] + size * rng.normal(size=50)
    assert column_space(A).rank == 4


def test_leading_left_singular_stops_at_the_rank(rng):
    W = matrix(3, 20, 9, 4)
    U, singular_values, V = leading_left_singular(W)
    assert U.shape == (20, 4)
    assert_allclose((U * singular_values) @ V.T, W, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 1), (1, 5), (3, 3)])
def test_small_shapes(rng, shape):
    A = rng.normal(size=shape)
    space = column_space(A)
    assert_allclose(space.basis @ space.rows, A, atol=1e-13)
