"""Noise that keeps a promise: its last bits, and what the promise means for attacks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import trapezoid

from datacollab.party import GaussianMechanism, Promise, gaussian_delta, gaussian_sigma
from datacollab.party._gaussian_noise import gaussian_epsilon, grid_step, noisy
from datacollab.party._guarantee import guarantee_of, mu_of


class Silent:
    """A generator whose noise is known."""

    def __init__(self, noise):
        self.noise = noise

    def standard_normal(self, shape):
        return np.broadcast_to(self.noise, shape)


@given(st.floats(1e-12, 1e12), st.integers(0, 10**6))
def test_noised_values_lie_on_a_grid_of_powers_of_two(sigma, seed):
    rng = np.random.default_rng(seed)
    values, noise = rng.normal(size=20) * sigma * 10.0 ** rng.integers(-3, 4), rng.normal(size=20)
    released, step = noisy(values, sigma, Silent(noise)), grid_step(sigma)
    assert math.log2(step) == round(math.log2(step))
    assert sigma / 2**13 < step <= sigma / 2**12
    assert_array_equal(released / step, np.round(released / step))
    exact = values + sigma * noise
    # Half a step, and what double precision itself may lose.
    assert (np.abs(released - exact) <= step / 2 + 4 * np.finfo(float).eps * (np.abs(exact) + sigma * 10)).all()


def test_last_bits_tell_nothing(rng):
    """Without the grid, whoever knows f to the last bit tells which values can be sums of x and the noise."""
    x, other, sigma = 1e3 + 1 / 3, 1e3 + 1 / 7, 1.0
    first, second = (noisy(np.full(4000, value), sigma, np.random.RandomState(0)) for value in (x, other))
    step = grid_step(sigma)
    assert set(np.mod(first, step)) == set(np.mod(second, step)) == {0.0}


def test_mechanism_publishes_on_the_grid(rng):
    anchor, mechanism = rng.normal(size=(200, 3)), GaussianMechanism(2.0)
    released, _ = mechanism.apply(rng.normal(size=(50, 3)), np.zeros(50), anchor_representation=anchor)
    step = grid_step(mechanism.noise(anchor))
    assert_array_equal(np.mod(released, step), 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 1e-3), (4.0, 1e-5), (8.0, 1e-6)])
def test_guarantee_bounds_the_best_test(epsilon, delta):
    """Neyman and Pearson: the likelihood ratio of two normal densities, integrated numerically."""
    guarantee = guarantee_of(Promise(epsilon=epsilon, delta=delta), "a", 100)
    sigma = gaussian_sigma(epsilon, delta)
    t = np.linspace(-14 * sigma, 14 * sigma + 1, 400_001)
    without, with_row = stats.norm(0, sigma).pdf(t), stats.norm(1, sigma).pdf(t)
    ratio = with_row / without
    order = np.argsort(-ratio)
    spacing = t[1] - t[0]
    fpr, tpr = np.cumsum(without[order]) * spacing, np.cumsum(with_row[order]) * spacing
    assert_allclose(guarantee.auc_at_most, trapezoid(tpr, fpr), atol=1e-4)
    for allowed in (0.001, 0.01, 0.2):
        assert_allclose(guarantee.tpr_at_most(allowed), np.interp(allowed, fpr, tpr), atol=1e-4)
    # And the curve is where (epsilon, delta) says that no curve may go beyond.
    assert (tpr <= math.exp(epsilon) * fpr + delta + 1e-6).all()


def test_reference_figures_are_those_of_four_and_eight():
    four, eight = (guarantee_of(Promise(epsilon=epsilon, delta=1e-5), "a", 100) for epsilon in (4.0, 8.0))
    assert (round(four.auc_at_most, 2), round(eight.auc_at_most, 2)) == (0.74, 0.88)
    assert four.tpr_at_most(0) == 0
    assert four.tpr_at_most(1) == 1
    with pytest.raises(ValueError, match="fpr must be from 0 to 1"):
        four.tpr_at_most(1.5)
    assert "area under the curve above 0.75" in four.statement


@given(st.floats(0.05, 20), st.floats(-9, -1))
def test_epsilon_is_the_inverse_of_sigma(epsilon, exponent):
    delta = 10.0**exponent
    found = gaussian_epsilon(gaussian_sigma(epsilon, delta), delta)
    assert gaussian_delta(gaussian_sigma(epsilon, delta), found) <= delta * (1 + 1e-6)
    assert found == pytest.approx(epsilon, rel=1e-4, abs=1e-4)


def test_two_shares_are_one_with_half_the_variance():
    """Two noisy copies of one number are worth their mean, whose noise is smaller by the root of two."""
    promise = Promise(epsilon=1.0, delta=1e-5)
    both = guarantee_of(promise, "a", 100, [mu_of(promise)])
    assert both.n_shares == 2
    assert both.epsilon == pytest.approx(gaussian_epsilon(gaussian_sigma(1.0, 1e-5) / math.sqrt(2), 1e-5))
    assert 1.0 < both.epsilon < 2.0
    assert "2 shares of these rows together" in both.statement
