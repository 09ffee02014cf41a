"""Orthonormal bases of column spaces that survive bad scaling, duplicated columns and rank deficiency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._validation import FloatArray

__all__ = ["ColumnSpace", "centred_columns", "column_space", "leading_left_singular"]


@dataclass(frozen=True, eq=False)
class ColumnSpace:
    """A matrix A written as ``basis @ rows``, with an orthonormal basis of its column space.

    Attributes
    ----------
    basis : ndarray of shape (n, rank)
    rows : ndarray of shape (rank, d)
        Of full row rank.
    """

    basis: FloatArray
    rows: FloatArray

    @property
    def rank(self) -> int:
        """Numerical rank of A."""
        return int(self.basis.shape[1])

    def coefficients(self, coordinates: FloatArray) -> FloatArray:
        r"""Minimum-norm G with ``A @ G = basis @ coordinates``.

        With ``coordinates = basis.T @ Z`` this is :math:`A^\dagger Z`.

        Parameters
        ----------
        coordinates : ndarray of shape (rank, m)

        Returns
        -------
        ndarray of shape (d, m)
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
    """Split ``A`` into an orthonormal basis of its column space and the coordinates of its columns.

    The columns are brought to unit length before the rank is judged, so a column in other units is not mistaken for
    rounding error.  Only a column shorter than ``max(n, d) * eps`` times the longest is, such as a principal component
    beyond the rank.  Singular values up to ``max(n, d) * eps`` times the largest count as zero.

    Parameters
    ----------
    A : ndarray of shape (n, d)
        Not all zero.

    Returns
    -------
    ColumnSpace
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
    """Columns less their means, those that are constant but for rounding exactly zero.

    Otherwise `column_space`, which brings columns to unit length, would take the rounding error for a direction.

    Parameters
    ----------
    A : ndarray of shape (n, d)

    Returns
    -------
    centred : ndarray of shape (n, d)
    means : ndarray of shape (d,)
    """
    means = A.mean(axis=0)
    centred = A - means
    rounding = len(A) * np.finfo(np.float64).eps * np.abs(A).max(axis=0)
    centred[:, np.abs(centred).max(axis=0) <= rounding] = 0.0
    return centred, means


def leading_left_singular(W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Singular value decomposition of ``W``, cut at its numerical rank.

    Parameters
    ----------
    W : ndarray of shape (n, m)

    Returns
    -------
    U : ndarray of shape (n, rank)
    singular_values : ndarray of shape (rank,)
        In descending order.
    V : ndarray of shape (m, rank)
    """
    U, singular_values, Vt = scipy.linalg.svd(W, full_matrices=False, check_finite=False)
    tolerance = max(W.shape) * np.finfo(np.float64).eps * singular_values[0]
    rank = int((singular_values > tolerance).sum())
    return U[:, :rank], singular_values[:rank], Vt[:rank].T
