"""How far eigenvalues of noise reach: the bound against draws, and sums of squares and products beside it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from datacollab.linalg import below_zero, largest_noise


def noise_matrices(size, n_draws, seed=0):
    """Symmetric noise with a standard deviation of 1 on the diagonal, and 1/√2 off it."""
    N = np.random.default_rng(seed).normal(size=(n_draws, size, size))
    return (N + np.swapaxes(N, 1, 2)) / 2


@pytest.mark.parametrize(("size", "n_draws"), [(1, 20_000), (2, 20_000), (20, 4000), (131, 300)])
def test_eigenvalues_of_noise_pass_their_bounds_as_rarely_as_is_said(size, n_draws):
    largest = np.linalg.eigvalsh(noise_matrices(size, n_draws))[:, -1]
    error = largest.std() / math.sqrt(n_draws)
    assert largest.mean() < math.sqrt(2 * size) + 4 * error
    for t in (0.5, 1.0, 2.0):
        tail, most = (largest > math.sqrt(2 * size) + t).mean(), math.exp(-(t**2) / 2)
        assert tail < most
    assert largest.max() < largest_noise(size, 1.0)
    assert largest_noise(size, 1.0) - math.sqrt(2 * size) == pytest.approx(math.sqrt(2 * 32))


@settings(deadline=None)
@given(
    arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(-1, 1)),
    st.floats(0, 100),
    st.integers(0, 2**32 - 1),
)
def test_sums_over_rows_are_never_below_zero(rows, noise, seed):
    M = rows.T @ rows
    N = noise_matrices(len(M), 2, seed)
    assert below_zero(M + noise * N[0], noise) is None
    assert below_zero(np.array([M + noise * N[0], noise * N[1]]), noise) is None


@given(st.integers(2, 30), st.floats(0, 10), st.integers(0, 29))
def test_one_eigenvalue_beyond_noise_is_enough(size, noise, place):
    M = 50 * np.eye(size)
    M[place % size, place % size] = -largest_noise(size, noise) - 0.01
    said = below_zero(M, noise)
    assert f"is {M[place % size, place % size]:.3g}; rows give 0 at least" in said
    assert below_zero(np.array([np.eye(size), M]), noise) == said
