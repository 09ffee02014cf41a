"""Trees as one list of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ._from_elsewhere import bad_predictor, large_predictor

LEAF = -1
MOST_DEPTH = 1_000


@dataclass(frozen=True)
class Structure:
    """Ends, right children and depth of the trees in a list of nodes."""

    ends: NDArray[np.int64]
    right: NDArray[np.int64]
    depth: int

    @property
    def n_trees(self) -> int:
        return len(self.ends)


def structure_of(feature: NDArray[Any]) -> Structure:
    """Return where trees end, right children, and depth.

    A tree has one leaf more than it has splits, and nothing that begins it has.  So with +1 for a split and -1 for a
    leaf, a subtree is over where the sum since its beginning is -1 for the first time.
    """
    n_nodes = len(feature)
    splits = np.flatnonzero(feature != LEAF)
    sums = np.cumsum(np.where(feature == LEAF, -1, 1), dtype=np.int64)
    lowest = np.minimum.accumulate(np.minimum(sums, 0))
    ends = np.flatnonzero(np.diff(lowest, prepend=0) < 0) + 1
    if len(ends) == 0 or ends[-1] != n_nodes:
        raise bad_predictor("has a tree that is not complete")
    right = np.zeros(n_nodes, dtype=np.int64)
    if len(splits):
        right[splits] = _first_below(sums, splits) + 1
    return Structure(ends=ends, right=right, depth=_depth(feature, right, ends))


def _first_below(sums: NDArray[np.int64], splits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each split the first place behind it with a sum one below its own: the end of its left subtree.

    Sums change by one from place to place, so the first place *with* that sum is the first that is as low.
    """
    n_nodes = len(sums)
    level = sums - sums.min() + 1
    # Places sorted by sum, then by place; each split looks up the first of the sum below, behind itself.
    keys = np.sort(level * n_nodes + np.arange(n_nodes))
    wanted = (level[splits] - 1) * n_nodes + splits
    return np.asarray(keys[np.searchsorted(keys, wanted, side="right")] % n_nodes)


def _depth(feature: NDArray[Any], right: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    nodes = np.concatenate([[0], ends[:-1]])
    depth = 0
    while len(nodes := nodes[feature[nodes] != LEAF]):
        depth += 1
        if depth > MOST_DEPTH:
            raise large_predictor(f"trees more than {MOST_DEPTH} splits deep")
        nodes = np.concatenate([nodes + 1, right[nodes]])
    return depth


def places_in_order(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Return nodes of one tree from its root down, left before right."""
    levels = [np.array([0])]
    while len(splits := levels[-1][left[levels[-1]] != LEAF]):
        levels.append(np.concatenate([left[splits], right[splits]]).astype(np.int64))
    sizes = np.ones(len(left), dtype=np.int64)
    for nodes in reversed(levels):
        splits = nodes[left[nodes] != LEAF]
        sizes[splits] = 1 + sizes[left[splits]] + sizes[right[splits]]
    places = np.zeros(len(left), dtype=np.int64)
    for nodes in levels:
        splits = nodes[left[nodes] != LEAF]
        places[left[splits]] = places[splits] + 1
        places[right[splits]] = places[splits] + 1 + sizes[left[splits]]
    return np.argsort(places)


_MOST_WALKING = 2**16
"""Walks down a tree that are made side by side: their places stay in a processor's cache."""


def leaves(structure: Structure, feature: NDArray[Any], threshold: FloatArray, rows: NDArray[Any]) -> Iterator[Any]:
    """Yield for each tree the number of each row's leaf among all leaves, shape (n_rows,)."""
    number = np.cumsum(feature == LEAF) - 1
    bounds = np.zeros(len(feature))
    bounds[feature != LEAF] = threshold
    starts = np.concatenate([[0], structure.ends[:-1]])
    at_once = max(1, _MOST_WALKING // len(rows))
    for first in range(0, len(starts), at_once):
        node = np.repeat(starts[first : first + at_once], len(rows))
        walking = np.arange(len(node))
        while len(walking := walking[feature[node[walking]] != LEAF]):
            at = node[walking]
            below = rows[walking % len(rows), feature[at]] <= bounds[at]
            node[walking] = np.where(below, at + 1, structure.right[at])
        yield from number[node].reshape(-1, len(rows))
