r"""What a model would say of a row that it was not fitted on, in closed form."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["equal_rows", "fold_numbers", "left_out_ridge", "left_out_spreading", "spreading_matrix"]


def equal_rows(rows: FloatArray) -> NDArray[np.intp]:
    """Number of the group of rows that each row equals, shape (n_rows,)."""
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1], dtype=np.intp).ravel()


def fold_numbers(
    groups: NDArray[np.intp], strata: FloatArray | NDArray[np.intp], n_folds: int, generator: np.random.RandomState
) -> NDArray[np.intp]:
    """Fold of each row: groups stay together, and each fold has its part of every stratum.

    Parameters
    ----------
    groups : ndarray of shape (n_rows,)
    strata : ndarray of shape (n_rows,)
        Classes as numbers, or numeric targets.
    n_folds : int
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    first = np.unique(groups, return_index=True)[1]
    order = np.lexsort([generator.uniform(size=len(first)), strata[first]])
    folds = np.empty(len(first), dtype=np.intp)
    folds[order] = np.arange(len(first)) % n_folds
    return np.asarray(folds[np.unique(groups, return_inverse=True)[1].ravel()])


def left_out_ridge(
    eigenvalues: FloatArray, U: FloatArray, T: FloatArray, alpha: float, groups: NDArray[np.intp] | None = None
) -> FloatArray:
    r"""Kernel ridge regression's output for every row when the row, or its group, is left out.

    With :math:`S = \Sigma + \lambda I = U \mathrm{diag}(s + \lambda) U^\top`, a group B has
    :math:`F_B = T_B - ([S^{-1}]_{BB})^{-1} [S^{-1} T]_B`.

    Parameters
    ----------
    eigenvalues : ndarray of shape (n,)
    U : ndarray of shape (n, n)
    T : ndarray of shape (n, m)
        Targets.
    alpha : float
        The penalty.
    groups : ndarray of shape (n,), optional
        Rows of one number are left out together; None leaves out each by itself.

    Returns
    -------
    ndarray of shape (n, m)
    """
    weighted = U / (eigenvalues + alpha)
    residual = weighted @ (U.T @ T)
    F: FloatArray = T - residual / np.einsum("ij,ij->i", weighted, U)[:, None]
    for members in _groups_of_many(groups):
        block = weighted[members] @ U[members].T
        F[members] = T[members] - scipy.linalg.solve(block, residual[members], assume_a="pos")
    return F


def spreading_matrix(W: FloatArray, alpha: float) -> FloatArray:
    r"""The matrix that label spreading multiplies labels with, :math:`(1-\alpha)(I - \alpha D^{-1/2} W D^{-1/2})^{-1}`.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        Symmetric affinities with a zero diagonal.
    alpha : float
        Between 0 and 1: how much a row takes from its neighbours.

    Returns
    -------
    ndarray of shape (n, n)

    References
    ----------
    .. [1] Zhou, Bousquet, Lal, Weston and Schölkopf (2003). Learning with local and global consistency. Advances in
       Neural Information Processing Systems 16.
    """
    roots = np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny))
    S = W / roots[:, None] / roots
    return np.asarray(scipy.linalg.solve(np.eye(len(W)) - alpha * S, (1 - alpha) * np.eye(len(W)), assume_a="pos"))


def left_out_spreading(M: FloatArray, Y: FloatArray, groups: NDArray[np.intp] | None = None) -> FloatArray:
    """Labels spread to each row when its own label, and those of its group, are hidden.

    Spreading is linear in the labels, so a row's own part is taken off.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        From `spreading_matrix`.
    Y : ndarray of shape (n, n_classes)
        One-hot labels; zeros where there is none.
    groups : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    F = M @ Y - np.diag(M)[:, None] * Y
    for members in _groups_of_many(groups):
        others = [np.delete(members, place) for place in range(len(members))]
        for member, rest in zip(members, others, strict=True):
            F[member] -= M[member, rest] @ Y[rest]
    return F


def _groups_of_many(groups: NDArray[np.intp] | None) -> list[NDArray[np.intp]]:
    """Positions of each group's rows, of groups of two rows or more."""
    if groups is None:
        return []
    counts = np.bincount(groups)
    return [np.flatnonzero(groups == number) for number in np.flatnonzero(counts > 1)]
