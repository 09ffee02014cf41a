r"""Multi-output kernel ridge regression through one Cholesky factor (eq. kernel-fixed-Z-problem)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .._validation import FloatArray

__all__ = ["add_to_lower", "ridge_coefficients", "ridge_inverse"]

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
