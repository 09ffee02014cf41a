"""Which cluster a row is of, and how unlike all of them it is, as steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._chain import Chain
from ._received import ReceivedClassifier, ReceivedRegressor
from ._step import Step
from ._steps import Affine, Elementwise, LogFloor, NormalDensities, Softmax, Stretch

__all__ = ["mixture_classes", "mixture_novelty", "nearest_centre"]

_ELSEWHERE = 1e60
"""Variance of a column that a component does not look at: no square of a row's entries counts beside it."""
_LEAST_DENSITY = 1e-100
"""Beside the largest density of all; rows of less are as novel as can be said."""


def nearest_centre(centres: FloatArray, classes: NDArray[Any], *, name: str = "NearestCentre") -> ReceivedClassifier:
    r"""The classifier by the nearest of a few points.

    As :math:`\|x - c\|^2 = \|x\|^2 - (2 c^\top x - \|c\|^2)`, the nearest has the largest of scores that are linear.

    Parameters
    ----------
    centres : ndarray of shape (n_centres, n_columns)
    classes : ndarray of shape (n_centres,)
        Of each centre, ascending.
    name : str
        Of the class that was trained.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import nearest_centre
    >>> nearest_centre(np.array([[0.0], [10.0]]), np.array([0, 1])).predict([[4.0], [6.0]])
    array([0, 1])
    """
    # About the centres' mean, where squares cancel least.
    middle = centres.mean(axis=0)
    moved = centres - middle
    scores = Affine(2.0 * moved.T, -np.sum(moved**2, axis=1) - 2.0 * moved @ middle)
    return ReceivedClassifier(Chain((scores,)), classes, name=name, probabilities=False)


def mixture_classes(mixture: Any, classes: NDArray[Any]) -> ReceivedClassifier:
    """What a fitted `sklearn.mixture.GaussianMixture` says of rows: components and their probabilities.

    Parameters
    ----------
    mixture : GaussianMixture
        With covariances of any type.
    classes : ndarray of shape (n_components,)
        Of each component, ascending.
    """
    steps = _log_densities(mixture)
    chain = Chain((*steps, Softmax(len(classes))))
    return ReceivedClassifier(chain, classes, name=type(mixture).__name__, decides=len(steps))


def mixture_novelty(mixture: Any) -> ReceivedRegressor:
    r"""How unlikely a row is under a fitted `sklearn.mixture.GaussianMixture`: :math:`-\log p(x)`, less a constant.

    The constant makes the score 0 at the largest density that a component alone can have.  Scores end at 230 (a density
    of 1e-100 beside that one): rows beyond are told from others, but not from one another.

    Parameters
    ----------
    mixture : GaussianMixture
    """
    peak = float(np.max(np.log(mixture.weights_) + _log_peaks(mixture)))
    *whiten, densities = _log_densities(mixture, less=peak)
    total = Affine(np.ones((densities.n_out, 1)), np.zeros(1))
    steps: tuple[Step, ...] = (*whiten, densities, Elementwise(densities.n_out, "exp"), total)
    negated = Stretch(np.full(1, -1.0), np.zeros(1))
    return ReceivedRegressor(Chain((*steps, LogFloor(1, _LEAST_DENSITY), negated)), name=type(mixture).__name__)


def _log_densities(mixture: Any, *, less: float = 0.0) -> tuple[Step, ...]:
    """Steps to log(weight) + log density of each component, less a number.

    Each component's columns are whitened side by side, and it looks at its own alone.
    """
    factors = _precision_roots(mixture)
    n_components, n_columns, _ = factors.shape
    whitened = Affine(
        np.ascontiguousarray(factors.transpose(1, 0, 2).reshape(n_columns, -1)),
        -np.einsum("ki,kij->kj", mixture.means_, factors).reshape(-1),
    )
    own = np.repeat(np.eye(n_components), n_columns, axis=1) > 0
    variances = np.where(own, 1.0, _ELSEWHERE)
    # What the step adds for the variances, the log densities of the other columns included, is taken out again.
    constants = 0.5 * np.sum(np.log(2.0 * np.pi * variances), axis=1)
    priors = np.log(mixture.weights_) + _log_peaks(mixture) + constants - less
    return whitened, NormalDensities(np.zeros(own.shape), variances, priors)


def _log_peaks(mixture: Any) -> FloatArray:
    """Log density of each component at its mean, shape (n_components,)."""
    factors = _precision_roots(mixture)
    roots = np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum(axis=1)
    return np.asarray(roots - 0.5 * factors.shape[1] * np.log(2.0 * np.pi))


def _precision_roots(mixture: Any) -> FloatArray:
    """Triangular L_k of shape (n_components, n_columns, n_columns), with inverse covariances L_k L_kᵀ."""
    n_components, n_columns = mixture.means_.shape
    roots = mixture.precisions_cholesky_
    if mixture.covariance_type == "full":
        return np.asarray(roots)
    if mixture.covariance_type == "tied":
        return np.broadcast_to(roots, (n_components, n_columns, n_columns))
    # "diag": a row for each component; "spherical": a number.
    return np.asarray(np.reshape(roots, (n_components, -1, 1)) * np.eye(n_columns))
