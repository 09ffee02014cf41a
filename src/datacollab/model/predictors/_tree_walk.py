"""Which leaf of each tree a row falls into, by scikit-learn's compiled walk along tables of nodes made here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

from ..._typing import FloatArray
from ._refusals import bad_predictor, large_predictor
from ._tree_layout import LEAF, Structure

__all__ = ["Walk"]

_MOST_THRESHOLDS = 2**24
"""Of one column: ranks up to here are exact in single precision."""


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
        """For each tree the number of each row's leaf among all leaves, shape (n_rows,)."""
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
    """The rank of each threshold among those of its column, which are put into the mapping in ascending order."""
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
