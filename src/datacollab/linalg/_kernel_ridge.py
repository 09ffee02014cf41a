r"""Ridge regression: solved once, or decomposed for many penalties, with the errors of rows left out in closed form.

On a kernel matrix :math:`\Sigma`, a fit without the rows G misses them by :math:`(Q_{GG})^{-1} (Q T)_G`, exactly.
Without an intercept :math:`Q = (\Sigma + \lambda I)^{-1}`; with a free one, and :math:`u = (\Sigma + \lambda I)^{-1}
1`, it is :math:`(\Sigma + \lambda I)^{-1} - u u^\top / (1^\top u)`, a block of the inverse of the bordered system.

On features :math:`\Phi` with weights s and a free intercept, :math:`\bar\varphi` is the weighted mean and
:math:`P = (\Phi - 1\bar\varphi^\top) V` for
:math:`(\Phi - 1\bar\varphi^\top)^\top \mathrm{diag}(s) (\Phi - 1\bar\varphi^\top) = V \mathrm{diag}(e) V^\top`.  The
fit with penalty :math:`\alpha` is :math:`\hat T = H T`,
:math:`H_{ij} = s_j / \sum s + P_i \,\mathrm{diag}(e + \alpha)^{-1} P_j^\top s_j`, and a fit without the rows G misses
them by :math:`(I - H_{GG})^{-1} (T - \hat T)_G`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .._typing import FloatArray
from ._array_api import slices

_BLOCK = 256


def _ridge_factor(gram: FloatArray, alpha: float) -> FloatArray:
    symmetric = _in_fortran_order(gram)
    symmetric[np.diag_indices_from(symmetric)] += alpha
    factor, info = dpotrf(symmetric, lower=True, clean=False, overwrite_a=True)
    if info != 0:
        raise scipy.linalg.LinAlgError("not positive definite")
    return np.asarray(factor)


def _in_fortran_order(gram: FloatArray) -> FloatArray:
    # The matrix is symmetric, so the transpose of a C-ordered array is the same matrix in Fortran order, uncopied.
    return gram if gram.flags.f_contiguous else gram.T


def ridge_inverse(gram: FloatArray, alpha: float) -> FloatArray:
    r"""Return the lower triangle of :math:`S = (\Sigma + \lambda I)^{-1}` (eq. Sk-Mlambda-definition).

    Overwrites ``gram``.  The upper triangle holds no meaning.
    """
    inverse, info = dpotri(_ridge_factor(gram, alpha), lower=True, overwrite_c=True)
    if info != 0:
        raise scipy.linalg.LinAlgError("singular")
    return np.asarray(inverse)


def ridge_coefficients(gram: FloatArray, alpha: float, Z: FloatArray) -> FloatArray:
    r"""Return :math:`\Gamma = (\Sigma + \lambda I)^{-1} Z` of shape (n, m) (eq. gk-vector-solution).

    Overwrites ``gram``; scipy.linalg.LinAlgError if the matrix is not numerically positive definite.
    """
    coefficients, _ = dpotrs(_ridge_factor(gram, alpha), Z, lower=True)
    return np.ascontiguousarray(coefficients)


def ridge_with_intercept(gram: FloatArray, alpha: float, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit as `ridge_coefficients` does, with a free intercept: return coefficients (n, m) and intercepts (m,)."""
    # One solve for the targets and for u, as in the module's formula; the intercept makes coefficients sum to 0.
    solved = ridge_coefficients(gram, alpha, np.column_stack([np.ones(len(T)), T]))
    u = solved[:, 0]
    without = solved[:, 1:]
    intercepts = without.sum(axis=0) / u.sum()
    return without - np.outer(u, intercepts), intercepts


def add_to_lower(M: FloatArray, S: FloatArray, factor: float) -> None:
    """Add ``factor * S`` to the lower triangle of ``M``, in place, by column blocks."""
    for columns in slices(M.shape[0], _BLOCK):
        M[columns.start :, columns] += factor * S[columns.start :, columns]


@dataclass(frozen=True, eq=False)
class RidgePath:
    r"""A kernel matrix :math:`\Sigma = U \mathrm{diag}(s) U^\top`, decomposed once for all penalties.

    `ridge_path` leaves out negligible directions; `full_ridge_path` keeps all, which `errors_left_out` needs.
    """

    eigenvalues: FloatArray
    vectors: FloatArray

    def add_smoother(self, M: FloatArray, alpha: float) -> None:
        r"""Add :math:`\Sigma (\Sigma + \lambda I)^{-1} = U \mathrm{diag}(s/(s+\lambda)) U^\top` to ``M``, in place.

        ``M`` is Fortran-ordered, of shape (n, n); only its lower triangle is written.
        """
        weights = self.eigenvalues / (self.eigenvalues + alpha)
        for sign in (1.0, -1.0):  # a kernel that is only nearly semidefinite has negative ones too
            kept = sign * weights > 0
            if kept.any():
                roots = np.sqrt(sign * weights[kept])
                dsyrk(sign, self.vectors[:, kept] * roots, beta=1.0, c=M, lower=1, overwrite_c=1)

    def coefficients(self, alpha: float, Z: FloatArray) -> FloatArray:
        r"""Return :math:`(\Sigma + \lambda I)^{-1} Z`, shape (n, m)."""
        shrinkage = self.eigenvalues / (self.eigenvalues + alpha)
        # Written as a correction to Z / alpha, it holds outside the span of the kept eigenvectors too.
        correction: FloatArray = self.vectors @ (shrinkage[:, None] * (self.vectors.T @ Z))
        return (Z - correction) / alpha

    def errors_left_out(
        self, alpha: float, T: FloatArray, *, intercept: bool = False, groups: NDArray[np.intp] | None = None
    ) -> FloatArray:
        """Return by how much a fit without a row, or its group, misses the row: shape (n, m), as the targets T.

        ``intercept`` says whether the fit has a free one.  Rows of one number in ``groups`` are left out together.
        """
        scaled = self.vectors / (self.eigenvalues + alpha)
        coefficients = scaled @ (self.vectors.T @ T)
        diagonal = np.einsum("ij,ij->i", scaled, self.vectors)
        if intercept:
            u = scaled @ self.vectors.sum(axis=0)
            diagonal -= u**2 / u.sum()
            coefficients -= np.outer(u, u @ T / u.sum())
        # A row by itself by a division; the rows of a group by a small system.
        errors: FloatArray = coefficients / diagonal[:, None]
        for rows in groups_of_several(groups):
            block = scaled[rows] @ self.vectors[rows].T
            if intercept:
                block -= np.outer(u[rows], u[rows]) / u.sum()
            errors[rows] = scipy.linalg.solve(block, coefficients[rows], assume_a="pos")
        return errors

    def errors_left_out_of_centred(self, alpha: float, T: FloatArray) -> FloatArray:
        """Return these errors for a centred kernel matrix and a free intercept, each row left out by itself."""
        weights = self.eigenvalues / (self.eigenvalues + alpha)
        fitted = self.vectors @ (weights[:, np.newaxis] * (self.vectors.T @ T))
        freedom = 1 - 1 / len(T) - self._squares @ weights
        # A row that the fit follows whatever it is has no freedom left but for rounding.
        errors: FloatArray = (T - fitted) / np.maximum(freedom, np.finfo(np.float64).eps)[:, np.newaxis]
        return errors

    @cached_property
    def _squares(self) -> FloatArray:
        return np.asarray(self.vectors**2)


def ridge_path(gram: FloatArray, smallest_alpha: float) -> RidgePath:
    r"""Decompose a kernel matrix, shape (n, n), for all penalties from ``smallest_alpha`` upwards.  Overwrites it.

    Raise LinAlgError if :math:`\Sigma + \lambda I` is not positive definite for the smallest :math:`\lambda`.
    """
    symmetric = _in_fortran_order(gram)
    eigenvalues, U = scipy.linalg.eigh(symmetric, lower=True, driver="evd", overwrite_a=True, check_finite=False)
    if eigenvalues[0] <= -smallest_alpha:
        raise scipy.linalg.LinAlgError("not positive definite")
    # Eigenvalues up to 1e-10 of the smallest penalty change no solution by more than that part.
    # Beyond the rank of the matrix are rounding errors, which a small penalty would take for directions.
    rounding = np.finfo(np.float64).eps * len(eigenvalues) * np.abs(eigenvalues).max()
    kept = np.abs(eigenvalues) > max(1e-10 * smallest_alpha, rounding)
    return RidgePath(eigenvalues=eigenvalues[kept], vectors=np.asfortranarray(U[:, kept]))


def full_ridge_path(gram: FloatArray) -> RidgePath:
    """Decompose a kernel matrix, shape (n, n), with all its directions."""
    eigenvalues, U = scipy.linalg.eigh(gram, check_finite=False)
    # Rounding leaves eigenvalues just below zero, which no kernel has.
    return RidgePath(np.maximum(eigenvalues, 0.0), U)


@dataclass(frozen=True, eq=False)
class WeightedRidgePath:
    """A weighted regression problem, decomposed once for all penalties and targets.

    In the symbols above: ``weights`` s, (n,); ``mean`` of the features, (r,); ``vectors`` V, (r, q); ``eigenvalues`` e,
    (q,), without those that are negligible; ``scores`` P, (n, q).
    """

    weights: FloatArray
    mean: FloatArray
    vectors: FloatArray
    eigenvalues: FloatArray
    scores: FloatArray

    def solve(self, alpha: float, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coefficients of the features, shape (r, m), and intercepts, shape (m,)."""
        centre = self.weights @ T / self.weights.sum()
        coefficients = self.vectors @ self._moments(alpha, T - centre)
        return coefficients, centre - self.mean @ coefficients

    def predict_left_out(self, alpha: float, T: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
        """Return each row's prediction by a fit without the rows of its number in ``groups``, shape (n, m), as T."""
        centre = self.weights @ T / self.weights.sum()
        residuals = T - centre - self.scores @ self._moments(alpha, T - centre)
        leverage = self.weights * (1 / self.weights.sum() + self._squares @ (1 / (self.eigenvalues + alpha)))
        left = residuals / (1 - leverage)[:, None]
        for rows in groups_of_several(groups):
            ones = np.ones((len(rows), 1))
            # H of the group is U V, a product as narrow as the smaller of rows and features.
            U = np.hstack([ones / self.weights.sum(), self.scores[rows] / (self.eigenvalues + alpha)])
            V = np.hstack([ones, self.scores[rows]]).T * self.weights[rows]
            left[rows] = _solve_identity_less(U, V, residuals[rows])
        return np.asarray(T - left)

    @cached_property
    def _squares(self) -> FloatArray:
        return np.asarray(self.scores**2)

    def _moments(self, alpha: float, centred: FloatArray) -> FloatArray:
        moments: FloatArray = self.scores.T @ (self.weights[:, None] * centred)
        return moments / (self.eigenvalues + alpha)[:, None]


def ridge_path_of_features(features: FloatArray, weights: FloatArray) -> WeightedRidgePath:
    """Decompose a regression on ``features``, shape (n, r); a row of weight 0 takes no part."""
    mean = weights @ features / weights.sum()
    centred = features - mean
    rooted = centred * np.sqrt(weights)[:, None]
    eigenvalues, vectors = scipy.linalg.eigh(rooted.T @ rooted, overwrite_a=True, check_finite=False)
    # Smaller ones are rounding.
    kept = eigenvalues > 1e-12 * max(float(eigenvalues[-1]), np.finfo(float).tiny)
    V = vectors[:, kept]
    return WeightedRidgePath(weights, mean, V, eigenvalues[kept], centred @ V)


def _solve_identity_less(U: FloatArray, V: FloatArray, R: FloatArray) -> FloatArray:
    """Return :math:`(I - U V)^{-1} R`, through the smaller of I - U V and I - V U."""
    if U.shape[0] <= U.shape[1]:
        return np.asarray(scipy.linalg.solve(np.eye(len(U)) - U @ V, R))
    return np.asarray(R + U @ scipy.linalg.solve(np.eye(len(V)) - V @ U, V @ R))


def groups_of_several(groups: NDArray[np.intp] | None) -> Iterator[NDArray[np.intp]]:
    """Yield the row numbers of each group of several rows; none without groups."""
    if groups is None:
        return
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order], prepend=np.nan, append=np.nan))
    # Rows by themselves are many, and need no views.
    several = np.diff(bounds) > 1
    yield from (order[start:stop] for start, stop in zip(bounds[:-1][several], bounds[1:][several], strict=True))
