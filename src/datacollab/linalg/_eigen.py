r"""Eigenvectors of symmetric matrices, and orthonormal bases of column spaces.

Symmetric n x n matrices are Fortran-ordered and only their lower triangle is read.  The largest eigenpairs of an
operator come from a block Krylov method with Rayleigh-Ritz, in mixed precision.  The bulk of the eigenvalues of KTI's
:math:`\sum_k P_k` lies near zero, as such a method likes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsymv

from .._validation import Array, FloatArray, array_namespace, to_numpy
from ._array_api import column_norms, hstack, like, slices, zeros

logger = logging.getLogger(__name__)

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

    In place of the paper's Z = TY, M is projected and the constant direction shifted above the spectrum.
    """
    n = M.shape[0]
    centre_lower(M)
    M += 2.0 * _bound_of_lower(M) / n
    eigenvalues, Z = smallest_eigenpairs(M, k)
    return eigenvalues, Z - Z.mean(axis=0)


def _bound_of_lower(M: FloatArray) -> float:
    """Return the largest absolute row sum of ``M``, or a little more; no eigenvalue exceeds it."""
    sums = np.zeros(M.shape[0])
    for columns in slices(M.shape[0], _BLOCK):
        panel = np.abs(M[columns.start :, columns])
        width = panel.shape[1]
        panel[:width] = np.tril(panel[:width])
        sums[columns] += panel.sum(axis=0)
        sums[columns.start :] += panel.sum(axis=1)
    return float(sums.max())


def largest_of_pencil(C: FloatArray, A: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    r"""Solve :math:`C u = \nu A u` for the ``k`` largest :math:`\nu`, descending, with :math:`U^\top A U = I`.

    Overwrites both.  For a positive definite A and a positive semidefinite C this is eq. kernel-graph-gep with
    :math:`\nu = 1/\gamma`.  A well conditioned A keeps it accurate although a graph Laplacian C is always singular.
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
    """A matrix A of shape (n, d) written as ``basis @ rows``, with an orthonormal basis of its column space.

    The basis has shape (n, rank), and the rows (rank, d).
    """

    basis: FloatArray
    rows: FloatArray

    @property
    def rank(self) -> int:
        """Return the numerical rank of A."""
        return int(self.basis.shape[1])

    def coefficients(self, coordinates: FloatArray) -> FloatArray:
        r"""Return the minimum-norm G, shape (d, m), with ``A @ G = basis @ coordinates``.

        With ``coordinates = basis.T @ Z`` this is :math:`A^\dagger Z`.
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

    Columns are brought to unit length before the rank is judged, so that other units are not mistaken for rounding
    error. Columns and singular values up to ``max(n, d) * eps`` times the largest count as zero.
    """
    unit = np.abs(A).max()
    # Divided by the largest entry, so that no square overflows.
    lengths = np.linalg.norm(A / unit, axis=0)
    negligible = max(A.shape) * np.finfo(np.float64).eps
    lengths[lengths <= negligible * lengths.max()] = 0.0
    kept = lengths > 0
    scaled = np.where(kept, A / unit / np.where(kept, lengths, 1.0), 0.0)
    U, singular_values, V = leading_left_singular(scaled, negligible)
    return ColumnSpace(basis=U, rows=(V * singular_values).T * (lengths * unit))


def centre_columns(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns of ``A`` less their means, and the means; constant columns become exactly zero.

    Otherwise `column_space`, which brings columns to unit length, would take the rounding error for a direction.
    """
    means = A.mean(axis=0)
    centred = A - means
    rounding = len(A) * np.finfo(np.float64).eps * np.abs(A).max(axis=0)
    centred[:, np.abs(centred).max(axis=0) <= rounding] = 0.0
    return centred, means


def leading_left_singular(W: FloatArray, negligible: float | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return left singular vectors, singular values and right ones of ``W``, shape (n, m), cut at its rank.

    Singular values up to ``negligible`` times the largest are none; by default that is ``max(n, m) * eps``.
    """
    if negligible is None:
        negligible = max(W.shape) * np.finfo(np.float64).eps
    try:
        U, singular_values, Vt = scipy.linalg.svd(W, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        # The quick driver fails to converge on some matrices of low rank; the other is slower, and as exact.
        logger.info("The SVD of a matrix of shape %s did not converge with gesdd; gesvd takes over.", W.shape)
        U, singular_values, Vt = scipy.linalg.svd(W, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    rank = int((singular_values > negligible * singular_values[0]).sum())
    return U[:, :rank], singular_values[:rank], Vt[:rank].T


_TALL = 8192
"""Rows of matrices side by side that are copied at a time."""


def leading_singular_of_blocks(blocks: Sequence[FloatArray], k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the singular triplets of matrices side by side, ``k`` left vectors at most; the whole is never formed.

    Singular values and right vectors are those of R in a QR factorisation, which some rows at a time are added to.
    """
    n = len(blocks[0])
    m = sum(block.shape[1] for block in blocks)
    parts = slices(n, _TALL)
    R = np.empty((0, m))
    for rows in parts:
        together = np.vstack([R, np.hstack([block[rows] for block in blocks])])
        R = np.asarray(np.linalg.qr(together, mode="r"))
    _, singular_values, V = leading_left_singular(R, max(n, m) * np.finfo(np.float64).eps)
    U = np.empty((n, min(k, len(singular_values))))
    weights = V[:, :k] / singular_values[:k]
    for rows in parts:
        U[rows] = np.hstack([block[rows] for block in blocks]) @ weights
    # Those of small singular values are orthogonal but for their relative rounding.
    U, turns = np.linalg.qr(U)
    # QR may turn a column around.
    return U * np.where(turns.diagonal() < 0, -1.0, 1.0), singular_values, V


def metric_scaling(common: FloatArray, representations: Sequence[FloatArray]) -> tuple[FloatArray, float]:
    r"""Return a matrix W: distances between rows of ``common @ W`` are the mean ones between the representations' rows.

    Squared distances between rows of :math:`C = [\tilde A_1 - \bar a_1, \ldots, \tilde A_K - \bar a_K] / \sqrt K` are
    the means over the representations.  W is the least-squares map from the centred common space, ``common`` of shape
    (n, m), to C, in its principal axes by descending length: classical scaling (Gower 1966) of these distances,
    confined to linear functions of the common space.  The second number returned is the part of the sum of squares of C
    that the common space keeps; at 1 all distances are kept.
    """
    space = column_space(centre_columns(common)[0])
    C = np.hstack([centre_columns(A)[0] for A in representations]) / np.sqrt(len(representations))
    U, lengths, _ = scipy.linalg.svd(space.basis.T @ C, full_matrices=False, check_finite=False)
    # Directions that are rounding error only; one is kept in any case, for a map has to have a column.
    seen = lengths > max(C.shape) * np.finfo(np.float64).eps * lengths[0]
    seen[0] = True
    coordinates = U[:, seen] * lengths[seen]
    coordinates *= fix_signs(space.basis @ coordinates)
    return space.coefficients(coordinates), float(np.sum(lengths**2) / np.sum(C**2))


_GUARD = 4
"""Vectors carried beyond those wanted, at least; the first of them tells the eigengap."""
_NARROWEST = 16
"""Columns at a time; fewer would save the operator little, since it reads as much for one as for these."""
_MAX_COLUMNS = 512
_ROWS = 256
_MAX_STEPS = 300
_FEWEST_STEPS = 2
"""Blocks added to the start at least: a good start may lack the very vector that tells the eigengap."""
_MAX_PASSES = 4
_DEPENDENT = 1e-10
"""Length that a unit vector must keep outside the span of the basis to count as a new direction."""
_FLOAT32_NOISE = 1e-6
"""Relative error granted to images in single precision until it is measured."""
_MAX_BLOCKS = 12
"""Blocks that a basis has room for if that is more; a new start from two of them costs steps, and an exact pass."""
_SWITCH = 1e-4
"""Residual, relative to the eigengap, from which float32 images do not help any more."""

Operator = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class LeadingEigenpairs:
    """The largest eigenvalues of a symmetric operator, and a bound of their error.

    ``values`` (k,) are descending, ``vectors`` (n, k) orthonormal, and ``following`` (n, m) approximate eigenvectors
    beyond these.  ``residual`` is the Frobenius norm of ``operator(vectors) - vectors * values``, ``gap`` the last of
    the values less the next one, as found, and ``certain_gap`` the same less the residual of the next one, at least 0.
    ``columns`` counts the right-hand sides that the operator was applied to.  With an exact operator, ``vectors`` are
    the last vectors that it was applied to times ``anchored``, plus ``correction``.
    """

    values: FloatArray
    vectors: Array
    residual: float
    gap: float
    certain_gap: float
    following: Array
    columns: int
    converged: bool
    anchored: Array | None = None
    correction: Array | None = None

    @property
    def angle(self) -> float:
        """Return the residual over the eigengap, which bounds the sine of the angle but for the operator's rounding."""
        # Davis and Kahan's theorem; without a gap any angle is possible.
        return min(1.0, self.residual / self.certain_gap) if self.certain_gap > 0 else 1.0


@dataclass(frozen=True)
class StopRule:
    """When a search for eigenvectors ends.

    Attributes
    ----------
    tol : float
        Largest residual, over the eigengap, with which it ends: a bound of the sine of the angle.
    small_gap : float
        Eigengap, relative to the largest eigenvalue, that is taken in place of a smaller one.
    max_columns : int or None
        Right-hand sides after which it ends in any case.
    """

    tol: float
    small_gap: float = 1e-3
    max_columns: int | None = None


class _Basis:
    """Orthonormal columns, their images, and the operator restricted to them, which is small and NumPy's."""

    def __init__(self, start: Array, capacity: int) -> None:
        self.capacity = capacity
        # Transposed, so that a column lies in one piece.
        self._columns = zeros((capacity, start.shape[0]), start)
        self._images = zeros((capacity, start.shape[0]), start)
        self._restricted = np.empty((capacity, capacity))
        self.size = 0

    @property
    def columns(self) -> Array:
        return self._columns[: self.size, :].T

    @property
    def images(self) -> Array:
        return self._images[: self.size, :].T

    def add(self, V: Array, images: Array) -> None:
        old = slice(0, self.size)
        new = slice(self.size, self.size + V.shape[1])
        # The cross block comes from the older images, which are the more accurate ones after an exact pass.
        cross = to_numpy(self._images[old, :] @ V)
        self._restricted[old, new] = cross
        self._restricted[new, old] = cross.T
        own = to_numpy(V.T @ images)
        self._restricted[new, new] = (own + own.T) / 2
        self._columns[new, :] = V.T
        self._images[new, :] = images.T
        self.size += V.shape[1]

    def ritz(self) -> tuple[FloatArray, FloatArray]:
        """Return all Ritz values, descending, and their coordinates in the basis."""
        values, coordinates = np.linalg.eigh(self._restricted[: self.size, : self.size])
        return values[::-1], coordinates[:, ::-1]

    def new_directions(self, V: Array, project: Operator) -> Array:
        """Return orthonormal columns that span the part of ``V`` outside the basis."""
        lengths = column_norms(V)
        V = V / like(np.where(lengths > 0, lengths, 1.0), V)
        # Twice is enough (Kahan): the first pass leaves the rounding of what it takes off.
        for _ in range(2):
            V = project(V - self.columns @ (self.columns.T @ V))
            V, R = array_namespace(V).linalg.qr(V)
            # A column in the span of the others is no direction; rounding alone is left of it.
            V = _take_columns(V, np.abs(np.diag(to_numpy(R))) > _DEPENDENT)
        return V

    def restart(self, coordinates: FloatArray, values: FloatArray) -> None:
        """Keep the Ritz vectors with these coordinates and values alone."""
        m = coordinates.shape[1]
        factors = like(np.ascontiguousarray(coordinates.T), self._columns)
        # In place but for some rows at a time.
        for rows in slices(self._columns.shape[1], _ROWS):
            self._columns[:m, rows] = factors @ self._columns[: self.size, rows]
            self._images[:m, rows] = factors @ self._images[: self.size, rows]
        self._restricted[:m, :m] = np.diag(values)
        self.size = m

    def correct(self, Z: Array, images: Array) -> None:
        """Replace the leading Ritz vectors by ``Z``, the same but for rounding, and their images by better ones."""
        k = Z.shape[1]
        size = self.size
        self.size = 0
        self.add(Z, images)
        cross = to_numpy(self._columns[k:size, :] @ images)
        self._restricted[k:size, :k] = cross
        self._restricted[:k, k:size] = cross.T
        self.size = size


def leading_eigenpairs(
    operator: Operator,
    start: Array,
    k: int,
    stop: StopRule,
    *,
    exact: Operator | None = None,
    single: bool = False,
    project: Operator | None = None,
    n_following: int = 0,
) -> LeadingEigenpairs:
    """Find the ``k`` largest eigenpairs of a symmetric operator on arrays of shape (n, m).

    It starts from approximate eigenvectors, shape (n, m), with random columns if these are few.  Beyond the k it
    returns ``n_following`` approximate eigenvectors, if there are so many.

    ``exact`` is the same operator without the rounding of single precision, applied to k columns, mostly once.  The
    residual is formed from its images and approximate images of the small correction to them.  ``single`` says that
    images are rounded to single precision, with nothing to correct them.  ``project`` projects onto the subspace in
    which to search, and commutes with the operator.
    """
    n = start.shape[0]
    project = project or (lambda X: X)
    is_rounded = single or exact is not None
    block = _block(n, k)
    basis = _Basis(start, basis_capacity(n, k))
    V = _full_start(basis, start, block, project)
    block = min(block, V.shape[1])
    applied = 0
    passes = 0
    rounding = _FLOAT32_NOISE
    for step in range(_MAX_STEPS):
        basis.add(V, project(operator(V)))
        applied += V.shape[1]
        while True:
            values, coordinates = basis.ritz()
            scale = float(max(abs(values[0]), abs(values[-1])))
            factors = like(coordinates[:, :block], V)
            ahead = basis.columns @ factors
            images = basis.images @ factors
            residuals = images - ahead * like(values[:block], ahead)
            norms = column_norms(residuals)
            gap, certain_gap = _gaps(values, norms, k)
            unit = max(certain_gap, stop.small_gap * scale)
            seen = float(np.linalg.norm(norms[:k]))
            noise = rounding * scale
            # Rounded images still help where the residual is well above their noise, and at first above the switch.
            enough = max(3 * noise, _SWITCH * unit)
            if passes:
                # Once there are exact columns, only the part of single-precision images outside them counts.
                noise *= float(np.linalg.norm(coordinates[k:, :k]))
                enough = 3 * noise
            if exact is None or passes == _MAX_PASSES or seen > enough:
                break
            if passes and seen + noise <= stop.tol * unit:
                break
            # Orthonormal but for rounding.
            Z, R = array_namespace(ahead).linalg.qr(ahead[:, :k])
            Z = Z * like(np.sign(np.diag(to_numpy(R))), Z)
            corrected = project(exact(Z))
            if not passes:
                # The first exact images measure the rounding of the others.
                error = np.linalg.norm(column_norms(corrected - images[:, :k])) / (scale * np.sqrt(k))
                rounding = max(rounding, float(error))
            basis.restart(coordinates, values)
            basis.correct(Z, corrected)
            passes += 1
        residual = seen
        if is_rounded:
            residual += noise
        # Below the rounding of its images the operator says nothing more.
        silent = is_rounded and seen <= noise and (exact is None or passes == _MAX_PASSES)
        if (residual <= stop.tol * unit and step >= _FEWEST_STEPS) or basis.size >= n or silent:
            break
        if stop.max_columns is not None and applied >= stop.max_columns:
            break
        # Residuals of eigenvectors that are found add nothing to the basis.
        wanted = norms > 1e-3 * stop.tol * unit
        if not wanted.any():
            break
        if basis.size + wanted.sum() > basis.capacity:
            keep = min(2 * block, basis.size)
            basis.restart(coordinates[:, :keep], values[:keep])
            coordinates = np.eye(keep)
            passes = 0
        V = basis.new_directions(_take_columns(residuals, wanted), project)
        if V.shape[1] == 0:
            break
    Y = like(coordinates[:, :block], ahead)
    return LeadingEigenpairs(
        values=values[:k].copy(),
        vectors=basis.columns @ Y[:, :k],
        residual=residual,
        gap=gap,
        certain_gap=certain_gap,
        following=basis.columns @ like(coordinates[:, k : k + n_following], ahead),
        columns=applied,
        converged=residual <= stop.tol * unit,
        anchored=Y[:k, :k] if passes else None,
        correction=basis.columns[:, k:] @ Y[k:, :k] if passes else None,
    )


def _gaps(values: FloatArray, norms: FloatArray, k: int) -> tuple[float, float]:
    """Return the eigengap, 0 if all directions are taken, and the part of it that is certain."""
    if len(norms) <= k:
        return 0.0, 0.0
    gap = float(values[k - 1] - values[k])
    # An unwanted eigenvalue may lie above its estimate by as much as the residual, hardly by more.
    return gap, max(0.0, gap - float(norms[k]))


def basis_capacity(n: int, k: int) -> int:
    """Return how many columns of n rows, and images of them, a search for k eigenvectors may hold."""
    return min(n, max(_MAX_COLUMNS, _MAX_BLOCKS * _block(n, k)))


def _block(n: int, k: int) -> int:
    return min(n, max(k + _GUARD, _NARROWEST))


def _full_start(basis: _Basis, start: Array, block: int, project: Operator) -> Array:
    """Return orthonormal columns to start from, with random ones if those given say too little."""
    V = basis.new_directions(start, project)
    missing = block - V.shape[1]
    if missing > 0:
        extra = np.random.default_rng(0).normal(size=(start.shape[0], missing))
        V = basis.new_directions(hstack([V, like(extra, V)]), project)
    return V


def _take_columns(X: Array, mask: NDArray[np.bool_]) -> Array:
    """Return the columns that a mask marks."""
    return array_namespace(X).take(X, like(np.flatnonzero(mask), X), axis=1)
