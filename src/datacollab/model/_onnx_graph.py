"""What an ONNX graph may consist of, checked before it is run.

The graph is data, but the programs that run it read as many numbers as it tells them to.  So only plain operators are
let in, and of the others those whose numbers are checked here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import require
from ..errors import ExchangeError
from ._onnx_sizes import check_sizes
from ._refusal import malformed

__all__ = ["INPUT", "read_graph"]

INPUT = "representation"

MOST_BYTES = 2**28
_MOST_NODES = 10**4
_OPSETS = {"": range(9, 19), "ai.onnx.ml": range(1, 4)}

_PLAIN = frozenset(
    {
        *("Abs", "Add", "ArgMax", "ArgMin", "Cast", "Clip", "Concat", "Div", "Equal", "Exp", "Flatten", "Gather"),
        *("GatherElements", "Greater", "GreaterOrEqual", "Identity", "IsNaN", "Less", "LessOrEqual", "Log", "MatMul"),
        *("Min", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
        *("ReduceProd", "ReduceSum", "Relu", "Reshape", "Shape", "Sigmoid", "Slice", "Softmax", "Sqrt", "Sub", "Sum"),
        *("Tanh", "TopK", "Transpose", "Where"),
    }
)
_SAME_WIDTH = frozenset({"Cast", "Identity", "Normalizer", "Scaler"})
_ELEMENT_TYPES = frozenset({1, 6, 7, 8, 9, 11})
"""float32, int32, int64, text, bool, float64."""


def read_graph(data: bytes, *, n_features: int) -> Any:
    """Read and check a graph that takes rows of so many columns.

    Raises
    ------
    ExchangeError
        TOO_LARGE or MODEL_MALFORMED.
    """
    onnx = require("onnx", "onnx")
    if len(data) > MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"The ONNX form has {len(data)} bytes; {MOST_BYTES} are allowed. Take the other form."
        )
    try:
        model = onnx.load_model_from_string(data)
        _check_parts(model)
        onnx.checker.check_model(model, full_check=True)
        _check_interface(model.graph, n_features)
        _check_operators(_with_shapes(model, onnx).graph)
        check_sizes(model, onnx)
    except ExchangeError:
        raise
    # Protocol buffers and the checker raise many kinds of errors for damaged graphs, and quote them.
    except Exception as error:
        raise _malformed(f"cannot be read ({type(error).__name__})") from None
    return model


def _check_parts(model: Any) -> None:
    graph = model.graph
    if model.functions or model.training_info or graph.sparse_initializer or graph.quantization_annotation:
        raise _malformed("has more than nodes and numbers")
    for opset in model.opset_import:
        if opset.version not in _OPSETS.get(opset.domain, ()):
            raise _malformed("uses operators of another library or version")
    if len(graph.node) > _MOST_NODES:
        raise _malformed(f"has more than {_MOST_NODES} nodes")
    for tensor in graph.initializer:
        if tensor.data_location or tensor.external_data or tensor.data_type not in _ELEMENT_TYPES:
            raise _malformed("has numbers outside of the file, or of unusual types")
    for node in graph.node:
        known = _PLAIN if node.domain == "" else _CHECKED if node.domain == "ai.onnx.ml" else frozenset()
        if node.op_type not in known:
            raise _malformed("has an operator that is not allowed")
        if any(attribute.type in (4, 5, 9, 10, 11, 12, 13, 14) for attribute in node.attribute):
            raise _malformed("has a graph within a graph")


def _check_interface(graph: Any, n_features: int) -> None:
    if len(graph.input) != 1 or graph.input[0].name != INPUT or not 1 <= len(graph.output) <= 2:
        raise _malformed("does not take one table and give predictions")
    tensor = graph.input[0].type.tensor_type
    shape = [dimension.dim_value for dimension in tensor.shape.dim]
    if tensor.elem_type != 11 or shape != [0, n_features]:
        raise _malformed("does not take as many columns as the integration function")


def _with_shapes(model: Any, onnx: Any) -> Any:
    """The graph with the shapes that follow from its input; what it says itself of others is not believed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.ClearField("value_info")
    return onnx.shape_inference.infer_shapes(copy)


def _check_operators(graph: Any) -> None:
    """Check what the operators of ai.onnx.ml are told against the width of what they are given."""
    widths: dict[str, int] = {}
    for value in [*graph.input, *graph.value_info]:
        dimensions = value.type.tensor_type.shape.dim
        if len(dimensions) == 2 and dimensions[1].dim_value:
            widths[value.name] = dimensions[1].dim_value
    for node in graph.node:
        width = widths.get(node.input[0]) if node.input else None
        if node.domain == "ai.onnx.ml":
            if width is None and node.op_type in _NEEDING_WIDTH:
                raise _malformed(f"does not say how many columns its {node.op_type} takes")
            attributes = {attribute.name: attribute for attribute in node.attribute}
            _CHECKED[node.op_type](attributes, width)
        if width is not None and node.op_type in _SAME_WIDTH:
            widths.setdefault(node.output[0], width)


def _numbers(attributes: dict[str, Any], name: str) -> NDArray[Any]:
    attribute = attributes.get(name)
    if attribute is None:
        return np.zeros(0)
    return np.asarray(attribute.ints if attribute.type == 7 else attribute.floats)


def _check_trees(attributes: dict[str, Any], width: int | None) -> None:
    """Trees one after the other, each with its nodes numbered from zero, children after their parents."""
    trees, numbers = _numbers(attributes, "nodes_treeids"), _numbers(attributes, "nodes_nodeids")
    modes = list(attributes["nodes_modes"].strings)
    features = _numbers(attributes, "nodes_featureids")
    children = [_numbers(attributes, f"nodes_{side}nodeids") for side in ("true", "false")]
    n = len(numbers)
    lengths = {len(trees), len(modes), len(features), len(_numbers(attributes, "nodes_values")), *map(len, children)}
    if n == 0 or lengths != {n} or not set(modes) <= {b"LEAF", b"BRANCH_LEQ", b"BRANCH_LT"}:
        raise _malformed("has trees of contradictory parts")
    if any(name.endswith("_as_tensor") for name in attributes):
        raise _malformed("has trees of unusual numbers")
    starts = [0, *(np.flatnonzero(np.diff(trees)) + 1).tolist(), n]
    if len(set(trees.tolist())) != len(starts) - 1 or features.min() < 0 or features.max() >= (width or 0):
        raise _malformed("has trees that split by columns that are not there")
    inner = np.array([mode != b"LEAF" for mode in modes])
    sizes = np.zeros(n, dtype=np.int64)
    for start, stop in pairwise(starts):
        sizes[start:stop] = stop - start
        if not np.array_equal(numbers[start:stop], np.arange(stop - start)):
            raise _malformed("has trees whose nodes are not counted one by one")
        reached = np.sort(np.concatenate([side[start:stop][inner[start:stop]] for side in children]))
        if not np.array_equal(reached, np.arange(1, stop - start)):
            raise _malformed("has nodes that are no one's child, or several nodes'")
    if any((side[inner] <= numbers[inner]).any() or (side[inner] >= sizes[inner]).any() for side in children):
        raise _malformed("has trees with cycles")
    _check_leaves(attributes, {int(tree): stop - start for tree, (start, stop) in _spans(trees, starts)})


def _spans(trees: NDArray[Any], starts: list[int]) -> list[tuple[int, tuple[int, int]]]:
    return [(trees[start], (start, stop)) for start, stop in pairwise(starts)]


def _check_leaves(attributes: dict[str, Any], sizes: dict[int, int]) -> None:
    """Each weight belongs to a node that is there, and to a class or target that is there."""
    kind = "class" if "class_ids" in attributes else "target"
    trees, nodes = _numbers(attributes, f"{kind}_treeids"), _numbers(attributes, f"{kind}_nodeids")
    ids, weights = _numbers(attributes, f"{kind}_ids"), _numbers(attributes, f"{kind}_weights")
    n_outputs = _n_classes(attributes) if kind == "class" else int(attributes["n_targets"].i)
    if not len(trees) == len(nodes) == len(ids) == len(weights) > 0 or not np.isfinite(weights).all():
        raise _malformed("has leaves of contradictory parts")
    most = np.array([sizes.get(int(tree), 0) for tree in trees])
    if (nodes < 0).any() or (nodes >= most).any() or ids.min() < 0 or ids.max() >= n_outputs or n_outputs > 10**5:
        raise _malformed("has leaves of classes that are not there")
    if len(_numbers(attributes, "base_values")) not in (0, 1, n_outputs):
        raise _malformed("starts from values for other classes")


_LABELS = frozenset({"classlabels_int64s", "classlabels_strings", "classlabels_ints"})


def _n_classes(attributes: dict[str, Any]) -> int:
    """Labels are texts or numbers: where a node has both, programs count the ones and look up the others."""
    counts = [len(attributes[name].strings) + len(attributes[name].ints) for name in _LABELS & attributes.keys()]
    if sum(count > 0 for count in counts) != 1:
        raise _malformed("has a classifier of no classes, or of two kinds of them")
    return max(counts)


def _check_linear_classifier(attributes: dict[str, Any], width: int | None) -> None:
    n_classes = _n_classes(attributes)
    coefficients, intercepts = _numbers(attributes, "coefficients"), _numbers(attributes, "intercepts")
    rows = len(intercepts)
    if rows not in {n_classes, 1 if n_classes == 2 else n_classes} or len(coefficients) != rows * (width or 0):
        raise _malformed("has a linear classifier for other columns or classes")


def _check_linear_regressor(attributes: dict[str, Any], width: int | None) -> None:
    coefficients, intercepts = _numbers(attributes, "coefficients"), _numbers(attributes, "intercepts")
    n_targets = int(attributes["targets"].i) if "targets" in attributes else 1
    if n_targets != 1 or len(coefficients) != width or len(intercepts) not in (0, 1):
        raise _malformed("has a linear regressor for other columns")


def _check_scaler(attributes: dict[str, Any], width: int | None) -> None:
    sizes = {len(_numbers(attributes, "offset")), len(_numbers(attributes, "scale"))}
    if not sizes <= {1, width}:
        raise _malformed("scales other columns")


def _check_nothing(attributes: dict[str, Any], width: int | None) -> None:
    """For operators that look at their inputs alone."""


_CHECKED = {
    "ArrayFeatureExtractor": _check_nothing,
    "LinearClassifier": _check_linear_classifier,
    "LinearRegressor": _check_linear_regressor,
    "Normalizer": _check_nothing,
    "Scaler": _check_scaler,
    "TreeEnsembleClassifier": _check_trees,
    "TreeEnsembleRegressor": _check_trees,
}
_NEEDING_WIDTH = _CHECKED.keys() - {"ArrayFeatureExtractor", "Normalizer"}


def _malformed(what: str) -> ExchangeError:
    return malformed(f"its ONNX form {what}")
