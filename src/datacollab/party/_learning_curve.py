r"""How an error falls with the number of rows: a power law through a few sizes, and what more rows would give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import FloatArray

__all__ = ["PowerLaw", "power_law", "resampled_means"]

STEEPEST = 1.0
"""Largest exponent: no error falls faster than one over the number of rows for long."""


@dataclass(frozen=True, eq=False)
class PowerLaw:
    r"""Errors :math:`e(n) = a n^{-b}`, one law or many.

    Attributes
    ----------
    log_factor : ndarray of shape (...)
        log a.
    exponent : ndarray of shape (...)
        b, from 0 (more rows are of no use) to 1.
    """

    log_factor: FloatArray
    exponent: FloatArray

    def __call__(self, n_rows: float | FloatArray) -> FloatArray:
        """Errors with so many rows, shape (...); or one law's for several numbers of rows."""
        return np.asarray(np.exp(self.log_factor - self.exponent * np.log(n_rows)))


def power_law(sizes: FloatArray, errors: FloatArray) -> PowerLaw:
    r"""Fit :math:`\log e = \log a - b \log n` by least squares, with b between 0 and 1.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Rows; not all equal.
    errors : ndarray of shape (..., n_sizes)
        Above 0.

    Returns
    -------
    PowerLaw

    References
    ----------
    .. [1] Viering and Loog (2023). The shape of learning curves: a review. IEEE Transactions on Pattern Analysis and
       Machine Intelligence 45(6), 7799-7819.
    """
    x, z = np.log(sizes), np.log(errors)
    centred = x - x.mean()
    exponent = np.clip(-(z @ centred) / (centred @ centred), 0.0, STEEPEST)
    return PowerLaw(log_factor=z.mean(axis=-1) + exponent * x.mean(), exponent=exponent)


def resampled_means(values: FloatArray, n_draws: int, generator: np.random.RandomState) -> FloatArray:
    """Means over rows drawn with replacement: how figures of one sample of rows vary, together.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_figures)
    n_draws : int
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_draws, n_figures)
    """
    n = len(values)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=n_draws)
    return np.asarray(counts @ values / n)
