"""Kernels between rows, their widths, and their products with coefficients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import pairwise_kernels

from datacollab.linalg import Kernel, kernel_expansion, median_gamma, ridge_coefficients, scale_gamma


def rbf(gamma):
    return Kernel(metric="rbf", parameters={"gamma": gamma})


def naive(X, A, coefficients, gamma):
    """Differences first, so that nothing cancels."""
    squares = ((X[:, np.newaxis] - A) ** 2).sum(axis=2)
    return np.exp(-gamma * squares) @ coefficients


def kernel_product(X, A, coefficients, kernel, precision="auto"):
    return kernel_expansion(A, coefficients, kernel, precision=precision)(X)


def relative_error(found, wanted):
    return np.abs(found - wanted).max() / np.abs(wanted).max()


@pytest.fixture(params=[True, False], ids=["expm1", "exp"])
def model(request, monkeypatch, rng):
    """Anchor rows enough for single precision, and coefficients that cancel by two orders of magnitude.

    For processors with vector instructions for expm1, and without.
    """
    monkeypatch.setattr("datacollab.linalg._kernels._VECTOR_EXPM1", request.param)
    A = rng.normal(size=(1500, 5))
    gamma = 0.1
    Z = np.linalg.qr(np.tanh(A @ rng.normal(size=(5, 4))))[0]
    return A, ridge_coefficients(rbf(gamma).gram(A), 3.0, Z), gamma


@given(
    n_rows=st.integers(1, 140),
    n_anchors=st.integers(1, 300),
    n_intermediate=st.integers(1, 9),
    n_components=st.integers(1, 4),
    offset=st.sampled_from([0.0, 100.0]),
    seed=st.integers(0, 100),
)
def test_double_precision_is_the_formula(n_rows, n_anchors, n_intermediate, n_components, offset, seed):
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(n_rows, n_intermediate)) + offset, rng.normal(size=(n_anchors, n_intermediate)) + offset
    coefficients = rng.uniform(size=(n_anchors, n_components))
    found = kernel_product(X, A, coefficients, rbf(0.2), precision="float64")
    assert_allclose(found, naive(X, A, coefficients, 0.2), rtol=1e-11)


@given(
    n_rows=st.integers(1, 140),
    n_anchors=st.integers(1, 300),
    n_intermediate=st.integers(1, 9),
    has_expm1=st.booleans(),
    seed=st.integers(0, 99),
)
def test_single_precision_is_the_formula_to_its_digits(n_rows, n_anchors, n_intermediate, has_expm1, seed):
    rng = np.random.default_rng(seed)
    X, A = rng.normal(size=(n_rows, n_intermediate)), rng.normal(size=(n_anchors, n_intermediate))
    coefficients = rng.uniform(size=(n_anchors, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.linalg._kernels._VECTOR_EXPM1", has_expm1)
        found = kernel_product(X, A, coefficients, rbf(0.2), precision="float32")
    assert relative_error(found, naive(X, A, coefficients, 0.2)) < 2e-6


def test_auto_takes_single_precision_and_keeps_the_contract(model, rng):
    A, coefficients, gamma = model
    X = np.vstack([rng.normal(size=(3000, 5)), A + 0.01])
    found = kernel_product(X, A, coefficients, rbf(gamma))
    wanted = kernel_product(X, A, coefficients, rbf(gamma), precision="float64")
    assert_allclose(wanted[:200], naive(X[:200], A, coefficients, gamma), rtol=0, atol=1e-13)
    assert 1e-9 < relative_error(found, wanted) < 2e-6


def test_every_row_keeps_the_contract_by_itself(model, rng):
    """Also rows far away, whose result is many orders of magnitude smaller."""
    A, coefficients, gamma = model
    X = rng.normal(size=(300, 5)) * np.geomspace(0.01, 10, 300)[:, np.newaxis]
    found = kernel_product(X, A, coefficients, rbf(gamma))
    wanted = kernel_product(X, A, coefficients, rbf(gamma), precision="float64")
    errors = np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)
    assert np.abs(wanted).max(axis=1).min() < 1e-9
    assert errors.max() < 4e-6
    assert (errors > 1e-9).any()  # single precision was used
    assert (errors == 0).any()


@pytest.mark.parametrize("has_expm1", [True, False])
def test_errors_are_as_estimated_whichever_exponential_is_used(monkeypatch, rng, has_expm1):
    """A wide kernel and coefficients that cancel, where exp less one errs twenty times as much as expm1."""
    monkeypatch.setattr("datacollab.linalg._kernels._VECTOR_EXPM1", has_expm1)
    A = rng.normal(size=(1500, 5))
    Z = np.linalg.qr(np.tanh(A @ rng.normal(size=(5, 4))))[0]
    coefficients = ridge_coefficients(rbf(0.002).gram(A), 1e-2, Z)
    expansion = kernel_expansion(A, coefficients, rbf(0.002), precision="float32")
    error = np.abs(expansion(A) - kernel_product(A, A, coefficients, rbf(0.002), precision="float64")).max()
    assert (error < 1e-6) == has_expm1
    assert 0.5 < error / expansion.single.error < 2


def test_coefficients_that_cancel_give_double_precision(model):
    A, _, gamma = model
    Z = np.linalg.qr(np.random.default_rng(1).normal(size=(len(A), 4)))[0]
    coefficients = ridge_coefficients(rbf(gamma).gram(A), 1e-4, Z)
    found, single, double = (
        kernel_product(A, A, coefficients, rbf(gamma), precision=precision)
        for precision in ("auto", "float32", "float64")
    )
    assert relative_error(single, double) > 2e-6
    assert (found == double).all()


def test_narrow_kernels_give_double_precision(model, rng):
    A, coefficients, _ = model
    X = rng.normal(size=(100, 5))
    for precision in ("auto", "float32"):
        found = kernel_product(X, A, coefficients, rbf(50.0), precision=precision)
        assert (found == kernel_product(X, A, coefficients, rbf(50.0), precision="float64")).all()


@pytest.mark.parametrize(("precision", "tolerance"), [("auto", 1e-6), ("float32", 1e-6), ("float64", 1e-13)])
def test_a_row_does_not_depend_on_its_batch(model, rng, precision, tolerance):
    A, coefficients, gamma = model
    expansion = kernel_expansion(A, coefficients, rbf(gamma), precision=precision)
    X = rng.normal(size=(200, 5))
    together = expansion(X)
    for i in (0, 63, 64, 199):
        assert relative_error(expansion(X[i : i + 1]), together[i : i + 1]) < tolerance
    assert relative_error(expansion(X[::-1]), together[::-1]) < tolerance


def test_rows_at_any_distance_are_finite(model):
    A, coefficients, gamma = model
    X = np.multiply.outer([0.0, 5.0, 20.0, 1e3, 1e8, 1e160, 1e300], np.ones(5))
    found = kernel_product(X, A, coefficients, rbf(gamma))
    assert_allclose(found[:2], naive(X[:2], A, coefficients, gamma), rtol=0, atol=1e-6)
    assert (found[3:] == 0).all()


@given(n_rows=st.integers(1, 200), share=st.floats(0, 1), seed=st.integers(0, 99))
def test_rows_done_again_go_where_they_belong(n_rows, share, seed):
    """Far rows, too far for single precision, among near ones, over several blocks and chunks."""
    rng = np.random.default_rng(seed)
    A, coefficients = rng.normal(size=(1030, 3)), rng.uniform(size=(1030, 2))
    A[0], A[-1] = 5.0, -5.0
    X = rng.normal(size=(n_rows, 3))
    far = rng.uniform(size=n_rows) < share
    X[far] += rng.choice([-6.5, 6.5], size=(far.sum(), 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.linalg._kernels._CHUNK_ENTRIES", 5 * 64)
        patch.setattr("datacollab.linalg._kernels._MAX_SQUARE", 20.0)
        found = kernel_product(X, A, coefficients, rbf(0.1), precision="float32")
    assert_allclose(found, naive(X, A, coefficients, 0.1), rtol=1e-5)


@pytest.mark.parametrize("metric", ["linear", "poly", "laplacian", "cosine", Matern(nu=1.5)], ids=str)
def test_other_kernels_are_blocks_of_the_kernel_matrix(rng, monkeypatch, metric):
    X, A, coefficients = rng.normal(size=(23, 3)), rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    kernel = Kernel(metric=metric, parameters={"gamma": 0.4} if isinstance(metric, str) else {})
    monkeypatch.setattr("datacollab.linalg._kernels._KERNEL_ENTRIES", 55)
    assert_allclose(kernel_product(X, A, coefficients, kernel), kernel.between(X, A) @ coefficients, rtol=1e-12)


def test_rbf_by_the_formula(rng):
    X, A = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    kernel = Kernel(metric="rbf", parameters={"gamma": 0.7})
    expected = [[np.exp(-0.7 * np.sum((x - a) ** 2)) for a in A] for x in X]
    assert_allclose(kernel.between(X, A), expected, rtol=1e-13)
    assert_allclose(kernel.gram(A), kernel.between(A, A), rtol=1e-13)


def test_rbf_keeps_its_digits_far_from_the_origin(rng):
    A = rng.normal(size=(30, 3))
    kernel = Kernel(metric="rbf", parameters={"gamma": 1.0})
    far = A + 1e6
    near = far - 1e6  # the same rows with the rounding that the shift causes
    assert_allclose(kernel.gram(far), kernel.gram(near), atol=1e-12)


@pytest.mark.parametrize("metric", ["linear", "poly", "laplacian", "cosine", "sigmoid", "chi2", "additive_chi2"])
def test_scikit_learn_kernels_pass_through(rng, metric):
    X, A = rng.uniform(size=(3, 4)), rng.uniform(size=(5, 4))
    parameters = {"gamma": 0.4, "degree": 2, "coef0": 0.5}
    kernel = Kernel(metric=metric, parameters=parameters)
    assert_allclose(kernel.between(X, A), pairwise_kernels(X, A, metric=metric, filter_params=True, **parameters))


def test_callables_and_gaussian_process_kernels(rng):
    X, A = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    assert_allclose(Kernel(metric=np.dot).between(X, A), X @ A.T)
    assert_allclose(Kernel(metric=Matern(nu=1.5)).between(X, A), Matern(nu=1.5)(X, A))
    assert_allclose(
        Kernel(metric=lambda x, a, power: (x @ a) ** power, parameters={"power": 2}).gram(A), (A @ A.T) ** 2
    )


def test_median_gamma_by_a_loop(rng):
    A = rng.normal(size=(21, 3))
    pairs = [(i, j) for i in range(21) for j in range(i)]
    squared = np.median([np.sum((A[i] - A[j]) ** 2) for i, j in pairs])
    manhattan = np.median([np.sum(np.abs(A[i] - A[j])) for i, j in pairs])
    assert median_gamma(A) == pytest.approx(1 / squared)
    assert median_gamma(A, "laplacian") == pytest.approx(1 / manhattan)


def test_the_variance_of_single_precision_is_summed_in_double(rng):
    """Numbers that float32 holds, far from zero beside their spread."""
    A = (1000 + rng.normal(size=(20_000, 5))).astype(np.float32)
    assert scale_gamma(A) == pytest.approx(scale_gamma(A.astype(np.float64)), rel=1e-12)


def test_the_diagonal_of_a_function_takes_one_call_for_each_row(rng):
    A, calls = rng.normal(size=(70, 3)), []

    def squared(x, a, power):
        calls.append(1)
        return (x @ a) ** power

    kernel = Kernel(metric=squared, parameters={"power": 2})
    assert_allclose(kernel.diagonal(A), np.sum(A**2, axis=1) ** 2)
    assert len(calls) == 70
