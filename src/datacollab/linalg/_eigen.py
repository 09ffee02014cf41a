r"""Eigenvectors of symmetric matrices held in their lower triangle.

Symmetric n x n matrices are Fortran-ordered and only their lower triangle is read: half the writes, and LAPACK works
in place.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.linalg.blas import dsymv

from .._validation import FloatArray

__all__ = [
    "add_sparse_to_lower",
    "centre_lower",
    "fix_signs",
    "largest_of_pencil",
    "smallest_eigenpairs",
    "smallest_eigenpairs_centred",
]

_BLOCK = 256


def fix_signs(Z: FloatArray) -> FloatArray:
    """Signs (+1 or -1) that make the entry of largest magnitude in each column of ``Z`` positive.

    Parameters
    ----------
    Z : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (m,)
    """
    largest = np.take_along_axis(Z, np.abs(Z).argmax(axis=0)[None, :], axis=0)[0]
    return np.where(largest < 0, -1.0, 1.0)


def add_sparse_to_lower(M: FloatArray, S: sparse.sparray | sparse.spmatrix, factor: float) -> None:
    """Add ``factor * S`` to the lower triangle of ``M``, in place."""
    entries = sparse.coo_array(S)
    below = entries.row >= entries.col
    np.add.at(M, (entries.row[below], entries.col[below]), factor * entries.data[below])


def centre_lower(M: FloatArray) -> None:
    r"""Replace ``M`` by :math:`H M H` with :math:`H = I - 11^\top/n`, in place, without forming H."""
    n = M.shape[0]
    means = dsymv(1.0 / n, M, np.ones(n), lower=1)
    means -= means.mean() / 2  # half of the grand mean in each of the two rank-one terms
    M -= means[:, None]
    M -= means[None, :]


def smallest_eigenpairs(M: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""The ``k`` smallest eigenvalues of ``M``, and orthonormal eigenvectors.  Overwrites ``M``.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
        Ascending.
    Z : ndarray of shape (n, k)
    """
    eigenvalues, Z = scipy.linalg.eigh(
        M, lower=True, subset_by_index=(0, k - 1), driver="evr", overwrite_a=True, check_finite=False
    )
    return eigenvalues, Z


def smallest_eigenpairs_centred(M: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""The ``k`` smallest eigenpairs of ``M`` restricted to :math:`1^\top z = 0` (eq. reduced-Y).  Overwrites ``M``.

    The paper substitutes Z = TY with a basis T of the centred subspace.  Here M is projected instead, and the constant
    direction is shifted above the spectrum, so that no n x (n-1) matrix is formed.
    """
    n = M.shape[0]
    centre_lower(M)
    M += 2.0 * _bound_of_lower(M) / n
    eigenvalues, Z = smallest_eigenpairs(M, k)
    return eigenvalues, Z - Z.mean(axis=0)


def _bound_of_lower(M: FloatArray) -> float:
    """Largest absolute row sum of ``M``, or a little more; no eigenvalue exceeds it."""
    sums = np.zeros(M.shape[0])
    for start in range(0, M.shape[0], _BLOCK):
        stop = min(start + _BLOCK, M.shape[0])
        panel = np.abs(M[start:, start:stop])
        panel[: stop - start] = np.tril(panel[: stop - start])
        sums[start:stop] += panel.sum(axis=0)
        sums[start:] += panel.sum(axis=1)
    return float(sums.max())


def largest_of_pencil(C: FloatArray, A: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""The ``k`` largest :math:`\nu` of :math:`C u = \nu A u`, scaled to :math:`U^\top A U = I`.  Overwrites both.

    For a positive definite A and a positive semidefinite C this is eq. kernel-graph-gep with :math:`\nu = 1/\gamma`.
    A well conditioned A keeps it accurate although a graph Laplacian C is always singular.

    Returns
    -------
    nu : ndarray of shape (k,)
        Descending.
    U : ndarray of shape (n, k)
    """
    n = A.shape[0]
    nu, U = scipy.linalg.eigh(
        C,
        A,
        lower=True,
        subset_by_index=(n - k, n - 1),
        driver="gvx",
        overwrite_a=True,
        overwrite_b=True,
        check_finite=False,
    )
    return nu[::-1], U[:, ::-1]
