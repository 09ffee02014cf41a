"""Trees as one list of features, and what follows from the list: where trees end, and who is whose child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._refusals import bad_predictor, large_predictor

__all__ = ["LEAF", "MOST_DEPTH", "Structure", "places_in_order", "structure_of"]

LEAF = -1
MOST_DEPTH = 1_000


@dataclass(frozen=True)
class Structure:
    """Of the trees in a list of nodes.

    Attributes
    ----------
    ends : ndarray of shape (n_trees,)
        Place behind the last node of each tree.
    right : ndarray of shape (n_nodes,)
        Place of the right child of each split; undefined for leaves.  The left child follows its parent.
    depth : int
        Splits on the longest way from a root to a leaf.
    """

    ends: NDArray[np.int64]
    right: NDArray[np.int64]
    depth: int

    @property
    def n_trees(self) -> int:
        return len(self.ends)


def structure_of(feature: NDArray[Any]) -> Structure:
    """Where trees end, right children, and depth.

    A tree has one leaf more than it has splits, and nothing that begins it has.  So with +1 for a split and -1 for a
    leaf, a subtree is over where the sum since its beginning is -1 for the first time.

    Parameters
    ----------
    feature : ndarray of shape (n_nodes,)

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, where the last tree is not complete; TOO_LARGE, where one is too deep.
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
    """For each split, the first place behind it with a sum one below its own: the end of its left subtree.

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
    """Nodes of one tree from its root down, left before right.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,)
        Children, -1 where there are none; the root is node 0.

    Returns
    -------
    ndarray of shape (n_nodes,)
        The node that comes at each place.
    """
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
