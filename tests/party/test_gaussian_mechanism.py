import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import trapezoid

from datacollab.errors import ObfuscationError
from datacollab.party import GaussianMechanism, gaussian_delta, gaussian_sigma
from datacollab.party._gaussian_noise import clipped as clip_rows

REFERENCE = {0.5: 7.032, 1: 3.731, 2: 1.994, 4: 1.081, 8: 0.600, 16: 0.344, 64: 0.127}


@pytest.mark.parametrize("epsilon", REFERENCE)
def test_reference_values(epsilon):
    assert round(gaussian_sigma(epsilon, 1e-5), 3) == REFERENCE[epsilon]


@given(st.floats(1e-3, 200), st.floats(-11, -0.1))
def test_sigma_is_the_smallest_that_keeps_the_promise(epsilon, exponent):
    delta = 10.0**exponent
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_delta(sigma, epsilon) <= delta
    assert gaussian_delta(sigma * (1 - 1e-4), epsilon) > delta


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.5, 1.0), (1.3, 0.5), (3.0, 0.2), (0.4, 6.0)])
def test_delta_is_the_hockey_stick_divergence(sigma, epsilon):
    """By numerical integration of max(p - e^epsilon q, 0) for unit shift."""
    t = np.linspace(-15 * sigma, 15 * sigma + 1, 1_000_001)
    p, q = stats.norm(1, sigma).pdf(t), stats.norm(0, sigma).pdf(t)
    naive = trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), t)
    assert_allclose(gaussian_delta(sigma, epsilon), naive, rtol=1e-4)


def test_noise_beats_the_classical_bound():
    for epsilon in (0.1, 0.5, 0.9):
        assert gaussian_sigma(epsilon, 1e-5) < math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon


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
    published, _ = mechanism.apply(center, np.zeros(n_rows), anchor_representation=anchor, random_state=seed)
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
