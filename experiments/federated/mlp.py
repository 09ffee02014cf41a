"""A small multilayer perceptron in NumPy: the one model of both sides, without a framework of several gigabytes.

Parameters are a list of float32 arrays ``[W_1, b_1, W_2, b_2]``, which is what federated averaging moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Parameters = list[Float32]

N_HIDDEN = 50
N_CLASSES = 10


@dataclass(frozen=True)
class Settings:
    """How the perceptron is trained: plain stochastic gradient descent.

    Attributes
    ----------
    learning_rate : float
    epochs : int
        Passes over the rows; in federated averaging, of each party in each round.
    batch_size : int
    """

    learning_rate: float
    epochs: int
    batch_size: int


def initial_parameters(n_features: int, *, seed: int) -> Parameters:
    """Random weights of variance 2 / inputs, as suits rectified units, and zero biases."""
    generator = np.random.default_rng([seed, n_features])
    parameters: Parameters = []
    for n_in, n_out in ((n_features, N_HIDDEN), (N_HIDDEN, N_CLASSES)):
        weights = generator.standard_normal((n_in, n_out)) * np.sqrt(2 / n_in)
        parameters += [weights.astype(np.float32), np.zeros(n_out, np.float32)]
    return parameters


def train(
    parameters: Parameters, X: Float32, y: NDArray[np.int64], settings: Settings, generator: np.random.Generator
) -> Parameters:
    """Parameters after gradient descent on the mean cross-entropy; those given are left as they are.

    Parameters
    ----------
    parameters : list of ndarray
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 to 9.
    settings : Settings
    generator : Generator
        Of the order of the rows, new in each epoch.
    """
    trained = [array.copy() for array in parameters]
    for _ in range(settings.epochs):
        order = generator.permutation(len(X))
        for start in range(0, len(X), settings.batch_size):
            batch = order[start : start + settings.batch_size]
            for array, slope in zip(trained, gradient(trained, X[batch], y[batch]), strict=True):
                array -= np.float32(settings.learning_rate) * slope
    return trained


def gradient(parameters: Parameters, X: Float32, y: NDArray[np.int64]) -> Parameters:
    """Gradient of the mean cross-entropy, by back-propagation."""
    hidden = _hidden(parameters, X)
    residual = _softmax(hidden @ parameters[2] + parameters[3])  # (n_samples, N_CLASSES)
    residual[np.arange(len(y)), y] -= 1
    residual /= len(y)
    back = (residual @ parameters[2].T) * (hidden > 0)  # (n_samples, N_HIDDEN)
    return [X.T @ back, back.sum(axis=0), hidden.T @ residual, residual.sum(axis=0)]


def probabilities(parameters: Parameters, X: Float32) -> Float32:
    """Class probabilities, shape (n_samples, 10)."""
    return _softmax(_hidden(parameters, X) @ parameters[2] + parameters[3])


def accuracy(parameters: Parameters, X: Float32, y: NDArray[np.int64]) -> float:
    """Share of the rows whose most probable class is the right one."""
    return float(np.mean(probabilities(parameters, X).argmax(axis=1) == y))


def _hidden(parameters: Parameters, X: Float32) -> Float32:
    hidden: Float32 = np.maximum(X @ parameters[0] + parameters[1], 0)
    return hidden


def _softmax(scores: Float32) -> Float32:
    raised: Float32 = np.exp(scores - scores.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised
