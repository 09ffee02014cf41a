r"""Kernel ridge regression over the span of a few landmarks (Nystroem), and the smoother it amounts to.

Functions are restricted to combinations of :math:`\kappa(\cdot, s)` at landmarks s in S.  With
:math:`R R^\top = \kappa(S, S)` and features :math:`L = \kappa(A, S) R^{-\top}`, the smoother is
:math:`\tilde P = L (L^\top L + \lambda I)^{-1} L^\top`, never above :math:`P = \Sigma (\Sigma + \lambda I)^{-1}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._validation import Array, FloatArray, to_numpy
from ._array_api import add_gram, add_tall_product, add_wide_product, cast, like, matching, times_upper, zeros
from ._kernels import Kernel

__all__ = [
    "RestrictedRidge",
    "feature_dtype",
    "landmark_moments",
    "landmark_root",
    "nested_ridges",
    "restricted_ridge",
    "restricted_ridge_of_features",
    "smoother_trace",
]

_BLOCK = 2048
"""Rows whose features are made at a time."""
_JITTER = 1e-13
_APART = 0.03
"""Distance of each landmark from the span of those before it, from which float32 suffices to make the features."""
_SINGLE_ABOVE = 1e-3
"""Penalty from which features in float32 do not limit the accuracy."""


@dataclass(frozen=True, eq=False)
class RestrictedRidge:
    r"""The ridge regression of one party, restricted to landmarks.

    Attributes
    ----------
    features : array of shape (n, r)
        L.  All else is small, and NumPy's.
    gram : ndarray of shape (r, r)
        Cholesky factor of :math:`L^\top L + \lambda I`, lower.
    alpha : float
        :math:`\lambda`.
    """

    features: Array
    gram: FloatArray
    alpha: float

    @property
    def trace(self) -> float:
        r""":math:`\mathrm{tr} \tilde P`, the effective number of parameters, exactly."""
        return smoother_trace(self.gram, self.alpha)

    def first(self, rank: int) -> RestrictedRidge:
        """The ridge regression restricted to the first landmarks."""
        features = np.ascontiguousarray(self.features[:, :rank])
        return RestrictedRidge(features, self.gram[:rank, :rank], self.alpha)

    def moments(self, X: Array) -> FloatArray:
        r""":math:`L^\top X`, shape (r, m), as a NumPy array in float64."""
        moments = self._zeros(self.features.shape[1], X.shape[1])
        add_wide_product(moments, self.features, matching(X, self.features))
        return to_numpy(cast(moments, np.float64))

    def weights(self, X: Array) -> FloatArray:
        r""":math:`(L^\top L + \lambda I)^{-1} L^\top X`, shape (r, m), as a NumPy array."""
        solved: FloatArray = scipy.linalg.cho_solve((self.gram, True), self.moments(X), check_finite=False)
        return solved

    def smooth(self, X: Array) -> Array:
        r""":math:`\tilde P X`, shape (n, m)."""
        return self.combined(self.weights(X))

    def combined(self, weights: FloatArray) -> Array:
        """Combinations of the features, shape (n, m), in float64."""
        result = self._zeros(self.features.shape[0], weights.shape[1])
        add_tall_product(result, self.features, matching(like(weights, self.features), self.features))
        return cast(result, np.float64)

    def _zeros(self, n: int, m: int) -> Array:
        """Zeros of the features' library and data type."""
        return matching(zeros((n, m), self.features), self.features)


def landmark_root(kernel: Kernel, landmarks: FloatArray) -> FloatArray:
    r"""Lower R with :math:`R R^\top = \kappa(S, S)`, shape (r, r).

    Raises
    ------
    scipy.linalg.LinAlgError
        When the kernel is not positive semidefinite.
    """
    gram = kernel.gram(landmarks)
    # Landmarks are drawn so that none is a combination of the others; the jitter is for rounding.
    gram[np.diag_indices_from(gram)] += _JITTER * len(gram) * np.trace(gram) / len(gram)
    root: FloatArray = scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    return root


def restricted_ridge(
    kernel: Kernel, A: Array, landmarks: FloatArray, root: FloatArray, alpha: float
) -> RestrictedRidge:
    """The ridge regression on all rows; parameters are those of `nested_ridges`."""
    return nested_ridges(kernel, A, landmarks, root, alpha, len(landmarks))[0]


def nested_ridges(
    kernel: Kernel, A: Array, landmarks: FloatArray, root: FloatArray, alpha: float, n_first: int
) -> tuple[RestrictedRidge, FloatArray]:
    r"""The ridge regression restricted to the first landmarks, and what the one with all of them needs.

    Features are made in blocks of rows, and those of the first landmarks are kept: the root is triangular, so that they
    are the same without the others.

    Parameters
    ----------
    kernel : Kernel
    A : array of shape (n, d)
    landmarks : ndarray of shape (r, d)
    root : ndarray of shape (r, r)
        Of `landmark_root`.
    alpha : float
    n_first : int

    Returns
    -------
    ridge : RestrictedRidge
        With ``n_first`` landmarks.
    gram : ndarray of shape (r, r)
        Lower Cholesky factor of :math:`L^\top L + \lambda I` for all landmarks.

    Notes
    -----
    Features are kept in float32 unless ``alpha`` is small, and made in float32 where the landmarks lie well apart.  So
    are the Gram matrices of blocks of rows, which are added up in float64: the error of an entry is some 1e-6 of the
    lengths of its two columns, where landmarks are not needed to that accuracy.
    """
    n, r = A.shape[0], len(landmarks)
    whiten = scipy.linalg.solve_triangular(root, np.eye(r), lower=True, check_finite=False).T
    kept, making = feature_dtype(alpha), _making(root, alpha)
    whiten, centres = like(whiten.astype(making), A), like(landmarks, A)
    features = zeros((n, n_first), A, kept)
    gram = zeros((r, r), A).T
    for start in range(0, n, _BLOCK):
        block = slice(start, min(start + _BLOCK, n))
        made = matching(times_upper(kernel.between(A[block, :], centres, making), whiten), features)
        features[block, :] = made[:, :n_first]
        gram = add_gram(gram, made)
    factor = _factor(to_numpy(gram), alpha)
    return RestrictedRidge(features, factor[:n_first, :n_first], alpha), factor


def landmark_moments(
    kernel: Kernel, A: Array, landmarks: FloatArray, root: FloatArray, alpha: float, X: Array
) -> FloatArray:
    r""":math:`L^\top X` of shape (r, m), as a NumPy array, without keeping L; cheap beside `nested_ridges`."""
    making = _making(root, alpha)
    centres = like(landmarks, A)
    total = np.zeros((len(landmarks), X.shape[1]))
    for start in range(0, A.shape[0], _BLOCK):
        block = slice(start, min(start + _BLOCK, A.shape[0]))
        near = kernel.between(A[block, :], centres, making)
        part = zeros((len(landmarks), X.shape[1]), A, making)
        add_wide_product(part, near, matching(X[block, :], near))
        total += to_numpy(part)
    moments: FloatArray = scipy.linalg.solve_triangular(root, total, lower=True, check_finite=False)
    return moments


def feature_dtype(alpha: float) -> type[np.floating[Any]]:
    """Data type that features are kept in."""
    return np.float32 if alpha >= _SINGLE_ABOVE else np.float64


def smoother_trace(gram: FloatArray, alpha: float) -> float:
    r""":math:`\mathrm{tr} \tilde P`, exactly, from the Cholesky factor of :math:`L^\top L + \lambda I`."""
    inverse = scipy.linalg.solve_triangular(gram, np.eye(len(gram)), lower=True, check_finite=False)
    return float(len(gram) - alpha * np.sum(inverse**2))


def restricted_ridge_of_features(features: FloatArray, alpha: float) -> RestrictedRidge:
    """The same where the features, of a sample of the rows mostly, are there already."""
    features = np.ascontiguousarray(features, feature_dtype(alpha))
    gram = np.zeros((features.shape[1], features.shape[1]), order="F")
    for start in range(0, len(features), _BLOCK):
        gram = add_gram(gram, features[start : start + _BLOCK])
    return RestrictedRidge(features, _factor(gram, alpha), alpha)


def _making(root: FloatArray, alpha: float) -> type[np.floating[Any]]:
    """Data type that features are made in."""
    # Close landmarks make R nearly singular, and its inverse would multiply the rounding of float32.
    return feature_dtype(alpha) if root.diagonal().min() >= _APART else np.float64


def _factor(gram: FloatArray, alpha: float) -> FloatArray:
    gram[np.diag_indices_from(gram)] += alpha
    factor: FloatArray = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    return factor
