"""Scores of predictions on test rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score, root_mean_squared_error

from .columns import Array

# Smallest probability in a log loss.
FLOOR = 1e-6


def score(metric: str, y: NDArray[Any], predicted: Array) -> float:
    """AUC, accuracy or RMSE.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Classes from 0 on, or numbers.
    predicted : ndarray of shape (n_rows, n_classes) or (n_rows,)
        Probabilities of all classes of the table, or numbers.
    """
    if metric == "RMSE":
        return float(root_mean_squared_error(y, predicted))
    if metric == "AUC":
        return float(roc_auc_score(y, predicted[:, 1]))
    return float(accuracy_score(y, predicted.argmax(axis=1)))


def losses(y: NDArray[Any], predicted: Array) -> Array:
    """Log losses or squared errors, row by row."""
    if predicted.ndim == 1:
        return np.asarray((y - predicted) ** 2)
    # A probability of zero for the truth would make all losses infinite.
    return np.asarray(-np.log(np.maximum(predicted[np.arange(len(y)), y], FLOOR)))


def spread(probabilities: Array, classes: NDArray[Any], n_classes: int) -> Array:
    """Probabilities of some classes as columns of all, shape (n_rows, n_classes)."""
    # A class that a party never saw has probability 0 there.
    everything = np.zeros((len(probabilities), n_classes))
    everything[:, np.asarray(classes, dtype=np.intp)] = probabilities
    return everything
