"""Panel Cholesky factors and refinement against NumPy's solver."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from datacollab.linalg import Kernel, KernelBlocks, panel_cholesky, refine_solution, symmetric_product


def rbf(gamma=0.3):
    return Kernel(metric="rbf", parameters={"gamma": gamma})


def regularised(A, alpha, kernel):
    return kernel.gram(A) + alpha * np.eye(len(A))


@given(
    n=st.sampled_from([1, 2, 191, 192, 193, 384, 530, 900]),
    m=st.sampled_from([0, 1, 3, 40]),
    alpha=st.sampled_from([1e-2, 1.0, 30.0]),
    has_small_kernels=st.booleans(),
)
def test_solves_like_numpy(n, m, alpha, has_small_kernels):
    """In the pieces that either kind of BLAS multiplies best."""
    rng = np.random.default_rng(n)
    A, Z = rng.normal(size=(n, 3)), rng.normal(size=(n, m))
    factor = panel_cholesky(KernelBlocks(rbf(), A), alpha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.linalg._array_api._has_small_kernels", lambda: has_small_kernels)
        solution = factor.solve(Z)
    assert_allclose(solution, np.linalg.solve(regularised(A, alpha, rbf()), Z), atol=1e-9 / alpha)


def test_half_the_memory_of_the_matrix(rng):
    factor = panel_cholesky(KernelBlocks(rbf(), rng.normal(size=(2560, 3)), np.float32), 0.5)
    assert sum(panel.nbytes for panel in factor.panels) <= 1.11 * 2560**2 * 4 / 2


LAPLACIAN = Kernel(metric="laplacian", parameters={"gamma": 1})


@pytest.mark.parametrize("kernel", [rbf(), Kernel(metric="linear"), LAPLACIAN])
def test_refinement_reaches_float64(rng, kernel):
    A, Z = rng.normal(size=(700, 4)), rng.normal(size=(700, 5))
    factor = panel_cholesky(KernelBlocks(kernel, A, np.float32), 0.1)
    tiles = KernelBlocks(kernel, A).lower_tiles()
    T = refine_solution(factor, lambda X: symmetric_product(tiles, X), 0.1, Z)
    expected = np.linalg.solve(regularised(A, 0.1, kernel), Z)
    assert np.abs(T - expected).max() < 1e-9 * np.abs(expected).max()
    rough = factor.solve(Z)
    assert np.abs(rough - expected).max() > 1e-7 * np.abs(expected).max()


def test_refinement_says_where_float32_is_too_coarse(rng):
    """Nearly collinear rows and a tiny penalty: the factor of a perturbed matrix cannot correct itself."""
    A = rng.normal(size=(400, 1))
    kernel = rbf(0.01)
    tiles = KernelBlocks(kernel, A).lower_tiles()
    with pytest.raises(scipy.linalg.LinAlgError):
        factor = panel_cholesky(KernelBlocks(kernel, A, np.float32), 1e-7)
        refine_solution(factor, lambda X: symmetric_product(tiles, X), 1e-7, rng.normal(size=(400, 2)))


def test_an_indefinite_kernel_has_no_factor(rng):
    sigmoid = Kernel(metric="sigmoid", parameters={"gamma": 1.0, "coef0": -3.0})
    with pytest.raises(scipy.linalg.LinAlgError):
        panel_cholesky(KernelBlocks(sigmoid, rng.normal(size=(50, 2))), 1e-3)


@pytest.mark.parametrize("metric", ["rbf", "laplacian", "poly", "linear", "cosine"])
def test_blocks_are_those_of_the_kernel_matrix(rng, metric):
    A = 100 + rng.normal(size=(40, 3))
    kernel = Kernel(metric=metric, parameters={"gamma": 0.2, "degree": 2, "coef0": 1.0})
    blocks, gram = KernelBlocks(kernel, A), kernel.gram(A)
    scale = np.abs(gram).max()
    for rows, columns in [(slice(0, 40), slice(0, 40)), (slice(7, 23), slice(30, 31))]:
        assert_allclose(blocks.block(rows, columns), gram[rows, columns], atol=1e-12 * scale)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
def test_single_precision_holds_for_narrow_kernels_too(rng, gamma):
    """Where gamma |a|^2 is large the exponent is made in float64, or near rows would not look near."""
    A = rng.normal(size=(60, 5))
    A[1] = A[0] + 1e-3
    block = KernelBlocks(rbf(gamma), A, np.float32).block(slice(0, 60), slice(0, 60))
    assert block.dtype == np.float32
    assert_allclose(block, rbf(gamma).gram(A), atol=3e-6)


def test_symmetric_product(rng):
    A, X = rng.normal(size=(1100, 3)), rng.normal(size=(1100, 4))
    tiles = KernelBlocks(rbf(), A).lower_tiles()
    assert_allclose(symmetric_product(tiles, X), rbf().gram(A) @ X, atol=1e-10)
    assert sum(tile.size for _, _, tile in tiles) < 0.75 * 1100**2
