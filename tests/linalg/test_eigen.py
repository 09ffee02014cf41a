"""Eigenvectors, column spaces, metric scaling, and how far eigenvalues of noise reach."""

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.spatial.distance import pdist

from datacollab.linalg import (
    add_sparse_to_lower,
    add_to_lower,
    below_zero,
    centre_lower,
    column_space,
    fix_signs,
    largest_noise,
    largest_of_pencil,
    leading_left_singular,
    leading_singular_of_blocks,
    metric_scaling,
    ridge_coefficients,
    ridge_inverse,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)


@pytest.fixture
def spd(rng):
    X = rng.normal(size=(40, 60))
    return X @ X.T / 60


def only_lower(M):
    return np.tril(M)


def test_centring_is_two_sided_projection(spd):
    H = np.eye(40) - 1 / 40
    M = np.asfortranarray(np.tril(spd))
    centre_lower(M)
    assert_allclose(only_lower(M), only_lower(H @ spd @ H), atol=1e-13)


def test_smallest_eigenpairs_reads_only_the_lower_triangle(spd):
    eigenvalues, Z = smallest_eigenpairs(np.asfortranarray(np.tril(spd)), 3)
    assert_allclose(eigenvalues, np.linalg.eigvalsh(spd)[:3], rtol=1e-10)
    assert_allclose(spd @ Z, Z * eigenvalues, atol=1e-12)


def test_centred_eigenpairs_are_those_of_an_explicit_basis(spd):
    T = scipy.linalg.null_space(np.ones((1, 40)))
    eigenvalues, Z = smallest_eigenpairs_centred(np.asfortranarray(np.tril(spd)), 4)
    expected, Y = np.linalg.eigh(T.T @ spd @ T)
    assert_allclose(eigenvalues, expected[:4], rtol=1e-9)
    assert scipy.linalg.subspace_angles(Z, T @ Y[:, :4]).max() < 1e-9
    assert_allclose(Z.sum(axis=0), 0, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-10, 1e-3, 1e3])
def test_centred_eigenpairs_have_no_scale_of_their_own(spd, scale):
    eigenvalues, Z = smallest_eigenpairs_centred(np.asfortranarray(np.tril(spd)), 4)
    scaled, Z_scaled = smallest_eigenpairs_centred(np.asfortranarray(np.tril(scale * spd)), 4)
    assert_allclose(scaled, scale * eigenvalues, rtol=1e-9)
    assert scipy.linalg.subspace_angles(Z, Z_scaled).max() < 1e-9


def test_centred_eigenpairs_can_use_the_whole_centred_space(spd):
    _, Z = smallest_eigenpairs_centred(np.asfortranarray(np.tril(spd)), 39)
    assert_allclose(Z.T @ Z, np.eye(39), atol=1e-10)
    assert_allclose(Z.sum(axis=0), 0, atol=1e-12)


def test_pencil_with_a_singular_penalty(spd, rng):
    X = rng.normal(size=(40, 10))
    C = X @ X.T
    nu, U = largest_of_pencil(np.asfortranarray(np.tril(C)), np.asfortranarray(np.tril(spd)), 5)
    assert (np.diff(nu) <= 0).all()
    assert_allclose(C @ U, spd @ U * nu, atol=1e-9)
    assert_allclose(U.T @ spd @ U, np.eye(5), atol=1e-10)


def test_ridge_inverse_and_coefficients(spd, rng):
    expected = np.linalg.inv(spd + 0.3 * np.eye(40))
    assert_allclose(only_lower(ridge_inverse(spd.copy(), 0.3)), only_lower(expected), atol=1e-12)
    Z = rng.normal(size=(40, 2))
    assert_allclose(ridge_coefficients(spd.copy(), 0.3, Z), expected @ Z, atol=1e-12)
    assert_allclose(ridge_coefficients(np.asfortranarray(spd), 0.3, Z), expected @ Z, atol=1e-12)


def test_indefinite_matrix_is_refused():
    with pytest.raises(scipy.linalg.LinAlgError):
        ridge_inverse(-np.eye(4), 0.5)


def test_adding_touches_the_lower_triangle_only(rng):
    n = 600  # more than one block
    M, S = np.zeros((n, n), order="F"), rng.normal(size=(n, n))
    add_to_lower(M, S, 2.0)
    assert_allclose(only_lower(M), only_lower(2 * S))
    B = sparse.random(n, n, density=0.01, random_state=0)
    add_sparse_to_lower(M, B + B.T, -1.0)
    assert_allclose(only_lower(M), only_lower(2 * S - (B + B.T).toarray()))


def test_signs():
    Z = np.array([[1.0, 3.0], [-2.0, 1.0]])
    assert_allclose(fix_signs(Z), [-1.0, 1.0])


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


@pytest.mark.parametrize("tall", [7, 1000])
def test_singular_vectors_of_matrices_side_by_side(rng, monkeypatch, tall):
    """Seven rows at a time or all at once, with directions in common and singular values of many sizes."""
    monkeypatch.setattr("datacollab.linalg._eigen._TALL", tall)
    A = rng.normal(size=(60, 4)) * [1.0, 1e-2, 1e-4, 1e-6]
    blocks = [A, A @ rng.normal(size=(4, 4)), rng.normal(size=(60, 2))]
    U, singular_values, V = leading_singular_of_blocks(blocks, 5)
    expected_U, expected, expected_V = leading_left_singular(np.hstack(blocks))
    assert len(expected) == 6
    assert_allclose(singular_values, expected, rtol=1e-8)
    assert_allclose(U.T @ U, np.eye(5), atol=1e-13)
    for k in range(5):
        sign = np.sign(U[:, k] @ expected_U[:, k])
        assert_allclose(sign * U[:, k], expected_U[:, k], atol=1e-9)
        assert_allclose(sign * V[:, k], expected_V[:, k], atol=1e-9)


def test_another_driver_takes_over_where_the_quick_one_does_not_converge(rng, monkeypatch):
    """As gesdd does not on 300 anchor rows that thirty parties' principal components see."""
    W = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 20))
    expected = leading_left_singular(W)
    svd = scipy.linalg.svd

    def refuse(W, *, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return svd(W, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "svd", refuse)
    U, singular_values, V = leading_left_singular(W)
    assert singular_values.shape == (4,)
    assert_allclose(singular_values, expected[1])
    assert_allclose((U * singular_values) @ V.T, W, atol=1e-12)


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


def test_fewer_directions_than_the_common_space_has_give_fewer_columns(drawn):
    Z, _ = drawn
    W, _ = metric_scaling(Z, [Z[:, :1] * 5.0, Z[:, :1]])
    assert W.shape == (3, 1)


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
