"""What numbers may be, guessed from those of public rows."""

from __future__ import annotations

import math

from ..._typing import FloatArray

__all__ = ["widened_range"]


def widened_range(numbers: FloatArray) -> tuple[float, float]:
    """The range of numbers, half its width added on each side, rounded outwards to two digits of the width.

    Where none is negative it stops at 0, as most quantities do; where all are whole, so are its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> widened_range(np.array([18.0, 97.0]))
    (0.0, 140.0)
    >>> widened_range(np.array([0.0, 1.0])), widened_range(np.array([0.0, 0.5, 1.0]))
    ((0.0, 2.0), (0.0, 1.5))
    >>> widened_range(np.array([-1.0, 1.0]))
    (-2.0, 2.0)
    """
    low, high = float(numbers.min()), float(numbers.max())
    # Where all are equal, their size says how far others might be.
    width = (high - low) or abs(high) or 1.0
    lowest = 0.0 if low >= 0 else -math.inf
    low, high = low - width / 2, high + width / 2
    # A power of ten as text, as 10.0**-3 is not the nearest number to 0.001.
    digits = 1 - math.floor(math.log10(high - low))
    step = float(f"1e{abs(digits)}")
    if digits > 0 and not (numbers % 1 == 0).all():
        return max(lowest, math.floor(low * step) / step), math.ceil(high * step) / step
    step = 1.0 if digits > 0 else step
    return max(lowest, math.floor(low / step) * step), math.ceil(high / step) * step
