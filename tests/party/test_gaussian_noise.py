"""Gaussian noise: how much a promise takes, its last bits, the mechanism on rows, and what other accountants say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad, trapezoid
from scipy.stats import norm

from datacollab.errors import ObfuscationError
from datacollab.linalg import gaussian_delta, gaussian_epsilon, gaussian_sigma
from datacollab.party import GaussianMechanism, GaussianNoise, Promise
from datacollab.party._defence import add_noise, clip_rows, grid_step
from datacollab.party._guarantee import guarantee_of


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
    released, step = add_noise(values, sigma, Silent(noise)), grid_step(sigma)
    assert math.log2(step) == round(math.log2(step))
    assert sigma / 2**13 < step <= sigma / 2**12
    assert_array_equal(released / step, np.round(released / step))
    exact = values + sigma * noise
    # Half a step, and what double precision itself may lose.
    assert (np.abs(released - exact) <= step / 2 + 4 * np.finfo(float).eps * (np.abs(exact) + sigma * 10)).all()


def test_mechanism_publishes_on_the_grid(rng):
    anchor, mechanism = rng.normal(size=(200, 3)), GaussianMechanism(2.0)
    released, *_ = mechanism.apply(rng.normal(size=(50, 3)), np.zeros(50), anchor_representation=anchor)
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


@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_noise_is_gaussian_in_units_of_each_column(rng, scale):
    X = rng.normal(size=(2000, 3)) * [1.0, 100.0, 1e-3] + 7
    published, target, _ = GaussianNoise(scale).apply(X, np.arange(2000), random_state=0)
    standard = (published - X) / (scale * X.std(axis=0))
    low, high = stats.chi2(standard.size).ppf([1e-4, 1 - 1e-4])
    assert low < np.sum(standard**2) < high
    assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(standard.T)[0, 1]) < 0.1
    assert_array_equal(target, np.arange(2000))


def test_constant_columns_get_none(rng):
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=50)])
    published, *_ = GaussianNoise().apply(X, np.zeros(50), random_state=0)
    assert_allclose(published[:, 0], 3.0)
    assert not np.isclose(published[:, 1], X[:, 1]).any()


def test_one_row_does_not_leave_without_noise():
    with pytest.raises(ObfuscationError, match="one row has no standard deviation"):
        GaussianNoise().apply([[1.0, 2.0]], [0])


@given(st.floats(1e-3, 200), st.floats(-11, -0.1))
def test_sigma_is_the_smallest_that_keeps_the_promise(epsilon, exponent):
    delta = 10.0**exponent
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_delta(sigma, epsilon) <= delta
    assert gaussian_delta(sigma * (1 - 1e-4), epsilon) > delta


@pytest.mark.parametrize(
    ("arguments", "name"), [((0, 1e-5), "epsilon"), ((math.inf, 0.1), "epsilon"), ((1, 0), "delta"), ((1, 1), "delta")]
)
def test_senseless_promises_are_refused(arguments, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        gaussian_sigma(*arguments)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of GaussianMechanism must be"):
        GaussianMechanism(*arguments).apply(np.eye(4), np.zeros(4), anchor_representation=np.eye(4))


def noise_of(mechanism, anchor, n_rows, seed=0):
    """What is added to rows that lie at the centre, where nothing is clipped."""
    center = np.tile(anchor.mean(axis=0), (n_rows, 1))
    published, *_ = mechanism.apply(center, np.zeros(n_rows), anchor_representation=anchor, random_state=seed)
    return published - center


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (8.0, 1e-6)])
def test_noise_has_the_standard_deviation_promised(rng, epsilon, delta):
    """The release gate: a 10 % error of sigma is more than five standard deviations off."""
    anchor = rng.normal(size=(301, 8)) + 3
    clip = np.median(np.linalg.norm(anchor - anchor.mean(axis=0), axis=1))
    sigma = gaussian_sigma(epsilon, delta) * 2 * clip
    noise = noise_of(GaussianMechanism(epsilon, delta), anchor, 200)
    low, high = stats.chi2(noise.size).ppf([1e-4, 1 - 1e-4])
    assert low < np.sum((noise / sigma) ** 2) < high
    assert not low < np.sum((noise / (0.9 * sigma)) ** 2) < high
    assert not low < np.sum((noise / (1.1 * sigma)) ** 2) < high
    assert stats.kstest(noise.ravel() / sigma, "norm").pvalue > 1e-3


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(-8, 8))
def test_no_row_is_longer_than_the_clip(seed, n_columns, exponent):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, n_columns)) * 10.0 ** rng.integers(-9, 9, size=(50, 1))
    center, radius = rng.normal(size=n_columns), 10.0**exponent
    clipped = clip_rows(X, center, radius)
    rounding = 4 * np.finfo(float).eps * (radius + np.linalg.norm(center))
    assert (np.linalg.norm(clipped - center, axis=1) <= radius + rounding).all()
    inside = np.linalg.norm(X - center, axis=1) <= radius
    assert_allclose(clipped[inside], X[inside], atol=rounding)


def test_the_clip_knows_nothing_of_private_rows(rng):
    anchor, mechanism = rng.normal(size=(200, 3)), GaussianMechanism(4.0)
    near, far = rng.normal(size=(50, 3)), 1e6 * rng.normal(size=(50, 3))
    published = [mechanism.apply(X, np.zeros(50), anchor_representation=anchor, random_state=0)[0] for X in (near, far)]
    # The same noise, so what is left of the difference is at most twice the clip.
    assert np.linalg.norm(published[0] - published[1], axis=1).max() <= 2 * mechanism.clip(anchor) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
def test_neighbouring_rows_are_hard_to_tell_apart(rng, epsilon):
    """As diffprivlib does: for many events, P(M(x) in event) <= e^epsilon P(M(x') in event) + delta."""
    delta, n_runs = 0.2, 50_000
    anchor = rng.normal(size=(100, 2))
    mechanism = GaussianMechanism(epsilon, delta)
    center, far = anchor.mean(axis=0), 1e3 * np.array([1.0, 0.5])
    # The two rows farthest apart after clipping, on opposite sides of the centre.
    samples = [
        mechanism.apply(np.tile(row, (n_runs, 1)), np.zeros(n_runs), anchor_representation=anchor, random_state=seed)[0]
        for seed, row in enumerate((center + far, center - far))
    ]
    direction = far / np.linalg.norm(far)
    first, second = ((rows - center) @ direction for rows in samples)
    slack = 4 * math.sqrt(0.25 / n_runs) * (1 + math.exp(epsilon))
    thresholds = np.quantile(np.concatenate([first, second]), np.linspace(0.01, 0.99, 60))
    for t in thresholds:
        for one, other in ((first, second), (second, first)):
            assert np.mean(one > t) <= math.exp(epsilon) * np.mean(other > t) + delta + slack
            assert np.mean(one <= t) <= math.exp(epsilon) * np.mean(other <= t) + delta + slack
    # And the noise is not needlessly large: the worst event comes near the bound.
    worst = max(np.mean(first > t) - math.exp(epsilon) * np.mean(second > t) for t in thresholds)
    assert worst > delta - slack


def test_an_anchor_is_needed_and_must_spread(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ObfuscationError, match="GaussianMechanism needs the anchor's representation"):
        GaussianMechanism(1.0).apply(X, np.zeros(10))
    with pytest.raises(ObfuscationError, match="more than half of the anchor's rows"):
        GaussianMechanism(1.0).apply(X, np.zeros(10), anchor_representation=np.zeros((5, 2)))


OF_ACCOUNTANTS = {
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


@pytest.mark.parametrize("promise", OF_ACCOUNTANTS)
def test_sigma_is_that_of_dp_accounting(promise):
    assert gaussian_sigma(*promise) == pytest.approx(OF_ACCOUNTANTS[promise], rel=1e-7)
