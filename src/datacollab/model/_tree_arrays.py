"""Whether the arrays of a decision tree describe a tree.

scikit-learn follows the indices in them without looking: a child beyond the end, or a cycle, ends the process or never
ends.  Trees of forests and gradient boosting are checked here before they are made, those of histogram gradient
boosting before they are used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["check_histogram_tree", "check_tree_arrays"]

_LEAF = -1
_MOST_FEATURES = 10**6
_HISTOGRAM_FIELDS = ("value", "feature_idx", "num_threshold", "left", "right", "is_leaf", "is_categorical")


@cache
def _node_type() -> np.dtype[Any]:
    nodes: NDArray[Any] = DecisionTreeRegressor().fit([[0.0]], [0.0]).tree_.__getstate__()["nodes"]
    return nodes.dtype


def check_tree_arrays(
    *,
    n_features: int,
    n_classes: NDArray[Any],
    n_outputs: int,
    max_depth: int,
    node_count: int,
    nodes: NDArray[Any],
    values: NDArray[Any],
) -> None:
    """Check what a tree of scikit-learn is made from.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    n = len(nodes) if nodes.ndim == 1 else -1
    if n_outputs != 1 or n_classes.shape != (1,) or n_classes.dtype != np.intp or not 1 <= n_features <= _MOST_FEATURES:
        raise _malformed("is not for one target")
    if n < 1 or node_count != n or nodes.dtype != _node_type() or not 0 <= max_depth < n:
        raise _malformed("does not have the nodes it says")
    if values.dtype != np.float64 or values.shape != (n, 1, int(n_classes[0])) or not np.isfinite(values).all():
        raise _malformed("does not have one finite value for each node")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != _LEAF
    if not np.array_equal(inner, right != _LEAF):
        raise _malformed("has nodes with one child")
    _check_children(left[inner], right[inner], np.flatnonzero(inner), n)
    _check_splits(nodes["feature"][inner], nodes["threshold"][inner], n_features)


def check_histogram_tree(predictor: Any, n_features: int) -> None:
    """Check a tree of histogram gradient boosting, which takes numbers only here.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(nodes, np.ndarray) or nodes.ndim != 1 or len(nodes) < 1 or nodes.dtype.names is None:
        raise _malformed("has no nodes")
    if not set(_HISTOGRAM_FIELDS) <= set(nodes.dtype.names) or not np.isfinite(nodes["value"]).all():
        raise _malformed("does not have one finite value for each node")
    inner = nodes["is_leaf"] == 0
    if nodes["is_categorical"].any() or not np.isin(nodes["is_leaf"], (0, 1)).all():
        raise _malformed("splits by categories, where the collaboration representation has numbers only")
    children = nodes[inner]
    _check_children(
        children["left"].astype(np.int64), children["right"].astype(np.int64), np.flatnonzero(inner), len(nodes)
    )
    _check_splits(children["feature_idx"], children["num_threshold"], n_features)


def _check_children(left: NDArray[Any], right: NDArray[Any], parents: NDArray[Any], n_nodes: int) -> None:
    """Children follow their parents, and every node but the root is the child of one: so it is a tree."""
    children = np.concatenate([left, right])
    in_range = ((children > 0) & (children < n_nodes)).all() and (left > parents).all() and (right > parents).all()
    if not in_range or not np.array_equal(np.sort(children), np.arange(1, n_nodes)):
        raise _malformed("has nodes that are no one's child, or several nodes'")


def _check_splits(features: NDArray[Any], thresholds: NDArray[Any], n_features: int) -> None:
    if ((features < 0) | (features >= n_features)).any() or np.isnan(thresholds).any():
        raise _malformed("splits by columns that are not there")


def _malformed(what: str) -> ExchangeError:
    return malformed(f"a decision tree in it {what}")
