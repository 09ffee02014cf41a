"""Steps that other array libraries take differently, against NumPy's, scikit-learn's and LAPACK's."""

from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import pairwise_kernels

from datacollab._validation import array_library, array_namespace, to_numpy
from datacollab.linalg import Kernel, KernelBlocks, device_memory, leading_eigenpairs, like, panel_cholesky
from datacollab.linalg._array_api import ARRAY_KERNELS, as_precise_as, inverse_cholesky

xp = pytest.importorskip("array_api_strict")

PARAMETERS = {"gamma": 0.3, "degree": 2, "coef0": 1.5}


def strict(values):
    return xp.asarray(np.array(values), device=xp.Device("device2"))


@given(
    st.integers(1, 5).flatmap(lambda d: st.tuples(*[arrays(float, (n, d), elements=st.floats(-9, 9)) for n in (4, 7)]))
)
@pytest.mark.parametrize("metric", ["rbf", *ARRAY_KERNELS])
def test_kernels_are_scikit_learns(metric, rows):
    X, A = rows
    expected = pairwise_kernels(X, A, metric=metric, filter_params=True, **PARAMETERS)
    found = Kernel(metric=metric, parameters=PARAMETERS).between(strict(X), strict(A))
    assert_allclose(to_numpy(found), expected, rtol=1e-9, atol=1e-11)


def test_cosine_of_a_zero_row_is_zero():
    found = Kernel(metric="cosine").between(strict([[0.0, 0.0], [1.0, 0.0]]), strict([[2.0, 0.0]]))
    assert to_numpy(found).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("place", [np.array, strict], ids=["numpy", "array-api-strict"])
@pytest.mark.parametrize("n", [3, 256, 300, 700])
def test_trace_of_the_inverse(place, n, rng):
    A, kernel = rng.normal(size=(n, 5)), Kernel(metric="rbf", parameters={"gamma": 0.1})
    found = panel_cholesky(KernelBlocks(kernel, place(A)), 0.5).inverse_trace
    assert found == pytest.approx(np.trace(np.linalg.inv(kernel.gram(A) + 0.5 * np.eye(n))), rel=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_of_the_cholesky_factor(dtype, rng):
    X = rng.normal(size=(40, 40))
    A = (X @ X.T + np.eye(40)).astype(dtype)
    found = to_numpy(inverse_cholesky(strict(A)))
    assert found.dtype == dtype
    assert np.array_equal(found, np.tril(found))
    assert_allclose(found @ A @ found.T, np.eye(40), atol=1e-11 if dtype is np.float64 else 1e-3)
    assert_allclose(found, inverse_cholesky(A), atol=1e-11 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("raises", [True, False])
def test_indefinite_matrices_are_noticed(raises, monkeypatch):
    """Also where the library returns some factor instead of an error, as CuPy does."""
    A = strict(np.diag([1.0, -1.0]))
    if not raises:
        monkeypatch.setattr(xp.linalg, "cholesky", lambda matrix: matrix)
    with pytest.raises(scipy.linalg.LinAlgError, match="not positive definite"):
        inverse_cholesky(A)


def test_other_errors_of_a_library_pass(monkeypatch):
    def fails(matrix):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(xp.linalg, "cholesky", fails)
    with pytest.raises(RuntimeError, match="out of memory"):
        inverse_cholesky(strict(np.eye(2)))


@pytest.mark.parametrize("k", [1, 5])
def test_eigenpairs(k, rng):
    Q = np.linalg.qr(rng.normal(size=(150, 150)))[0]
    M = (Q * 0.8 ** np.arange(150)) @ Q.T
    start = rng.normal(size=(150, k + 4))
    there = strict(M)
    found = leading_eigenpairs(lambda X: there @ X, strict(start), k, tol=1e-8)
    here = leading_eigenpairs(lambda X: M @ X, start, k, tol=1e-8)
    assert_allclose(found.values, 0.8 ** np.arange(k), rtol=1e-12)
    assert scipy.linalg.subspace_angles(to_numpy(found.vectors), Q[:, :k]).max() < 1e-7
    assert (found.columns, found.following.shape) == (here.columns, here.following.shape)


def test_places():
    X = strict(np.ones((2, 3)))
    there = like(np.eye(3)[::-1], X)
    assert (array_library(there), there.device) == ("array_api_strict", X.device)
    assert np.array_equal(to_numpy(there), np.eye(3)[::-1])
    assert like(there, X) is there
    assert array_namespace(np.ones(2)) is np
    assert array_library([1.0]) is None
    assert as_precise_as(there, xp.astype(X, xp.float32)).dtype == xp.float32
    assert as_precise_as(np.ones(2), np.ones(2, dtype=np.float32)).dtype == np.float64


def test_memory_is_the_devices():
    """CuPy's arrays tell; main memory is not a device's."""
    array = type("ndarray", (), {"__module__": "cupy", "device": SimpleNamespace(mem_info=(7, 9))})()
    assert device_memory(array) == 7
    assert device_memory(strict(np.ones(2))) is None
    assert device_memory(np.ones(2)) is None
