"""The block Krylov eigensolver against a dense one, and the bound it gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles

from datacollab.linalg import StopRule, leading_eigenpairs


def symmetric(spectrum, rng):
    Q = np.linalg.qr(rng.normal(size=(len(spectrum), len(spectrum))))[0]
    return (Q * spectrum) @ Q.T


def leading(M, k):
    values, vectors = np.linalg.eigh(M)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


@given(n=st.integers(12, 60), k=st.integers(1, 6), seed=st.integers(0, 1000), tol=st.sampled_from([1e-2, 1e-5, 1e-8]))
def test_equals_the_dense_solver_within_its_bound(n, k, seed, tol):
    rng = np.random.default_rng(seed)
    M = symmetric(rng.uniform(-2, 5, size=n), rng)
    found = leading_eigenpairs(lambda X: M @ X, rng.normal(size=(n, min(k + 3, n))), k, StopRule(tol))
    values, vectors = leading(M, k)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-10)
    assert np.sin(subspace_angles(found.vectors, vectors).max()) <= found.angle + 1e-9
    # An eigenvalue is off by at most the residual.
    assert_allclose(found.values, values, atol=found.residual + 1e-9)
    assert_allclose(found.vectors.T @ M @ found.vectors, np.diag(found.values), atol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_stops_where_it_was_told_to(rng, tol):
    """The residual it reports is the true one, and it has done no more than was asked for."""
    M = symmetric(np.r_[np.linspace(9, 10, 8), rng.uniform(0, 8, size=392)], rng)
    found = leading_eigenpairs(lambda X: M @ X, rng.normal(size=(400, 16)), 8, StopRule(tol))
    residual = np.linalg.norm(M @ found.vectors - found.vectors * found.values)
    assert found.residual == pytest.approx(residual, rel=1e-3)
    assert residual <= tol * max(found.gap, 0.01)
    assert found.angle <= tol
    assert found.columns < 400


def test_without_an_eigengap_no_angle_is_promised(rng):
    M = symmetric(np.r_[np.ones(6), rng.uniform(0, 0.5, size=100)], rng)
    found = leading_eigenpairs(lambda X: M @ X, rng.normal(size=(106, 12)), 3, StopRule(1e-7))
    assert found.gap < 1e-6
    assert found.angle > 1e-2
    assert_allclose(found.values, 1.0, atol=1e-9)


def test_eigenvectors_of_a_projection(rng):
    M = symmetric(rng.uniform(0, 1, size=80), rng)
    H = np.eye(80) - 1 / 80
    found = leading_eigenpairs(
        lambda X: M @ X, rng.normal(size=(80, 10)), 3, StopRule(1e-8), project=lambda X: X - X.mean(axis=0)
    )
    assert_allclose(found.vectors.sum(axis=0), 0, atol=1e-10)
    assert subspace_angles(found.vectors, leading(H @ M @ H, 3)[1]).max() < 1e-7


def test_eigenvectors_that_follow(rng):
    """Not as accurate as those wanted, but in order, and orthogonal to them."""
    M = symmetric(np.r_[0.8 ** np.arange(40), np.zeros(60)], rng)
    found = leading_eigenpairs(lambda X: M @ X, rng.normal(size=(100, 8)), 3, StopRule(1e-8), n_following=9)
    vectors = leading(M, 12)[1]
    assert_allclose(np.abs(np.sum(found.following * vectors[:, 3:], axis=0)), 1, atol=1e-3)
    both = np.hstack([found.vectors, found.following])
    assert_allclose(both.T @ both, np.eye(12), atol=1e-10)
    few = leading_eigenpairs(lambda X: M[:5, :5] @ X, rng.normal(size=(5, 5)), 3, StopRule(1e-8), n_following=9)
    assert few.following.shape == (5, 2)
    assert leading_eigenpairs(lambda X: M @ X, rng.normal(size=(100, 8)), 3, StopRule(1e-8)).following.shape == (100, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_an_exact_operator_corrects_a_rounded_one(seed):
    """The rounded one alone is off by its rounding; a few exact columns make up for it."""
    rng = np.random.default_rng(seed)
    M = symmetric(np.r_[np.linspace(9, 10, 8), rng.uniform(0, 8, size=392)], rng)
    error = rng.normal(size=M.shape)
    rounded = M + 2e-7 * (error + error.T) / 2
    seen = []

    def exact(Z):
        seen.append(Z)
        return M @ Z

    start = rng.normal(size=(400, 16))
    found = leading_eigenpairs(lambda X: rounded @ X, start, 8, StopRule(5e-7), exact=exact)
    vectors = leading(M, 8)[1]
    alone = leading_eigenpairs(lambda X: rounded @ X, start, 8, StopRule(1e-9))
    angle = subspace_angles(found.vectors, vectors).max()
    assert angle <= found.angle <= 5e-7
    assert angle < 0.2 * subspace_angles(alone.vectors, vectors).max()
    assert sum(Z.shape[1] for Z in seen) <= 2 * 8
    assert_allclose(seen[-1] @ found.anchored + found.correction, found.vectors, atol=1e-12)
    assert np.abs(found.correction).max() < 1e-3
    assert_allclose(found.values, leading(M, 8)[0], rtol=1e-12)


@pytest.mark.nightly
def test_a_restart_loses_nothing(rng):
    """A slowly converging problem fills the basis more than once."""
    diagonal = np.linspace(0, 1, 3000)[:, np.newaxis]
    found = leading_eigenpairs(lambda X: diagonal * X, rng.normal(size=(3000, 10)), 2, StopRule(1e-5))
    assert found.columns > 400
    assert subspace_angles(found.vectors, np.eye(3000)[:, [-1, -2]]).max() <= 1e-4


@pytest.mark.parametrize("n_steps", range(3, 21))
def test_a_solver_that_gives_up_says_so_and_returns_what_it_has(rng, monkeypatch, n_steps):
    """At any step, whether the basis was just emptied or not."""
    monkeypatch.setattr("datacollab.linalg._eigen._MAX_STEPS", n_steps)
    monkeypatch.setattr("datacollab.linalg._eigen._MAX_COLUMNS", 50)
    monkeypatch.setattr("datacollab.linalg._eigen._MAX_BLOCKS", 3)
    diagonal = np.linspace(0, 1, 1000)[:, np.newaxis]
    found = leading_eigenpairs(lambda X: diagonal * X, rng.normal(size=(1000, 10)), 2, StopRule(1e-9))
    assert not found.converged
    assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-10)
    assert_allclose(np.sum(found.vectors**2 * diagonal, axis=0), found.values, rtol=1e-12)
    residual = np.linalg.norm(diagonal * found.vectors - found.vectors * found.values)
    assert residual == pytest.approx(found.residual, rel=1e-6)


def test_an_operator_in_single_precision_is_not_asked_for_more(rng):
    """Eigenvalues that float32 cannot tell apart: it stops at its rounding, and says what angle that leaves."""
    M = symmetric(np.r_[10 - 1e-6 * np.arange(6), rng.uniform(0, 8, size=294)], rng)
    rounded = M.astype(np.float32)
    start = rng.normal(size=(300, 12))
    found = leading_eigenpairs(
        lambda X: (rounded @ X.astype(np.float32)).astype(float), start, 3, StopRule(1e-6), single=True
    )
    assert found.columns < 250
    assert not found.converged
    assert found.angle > 1e-3
    assert_allclose(found.values, 10, rtol=1e-5)


def test_an_eigenvector_nearly_missed_is_in_the_bound(rng):
    """The second wanted vector leans on the third, whose eigenvalue is close and which no column stands for yet."""
    M = np.diag(np.r_[10, 9, 8.99, rng.uniform(0, 1, size=197)])
    start = np.eye(200)[:, :2]
    start[2, 1] = 0.05
    found = leading_eigenpairs(lambda X: M @ X, np.hstack([start, rng.normal(size=(200, 2))]), 2, StopRule(0.01))
    angle = subspace_angles(found.vectors, np.eye(200)[:, :2]).max()
    assert np.sin(angle) <= found.angle
