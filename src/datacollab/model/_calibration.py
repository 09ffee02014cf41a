r"""Scores of classes as probabilities: :math:`p(x) = \mathrm{softmax}(a F(x) + b)`."""

from __future__ import annotations

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from .._validation import FloatArray

__all__ = ["calibrate", "calibrated", "log_loss_of"]

_SPREAD = 2.0
"""Standard deviation of the offsets under their Gaussian prior."""
_LARGEST_SCALE = 200.0
_START = 5.0


def calibrated(scores: FloatArray, scale: float, offsets: FloatArray) -> FloatArray:
    """Class probabilities, shape (n_rows, n_classes)."""
    return np.asarray(softmax(scale * scores + offsets, axis=1))


def calibrate(scores: FloatArray, codes: NDArray[np.intp], weights: FloatArray) -> tuple[float, FloatArray]:
    r"""Scale a and offsets b under which scores are the best probabilities, by the log loss.

    One scale keeps the classes' order but for the offsets, which have a Gaussian prior, so that a class that is hardly
    there moves little.  The problem is convex.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Of rows that the scores were not trained on.
    codes : ndarray of shape (n_rows,)
        The class of each row.
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    scale : float
    offsets : ndarray of shape (n_classes,)
        With mean 0.
    """
    n_classes = scores.shape[1]
    one_hot = np.eye(n_classes)[codes]

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        a, b = parameters[0], parameters[1:]
        logits = a * scores + b
        normaliser = logsumexp(logits, axis=1)
        loss = weights @ (normaliser - np.sum(one_hot * logits, axis=1)) + b @ b / (2 * _SPREAD**2)
        slopes = weights[:, None] * (np.exp(logits - normaliser[:, None]) - one_hot)
        return float(loss), np.concatenate([[np.sum(slopes * scores)], slopes.sum(axis=0) + b / _SPREAD**2])

    bounds = [(0.0, _LARGEST_SCALE)] + [(None, None)] * n_classes
    start = np.concatenate([[_START], np.zeros(n_classes)])
    found = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    offsets = found.x[1:]
    return float(found.x[0]), offsets - offsets.mean()


def log_loss_of(probabilities: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    """Minus the logarithm of the probability that each row's class was given, shape (n_rows,)."""
    chosen = probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(chosen, np.finfo(float).tiny)))
