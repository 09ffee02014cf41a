"""A fitted estimator as a chain of steps: to its scores, and on to its probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import (
    calibration,
    compose,
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._typing import FloatArray
from ..errors import ExchangeError
from ..survival import CoxRegression, SurvivalForest, SurvivalModel
from ._models import (
    FLOOR,
    AveragedClassifier,
    AveragedRegressor,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
)
from ._predictors import ReceivedClassifier, ReceivedPredictor, ReceivedRegressor, ReceivedSurvival
from ._steps import (
    LEAF,
    MOST_NUMBER,
    Affine,
    Binary,
    Clip,
    Complement,
    Elementwise,
    Isotonic,
    LogFloor,
    Mean,
    ModelStep,
    NormalDensities,
    Normalise,
    Radial,
    Scale,
    Softmax,
    StepChain,
    Stretch,
    Trees,
)


class NotSendableError(Exception):
    """An estimator, or a setting of one, that no steps describe; the message names it."""


@dataclass(frozen=True)
class Sent:
    """A model as steps to its scores, and a link from these to probabilities, if it has any.

    `zero_is_second` says that a score of 0 means the second class, and `response` that calibration starts from scores.
    """

    scores: tuple[ModelStep, ...]
    link: tuple[ModelStep, ...] | None = None
    zero_is_second: bool = False
    response: bool = False

    @property
    def probabilities(self) -> tuple[ModelStep, ...]:
        """All steps to the probabilities."""
        if self.link is None:
            raise NotSendableError("a model without probabilities where they are needed")
        return (*self.scores, *self.link)


def floats(values: Any) -> FloatArray:
    """Return a table of double precision, row by row."""
    return np.ascontiguousarray(values, dtype=np.float64)


def stretch(factors: Any, offsets: Any) -> Stretch:
    """Return X a + b, column by column."""
    return Stretch(floats(factors), floats(offsets))


def pick_columns(n_columns: int, columns: Any) -> Affine:
    """Return some of the columns."""
    return Affine(np.eye(n_columns)[:, columns], np.zeros(len(np.arange(n_columns)[columns])))


def inverse_of_target(fitted: Any) -> tuple[ModelStep, ...]:
    """Return steps from the output of a regressor of a transformed target to the target."""
    # Functions are compared, as only these two are known to undo a logarithm.
    if isinstance(fitted, preprocessing.FunctionTransformer):
        if fitted.inverse_func is np.exp:
            return (Elementwise(1, "exp"),)
        if fitted.inverse_func is np.expm1:
            return (Elementwise(1, "exp"), stretch([1.0], [-1.0]))
    elif isinstance(fitted, preprocessing.StandardScaler):
        centre = fitted.mean_[0] if fitted.with_mean else 0.0
        spread = 1.0 if fitted.scale_ is None else fitted.scale_[0]
        return (stretch([spread], [centre]),)
    raise NotSendableError(f"a target transformed by a {type(fitted).__name__}, other than log or log1p")


def _largest(fitted: Any) -> tuple[ModelStep, ...]:
    steps = _scale(fitted, None, fitted.scale_)
    # The parameter is there since scikit-learn 1.9.
    if getattr(fitted, "clip", False):
        steps = (*steps, Clip(fitted.n_features_in_, -1.0, 1.0))
    return steps


def _smallest_and_largest(fitted: Any) -> tuple[ModelStep, ...]:
    stretched = stretch(fitted.scale_, fitted.min_)
    if not fitted.clip:
        return (stretched,)
    low, high = map(float, fitted.feature_range)
    return (stretched, Clip(fitted.n_features_in_, low, high))


def _scale(fitted: Any, centre: Any, spread: Any) -> tuple[ModelStep, ...]:
    if centre is None:
        centre = np.zeros(fitted.n_features_in_)
    if spread is None:
        spread = np.ones(fitted.n_features_in_)
    return (Scale(floats(centre), floats(spread)),)


def _standard(fitted: Any) -> tuple[ModelStep, ...]:
    # The means are there also where they are not taken off.
    centre = fitted.mean_ if fitted.with_mean else None
    return _scale(fitted, centre, fitted.scale_)


def _principal(fitted: Any) -> tuple[ModelStep, ...]:
    directions = fitted.components_.T
    # (x - mean) A = x A - mean A.
    steps: tuple[ModelStep, ...] = (Affine(floats(directions), -floats(fitted.mean_ @ directions)),)
    if not fitted.whiten:
        return steps
    # As scikit-learn, which does not divide by the spread of a column that has none.
    spread = np.maximum(np.sqrt(fitted.explained_variance_), np.finfo(np.float64).eps)
    return (*steps, Scale(np.zeros(len(spread)), floats(spread)))


def _selection(fitted: Any) -> tuple[ModelStep, ...]:
    return (pick_columns(fitted.n_features_in_, fitted.get_support()),)


TRANSFORMERS: dict[type, Callable[[Any], tuple[ModelStep, ...]]] = {
    decomposition.PCA: _principal,
    decomposition.TruncatedSVD: lambda svd: (Affine(floats(svd.components_.T), np.zeros(len(svd.components_))),),
    feature_selection.SelectKBest: _selection,
    feature_selection.SelectPercentile: _selection,
    feature_selection.VarianceThreshold: _selection,
    preprocessing.MaxAbsScaler: _largest,
    preprocessing.MinMaxScaler: _smallest_and_largest,
    preprocessing.RobustScaler: lambda scaler: _scale(scaler, scaler.center_, scaler.scale_),
    preprocessing.StandardScaler: _standard,
}


_CLASSIFIERS = (
    *("LogisticRegression", "LogisticRegressionCV", "Perceptron", "RidgeClassifier", "RidgeClassifierCV"),
    "SGDClassifier",
)
_REGRESSORS = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "GammaRegressor", "HuberRegressor", "Lars"),
    *("LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression"),
    *("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "PoissonRegressor", "QuantileRegressor", "Ridge"),
    *("RidgeCV", "SGDRegressor", "TheilSenRegressor", "TweedieRegressor"),
)


def linear_classifier(estimator: Any) -> Sent:
    """Return scores x A + b, and the link that the model uses for its probabilities, if any."""
    scores = (_affine(estimator),)
    n_classes = len(estimator.classes_)
    # One score is for two classes, and several are for as many.
    if scores[0].n_out not in (1, n_classes) or (scores[0].n_out == 1) != (n_classes == 2):
        raise NotSendableError("a model of several targets")
    return Sent(scores, _link(estimator), response=True)


def linear_regressor(estimator: Any) -> Sent:
    """Return X a + b, or its exponential."""
    affine = _affine(estimator)
    if affine.n_out != 1:
        raise NotSendableError("a model of several targets")
    has_log_link = isinstance(estimator, linear_model.GammaRegressor | linear_model.PoissonRegressor)
    # As in scikit-learn, "auto" is the logarithm above power 0, and the identity elsewhere.
    if isinstance(estimator, linear_model.TweedieRegressor):
        has_log_link = estimator.link == "log" or (estimator.link == "auto" and estimator.power > 0)
    if has_log_link:
        return Sent((affine, Elementwise(1, "exp")))
    return Sent((affine,))


def network(estimator: Any) -> Sent:
    """Return a multilayer perceptron."""
    steps: list[ModelStep] = []
    for coefficients, intercept in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        if steps and estimator.activation != "identity":
            steps.append(Elementwise(steps[-1].n_out, estimator.activation))
        steps.append(Affine(floats(coefficients), floats(intercept)))
    n_outputs = steps[-1].n_out
    last = estimator.out_activation_
    if hasattr(estimator, "classes_") and (n_outputs == 1 or last == "softmax"):
        return Sent(tuple(steps), _link_of_scores(n_outputs))
    # A classifier with other outputs has several targets, as a regressor with more than one has.
    if hasattr(estimator, "classes_") or n_outputs != 1:
        raise NotSendableError("a network of several targets")
    if last != "identity":
        steps.append(Elementwise(1, last))
    return Sent(tuple(steps))


def _link_of_scores(n_scores: int) -> tuple[ModelStep, ...]:
    """Return the logistic function of one score, or the softmax of several."""
    if n_scores == 1:
        return (Binary(),)
    return (Softmax(n_scores),)


def _affine(estimator: Any) -> Affine:
    coefficients = estimator.coef_
    if sparse.issparse(coefficients):
        coefficients = coefficients.toarray()
    coefficients = np.atleast_2d(floats(coefficients)).T
    intercept = np.broadcast_to(floats(estimator.intercept_).ravel(), (coefficients.shape[1],))
    return Affine(floats(coefficients), floats(intercept))


def _link(estimator: Any) -> tuple[ModelStep, ...] | None:
    n_classes = len(estimator.classes_)
    # The logistic loss alone has a link; modified_huber has probabilities that no step describes, others have none.
    if isinstance(estimator, linear_model.SGDClassifier):
        if estimator.loss == "modified_huber":
            raise NotSendableError("a model with the loss modified_huber")
        if estimator.loss != "log_loss":
            return None
    elif not isinstance(estimator, LinearDiscriminantAnalysis | linear_model.LogisticRegression):
        return None
    # Before scikit-learn 1.8 the parameter says so, besides the solver.
    multi_class = getattr(estimator, "multi_class", "")
    if n_classes == 2:
        # The softmax of -s and s is the logistic function of 2 s.
        if multi_class == "multinomial":
            return (stretch([2.0], [0.0]), Binary())
        return (Binary(),)
    one_against_rest = multi_class == "ovr" or getattr(estimator, "solver", None) == "liblinear"
    if isinstance(estimator, linear_model.SGDClassifier) or one_against_rest:
        return (Elementwise(n_classes, "logistic"), Normalise(n_classes))
    return (Softmax(n_classes),)


_SURVIVAL = (CoxRegression, SurvivalForest)


def _survival(estimator: SurvivalModel) -> ReceivedSurvival:
    """Return a survival model, which has one baseline: see `SurvivalModel.for_party`."""
    if len(estimator.baselines_) != 1:
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {type(estimator).__name__} has baselines of {len(estimator.baselines_)} strata, and a party gets its "
            "own alone. Take for_party of the model.",
        )
    ((stratum, baseline),) = estimator.baselines_.items()
    covariance = None
    # Not isinstance: a subclass may predict otherwise.
    if type(estimator) is CoxRegression:
        centred = Scale(floats(estimator.mean_), np.ones(len(estimator.coef_)))
        steps: tuple[ModelStep, ...] = (centred, Affine(floats(estimator.coef_)[:, None], np.zeros(1)))
        covariance = floats(estimator.covariance_)
    elif type(estimator) is SurvivalForest:
        # Every leaf has an event, so no risk is 0, and the floor is never reached.
        steps = (forest_of(estimator.estimators_, estimator.n_features_in_), LogFloor(1, 1 / MOST_NUMBER))
    else:
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"A survival model of type {type(estimator).__name__} cannot be sent. Train one of "
            f"{', '.join(each.__name__ for each in _SURVIVAL)}.",
        )
    baseline_of = "common" if stratum is None else "own"
    return ReceivedSurvival(
        StepChain(steps), baseline, name=type(estimator).__name__, baseline_of=baseline_of, covariance=covariance
    )


# One tree: left and right children, features, thresholds, and values of all nodes, shape (n_nodes, n_values).
_Nodes = tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, FloatArray]


def tree_model(estimator: Any) -> Sent:
    """Return a tree, or the mean of a forest: class probabilities or numbers.

    How many rows were in which node, and what an inner node would have said, is left out.
    """
    if estimator.n_outputs_ != 1:
        raise NotSendableError("trees of several targets")
    step = forest_of(getattr(estimator, "estimators_", [estimator]), estimator.n_features_in_)
    # A mean of shares is probabilities as it is.
    link = () if hasattr(estimator, "classes_") else None
    return Sent((step,), link)


def forest_of(trees: Iterable[Any], n_in: int) -> Trees:
    """Return the mean of scikit-learn's trees."""
    return _step(map(_nodes, trees), n_in, precision="float32")


def gradient_boosting(estimator: Any) -> Sent:
    """Return gradient boosting that starts from a constant."""
    starts_from = estimator.init_
    is_constant = isinstance(starts_from, DummyClassifier | DummyRegressor)
    # A start by chance would differ from row to row.
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
    # Its start is its output less the sum of its trees; no public method gives it.
    row = np.zeros((1, estimator.n_features_in_))
    output = estimator.decision_function(row) if is_classifier else estimator.predict(row)
    step.base = np.reshape(output, n_out) - step(row)[0]
    if not is_classifier:
        return Sent((step,))
    if n_out > 1:
        return Sent((step,), (Softmax(n_out),), response=True)
    link: tuple[ModelStep, ...] = (Binary(),)
    # Under the exponential loss, scores are half the log odds.
    if estimator.loss == "exponential":
        link = (stretch([2.0], [0.0]), Binary())
    return Sent((step,), link, zero_is_second=True, response=True)


def histogram_boosting(estimator: Any) -> Sent:
    """Return histogram gradient boosting of numbers."""
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
        return Sent((step,), _link_of_scores(n_out), response=True)
    if estimator.loss in ("gamma", "poisson"):
        return Sent((step, Elementwise(1, "exp")))
    return Sent((step,))


def _in_order(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Return nodes of one tree from its root down, left before right."""
    # Level by level, since a recursion may be deeper than Python's stack.
    levels = [np.array([0])]
    while len(splits := levels[-1][left[levels[-1]] != LEAF]):
        levels.append(np.concatenate([left[splits], right[splits]]).astype(np.int64))
    # From the leaves up, the number of nodes below each one; from the root down, its place.
    sizes = np.ones(len(left), dtype=np.int64)
    for nodes in reversed(levels):
        splits = nodes[left[nodes] != LEAF]
        sizes[splits] = 1 + sizes[left[splits]] + sizes[right[splits]]
    places = np.zeros(len(left), dtype=np.int64)
    for nodes in levels:
        splits = nodes[left[nodes] != LEAF]
        places[left[splits]] = places[splits] + 1
        places[right[splits]] = places[splits] + 1 + sizes[left[splits]]
    return np.argsort(places)


def _nodes(tree: Any) -> _Nodes:
    nodes = tree.tree_
    return nodes.children_left, nodes.children_right, nodes.feature, nodes.threshold, nodes.value[:, 0, :]


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
    features = []
    thresholds = []
    values = []
    for left, right, feature, threshold, value in trees:
        order = _in_order(left, right)
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


def sendable_form(estimator: Any) -> ReceivedPredictor:
    """Return a fitted estimator, or the best of a search, as it will be received; or raise MODEL_UNSUPPORTED."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if isinstance(estimator, ReceivedPredictor):
        return estimator
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
        if isinstance(estimator, SurvivalModel):
            return _survival(estimator)
        sent = _export(estimator)
    except NotFittedError:
        raise ExchangeError("MODEL_UNSUPPORTED", f"The {name} is not fitted. Train it before it is sent.") from None
    except NotSendableError as error:
        part = str(error)
        holds = f": it is or holds {part}"
        # The estimator itself need not be named twice.
        if part in (f"a {name}", f"an {name}"):
            holds = ""
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"An estimator of type {name} cannot be sent{holds}, which cannot be written as plain numbers. Train a "
            "linear or logistic model, a tree, forest or gradient boosting, a network, Gaussian naive Bayes or a "
            "linear discriminant, one of these calibrated, or a soft vote of them, in a pipeline behind scalers, PCA "
            "or a selection of columns; datacollab.model.SENDABLE has their names.",
        ) from None
    if sent.link is None and not hasattr(estimator, "classes_"):
        return ReceivedRegressor(StepChain(sent.scores), name=name)
    return ReceivedClassifier(
        StepChain((*sent.scores, *(sent.link or ()))),
        np.asarray(estimator.classes_),
        name=name,
        decides=len(sent.scores),
        zero_is_second=sent.zero_is_second,
        probabilities=sent.link is not None,
    )


def _export(estimator: Any) -> Sent:
    # A model that came as steps is sent on, such as in an average of models from several senders.
    if isinstance(estimator, ReceivedRegressor):
        return Sent(estimator.chain.steps)
    if isinstance(estimator, ReceivedClassifier):
        steps = estimator.chain.steps
        link = steps[estimator.decides :] if estimator.probabilities else None
        return Sent(steps[: estimator.decides], link, zero_is_second=estimator.zero_is_second)
    # Not isinstance: a subclass may predict otherwise.
    if type(estimator) not in _EXPORTS:
        raise NotSendableError(f"a {type(estimator).__name__}")
    if isinstance(getattr(estimator, "classes_", None), list):
        raise NotSendableError("a model of several targets")
    return _EXPORTS[type(estimator)](estimator)


def _pipeline(estimator: Any) -> Sent:
    *before, (_, last) = estimator.steps
    steps: list[ModelStep] = []
    for _, fitted in before:
        if fitted in (None, "passthrough"):
            continue
        if type(fitted) not in TRANSFORMERS:
            raise NotSendableError(f"a {type(fitted).__name__}")
        steps += TRANSFORMERS[type(fitted)](fitted)
    sent = _export(last)
    return replace(sent, scores=(*steps, *sent.scores))


def _target_transform(estimator: Any) -> Sent:
    return Sent((*_export(estimator.regressor_).scores, *inverse_of_target(estimator.transformer_)))


def _naive_bayes(estimator: Any) -> Sent:
    densities = NormalDensities(
        floats(estimator.theta_), floats(estimator.var_), floats(np.log(estimator.class_prior_))
    )
    return Sent((densities,), (Softmax(densities.n_out),))


def _ridge(estimator: Any) -> Sent:
    coefficients = floats(estimator.coefficients_).reshape(len(estimator.coefficients_), -1)
    steps: tuple[ModelStep, ...] = (Affine(coefficients, floats(estimator.intercept_).reshape(-1)),)
    if estimator.kernel == "rbf":
        steps = (Radial(floats(estimator.landmarks), float(estimator.gamma)), *steps)
    if isinstance(estimator, LandmarkRidgeRegressor):
        return Sent(steps)
    steps = (*steps, _calibration(estimator))
    return Sent(steps, (Softmax(steps[-1].n_out),))


def _forest_calibration(estimator: Any) -> Sent:
    forest = _export(estimator.estimator_).probabilities
    return Sent((*forest, LogFloor(forest[-1].n_out, FLOOR), _calibration(estimator)), (Softmax(forest[-1].n_out),))


def _calibration(estimator: Any) -> Stretch:
    return stretch(np.full(len(estimator.offsets_), float(estimator.scale_)), estimator.offsets_)


def _vote(estimator: Any) -> Sent:
    if getattr(estimator, "voting", "soft") != "soft":
        raise NotSendableError("a vote by majority")
    weights = np.ones(len(estimator.estimators_))
    if estimator._weights_not_none is not None:
        weights = floats(estimator._weights_not_none)
    models = [_export(each) for each in estimator.estimators_]
    if isinstance(estimator, ensemble.VotingRegressor):
        return Sent((_mean(weights, [each.scores for each in models]),))
    return Sent((_mean(weights, [each.probabilities for each in models]),), ())


def _average(estimator: Any) -> Sent:
    if isinstance(estimator, AveragedRegressor):
        chains = [_export(each).scores for each in estimator.estimators_]
        return Sent((_mean(estimator.weights_, chains),))
    chains = []
    # Models of an average may know different classes; each one's columns are put among all.
    for each in estimator.estimators_:
        known = np.searchsorted(estimator.classes_, each.classes_)
        spread = Affine(np.eye(len(estimator.classes_))[known], np.zeros(len(estimator.classes_)))
        chains.append((*_export(each).probabilities, spread))
    return Sent((_mean(estimator.weights_, chains),), ())


def _mean(weights: FloatArray, chains: list[tuple[ModelStep, ...]]) -> Mean:
    return Mean(weights / weights.sum(), [StepChain(steps) for steps in chains])


def _fold_calibration(estimator: Any) -> Sent:
    chains = [_calibrate_once(each, len(estimator.classes_)) for each in estimator.calibrated_classifiers_]
    return Sent((_mean(np.ones(len(chains)), chains),), ())


def _calibrate_once(each: Any, n_classes: int) -> tuple[ModelStep, ...]:
    if len(each.estimator.classes_) != n_classes:
        raise NotSendableError("a model calibrated on folds without all classes")
    inner = _export(each.estimator)
    # scikit-learn calibrates scores where there is a decision function, and probabilities elsewhere.
    steps = inner.scores if inner.response else inner.probabilities
    if each.method == "temperature":
        return (*steps, *_temperature(float(each.calibrators[0].beta_), steps[-1].n_out, scores=inner.response))
    # Of two probabilities the second one is calibrated.
    if steps[-1].n_out == 2:
        steps = (*steps, pick_columns(2, [1]))
    if each.method == "sigmoid":
        factors, offsets = ([-getattr(one, name) for one in each.calibrators] for name in ("a_", "b_"))
        steps = (*steps, stretch(factors, offsets), Elementwise(len(factors), "logistic"))
    else:
        knots, heights = (
            [floats(getattr(one, name)) for one in each.calibrators] for name in ("X_thresholds_", "y_thresholds_")
        )
        lengths = np.array([len(one) for one in knots], dtype=np.int32)
        steps = (*steps, Isotonic(lengths, np.concatenate(knots), np.concatenate(heights)))
    if n_classes == 2:
        return (*steps, Complement())
    return (*steps, Normalise(n_classes))


def _temperature(factor: float, n_scores: int, *, scores: bool) -> tuple[ModelStep, ...]:
    # Of one score, the logits are its negative and itself.
    if n_scores == 1:
        return (Affine(np.array([[-factor, factor]]), np.zeros(2)), Softmax(2))
    logits: tuple[ModelStep, ...] = ()
    if not scores:
        # The logarithm of probabilities has a little added, as in scikit-learn.
        least = 1e-12
        logits = (Scale(np.full(n_scores, -least), np.ones(n_scores)), LogFloor(n_scores, least))
    return (*logits, stretch(np.full(n_scores, factor), np.zeros(n_scores)), Softmax(n_scores))


_EXPORTS: dict[type, Callable[[Any], Sent]] = {
    **{getattr(linear_model, name): linear_classifier for name in _CLASSIFIERS},
    **{getattr(linear_model, name): linear_regressor for name in _REGRESSORS},
    **dict.fromkeys((LinearDiscriminantAnalysis, svm.LinearSVC), linear_classifier),
    svm.LinearSVR: linear_regressor,
    **dict.fromkeys((neural_network.MLPClassifier, neural_network.MLPRegressor), network),
    **dict.fromkeys((tree.DecisionTreeClassifier, tree.DecisionTreeRegressor), tree_model),
    **dict.fromkeys((tree.ExtraTreeClassifier, tree.ExtraTreeRegressor), tree_model),
    **dict.fromkeys((ensemble.RandomForestClassifier, ensemble.RandomForestRegressor), tree_model),
    **dict.fromkeys((ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor), tree_model),
    **dict.fromkeys((ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor), gradient_boosting),
    **dict.fromkeys(
        (ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor), histogram_boosting
    ),
    **dict.fromkeys((ensemble.VotingClassifier, ensemble.VotingRegressor), _vote),
    **dict.fromkeys((LandmarkRidgeClassifier, LandmarkRidgeRegressor), _ridge),
    **dict.fromkeys((AveragedClassifier, AveragedRegressor), _average),
    CalibratedForestClassifier: _forest_calibration,
    calibration.CalibratedClassifierCV: _fold_calibration,
    compose.TransformedTargetRegressor: _target_transform,
    naive_bayes.GaussianNB: _naive_bayes,
    pipeline.Pipeline: _pipeline,
}

SENDABLE: tuple[str, ...] = tuple(sorted(each.__name__ for each in (*_SURVIVAL, *_EXPORTS, *TRANSFORMERS)))
"""Names of the estimators that can be sent, and of the transformers that may be before them in a `Pipeline`."""


def unsendable_part(estimator: Any) -> str | None:
    """Return the class of a part that cannot be sent, as far as can be said before the fit; None if there is none."""
    # A search over parameters sends its best estimator.
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
        return unsendable_part(estimator.estimator)
    if isinstance(estimator, ReceivedPredictor) or type(estimator) in _SURVIVAL:
        return None
    if type(estimator) not in _EXPORTS:
        return type(estimator).__name__
    parts = []
    steps = []
    if isinstance(estimator, pipeline.Pipeline):
        steps = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        parts = [estimator.steps[-1][1]]
    elif isinstance(estimator, calibration.CalibratedClassifierCV):
        if estimator.estimator is not None:
            parts = [estimator.estimator]
    elif isinstance(estimator, ensemble.VotingClassifier | ensemble.VotingRegressor):
        parts = [part for _, part in estimator.estimators if part != "drop"]
    unknown = [type(step).__name__ for step in steps if type(step) not in TRANSFORMERS]
    return next(iter([*unknown, *filter(None, map(unsendable_part, parts))]), None)
