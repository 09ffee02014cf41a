import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from scipy import sparse

from datacollab.linalg import (
    add_sparse_to_lower,
    add_to_lower,
    centre_lower,
    fix_signs,
    largest_of_pencil,
    ridge_coefficients,
    ridge_inverse,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from datacollab.linalg._eigen import _bound_of_lower


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


@pytest.mark.parametrize("seed", range(5))
def test_bound_is_above_the_spectrum_and_not_far(seed):
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(600, 600))  # more than one block
    M = M + M.T
    M[-1], M[:, -1] = 50.0, 50.0
    bound = _bound_of_lower(np.asfortranarray(M))
    row_sums = np.abs(M).sum(axis=1)
    assert row_sums.max() <= bound <= 1.1 * row_sums.max()
    assert bound >= np.abs(np.linalg.eigvalsh(M)).max()


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
