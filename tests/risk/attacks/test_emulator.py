import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.risk.attacks import EmulatorAttack, GaussianPriorAttack, KernelRidgeAttack


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
    gaussian = GaussianPriorAttack().fit(Z, leaked, public=public).reconstruct(rows)
    assert np.mean((gaussian - exact) ** 2) < 0.01


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


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_representation_do_not_matter(rng, scale):
    (Z, A), (_, public), (rows, _) = ring(rng, 30), ring(rng, 60), ring(rng, 10)
    expected = EmulatorAttack().fit(Z, A, public=public).reconstruct(rows)
    guesses = EmulatorAttack().fit(Z * scale, A, public=public).reconstruct(rows * scale)
    assert_allclose(guesses, expected, atol=1e-6)
