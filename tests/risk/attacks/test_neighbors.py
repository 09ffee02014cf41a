import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsRegressor

from datacollab.risk.attacks import NearestNeighborsAttack
from datacollab.risk.attacks._neighbors import CANDIDATES


def naive(Z, A, rows, number, kind):
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


@given(seed=st.integers(0, 1000), number=st.integers(1, 8), kind=st.sampled_from(["uniform", "kernel"]))
def test_is_the_weighted_mean_written_out(seed, number, kind):
    rng = np.random.default_rng(seed)
    Z, A, rows = rng.normal(size=(12, 3)), rng.normal(size=(12, 4)), rng.normal(size=(5, 3))
    attack = NearestNeighborsAttack(number, weights=kind, standardize=False).fit(Z, A)
    assert_allclose(attack.reconstruct(rows), naive(Z, A, rows, number, kind), atol=1e-10)


def test_uniform_weights_are_scikit_learns_regressor(rng):
    Z, A, rows = rng.normal(size=(40, 3)), rng.normal(size=(40, 4)), rng.normal(size=(9, 3))
    oracle = KNeighborsRegressor(5).fit(Z / Z.std(axis=0), A)
    attack = NearestNeighborsAttack(5, weights="uniform", standardize=True).fit(Z, A)
    assert_allclose(attack.reconstruct(rows), oracle.predict(rows / Z.std(axis=0)))


def test_the_choice_has_the_least_error_on_rows_left_out(rng):
    Z, A = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    A[:, :2] += 3 * Z
    errors = {}
    for standardize in (False, True):
        scaled = Z / Z.std(axis=0) if standardize else Z
        for number in [n for n in CANDIDATES if n <= 28] + [28]:
            for kind in ("uniform", "kernel"):
                left_out = [
                    A[i] - naive(np.delete(scaled, i, 0), np.delete(A, i, 0), scaled[i : i + 1], number, kind)[0]
                    for i in range(30)
                ]
                errors[number, kind, standardize] = np.sum(np.square(left_out))
    attack = NearestNeighborsAttack().fit(Z, A)
    assert errors[attack.n_neighbors_, attack.weights_, attack.standardize_] == pytest.approx(min(errors.values()))


def test_one_neighbour_is_the_leaked_row_itself(rng):
    Z, A = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    assert_allclose(NearestNeighborsAttack(1).fit(Z, A).reconstruct(Z), A)


def test_noise_wants_more_neighbours_than_none(rng):
    Z = rng.uniform(size=(400, 1))
    exact, noisy = np.sin(6 * Z), np.sin(6 * Z) + rng.normal(size=(400, 1))
    few, many = (NearestNeighborsAttack(weights="uniform").fit(Z, A).n_neighbors_ for A in (exact, noisy))
    assert few < many


def test_equal_distances_weigh_the_same():
    Z = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [3.0, 0.0], [0.0, 3.0]])
    A = np.arange(6.0)[:, np.newaxis]
    guess = NearestNeighborsAttack(3, weights="kernel", standardize=False).fit(Z, A).reconstruct([[0.0, 0.0]])
    assert np.isfinite(guess).all()
