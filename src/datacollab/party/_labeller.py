"""Models that a party makes at home to find targets for anchor rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import mean_squared_error
from sklearn.pipeline import make_pipeline

from .._validation import FloatArray
from ..linalg import median_gamma

__all__ = ["best_labels", "kernel_labels", "usable_gamma"]

RIDGES = (1e-2, 1e-1, 1.0)
WIDTHS = (0.5, 1.0, 2.0)
"""Of the kernel, in multiples of one over the median squared distance."""
MOST_LANDMARKS = 500
N_TREES = 200


def best_labels(
    X: FloatArray, y: NDArray[Any], new: FloatArray, *, numeric: bool, generator: np.random.RandomState
) -> NDArray[Any]:
    """Targets of new rows from the model that does best on own rows that it was not fitted on.

    The candidates are kernel ridge models of three widths, each with the best of three penalties by leave-one-out, and
    a random forest by its out-of-bag rows.  Of equals, the first is taken.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    new : ndarray of shape (n_new, n_columns)
    numeric : bool
        Whether targets are numbers rather than classes.
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_new,)
    """
    if len(np.unique(y)) == 1:
        return np.full(len(new), y[0], dtype=y.dtype)
    fitted = list(_fitted(X, y, numeric, generator))
    _, best = max(fitted, key=lambda pair: pair[0])
    return np.asarray(best.predict(new), dtype=np.float64 if numeric else y.dtype)


def kernel_labels(X: FloatArray, y: NDArray[Any], new: FloatArray, *, numeric: bool, gamma: float) -> NDArray[Any]:
    """Targets of new rows from a kernel ridge model whose width is given; for very few rows."""
    if len(np.unique(y)) == 1:
        return np.full(len(new), y[0], dtype=y.dtype)
    model = _kernel_ridge(len(X), gamma, (0.1,), numeric, np.random.RandomState(0)).fit(X, y)
    return np.asarray(model.predict(new))


def usable_gamma(X: FloatArray) -> float:
    """One over the median squared distance between rows; 1 where more than half of the pairs are equal."""
    gamma = median_gamma(X) if len(X) > 1 else np.inf
    return gamma if np.isfinite(gamma) else 1.0


def _fitted(
    X: FloatArray, y: NDArray[Any], numeric: bool, generator: np.random.RandomState
) -> Iterator[tuple[float, Any]]:
    gamma = usable_gamma(X)
    for width in WIDTHS:
        model = _kernel_ridge(len(X), width * gamma, RIDGES, numeric, generator).fit(X, y)
        yield float(model[-1].best_score_), model
    if numeric:
        forest = RandomForestRegressor(
            N_TREES, oob_score=lambda known, found: -mean_squared_error(known, found), random_state=generator
        )
    else:
        forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=generator)
    forest.fit(X, y)
    yield float(forest.oob_score_), forest


def _kernel_ridge(
    n_rows: int, gamma: float, ridges: tuple[float, ...], numeric: bool, generator: np.random.RandomState
) -> Any:
    # With as many landmarks as rows this is kernel ridge regression itself, with an intercept.
    features = Nystroem("rbf", gamma=gamma, n_components=min(n_rows, MOST_LANDMARKS), random_state=generator)
    if numeric:
        return make_pipeline(features, RidgeCV(ridges, scoring="neg_mean_squared_error"))
    return make_pipeline(features, RidgeClassifierCV(ridges, scoring="accuracy"))
