"""A candidate of the analyst, fitted, and what it says of rows left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._validation import FloatArray
from ..model import AveragedClassifier, AveragedRegressor, fit_left_out, fit_weighted, log_loss_of
from ._base import BaseIntegrator
from ._candidate_table import Candidate
from ._training import TrainingRows

__all__ = ["Choice", "judged_losses", "trained_again"]

_FLOOR = 1e-6
"""Smallest probability of a class in the log loss, for classes that the training lacks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """A candidate, fitted.

    Attributes
    ----------
    candidate : Candidate
    integrator, estimator : fitted estimators
    rows : ndarray of shape (n_rows, n_components)
        All rows as the integrator sees them.
    weights : ndarray of shape (n_rows,)
    left_out : ndarray of shape (n_rows,) or (n_rows, n_classes)
    losses : ndarray of shape (n_judges,)
    averaged : tuple of Choice
        Of an average its parts, which all have the integrator and the rows in common.
    """

    candidate: Candidate
    integrator: BaseIntegrator
    estimator: Any
    rows: FloatArray
    weights: FloatArray
    left_out: FloatArray
    losses: FloatArray
    averaged: tuple[Choice, ...] = ()


def trained_again(choice: Choice, training: TrainingRows, there: FloatArray) -> Any | None:
    """A model with the same settings, those chosen on rows left out among them, trained on some of the rows.

    Parameters
    ----------
    choice : Choice
    training : TrainingRows
    there : ndarray of shape (n_rows,)
        1 for rows that train, and 0 for the others.

    Returns
    -------
    fitted estimator or None
        None where no row is left that has a weight.
    """
    if choice.averaged:
        weights = choice.estimator.weights_
        again = [
            (trained_again(part, training, there), weight)
            for part, weight in zip(choice.averaged, weights, strict=True)
        ]
        pairs = [(estimator, weight) for estimator, weight in again if estimator is not None]
        average = AveragedClassifier if hasattr(choice.estimator, "classes_") else AveragedRegressor
        return average.of(*zip(*pairs, strict=True)) if pairs else None
    weights = choice.weights * there
    if not weights.any():
        return None
    copy = clone(choice.estimator)
    if hasattr(choice.estimator, "alpha_") and "alphas" in copy.get_params():
        copy.set_params(alphas=(choice.estimator.alpha_,))
    if not hasattr(copy, "fit_left_out"):
        return fit_weighted(copy, choice.rows, training.target, weights)
    judges = training.judges * (weights > 0)
    if not judges.any():
        judges = (weights > 0).astype(np.float64)
    return fit_left_out(copy, choice.rows, training.target, weights, groups=training.groups, judges=judges)[0]


def judged_losses(
    classes: NDArray[Any] | None, left_out: FloatArray, training: TrainingRows, counts: FloatArray
) -> FloatArray:
    """Log loss or squared error of each row that judges, as much as it counts, shape (n_judges,).

    Parameters
    ----------
    classes : ndarray of shape (n_classes,) or None
        None of numbers.
    left_out : ndarray of shape (n_rows,) or (n_rows, n_classes)
    training : TrainingRows
    counts : ndarray of shape (n_rows,)
    """
    judged = training.judges > 0
    losses = _losses(classes, left_out[judged], training.target[judged])
    return np.asarray(losses * counts[judged] / counts[judged].mean())


def _losses(classes: NDArray[Any] | None, left_out: FloatArray, target: NDArray[Any]) -> FloatArray:
    if classes is None:
        return np.asarray((left_out - target) ** 2)
    known = np.isin(target, classes)
    losses = np.full(len(target), -np.log(_FLOOR))
    codes = np.searchsorted(classes, target[known])
    losses[known] = np.minimum(log_loss_of(left_out[known], codes), -np.log(_FLOOR))
    return losses
