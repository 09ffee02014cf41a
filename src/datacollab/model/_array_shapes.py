"""Shapes of the arrays that estimators multiply with."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["SHAPED", "check_array_shapes"]

_LINEAR_REGRESSORS = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "GammaRegressor", "HuberRegressor", "Lars"),
    *("Lasso", "LassoCV", "LassoLars", "LinearRegression", "LinearSVR", "OrthogonalMatchingPursuit"),
    *("PoissonRegressor", "QuantileRegressor", "Ridge", "RidgeCV", "SGDRegressor", "TheilSenRegressor"),
    "TweedieRegressor",
)
_LINEAR_CLASSIFIERS = (
    *("LinearDiscriminantAnalysis", "LinearSVC", "LogisticRegression", "LogisticRegressionCV"),
    *("PassiveAggressiveClassifier", "Perceptron", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier"),
)

_SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    **{name: {"coef_": ("features",)} for name in _LINEAR_REGRESSORS},
    **{name: {"coef_": ("decisions", "features")} for name in _LINEAR_CLASSIFIERS},
    "BernoulliNB": {"feature_log_prob_": ("classes", "features"), "class_log_prior_": ("classes",)},
    "GaussianNB": {"theta_": ("classes", "features"), "var_": ("classes", "features"), "class_prior_": ("classes",)},
    "MaxAbsScaler": {"scale_": ("features",)},
    "MinMaxScaler": {"scale_": ("features",), "min_": ("features",)},
    "NearestCentroid": {"centroids_": ("classes", "features")},
    "PCA": {"mean_": ("features",), "components_": ("any", "features")},
    "PowerTransformer": {"lambdas_": ("features",)},
    "QuadraticDiscriminantAnalysis": {"means_": ("classes", "features"), "priors_": ("classes",)},
    "QuantileTransformer": {"quantiles_": ("any", "features")},
    "RBFSampler": {"random_weights_": ("features", "any")},
    "RobustScaler": {"center_": ("features",), "scale_": ("features",)},
    "StandardScaler": {"mean_": ("features",), "scale_": ("features",)},
    "TruncatedSVD": {"components_": ("any", "features")},
}
"""Arrays that must be there with these dimensions; None is a scaler's way to leave a step out."""

SHAPED = (*_SHAPES, "MLPClassifier", "MLPRegressor")
"""Names of the estimators that are checked here."""


def check_array_shapes(part: Any) -> None:
    """Check the arrays of a fitted linear model, network or scaler, one of `SHAPED`.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    name = type(part).__name__
    if "n_features_in_" not in vars(part):
        raise malformed(f"its {name} does not say how many columns it takes")
    classes = getattr(part, "classes_", None)
    n_classes = 1 if classes is None else len(classes)
    sizes = {"features": part.n_features_in_, "classes": n_classes, "decisions": n_classes if n_classes > 2 else 1}
    for attribute, dimensions in _SHAPES.get(name, {}).items():
        array = vars(part)[attribute]
        if array is not None:
            _check_array(part, attribute, array, tuple(sizes.get(dimension) for dimension in dimensions))
    if name in _LINEAR_REGRESSORS or name in _LINEAR_CLASSIFIERS:
        _check_intercept(part, sizes["decisions"])
    if name.startswith("MLP"):
        _check_network(part, sizes["decisions"])


def _check_array(part: Any, attribute: str, array: Any, shape: tuple[int | None, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.ndim != len(shape):
        raise _malformed(part, attribute)
    if any(wanted not in (None, size) for size, wanted in zip(array.shape, shape, strict=True)):
        raise _malformed(part, attribute)
    if array.size == 0 or not np.isfinite(array).all():
        raise _malformed(part, attribute)


def _check_intercept(part: Any, n_decisions: int) -> None:
    intercept = np.asarray(vars(part)["intercept_"])
    if intercept.dtype.kind not in "iuf" or intercept.size not in (1, n_decisions) or intercept.ndim > 1:
        raise _malformed(part, "intercept_")
    if not np.isfinite(intercept).all():
        raise _malformed(part, "intercept_")


def _check_network(part: Any, n_outputs: int) -> None:
    """Each layer takes what the one before gives."""
    weights, offsets = part.coefs_, part.intercepts_
    if not len(weights) == len(offsets) == part.n_layers_ - 1 >= 1 or part.n_outputs_ != n_outputs:
        raise _malformed(part, "coefs_")
    for layer, offset in zip(weights, offsets, strict=True):
        _check_array(part, "coefs_", layer, (None, None))
        _check_array(part, "intercepts_", offset, (layer.shape[1],))
    chained = all(before.shape[1] == after.shape[0] for before, after in pairwise(weights))
    if not chained or weights[0].shape[0] != part.n_features_in_ or weights[-1].shape[1] != n_outputs:
        raise _malformed(part, "coefs_")


def _malformed(part: Any, attribute: str) -> ExchangeError:
    wanted = "does not have the shape of its columns and classes, or is not finite"
    return malformed(f"{attribute} of its {type(part).__name__} {wanted}")
