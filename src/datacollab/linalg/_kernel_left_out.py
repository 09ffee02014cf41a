r"""Kernel ridge regression with a free intercept: what it says of each row when that row is left out.

For :math:`\Sigma = U \mathrm{diag}(s) U^\top` and :math:`u = (\Sigma + \lambda I)^{-1} 1`, coefficients and intercept
solve a bordered system, whose inverse has the block

.. math:: Q = (\Sigma + \lambda I)^{-1} - u u^\top / (1^\top u) , \qquad \Gamma = Q T .

A fit without row i misses it by :math:`\Gamma_i / Q_{ii}`, exactly.
"""

from __future__ import annotations

import numpy as np

from .._validation import FloatArray
from ._kernel_ridge import ridge_coefficients

__all__ = ["centred_ridge", "left_out_errors"]


def left_out_errors(eigenvalues: FloatArray, vectors: FloatArray, alpha: float, T: FloatArray) -> FloatArray:
    r"""What the regression misses each row by when that row is left out, shape (n, m).

    Parameters
    ----------
    eigenvalues : ndarray of shape (n,)
        s, of the kernel matrix; rounding below 0 counts as 0.
    vectors : ndarray of shape (n, n)
        U.
    alpha : float
        :math:`\lambda`, above 0.
    T : ndarray of shape (n, m)
        Targets.
    """
    scaled = vectors / (np.maximum(eigenvalues, 0.0) + alpha)
    u = scaled @ vectors.sum(axis=0)
    diagonal = np.einsum("ij,ij->i", scaled, vectors) - u**2 / u.sum()
    coefficients = scaled @ (vectors.T @ T) - np.outer(u, u @ T / u.sum())
    return np.asarray(coefficients / diagonal[:, None])


def centred_ridge(gram: FloatArray, alpha: float, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Coefficients :math:`\Gamma`, shape (n, m), and intercepts, shape (m,).  Overwrites ``gram``.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    alpha : float
        :math:`\lambda`, above 0.
    T : ndarray of shape (n, m)

    Raises
    ------
    scipy.linalg.LinAlgError
        When the matrix is not numerically positive definite.
    """
    solved = ridge_coefficients(gram, alpha, np.column_stack([np.ones(len(T)), T]))
    u, rest = solved[:, 0], solved[:, 1:]
    intercepts = rest.sum(axis=0) / u.sum()
    return rest - np.outer(u, intercepts), intercepts
