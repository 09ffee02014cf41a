r"""Ridge regressions with weighted rows and a free intercept, for many penalties, and what each says of rows left out.

With weights s, :math:`\bar\varphi, \bar t` the weighted means and :math:`P = (\Phi - 1\bar\varphi^\top) V` for
:math:`(\Phi - 1\bar\varphi^\top)^\top \mathrm{diag}(s) (\Phi - 1\bar\varphi^\top) = V \mathrm{diag}(e) V^\top`, the fit
with penalty :math:`\alpha` is :math:`\hat T = H T`,

.. math:: H_{ij} = s_j / \textstyle\sum s + P_i \,\mathrm{diag}(e + \alpha)^{-1} P_j^\top s_j .

A fit without the rows G leaves residuals :math:`(I - H_{GG})^{-1} (T - \hat T)_G` on them, exactly.

* Weights that make the arms of a study alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["PROPENSITY_CLIP", "WeightedRidgePath", "treatment_weights", "weighted_ridge_path"]


_NEGLIGIBLE = 1e-12
"""Eigenvalues up to this part of the largest are rounding."""


@dataclass(frozen=True, eq=False)
class WeightedRidgePath:
    """A weighted regression problem, decomposed once for all penalties and targets.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        s, none negative.
    mean : ndarray of shape (r,)
        Weighted mean of the features.
    vectors : ndarray of shape (r, q)
        V.
    eigenvalues : ndarray of shape (q,)
        e, without those that are negligible.
    scores : ndarray of shape (n, q)
        P.
    """

    weights: FloatArray
    mean: FloatArray
    vectors: FloatArray
    eigenvalues: FloatArray
    scores: FloatArray

    def solve(self, alpha: float, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the features, shape (r, m), and intercepts, shape (m,).

        Parameters
        ----------
        alpha : float
            Above 0.
        T : ndarray of shape (n, m)
        """
        centre = self.weights @ T / self.weights.sum()
        coefficients = self.vectors @ self._moments(alpha, T - centre)
        return coefficients, centre - self.mean @ coefficients

    def left_out(self, alpha: float, T: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
        """What the regression says of each row when the rows of its group are left out, shape (n, m).

        Parameters
        ----------
        alpha : float
            Above 0.
        T : ndarray of shape (n, m)
        groups : ndarray of shape (n,)
            A number for each row; rows of one number are left out together.
        """
        centre = self.weights @ T / self.weights.sum()
        residuals = T - centre - self.scores @ self._moments(alpha, T - centre)
        scaled = self.scores / (self.eigenvalues + alpha)
        leverage = self.weights * (1 / self.weights.sum() + np.einsum("ij,ij->i", scaled, self.scores))
        left = residuals / (1 - leverage)[:, None]
        for rows in _together(groups):
            ones = np.ones((len(rows), 1))
            U = np.hstack([ones / self.weights.sum(), scaled[rows]])
            V = np.hstack([ones, self.scores[rows]]).T * self.weights[rows]
            left[rows] = _solve_identity_less(U, V, residuals[rows])
        return np.asarray(T - left)

    def _moments(self, alpha: float, centred: FloatArray) -> FloatArray:
        moments: FloatArray = self.scores.T @ (self.weights[:, None] * centred)
        return moments / (self.eigenvalues + alpha)[:, None]


def weighted_ridge_path(features: FloatArray, weights: FloatArray) -> WeightedRidgePath:
    """Decompose a weighted regression problem.

    Parameters
    ----------
    features : ndarray of shape (n, r)
    weights : ndarray of shape (n,)
        None negative, some positive.  A row of weight 0 takes no part, and what is said of it is a prediction.
    """
    mean = weights @ features / weights.sum()
    centred = features - mean
    rooted = centred * np.sqrt(weights)[:, None]
    eigenvalues, vectors = scipy.linalg.eigh(rooted.T @ rooted, overwrite_a=True, check_finite=False)
    kept = eigenvalues > _NEGLIGIBLE * max(float(eigenvalues[-1]), np.finfo(float).tiny)
    V = vectors[:, kept]
    return WeightedRidgePath(weights, mean, V, eigenvalues[kept], centred @ V)


def _solve_identity_less(U: FloatArray, V: FloatArray, R: FloatArray) -> FloatArray:
    """:math:`(I - U V)^{-1} R`, through whichever of I - U V and I - V U is smaller."""
    if U.shape[0] <= U.shape[1]:
        return np.asarray(scipy.linalg.solve(np.eye(len(U)) - U @ V, R))
    return np.asarray(R + U @ scipy.linalg.solve(np.eye(len(V)) - V @ U, V @ R))


def _together(groups: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Row numbers of each group of several rows."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    return (rows for rows in np.split(order, starts) if len(rows) > 1)


PROPENSITY_CLIP = 0.02
"""Propensities are taken to be this far from 0 and 1, so that no row weighs more than 50."""


def treatment_weights(treatment: NDArray[np.int64], propensity: FloatArray, target: str) -> FloatArray:
    r"""Weights under which both arms look like all rows, or like the treated ones.

    .. math:: T / e + (1 - T) / (1 - e), \qquad T + (1 - T)\, e / (1 - e)

    Parameters
    ----------
    treatment : ndarray of shape (n_rows,)
        0 or 1.
    propensity : ndarray of shape (n_rows,)
        Probability of treatment, between 0 and 1, both excluded.
    target : {"ATE", "ATT"}
        The first formula, or the second.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    if target == "ATT":
        return np.where(treatment == 1, 1.0, propensity / (1.0 - propensity))
    return np.where(treatment == 1, 1.0 / propensity, 1.0 / (1.0 - propensity))
