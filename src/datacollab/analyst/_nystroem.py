r"""Nyström approximation: landmarks drawn by randomly pivoted Cholesky, and ridge regression restricted to them.

Functions are combinations of :math:`\kappa(\cdot, s)` at landmarks s in S.  With :math:`R R^\top = \kappa(S, S)` and
features :math:`L = \kappa(A, S) R^{-\top}`, the smoother is :math:`\tilde P = L (L^\top L + \lambda I)^{-1} L^\top`,
never above :math:`P = \Sigma (\Sigma + \lambda I)^{-1}`.  Each landmark is drawn with a probability proportional to
the part of each row that the earlier ones leave unexplained: close to the best approximation of the same rank.

Nearer to P is :math:`\hat P = I - \lambda (L L^\top + D + \lambda I)^{-1}` with the diagonal D of
:math:`\Sigma - L L^\top` (Snelson and Ghahramani 2006), which no function restricted to the landmarks attains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
_ROUNDING = 20
"""Unexplained share of a row's kernel value, in units of the features' rounding, that is taken for rounding."""
_VANISHING_SQUARE = 1e-12
"""Sum of squares of a column, relative to the largest, that is rounding."""
_INDEFINITE = 1e-6
"""Negative remainder on the diagonal, relative to its mean, that rounding does not explain."""
_SMALLEST_BLOCK = 16


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    r"""A partial factorisation :math:`\Sigma \approx F F^\top`.

    ``pivots`` are the landmarks' rows, in the order in which they were drawn.
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

    @property
    def unexplained_share(self) -> float:
        """Return the share of the kernel's trace that more landmarks could explain."""
        return 0.0 if self.exhausted else float(self.unexplained.sum()) / self.trace


def draw_pivots(kernel: Kernel, A: FloatArray, rank: int, rng: np.random.Generator) -> PivotedCholesky:
    """Draw ``rank`` landmarks, or fewer if more are of no use (Epperly, Tropp and Webber 2024, algorithm 2.1).

    Raise LinAlgError if the kernel is seen not to be positive semidefinite.
    """
    n = A.shape[0]
    rank = min(rank, n)
    pivots: list[int] = []
    # Transposed, so that a column lies in one piece.
    factor = np.empty((rank, n))
    unexplained = kernel.diagonal(A)
    trace = float(unexplained.sum())
    if unexplained.min() < 0:
        raise scipy.linalg.LinAlgError("not positive semidefinite")
    blocks = KernelBlocks(kernel, A)
    while len(pivots) < rank and unexplained.sum() > _NEGLIGIBLE * trace:
        filled = len(pivots)
        # Proposals come by the block, since products with one column at a time are slow; some are rejected below.
        block = max(_SMALLEST_BLOCK, rank // 10)
        proposed = rng.choice(n, size=block, p=unexplained / unexplained.sum())
        columns = blocks.block(proposed, slice(None))
        earlier = factor[:filled, proposed].T
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
        if unexplained.min() < -_INDEFINITE * trace / n:
            raise scipy.linalg.LinAlgError("not positive semidefinite")
        # Rounding must neither make a probability negative nor draw a landmark twice.
        np.maximum(unexplained, 0.0, out=unexplained)
        unexplained[chosen] = 0.0
        pivots.extend(chosen)
    return PivotedCholesky(np.asarray(pivots, dtype=np.intp), factor[: len(pivots)].T, unexplained, trace)


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
        # The proposal had the probability before this block; rejection leaves the one after the accepted rows.
        if rng.random() * bounds[i] >= H[i, i]:
            continue
        accepted.append(i)
        column = H[:, i] / np.sqrt(H[i, i])
        lower[:, i] = column
        H -= np.outer(column, column)
    return accepted, lower[np.ix_(accepted, accepted)]


@dataclass(frozen=True, eq=False)
class LandmarkSmoother:
    r"""The smoother :math:`\hat P` of one party, on features that are kept.

    With :math:`s = \lambda / (D + \lambda)`, at most 1, it is :math:`I - \mathrm{diag}(s) + \mathrm{diag}(\sqrt s) G
    (G^\top G + \lambda I)^{-1} G^\top \mathrm{diag}(\sqrt s)`.  ``features`` are :math:`G = \mathrm{diag}(\sqrt s) L`,
    (n, r), ``roots`` :math:`\sqrt s`, (n, 1), and ``gram`` the lower Cholesky factor of :math:`G^\top G + \lambda I`.
    """

    features: Array
    roots: Array
    gram: FloatArray
    alpha: float

    def apply(self, X: Array) -> Array:
        r"""Return :math:`\hat P X`, shape (n, m)."""
        G = self.features
        scaled = self.roots * X
        moments = matching(zeros((G.shape[1], X.shape[1]), G), G)
        add_wide_product(moments, G, matching(scaled, G))
        weights = scipy.linalg.cho_solve((self.gram, True), to_numpy(cast(moments, np.float64)), check_finite=False)
        smoothed = matching(zeros(X.shape, G), G)
        add_tall_product(smoothed, G, matching(like(weights, G), G))
        return X - self.roots * (scaled - cast(smoothed, np.float64))

    def feature_gram(self) -> FloatArray:
        r"""Return the lower Cholesky factor of :math:`L^\top L + \lambda I`, that of the smoother :math:`\tilde P`."""
        # The features are kept times the roots; the functions' smoother has them without.
        blocks = (
            self.features[rows, :] / matching(self.roots[rows, :], self.features) for rows in row_blocks(self.roots)
        )
        return _factorise(blocks, self.features.shape[1], self.alpha)


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

    They come in float32 unless ``alpha`` is small, or most rows are landmarks.
    """

    kernel: Kernel
    A: Array
    root: FloatArray
    alpha: float
    centres: Array
    making: type[np.floating[Any]]
    keeping: type[np.floating[Any]]

    @classmethod
    def prepare(cls, kernel: Kernel, A: Array, landmarks: FloatArray, alpha: float) -> Self:
        """Factorise the landmarks' kernel matrix; LinAlgError if that is not semidefinite."""
        root = landmark_root(kernel, landmarks)
        # Close landmarks make R nearly singular, and its inverse would multiply the rounding of float32.
        keeping = feature_dtype(alpha, len(root), A.shape[0])
        making = keeping if root.diagonal().min() >= _APART else np.float64
        return cls(kernel, A, root, alpha, like(landmarks, A), making, keeping)

    @property
    def rank(self) -> int:
        """Return the number of features."""
        return len(self.root)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their features, some rows at a time."""
        (trtri,) = scipy.linalg.get_lapack_funcs(("trtri",), (self.root,))
        inverse, _ = trtri(self.root, lower=1)
        whiten = like(inverse.T.astype(self.making, copy=False), self.A)
        for rows in row_blocks(self.A):
            yield rows, cast(times_upper(self._near(rows), whiten), self.keeping)

    def combine(self, coefficients: FloatArray) -> Array:
        """Evaluate the functions with these coefficients of the kernel at the landmarks: shape (n, m), in float64."""
        expansion = cast(like(np.ascontiguousarray(coefficients), self.A), self.making)
        result = zeros((self.A.shape[0], coefficients.shape[1]), self.A)
        for rows in row_blocks(self.A):
            result[rows, :] = cast(self._near(rows) @ expansion, np.float64)
        return result

    def expansion(self, weights: FloatArray) -> FloatArray:
        """Return coefficients of the kernel at the landmarks, of functions given by the weights of their features."""
        expansion: FloatArray = scipy.linalg.solve_triangular(
            self.root, weights, lower=True, trans=1, check_finite=False
        )
        return expansion

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


def fit_smoother(features: LandmarkFeatures) -> LandmarkSmoother:
    """Make the features of all rows, keep them, and factorise their Gram matrix."""
    A = features.A
    kept = zeros((A.shape[0], features.rank), A, features.keeping)
    roots = zeros((A.shape[0], 1), A)
    diagonal = features.kernel.diagonal(to_numpy(A))

    def make() -> Iterator[Array]:
        for rows, made in features.blocks():
            # The diagonal D of Sigma - L L', where a row that is explained leaves rounding alone.
            unexplained = diagonal[rows] - to_numpy(array_namespace(made).sum(made * made, axis=1))
            unexplained[unexplained < _ROUNDING * np.finfo(features.keeping).eps * diagonal[rows]] = 0.0
            roots[rows, :] = like(np.sqrt(features.alpha / (features.alpha + unexplained))[:, np.newaxis], A)
            kept[rows, :] = made * matching(roots[rows, :], made)
            yield kept[rows, :]

    gram = _factorise(make(), features.rank, features.alpha)
    return LandmarkSmoother(kept, roots, gram, features.alpha)


def feature_gram(features: LandmarkFeatures) -> FloatArray:
    r"""Return the lower Cholesky factor of :math:`L^\top L + \lambda I`, with features that are not kept."""
    return _factorise((made for _, made in features.blocks()), features.rank, features.alpha)


def _factorise(blocks: Iterator[Array], rank: int, alpha: float) -> FloatArray:
    """Add up Gram matrices in float64, and factorise; LinAlgError if rounding leaves them not positive definite."""
    gram: Array = None
    for block in blocks:
        if gram is None:
            # Transposed, so that LAPACK adds to it in place.
            gram = zeros((rank, rank), block).T
        gram = add_gram(gram, block)
    total = to_numpy(gram)
    total[np.diag_indices_from(total)] += alpha
    factor: FloatArray = scipy.linalg.cholesky(total, lower=True, overwrite_a=True, check_finite=False)
    return factor


def orthonormalise(Z: Array, *, center: bool) -> None:
    """Make columns orthonormal, and their sums zero if ``center``, in place; columns of rounding become zero."""
    if center:
        Z -= array_namespace(Z).mean(Z, axis=0)
    gram = to_numpy(Z.T @ Z)
    squares = gram.diagonal()
    kept = squares > _VANISHING_SQUARE * squares.max()
    # A column of rounding is replaced by a unit vector in the Gram matrix, which keeps that one definite.
    gram = np.where(np.outer(kept, kept), gram, np.eye(len(gram)))
    turn = like(inverse_cholesky(gram).T * kept[:, np.newaxis], Z)
    for rows in row_blocks(Z):
        Z[rows, :] = Z[rows, :] @ turn


def feature_dtype(alpha: float, rank: int, n: int) -> type[np.floating[Any]]:
    """Return the data type that ``rank`` features of n rows are kept in."""
    # With landmarks at most rows, float32 would round off more than the approximation does.
    return np.float32 if alpha >= _SINGLE_ABOVE and 2 * rank <= n else np.float64


def smoother_trace(gram: FloatArray, alpha: float) -> float:
    r"""Return :math:`\mathrm{tr} \tilde P`, exactly, from the Cholesky factor of :math:`L^\top L + \lambda I`."""
    inverse = scipy.linalg.solve_triangular(gram, np.eye(len(gram)), lower=True, check_finite=False)
    return float(len(gram) - alpha * np.sum(inverse**2))
