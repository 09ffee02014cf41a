"""Eigenvectors of symmetric matrices, and orthonormal bases of column spaces.

Symmetric n x n matrices are Fortran-ordered and only their lower triangle is read: half the writes, and LAPACK works
in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.linalg.blas import dsymv

from .._validation import FloatArray

__all__ = [
    "ColumnSpace",
    "add_sparse_to_lower",
    "centre_lower",
    "centred_columns",
    "column_space",
    "fix_signs",
    "largest_of_pencil",
    "leading_left_singular",
    "metric_scaling",
    "smallest_eigenpairs",
    "smallest_eigenpairs_centred",
]


_BLOCK = 256


def fix_signs(Z: FloatArray) -> FloatArray:
    """Return signs, shape (m,), that make the entry of largest magnitude in each column of ``Z`` positive."""
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
    """Return the ``k`` smallest eigenvalues of ``M``, ascending, and eigenvectors, shape (n, k).  Overwrites ``M``."""
    eigenvalues, Z = scipy.linalg.eigh(
        M, lower=True, subset_by_index=(0, k - 1), driver="evr", overwrite_a=True, check_finite=False
    )
    return eigenvalues, Z


def smallest_eigenpairs_centred(M: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""Return the ``k`` smallest eigenpairs of ``M`` where :math:`1^\top z = 0` (eq. reduced-Y).  Overwrites ``M``.

    The paper substitutes Z = TY with a basis T of the centred subspace.  Here M is projected instead, and the constant
    direction is shifted above the spectrum, so that no n x (n-1) matrix is formed.
    """
    n = M.shape[0]
    centre_lower(M)
    M += 2.0 * _bound_of_lower(M) / n
    eigenvalues, Z = smallest_eigenpairs(M, k)
    return eigenvalues, Z - Z.mean(axis=0)


def _bound_of_lower(M: FloatArray) -> float:
    """Return the largest absolute row sum of ``M``, or a little more; no eigenvalue exceeds it."""
    sums = np.zeros(M.shape[0])
    for start in range(0, M.shape[0], _BLOCK):
        stop = min(start + _BLOCK, M.shape[0])
        panel = np.abs(M[start:, start:stop])
        panel[: stop - start] = np.tril(panel[: stop - start])
        sums[start:stop] += panel.sum(axis=0)
        sums[start:] += panel.sum(axis=1)
    return float(sums.max())


def largest_of_pencil(C: FloatArray, A: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""Solve :math:`C u = \nu A u` for the ``k`` largest :math:`\nu`; :math:`U^\top A U = I`.  Overwrites both.

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


@dataclass(frozen=True, eq=False)
class ColumnSpace:
    """A matrix A written as ``basis @ rows``, with an orthonormal basis of its column space.

    Attributes
    ----------
    basis : ndarray of shape (n, rank)
    rows : ndarray of shape (rank, d)
        It has full row rank.
    """

    basis: FloatArray
    rows: FloatArray

    @property
    def rank(self) -> int:
        """Return the numerical rank of A."""
        return int(self.basis.shape[1])

    def coefficients(self, coordinates: FloatArray) -> FloatArray:
        r"""Return the minimum-norm G, shape (d, m), with ``A @ G = basis @ coordinates``.

        With ``coordinates = basis.T @ Z``, shape (rank, m), this is :math:`A^\dagger Z`.
        """
        # Columns of A may differ in scale by many orders of magnitude, which grades the rows of rows.T.  Householder
        # QR is accurate row by row if the rows are sorted and the columns pivoted (Cox and Higham 1998).
        order = np.argsort(-np.abs(self.rows).max(axis=0), kind="stable")
        Q, R, pivots = scipy.linalg.qr(self.rows.T[order], mode="economic", pivoting=True, check_finite=False)
        solution = Q @ scipy.linalg.solve_triangular(R, coordinates[pivots], trans="T", check_finite=False)
        G: FloatArray = np.empty(solution.shape)
        G[order] = solution
        return G


def column_space(A: FloatArray) -> ColumnSpace:
    """Split ``A``, shape (n, d) and not all zero, into an orthonormal basis of its column space and coordinates.

    The columns are brought to unit length before the rank is judged, so a column in other units is not mistaken for
    rounding error.  Only a column shorter than ``max(n, d) * eps`` times the longest is, such as a principal component
    beyond the rank.  Singular values up to ``max(n, d) * eps`` times the largest count as zero.
    """
    unit = np.abs(A).max()
    lengths = np.linalg.norm(A / unit, axis=0)
    negligible = max(A.shape) * np.finfo(np.float64).eps
    lengths[lengths <= negligible * lengths.max()] = 0.0
    kept = lengths > 0
    scaled = np.where(kept, A / unit / np.where(kept, lengths, 1.0), 0.0)
    U, singular_values, Vt = scipy.linalg.svd(scaled, full_matrices=False, check_finite=False)
    rank = int((singular_values > negligible * singular_values[0]).sum())
    rows = singular_values[:rank, None] * Vt[:rank] * (lengths * unit)
    return ColumnSpace(basis=U[:, :rank], rows=rows)


def centred_columns(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns of ``A`` less their means, and the means; constant columns become exactly zero.

    Otherwise `column_space`, which brings columns to unit length, would take the rounding error for a direction.
    """
    means = A.mean(axis=0)
    centred = A - means
    rounding = len(A) * np.finfo(np.float64).eps * np.abs(A).max(axis=0)
    centred[:, np.abs(centred).max(axis=0) <= rounding] = 0.0
    return centred, means


def leading_left_singular(W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Decompose ``W``, shape (n, m), into singular values and vectors, cut at its numerical rank.

    Returns
    -------
    U : ndarray of shape (n, rank)
    singular_values : ndarray of shape (rank,)
        Descending.
    V : ndarray of shape (m, rank)
    """
    U, singular_values, Vt = scipy.linalg.svd(W, full_matrices=False, check_finite=False)
    tolerance = max(W.shape) * np.finfo(np.float64).eps * singular_values[0]
    rank = int((singular_values > tolerance).sum())
    return U[:, :rank], singular_values[:rank], Vt[:rank].T


def metric_scaling(common: FloatArray, representations: Sequence[FloatArray]) -> tuple[FloatArray, float]:
    r"""Return a matrix W: distances between rows of ``common @ W`` are the mean ones between the representations' rows.

    With :math:`C = [\tilde A_1 - \bar a_1, \ldots, \tilde A_K - \bar a_K] / \sqrt K`, squared distances between rows
    of C are the means over the representations.  W is the least-squares map from the centred common space to C, turned
    to its principal axes, which changes no distance: with :math:`Z - \bar z = QR` and
    :math:`Q^\top C = U \Sigma V^\top`, :math:`W = R^+ U \Sigma` and :math:`(Z - \bar z) W = Q Q^\top C V`.  It is
    classical scaling (principal coordinates) of the mean squared distances [1]_, confined to what is linear in the
    common space.

    Parameters
    ----------
    common : ndarray of shape (n, m)
        Z, not all rows equal.
    representations : sequence of ndarray of shape (n, d_k)
        The same rows in each party's representation; not all zero once centred.

    Returns
    -------
    W : ndarray of shape (m, rank)
        Columns by descending length of those of ``common @ W``; the entry of largest magnitude in each of these is
        positive.
    kept : float
        Part of the sum of squares of C that the common space keeps, from 0 to 1.  At 1 all distances are kept.

    References
    ----------
    .. [1] Gower (1966). Some distance properties of latent root and vector methods used in multivariate analysis.
       Biometrika 53(3-4), 325-338.
    """
    space = column_space(centred_columns(common)[0])
    C = np.hstack([centred_columns(A)[0] for A in representations]) / np.sqrt(len(representations))
    U, lengths, _ = scipy.linalg.svd(space.basis.T @ C, full_matrices=False, check_finite=False)
    # Directions that are rounding error only; one is kept in any case, for a map has to have a column.
    seen = lengths > max(C.shape) * np.finfo(np.float64).eps * lengths[0]
    seen[0] = True
    coordinates = U[:, seen] * lengths[seen]
    coordinates *= fix_signs(space.basis @ coordinates)
    return space.coefficients(coordinates), float(np.sum(lengths**2) / np.sum(C**2))
