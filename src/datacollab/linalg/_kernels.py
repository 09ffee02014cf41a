r"""Kernels between rows, data-driven widths, blocks of a kernel matrix, and its products with coefficients.

Products are made in blocks, and in single precision if that is good enough.  With rows scaled to
:math:`\bar x = \sqrt{2\gamma}\,(x - m)`, m the mean of the anchor rows, an RBF expansion is

.. math::
    \kappa(x, A)\,\Gamma
    = \sum_j e^{\bar x \cdot \bar a_j - |\bar x|^2/2 - |\bar a_j|^2/2}\,\Gamma_j
    = e^{-|\bar x|^2/2} \Big( \sum_j \Gamma'_j + \sum_j (e^{\bar x \cdot \bar a_j} - 1)\,\Gamma'_j \Big),
    \qquad \Gamma'_j = e^{-|\bar a_j|^2/2}\,\Gamma_j .

Double precision takes the first form.  Single precision takes the second: the sum of :math:`\Gamma'`, where the
coefficients cancel, is done once in double precision, and the other sum is small where the exponents are.  Rows lie in
blocks whose columns are contiguous, in memory that begins with a line of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import DTypeLike, NDArray

from .._validation import Array, FloatArray, array_library, array_namespace
from ._array_api import ARRAY_KERNELS, cast, exp_of_nonpositive, hstack, slices, zeros

_FAR = 8.0
"""Largest gamma * |a|^2 at which float32 holds the exponent of the RBF kernel well enough."""
MEDIAN_ROWS = 2000
"""Rows between which distances are computed for their median, which more would hardly change."""
_UNIT_DIAGONAL = ("rbf", "laplacian")
_DIAGONAL_ROWS = 128
"""Rows whose kernel matrix is made for its diagonal; one at a time takes longer, since each call does."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel and its parameters, as `sklearn.metrics.pairwise.pairwise_kernels` takes them.

    Of "precomputed" the parameter "matrix" holds all values, and rows are numbers of its rows, in one column.
    """

    metric: str | Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def gram(self, A: FloatArray) -> FloatArray:
        r"""Return the kernel matrix :math:`\Sigma` between the rows of ``A`` (eq. kernel-matrix-definition)."""
        if self.metric == "precomputed":
            return np.asarray(self.between(A, A))
        return self._evaluate(self._centre(A, A), None)

    def between(self, X: Array, A: Array, dtype: DTypeLike = np.float64) -> Array:
        r"""Return kernel vectors :math:`\kappa(x)` (eq. kernel-vector-definition), one row for each row of ``X``.

        Both arrays are NumPy's, or of another library with one of `ARRAY_KERNELS`, and so is the result.
        """
        if self.metric == "rbf" and self.parameters.get("gamma") is not None:
            left, right = rbf_operands(X, A, self.parameters["gamma"], dtype)
            return exp_of_nonpositive(cast(left @ right.T, dtype))
        if self.metric == "precomputed":
            # Always a copy, since what is returned may be overwritten.
            places = np.ix_(X[:, 0].astype(np.intp), A[:, 0].astype(np.intp))
            return cast(self.parameters["matrix"][places], dtype)
        if array_library(A) is not None:
            return cast(ARRAY_KERNELS[str(self.metric)](X, A, self.parameters), dtype)
        return self._evaluate(self._centre(X, A), self._centre(A, A)).astype(dtype, copy=False)

    def diagonal(self, A: FloatArray) -> FloatArray:
        """Return the diagonal of the kernel matrix of the rows of ``A``, shape (n,), without the matrix."""
        if self.metric in _UNIT_DIAGONAL:
            return np.ones(A.shape[0])
        if callable(self.metric):
            # Kernels of Gaussian processes know theirs; a function of two rows is called once for each.
            if diagonal := getattr(self.metric, "diag", None):
                return np.asarray(diagonal(A), dtype=np.float64)
            return np.asarray([self.metric(row, row, **self.parameters) for row in A], dtype=np.float64)
        return np.concatenate([self.gram(A[rows]).diagonal() for rows in slices(A.shape[0], _DIAGONAL_ROWS)])

    def _centre(self, X: FloatArray, A: FloatArray) -> FloatArray:
        # |x|^2 + |a|^2 - 2 x.a cancels badly far from the origin; distances do not depend on the origin.
        return X - A.mean(axis=0) if self.metric == "rbf" else X

    def _evaluate(self, X: FloatArray, Y: FloatArray | None) -> FloatArray:
        # Scikit-learn takes a second to load, and most commands evaluate no kernel.
        from sklearn.metrics.pairwise import pairwise_kernels

        named = isinstance(self.metric, str)
        values = pairwise_kernels(X, Y, metric=self.metric, filter_params=named, **self.parameters)
        return np.asarray(values, dtype=np.float64)


def rbf_operands(X: Array, A: Array, gamma: float, dtype: DTypeLike) -> tuple[Array, Array]:
    r"""Return arrays whose rows' inner products are the exponents :math:`-\gamma |x - a|^2` of the RBF kernel.

    One matrix product is three times as fast as distances.  About the mean of ``A`` it cancels least.
    """
    xp = array_namespace(A)
    centre = xp.mean(A, axis=0)
    scale = (2.0 * gamma) ** 0.5
    rows = (X - centre) * scale
    columns = (A - centre) * scale
    half_rows = 0.5 * xp.sum(rows * rows, axis=1, keepdims=True)
    half_columns = 0.5 * xp.sum(columns * columns, axis=1, keepdims=True)
    # Far from the centre the exponent, a difference of large numbers, needs float64 whatever the result has.
    if any(half.shape[0] and float(xp.max(half)) > _FAR for half in (half_rows, half_columns)):
        dtype = np.float64
    # x.a - |x|^2/2 - |a|^2/2 as one inner product: two columns more hold the halves.
    left = hstack([rows, half_rows, xp.ones_like(half_rows)])
    right = hstack([columns, -xp.ones_like(half_columns), -half_columns])
    return cast(left, dtype), cast(right, dtype)


def median_gamma(A: FloatArray, metric: str | Callable[..., Any] = "rbf") -> float:
    """Return one over the median distance between two rows: squared Euclidean, or Manhattan for the Laplacian kernel.

    Beyond 2,000 rows it takes 2,000, always the same ones.  0 or infinity means that the data give no width.
    """
    if A.shape[0] > MEDIAN_ROWS:
        A = A[np.random.default_rng(0).choice(A.shape[0], size=MEDIAN_ROWS, replace=False)]
    distances = scipy.spatial.distance.pdist(A, "cityblock" if metric == "laplacian" else "sqeuclidean")
    median = float(np.median(distances, overwrite_input=True))
    return 1.0 / median if median > 0 else np.inf


def scale_gamma(A: FloatArray) -> float:
    """Return one over the number of columns times the variance of all entries, as ``gamma="scale"`` in scikit-learn."""
    variance = float(A.var(dtype=np.float64))
    return 1.0 / (A.shape[1] * variance) if variance > 0 else np.inf


_TILE = 192
"""Rows and columns of a tile, so few that OpenBLAS multiplies it by some columns without packing it first."""
_DEVICE_TILE = 1024
"""Those if another library than NumPy computes."""
_ROWS = 256
"""Rows made at a time, which stay in the processor's cache."""

Place = tuple[slice, slice]
"""Rows and columns of a block."""


class KernelBlocks:
    """The kernel matrix of rows ``A``, block by block (eq. kernel-matrix-definition), in one precision."""

    def __init__(self, kernel: Kernel, A: Array, dtype: DTypeLike = np.float64) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.n_rows = A.shape[0]
        self._A = A
        if kernel.metric == "rbf":
            self._left, right = rbf_operands(A, A, kernel.parameters["gamma"], dtype)
            self._right = array_namespace(right).asarray(right.T, copy=True)

    def block(self, rows: slice | NDArray[np.intp], columns: slice) -> Array:
        """Return one block, written anew."""
        if self.kernel.metric != "rbf":
            return cast(self.kernel.between(self._A[rows, :], self._A[columns, :]), self.dtype)
        return exp_of_nonpositive(cast(self._left[rows, :] @ self._right[:, columns], self.dtype))

    def each(self, places: Sequence[Place]) -> Iterator[Array]:
        """Yield blocks, made one after the other; NumPy's lie side by side in memory that is taken at once."""
        if not isinstance(self._A, np.ndarray):
            yield from (self.block(*place) for place in places)
            return
        for (rows, columns), out in zip(places, _in_one_piece(places, self.dtype), strict=True):
            for part in slices(len(out), _ROWS):
                out[part] = self.block(slice(rows.start + part.start, rows.start + part.stop), columns)
            yield out

    def lower_tiles(self) -> list[tuple[slice, slice, Array]]:
        """Return the lower triangle as square tiles: rows, columns, values."""
        size = _TILE if isinstance(self._A, np.ndarray) else _DEVICE_TILE
        # The upper triangle is the transpose, and would double memory and time.
        edges = slices(self.n_rows, size)
        places = [(rows, columns) for i, rows in enumerate(edges) for columns in edges[: i + 1]]
        return [(*place, tile) for place, tile in zip(places, self.each(places), strict=True)]


def _in_one_piece(places: Sequence[Place], dtype: DTypeLike) -> list[FloatArray]:
    # The operating system hands out large pieces in large pages, which are much faster to take and to walk through.
    shapes = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in places]
    ends = np.cumsum([0, *(prod(shape) for shape in shapes)])
    memory = np.empty(ends[-1], dtype=dtype)
    return [memory[start:end].reshape(shape) for (start, end), shape in zip(pairwise(ends), shapes, strict=True)]


def symmetric_product(tiles: list[tuple[slice, slice, Array]], X: Array) -> Array:
    r"""Return :math:`\Sigma X` from the lower triangle of :math:`\Sigma` in tiles."""
    total = array_namespace(X).zeros_like(X)
    for rows, columns, tile in tiles:
        total[rows, :] += tile @ X[columns, :]
        if rows != columns:
            total[columns, :] += tile.T @ X[rows, :]
    return total


PRECISIONS = ("auto", "float32", "float64")
_KERNEL_ENTRIES = 2**20
"""Entries of the kernel blocks of other kernels (8 MiB)."""

_DEVICE_ENTRIES = 2**24
"""Those on a graphics processor, which small blocks would leave idle (128 MiB)."""

Expansion = Callable[[FloatArray], FloatArray]


def kernel_expansion(A: FloatArray, coefficients: FloatArray, kernel: Kernel, *, precision: str = "auto") -> Expansion:
    r"""Prepare :math:`x \mapsto \kappa(x, A)\,\Gamma` (eq. nki-optimal-function), without the kernel matrix.

    ``A`` has shape (n_anchors, n_intermediate), the coefficients :math:`\Gamma` (n_anchors, n_components).  The
    function takes rows of shape (n_rows, n_intermediate) and gives shape (n_rows, n_components), both float64; a row's
    result depends on no other row, but for rounding.  ``precision`` is for the RBF kernel; see
    `datacollab.model.KernelMap`.  "float32" uses single precision for every row that is not too far for its range.
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
    # scikit-learn's default; an infinite or negative width is left to scikit-learn's errors.
    gamma = kernel.parameters.get("gamma")
    gamma = 1.0 / n_features if gamma is None else float(gamma)
    return gamma if 0 <= gamma < np.inf else None


def _by_kernel_blocks(X: Array, A: Array, coefficients: Array, kernel: Kernel) -> Array:
    n_rows = X.shape[0]
    result = zeros((n_rows, coefficients.shape[1]), A)
    height = max(1, (_KERNEL_ENTRIES if array_library(A) is None else _DEVICE_ENTRIES) // A.shape[0])
    for block in slices(n_rows, height):
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
        """Evaluate as `RadialExpansion._chunk` does, in single precision."""
        total = empty((X.shape[0], self.constant.shape[0], BLOCK), np.float64)
        total[...] = self.constant
        self.rest.add_to(total, align(X, np.float32))
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

    @property
    def n_components(self) -> int:
        """Columns of the result."""
        return int(self.double.tiles[0][1].shape[1])

    @classmethod
    def prepare(cls, A: FloatArray, coefficients: FloatArray, gamma: float, precision: str) -> Self:
        centre = A.mean(axis=0)
        scale = float(np.sqrt(2 * gamma))
        scaled = (A - centre) * scale
        squares = _squares(scaled)
        ones = np.ones(A.shape[0])
        exponential = _exp_clamped if squares.max() > _CLAMP_FROM else _exp
        double = TiledSum.prepare(np.column_stack([scaled, -squares / 2, ones]), coefficients, exponential)
        single = None
        floor = 0.0
        worthwhile = precision == "float32" or (precision == "auto" and A.shape[0] >= _SINGLE_FROM)
        if worthwhile and squares.max() <= _MAX_SQUARE:
            single = _SinglePrecision.prepare(scaled, coefficients)
        if single is not None and precision == "auto":
            # Below this entry the error is more than the tolerance allows.
            floor = single.error / SINGLE_TOLERANCE
            probes = in_blocks(_probes(scaled))
            if np.mean(_largest(single(probes, block_squares(probes))) < floor) > _MOST_AGAIN:
                single = None
        return cls(centre[:, np.newaxis], scale, double, single, floor)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Results of shape (n_rows, n_components), for rows of shape (n_rows, n_intermediate)."""
        result = np.empty((X.shape[0], self.n_components))
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
        total = np.zeros((X.shape[0], self.n_components, BLOCK))
        last = squares[:, np.newaxis] / -2
        self.double.add_to(total, np.concatenate([X, np.ones_like(last), last], axis=1))
        return total


def _single_precision_error(A: FloatArray, weights: FloatArray) -> float:
    """Estimate the standard error of the worst entry in single precision, over a sample of the anchor rows.

    Variances of independent rounding errors add up (Higham and Mary 2019, A new approach to probabilistic rounding
    error analysis), in units of the roundoff u.  A term :math:`(e^t - 1) w` carries those of exponential and
    coefficient (2), of adding up `BLOCK` terms, a random walk (`BLOCK`/6), and of the parts of a tile; t errs by
    :math:`|x| |a| u`.
    """
    X = _probes(A)
    squares = _squares(X)
    exponents = X @ A.T
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
class TiledSum:
    r"""The sum :math:`\sum_j \phi(p \cdot q_j)\,w_j` over anchor rows, for row operands p, in one precision."""

    # Anchor rows (n_blocks, BLOCK, n_columns), filled up with repeated rows of weight zero, and their weights
    # (n_blocks, n_components, BLOCK).
    tiles: list[tuple[NDArray[Any], NDArray[Any]]]
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
        tiles = [(align(anchors[start:stop]), align(weights[start:stop])) for start, stop in pairwise(edges)]
        return cls(tiles, apply)

    def add_to(self, total: FloatArray, rows: NDArray[Any]) -> None:
        """Add sums (n_blocks, n_components, BLOCK) for row operands (n_blocks, n_columns, BLOCK)."""
        sums = empty(total.shape, rows.dtype)
        for anchors, weights in self.tiles:
            values = empty((anchors.shape[0], BLOCK, BLOCK), rows.dtype)
            parts = empty((anchors.shape[0], total.shape[1], BLOCK), rows.dtype)
            ones = np.ones(parts.shape[0], rows.dtype)
            flat = parts.reshape(parts.shape[0], -1)
            for block, block_sum in zip(rows, sums.reshape(rows.shape[0], -1), strict=True):
                np.matmul(anchors, block, out=values)
                self.apply(values)
                np.matmul(weights, values, out=parts)
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


def align(values: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return a contiguous copy that begins with a line of the cache, with another data type if one is given."""
    copy = empty(values.shape, dtype or values.dtype)
    copy[...] = values
    return copy
