r"""Two or more opinions as one: class probabilities pooled in logarithms, numbers pooled linearly."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import logsumexp

from .._validation import FloatArray

__all__ = ["fit_convex_pool", "fit_log_pool", "log_pool", "penalised_log_loss", "weights_by_loss"]


def weights_by_loss(losses: FloatArray) -> FloatArray:
    r"""Weights before any fit, :math:`\beta_0 \propto 1/\mathrm{loss}^2` with sum 1, shape (n_opinions,)."""
    least = np.finfo(np.float64).eps * max(1.0, float(np.max(losses)))
    weights = 1.0 / np.maximum(losses, least) ** 2
    return np.asarray(weights / weights.sum())


def log_pool(logs: FloatArray, weights: FloatArray, bias: FloatArray | None = None) -> FloatArray:
    r"""Log probabilities of the pool, :math:`\log p = \sum_m \beta_m \log p_m + c - \mathrm{const}`.

    Parameters
    ----------
    logs : ndarray of shape (n_opinions, n_rows, n_classes)
        Log probabilities.
    weights : ndarray of shape (n_opinions,)
    bias : ndarray of shape (n_classes,), optional

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
    """
    scores = np.tensordot(weights, logs, axes=1) + (0.0 if bias is None else bias)
    return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))


def penalised_log_loss(
    parameters: FloatArray,
    logs: FloatArray,
    codes: NDArray[np.intp],
    prior: FloatArray,
    tau: float,
    bias_ridge: float | None = None,
) -> tuple[float, FloatArray]:
    r"""Value and gradient of :math:`-\sum_i \log p_{i,y_i} + \tfrac\tau2 \|\beta-\beta_0\|^2 + \tfrac\rho2 \|c\|^2`.

    Parameters
    ----------
    parameters : ndarray of shape (n_opinions,) or (n_opinions + n_classes,)
        :math:`\beta`, and c behind it where there is a `bias_ridge`.
    logs : ndarray of shape (n_opinions, n_rows, n_classes)
    codes : ndarray of shape (n_rows,)
        Column of each row's class.
    prior : ndarray of shape (n_opinions,)
        :math:`\beta_0`.
    tau : float
    bias_ridge : float, optional
        :math:`\rho`.
    """
    n = len(logs)
    weights, bias = parameters[:n], None if bias_ridge is None else parameters[n:]
    pooled = log_pool(logs, weights, bias)
    rows = np.arange(len(codes))
    # d loss / d score: the probability, less one at the class that it was.
    slope = np.exp(pooled)
    slope[rows, codes] -= 1.0
    value = -pooled[rows, codes].sum() + 0.5 * tau * np.sum((weights - prior) ** 2)
    gradient = np.tensordot(logs, slope, axes=2) + tau * (weights - prior)
    if bias is not None and bias_ridge is not None:
        value += 0.5 * bias_ridge * np.sum(bias**2)
        gradient = np.concatenate([gradient, slope.sum(axis=0) + bias_ridge * bias])
    return float(value), gradient


def fit_log_pool(
    logs: FloatArray,
    codes: NDArray[np.intp],
    *,
    prior: FloatArray,
    tau: float,
    bias_ridge: float | None = None,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weights of the pool, none of them negative, and class biases where these are wanted; the problem is convex.

    Parameters
    ----------
    logs, codes, prior, tau, bias_ridge
        As in `penalised_log_loss`.
    start : ndarray, optional
        Parameters to start from.

    Returns
    -------
    weights : ndarray of shape (n_opinions,)
    bias : ndarray of shape (n_classes,) or None
    """
    n, n_classes = len(logs), logs.shape[2]
    n_biases = 0 if bias_ridge is None else n_classes
    if start is None:
        start = np.concatenate([prior, np.zeros(n_biases)])
    found = scipy.optimize.minimize(
        penalised_log_loss,
        start,
        args=(logs, codes, prior, tau, bias_ridge),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n + [(None, None)] * n_biases,
        options={"ftol": 1e-12, "gtol": 1e-7, "maxiter": 500},
    )
    return found.x[:n], found.x[n:] if n_biases else None


def fit_convex_pool(opinions: FloatArray, target: FloatArray, *, prior: FloatArray, tau: float) -> FloatArray:
    r"""Weights :math:`w \ge 0`, :math:`\sum w = 1`, of least :math:`\tfrac12\|y - Pw\|^2 + \tfrac\tau2\|w-w_0\|^2`.

    Parameters
    ----------
    opinions : ndarray of shape (n_rows, n_opinions)
        P.
    target : ndarray of shape (n_rows,)
        y, in units of its standard deviation, as P.
    prior : ndarray of shape (n_opinions,)
        :math:`w_0`.
    tau : float

    Returns
    -------
    ndarray of shape (n_opinions,)
    """
    # With sum 1, Pw - y = (P - y) w: weights of residuals, so that where the target lies does not matter.
    residuals = opinions - target[:, None]
    Q = residuals.T @ residuals + tau * np.eye(len(prior))
    best, least = prior, float(np.inf)
    # Opinions are few, so every choice of those with a weight is tried.
    for size in range(1, len(prior) + 1):
        for chosen in map(list, combinations(range(len(prior)), size)):
            weights = np.zeros(len(prior))
            weights[chosen] = _with_sum_one(Q[np.ix_(chosen, chosen)], tau * prior[chosen])
            value = float(0.5 * weights @ Q @ weights - tau * prior @ weights)
            if weights.min() >= 0 and value < least:
                best, least = weights, value
    return best


def _with_sum_one(Q: FloatArray, linear: FloatArray) -> FloatArray:
    """Where w'Qw/2 - linear'w is least among all w of sum 1."""
    solved = np.linalg.solve(Q, np.column_stack([linear, np.ones(len(Q))]))
    return np.asarray(solved[:, 0] + solved[:, 1] * (1 - solved[:, 0].sum()) / solved[:, 1].sum())
