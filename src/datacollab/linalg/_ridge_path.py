r"""Ridge regressions on one kernel matrix for many penalties :math:`\lambda`, from one eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk

from .._validation import FloatArray

__all__ = ["RidgePath", "ridge_path"]

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
