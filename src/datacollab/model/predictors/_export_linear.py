"""Linear models and networks as steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ._columns import Affine, Elementwise
from ._links import Binary, Normalise, Softmax
from ._sent import NotSendableError, Sent, floats, stretch
from ._step import Step

__all__ = ["LINEAR_CLASSIFIERS", "LINEAR_REGRESSORS", "linear_classifier", "linear_regressor", "network"]

LINEAR_CLASSIFIERS: tuple[type, ...] = (
    LinearDiscriminantAnalysis,
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.Perceptron,
    linear_model.RidgeClassifier,
    linear_model.RidgeClassifierCV,
    linear_model.SGDClassifier,
    svm.LinearSVC,
)
_LOG_LINK = (linear_model.GammaRegressor, linear_model.PoissonRegressor)
LINEAR_REGRESSORS: tuple[type, ...] = (
    *_LOG_LINK,
    linear_model.ARDRegression,
    linear_model.BayesianRidge,
    linear_model.ElasticNet,
    linear_model.ElasticNetCV,
    linear_model.HuberRegressor,
    linear_model.Lars,
    linear_model.LarsCV,
    linear_model.Lasso,
    linear_model.LassoCV,
    linear_model.LassoLars,
    linear_model.LassoLarsCV,
    linear_model.LassoLarsIC,
    linear_model.LinearRegression,
    linear_model.OrthogonalMatchingPursuit,
    linear_model.OrthogonalMatchingPursuitCV,
    linear_model.QuantileRegressor,
    linear_model.Ridge,
    linear_model.RidgeCV,
    linear_model.SGDRegressor,
    linear_model.TheilSenRegressor,
    linear_model.TweedieRegressor,
    svm.LinearSVR,
)
_ACTIVATIONS = {"exp": "exp", "logistic": "logistic", "relu": "relu", "tanh": "tanh"}


def linear_classifier(estimator: Any) -> Sent:
    """Scores x A + b, and the link that the model uses for its probabilities, if any."""
    scores = (_affine(estimator),)
    n_classes = len(estimator.classes_)
    if scores[0].n_out not in (1, n_classes) or (scores[0].n_out == 1) != (n_classes == 2):
        raise NotSendableError("a model of several targets")
    return Sent(scores, _link(estimator), response=True)


def linear_regressor(estimator: Any) -> Sent:
    """X a + b, or its exponential."""
    affine = _affine(estimator)
    if affine.n_out != 1:
        raise NotSendableError("a model of several targets")
    if _has_log_link(estimator):
        return Sent((affine, Elementwise(1, "exp")))
    return Sent((affine,))


def network(estimator: Any) -> Sent:
    """A multilayer perceptron."""
    steps: list[Step] = []
    for coefficients, intercept in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        if steps and estimator.activation != "identity":
            steps.append(Elementwise(steps[-1].n_out, _ACTIVATIONS[estimator.activation]))
        steps.append(Affine(floats(coefficients), floats(intercept)))
    n_outputs, last = steps[-1].n_out, estimator.out_activation_
    if hasattr(estimator, "classes_"):
        if n_outputs == 1:
            return Sent(tuple(steps), (Binary(),))
        if last != "softmax":
            raise NotSendableError("a network of several targets")
        return Sent(tuple(steps), (Softmax(n_outputs),))
    if n_outputs != 1:
        raise NotSendableError("a network of several targets")
    if last != "identity":
        steps.append(Elementwise(1, _ACTIVATIONS[last]))
    return Sent(tuple(steps))


def _affine(estimator: Any) -> Affine:
    dense = estimator.coef_.toarray() if sparse.issparse(estimator.coef_) else estimator.coef_
    coefficients = np.atleast_2d(floats(dense)).T
    intercept = np.broadcast_to(floats(estimator.intercept_).ravel(), (coefficients.shape[1],))
    return Affine(floats(coefficients), floats(intercept))


def _link(estimator: Any) -> tuple[Step, ...] | None:
    n_classes = len(estimator.classes_)
    if isinstance(estimator, linear_model.SGDClassifier):
        if estimator.loss == "modified_huber":
            raise NotSendableError("a model with the loss modified_huber")
        if estimator.loss != "log_loss":
            return None
    elif not isinstance(estimator, LinearDiscriminantAnalysis | linear_model.LogisticRegression):
        return None
    if n_classes == 2 and getattr(estimator, "multi_class", "") == "multinomial":
        return (stretch([2.0], [0.0]), Binary())
    if n_classes == 2:
        return (Binary(),)
    # Before scikit-learn 1.8 the parameter said so, besides the solver.
    one_against_rest = (
        getattr(estimator, "solver", None) == "liblinear" or getattr(estimator, "multi_class", "") == "ovr"
    )
    if isinstance(estimator, linear_model.SGDClassifier) or one_against_rest:
        return (Elementwise(n_classes, "logistic"), Normalise(n_classes))
    return (Softmax(n_classes),)


def _has_log_link(estimator: Any) -> bool:
    if isinstance(estimator, linear_model.TweedieRegressor):
        return bool(estimator.link == "log" or (estimator.link == "auto" and estimator.power > 0))
    return isinstance(estimator, _LOG_LINK)
