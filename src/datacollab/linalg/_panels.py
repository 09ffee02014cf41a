r"""Cholesky factors of :math:`\Sigma + \lambda I` in column panels, made from kernel blocks as they are needed.

LAPACK's triangular solves with a few right-hand sides run at a fraction of the speed of matrix products.  Here each
diagonal block is replaced by its inverse, so that a solve is nothing but products.  The panels hold n^2 / 2 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._validation import Array, array_namespace
from ._array_api import (
    add_tall_product,
    add_wide_product,
    cast,
    column_norms,
    inverse_cholesky,
    like,
    matching,
    slices,
    subtract_product,
    times_upper,
)
from ._kernels import KernelBlocks

_WIDTH = 192
"""Columns of a panel, whose diagonal block is small beside it."""
_SWEEPS = 8
_ENOUGH = 1e-12
"""Relative residual at which iterative refinement stops; float64 gives little more on these matrices."""


@dataclass(frozen=True, eq=False)
class PanelCholesky:
    """A lower Cholesky factor of a symmetric positive definite n x n matrix.

    Its panels are columns from the diagonal downwards.  The diagonal block at the top is replaced by its inverse.
    """

    panels: tuple[Array, ...]

    @property
    def inverse_trace(self) -> float:
        """Return the trace of the inverse matrix: the squared norm of the inverse factor, some columns at a time."""
        total = 0.0
        for index, panel in enumerate(self.panels):
            width = panel.shape[1]
            solved = panel[:width, :]
            remainder = -panel[width:, :] @ solved
            total += float(array_namespace(solved).sum(solved * solved))
            for later in self.panels[index + 1 :]:
                width = later.shape[1]
                solved = later[:width, :] @ remainder[:width, :]
                remainder = remainder[width:, :] - later[width:, :] @ solved
                total += float(array_namespace(solved).sum(solved * solved))
        return total

    def solve(self, X: Array) -> Array:
        """Solve the linear system with the right-hand sides ``X``, shape (n, m), in the factor's precision."""
        solution = matching(X, self.panels[0], copy=True)
        start = 0
        for panel in self.panels:
            width = panel.shape[1]
            top = panel[:width, :] @ solution[start : start + width, :]
            solution[start : start + width, :] = top
            add_tall_product(solution[start + width :, :], panel[width:, :], top, -1.0)
            start += width
        for panel in reversed(self.panels):
            width = panel.shape[1]
            start -= width
            top = solution[start : start + width, :]
            add_wide_product(top, panel[width:, :], solution[start + width :, :], -1.0)
            solution[start : start + width, :] = panel[:width, :].T @ top
        return solution


def panel_cholesky(blocks: KernelBlocks, alpha: float) -> PanelCholesky:
    r"""Factorise :math:`\Sigma + \lambda I` in the precision of the blocks; LinAlgError if it is not definite there."""
    n = blocks.n_rows
    places = [(slice(columns.start, n), columns) for columns in slices(n, _WIDTH)]
    panels: list[Array] = []
    for (rows, _), panel in zip(places, blocks.each(places), strict=True):
        start = rows.start
        width = panel.shape[1]
        panel[:width, :] += like(alpha * np.eye(width, dtype=blocks.dtype), panel)
        # Left-looking: each panel is made only when the earlier ones are subtracted, so no kernel matrix is held.
        for index, earlier in enumerate(panels):
            below = earlier[start - index * _WIDTH :, :]
            subtract_product(panel, below, below[:width, :])
        inverse = inverse_cholesky(panel[:width, :])
        panel[width:, :] = times_upper(panel[width:, :], inverse.T)
        panel[:width, :] = inverse
        panels.append(panel)
    return PanelCholesky(tuple(panels))


def refine_solution(factor: PanelCholesky, multiply: Callable[[Array], Array], alpha: float, Z: Array) -> Array:
    r"""Solve :math:`(\Sigma + \lambda I) T = Z` to float64's accuracy with a factor of lower precision.

    ``multiply`` returns :math:`\Sigma X` in float64.  LinAlgError if the factor is too inaccurate for it to converge.
    """
    norms = column_norms(Z)
    scale = like(norms, Z)
    T = array_namespace(Z).zeros_like(Z)
    remainder = Z
    error = 1.0
    for _ in range(_SWEEPS):
        # Scaled to one, or the remainder would underflow in float32.
        T += cast(factor.solve(remainder / (scale * error)), np.float64) * (scale * error)
        remainder = Z - multiply(T) - alpha * T
        before = error
        error = float((column_norms(remainder) / norms).max())
        if error <= _ENOUGH:
            return T
        # Slower than by half, rounding has been reached; NaN ends here too.
        if not error < 0.5 * before:
            break
    if error > 1e3 * _ENOUGH:
        raise scipy.linalg.LinAlgError("refinement does not converge")
    return T
