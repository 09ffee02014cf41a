"""Settings on which groups have to agree, by integration method: plain values, each checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from ..bundle import canonical_json, digest
from ..errors import ShareError

__all__ = ["CENTRED", "MOST_ROWS", "check_settings", "is_name", "targets_digest"]

MOST_ROWS = 10**9
"""Of all parties of a group together."""
_MOST_NAME = 200
_SHA256 = 64


def targets_digest(values: NDArray[Any]) -> str:
    """SHA-256 of targets, in which those of two groups agree or not; it confirms a guess of all of them."""
    return digest(canonical_json(values.tolist()))


def is_name(value: Any) -> bool:
    """Whether a value can be a group's name."""
    return isinstance(value, str) and 0 < len(value) <= _MOST_NAME


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 10**6


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


def _is_gamma(value: Any) -> bool:
    return _is_positive(value) or _one_of("median", "scale", "by party")(value)


def _is_graph(value: Any) -> bool:
    if value is None:
        return True
    return (
        isinstance(value, Mapping)
        and value.keys() == {"kind", "n_neighbors", "approximate", "scale", "task"}
        and _one_of("GeometricGraph", "TargetSimilarityGraph")(value["kind"])
        and _is_count(value["n_neighbors"])
        and _is_flag(value["approximate"])
        and (value["scale"] is None or value["scale"] == "std" or _is_positive(value["scale"]))
        and (value["task"] is None or _one_of("auto", "classification", "regression")(value["task"]))
    )


def _is_digest(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) == _SHA256 and set(value) <= set("0123456789abcdef"))


_SETTINGS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "LTI": {"n_components": _is_count, "fit_intercept": _is_flag},
    "GEP": {"n_components": _is_count},
    "MPP": {"n_components": _is_count, "basis": _one_of("orthonormal", "singular_values")},
    "KTI": {
        "n_components": _is_count,
        "kernel": _one_of(*PAIRWISE_KERNEL_FUNCTIONS),
        "gamma": _is_gamma,
        "gamma_factor": _is_positive,
        "alpha": _is_positive,
        "degree": _is_number,
        "coef0": _is_number,
        "center": _is_flag,
        "graph": _is_graph,
        "graph_weight": lambda value: _is_number(value) and value >= 0,
        "anchor_target": _is_digest,
    },
}
CENTRED = {"LTI": "fit_intercept", "KTI": "center"}
"""The setting of a method by which the columns of its target sum to zero."""


def check_settings(settings: Any) -> dict[str, Any]:
    """A copy of settings that say which method with which parameters, and nothing else.

    Raises
    ------
    ShareError
    """
    method = settings.get("method") if isinstance(settings, Mapping) else None
    if not isinstance(method, str) or method not in _SETTINGS:
        raise ShareError(f"a group's settings must name one of the methods {list(_SETTINGS)!r}")
    wanted = _SETTINGS[method]
    if settings.keys() != {"method", *wanted}:
        raise ShareError(f"settings of {method} must be {sorted(wanted)!r}, and nothing else")
    wrong = sorted(name for name, allows in wanted.items() if not allows(settings[name]))
    if wrong:
        raise ShareError(f"settings {wrong!r} of {method} have impossible values")
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
