"""Integration functions as arrays and plain facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from .._validation import PartyName
from ..errors import ExchangeError
from ..linalg import Kernel
from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._refusal import malformed

__all__ = ["INTERCEPT", "map_from", "map_to"]

INTERCEPT = "intercept"
"""Fact and array of a linear map that has one."""

_MOST_ENTRY = 1e30
_PRECISIONS = ("auto", "float32", "float64")
_PARAMETERS = ("gamma", "degree", "coef0")
_MOST_DEGREE = 100


def map_to(g: IntegrationFunction) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a `LinearMap` or `KernelMap` of NumPy arrays.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, for other maps and for kernels that are functions.
    """
    if isinstance(g, LinearMap):
        order, arrays = _in_order({"coefficients": g.coefficients})
        if g.intercept is None:
            return {"kind": "linear", "transposed": order}, arrays
        intercept = np.asarray(g.intercept, dtype=np.float64)[np.newaxis]
        return {"kind": "linear", "transposed": order, INTERCEPT: True}, arrays | {INTERCEPT: intercept}
    if not isinstance(g, KernelMap):
        raise _unsupported(g, f"is a {type(g).__name__}; linear and kernel maps can be sent")
    metric = g.kernel.metric
    if not isinstance(metric, str) or metric not in PAIRWISE_KERNEL_FUNCTIONS:
        raise _unsupported(g, "has a kernel that is a function; named kernels of scikit-learn can be sent")
    parameters = {name: _plain(g, name, value) for name, value in g.kernel.parameters.items() if name in _PARAMETERS}
    order, arrays = _in_order({"anchor_representation": g.anchor_representation, "coefficients": g.coefficients})
    facts = {
        "kind": "kernel",
        "metric": metric,
        "parameters": parameters,
        "precision": g.precision,
        "transposed": order,
    }
    return facts, arrays


def map_from(party: PartyName, facts: Any, arrays: Mapping[str, NDArray[Any]]) -> IntegrationFunction:
    """The map that `map_to` took apart, after checks of every part.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    kind = facts.get("kind") if isinstance(facts, Mapping) else None
    if kind == "linear":
        return _linear_from(party, facts, arrays)
    if kind != "kernel":
        raise _malformed("is neither linear nor a kernel map")
    arrays = _checked(arrays, {"anchor_representation", "coefficients"}, facts.get("transposed"))
    metric, parameters = facts.get("metric"), facts.get("parameters")
    if not isinstance(metric, str) or metric not in PAIRWISE_KERNEL_FUNCTIONS or not isinstance(parameters, Mapping):
        raise _malformed("has no kernel of a known name")
    if facts.get("precision") not in _PRECISIONS:
        raise _malformed("has no known precision")
    plain = all(name in _PARAMETERS and _is_plain(value) for name, value in parameters.items())
    if not plain or not _is_possible(parameters):
        raise _malformed("has a kernel with impossible parameters")
    kernel = Kernel(metric=metric, parameters=dict(parameters))
    return KernelMap(party, arrays["anchor_representation"], arrays["coefficients"], kernel, facts["precision"])


def _linear_from(party: PartyName, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> LinearMap:
    if INTERCEPT not in facts:
        return LinearMap(party, _checked(arrays, {"coefficients"}, facts.get("transposed"))["coefficients"])
    names = {"coefficients", INTERCEPT}
    if facts[INTERCEPT] is not True or arrays.keys() != names:
        raise _malformed(f"does not have the arrays {sorted(names)!r}")
    table = _checked({"coefficients": arrays["coefficients"]}, {"coefficients"}, facts.get("transposed"))
    row = _checked({INTERCEPT: arrays[INTERCEPT]}, {INTERCEPT}, [])[INTERCEPT]
    if row.shape != (1, table["coefficients"].shape[1]):
        raise _malformed("has an intercept that does not fit its coefficients")
    return LinearMap(party, table["coefficients"], row[0])


def _in_order(arrays: Mapping[str, Any]) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Arrays as they lie in memory, and the names of those that lie column by column.

    Sums of the same numbers in another order may differ in the last digit.
    """
    plain = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    order = sorted(name for name, array in plain.items() if array.flags.f_contiguous and not array.flags.c_contiguous)
    return order, {name: array.T if name in order else array for name, array in plain.items()}


def _checked(arrays: Mapping[str, NDArray[Any]], names: set[str], order: Any) -> dict[str, NDArray[Any]]:
    if arrays.keys() != names:
        raise _malformed(f"does not have the arrays {sorted(names)!r}")
    if not isinstance(order, list) or not all(isinstance(name, str) and name in names for name in order):
        raise _malformed("does not say how its arrays lie")
    for name, array in arrays.items():
        if array.ndim != 2 or 0 in array.shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise _malformed(f"has {name} that are no finite table of double precision")
        if np.abs(array).max() > _MOST_ENTRY:
            raise _malformed(f"has {name} beyond {_MOST_ENTRY:g}, with which nothing can be computed")
    tables = {name: array.T if name in order else array for name, array in arrays.items()}
    if len({len(table) for table in tables.values()}) != 1:
        raise _malformed("does not have one row of coefficients for each anchor row")
    return tables


def _is_plain(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def _is_possible(parameters: Mapping[str, Any]) -> bool:
    gamma, degree = parameters.get("gamma"), parameters.get("degree")
    return (gamma is None or gamma >= 0) and (degree is None or 0 <= degree <= _MOST_DEGREE)


def _plain(g: IntegrationFunction, name: str, value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if not _is_plain(plain):
        raise _unsupported(g, f"has a kernel whose parameter {name!r} is no number")
    return plain


def _unsupported(g: IntegrationFunction, what: str) -> ExchangeError:
    return ExchangeError(
        "MODEL_UNSUPPORTED",
        f"The integration function of party {g.party!r} {what}. Integrate with another method or kernel.",
    )


def _malformed(what: str) -> ExchangeError:
    return malformed(f"its integration function {what}")
