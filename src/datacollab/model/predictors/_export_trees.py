"""Trees, forests and boosting as steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor

from ..._typing import FloatArray
from ._columns import Elementwise
from ._links import Binary, Softmax
from ._sent import NotSendableError, Sent, floats, stretch
from ._step import Step
from ._tree_layout import LEAF, places_in_order
from ._trees import Trees

__all__ = ["forest_of", "gradient_boosting", "histogram_boosting", "tree_model"]

_Nodes = tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, FloatArray]
"""Of one tree: left and right children, features, thresholds, and values of all nodes, shape (n_nodes, n_values)."""


def tree_model(estimator: Any) -> Sent:
    """A tree, or the mean of a forest: class probabilities or numbers.

    How many rows were in which node, and what an inner node would have said, is left out.
    """
    if estimator.n_outputs_ != 1:
        raise NotSendableError("trees of several targets")
    step = forest_of(getattr(estimator, "estimators_", [estimator]), estimator.n_features_in_)
    return Sent((step,), () if hasattr(estimator, "classes_") else None)


def forest_of(trees: Iterable[Any], n_in: int) -> Trees:
    """The mean of scikit-learn's trees."""
    return _step(map(_nodes, trees), n_in, precision="float32")


def gradient_boosting(estimator: Any) -> Sent:
    """Gradient boosting that starts from a constant."""
    starts_from = estimator.init_
    is_constant = isinstance(starts_from, DummyClassifier | DummyRegressor)
    if is_constant and starts_from.strategy in ("stratified", "uniform"):
        raise NotSendableError("gradient boosting that starts from answers that are drawn")
    if not is_constant and starts_from != "zero":
        raise NotSendableError("gradient boosting that starts from another model")
    n_steps, n_out = estimator.estimators_.shape
    is_classifier = hasattr(estimator, "classes_")
    step = _step(
        map(_nodes, estimator.estimators_.ravel()),
        estimator.n_features_in_,
        precision="float32",
        factor=float(estimator.learning_rate),
        base=np.zeros(n_out),
        output=np.tile(np.arange(n_out, dtype=np.int32), n_steps),
    )
    # What it starts from is what it says less what its trees say; public methods say no more.
    row = np.zeros((1, estimator.n_features_in_))
    said = estimator.decision_function(row) if is_classifier else estimator.predict(row)
    step.base = np.reshape(said, n_out) - step(row)[0]
    if not is_classifier:
        return Sent((step,))
    if n_out > 1:
        return Sent((step,), (Softmax(n_out),), response=True)
    link: tuple[Step, ...] = (Binary(),)
    if estimator.loss == "exponential":
        link = (stretch([2.0], [0.0]), Binary())
    return Sent((step,), link, zero_is_second=True, response=True)


def histogram_boosting(estimator: Any) -> Sent:
    """Histogram gradient boosting of numbers."""
    stages = estimator._predictors
    n_out = len(stages[0])
    step = _step(
        (_histogram_nodes(tree.nodes) for stage in stages for tree in stage),
        estimator.n_features_in_,
        precision="float64",
        base=floats(estimator._baseline_prediction).reshape(n_out),
        output=np.tile(np.arange(n_out, dtype=np.int32), len(stages)),
    )
    if hasattr(estimator, "classes_"):
        return Sent((step,), (Binary(),) if n_out == 1 else (Softmax(n_out),), response=True)
    if estimator.loss in ("gamma", "poisson"):
        return Sent((step, Elementwise(1, "exp")))
    return Sent((step,))


def _nodes(tree: Any) -> _Nodes:
    nodes = tree.tree_
    values = nodes.value[:, 0, :]
    return nodes.children_left, nodes.children_right, nodes.feature, nodes.threshold, values


def _histogram_nodes(nodes: NDArray[Any]) -> _Nodes:
    is_leaf = nodes["is_leaf"].astype(bool)
    if nodes["is_categorical"].any():
        raise NotSendableError("boosting by categories, where the collaboration representation has numbers only")
    left, right = (np.where(is_leaf, LEAF, nodes[side].astype(np.int64)) for side in ("left", "right"))
    # An infinite threshold parts numbers from missing values, and no number of a table is above the largest one.
    threshold = np.minimum(nodes["num_threshold"], np.finfo(np.float64).max)
    return left, right, nodes["feature_idx"].astype(np.int64), threshold, nodes["value"][:, None]


def _step(
    trees: Iterable[_Nodes],
    n_in: int,
    *,
    precision: str,
    factor: float = 1.0,
    base: FloatArray | None = None,
    output: NDArray[np.int32] | None = None,
) -> Trees:
    features, thresholds, values = [], [], []
    for left, right, feature, threshold, value in trees:
        order = places_in_order(left, right)
        is_leaf = left[order] == LEAF
        features.append(np.where(is_leaf, LEAF, feature[order]).astype(np.int32))
        thresholds.append(threshold[order][~is_leaf])
        values.append(value[order][is_leaf])
    return Trees(
        n_in,
        np.concatenate(features),
        floats(np.concatenate(thresholds)),
        factor * floats(np.concatenate(values)),
        precision=precision,
        base=base,
        output=output,
    )
