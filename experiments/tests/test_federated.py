"""The comparison with federated averaging: perceptron, averaging, draws and table; Flower is not needed."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

FEDERATED = Path(__file__).resolve().parents[1] / "federated"
sys.path.insert(0, str(FEDERATED))

import draws  # noqa: E402
from averaging import federated_averaging, local_update  # noqa: E402
from mlp import N_CLASSES, Settings, gradient, initial_parameters, probabilities, train  # noqa: E402
from run_datacollab import COLLABORATIONS, exchange, measure_baseline, measure_collaboration, models  # noqa: E402


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    return generator.standard_normal((40, 6)).astype(np.float32), generator.integers(0, N_CLASSES, 40)


@pytest.fixture(scope="module")
def small_draw():
    generator = np.random.default_rng(1)
    centres = 3 * generator.standard_normal((N_CLASSES, 20))

    def labelled(*shape):
        y = np.resize(np.arange(N_CLASSES), shape)
        return (centres[y] + generator.standard_normal((*shape, 20))).astype(np.float32), y

    (X, y), (X_public, y_public), (X_test, y_test) = labelled(4, 50), labelled(120), labelled(100)
    return draws.Draw(seed=0, X=X, y=y, X_public=X_public, y_public=y_public, X_test=X_test, y_test=y_test)


def test_gradient_is_the_slope_of_the_cross_entropy(rows):
    X, y = rows
    parameters = [array.astype(np.float64) for array in initial_parameters(6, seed=0)]

    def loss():
        return -np.log(probabilities(parameters, X)[np.arange(len(y)), y]).mean()

    for array, slopes in zip(parameters, gradient(parameters, X, y), strict=True):
        for index in [tuple(0 for _ in array.shape), tuple(length // 2 for length in array.shape)]:
            kept, step = array[index], 1e-6
            array[index] = kept + step
            above = loss()
            array[index] = kept - step
            slope = (above - loss()) / (2 * step)
            array[index] = kept
            assert_allclose(slopes[index], slope, rtol=1e-5, atol=1e-9)


def test_one_party_alone_just_trains_on(rows):
    settings, parameters = Settings(0.1, 2, 10), initial_parameters(6, seed=0)
    federated = list(federated_averaging(parameters, [rows], settings, n_rounds=3, seed=5))
    for round_number in (1, 2, 3):
        parameters = local_update(parameters, rows, settings, seed=5, party=0, round_number=round_number)
        for ours, theirs in zip(federated[round_number - 1], parameters, strict=True):
            assert_array_equal(ours, theirs)


def test_one_full_step_at_each_party_is_gradient_descent_on_the_combined_rows(rows):
    X, y = rows
    cuts = [slice(0, 8), slice(8, 20), slice(20, 40)]  # unequal, so that the weights matter
    start = initial_parameters(6, seed=0)
    settings = Settings(0.5, 1, len(X))
    parties = [(X[cut], y[cut]) for cut in cuts]
    federated = list(federated_averaging(start, parties, settings, n_rounds=5, seed=0))[-1]
    pooled = train(start, X, y, Settings(0.5, 5, len(X)), np.random.default_rng(0))
    for ours, theirs in zip(federated, pooled, strict=True):
        assert_allclose(ours, theirs, atol=1e-6)


def test_rows_of_the_development_draw_are_in_no_other():
    n_rows = 14_000
    numbers = np.arange(n_rows, dtype=float)[:, None]
    data = SimpleNamespace(X=numbers, y=np.arange(n_rows) % N_CLASSES)

    def used(seed):
        drawn = draws.draw(data, "iid", seed)
        parts = [drawn.X.ravel(), drawn.X_public.ravel(), drawn.X_test.ravel()]
        together = np.concatenate(parts)
        assert len(set(together)) == len(together)
        return set(together)

    development = used(draws.DEVELOPMENT)
    assert all(development.isdisjoint(used(seed)) for seed in range(3))


@pytest.mark.slow
def test_bytes_of_a_collaboration_are_those_of_its_arrays(small_draw):
    way = COLLABORATIONS[0]
    exchanged = exchange(way, small_draw)
    settings = {"learning_rate": 0.1, "epochs": 10, "batch_size": 10}
    perceptron = models(settings, 0, standardize=True)["MLP"]
    measured = measure_collaboration(exchanged, perceptron)
    k, n, anchors, d, hidden = 4, 50, 120, way.n_components, 50
    up = 8 * ((n + anchors) * d + n + anchors)
    g = 8 * 2 * anchors * d
    h = 4 * (d * hidden + hidden + hidden * N_CLASSES + N_CLASSES) + 8 * 2 * d
    assert measured["bytes"] == k * (up + g + h)
    alone = measure_baseline("Local", models(settings, 0, standardize=False)["RF"], small_draw)
    assert 0.5 < measured["accuracy"] <= 1
    assert 0.3 < alone["accuracy"] <= 1
