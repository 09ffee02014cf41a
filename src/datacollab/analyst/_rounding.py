"""What is said of rows left out, no finer than needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["rounded"]


def rounded(left_out: FloatArray, target: NDArray[Any]) -> FloatArray:
    """What is said of rows left out, no finer than a party needs it.

    Exact numbers would give away leverages, and with them and the model sums over the other parties' rows.

    Parameters
    ----------
    left_out : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Numbers, or probabilities, which become hundredths that add up to one.
    target : ndarray of shape (n_rows,)
        Of the party's own rows; numbers are rounded to multiples of half the root mean squared error on them.
    """
    if left_out.ndim == 2:
        return _hundredths(left_out)
    error = float(np.sqrt(np.mean((left_out - target) ** 2)))
    step = error / 2 if error > 0 else 0.01 * (float(np.std(target)) or 1.0)
    return np.asarray(np.round(left_out / step) * step)


def _hundredths(probabilities: FloatArray) -> FloatArray:
    """Rounded down, and what is missing to one given to those that lost most."""
    parts = np.floor(100 * probabilities)
    missing = np.round(100 - parts.sum(axis=1)).astype(int)
    places = np.argsort(np.argsort(parts - 100 * probabilities, axis=1, kind="stable"), axis=1)
    return np.asarray((parts + (places < missing[:, None])) / 100)
