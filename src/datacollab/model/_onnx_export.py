"""h∘g_k as one ONNX graph, from a party's intermediate representation to predictions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import require
from ..errors import ExchangeError
from ._composed import ComposedModel
from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._onnx_runtime import INPUT, graph_session, run_graph
from ._refusal import reason_of
from ._trial import try_prediction

__all__ = ["OPSET", "onnx_of"]

OPSET = 18
_ML_OPSET = 3
_IR_VERSION = 8
_BETWEEN = "collaboration_representation"
_N_ROWS = 200
_TOLERANCE = 1e-5


def onnx_of(model: ComposedModel) -> bytes:
    """The graph as bytes, after it was found to predict as the model does.

    The map is computed in double precision and the estimator in single, as forests do anyway.

    Raises
    ------
    ExchangeError
        ONNX_UNSUPPORTED, where the map or the estimator has no ONNX form, or predicts otherwise in it.
    MissingExtraError
        Without the extra `onnx`.
    """
    onnx = require("onnx", "onnx")
    nodes, constants = _map_nodes(model.integration_function, onnx)
    h = _estimator_graph(model)
    rows = onnx.helper.make_tensor_value_info(
        INPUT, onnx.TensorProto.DOUBLE, [None, model.integration_function.n_intermediate]
    )
    graph = onnx.helper.make_graph(
        [*nodes, *h.node], "h_after_g", [rows], list(h.output), initializer=[*constants, *h.initializer]
    )
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    whole = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="datacollab")
    data: bytes = whole.SerializeToString(deterministic=True)
    _check_same(model, data)
    return data


def _estimator_graph(model: ComposedModel) -> Any:
    """Nodes and constants of h, by skl2onnx."""
    skl2onnx = require("skl2onnx", "onnx")
    estimator, n_features = model.estimator, model.integration_function.n_components
    inputs = [(_BETWEEN, require("skl2onnx.common.data_types", "onnx").FloatTensorType([None, n_features]))]
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converted = skl2onnx.convert_sklearn(
                estimator, initial_types=inputs, target_opset={"": OPSET, "ai.onnx.ml": _ML_OPSET}, options=options
            )
    # Converters raise errors of many kinds for what they were not written for.
    except Exception as error:
        raise _unsupported(model, f"skl2onnx cannot convert it ({type(error).__name__})") from None
    return converted.graph


def _map_nodes(g: IntegrationFunction, onnx: Any) -> tuple[list[Any], list[Any]]:
    """Nodes and constants that take the input, in double precision, to what h takes, in single."""
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, values: NDArray[Any] | float) -> str:
        constants.append(onnx.numpy_helper.from_array(np.asarray(values, dtype=np.float64), name=f"g_{name}"))
        return f"g_{name}"

    def step(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        nodes.append(
            onnx.helper.make_node(operator, list(inputs), [output], name=f"g_{operator}_{output}", **attributes)
        )
        return output

    if not isinstance(g, LinearMap | KernelMap):
        raise _no_form(g)
    values = INPUT if isinstance(g, LinearMap) else _kernel_values(g, constant, step)
    mapped = step("MatMul", [values, constant("coefficients", g.coefficients)], "g_mapped")
    if isinstance(g, LinearMap) and g.intercept is not None:
        mapped = step("Add", [mapped, constant("intercept", g.intercept)], "g_shifted_by_intercept")
    step("Cast", [mapped], _BETWEEN, to=onnx.TensorProto.FLOAT)
    return nodes, constants


def _kernel_values(g: KernelMap, constant: Callable[..., str], step: Callable[..., str]) -> str:
    """Kernel values between rows and anchor rows, of shape (n_rows, n_anchors)."""
    metric = g.kernel.metric
    if metric not in ("linear", "poly", "polynomial", "rbf"):
        raise _no_form(g)
    A, parameters = g.anchor_representation, g.kernel.parameters
    given = parameters.get("gamma")
    gamma = 1.0 / A.shape[1] if given is None else float(given)
    if metric != "rbf":
        products = step("MatMul", [INPUT, constant("anchor", A.T)], "g_products")
        if metric == "linear":
            return products
        scaled = step("Mul", [products, constant("gamma", gamma)], "g_scaled")
        shifted = step("Add", [scaled, constant("coef0", parameters.get("coef0", 1))], "g_shifted")
        return step("Pow", [shifted, constant("degree", parameters.get("degree", 3))], "g_values")
    # As in `rbf_operands`: about the mean, the squares cancel least.
    centre, scale = A.mean(axis=0), np.sqrt(2.0 * gamma)
    anchors = (A - centre) * scale
    moved = step("Sub", [INPUT, constant("centre", centre)], "g_moved")
    rows = step("Mul", [moved, constant("scale", scale)], "g_rows")
    squares = step("Mul", [rows, rows], "g_squares")
    halves = step("MatMul", [squares, constant("half", np.full((A.shape[1], 1), 0.5))], "g_halves")
    products = step("MatMul", [rows, constant("anchor", anchors.T)], "g_products")
    less = step("Sub", [products, halves], "g_less")
    exponents = step("Sub", [less, constant("anchor_halves", 0.5 * (anchors**2).sum(axis=1))], "g_exponents")
    capped = step("Min", [exponents, constant("zero", 0.0)], "g_capped")
    return step("Exp", [capped], "g_values")


def _check_same(model: ComposedModel, data: bytes) -> None:
    """Labels have to agree, and numbers to a hundred-thousandth."""
    classes = getattr(model.estimator, "classes_", None)
    has_probabilities = hasattr(model.estimator, "predict_proba")
    rows = try_prediction(model, n_rows=_N_ROWS, seed=1)
    try:
        session = graph_session(data)
        found = run_graph(session, rows, 0, classes)
        probabilities = run_graph(session, rows, 1) if has_probabilities else None
    except ExchangeError as error:
        raise _unsupported(model, f"{reason_of(error)}") from None
    wanted = model.predict(rows)
    if classes is not None:
        same = np.array_equal(found, wanted)
    else:
        same = np.allclose(found, wanted, rtol=_TOLERANCE, atol=_TOLERANCE)
    if same and probabilities is not None:
        same = np.allclose(probabilities, model.predict_proba(rows), rtol=0, atol=_TOLERANCE)
    if not same:
        raise _unsupported(model, "its graph predicts otherwise on made-up rows")


def _no_form(g: IntegrationFunction) -> ExchangeError:
    return ExchangeError(
        "ONNX_UNSUPPORTED",
        f"The integration function of party {g.party!r} has no ONNX form; linear maps and the kernels rbf, linear and "
        "poly have. Export without its ONNX form.",
    )


def _unsupported(model: ComposedModel, what: str) -> ExchangeError:
    return ExchangeError(
        "ONNX_UNSUPPORTED",
        f"The {type(model.estimator).__name__} has no ONNX form: {what}. Export without its ONNX form.",
    )
