r"""From outputs of ridge regression to probabilities, with numbers that follow from the total alone.

An output f estimates a class's probability, and may be below 0.  A row's probabilities are proportional to

.. math:: w \, g(f), \quad g(f) = \tfrac12 \bigl(f + \sqrt{f^2 + 4 t^2}\bigr).

g is positive, grows with f, and nears f above t, and :math:`t^2 / |f|` below -t.  t is a part of the outputs'
uncertainty.  w makes the mean of :math:`w g(f)` the class's share of rows if outputs are normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import FloatArray

# t times the number of classes, in standard deviations of the fit; see docs/sums.
_SOFTNESS = 0.7
# Keeps probabilities above 0 where the total has no noise.
_LEAST_SOFTNESS = 1e-4
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
"""Nodes of the standard normal distribution, and their weights: means over it."""
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class ClassLink:
    """t and w of each class, both of shape (n_classes,)."""

    softness: FloatArray
    weights: FloatArray

    def probabilities(self, outputs: FloatArray) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes), of outputs plus 1/C of the same shape."""
        positive = self.weights * soft_positive(outputs, self.softness)
        return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def soft_positive(f: FloatArray, t: FloatArray) -> FloatArray:
    """Return g(f), elementwise; the larger of f and 0 as t goes to 0."""
    root = np.sqrt(f**2 + 4 * t**2)
    # Far below 0 the sum would cancel.
    return np.where(f > 0, (f + root) / 2, 2 * t**2 / (root + np.abs(f)))


def class_link(shares: FloatArray, variance_of_outputs: FloatArray, variance_of_fit: FloatArray, n: float) -> ClassLink:
    """Return the link of classes that have these shares of the n rows in a total; all arrays are (n_classes,).

    The variance of outputs is that between rows, and the variance of the fit that of outputs around the best linear
    ones.  No class is taken to be rarer than one row.
    """
    softness = np.maximum(_SOFTNESS / len(shares) * np.sqrt(variance_of_fit), _LEAST_SOFTNESS)
    outputs = shares + np.sqrt(variance_of_outputs) * POINTS[:, None]
    mean = WEIGHTS @ soft_positive(outputs, softness)
    return ClassLink(softness, np.maximum(shares, 1 / n) / mean)
