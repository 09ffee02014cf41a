import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from datacollab.linalg._kernel_ridge import ridge_path


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


def test_a_smoother_is_added_to_what_is_there(rng):
    S = gram(rng)
    M = np.ones((30, 30), order="F")
    ridge_path(S.copy(), 0.1).add_smoother(M, 0.1)
    assert_allclose(np.tril(M), np.tril(1 + S @ np.linalg.inv(S + 0.1 * np.eye(30))), atol=1e-10)


def test_only_the_rank_is_kept(rng):
    path = ridge_path(gram(rng, rank=4), 0.01)
    assert path.vectors.shape == (30, 4)
    assert path.eigenvalues.shape == (4,)


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
