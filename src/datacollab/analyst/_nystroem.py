r"""Nyström approximation: landmarks drawn by randomly pivoted Cholesky, and ridge regression restricted to them.

Functions are combinations of :math:`\kappa(\cdot, s)` at landmarks s in S.  With :math:`R R^\top = \kappa(S, S)` and
features :math:`L = \kappa(A, S) R^{-\top}`, the smoother is :math:`\tilde P = L (L^\top L + \lambda I)^{-1} L^\top`,
never above :math:`P = \Sigma (\Sigma + \lambda I)^{-1}`.  Each landmark is drawn with a probability proportional to
what the earlier ones leave unexplained of each row: close to the best approximation of the same rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from .._validation import Array, FloatArray, to_numpy
from ..linalg import (
    Kernel,
    KernelBlocks,
    add_gram,
    add_tall_product,
    add_wide_product,
    cast,
    like,
    matching,
    times_upper,
    zeros,
)

_BLOCK = 2048
"""Rows whose features are made at a time."""
_JITTER = 1e-13
_APART = 0.03
"""Distance of each landmark from the span of those before it, from which float32 suffices to make the features."""
_SINGLE_ABOVE = 1e-3
"""Penalty from which features in float32 do not limit the accuracy."""


_NEGLIGIBLE = 1e-10
"""Unexplained share of the trace at which no further landmark is drawn: float64's rounding lies not far below."""
_INDEFINITE = 1e-6
"""Negative remainder on the diagonal, relative to its mean, that rounding does not explain."""
_SMALLEST_BLOCK = 16


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    r"""A partial factorisation :math:`\Sigma \approx F F^\top`.

    ``pivots`` are the landmarks' rows, in the order in which they were drawn: the first ones are a smaller set as good.
    ``factor`` is F, (n, rank), lower triangular in these rows; ``unexplained`` the diagonal of :math:`\Sigma - F
    F^\top`, not negative; ``trace`` that of :math:`\Sigma`.
    """

    pivots: np.ndarray[tuple[int], np.dtype[np.intp]]
    factor: FloatArray
    unexplained: FloatArray
    trace: float

    @property
    def exhausted(self) -> bool:
        """Return whether the landmarks explain the kernel matrix as well as rounding permits."""
        return float(self.unexplained.sum()) <= _NEGLIGIBLE * self.trace


def start_pivots(kernel: Kernel, A: FloatArray) -> PivotedCholesky:
    """Return a factorisation without landmarks."""
    diagonal = kernel.diagonal(A)
    empty = np.empty((A.shape[0], 0))
    return PivotedCholesky(np.empty(0, dtype=np.intp), empty, diagonal, float(diagonal.sum()))


def extend_pivots(
    partial: PivotedCholesky, kernel: Kernel, A: FloatArray, rank: int, rng: np.random.Generator
) -> PivotedCholesky:
    """Draw landmarks until there are ``rank``, or no more are of use (Epperly, Tropp and Webber 2024, algorithm 2.1).

    Raises
    ------
    scipy.linalg.LinAlgError
        If the kernel is seen not to be positive semidefinite.
    """
    n = A.shape[0]
    rank = min(rank, n)
    pivots = list(partial.pivots)
    # Transposed, so that a column lies in one piece.
    factor = np.empty((max(rank, len(pivots)), n))
    factor[: len(pivots)] = partial.factor.T
    unexplained = partial.unexplained.copy()
    blocks = KernelBlocks(kernel, A)
    while len(pivots) < rank and unexplained.sum() > _NEGLIGIBLE * partial.trace:
        filled = len(pivots)
        block = max(_SMALLEST_BLOCK, rank // 10)
        proposed = rng.choice(n, size=block, p=unexplained / unexplained.sum())
        columns, earlier = blocks.block(proposed, slice(None)), factor[:filled, proposed].T
        remainder = columns[:, proposed] - earlier @ earlier.T
        accepted, lower = _rejection_cholesky(remainder, unexplained[proposed], rank - filled, rng)
        chosen = proposed[accepted]
        if not len(chosen):
            continue
        columns = columns[accepted]
        columns -= earlier[accepted] @ factor[:filled]
        new = factor[filled : filled + len(chosen)]
        # For so few rows a product with the inverse is much faster than a triangular solve with many columns.
        inverse = scipy.linalg.solve_triangular(lower, np.eye(len(chosen)), lower=True, check_finite=False)
        np.matmul(inverse, columns, out=new)
        unexplained -= np.einsum("ij,ij->j", new, new)
        if unexplained.min() < -_INDEFINITE * partial.trace / n:
            raise scipy.linalg.LinAlgError("not positive semidefinite")
        np.maximum(unexplained, 0.0, out=unexplained)
        unexplained[chosen] = 0.0
        pivots.extend(chosen)
    found = factor[: len(pivots)].T
    return PivotedCholesky(np.asarray(pivots, dtype=np.intp), found, unexplained, partial.trace)


def _rejection_cholesky(
    H: FloatArray, bounds: FloatArray, most: int, rng: np.random.Generator
) -> tuple[list[int], FloatArray]:
    """Accept each proposal with the probability that the ones accepted before it leave, and factorise the accepted."""
    H = H.copy()
    lower = np.zeros_like(H)
    accepted: list[int] = []
    for i in range(len(H)):
        if len(accepted) == most:
            break
        if rng.random() * bounds[i] >= H[i, i]:
            continue
        accepted.append(i)
        column = H[:, i] / np.sqrt(H[i, i])
        lower[:, i] = column
        H -= np.outer(column, column)
    return accepted, lower[np.ix_(accepted, accepted)]


@dataclass(frozen=True, eq=False)
class RestrictedRidge:
    r"""The ridge regression of one party, restricted to landmarks.

    ``features`` are L, (n, r), and ``gram`` is the lower Cholesky factor of :math:`L^\top L + \lambda I`, (r, r).
    """

    features: Array
    gram: FloatArray
    alpha: float

    def first(self, rank: int) -> RestrictedRidge:
        """Return the ridge regression restricted to the first landmarks."""
        features = np.ascontiguousarray(self.features[:, :rank])
        return RestrictedRidge(features, self.gram[:rank, :rank], self.alpha)

    def moments(self, X: Array) -> FloatArray:
        r"""Return :math:`L^\top X`, shape (r, m), as a NumPy array in float64."""
        moments = self._zeros(self.features.shape[1], X.shape[1])
        add_wide_product(moments, self.features, matching(X, self.features))
        return to_numpy(cast(moments, np.float64))

    def weights(self, X: Array) -> FloatArray:
        r"""Return :math:`(L^\top L + \lambda I)^{-1} L^\top X`, shape (r, m), as a NumPy array."""
        solved: FloatArray = scipy.linalg.cho_solve((self.gram, True), self.moments(X), check_finite=False)
        return solved

    def smooth(self, X: Array) -> Array:
        r"""Return :math:`\tilde P X`, shape (n, m)."""
        return self.combined(self.weights(X))

    def combined(self, weights: FloatArray) -> Array:
        """Return combinations of the features, shape (n, m), in float64."""
        result = self._zeros(self.features.shape[0], weights.shape[1])
        add_tall_product(result, self.features, matching(like(weights, self.features), self.features))
        return cast(result, np.float64)

    def _zeros(self, n: int, m: int) -> Array:
        return matching(zeros((n, m), self.features), self.features)


def landmark_root(kernel: Kernel, landmarks: FloatArray) -> FloatArray:
    r"""Return the lower R with :math:`R R^\top = \kappa(S, S)`; LinAlgError if that is not semidefinite."""
    gram = kernel.gram(landmarks)
    # Landmarks are drawn so that none is a combination of the others; the jitter is for rounding.
    gram[np.diag_indices_from(gram)] += _JITTER * len(gram) * np.trace(gram) / len(gram)
    root: FloatArray = scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    return root


def nested_ridges(
    kernel: Kernel, A: Array, landmarks: FloatArray, root: FloatArray, alpha: float, n_first: int
) -> tuple[RestrictedRidge, FloatArray]:
    r"""Fit the ridge regression restricted to the first landmarks, and factorise for the one with all of them.

    Returns the ridge regression on the ``n_first`` landmarks, and the Cholesky factor of :math:`L^\top L + \lambda I`,
    shape (r, r), for all.  The root R is triangular, so that the first features are the same without the others.  They
    are kept in float32 unless ``alpha`` is small, and made in it if landmarks lie well apart; Gram matrices are added
    up in float64.
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
    r"""Return :math:`L^\top X` of shape (r, m), as a NumPy array, without keeping L; cheap beside `nested_ridges`."""
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
    """Return the data type that features are kept in."""
    return np.float32 if alpha >= _SINGLE_ABOVE else np.float64


def smoother_trace(gram: FloatArray, alpha: float) -> float:
    r"""Return :math:`\mathrm{tr} \tilde P`, exactly, from the Cholesky factor of :math:`L^\top L + \lambda I`."""
    inverse = scipy.linalg.solve_triangular(gram, np.eye(len(gram)), lower=True, check_finite=False)
    return float(len(gram) - alpha * np.sum(inverse**2))


def restricted_ridge_of_features(features: FloatArray, alpha: float) -> RestrictedRidge:
    """Fit the ridge regression to given features, those of a sample of the rows for example."""
    features = np.ascontiguousarray(features, feature_dtype(alpha))
    gram = np.zeros((features.shape[1], features.shape[1]), order="F")
    for start in range(0, len(features), _BLOCK):
        gram = add_gram(gram, features[start : start + _BLOCK])
    return RestrictedRidge(features, _factor(gram, alpha), alpha)


def _making(root: FloatArray, alpha: float) -> type[np.floating[Any]]:
    """Return the data type that features are made in."""
    # Close landmarks make R nearly singular, and its inverse would multiply the rounding of float32.
    return feature_dtype(alpha) if root.diagonal().min() >= _APART else np.float64


def _factor(gram: FloatArray, alpha: float) -> FloatArray:
    gram[np.diag_indices_from(gram)] += alpha
    factor: FloatArray = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    return factor
