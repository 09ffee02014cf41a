r"""Products of a kernel matrix with coefficients, in blocks, and in single precision if that is good enough.

With rows scaled to :math:`\bar x = \sqrt{2\gamma}\,(x - m)`, m the mean of the anchor rows, an RBF expansion is

.. math::
    \kappa(x, A)\,\Gamma
    = \sum_j e^{\bar x \cdot \bar a_j - |\bar x|^2/2 - |\bar a_j|^2/2}\,\Gamma_j
    = e^{-|\bar x|^2/2} \Big( \sum_j \Gamma'_j + \sum_j (e^{\bar x \cdot \bar a_j} - 1)\,\Gamma'_j \Big),
    \qquad \Gamma'_j = e^{-|\bar a_j|^2/2}\,\Gamma_j .

Double precision takes the first form.  Single precision takes the second: the sum of :math:`\Gamma'`, where the
coefficients cancel, is done once in double precision, and what is left is small where the exponents are.  Rows lie in
blocks whose columns are contiguous, in memory that begins with a line of the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._validation import Array, FloatArray, array_library
from ._array_api import zeros
from ._kernels import Kernel

__all__ = ["kernel_expansion"]


PRECISIONS = ("auto", "float32", "float64")

_KERNEL_ENTRIES = 2**20
"""Entries of the kernel blocks of other kernels (8 MiB)."""

_DEVICE_ENTRIES = 2**24
"""The same on a graphics processor, which small blocks would leave idle (128 MiB)."""

Expansion = Callable[[FloatArray], FloatArray]


def kernel_expansion(A: FloatArray, coefficients: FloatArray, kernel: Kernel, *, precision: str = "auto") -> Expansion:
    r"""Prepare :math:`x \mapsto \kappa(x, A)\,\Gamma` (eq. nki-optimal-function), without the kernel matrix.

    Parameters
    ----------
    A : ndarray of shape (n_anchors, n_intermediate)
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma`.
    kernel : Kernel
    precision : {"auto", "float32", "float64"}, default="auto"
        For the RBF kernel; others are always computed in double precision.

        * "float64" errs by about 1e-14 times the sum of the terms' magnitudes.
        * "float32" uses single precision for every row that is not too far for its range, whatever the error.
        * "auto" uses single precision, from 1024 anchor rows on, if it errs by about 2e-6 of the row's largest
          entry at most.  The error is estimated from `A` and the coefficients, before any row is seen; large
          coefficients that cancel (a small ridge penalty) or a narrow kernel give double precision.  With single
          precision, rows that are far away, or whose result is too small for that error, are done again in double
          precision.

    Returns
    -------
    callable
        Takes rows of shape (n_rows, n_intermediate), gives shape (n_rows, n_components), both float64.  A row's result
        depends on no other row, but for rounding.

    Raises
    ------
    ValueError
        If `precision` is none of the three.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}; got {precision!r}.")
    gamma = _rbf_gamma(kernel, A.shape[1])
    if gamma is None or array_library(A) is not None:
        return lambda X: _by_kernel_blocks(X, A, coefficients, kernel)
    return RadialExpansion.prepare(A, coefficients, gamma, precision)


def _rbf_gamma(kernel: Kernel, n_features: int) -> float | None:
    """Return the width of an RBF kernel; None for other kernels."""
    if kernel.metric != "rbf":
        return None
    gamma = kernel.parameters.get("gamma")
    gamma = 1.0 / n_features if gamma is None else float(gamma)
    return gamma if 0 <= gamma < np.inf else None


def _by_kernel_blocks(X: Array, A: Array, coefficients: Array, kernel: Kernel) -> Array:
    n_rows = X.shape[0]
    result = zeros((n_rows, coefficients.shape[1]), A)
    height = max(1, (_KERNEL_ENTRIES if array_library(A) is None else _DEVICE_ENTRIES) // A.shape[0])
    for start in range(0, n_rows, height):
        block = slice(start, min(start + height, n_rows))
        result[block, :] = kernel.between(X[block, :], A) @ coefficients
    return result


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
    """Return whether NumPy computes expm1 of float32 with vector instructions here; from NumPy 2.1 on it can tell."""
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
    """Estimate the standard error of the worst entry in single precision, over a sample of the anchor rows.

    Rounding errors are taken as independent, so their variances add up (Higham and Mary 2019, A new approach to
    probabilistic rounding error analysis), in units of the roundoff u.  A term :math:`(e^t - 1) w` carries those of
    exponential and coefficient (2), of adding up `BLOCK` terms one by one, which rounds partial sums that grow like a
    random walk (`BLOCK`/6), and likewise of the parts of a tile; its exponent t errs by :math:`|x| |a| u`.  If one is
    subtracted from the exponential, that errs by u of itself.
    """
    X = _probes(A)
    squares, exponents = _squares(X), X @ A.T
    n_parts = TILE_BYTES / (4 * BLOCK**2)
    variance = (2 + BLOCK / 6 + n_parts / 6) * np.expm1(exponents) ** 2
    variance += np.exp(2 * exponents) * (np.outer(squares, _squares(A)) + (not _VECTOR_EXPM1))
    deviation = np.sqrt(np.exp(-squares) * (variance @ weights**2).max(axis=1))
    return float(deviation.max()) * float(np.finfo(np.float32).eps) / 2


def _largest(result: FloatArray) -> FloatArray:
    """Return the largest magnitude of each row's entries, shape (n_blocks, BLOCK)."""
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


TILE_BYTES = 2**19
"""Kernel values in memory at a time: they stay in the second-level cache."""


@dataclass(frozen=True)
class _Tile:
    """Some anchor rows, in blocks of `BLOCK`, filled up with repeated rows of weight zero."""

    anchors: NDArray[Any]  # (n_blocks, BLOCK, n_columns)
    weights: NDArray[Any]  # (n_blocks, n_components, BLOCK)


@dataclass(frozen=True)
class TiledSum:
    r"""The sum :math:`\sum_j \phi(p \cdot q_j)\,w_j` over anchor rows, for row operands p, in one precision."""

    tiles: list[_Tile]
    apply: Callable[[NDArray[Any]], object]  # phi, in place

    @classmethod
    def prepare(cls, anchors: NDArray[Any], weights: NDArray[Any], apply: Callable[[NDArray[Any]], object]) -> Self:
        """Cut anchor operands (n_anchors, n_columns) and weights (n_anchors, n_components) into equal tiles."""
        n_anchors = anchors.shape[0]
        n_blocks = -(-n_anchors // BLOCK)
        fill = ((0, n_blocks * BLOCK - n_anchors), (0, 0))
        # Zero rows would turn the infinite operands of far rows into NaN.
        anchors = np.pad(anchors, fill, mode="edge").reshape(n_blocks, BLOCK, -1)
        weights = np.pad(weights, fill).reshape(n_blocks, BLOCK, -1).transpose(0, 2, 1)
        n_tiles = -(-n_blocks * BLOCK * BLOCK * anchors.itemsize // TILE_BYTES)
        edges = [n_blocks * i // n_tiles for i in range(n_tiles + 1)]
        tiles = [_Tile(aligned(anchors[start:stop]), aligned(weights[start:stop])) for start, stop in pairwise(edges)]
        return cls(tiles, apply)

    def add_to(self, total: FloatArray, rows: NDArray[Any]) -> None:
        """Add sums of shape (n_blocks, n_components, BLOCK), for row operands of shape (n_blocks, n_columns, BLOCK).

        Products of small matrices, all of one size: matmul hands them over without the interpreter.
        """
        sums = empty(total.shape, rows.dtype)
        for tile in self.tiles:
            values = empty((tile.anchors.shape[0], BLOCK, BLOCK), rows.dtype)
            parts = empty((tile.anchors.shape[0], total.shape[1], BLOCK), rows.dtype)
            ones, flat = np.ones(parts.shape[0], rows.dtype), parts.reshape(parts.shape[0], -1)
            for block, block_sum in zip(rows, sums.reshape(rows.shape[0], -1), strict=True):
                np.matmul(tile.anchors, block, out=values)
                self.apply(values)
                np.matmul(tile.weights, values, out=parts)
                # Adds the parts up, faster than a reduction.
                np.dot(ones, flat, out=block_sum)
            total += sums


BLOCK = 64
"""Rows, and anchor rows, that one small product takes.  Single precision adds up this many terms at a time."""

_CACHE_LINE = 64
"""Bytes.  Vector instructions are slower on arrays that begin within a line, which NumPy's do by 16 bytes."""


def in_blocks(X: FloatArray) -> FloatArray:
    """Return rows (n_rows, n_columns) as float64 of shape (n_blocks, n_columns, BLOCK), filled up with the last row.

    Columns of a block lie in one piece, and products with them are twice as fast.
    """
    n_rows, n_columns = X.shape
    n_whole, rest = divmod(n_rows, BLOCK)
    blocks = empty((n_whole + bool(rest), n_columns, BLOCK), np.float64)
    blocks[:n_whole] = X[: n_rows - rest].reshape(n_whole, BLOCK, n_columns).transpose(0, 2, 1)
    if rest:
        blocks[n_whole, :, :rest] = X[n_rows - rest :].T
        blocks[n_whole, :, rest:] = X[-1][:, np.newaxis]
    return blocks


def copy_rows(X: FloatArray, blocks: FloatArray) -> None:
    """Write blocks that `in_blocks` made back into ``X`` (n_rows, n_columns)."""
    n_rows, n_columns = X.shape
    n_whole, rest = divmod(n_rows, BLOCK)
    X[: n_rows - rest].reshape(n_whole, BLOCK, n_columns)[...] = blocks[:n_whole].transpose(0, 2, 1)
    if rest:
        X[n_rows - rest :] = blocks[n_whole, :, :rest].T


def block_squares(X: FloatArray) -> FloatArray:
    """Return squared lengths, shape (n_blocks, BLOCK), of rows in blocks."""
    # That of a row far out may be infinite; its kernel values are then zero, as they should be.
    with np.errstate(over="ignore"):
        return np.asarray(np.einsum("bjr,bjr->br", X, X))


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array that begins with a line of the cache."""
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(n_bytes + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def aligned(values: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return a contiguous copy that begins with a line of the cache, with another data type if one is given."""
    copy = empty(values.shape, values.dtype if dtype is None else dtype)
    copy[...] = values
    return copy
