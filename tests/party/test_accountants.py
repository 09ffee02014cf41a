"""The noise that a promise takes, held against other ways to compute it: an integral, and Google's dp-accounting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import datacollab as dc
from datacollab.party import NoisyClassSums, gaussian_delta, gaussian_sigma
from datacollab.party._gaussian_noise import gaussian_epsilon

REFERENCE = {
    (0.5, 1e-5): 7.0318267,
    (1.0, 1e-9): 5.4952662,
    (2.0, 1e-5): 1.9938125,
    (4.0, 1e-5): 1.0811619,
    (8.0, 1e-6): 0.6529354,
}
"""`GaussianPrivacyLoss.from_privacy_guarantee` of dp-accounting 0.6.0: standard deviations to about 1e-7."""


def divergence(sigma, epsilon):
    """The integral of max(p - e^epsilon q, 0) for unit shift, over where it is not zero."""
    start = 0.5 + epsilon * sigma**2  # from there on, p is the larger
    p, q = norm(1, sigma), norm(0, sigma)
    top = max(start, 1.0)
    scale = p.pdf(top)

    def excess(t):
        return (p.pdf(t) - math.exp(epsilon) * q.pdf(t)) / scale

    found, error = quad(excess, start, top + 12 * sigma, epsabs=1e-15, epsrel=1e-11, limit=400)
    assert error < 1e-8 * found
    return found * scale


@given(st.floats(0.05, 12), st.floats(-9, -1))
def test_delta_is_the_integral_far_into_the_tail(epsilon, exponent):
    delta = 10.0**exponent
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_delta(sigma, epsilon) == pytest.approx(delta, rel=1e-6)
    assert divergence(sigma, epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("promise", REFERENCE)
def test_sigma_is_that_of_dp_accounting(promise):
    assert gaussian_sigma(*promise) == pytest.approx(REFERENCE[promise], rel=1e-7)


class TestBesideDPAccounting:
    """Privacy loss distributions on a grid, rounded up and rounded down, hold the exact one between them."""

    @staticmethod
    def epsilons(sigma, sensitivity, delta, n_times=1):
        accountant = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
        bounds = []
        for pessimistic in (False, True):
            loss = accountant.from_gaussian_mechanism(
                sigma,
                sensitivity=sensitivity,
                value_discretization_interval=1e-3,
                pessimistic_estimate=pessimistic,
                use_connect_dots=False,
            )
            bounds.append(loss.self_compose(n_times).get_epsilon_for_delta(delta))
        return bounds

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (2.0, 1e-6), (4.0, 1e-5), (8.0, 1e-9)])
    def test_class_sums_keep_their_promise_for_a_replaced_and_for_an_added_record(self, epsilon, delta, rng):
        """The mechanism's own noise, against the sensitivities 2C and sqrt(2) C."""
        anchor = rng.normal(size=(100, 3))
        mechanism = NoisyClassSums(epsilon, delta, classes=(0, 1))
        C, noise = mechanism.clip(anchor), mechanism.noise(anchor)
        low, high = self.epsilons(noise, 2 * C, delta)
        assert low <= epsilon <= high + 1e-9
        assert high - low < 0.01
        low, high = self.epsilons(noise, math.sqrt(2) * C, delta)
        assert low - 1e-6 <= mechanism.epsilon_of_presence <= high + 1e-6

    def test_two_releases_add_up_as_it_says(self, rng):
        X, public = rng.normal(size=(60, 4)), rng.normal(size=(80, 4))
        f, defence = dc.obfuscator("pca", n_components=2), NoisyClassSums(2.0, classes=(0, 1))
        party = dc.Party("a", f, fit_on=public, defences=[defence], share_again=True)
        for _ in range(2):
            sums = party.fit(X, np.arange(60) % 2).class_sums(public)
        low, high = self.epsilons(sums.noise, 2 * sums.clip, sums.delta, n_times=2)
        assert low <= sums.epsilon <= high + 1e-9
        assert high - low < 0.01


def test_epsilon_of_a_noise_is_what_the_integral_says():
    for sigma in (0.4, 1.0, 5.0):
        epsilon = gaussian_epsilon(sigma, 1e-6)
        assert divergence(sigma, epsilon) == pytest.approx(1e-6, rel=1e-5)
