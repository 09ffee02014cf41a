"""How far symmetric matrices of Gaussian noise reach, and whether sums over rows are negative beyond that."""

from __future__ import annotations

import math

import numpy as np

from .._typing import FloatArray

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

    Examples
    --------
    >>> from datacollab.linalg import largest_noise
    >>> largest_noise(50, 0.1)
    1.8
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
