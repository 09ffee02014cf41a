r"""Cholesky factors of :math:`\Sigma + \lambda I` in column panels, made from kernel blocks as they are needed.

LAPACK's triangular solves with a few right-hand sides run at a fraction of the speed of matrix products.  Here each
diagonal block is replaced by its inverse, so that a solve is nothing but products; the panels hold the lower triangle
alone, n^2 / 2 numbers; and the kernel matrix itself is never there as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.blas import dgemm, sgemm

from .._validation import FloatArray
from ._kernel_blocks import KernelBlocks

__all__ = ["PanelCholesky", "panel_cholesky", "refined_solution"]

_WIDTH = 256
_SWEEPS = 8
_ENOUGH = 1e-12
"""Relative residual at which iterative refinement stops; float64 gives little more on these matrices."""


@dataclass(frozen=True, eq=False)
class PanelCholesky:
    r"""Lower Cholesky factor of a symmetric positive definite n x n matrix.

    Attributes
    ----------
    panels : tuple of ndarray
        Columns of the factor from the diagonal downwards, as many at a time as the diagonal block is wide; that block
        (the rows at the top) is replaced by its inverse.
    """

    panels: tuple[NDArray[Any], ...]

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return sum(panel.nbytes for panel in self.panels)

    def solve(self, X: NDArray[Any]) -> NDArray[Any]:
        """Solution of the linear system with the right-hand sides ``X``, shape (n, m), in the factor's precision."""
        solution = np.array(X, dtype=self.panels[0].dtype, order="C")
        start = 0
        for panel in self.panels:
            width = panel.shape[1]
            top = panel[:width] @ solution[start : start + width]
            solution[start : start + width] = top
            solution[start + width :] -= panel[width:] @ top
            start += width
        for panel in reversed(self.panels):
            width = panel.shape[1]
            start -= width
            top = solution[start : start + width] - panel[width:].T @ solution[start + width :]
            solution[start : start + width] = panel[:width].T @ top
        return solution


def panel_cholesky(blocks: KernelBlocks, alpha: float, dtype: DTypeLike) -> PanelCholesky:
    r"""Factorise :math:`\Sigma + \lambda I` panel by panel, in n^3 / 3 operations and n^2 / 2 numbers.

    Parameters
    ----------
    blocks : KernelBlocks
        The kernel matrix of shape (n, n).
    alpha : float
    dtype : numpy.float32 or numpy.float64

    Raises
    ------
    scipy.linalg.LinAlgError
        When the matrix is not positive definite in this precision.
    """
    n = blocks.n_rows
    panels: list[NDArray[Any]] = []
    for start in range(0, n, _WIDTH):
        stop = min(start + _WIDTH, n)
        panel = np.asarray(blocks.block(slice(start, n), slice(start, stop)), dtype=dtype)
        panel[np.arange(stop - start), np.arange(stop - start)] += alpha
        for index, earlier in enumerate(panels):
            below = earlier[start - index * _WIDTH :]
            _subtract_product(panel, below, below[: stop - start])
        top = scipy.linalg.cholesky(panel[: stop - start], lower=True, overwrite_a=False, check_finite=False)
        inverse = scipy.linalg.solve_triangular(top, np.eye(stop - start, dtype=dtype), lower=True, check_finite=False)
        panel[stop - start :] = panel[stop - start :] @ inverse.T
        panel[: stop - start] = inverse
        panels.append(panel)
    return PanelCholesky(tuple(panels))


def _subtract_product(C: NDArray[Any], A: NDArray[Any], B: NDArray[Any]) -> None:
    r"""Replace ``C`` by :math:`C - A B^\top`, in place; all are C-ordered."""
    gemm = sgemm if C.dtype == np.float32 else dgemm
    gemm(-1.0, B.T, A.T, 1.0, C.T, trans_a=1, overwrite_c=1)


def refined_solution(
    factor: PanelCholesky, multiply: Callable[[FloatArray], FloatArray], alpha: float, Z: FloatArray
) -> FloatArray:
    r"""Solve :math:`(\Sigma + \lambda I) T = Z` to float64's accuracy with a factor of lower precision.

    Parameters
    ----------
    factor : PanelCholesky
    multiply : callable
        :math:`\Sigma X` in float64.
    alpha : float
    Z : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (n, m)

    Raises
    ------
    scipy.linalg.LinAlgError
        When the refinement does not converge: the factor is too inaccurate for this matrix.
    """
    scale = np.linalg.norm(Z, axis=0)
    T = np.zeros(Z.shape)
    remainder, error = Z, 1.0
    for _ in range(_SWEEPS):
        # Scaled to one, or the remainder would underflow in float32.
        T += factor.solve(remainder / (scale * error)).astype(np.float64) * (scale * error)
        remainder = Z - multiply(T) - alpha * T
        before, error = error, float((np.linalg.norm(remainder, axis=0) / scale).max())
        if error <= _ENOUGH:
            return T
        if not error < 0.5 * before:
            break
    if error > 1e3 * _ENOUGH:
        raise scipy.linalg.LinAlgError("refinement does not converge")
    return T
