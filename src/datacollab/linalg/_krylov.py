r"""Leading eigenvectors of a symmetric operator by a block Krylov method with Rayleigh-Ritz, in mixed precision.

KTI looks for the largest eigenvalues of :math:`\sum_k P_k`, whose bulk lies near zero, as Krylov subspaces like it;
the smallest of :math:`M_\lambda = K I - \sum_k P_k` have the same vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import Array, FloatArray, array_namespace, to_numpy
from ._array_api import column_norms, hstack, like, zeros

__all__ = ["LeadingEigenpairs", "basis_capacity", "leading_eigenpairs"]

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

    Attributes
    ----------
    values : ndarray of shape (k,)
        Descending.
    vectors : ndarray of shape (n, k)
        Orthonormal.
    residual : float
        Frobenius norm of ``operator(vectors) - vectors * values``.
    gap : float
        The last of the k values less the next one, as found.
    certain_gap : float
        The same less the residual of the next one; at least 0.
    following : ndarray of shape (n, m)
        Approximate eigenvectors beyond the k, in the order of their eigenvalues.
    columns : int
        Right-hand sides the operator was applied to.
    converged : bool
        Whether the tolerance was reached.
    anchored : ndarray of shape (k, k) or None
    correction : ndarray of shape (n, k) or None
        With an exact operator: ``vectors`` are the last vectors it was applied to times ``anchored``, plus this.
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
        """Bound the sine of the largest angle to the exact subspace: residual over eigengap (Davis and Kahan)."""
        return min(1.0, self.residual / self.certain_gap) if self.certain_gap > 0 else 1.0


class _Basis:
    """Orthonormal columns, their images, and the operator restricted to them, which is small and NumPy's."""

    def __init__(self, start: Array, capacity: int) -> None:
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

    def room_for(self, m: int) -> bool:
        return bool(self.size + m <= self._columns.shape[0])

    def add(self, V: Array, images: Array) -> None:
        old, new = slice(0, self.size), slice(self.size, self.size + V.shape[1])
        # The cross block comes from the older images, which are the more accurate ones after an exact pass.
        cross = to_numpy(self._images[old, :] @ V)
        self._restricted[old, new] = cross
        self._restricted[new, old] = cross.T
        own = to_numpy(V.T @ images)
        self._restricted[new, new] = (own + own.T) / 2
        self._columns[new, :], self._images[new, :] = V.T, images.T
        self.size += V.shape[1]

    def ritz(self) -> tuple[FloatArray, FloatArray]:
        """Return all Ritz values, descending, and their coordinates in the basis."""
        values, coordinates = np.linalg.eigh(self._restricted[: self.size, : self.size])
        return values[::-1], coordinates[:, ::-1]

    def new_directions(self, V: Array, project: Operator) -> Array:
        """Return orthonormal columns that span the part of ``V`` outside the basis."""
        lengths = column_norms(V)
        V = V / like(np.where(lengths > 0, lengths, 1.0), V)
        for _ in range(2):
            V = project(V - self.columns @ (self.columns.T @ V))
            V, R = array_namespace(V).linalg.qr(V)
            # What rounding has left of a column in the span of the others is no direction.
            V = _chosen(V, np.abs(np.diag(to_numpy(R))) > _DEPENDENT)
        return V

    def combined(self, coordinates: FloatArray) -> tuple[Array, Array]:
        """Return combinations of the columns, and their images."""
        factors = like(coordinates, self._columns)
        return self.columns @ factors, self.images @ factors

    def restart(self, coordinates: FloatArray, values: FloatArray) -> None:
        """Keep the Ritz vectors with these coordinates and values alone."""
        m = coordinates.shape[1]
        factors = like(np.ascontiguousarray(coordinates.T), self._columns)
        # In place but for some rows at a time.
        for start in range(0, self._columns.shape[1], _ROWS):
            rows = slice(start, min(start + _ROWS, self._columns.shape[1]))
            self._columns[:m, rows] = factors @ self._columns[: self.size, rows]
            self._images[:m, rows] = factors @ self._images[: self.size, rows]
        self._restricted[:m, :m] = np.diag(values)
        self.size = m

    def correct(self, Z: Array, images: Array) -> None:
        """Replace the leading Ritz vectors by ``Z``, the same but for rounding, and their images by better ones."""
        k, size = Z.shape[1], self.size
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
    *,
    tol: float,
    exact: Operator | None = None,
    single: bool = False,
    small_gap: float = 1e-3,
    project: Operator | None = None,
    n_following: int = 0,
    max_columns: int | None = None,
) -> LeadingEigenpairs:
    """Find the ``k`` largest eigenpairs of a symmetric operator.

    Parameters
    ----------
    operator : callable
        Takes and returns arrays of shape (n, m), of the library of `start` and on its device.
    start : array of shape (n, m)
        Approximate eigenvectors, or random columns.  Random ones are added if these are few.
    k : int
    tol : float
        Stop if the residual is at most ``tol`` times the eigengap, or times ``small_gap`` times the largest
        eigenvalue if that is more.  This bounds the sine of the angle to the exact subspace.
    exact : callable, optional
        The same operator without the rounding errors of single precision.  It is applied to k columns, mostly once.
    single : bool, default=False
        Whether the images are rounded to single precision and there is no `exact` to correct them.
    small_gap : float, default=1e-3
        Eigengap, relative to the largest eigenvalue, that is not resolved any better.
    project : callable, optional
        Projection onto the subspace in which to search; commutes with the operator.
    n_following : int, default=0
        Approximate eigenvectors to return beyond the k, if there are so many.
    max_columns : int, optional
        Right-hand sides after which to stop in any case.

    Notes
    -----
    With `exact`, the residual is formed from exact images of the k vectors and approximate images of the small
    correction to them, so that the rounding of the operator enters multiplied by the size of the correction.
    """
    n = start.shape[0]
    project = project or (lambda X: X)
    rounded = single or exact is not None
    block = _block(n, k)
    basis = _Basis(start, basis_capacity(n, k))
    V = _full_start(basis, start, block, project)
    block = min(block, V.shape[1])
    applied, passes, rounding = 0, 0, _FLOAT32_NOISE
    for step in range(_MAX_STEPS):
        basis.add(V, project(operator(V)))
        applied += V.shape[1]
        while True:
            values, coordinates = basis.ritz()
            scale = float(max(abs(values[0]), abs(values[-1])))
            ahead, images = basis.combined(coordinates[:, :block])
            residuals = images - ahead * like(values[:block], ahead)
            norms = column_norms(residuals)
            # An unwanted eigenvalue may lie above its estimate by as much as the residual, hardly by more.
            gap = float(values[k - 1] - values[k]) if len(norms) > k else 0.0
            certain_gap = max(0.0, gap - float(norms[k])) if len(norms) > k else 0.0
            unit = max(certain_gap, small_gap * scale)
            seen = float(np.linalg.norm(norms[:k]))
            # Once there are exact columns, only the part of single-precision images outside them counts.
            noise = rounding * scale * (float(np.linalg.norm(coordinates[k:, :k])) if passes else 1.0)
            if exact is None or passes == _MAX_PASSES or seen > max(3 * noise, _SWITCH * unit if not passes else 0.0):
                break
            if passes and seen + noise <= tol * unit:
                break
            Z = _orthonormal(ahead[:, :k])
            corrected = project(exact(Z))
            if not passes:
                error = np.linalg.norm(column_norms(corrected - images[:, :k])) / (scale * np.sqrt(k))
                rounding = max(rounding, float(error))
            basis.restart(coordinates, values)
            basis.correct(Z, corrected)
            passes += 1
        residual = seen + (noise if rounded else 0.0)
        # Below the rounding of its images the operator says nothing more.
        silent = rounded and seen <= noise and (exact is None or passes == _MAX_PASSES)
        if (residual <= tol * unit and step >= _FEWEST_STEPS) or basis.size >= n or silent:
            break
        if max_columns is not None and applied >= max_columns:
            break
        wanted = norms > 1e-3 * tol * unit
        if not wanted.any():
            break
        if not basis.room_for(int(wanted.sum())):
            keep = min(2 * block, basis.size)
            basis.restart(coordinates[:, :keep], values[:keep])
            coordinates, passes = np.eye(keep), 0
        V = basis.new_directions(_chosen(residuals, wanted), project)
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
        converged=residual <= tol * unit,
        anchored=Y[:k, :k] if passes else None,
        correction=basis.columns[:, k:] @ Y[k:, :k] if passes else None,
    )


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


def _orthonormal(X: Array) -> Array:
    """Return orthonormal columns for columns that are orthonormal but for rounding."""
    Q, R = array_namespace(X).linalg.qr(X)
    return Q * like(np.sign(np.diag(to_numpy(R))), Q)


def _chosen(X: Array, mask: NDArray[np.bool_]) -> Array:
    """Return the columns that a mask marks."""
    return array_namespace(X).take(X, like(np.flatnonzero(mask), X), axis=1)
