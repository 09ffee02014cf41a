"""No combination of an unweighted and a weighted sum rests on fewer rows than is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.party._dominance import least_effective_rows, rounded_weights, truncated_weights

WEIGHTS = st.lists(st.integers(0, 400), min_size=10, max_size=60).map(lambda x: 1.0 + np.array(x) / 8.0)


def rows_at(weights, c):
    d = weights - c
    return (d**2).sum() ** 2 / (d**4).sum()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_minimum_over_a_fine_grid(seed):
    weights = np.random.default_rng(seed).lognormal(size=40)
    grid = np.linspace(weights.min() - 100, weights.max() + 100, 200_001)
    naive = min(rows_at(weights, c) for c in grid)
    found = least_effective_rows(weights)
    assert naive * (1 - 1e-4) < found <= naive * (1 + 1e-12)


@given(WEIGHTS, st.floats(-100, 100))
def test_no_combination_rests_on_fewer(weights, c):
    found = least_effective_rows(weights)
    if np.ptp(weights) > 0:
        for at in (c, 0.0, np.median(weights), *np.unique(weights)):
            assert found <= rows_at(weights, at) * (1 + 1e-9)
    assert 1 - 1e-9 <= found <= len(weights)


@given(WEIGHTS, st.floats(0.01, 100), st.floats(-50, 50))
def test_units_and_origin_of_weights_change_nothing(weights, factor, shift):
    np.testing.assert_allclose(least_effective_rows(weights * factor + shift), least_effective_rows(weights), rtol=1e-6)


@pytest.mark.parametrize("n_rows", [50, 100_000])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("step", [1e-12, 1e-6, 40.0])
def test_k_rows_apart_count_as_k_however_small_the_step(n_rows, k, step):
    weights = np.where(np.arange(n_rows) < k, 1.0 + step, 1.0)
    assert least_effective_rows(weights) == pytest.approx(k, rel=1e-6)
    # What is sent has no steps that small.
    assert least_effective_rows(rounded_weights(weights)) == pytest.approx(k if step > 1e-3 else n_rows, rel=1e-6)


def test_equal_weights_are_one_sum():
    assert least_effective_rows(np.full(12, 3.7)) == 12
    # What differs by rounding only is equal.
    assert least_effective_rows(rounded_weights(np.array([1 / 0.3] * 6 + [1 / (0.1 + 0.2)] * 6))) == 12


@given(WEIGHTS)
def test_truncated_weights_rest_on_enough_rows_and_change_least(weights):
    found = truncated_weights(weights, 10)
    assert least_effective_rows(found) >= 10 * (1 - 1e-9)
    order = np.argsort(weights, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert (found >= weights.min()).all()
    assert (found <= weights.max()).all()
    if least_effective_rows(weights) >= 10:
        np.testing.assert_array_equal(found, weights)
    if len(weights) >= 20:
        inner = weights[order[9:-9]]
        np.testing.assert_array_equal(found[order[9:-9]], inner)
