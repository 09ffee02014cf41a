"""Calibration of Gaussian noise to a promise of differential privacy."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr

SMALLEST_DELTA = 1e-12
"""Below this, the difference of two probabilities loses too many digits in double precision."""


def gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""Return the smallest delta for which Gaussian noise is (epsilon, delta)-differentially private [1]_, theorem 8.

    .. math:: \delta = \Phi(1/(2\sigma) - \varepsilon\sigma) - e^\varepsilon \Phi(-1/(2\sigma) - \varepsilon\sigma)

    ``sigma`` is the standard deviation of the noise over the sensitivity.

    References
    ----------
    .. [1] Balle and Wang (2018). Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising. ICML, PMLR 80, 394-403.
    """
    half = 0.5 / sigma
    shift = epsilon * sigma
    first = log_ndtr(half - shift)
    second = epsilon + log_ndtr(-half - shift)
    # The difference of two numbers given by their logarithms; exp(epsilon) alone would overflow.
    return float(-math.exp(first) * math.expm1(min(second - first, 0.0)))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Return the smallest noise, over the sensitivity, that is (epsilon, delta)-differentially private.

    Raises ValueError unless epsilon is finite and above 0, and delta at least 1e-12 and below 1.

    Examples
    --------
    >>> from datacollab.linalg import gaussian_sigma
    >>> round(gaussian_sigma(1.0, 1e-5), 3)
    3.731
    """
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a finite number above 0; got {epsilon!r}.")
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"delta must be at least {SMALLEST_DELTA:g} and below 1; got {delta!r}.")
    low = high = 1.0
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    # The root may lie on either side by rounding; a promise must hold, so the noise is raised until it does.
    sigma = float(brentq(lambda s: gaussian_delta(s, epsilon) - delta, low, high, xtol=1e-14 * high, rtol=1e-14))
    while gaussian_delta(sigma, epsilon) > delta:
        sigma *= 1 + 1e-12
    return sigma


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """Return the smallest epsilon that Gaussian noise of this size promises; 0 if delta alone covers it."""
    if gaussian_delta(sigma, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(sigma, high) > delta:
        high *= 2
    return float(brentq(lambda e: gaussian_delta(sigma, e) - delta, 0.0, high, xtol=1e-12 * high, rtol=1e-12))
