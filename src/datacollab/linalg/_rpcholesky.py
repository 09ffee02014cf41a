r"""Randomly pivoted partial Cholesky factorisation of a kernel matrix, block by block with rejection.

Landmarks are drawn with probability proportional to what the earlier ones leave unexplained of each row, which comes
close to the best approximation of the same rank at the cost of looking at the chosen columns only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .._validation import FloatArray
from ._kernels import Kernel, KernelBlocks

__all__ = ["PivotedCholesky", "extend_pivots", "start_pivots"]

_NEGLIGIBLE = 1e-10
"""Unexplained share of the trace at which no further landmark is drawn: float64's rounding lies not far below."""
_INDEFINITE = 1e-6
"""Negative remainder on the diagonal, relative to its mean, that rounding does not explain."""
_SMALLEST_BLOCK = 16


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    r"""Partial factorisation :math:`\Sigma \approx F F^\top`.

    Attributes
    ----------
    pivots : ndarray of int of shape (rank,)
        Landmarks: indices of rows, in the order in which they were drawn.  Those drawn first are a smaller set as good.
    factor : ndarray of shape (n, rank)
        F; the rows at the pivots are lower triangular.
    unexplained : ndarray of shape (n,)
        Diagonal of :math:`\Sigma - F F^\top`, not negative.
    trace : float
        Trace of :math:`\Sigma`.
    """

    pivots: np.ndarray[tuple[int], np.dtype[np.intp]]
    factor: FloatArray
    unexplained: FloatArray
    trace: float

    @property
    def exhausted(self) -> bool:
        """Whether the landmarks explain the kernel matrix as well as rounding permits."""
        return float(self.unexplained.sum()) <= _NEGLIGIBLE * self.trace


def start_pivots(kernel: Kernel, A: FloatArray) -> PivotedCholesky:
    """No landmark yet."""
    diagonal = kernel.diagonal(A)
    empty = np.empty((A.shape[0], 0))
    return PivotedCholesky(np.empty(0, dtype=np.intp), empty, diagonal, float(diagonal.sum()))


def extend_pivots(
    partial: PivotedCholesky, kernel: Kernel, A: FloatArray, rank: int, rng: np.random.Generator
) -> PivotedCholesky:
    """Draw landmarks until there are ``rank``, or no more are of use (Epperly, Tropp and Webber 2024, algorithm 2.1).

    Parameters
    ----------
    partial : PivotedCholesky
    kernel : Kernel
    A : ndarray of shape (n, d)
    rank : int
    rng : numpy.random.Generator

    Raises
    ------
    scipy.linalg.LinAlgError
        When the kernel is seen not to be positive semidefinite.
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
        columns, earlier = blocks.rows(proposed), factor[:filled, proposed].T
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
