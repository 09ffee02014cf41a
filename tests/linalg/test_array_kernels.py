"""Steps that other array libraries take differently, against NumPy's, scikit-learn's and LAPACK's."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

from datacollab.linalg import (
    Kernel,
    array_library,
    array_namespace,
    as_precise_as,
    device_memory,
    inverse_cholesky,
    like,
    to_numpy,
)

xp = pytest.importorskip("array_api_strict")


def strict(values):
    return xp.asarray(np.array(values), device=xp.Device("device2"))


def test_cosine_of_a_zero_row_is_zero():
    found = Kernel(metric="cosine").between(strict([[0.0, 0.0], [1.0, 0.0]]), strict([[2.0, 0.0]]))
    assert to_numpy(found).tolist() == [[0.0], [1.0]]


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
