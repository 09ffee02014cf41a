import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from datacollab.risk.attacks import KernelRidgeAttack, LinearRegressionAttack, _kernels
from datacollab.risk.attacks._kernels import Settings, kernel_regression, leading_directions


def curved(rng, n):
    A = rng.uniform(-1, 1, size=(n, 2))
    return np.column_stack([np.exp(A[:, 0]) * np.cos(2 * A[:, 1]), np.exp(A[:, 0]) * np.sin(2 * A[:, 1])]), A


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def one(kernel, gamma, alpha, standardize=False):
    return Settings(kernels=(kernel,), gammas=(gamma,), standardize=(standardize,), alphas=(alpha,))


def naive(X, Y, rows, kernel, alpha):
    """Ridge with an unpenalised intercept, from the normal equations of the dual."""
    n = len(X)
    system = np.block([[kernel(X, X) + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return kernel(rows, X) @ solution[:n] + solution[n]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@given(seed=st.integers(0, 1000), n=st.integers(3, 20), alpha=st.floats(1e-3, 10))
def test_leave_one_out_errors_are_those_of_fits_without_the_row(kernel, seed, n, alpha):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    spread = ((X - X.mean(axis=0)) ** 2).sum() / n

    def evaluate(left, right):
        if kernel == "linear":
            return left @ right.T / spread
        return rbf_kernel(left, right, gamma=0.7 / spread / 2)

    fitted = kernel_regression(X, Y, one(kernel, 0.7, alpha))
    kept = [np.delete(np.arange(n), i) for i in range(n)]
    expected = np.array(
        [Y[i] - naive(X[rest], Y[rest], X[i : i + 1], evaluate, alpha)[0] for i, rest in enumerate(kept)]
    )
    assert_allclose(fitted.residuals, expected, atol=1e-7 * np.abs(expected).max())
    assert fitted.error == pytest.approx((expected**2).sum() / n)
    assert_allclose(fitted.predict(X), naive(X, Y, X, evaluate, alpha), atol=1e-8)


def test_is_scikit_learns_kernel_ridge_up_to_the_intercept(rng):
    """On a kernel whose rows sum to zero the intercept is the mean."""
    X = rng.normal(size=(30, 4))
    X -= X.mean(axis=0)
    Y = rng.normal(size=(30, 2))
    Y -= Y.mean(axis=0)
    oracle = KernelRidge(alpha=0.3 * (X**2).sum() / 30, kernel="linear").fit(X, Y)
    fitted = kernel_regression(X, Y, one("linear", 1.0, 0.3))
    assert_allclose(fitted.predict(X), oracle.predict(X), atol=1e-10)
    assert_allclose(X @ fitted.linear_map() + fitted.intercept, oracle.predict(X), atol=1e-10)


def test_the_choice_has_the_least_error_of_all(rng):
    X, Y = curved(rng, 60)
    gammas, alphas = (0.1, 1.0, 10.0), (1e-4, 1e-2, 1.0)
    chosen = kernel_regression(X, Y, Settings(("linear", "rbf"), gammas, (False, True), alphas))
    errors = {
        (kernel, gamma, standardize, alpha): kernel_regression(X, Y, one(kernel, gamma, alpha, standardize)).error
        for kernel in ("linear", "rbf")
        for gamma in (gammas if kernel == "rbf" else (1.0,))
        for standardize in (False, True)
        for alpha in alphas
    }
    setting = chosen.setting
    assert chosen.error == pytest.approx(min(errors.values()))
    found = (setting.kernel, setting.gamma, setting.standardize, setting.alpha)
    assert errors[found] == pytest.approx(chosen.error)
    assert max(errors.values()) > 2 * chosen.error


def test_columns_in_other_units_are_scaled_where_that_helps(rng):
    Z, A = curved(rng, 150)
    noisy = np.column_stack([Z, 100 * rng.normal(size=150)])
    attack = KernelRidgeAttack().fit(noisy[:100], A[:100])
    assert attack.regression_.setting.standardize
    errors = [
        np.mean((KernelRidgeAttack(standardize=s).fit(noisy[:100], A[:100]).reconstruct(noisy[100:]) - A[100:]) ** 2)
        for s in (True, False)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_bends_where_lr_cannot(rng):
    Z, A = curved(rng, 300)
    errors = [
        np.mean((attack.fit(Z[:200], A[:200]).reconstruct(Z[200:]) - A[200:]) ** 2)
        for attack in (KernelRidgeAttack(), LinearRegressionAttack())
    ]
    assert errors[0] < 0.05 * errors[1]


def test_a_linear_kernel_without_penalty_is_lr(rng):
    Z, A = rng.normal(size=(40, 5)), rng.normal(size=(40, 7))
    expected = LinearRegressionAttack().fit(Z, A).reconstruct(Z)
    assert_allclose(KernelRidgeAttack("linear", alphas=[1e-9]).fit(Z, A).reconstruct(Z), expected, atol=1e-5)


def test_rotating_the_originals_rotates_the_reconstruction(rng):
    Z, A = curved(rng, 40)
    R = rotation(1, 2)
    before = KernelRidgeAttack().fit(Z, A).reconstruct(Z)
    assert_allclose(KernelRidgeAttack().fit(Z, A @ R).reconstruct(Z), before @ R, atol=1e-8)


def test_of_many_pairs_some_choose_and_all_are_learnt_from(rng, monkeypatch):
    Z, A = curved(rng, 120)
    everything = KernelRidgeAttack().fit(Z, A)
    setting = everything.regression_.setting
    monkeypatch.setattr(_kernels, "MAX_CHOICE", 60)
    some = KernelRidgeAttack(gammas=[setting.gamma], alphas=[setting.alpha], standardize=setting.standardize).fit(Z, A)
    assert some.regression_.residuals.shape == (60, 2)
    assert_allclose(some.reconstruct(Z), everything.reconstruct(Z), atol=1e-8)
    monkeypatch.setattr(_kernels, "MAX_PAIRS", 80)
    assert KernelRidgeAttack().fit(Z, A).regression_.coefficients.shape == (80, 2)


@pytest.mark.parametrize("shape", [(30, 90), (90, 30)])
def test_leading_directions_keep_most_of_the_distances(rng, shape):
    Y = rng.normal(size=shape) * np.geomspace(10, 0.01, shape[1])
    Y -= Y.mean(axis=0)
    U, s, _ = np.linalg.svd(Y, full_matrices=False)
    assert_allclose(
        leading_directions(Y, 8) @ leading_directions(Y, 8).T, (U[:, :8] * s[:8] ** 2) @ U[:, :8].T, atol=1e-8
    )


@pytest.mark.parametrize("name", ["gammas", "alphas"])
@pytest.mark.parametrize("bad", [[], [0.0], [-1.0, 1.0], [np.nan]])
def test_bad_grids_are_refused(rng, name, bad):
    Z, A = curved(rng, 10)
    with pytest.raises(ValueError, match=f"{name} must be a sequence of positive numbers"):
        KernelRidgeAttack(**{name: bad}).fit(Z, A)
