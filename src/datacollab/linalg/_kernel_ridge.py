r"""Multi-output kernel ridge regression through one Cholesky factor (eq. kernel-fixed-Z-problem).

* Ridge regressions on one kernel matrix for many penalties :math:`\lambda`, from one eigendecomposition.

Kernel ridge regression with a free intercept: what it says of each row when that row is left out.

For :math:`\Sigma = U \mathrm{diag}(s) U^\top` and :math:`u = (\Sigma + \lambda I)^{-1} 1`, coefficients and intercept
solve a bordered system, whose inverse has the block

.. math:: Q = (\Sigma + \lambda I)^{-1} - u u^\top / (1^\top u) , \qquad \Gamma = Q T .

A fit without row i misses it by :math:`\Gamma_i / Q_{ii}`, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .._validation import FloatArray

__all__ = [
    "RidgePath",
    "add_to_lower",
    "centred_ridge",
    "left_out_errors",
    "ridge_coefficients",
    "ridge_inverse",
    "ridge_path",
]


_BLOCK = 256


def _ridge_factor(gram: FloatArray, alpha: float) -> FloatArray:
    r"""Lower Cholesky factor of :math:`\Sigma + \lambda I`, written over ``gram``.

    Raises
    ------
    scipy.linalg.LinAlgError
        When the matrix is not numerically positive definite.
    """
    # The matrix is symmetric, so the transpose of a C-ordered array is the same matrix in Fortran order, uncopied.
    symmetric = gram if gram.flags.f_contiguous else gram.T
    symmetric[np.diag_indices_from(symmetric)] += alpha
    factor, info = dpotrf(symmetric, lower=True, clean=False, overwrite_a=True)
    if info != 0:
        raise scipy.linalg.LinAlgError("not positive definite")
    return np.asarray(factor)


def ridge_inverse(gram: FloatArray, alpha: float) -> FloatArray:
    r"""Lower triangle of :math:`S = (\Sigma + \lambda I)^{-1}` (eq. Sk-Mlambda-definition), written over ``gram``.

    The upper triangle holds no meaning.
    """
    inverse, info = dpotri(_ridge_factor(gram, alpha), lower=True, overwrite_c=True)
    if info != 0:
        raise scipy.linalg.LinAlgError("singular")
    return np.asarray(inverse)


def ridge_coefficients(gram: FloatArray, alpha: float, Z: FloatArray) -> FloatArray:
    r"""Coefficients :math:`\Gamma = (\Sigma + \lambda I)^{-1} Z` (eq. gk-vector-solution).  Overwrites ``gram``.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    alpha : float
    Z : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n, m)
    """
    coefficients, _ = dpotrs(_ridge_factor(gram, alpha), Z, lower=True)
    return np.ascontiguousarray(coefficients)


def add_to_lower(M: FloatArray, S: FloatArray, factor: float) -> None:
    """Add ``factor * S`` to the lower triangle of ``M``, in place, by column blocks."""
    n = M.shape[0]
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        M[start:, start:stop] += factor * S[start:, start:stop]


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


_NEGLIGIBLE = 1e-10
"""Eigenvalues up to this part of the smallest penalty change no solution by more than that part."""


@dataclass(frozen=True, eq=False)
class RidgePath:
    r"""A kernel matrix as :math:`\Sigma = U \mathrm{diag}(s) U^\top`.

    Attributes
    ----------
    eigenvalues : ndarray of shape (rank,)
        s, without those that are negligible.
    vectors : ndarray of shape (n, rank)
        U.
    """

    eigenvalues: FloatArray
    vectors: FloatArray

    def add_smoother(self, M: FloatArray, alpha: float) -> None:
        r"""Add :math:`\Sigma (\Sigma + \lambda I)^{-1} = U \mathrm{diag}(s/(s+\lambda)) U^\top` to ``M``, in place.

        Parameters
        ----------
        M : ndarray of shape (n, n)
            Fortran-ordered; only its lower triangle is written.
        alpha : float
            One of the penalties that `ridge_path` was told of, or a larger one.
        """
        weights = self.eigenvalues / (self.eigenvalues + alpha)
        for sign in (1.0, -1.0):  # a kernel that is only nearly semidefinite has negative ones too
            kept = sign * weights > 0
            if kept.any():
                roots = np.sqrt(sign * weights[kept])
                dsyrk(sign, self.vectors[:, kept] * roots, beta=1.0, c=M, lower=1, overwrite_c=1)

    def coefficients(self, alpha: float, Z: FloatArray) -> FloatArray:
        r"""Coefficients :math:`(\Sigma + \lambda I)^{-1} Z`.

        Parameters
        ----------
        alpha : float
            One of the penalties that `ridge_path` was told of, or a larger one.
        Z : ndarray of shape (n, m)

        Returns
        -------
        ndarray of shape (n, m)
        """
        shrinkage = self.eigenvalues / (self.eigenvalues + alpha)
        # Written as a correction to Z / alpha, it holds outside the span of the kept eigenvectors too.
        correction: FloatArray = self.vectors @ (shrinkage[:, None] * (self.vectors.T @ Z))
        return (Z - correction) / alpha


def ridge_path(gram: FloatArray, smallest_alpha: float) -> RidgePath:
    r"""Decompose a kernel matrix once, for all penalties from ``smallest_alpha`` upwards.  Overwrites ``gram``.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Symmetric.
    smallest_alpha : float
        Smallest :math:`\lambda`.

    Returns
    -------
    RidgePath

    Raises
    ------
    scipy.linalg.LinAlgError
        When :math:`\Sigma + \lambda I` is not positive definite for the smallest :math:`\lambda`.
    """
    symmetric = gram if gram.flags.f_contiguous else gram.T
    eigenvalues, U = scipy.linalg.eigh(symmetric, lower=True, driver="evd", overwrite_a=True, check_finite=False)
    if eigenvalues[0] <= -smallest_alpha:
        raise scipy.linalg.LinAlgError("not positive definite")
    # Beyond the rank of the matrix are rounding errors, which a small penalty would take for directions.
    rounding = np.finfo(np.float64).eps * len(eigenvalues) * np.abs(eigenvalues).max()
    kept = np.abs(eigenvalues) > max(_NEGLIGIBLE * smallest_alpha, rounding)
    return RidgePath(eigenvalues=eigenvalues[kept], vectors=np.asfortranarray(U[:, kept]))
