"""Gaussian noise that keeps a promise: how much of it, what the promise means, and its last bits."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from .._validation import FloatArray

__all__ = ["SMALLEST_DELTA", "clipped", "gaussian_delta", "gaussian_epsilon", "gaussian_sigma", "grid_step", "noisy"]

SMALLEST_DELTA = 1e-12
"""Below this, the difference of two probabilities loses too many digits in double precision."""
_FINENESS = 12
"""The grid on which noised numbers lie, in powers of two below the standard deviation."""


def gaussian_delta(sigma: float, epsilon: float) -> float:
    r"""Smallest delta for which Gaussian noise is (epsilon, delta)-differentially private [1]_, theorem 8.

    .. math:: \delta = \Phi(1/(2\sigma) - \varepsilon\sigma) - e^\varepsilon \Phi(-1/(2\sigma) - \varepsilon\sigma)

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise over the sensitivity.
    epsilon : float

    References
    ----------
    .. [1] Balle and Wang (2018). Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising. ICML, PMLR 80, 394-403.
    """
    half, shift = 0.5 / sigma, epsilon * sigma
    first, second = log_ndtr(half - shift), epsilon + log_ndtr(-half - shift)
    # The difference of two numbers given by their logarithms; exp(epsilon) alone would overflow.
    return float(-math.exp(first) * math.expm1(min(second - first, 0.0)))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Smallest noise that is (epsilon, delta)-differentially private, over the sensitivity; see `gaussian_delta`.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        From 1e-12 on, and below 1.

    Returns
    -------
    float
        Rounded up, if at all.

    Raises
    ------
    ValueError
        When a number is outside its range.

    Examples
    --------
    >>> from datacollab.party import gaussian_sigma
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
    sigma = float(brentq(lambda s: gaussian_delta(s, epsilon) - delta, low, high, xtol=1e-14 * high, rtol=1e-14))
    while gaussian_delta(sigma, epsilon) > delta:
        sigma *= 1 + 1e-12
    return sigma


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """Smallest epsilon for which Gaussian noise is (epsilon, delta)-differentially private; see `gaussian_delta`.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise over the sensitivity.
    delta : float

    Returns
    -------
    float
        0 where the noise is so large that delta alone covers it.
    """
    if gaussian_delta(sigma, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(sigma, high) > delta:
        high *= 2
    return float(brentq(lambda e: gaussian_delta(sigma, e) - delta, 0.0, high, xtol=1e-12 * high, rtol=1e-12))


def grid_step(sigma: float) -> float:
    """Distance between the numbers that noise of this standard deviation may lead to: a power of two."""
    return 2.0 ** (math.floor(math.log2(sigma)) - _FINENESS)


def noisy(values: FloatArray, sigma: float, generator: np.random.RandomState) -> FloatArray:
    r"""Values with Gaussian noise, on a grid [1]_.

    .. math:: g \, \mathrm{round}((x + \sigma n) / g), \qquad g = 2^{\lfloor \log_2 \sigma \rfloor - 12}

    Without the rounding, the last bits of a sum would tell which numbers it can be the sum of, and with them the
    noise.  Rounding takes nothing from the promise, and changes a value by less than a thousandth of the noise.

    Parameters
    ----------
    values : ndarray
    sigma : float
        Standard deviation of the noise, above 0.
    generator : RandomState

    References
    ----------
    .. [1] Mironov (2012). On significance of the least significant bits for differential privacy. CCS, 650-661.
    """
    step = grid_step(sigma)
    return np.asarray(np.round((values + sigma * generator.standard_normal(values.shape)) / step) * step)


def clipped(X: FloatArray, center: FloatArray, radius: float) -> FloatArray:
    """Rows moved towards `center` until none is farther from it than `radius`, shape (n_rows, n_columns)."""
    centred = X - center
    lengths = np.linalg.norm(centred, axis=1)
    factors = np.minimum(1.0, radius / np.maximum(lengths, np.finfo(float).tiny))
    return np.asarray(center + centred * factors[:, None])
