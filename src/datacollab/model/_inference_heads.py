"""Linear models with covariances as facts and arrays: plain numbers, each checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._class_names import check_classes, class_names
from ._linear_inference import LeastSquaresInference, LogisticInference
from ._refusal import malformed, too_large

__all__ = ["INFERENCE_FORM", "inference_from", "inference_to"]

INFERENCE_FORM = "linear-inference"
_MOST_NUMBER = 1e100
_MOST_COLUMNS = 1_000
"""Whose covariance has its eigenvalues looked at."""
_ROUNDING = 1e-6


def inference_to(
    estimator: LeastSquaresInference | LogisticInference,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a fitted model."""
    classes = getattr(estimator, "classes_", None)
    names, dtype = (None, None) if classes is None else class_names(classes)
    facts = {"form": INFERENCE_FORM, "robust": bool(estimator.robust), "classes": names, "classes_dtype": dtype}
    arrays = {
        "coefficients": np.ravel(estimator.coef_),
        "intercept": np.reshape(estimator.intercept_, 1),
        "covariance": estimator.covariance_,
    }
    return facts, {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in arrays.items()}


def inference_from(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_components: int
) -> LeastSquaresInference | LogisticInference:
    """The model that facts and arrays describe, after checks of every part.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    if facts.keys() != {"form", "robust", "classes", "classes_dtype"} or type(facts["robust"]) is not bool:
        raise _malformed("says something else than what its covariance is")
    classes = check_classes(facts["classes"], facts["classes_dtype"])
    if classes is not None and len(classes) != 2:
        raise _malformed(f"has {len(classes)} classes; two are wanted")
    if n_components > _MOST_COLUMNS:
        raise too_large(f"has a covariance of {n_components} columns; {_MOST_COLUMNS} are allowed")
    shapes = {"coefficients": (n_components,), "intercept": (1,), "covariance": (n_components, n_components)}
    if arrays.keys() != shapes.keys():
        raise _malformed(f"does not have the arrays {sorted(shapes)!r}")
    for name, shape in shapes.items():
        array = arrays[name]
        if array.dtype != np.float64 or array.shape != shape or not (np.abs(array) <= _MOST_NUMBER).all():
            raise _malformed(f"has {name} of another shape or type than its columns want, or not finite")
    _check_covariance(arrays["covariance"])
    estimator: LeastSquaresInference | LogisticInference
    if classes is None:
        estimator = LeastSquaresInference(robust=facts["robust"])
        estimator.coef_, estimator.intercept_ = arrays["coefficients"], float(arrays["intercept"][0])
    else:
        estimator = LogisticInference(robust=facts["robust"])
        estimator.coef_, estimator.intercept_ = arrays["coefficients"][None, :], arrays["intercept"]
        estimator.classes_ = classes
    estimator.covariance_, estimator.n_features_in_ = arrays["covariance"], n_components
    return estimator


def _check_covariance(covariance: NDArray[np.float64]) -> None:
    variances = np.diagonal(covariance)
    if not (variances >= 0).all():
        raise _malformed("has negative variances")
    # Columns may be on very different scales, so it is looked at as correlations.
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = covariance / scale / scale[:, None]
    if not (np.abs(correlation - correlation.T) <= _ROUNDING).all() or not (np.abs(correlation) <= 1 + _ROUNDING).all():
        raise _malformed("has a covariance that is none")
    if np.linalg.eigvalsh(correlation)[0] < -_ROUNDING * len(covariance):
        raise _malformed("has a covariance that is not positive")


def _malformed(what: str) -> Exception:
    return malformed(f"its estimator {what}")
