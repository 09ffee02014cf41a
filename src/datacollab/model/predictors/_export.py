"""A fitted estimator as a chain of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import calibration, compose, dummy, ensemble, naive_bayes, neural_network, pipeline, tree
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..._typing import FloatArray
from ...errors import ExchangeError
from .._averaged import AveragedClassifier, AveragedRegressor
from .._calibrated_forest import FLOOR, CalibratedForestClassifier
from .._landmark_ridge import LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._chain import Chain, Mean
from ._columns import Affine, Elementwise, LogFloor, Scale, Stretch
from ._export_columns import TRANSFORMERS, inverse_of_target, transformer
from ._export_linear import LINEAR_CLASSIFIERS, LINEAR_REGRESSORS, linear_classifier, linear_regressor, network
from ._export_survival import SENDABLE_SURVIVAL
from ._export_trees import gradient_boosting, histogram_boosting, tree_model
from ._links import Complement, Isotonic, Normalise, Softmax
from ._normal import NormalDensities
from ._radial import Radial
from ._received import ReceivedClassifier, ReceivedRegressor
from ._sent import NotSendableError, Sent, floats, picked, stretch
from ._step import Step

__all__ = ["SENDABLE", "sent_form"]


def sent_form(estimator: Any) -> ReceivedClassifier | ReceivedRegressor:
    """A fitted estimator as it will be received.

    Parameters
    ----------
    estimator : estimator
        Fitted; of a search over parameters, the best one is taken.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, where no steps describe it.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if isinstance(estimator, ReceivedClassifier | ReceivedRegressor):
        return estimator
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
        sent = _sent(estimator)
    except NotFittedError:
        raise ExchangeError("MODEL_UNSUPPORTED", f"The {name} is not fitted. Train it before it is sent.") from None
    except NotSendableError as error:
        what = str(error)
        held = "" if what in (f"a {name}", f"an {name}") else f": it is or holds {what}"
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"An estimator of type {name} cannot be sent{held}, which cannot be written as plain numbers. Train a "
            "linear or logistic model, a tree, forest or gradient boosting, a network, Gaussian naive Bayes or a "
            "linear discriminant, one of these calibrated, or a soft vote of them, in a pipeline behind scalers, PCA "
            "or a selection of columns; datacollab.model.SENDABLE has their names.",
        ) from None
    if sent.link is None and not hasattr(estimator, "classes_"):
        return ReceivedRegressor(Chain(sent.scores), name=name)
    return ReceivedClassifier(
        Chain((*sent.scores, *(sent.link or ()))),
        np.asarray(estimator.classes_),
        name=name,
        decides=len(sent.scores),
        zero_is_second=sent.zero_is_second,
        probabilities=sent.link is not None,
    )


def _sent(estimator: Any) -> Sent:
    if isinstance(estimator, ReceivedClassifier | ReceivedRegressor):
        return _received(estimator)
    # Not isinstance: a subclass may predict otherwise.
    if type(estimator) not in _EXPORTS:
        raise NotSendableError(f"a {type(estimator).__name__}")
    if isinstance(getattr(estimator, "classes_", None), list):
        raise NotSendableError("a model of several targets")
    return _EXPORTS[type(estimator)](estimator)


def _received(estimator: ReceivedClassifier | ReceivedRegressor) -> Sent:
    """What came as steps, as a part of what is sent on, such as an average of models from several senders."""
    steps = tuple(estimator.chain.steps)
    if isinstance(estimator, ReceivedRegressor):
        return Sent(steps)
    decides = len(steps) if estimator.decides is None else estimator.decides
    link = steps[decides:] if estimator.probabilities else None
    return Sent(steps[:decides], link, zero_is_second=estimator.zero_is_second)


def _pipeline(estimator: Any) -> Sent:
    *before, (_, last) = estimator.steps
    steps = [step for _, fitted in before if fitted not in (None, "passthrough") for step in transformer(fitted)]
    return _sent(last).after(*steps)


def _transformed_target(estimator: Any) -> Sent:
    return Sent((*_sent(estimator.regressor_).scores, *inverse_of_target(estimator.transformer_)))


def _naive_bayes(estimator: Any) -> Sent:
    densities = NormalDensities(
        floats(estimator.theta_), floats(estimator.var_), floats(np.log(estimator.class_prior_))
    )
    return Sent((densities,), (Softmax(densities.n_out),))


def _constant(estimator: Any) -> Sent:
    if isinstance(estimator, dummy.DummyClassifier):
        if estimator.strategy in ("stratified", "uniform"):
            raise NotSendableError("a model that draws its answers")
        said = estimator.predict_proba(np.zeros((1, estimator.n_features_in_)))[0]
    else:
        said = np.reshape(estimator.constant_, -1)
        if len(said) != 1:
            raise NotSendableError("a model of several targets")
    affine = Affine(np.zeros((estimator.n_features_in_, len(said))), floats(said))
    return Sent((affine,), () if isinstance(estimator, dummy.DummyClassifier) else None)


def _ridge(estimator: Any) -> Sent:
    coefficients = floats(estimator.coefficients_).reshape(len(estimator.coefficients_), -1)
    steps: tuple[Step, ...] = (Affine(coefficients, floats(estimator.intercept_).reshape(-1)),)
    if estimator.kernel == "rbf":
        steps = (Radial(floats(estimator.landmarks), float(estimator.gamma)), *steps)
    if isinstance(estimator, LandmarkRidgeRegressor):
        return Sent(steps)
    steps = (*steps, _calibration(estimator))
    return Sent(steps, (Softmax(steps[-1].n_out),))


def _calibrated_forest(estimator: Any) -> Sent:
    forest = _sent(estimator.estimator_).probabilities
    return Sent((*forest, LogFloor(forest[-1].n_out, FLOOR), _calibration(estimator)), (Softmax(forest[-1].n_out),))


def _calibration(estimator: Any) -> Stretch:
    return stretch(np.full(len(estimator.offsets_), float(estimator.scale_)), estimator.offsets_)


def _vote(estimator: Any) -> Sent:
    if getattr(estimator, "voting", "soft") != "soft":
        raise NotSendableError("a vote by majority")
    weights = estimator._weights_not_none
    weights = np.ones(len(estimator.estimators_)) if weights is None else floats(weights)
    is_regressor = isinstance(estimator, ensemble.VotingRegressor)
    models = [_sent(each) for each in estimator.estimators_]
    chains = [each.scores if is_regressor else each.probabilities for each in models]
    return Sent((_mean(weights, chains),), None if is_regressor else ())


def _average(estimator: Any) -> Sent:
    if isinstance(estimator, AveragedRegressor):
        chains = [_sent(each).scores for each in estimator.estimators_]
        return Sent((_mean(estimator.weights_, chains),))
    chains = []
    for each in estimator.estimators_:
        known = np.searchsorted(estimator.classes_, each.classes_)
        spread = Affine(np.eye(len(estimator.classes_))[known], np.zeros(len(estimator.classes_)))
        chains.append((*_sent(each).probabilities, spread))
    return Sent((_mean(estimator.weights_, chains),), ())


def _mean(weights: FloatArray, chains: list[tuple[Step, ...]]) -> Mean:
    return Mean(weights / weights.sum(), [Chain(steps) for steps in chains])


def _calibrated_by_folds(estimator: Any) -> Sent:
    chains = [_calibrated_once(each, len(estimator.classes_)) for each in estimator.calibrated_classifiers_]
    return Sent((_mean(np.ones(len(chains)), chains),), ())


def _calibrated_once(each: Any, n_classes: int) -> tuple[Step, ...]:
    if len(each.estimator.classes_) != n_classes:
        raise NotSendableError("a model calibrated on folds without all classes")
    inner = _sent(each.estimator)
    steps = inner.scores if inner.response else inner.probabilities
    if each.method == "temperature":
        return (*steps, *_temperature(float(each.calibrators[0].beta_), steps[-1].n_out, scores=inner.response))
    if steps[-1].n_out == 2:
        steps = (*steps, picked(2, [1]))
    if each.method == "sigmoid":
        factors, offsets = ([-getattr(one, name) for one in each.calibrators] for name in ("a_", "b_"))
        steps = (*steps, stretch(factors, offsets), Elementwise(len(factors), "logistic"))
    else:
        knots, heights = (
            [floats(getattr(one, name)) for one in each.calibrators] for name in ("X_thresholds_", "y_thresholds_")
        )
        lengths = np.array([len(one) for one in knots], dtype=np.int32)
        steps = (*steps, Isotonic(lengths, np.concatenate(knots), np.concatenate(heights)))
    return (*steps, Complement() if n_classes == 2 else Normalise(n_classes))


def _temperature(factor: float, n_scores: int, *, scores: bool) -> tuple[Step, ...]:
    if n_scores == 1:
        return (Affine(np.array([[-factor, factor]]), np.zeros(2)), Softmax(2))
    logits: tuple[Step, ...] = ()
    if not scores:
        # The logarithm of probabilities has a little added, as in scikit-learn.
        least = 1e-12
        logits = (Scale(np.full(n_scores, -least), np.ones(n_scores)), LogFloor(n_scores, least))
    return (*logits, stretch(np.full(n_scores, factor), np.zeros(n_scores)), Softmax(n_scores))


_EXPORTS: dict[type, Callable[[Any], Sent]] = {
    **dict.fromkeys(LINEAR_CLASSIFIERS, linear_classifier),
    **dict.fromkeys(LINEAR_REGRESSORS, linear_regressor),
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
    **dict.fromkeys((dummy.DummyClassifier, dummy.DummyRegressor), _constant),
    **dict.fromkeys((LandmarkRidgeClassifier, LandmarkRidgeRegressor), _ridge),
    **dict.fromkeys((AveragedClassifier, AveragedRegressor), _average),
    CalibratedForestClassifier: _calibrated_forest,
    calibration.CalibratedClassifierCV: _calibrated_by_folds,
    compose.TransformedTargetRegressor: _transformed_target,
    naive_bayes.GaussianNB: _naive_bayes,
    pipeline.Pipeline: _pipeline,
}

SENDABLE: tuple[str, ...] = tuple(sorted([*SENDABLE_SURVIVAL, *(each.__name__ for each in (*_EXPORTS, *TRANSFORMERS))]))
"""Names of the estimators that can be sent, and of the transformers that may be before them in a `Pipeline`."""
