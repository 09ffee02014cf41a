"""Attacks with leaked pairs: formulas written out, invariances, and choices by rows left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import (
    EmulatorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    NearestNeighborsAttack,
    _paired,
)
from datacollab.risk.attacks._paired import Setting, kernel_regression, leading_directions

SHAPES = st.tuples(st.integers(2, 25), st.integers(1, 8), st.integers(1, 8))


def naive_lr(Z, A, rows):
    coefficients = np.linalg.pinv(Z - Z.mean(axis=0), rcond=1e-10) @ (A - A.mean(axis=0))
    return (rows - Z.mean(axis=0)) @ coefficients + A.mean(axis=0)


def draw_pairs(seed, n_leaked, n_features, n_intermediate):
    """Leaked pairs with nothing in common, and further rows: the formulas must agree for any numbers."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_leaked, n_intermediate)) + 3,
        rng.normal(size=(n_leaked, n_features)) - 5,
        rng.normal(size=(6, n_intermediate)),
    )


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def assert_close(got, wanted, rtol=1e-6):
    assert_allclose(got, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_is_the_formula_with_pseudo_inverses_written_out(seed, shapes):
    Z, A, rows = draw_pairs(seed, *shapes)
    assert_close(LinearRegressionAttack().fit(Z, A).reconstruct(rows), naive_lr(Z, A, rows))


@given(seed=st.integers(0, 1000), d=st.integers(1, 6))
def test_an_invertible_affine_change_of_the_representation_does_not_hinder_lr(seed, d):
    Z, A, rows = draw_pairs(seed, 20, 5, d)
    M = rotation(seed, d) * np.random.default_rng(seed).uniform(0.1, 10.0, size=d)
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    assert_close(LinearRegressionAttack().fit(Z @ M - 7, A).reconstruct(rows @ M - 7), before)


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_reconstructions_turn_with_the_features_and_nothing_else_turns_or_moves_them(seed, shapes):
    """Neither a rotation and a shift of the representation nor another order of the pairs."""
    Z, A, rows = draw_pairs(seed, *shapes)
    R, Q = rotation(seed, Z.shape[1]), rotation(seed + 1, A.shape[1])
    order = np.random.default_rng(seed).permutation(len(Z))
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    after = LinearRegressionAttack().fit((Z @ R - 7)[order], (A @ Q)[order]).reconstruct(rows @ R - 7)
    assert_close(after, before @ Q)


@given(seed=st.integers(0, 1000), n_leaked=st.integers(12, 25))
def test_redundant_columns_change_nothing(seed, n_leaked):
    """A column repeated, and a constant one that no binary fraction equals."""
    Z, A, rows = draw_pairs(seed, n_leaked, 7, 3)
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    A = np.column_stack([A, np.full(n_leaked, 0.1)])
    after = LinearRegressionAttack().fit(np.column_stack([Z, np.full(n_leaked, 0.1)]), A)
    guesses = after.reconstruct(np.column_stack([rows, np.zeros(6)]))
    assert_close(guesses, np.column_stack([before, np.full(6, 0.1)]))
    doubled = LinearRegressionAttack().fit(np.column_stack([Z, Z]), A).reconstruct(np.column_stack([rows, rows]))
    assert_close(doubled, guesses)


def test_a_constant_representation_gives_the_mean_leaked_row(rng):
    """Also where the constant is not the rounded mean of its copies, and for rows that differ from it."""
    leaked = rng.normal(size=(30, 5))
    guesses = LinearRegressionAttack().fit(np.full((30, 3), 0.1), leaked).reconstruct(rng.normal(size=(4, 3)))
    assert_allclose(guesses, np.tile(leaked.mean(axis=0), (4, 1)))


def test_constant_originals_are_reconstructed(rng):
    guesses = (
        LinearRegressionAttack()
        .fit(rng.normal(size=(30, 3)), np.full((30, 5), 0.1))
        .reconstruct(rng.normal(size=(4, 3)))
    )
    assert (guesses == 0.1).all()


def naive_mean(Z, A, rows, number, kind):
    D = cdist(rows, Z)
    guesses = []
    for distances in D:
        order = np.argsort(distances, kind="stable")
        if kind == "uniform":
            weights = np.ones(number)
        else:
            weights = 1 - (distances[order[:number]] / distances[order[number]]) ** 2
        guesses.append(weights @ A[order[:number]] / weights.sum())
    return np.array(guesses)


@given(seed=st.integers(0, 1000), standardize=st.booleans())
def test_neighbours_are_the_weighted_mean_written_out(seed, standardize):
    rng = np.random.default_rng(seed)
    Z, A, rows = rng.normal(size=(12, 3)), rng.normal(size=(12, 4)), rng.normal(size=(5, 3))
    unit = Z.std(axis=0) if standardize else 1.0
    attack = NearestNeighborsAttack(standardize=standardize).fit(Z, A)
    expected = naive_mean(Z / unit, A, rows / unit, attack.n_neighbors_, attack.weights_)
    assert_allclose(attack.reconstruct(rows), expected, atol=1e-10)


def test_the_neighbours_chosen_have_the_least_error_on_rows_left_out(rng):
    Z, A = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    A[:, :2] += 3 * Z
    errors = {}
    for standardize in (False, True):
        scaled = Z / Z.std(axis=0) if standardize else Z
        for number in [n for n in _paired.CANDIDATES if n <= 28] + [28]:
            for kind in ("uniform", "kernel"):
                left_out = [
                    A[i] - naive_mean(np.delete(scaled, i, 0), np.delete(A, i, 0), scaled[i : i + 1], number, kind)[0]
                    for i in range(30)
                ]
                errors[number, kind, standardize] = np.sum(np.square(left_out))
    attack = NearestNeighborsAttack().fit(Z, A)
    assert errors[attack.n_neighbors_, attack.weights_, attack.standardize_] == pytest.approx(min(errors.values()))


def curved(rng, n):
    A = rng.uniform(-1, 1, size=(n, 2))
    return np.column_stack([np.exp(A[:, 0]) * np.cos(2 * A[:, 1]), np.exp(A[:, 0]) * np.sin(2 * A[:, 1])]), A


def one(kernel, gamma, alpha, standardize=False):
    return [Setting(kernel, gamma, standardize)], (alpha,)


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

    fitted = kernel_regression(X, Y, *one(kernel, 0.7, alpha))
    kept = [np.delete(np.arange(n), i) for i in range(n)]
    expected = np.array(
        [Y[i] - naive(X[rest], Y[rest], X[i : i + 1], evaluate, alpha)[0] for i, rest in enumerate(kept)]
    )
    assert_allclose(fitted.residuals, expected, atol=1e-7 * np.abs(expected).max())
    assert_allclose(fitted.predict(X), naive(X, Y, X, evaluate, alpha), atol=1e-8)


def test_the_regression_chosen_has_the_least_error_of_all(rng):
    X, Y = curved(rng, 60)
    gammas, alphas = (0.1, 1.0, 10.0), (1e-4, 1e-2, 1.0)
    kernels = [("linear", 1.0), *(("rbf", gamma) for gamma in gammas)]
    settings = [Setting(*kernel, standardize) for standardize in (False, True) for kernel in kernels]
    chosen = kernel_regression(X, Y, settings, alphas)
    least = np.sum(chosen.residuals**2)
    errors = {
        (kernel, gamma, standardize, alpha): np.sum(
            kernel_regression(X, Y, *one(kernel, gamma, alpha, standardize)).residuals ** 2
        )
        for kernel in ("linear", "rbf")
        for gamma in (gammas if kernel == "rbf" else (1.0,))
        for standardize in (False, True)
        for alpha in alphas
    }
    setting = chosen.setting
    assert least == pytest.approx(min(errors.values()))
    found = (setting.kernel, setting.gamma, setting.standardize, setting.alpha)
    assert errors[found] == pytest.approx(least)
    assert max(errors.values()) > 2 * least


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


def test_of_many_pairs_some_choose_and_all_are_learnt_from(rng, monkeypatch):
    X, Y = curved(rng, 120)
    given = one("rbf", 1.0, 1e-2)
    everything = kernel_regression(X, Y, *given)
    monkeypatch.setattr(_paired, "MAX_CHOICE", 60)
    some = kernel_regression(X, Y, *given)
    assert some.residuals.shape == (60, 2)
    assert_allclose(some.predict(X), everything.predict(X), atol=1e-8)
    monkeypatch.setattr(_paired, "MAX_PAIRS", 80)
    assert kernel_regression(X, Y, *given).coefficients.shape == (80, 2)


@pytest.mark.parametrize("shape", [(30, 90), (90, 30)])
def test_leading_directions_keep_most_of_the_distances(rng, shape):
    Y = rng.normal(size=shape) * np.geomspace(10, 0.01, shape[1])
    Y -= Y.mean(axis=0)
    U, s, _ = np.linalg.svd(Y, full_matrices=False)
    assert_allclose(
        leading_directions(Y, 8) @ leading_directions(Y, 8).T, (U[:, :8] * s[:8] ** 2) @ U[:, :8].T, atol=1e-8
    )


def ring(rng, n):
    """Rows on a curve in six columns, and one nonlinear number about each."""
    angle = rng.uniform(-np.pi, np.pi, size=n)
    A = np.column_stack([f(k * angle) for k in (1, 2, 3) for f in (np.sin, np.cos)])
    return np.column_stack([np.exp(A[:, 0]), np.tanh(2 * A[:, 1])]), A


def test_public_rows_fill_in_what_few_leaked_ones_cannot_tell(rng):
    (Z, A), (_, public), (rows, private) = ring(rng, 25), ring(rng, 3000), ring(rng, 100)
    attacks = (EmulatorAttack().fit(Z, A, public=public), KernelRidgeAttack().fit(Z, A))
    errors = [np.mean((attack.reconstruct(rows) - private) ** 2) for attack in attacks]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.nightly
def test_is_the_posterior_mean_of_a_gaussian_where_everything_is_gaussian(rng):
    """A linear map with noise, a library so large that its weighted mean is an integral."""
    F = rng.normal(size=(3, 2))
    leaked, public, private = (rng.normal(size=(n, 3)) for n in (900, 30_000, 40))
    Z, rows = (X @ F + 0.7 * rng.normal(size=(len(X), 2)) for X in (leaked, private))
    exact = rows @ np.linalg.solve(F.T @ F + 0.49 * np.eye(2), F.T)
    attack = EmulatorAttack().fit(Z, leaked, public=public)
    # The grid of temperatures may miss one by a step.
    assert attack.temperature_ in (0.6, 1.0, 1.7)
    assert np.mean((attack.reconstruct(rows) - exact) ** 2) < 0.05


def test_private_rows_in_the_library_are_found(rng):
    (Z, A), (_, public), (rows, private) = ring(rng, 300), ring(rng, 300), ring(rng, 40)
    guesses = EmulatorAttack().fit(Z, A, public=np.vstack([public, private])).reconstruct(rows)
    assert np.median(np.abs(guesses - private).max(axis=1)) < 0.15


def test_known_classes_restrict_the_library(rng):
    """Reconstructions are means of rows of the class, and of all rows where there are none of it."""
    A, public = rng.normal(size=(30, 4)), rng.normal(size=(200, 4))
    y, y_public = np.arange(30) % 2, np.arange(200) % 2
    A[:, 0], public[:, 0] = y, y_public
    attack = EmulatorAttack().fit(A[:, 1:3], A, target=y, public=public, public_target=y_public)
    rows = rng.normal(size=(8, 2))
    assert_allclose(attack.reconstruct(rows, target=np.arange(8) % 2)[:, 0], np.arange(8) % 2, atol=1e-12)
    unknown = attack.reconstruct(rows, target=np.full(8, 7))
    blind = EmulatorAttack().fit(A[:, 1:3], A, public=public)
    blind.temperature_ = attack.temperature_
    assert_allclose(unknown, blind.reconstruct(rows), atol=1e-10)


def test_what_an_emulator_learns_from_must_be_pairs(rng):
    A = rng.normal(size=(60, 5))
    with pytest.raises(AgreementError, match="representation has 59 rows but the leaked original has 60"):
        EmulatorAttack().emulate(A, A[1:, :3])
    with pytest.raises(RepresentationError, match="original"):
        EmulatorAttack().emulate(np.where(A > 2, np.nan, A), A)
    assert_allclose(EmulatorAttack().emulate(A.tolist(), A[:, :3].tolist())(A), A[:, :3], atol=1e-3)


@pytest.mark.parametrize("is_fitted_first", [False, True])
def test_an_emulator_is_the_one_that_its_attack_rests_on(rng, is_fitted_first, monkeypatch):
    """It is learnt once for the same pairs, and anew for others."""
    learnt = []
    monkeypatch.setattr(_paired, "kernel_regression", lambda *known: learnt.append(1) or kernel_regression(*known))
    A, P = rng.normal(size=(60, 5)) + 3, rng.normal(size=(200, 5)) + 3
    M = rng.normal(size=(5, 3))
    attack = EmulatorAttack()
    before = None if is_fitted_first else attack.emulate(A, A @ M)
    attack.fit(A @ M, A, public=P)
    emulated = (before or attack.emulate(A, A @ M))(P)
    assert_allclose(emulated, P @ M, atol=1e-3)
    own = attack.emulator_.predict(P - attack.mean_original_) + attack.mean_representation_
    assert_allclose(emulated, own, rtol=0, atol=0)
    assert len(learnt) == 1
    other = attack.emulate(A, A @ -M)(P)
    assert_allclose(other, -emulated, atol=1e-3)
    assert len(learnt) == 2
