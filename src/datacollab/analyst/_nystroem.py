r"""Nyström approximation: landmarks drawn by randomly pivoted Cholesky, and ridge regression restricted to them.

Functions are combinations of :math:`\kappa(\cdot, s)` at landmarks s in S.  With :math:`R R^\top = \kappa(S, S)` and
features :math:`L = \kappa(A, S) R^{-\top}`, the smoother is :math:`\tilde P = L (L^\top L + \lambda I)^{-1} L^\top`,
never above :math:`P = \Sigma (\Sigma + \lambda I)^{-1}`.  Each landmark is drawn with a probability proportional to
what the earlier ones leave unexplained of each row: close to the best approximation of the same rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.utils import gen_batches

from .._validation import Array, FloatArray, array_namespace, to_numpy
from ..linalg import (
    Kernel,
    KernelBlocks,
    add_gram,
    add_tall_product,
    add_wide_product,
    cast,
    hstack,
    inverse_cholesky,
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
    return PivotedCholesky(np.empty(0, dtype=np.intp), np.empty((A.shape[0], 0)), diagonal, float(diagonal.sum()))


def extend_pivots(
    partial: PivotedCholesky, kernel: Kernel, A: FloatArray, rank: int, rng: np.random.Generator
) -> PivotedCholesky:
    """Draw landmarks until there are ``rank``, or no more are of use (Epperly, Tropp and Webber 2024, algorithm 2.1).

    Raise LinAlgError if the kernel is seen not to be positive semidefinite.
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
    return PivotedCholesky(np.asarray(pivots, dtype=np.intp), factor[: len(pivots)].T, unexplained, partial.trace)


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
        return RestrictedRidge(np.ascontiguousarray(self.features[:, :rank]), self.gram[:rank, :rank], self.alpha)

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


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    r"""One party's features :math:`L = \kappa(A, S) R^{-\top}`, made some anchor rows at a time and never kept.

    They come in float32 unless ``alpha`` is small.  The root R is triangular, so that the first features are the same
    without the others.
    """

    kernel: Kernel
    A: Array
    root: FloatArray
    alpha: float
    centres: Array
    whiten: Array
    making: type[np.floating[Any]]

    @classmethod
    def prepare(
        cls, kernel: Kernel, A: Array, landmarks: FloatArray, alpha: float, root: FloatArray | None = None
    ) -> Self:
        """Factorise the landmarks' kernel matrix; LinAlgError if that is not semidefinite."""
        root = landmark_root(kernel, landmarks) if root is None else root
        inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
        # Close landmarks make R nearly singular, and its inverse would multiply the rounding of float32.
        making = feature_dtype(alpha) if root.diagonal().min() >= _APART else np.float64
        whiten = like(inverse.T.astype(making, copy=False), A)
        return cls(kernel, A, root, alpha, like(landmarks, A), whiten, making)

    @property
    def rank(self) -> int:
        """Return the number of features."""
        return len(self.root)

    def first(self, rank: int) -> LandmarkFeatures:
        """Return the features of the first landmarks."""
        whiten = self.whiten[:rank, :rank]
        whiten = np.ascontiguousarray(whiten) if isinstance(whiten, np.ndarray) else whiten
        return replace(self, root=self.root[:rank, :rank], centres=self.centres[:rank, :], whiten=whiten)

    def of(self, rows: slice) -> Array:
        """Return the features of some rows."""
        return cast(times_upper(self._near(rows), self.whiten), feature_dtype(self.alpha))

    def moments(self, X: Array) -> FloatArray:
        r"""Return :math:`L^\top X`, shape (r, m), as a NumPy array."""
        total = zeros((self.rank, X.shape[1]), self.A)
        for rows in row_blocks(self.A):
            # Added up in float32, they would lose digits that the root's inverse multiplies.
            near = cast(self._near(rows), np.float64)
            add_wide_product(total, near, matching(X[rows, :], near))
        moments: FloatArray = scipy.linalg.solve_triangular(self.root, to_numpy(total), lower=True, check_finite=False)
        return moments

    def _near(self, rows: slice) -> Array:
        return self.kernel.between(self.A[rows, :], self.centres, self.making)


def row_blocks(A: Array) -> Iterator[slice]:
    """Yield the rows whose features are made at a time."""
    yield from gen_batches(A.shape[0], _BLOCK)


def nested_ridges(features: LandmarkFeatures, n_first: int) -> tuple[RestrictedRidge, FloatArray]:
    r"""Fit the ridge regression restricted to the first landmarks, and factorise for the one with all of them.

    Returns the ridge regression on the ``n_first`` landmarks, whose features are kept, and the Cholesky factor of
    :math:`L^\top L + \lambda I`, shape (r, r), for all.  Gram matrices are added up in float64.
    """
    A, rank = features.A, features.rank
    kept = zeros((A.shape[0], min(n_first, rank)), A, feature_dtype(features.alpha))
    gram = zeros((rank, rank), A).T
    for rows in row_blocks(A):
        made, gram = _added_up(features, rows, gram)
        kept[rows, :] = made[:, :n_first]
    factor = _factor(to_numpy(gram), features.alpha)
    return RestrictedRidge(kept, factor[:n_first, :n_first], features.alpha), factor


def smoothed_span(
    features: Sequence[LandmarkFeatures], each: Callable[..., Iterator[Any]], n_first: int, k: int, *, center: bool
) -> tuple[FloatArray, Array, list[FloatArray]]:
    r"""Find the largest eigenpairs of :math:`\sum_k \tilde P_k`, with :math:`\tilde P_k` of the first landmarks.

    With the Cholesky factors :math:`C_k` of :math:`L_k^\top L_k + \lambda I` that sum is :math:`F F^\top`, :math:`F =
    [L_1 C_1^{-\top}, \ldots, L_K C_K^{-\top}]`.  Its eigenvectors are :math:`F V \Theta^{-1/2}`, V those of the Gram
    matrix :math:`F^\top F`.  Features are made twice, some rows at a time, by `Engine.each`.

    Returned are k + 1 eigenvalues, descending, or as many as there are features of all parties together; the last tells
    the eigengap.  Then k orthonormal columns, which sum to zero if ``center``, and are zero without a direction in the
    features; and :math:`C_k` of all landmarks of each party.  Raise LinAlgError if rounding leaves a Gram matrix that
    is not positive definite.
    """
    A = features[0].A
    grams = [zeros((party.rank, party.rank), A).T for party in features]
    edges = [0, *accumulate(min(n_first, party.rank) for party in features)]
    cross, sums = zeros((edges[-1], edges[-1]), A).T, np.zeros(edges[-1])
    for rows in row_blocks(A):
        first = []
        made = each(_added_up, [(party, rows, gram) for party, gram in zip(features, grams, strict=True)])
        for index, (block, gram) in enumerate(made):
            grams[index] = gram
            first.append(block[:, :n_first])
        together = hstack(first)
        cross = add_gram(cross, together)
        if center:
            sums += to_numpy(array_namespace(together).sum(cast(together, np.float64), axis=0))
    factors = [_factor(to_numpy(gram), party.alpha) for party, gram in zip(features, grams, strict=True)]
    del grams
    small = [factor[:n_first, :n_first] for factor in factors]
    own = [slice(start, stop) for start, stop in pairwise(edges)]
    cross = to_numpy(cross)
    if center:
        cross -= np.outer(sums, sums) / A.shape[0]
    values, V = _leading_of_smoothers(cross, small, own, min(k + 1, len(cross)))
    del cross
    vanishing = 20 * float(np.finfo(feature_dtype(features[0].alpha)).eps) * values[0]
    V = V[:, :k] / np.sqrt(np.where(values[:k] > vanishing, values[:k], np.inf))
    arguments = [
        (party.first(n_first), scipy.linalg.solve_triangular(factor, V[part], lower=True, trans=1, check_finite=False))
        for party, factor, part in zip(features, small, own, strict=True)
    ]
    Z = zeros((A.shape[0], k), A)
    for rows in row_blocks(A):
        for part in each(_combined, [(party, rows, weights) for party, weights in arguments]):
            Z[rows, : part.shape[1]] += part
    _orthonormalise(Z, center=center)
    return values, Z, factors


def _added_up(features: LandmarkFeatures, rows: slice, gram: Array) -> tuple[Array, Array]:
    """Return the features of some rows, and the Gram matrix with theirs, which may overwrite the one given."""
    made = features.of(rows)
    return made, add_gram(gram, made)


def _combined(features: LandmarkFeatures, rows: slice, weights: FloatArray) -> Array:
    made = features.of(rows)
    return cast(made @ matching(like(weights, made), made), np.float64)


def _leading_of_smoothers(
    cross: FloatArray, factors: list[FloatArray], own: list[slice], m: int
) -> tuple[FloatArray, FloatArray]:
    r"""Return the ``m`` largest eigenpairs of :math:`F^\top F`, given the lower triangle of all features' Gram matrix.

    Overwrites it, a party's rows and columns at a time.
    """
    for i, (factor, rows) in enumerate(zip(factors, own, strict=True)):
        diagonal = np.tril(cross[rows, rows])
        cross[rows, rows] = diagonal + np.tril(diagonal, -1).T
        for other, columns in zip(factors[: i + 1], own[: i + 1], strict=True):
            half = scipy.linalg.solve_triangular(factor, cross[rows, columns], lower=True, check_finite=False)
            cross[rows, columns] = scipy.linalg.solve_triangular(other, half.T, lower=True, check_finite=False).T
    n = len(cross)
    values, V = scipy.linalg.eigh(
        cross, lower=True, subset_by_index=(n - m, n - 1), driver="evr", overwrite_a=True, check_finite=False
    )
    return values[::-1], V[:, ::-1]


def _orthonormalise(Z: Array, *, center: bool) -> None:
    """Take what rounding in float32 left off nearly orthonormal columns, in place; zero columns stay."""
    if center:
        Z -= array_namespace(Z).mean(Z, axis=0)
    gram = to_numpy(Z.T @ Z)
    np.fill_diagonal(gram, np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
    turn = like(inverse_cholesky(gram).T, Z)
    for rows in row_blocks(Z):
        Z[rows, :] = Z[rows, :] @ turn


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
    for rows in row_blocks(features):
        gram = add_gram(gram, features[rows])
    return RestrictedRidge(features, _factor(gram, alpha), alpha)


def _factor(gram: FloatArray, alpha: float) -> FloatArray:
    gram[np.diag_indices_from(gram)] += alpha
    factor: FloatArray = scipy.linalg.cholesky(gram, lower=True, check_finite=False)
    return factor
