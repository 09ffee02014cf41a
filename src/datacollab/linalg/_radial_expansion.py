r"""RBF expansions :math:`\kappa(X, A)\,\Gamma` in tiles, in double and in single precision.

With rows scaled to :math:`\bar x = \sqrt{2\gamma}\,(x - m)`, m the mean of the anchor rows,

.. math::
    \kappa(x, A)\,\Gamma
    = \sum_j e^{\bar x \cdot \bar a_j - |\bar x|^2/2 - |\bar a_j|^2/2}\,\Gamma_j
    = e^{-|\bar x|^2/2} \Big( \sum_j \Gamma'_j + \sum_j (e^{\bar x \cdot \bar a_j} - 1)\,\Gamma'_j \Big),
    \qquad \Gamma'_j = e^{-|\bar a_j|^2/2}\,\Gamma_j .

Double precision takes the first form.  Single precision takes the second: the sum of :math:`\Gamma'`, where the
coefficients cancel, is done once in double precision, and what is left is small where the exponents are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ._row_blocks import BLOCK, aligned, block_squares, copy_rows, empty, in_blocks
from ._tiled_sum import TILE_BYTES, TiledSum

__all__ = ["SINGLE_TOLERANCE", "RadialExpansion"]

SINGLE_TOLERANCE = 2e-6
"""Largest error of single precision, relative to the largest entry of the row."""

_CHUNK_ENTRIES = 2**20
"""Entries of the rows and results that are prepared at a time (8 MiB, and about as much beside them)."""

_MAX_SQUARE = 80.0
"""Squared length up to which single precision can hold the exponentials, without denormal numbers."""

_SINGLE_FROM = 1024
"""Anchor rows from which "auto" considers single precision; with fewer, double precision is fast enough."""

_N_PROBES = 256

_MOST_AGAIN = 0.1
"""Share of rows done again above which double precision at once is cheaper."""

_SAFETY = 1.5
"""Factor on the estimated error: that of the worst entry among a hundred thousand rows."""

_CLAMP_FROM = 1e3
"""Squared length from which rounding would lift a kernel value visibly above one."""


def _has_vector_expm1() -> bool:
    """Whether NumPy computes expm1 of float32 with vector instructions here; from NumPy 2.1 on it can tell."""
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    targets = introspect.opt_func_info(func_name="^expm1$", signature="^float32$")
    found = [target["current"] for of_type in targets.values() for target in of_type.values()]
    return bool(found) and not found[0].startswith("baseline")


_VECTOR_EXPM1 = _has_vector_expm1()
"""Without vector instructions (AVX-512), expm1 takes over ten times as long as exp."""


@dataclass(frozen=True)
class _SinglePrecision:
    """The second form of the module's formula, in float32 but for the constants and the last steps."""

    rest: TiledSum
    constant: FloatArray  # (n_components, 1)
    error: float  # of the worst entry, estimated

    @classmethod
    def prepare(cls, A: FloatArray, coefficients: FloatArray) -> Self:
        weights = np.exp(-_squares(A) / 2)[:, np.newaxis] * coefficients
        return cls(
            rest=TiledSum.prepare(A.astype(np.float32), weights.astype(np.float32), _expm1),
            constant=weights.sum(axis=0)[:, np.newaxis],
            error=_SAFETY * _single_precision_error(A, weights),
        )

    def __call__(self, X: FloatArray, squares: FloatArray) -> FloatArray:
        """Results of shape (n_blocks, n_components, BLOCK), for scaled rows of shape (n_blocks, n_columns, BLOCK)."""
        total = empty((X.shape[0], self.constant.shape[0], BLOCK), np.float64)
        total[...] = self.constant
        self.rest.add_to(total, aligned(X, np.float32))
        total *= np.exp(-squares / 2)[:, np.newaxis]
        return total


@dataclass(frozen=True)
class RadialExpansion:
    """An RBF expansion, with rows scaled so that the kernel is exp(-|x - a|^2 / 2)."""

    centre: FloatArray  # (n_intermediate, 1)
    scale: float
    double: TiledSum
    single: _SinglePrecision | None
    floor: float  # largest entry below which a row is done again in double precision

    @classmethod
    def prepare(cls, A: FloatArray, coefficients: FloatArray, gamma: float, precision: str) -> Self:
        centre, scale = A.mean(axis=0), float(np.sqrt(2 * gamma))
        scaled = (A - centre) * scale
        squares = _squares(scaled)
        ones = np.ones(A.shape[0])
        clamp = squares.max() > _CLAMP_FROM
        double = TiledSum.prepare(
            np.column_stack([scaled, -squares / 2, ones]), coefficients, _exp_clamped if clamp else _exp
        )
        single, floor = None, 0.0
        worthwhile = precision == "float32" or (precision == "auto" and A.shape[0] >= _SINGLE_FROM)
        if worthwhile and squares.max() <= _MAX_SQUARE:
            single = _SinglePrecision.prepare(scaled, coefficients)
        if single is not None and precision == "auto":
            floor = single.error / SINGLE_TOLERANCE
            probes = in_blocks(_probes(scaled))
            if np.mean(_largest(single(probes, block_squares(probes))) < floor) > _MOST_AGAIN:
                single = None
        return cls(centre[:, np.newaxis], scale, double, single, floor)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Results of shape (n_rows, n_components), for rows of shape (n_rows, n_intermediate)."""
        result = np.empty((X.shape[0], self.double.tiles[0].weights.shape[1]))
        height = max(BLOCK, _CHUNK_ENTRIES // (X.shape[1] + result.shape[1]) // BLOCK * BLOCK)
        for start in range(0, X.shape[0], height):
            rows = in_blocks(X[start : start + height])
            rows -= self.centre
            rows *= self.scale
            copy_rows(result[start : start + height], self._chunk(rows))
        return result

    def _chunk(self, X: FloatArray) -> FloatArray:
        """Results of shape (n_blocks, n_components, BLOCK), for scaled rows of shape (n_blocks, n_columns, BLOCK)."""
        squares = block_squares(X)
        near = squares <= _MAX_SQUARE
        if self.single is None or not near.any():
            return self._in_double(X, squares)
        # The far rows, which single precision cannot hold, are replaced meanwhile.
        result = self.single(X if near.all() else np.where(near[:, np.newaxis], X, 0.0), squares)
        blocks, places = np.nonzero(~near | (_largest(result) < self.floor))
        if blocks.size:
            again = in_blocks(X[blocks, :, places])
            exact = np.empty((blocks.size, result.shape[1]))
            copy_rows(exact, self._in_double(again, block_squares(again)))
            result[blocks, :, places] = exact
        return result

    def _in_double(self, X: FloatArray, squares: FloatArray) -> FloatArray:
        total = np.zeros((X.shape[0], self.double.tiles[0].weights.shape[1], BLOCK))
        last = squares[:, np.newaxis] / -2
        self.double.add_to(total, np.concatenate([X, np.ones_like(last), last], axis=1))
        return total


def _single_precision_error(A: FloatArray, weights: FloatArray) -> float:
    r"""Standard error of the worst entry in single precision, over a sample of the anchor rows.

    Rounding errors are taken as independent, so their variances add up [1]_, in units of the roundoff u.  A term
    :math:`(e^t - 1) w` carries those of exponential and coefficient (2), of adding up `BLOCK` terms one by one, which
    rounds partial sums that grow like a random walk (`BLOCK`/6), and likewise of the parts of a tile; its exponent t
    errs by :math:`|x| |a| u`.  Where one is subtracted from the exponential, that errs by u of itself.

    References
    ----------
    .. [1] Higham and Mary (2019). A new approach to probabilistic rounding error analysis. SIAM Journal on
       Scientific Computing 41(5), A2815-A2835.
    """
    X = _probes(A)
    squares, exponents = _squares(X), X @ A.T
    n_parts = TILE_BYTES / (4 * BLOCK**2)
    variance = (2 + BLOCK / 6 + n_parts / 6) * np.expm1(exponents) ** 2
    variance += np.exp(2 * exponents) * (np.outer(squares, _squares(A)) + (not _VECTOR_EXPM1))
    deviation = np.sqrt(np.exp(-squares) * (variance @ weights**2).max(axis=1))
    return float(deviation.max()) * float(np.finfo(np.float32).eps) / 2


def _largest(result: FloatArray) -> FloatArray:
    """Largest magnitude of each row's entries, shape (n_blocks, BLOCK)."""
    return np.asarray(np.maximum(result.max(axis=1), -result.min(axis=1)))


def _probes(A: FloatArray) -> FloatArray:
    return A[:: -(-A.shape[0] // _N_PROBES)]


def _squares(X: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _exp(values: NDArray[Any]) -> object:
    return np.exp(values, out=values)


def _exp_clamped(values: NDArray[Any]) -> object:
    return np.exp(np.minimum(values, 0, out=values), out=values)


def _expm1(values: NDArray[Any]) -> object:
    if _VECTOR_EXPM1:
        return np.expm1(values, out=values)
    return np.subtract(np.exp(values, out=values), 1, out=values)
