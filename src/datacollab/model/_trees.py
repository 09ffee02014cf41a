"""Trees as one list of nodes, and as tables that scikit-learn walks along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

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


_MOST_THRESHOLDS = 2**24
"""Thresholds of one column: ranks up to here are exact in single precision."""


class Walk:
    """All trees of a step, ready to be walked.

    scikit-learn's trees compare columns in single precision.  Where they have to be compared in double precision, each
    column is replaced by its rank among the thresholds: x ≤ t_j, the j-th smallest, if and only if at most j
    thresholds are below x.
    """

    def __init__(
        self, structure: Structure, feature: NDArray[Any], threshold: FloatArray, n_columns: int, *, exact: bool
    ) -> None:
        is_leaf = feature == LEAF
        self.n_trees, self.depth = structure.n_trees, structure.depth
        self._ranked: dict[int, FloatArray] | None = {} if exact else None
        thresholds = np.zeros(len(feature))
        thresholds[~is_leaf] = threshold
        if self._ranked is not None:
            thresholds[~is_leaf] = _ranks_of(threshold, feature[~is_leaf], self._ranked)
        # Number of each leaf among all leaves.
        self._leaf = np.cumsum(is_leaf) - 1
        self._starts = np.concatenate([[0], structure.ends[:-1]])
        self._trees = [
            _tree(
                feature[start:end],
                thresholds[start:end],
                structure.right[start:end] - start,
                n_columns,
                structure.depth,
            )
            for start, end in zip(self._starts, structure.ends, strict=True)
        ]

    def leaves(self, rows: FloatArray) -> Iterator[NDArray[np.int64]]:
        """Yield for each tree the number of each row's leaf among all leaves, shape (n_rows,)."""
        ready = self._comparable(rows)
        for start, tree in zip(self._starts, self._trees, strict=True):
            yield self._leaf[start + tree.apply(ready)]

    def _comparable(self, rows: FloatArray) -> NDArray[np.float32]:
        if self._ranked is None:
            # Beyond single precision's range a number is larger than every threshold, which infinity is too.
            with np.errstate(over="ignore"):
                return rows.astype(np.float32)
        # Columns by which no tree splits are not looked at.
        ready = np.zeros(rows.shape, dtype=np.float32)
        for column, ordered in self._ranked.items():
            ready[:, column] = np.searchsorted(ordered, rows[:, column])
        return ready


def _ranks_of(threshold: FloatArray, feature: NDArray[Any], ranked: dict[int, FloatArray]) -> FloatArray:
    """Return each threshold's rank in its column; the mapping gets the thresholds in ascending order."""
    if not len(threshold):
        return threshold
    order = np.lexsort((threshold, feature))
    columns, starts = np.unique(feature[order], return_index=True)
    ranks = np.empty(len(threshold))
    for column, places in zip(columns.tolist(), np.split(order, starts[1:]), strict=True):
        ranked[column], ranks[places] = np.unique(threshold[places], return_inverse=True)
        if len(ranked[column]) >= _MOST_THRESHOLDS:
            raise large_predictor(f"{_MOST_THRESHOLDS} thresholds of one column, or more")
    return ranks


@cache
def _node_type() -> np.dtype[Any]:
    nodes: NDArray[Any] = DecisionTreeRegressor().fit([[0.0]], [0.0]).tree_.__getstate__()["nodes"]
    return nodes.dtype


def _tree(feature: NDArray[Any], threshold: FloatArray, right: NDArray[np.int64], n_columns: int, depth: int) -> Tree:
    n_nodes = len(feature)
    is_leaf = feature == LEAF
    # The compiled walk believes what it is given.  This cannot fail, and costs little.
    if not ((right > np.arange(n_nodes) + 1) & (right < n_nodes) | is_leaf).all():
        raise bad_predictor("has nodes whose children are not there")
    nodes = np.zeros(n_nodes, dtype=_node_type())
    nodes["left_child"] = np.where(is_leaf, LEAF, np.arange(n_nodes) + 1)
    nodes["right_child"] = np.where(is_leaf, LEAF, right)
    nodes["feature"], nodes["threshold"] = np.where(is_leaf, 0, feature), threshold
    tree = Tree(n_columns, np.ones(1, dtype=np.intp), 1)
    values = np.zeros((n_nodes, 1, 1))
    tree.__setstate__({"max_depth": depth, "node_count": n_nodes, "nodes": nodes, "values": values})
    return tree
