"""Effects by nearest neighbours in the other arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import NearestNeighbors

from .._validation import FloatArray
from ..errors import EffectError

__all__ = ["matching", "whitened"]

_OWN_NEIGHBOURS = 2
"""Rows of the own arm from which the variance of a row's outcome is judged, besides itself."""


def matching(
    X: FloatArray,
    treatment: NDArray[np.int64],
    outcome: FloatArray,
    *,
    target: str = "ATE",
    n_neighbors: int = 1,
    correct_bias: bool = True,
) -> tuple[float, float]:
    r"""Effect from the rows of the other arm that lie nearest, with replacement, and its standard error [1]_ [2]_.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        In which distances are taken: `whitened` rows, or one column of propensity scores.
    treatment, outcome : ndarray of shape (n_rows,)
    target : {"ATE", "ATT"}
    n_neighbors : int, default=1
        Matches of each row.
    correct_bias : bool, default=True
        Whether a linear regression of each arm makes up for the differences between a row and its matches.

    Returns
    -------
    estimate, standard_error : float

    Notes
    -----
    Unstable: a few rows may be matched to many, and in more than a few columns no neighbour is near.  Over samples of
    one population it varies more than `doubly_robust` and `partially_linear` do.  No bootstrap is valid for it; the
    standard error is Abadie and Imbens's, for matching on given columns.  With estimated scores as the column it
    overstates that of the "ATE", and may be off on either side for the "ATT" [3]_.

    References
    ----------
    .. [1] Abadie and Imbens (2006). Large sample properties of matching estimators for average treatment effects.
       Econometrica 74(1), 235-267.
    .. [2] Abadie and Imbens (2011). Bias-corrected matching estimators for average treatment effects. Journal of
       Business and Economic Statistics 29(1), 1-11.
    .. [3] Abadie and Imbens (2016). Matching on the estimated propensity score. Econometrica 84(2), 781-807.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(12.0)[:, None] // 2
    >>> t = np.arange(12) % 2
    >>> round(matching(x, t, 3.0 * t + x[:, 0])[0], 6)
    3.0
    """
    arms = [np.flatnonzero(treatment == arm) for arm in (0, 1)]
    wanted = max(n_neighbors, _OWN_NEIGHBOURS + 1)
    if min(map(len, arms)) < wanted:
        raise EffectError(f"Matching needs {wanted} rows of either arm; got {len(arms[0])} and {len(arms[1])}.")
    imputed, uses, variances = outcome.copy(), np.zeros(len(outcome)), np.empty(len(outcome))
    for arm, rows in enumerate(arms):
        others = arms[1 - arm]
        near = others[NearestNeighbors(n_neighbors=n_neighbors).fit(X[others]).kneighbors(X[rows])[1]]
        values = outcome[near].mean(axis=1)
        if correct_bias:
            model = LinearRegression().fit(X[others], outcome[others])
            hat = model.predict(X)
            values = values + hat[rows] - hat[near].mean(axis=1)
        imputed[rows] = values
        if target == "ATE" or arm == 1:
            np.add.at(uses, near.ravel(), 1.0)
        variances[rows] = _own_variances(X[rows], outcome[rows])
    gains = np.where(treatment == 1, outcome - imputed, imputed - outcome)
    share = uses / n_neighbors
    if target == "ATT":
        treated = treatment == 1
        value = float(gains[treated].mean())
        # Rows of the arm without treatment add for how often they are used, less what their gains show already.
        excess = np.where(treated, 0.0, share**2 - uses / n_neighbors**2)
        total = ((gains[treated] - value) ** 2).sum() + excess @ variances
        return value, float(np.sqrt(total) / treated.sum())
    value = float(gains.mean())
    excess = share**2 + (2 * n_neighbors - 1) / n_neighbors * share
    total = ((gains - value) ** 2).sum() + excess @ variances
    return value, float(np.sqrt(total) / len(outcome))


def whitened(X: FloatArray) -> FloatArray:
    """Rows in coordinates in which their covariance is I, so that distances are Mahalanobis's, whatever the scales."""
    centred = X - X.mean(axis=0)
    U, s, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(U[:, s > 1e-9 * max(float(s.max()), np.finfo(float).tiny)] * np.sqrt(len(X)))


def _own_variances(X: FloatArray, outcome: FloatArray) -> FloatArray:
    """Variance of each row's outcome given x, from its nearest rows of the same arm, shape (n_rows,)."""
    near = NearestNeighbors(n_neighbors=_OWN_NEIGHBOURS).fit(X).kneighbors()[1]
    return np.asarray(_OWN_NEIGHBOURS / (_OWN_NEIGHBOURS + 1) * (outcome - outcome[near].mean(axis=1)) ** 2)
