r"""Sums :math:`\sum_j \phi(p \cdot q_j)\,w_j` over many anchor rows, a tile of them at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ._row_blocks import BLOCK, aligned, empty

__all__ = ["TILE_BYTES", "TiledSum"]

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
