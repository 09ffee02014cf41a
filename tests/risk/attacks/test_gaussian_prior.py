import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.risk.attacks import GaussianPriorAttack, LinearRegressionAttack


@pytest.fixture
def linear_map(rng):
    return rng.normal(size=(8, 3))


def gaussian(rng, n, mixing):
    return rng.normal(size=(n, 8)) @ mixing + np.arange(8.0)


def test_is_nearly_the_conditional_mean_of_the_true_gaussian(rng, linear_map):
    mixing = rng.normal(size=(8, 8)) * np.geomspace(3, 0.1, 8)[:, np.newaxis]
    S, noise = mixing.T @ mixing, 0.5
    leaked, public, private = (gaussian(rng, n, mixing) for n in (2000, 20_000, 50))
    Z, rows = (X @ linear_map + noise * rng.normal(size=(len(X), 3)) for X in (leaked, private))
    attack = GaussianPriorAttack().fit(Z, leaked, public=public)
    gain = np.linalg.solve(linear_map.T @ S @ linear_map + noise**2 * np.eye(3), linear_map.T @ S)
    exact = np.arange(8.0) + (rows - np.arange(8.0) @ linear_map) @ gain
    assert_allclose(attack.reconstruct(rows), exact, atol=0.1)
    assert_allclose(attack.noise_, noise**2 * np.eye(3), atol=0.03)


def test_the_prior_gives_away_what_few_leaked_rows_do_not(rng, linear_map):
    """Least squares from five noisy pairs knows nothing of how the other columns go with those it saw."""
    mixing = rng.normal(size=(8, 8)) * np.geomspace(3, 0.1, 8)[:, np.newaxis]
    leaked, public, private = (gaussian(rng, n, mixing) for n in (5, 2000, 200))
    Z, rows = (X @ linear_map + 0.5 * rng.normal(size=(len(X), 3)) for X in (leaked, private))
    attacks = (GaussianPriorAttack().fit(Z, leaked, public=public), LinearRegressionAttack().fit(Z, leaked))
    errors = [np.mean((attack.reconstruct(rows) - private) ** 2) for attack in attacks]
    assert errors[0] < 0.8 * errors[1]


def test_each_class_has_a_prior_of_its_own(rng, linear_map):
    y = np.arange(600) % 3
    bases = rng.normal(size=(3, 3, 8))
    X = np.einsum("ni,nij->nj", rng.normal(size=(600, 3)), bases[y]) + 5 * y[:, None]
    Z = X @ linear_map
    attack = GaussianPriorAttack().fit(Z[:60], X[:60], target=y[:60], public=X[60:500], public_target=y[60:500])
    guesses = attack.reconstruct(Z[500:], target=y[500:])
    assert np.mean((guesses - X[500:]) ** 2) < 0.02 * X[500:].var()
    blind = GaussianPriorAttack().fit(Z[:60], X[:60], public=X[60:500]).reconstruct(Z[500:])
    assert np.mean((guesses - X[500:]) ** 2) < 0.2 * np.mean((blind - X[500:]) ** 2)


def test_an_identity_is_undone(rng):
    leaked, public, private = (rng.normal(size=(n, 8)) for n in (40, 100, 10))
    assert_allclose(GaussianPriorAttack().fit(leaked, leaked, public=public).reconstruct(private), private, atol=1e-3)
