"""Gaussian noise: how much a promise of differential privacy takes, and how far matrices of it reach."""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy.special import log_ndtr

from .._typing import FloatArray

SMALLEST_DELTA = 1e-12
"""Below this, the difference of two probabilities loses too many digits in double precision."""
_FARTHEST = 8.0  # standard deviations beyond which nothing is noise
_ROUNDING = 1e-6  # of the trace: more than rounding moves an eigenvalue


def largest_noise(size: int, noise: float) -> float:
    r"""Return a bound of the eigenvalues of symmetric noise N, which fails with a chance of exp(-32), or 1.3e-14.

    N has the standard deviation `noise` on the diagonal and noise/√2 off it, or less; a single number is a matrix of
    one.  Comparing ⟨u, N u⟩ with √2 noise ⟨g, u⟩ for standard normal g gives
    :math:`E \lambda_{max} \le noise \sqrt{2\,size}` (Sudakov and Fernique).  The eigenvalue is Lipschitz in the
    Frobenius norm, so it exceeds its mean by t times the noise with a chance of exp(-t²/2) at most [1]_.

    References
    ----------
    .. [1] Davidson and Szarek (2001). Local operator theory, random matrices and Banach spaces. Handbook of the
       Geometry of Banach Spaces 1, 317-366.
    """
    return noise * (math.sqrt(2 * size) + _FARTHEST)


def below_zero(M: FloatArray, noise: float) -> str | None:
    """Return that sums of u uᵀ have an eigenvalue below 0 beyond their noise, as a sentence's end; None if not.

    `M` has the shape (size, size) or (n_matrices, size, size), and `noise` is as in `largest_noise`.
    """
    least = float(np.linalg.eigvalsh(M)[..., 0].min())
    rounding = _ROUNDING * (1 + float(np.abs(np.trace(M, axis1=-2, axis2=-1)).max()))
    allowed = largest_noise(M.shape[-1], noise) + rounding
    if least >= -allowed:
        return None
    return (
        f"the least eigenvalue of its sums of squares and products is {least:.3g}; rows give 0 at least, and noise "
        f"takes off {allowed:.3g} at most"
    )


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
    sigma = float(
        scipy.optimize.brentq(lambda s: gaussian_delta(s, epsilon) - delta, low, high, xtol=1e-14 * high, rtol=1e-14)
    )
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
    return float(
        scipy.optimize.brentq(lambda e: gaussian_delta(sigma, e) - delta, 0.0, high, xtol=1e-12 * high, rtol=1e-12)
    )
