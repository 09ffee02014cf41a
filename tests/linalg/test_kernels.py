import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import pairwise_kernels

from datacollab.linalg import Kernel, median_gamma, scale_gamma


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
