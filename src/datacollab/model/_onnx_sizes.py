"""How much an ONNX graph computes for a fixed number of rows, before it is run."""

from __future__ import annotations

import math
from typing import Any

from ._refusal import malformed, too_large

__all__ = ["BATCH", "check_sizes"]

BATCH = 1024
"""Rows that are given to a graph at once."""

_MOST_NUMBERS = 2**27
"""Of all that is computed for a batch, together; a kernel with 10,000 anchor rows needs some 80 million."""

_MOST_ROUNDS = 16
_FLOAT = 1
_SAME_SHAPE = frozenset({"Normalizer", "Scaler"})

_Shape = tuple[int, ...]


def check_sizes(model: Any, onnx: Any) -> None:
    """Infer the shape of everything that a graph computes, and add up.

    Of operators of ai.onnx.ml some shapes are not inferred by the library, so they are given to it here and it infers
    again what follows from them.

    Parameters
    ----------
    model : onnx.ModelProto
        Its operators are checked already.
    onnx : module

    Raises
    ------
    ExchangeError
        TOO_LARGE, or MODEL_MALFORMED where a shape does not follow from the input.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.graph.ClearField("value_info")
    copy.graph.input[0].type.tensor_type.shape.dim[0].dim_value = BATCH
    for output in copy.graph.output:
        output.type.tensor_type.ClearField("shape")
    known: dict[str, _Shape] = {}
    for _ in range(_MOST_ROUNDS):
        # Not with `data_prop`: that would compute, and so take the memory that is asked about here.
        inferred = onnx.shape_inference.infer_shapes(copy).graph
        known |= _shapes(inferred)
        new = {name: shape for node in copy.graph.node for name, shape in _of_node(node, known) if name not in known}
        if not new:
            break
        _tell(copy.graph, inferred, new, onnx)
        known |= new
    _add_up(copy.graph, known)


def _tell(graph: Any, inferred: Any, shapes: dict[str, _Shape], onnx: Any) -> None:
    """Write shapes into a graph; whatever else is known of these values, such as their types, is kept."""
    outputs = {value.name: value for value in graph.output}
    types = {value.name: value.type.tensor_type.elem_type for value in inferred.value_info}
    for name, shape in shapes.items():
        if name in outputs:
            outputs[name].type.tensor_type.shape.CopyFrom(
                onnx.helper.make_tensor_type_proto(_FLOAT, shape).tensor_type.shape
            )
        else:
            graph.value_info.append(onnx.helper.make_tensor_value_info(name, types.get(name) or _FLOAT, shape))


def _add_up(graph: Any, known: dict[str, _Shape]) -> None:
    names = [name for node in graph.node for name in node.output if name]
    if any(name not in known for name in names):
        raise malformed("its ONNX form does not say how large all that it computes is")
    if sum(math.prod(known[name]) for name in names) > _MOST_NUMBERS:
        raise too_large(f"computes more than {_MOST_NUMBERS} numbers for {BATCH} rows in its ONNX form")


def _shapes(graph: Any) -> dict[str, _Shape]:
    """Those that are known in full."""
    known = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        sizes = tuple(size.dim_value for size in tensor.shape.dim)
        if tensor.HasField("shape") and all(size.HasField("dim_value") for size in tensor.shape.dim):
            known[value.name] = sizes
    return known


def _of_node(node: Any, known: dict[str, _Shape]) -> list[tuple[str, _Shape]]:
    """Shapes of what an operator of ai.onnx.ml gives, where those of what it takes are known."""
    if (
        node.domain != "ai.onnx.ml"
        or any(not known.get(name) for name in node.input[:1])
        or not known.keys() >= {*node.input}
    ):
        return []
    shapes = [known[name] for name in node.input]
    if node.op_type in _SAME_SHAPE:
        return [(node.output[0], shapes[0])]
    if node.op_type == "ArrayFeatureExtractor":
        return [(node.output[0], (*(shapes[0][:-1] or (1,)), math.prod(shapes[1])))]
    if node.op_type == "LinearRegressor":
        return [(node.output[0], (shapes[0][0], 1))]
    return []
