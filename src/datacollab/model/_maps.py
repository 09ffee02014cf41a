"""Integration functions g_k, linear maps and kernel expansions; and as arrays and plain facts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from .._validation import Array, FloatArray, PartyName, check_representation, to_numpy
from ..errors import ExchangeError
from ..linalg import Kernel, as_precise_as, kernel_expansion
from ._refusals import bad_model
from ._steps import Budget, Parts


class IntegrationFunction(ABC):
    """One party's map from its intermediate representation into the common feature space."""

    party: PartyName
    coefficients: Array

    @property
    @abstractmethod
    def n_intermediate(self) -> int:
        """Columns taken."""

    @property
    def n_components(self) -> int:
        """Columns returned."""
        return int(self.coefficients.shape[1])

    @abstractmethod
    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to collaboration representations (n_rows, n_components)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(party={self.party!r}, {self.n_intermediate} -> {self.n_components})"


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap(IntegrationFunction):
    r"""The linear integration function :math:`g_k(x) = x G^{(k)}` (eq. lki-linear-map), or the affine one.

    Attributes
    ----------
    party : str or int
    coefficients : ndarray of shape (n_intermediate, n_components)
        :math:`G^{(k)}`.
    intercept : ndarray of shape (n_components,) or None
        The vector that is added to each row.
    """

    party: PartyName
    coefficients: FloatArray
    intercept: FloatArray | None = None

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""
        return int(self.coefficients.shape[0])

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to shape (n_rows, n_components)."""
        mapped = check_representation(X, self.party, n_features=self.n_intermediate) @ self.coefficients
        return mapped if self.intercept is None else mapped + self.intercept


@dataclass(frozen=True, eq=False, repr=False)
class KernelMap(IntegrationFunction):
    r"""The kernel integration function :math:`g_k(x) = \kappa_k(x) \Gamma_k` (eq. nki-optimal-function).

    The kernel matrix is never formed: extra memory is the same for any number of rows.

    Attributes
    ----------
    party : str or int
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        The party's own :math:`\tilde A^{(k)}`, or the landmarks among its rows; nobody else's.
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma_k = S_k Z`.
    kernel : Kernel
    precision : {"auto", "float32", "float64"}, default="auto"
        In which an RBF kernel is computed; others always are in double precision, and the result is float64.  "auto"
        takes single precision, from 1024 anchor rows on, where this changes a row by no more than about 2e-6 of its
        largest entry, as estimated from the anchors and coefficients.

    Notes
    -----
    A row's result depends on the row alone.  What other rows come with it changes no more than the rounding.

    After a fit on torch or CuPy arrays the map holds such arrays and takes rows of the same library and device.  It
    computes in double precision and returns the rows' own floating-point type.
    """

    party: PartyName
    anchor_representation: Array
    coefficients: Array
    kernel: Kernel
    precision: str = "auto"

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""
        return int(self.anchor_representation.shape[1])

    @cached_property
    def _expansion(self) -> Callable[[FloatArray], FloatArray]:
        return kernel_expansion(self.anchor_representation, self.coefficients, self.kernel, precision=self.precision)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to shape (n_rows, n_components)."""
        beside = self.anchor_representation
        rows = check_representation(X, self.party, n_features=self.n_intermediate, beside=beside)
        mapped: FloatArray = as_precise_as(self._expansion(rows), X)
        return mapped

    def to_numpy(self) -> Self:
        """Return the same map with NumPy arrays, for where there is no graphics processor."""
        rows = to_numpy(self.anchor_representation)
        return replace(self, anchor_representation=rows, coefficients=to_numpy(self.coefficients))

    def __getstate__(self) -> dict[str, Any]:
        # The expansion that is cached for speed is as large as the map, and is made again where it is needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        metric = self.kernel.metric
        name = metric if isinstance(metric, str) else type(metric).__name__
        return f"{super().__repr__()[:-1]}, kernel={name!r})"


INTERCEPT = "intercept"
"""Fact and array of a linear map that has one."""

# Squares of such entries are finite in double precision.
_MOST_ENTRY = 1e30
_PRECISIONS = ("auto", "float32", "float64")
_PARAMETERS = ("gamma", "degree", "coef0")
_MOST_DEGREE = 100


def map_to(g: IntegrationFunction) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a `LinearMap` or `KernelMap` of NumPy arrays.

    Raise MODEL_UNSUPPORTED for other maps and for kernels that are functions.
    """
    if isinstance(g, LinearMap):
        order, arrays = _in_order({"coefficients": g.coefficients})
        if g.intercept is None:
            return {"kind": "linear", "transposed": order}, arrays
        intercept = np.asarray(g.intercept, dtype=np.float64)[np.newaxis]
        return {"kind": "linear", "transposed": order, INTERCEPT: True}, arrays | {INTERCEPT: intercept}
    if not isinstance(g, KernelMap):
        raise _refuse_map(g, f"is a {type(g).__name__}; linear and kernel maps can be sent")
    metric = g.kernel.metric
    if not isinstance(metric, str) or metric not in PAIRWISE_KERNEL_FUNCTIONS:
        raise _refuse_map(g, "has a kernel that is a function; named kernels of scikit-learn can be sent")
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
    """Return the map that `map_to` took apart, after checks of every part; or raise MODEL_MALFORMED."""
    parts = Parts(facts, dict(arrays), "", Budget(), _bad_map)
    if parts.choice("kind", ("kernel", "linear")) == "linear":
        (coefficients,) = _tables(parts, "coefficients")
        intercept = None
        if INTERCEPT in parts.facts:
            if parts.facts[INTERCEPT] is not True:
                raise _bad_map("does not say whether it has an intercept")
            intercept = parts.table(INTERCEPT, (1, coefficients.shape[1]), most=_MOST_ENTRY)[0]
        g: IntegrationFunction = LinearMap(party, coefficients, intercept)
    else:
        representation, coefficients = _tables(parts, "anchor_representation", "coefficients")
        # Kernels by name alone: a function in a file could do anything.
        metric = parts.choice("metric", PAIRWISE_KERNEL_FUNCTIONS)
        precision = parts.choice("precision", _PRECISIONS)
        parameters = parts.facts.get("parameters")
        if not isinstance(parameters, Mapping) or not _are_possible(parameters):
            raise _bad_map("has a kernel with impossible parameters")
        kernel = Kernel(metric=metric, parameters=dict(parameters))
        g = KernelMap(party, representation, coefficients, kernel, precision)
    if parts.arrays:
        raise _bad_map("has arrays that belong to nothing")
    return g


def _tables(parts: Parts, *names: str) -> list[FloatArray]:
    """Return tables with the same number of rows, each lying in memory as it did where it was written."""
    order = parts.facts.get("transposed")
    if not isinstance(order, list) or not all(isinstance(name, str) and name in names for name in order):
        raise _bad_map("does not say how its arrays lie")
    read = {name: parts.table(name, (None, None), most=_MOST_ENTRY) for name in names}
    tables = [table.T if name in order else table for name, table in read.items()]
    if len({len(table) for table in tables}) != 1:
        raise _bad_map("does not have one row of coefficients for each anchor row")
    return tables


def _in_order(arrays: Mapping[str, Any]) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return arrays as they lie in memory, and the names of those that lie column by column.

    Sums of the same numbers in another order may differ in the last digit.
    """
    plain = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    order = sorted(name for name, array in plain.items() if array.flags.f_contiguous and not array.flags.c_contiguous)
    return order, {name: array.T if name in order else array for name, array in plain.items()}


def _is_plain(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and math.isfinite(value))


def _are_possible(parameters: Mapping[str, Any]) -> bool:
    if not all(name in _PARAMETERS and _is_plain(value) for name, value in parameters.items()):
        return False
    gamma = parameters.get("gamma")
    degree = parameters.get("degree")
    # A negative gamma grows with the distance, and a large degree leaves the range of numbers.
    return (gamma is None or gamma >= 0) and (degree is None or 0 <= degree <= _MOST_DEGREE)


def _plain(g: IntegrationFunction, name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if not _is_plain(value):
        raise _refuse_map(g, f"has a kernel whose parameter {name!r} is no number")
    return value


def _refuse_map(g: IntegrationFunction, what: str) -> ExchangeError:
    return ExchangeError(
        "MODEL_UNSUPPORTED",
        f"The integration function of party {g.party!r} {what}. Integrate with another method or kernel.",
    )


def _bad_map(what: str) -> ExchangeError:
    return bad_model(f"its integration function {what}")
