"""Models h that an analyst trains, each with its predictions for rows left out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

from .._constraints import Interval, StrOptions
from .._validation import FloatArray
from ..linalg import Kernel, ridge_path_of_features
from ._refusals import FittedAlready, estimator_kind

# Numbers in the widest table that a batch needs: 64 MiB.
_MOST_NUMBERS = 2**23


def row_batches(
    rows: FloatArray, width: int, *, most_numbers: int = _MOST_NUMBERS, least_rows: int = 1
) -> Iterator[FloatArray]:
    """Cut rows into batches, one of them at least."""
    size = max(least_rows, most_numbers // max(width, 1))
    for start in range(0, max(len(rows), 1), size):
        yield rows[start : start + size]


class _Probable(ClassifierMixin, ABC):
    """A classifier by probabilities that it gives one batch of rows after the other."""

    classes_: NDArray[Any]

    @abstractmethod
    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield class probabilities of one batch of rows after the other."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate(list(self._probabilities(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n_rows,)."""
        most = np.concatenate([np.argmax(batch, axis=1) for batch in self._probabilities(X)])
        return np.asarray(self.classes_[most])


_FOLDS = 5
_OF_ROWS = ("oob_decision_function_", "oob_prediction_", "oob_score_")
_FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")


def fit_left_out(
    estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, *, groups: NDArray[np.intp], judges: FloatArray
) -> tuple[Any, FloatArray | None]:
    """Return a fitted clone, and its predictions for each row when that row is left out.

    In closed form or by trees that did not see the row, where the estimator can; by five folds otherwise.  A row of
    weight 0 takes no part, and is predicted by the model of all others.  Rows of one number in `groups` are left out
    together, and `judges` says how much each row counts where the estimator chooses or calibrates by rows left out.

    Predictions have shape (n_rows,) for numbers, or (n_rows, n_classes) for probabilities in the order of ``classes_``.
    They are None for a classifier that gives none, and where there are not two groups to leave out.
    """
    copy = clone(estimator)
    if hasattr(copy, "fit_left_out"):
        return copy, copy.fit_left_out(X, y, weights, groups=groups, judges=judges)
    if type(copy).__name__ in _FORESTS and copy.bootstrap:
        return forest_left_out(copy, X, y, weights, groups)
    fitted = fit_weighted(copy, X, y, weights)
    if is_classifier(fitted) and not hasattr(fitted, "predict_proba"):
        return fitted, None
    return fitted, _by_folds(estimator, X, y, weights, groups)


class _FittedLeftOut(BaseEstimator, ABC):
    """An estimator that predicts each row, as it is fitted, when that row is left out."""

    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit; see `fit_left_out`."""
        self.fit_left_out(X, y, sample_weight)
        return self

    def fit_left_out(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: NDArray[np.intp] | None = None,
        judges: FloatArray | None = None,
    ) -> FloatArray:
        """Fit, and return predictions for each row when that row is left out.

        Parameters are those of `datacollab.model.fit_left_out`; all rows count alike, and each is left out by itself,
        by default.  The predictions stay with the owner of the rows: the model keeps none of them.
        """
        self._validate_params()
        rows, target = validate_data(self, X, y, dtype=np.float64)
        weights = np.asarray(_check_sample_weight(sample_weight, rows, dtype=np.float64))
        if groups is None:
            groups = np.arange(len(rows))
        if judges is None:
            judges = np.ones(len(rows))
        return self._fit(rows, target, weights, groups, judges)

    @abstractmethod
    def _fit(
        self, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp], judges: FloatArray
    ) -> FloatArray:
        """Fit to checked rows, and return predictions for rows left out."""


def forest_left_out(
    forest: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp]
) -> tuple[Any, FloatArray | None]:
    """Return a fitted forest, and its predictions by trees that did not see the row; by folds where rows go together.

    None in place of predictions where there are not two groups to leave out.
    """
    # A tree that did not draw a row may have drawn another one of its group.
    if len(np.unique(groups)) == len(groups):
        there = weights > 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = clone(forest).set_params(oob_score=True).fit(X[there], y[there], sample_weight=weights[there])
        if is_classifier(fitted):
            left_out = fitted.predict_proba(X)
            left_out[there] = fitted.oob_decision_function_
        else:
            left_out = fitted.predict(X)
            left_out[there] = fitted.oob_prediction_
        fitted.set_params(oob_score=False)
        _forget_rows(fitted)
        # Else every tree saw some row.
        if not any("OOB" in str(each.message) for each in caught):
            return fitted, left_out
    return fit_weighted(clone(forest), X, y, weights), _by_folds(forest, X, y, weights, groups)


def fit_weighted(
    estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, *, strata: NDArray[Any] | None = None
) -> Any:
    """Fit an estimator, or the last step of a pipeline, with weights; rows of weight 0 are not shown to it.

    Strata, one for each row, are passed to an estimator that takes them.  Raise TypeError if weights differ and the
    estimator takes none.
    """
    there = weights > 0
    X = X[there]
    y = y[there]
    weights = weights[there]
    last = estimator
    prefix = ""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        prefix = f"{step}__"
    options = {}
    if strata is not None and has_fit_parameter(last, "strata"):
        options[f"{prefix}strata"] = strata[there]
    # Weights that are all equal change nothing, so an estimator without weights may have them.
    if not np.all(weights == weights[0]):
        if not has_fit_parameter(last, "sample_weight"):
            raise TypeError(
                f"{type(last).__name__} takes no sample_weight, so rows cannot weigh differently; set anchor_weight to "
                "0 or 1 and class_weight to None, or take another model."
            )
        options[f"{prefix}sample_weight"] = weights
    fitted = estimator.fit(X, y, **options)
    _forget_rows(fitted)
    return fitted


def _forget_rows(fitted: Any) -> None:
    """Take out a forest's predictions for rows out of its bag: these are for the row's own party, the model for all."""
    for part in [fitted, *(step for _, step in getattr(fitted, "steps", ()))]:
        for name in _OF_ROWS:
            if name in vars(part):
                delattr(part, name)


def _by_folds(
    estimator: Any, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp]
) -> FloatArray | None:
    n_folds = min(_FOLDS, len(np.unique(groups)))
    there = weights > 0
    classes = np.unique(y[there]) if is_classifier(estimator) else None
    # Stratified folds cannot be more than the largest class has rows.
    if classes is not None:
        n_folds = min(n_folds, int(np.unique(y, return_counts=True)[1].max()))
    if n_folds < 2:
        return None
    left_out = np.zeros(len(y))
    folds: Any = GroupKFold(n_folds, shuffle=True, random_state=0)
    if classes is not None:
        left_out = np.zeros((len(y), len(classes)))
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # Warnings of rare classes and of solvers that stop early: the scores show both.
        warnings.simplefilter("ignore")
        for train, held_out in folds.split(X, y, groups):
            if not there[train].any():
                return None
            fitted = fit_weighted(clone(estimator), X[train], y[train], weights[train])
            if classes is None:
                left_out[held_out] = fitted.predict(X[held_out])
            # A fold may leave a class out, which then has probability 0.
            else:
                columns = np.searchsorted(classes, fitted.classes_)
                left_out[np.ix_(held_out, columns)] = fitted.predict_proba(X[held_out])
    return left_out


# Standard deviation of the offsets under their Gaussian prior.
_SPREAD = 1.0
# Rate of the exponential prior of the logits' spread: few rows are no reason to be certain.
_RATE = 2.0
# Scores that part all rows would have an infinite scale otherwise.
_LARGEST_SCALE = 200.0
_START = 5.0


def softmax_of(scores: FloatArray, scale: float, offsets: FloatArray) -> FloatArray:
    """Return class probabilities, shape (n_rows, n_classes)."""
    return np.asarray(softmax(scale * scores + offsets, axis=1))


def calibrate(scores: FloatArray, codes: NDArray[np.intp], weights: FloatArray) -> tuple[float, FloatArray]:
    r"""Return scale a and offsets b under which scores are the best probabilities, by the log loss.

    One scale keeps the classes' order but for the offsets, which have a Gaussian prior, so that a class that is hardly
    there moves little.  The scale times the scores' spread within rows has an exponential prior, which a few rows do
    not outweigh, so that these get probabilities near the classes' shares.  The problem is convex.
    """
    n_classes = scores.shape[1]
    about = scores - scores.mean(axis=1, keepdims=True)
    rate = 0.0
    if weights.any():
        rate = _RATE * float(np.sqrt(weights @ np.mean(about**2, axis=1) / weights.sum()))
    one_hot = np.eye(n_classes)[codes]

    def objective(parameters: FloatArray) -> tuple[float, FloatArray]:
        a = parameters[0]
        b = parameters[1:]
        logits = a * scores + b
        normaliser = logsumexp(logits, axis=1)
        loss = weights @ (normaliser - np.sum(one_hot * logits, axis=1)) + rate * a + b @ b / (2 * _SPREAD**2)
        # d loss / d logit: the probability, less one at the row's class.
        slopes = weights[:, None] * (np.exp(logits - normaliser[:, None]) - one_hot)
        return float(loss), np.concatenate([[np.sum(slopes * scores) + rate], slopes.sum(axis=0) + b / _SPREAD**2])

    bounds = [(0.0, _LARGEST_SCALE)] + [(None, None)] * n_classes
    start = np.concatenate([[_START], np.zeros(n_classes)])
    solution = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    # The softmax is the same for offsets that differ by a constant.
    offsets = solution.x[1:]
    return float(solution.x[0]), offsets - offsets.mean()


def log_loss_of(probabilities: FloatArray, codes: NDArray[np.intp]) -> FloatArray:
    """Return minus the logarithm of the probability that each row's class was given, shape (n_rows,)."""
    chosen = probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(chosen, np.finfo(float).tiny)))


# Smallest probability before its logarithm is taken: trees that agree are not certain.
FLOOR = 1e-3


class CalibratedForestClassifier(_Probable, _FittedLeftOut):
    r"""Random forest with probabilities :math:`\mathrm{softmax}(a \log p(x) + b)`, a and b from rows left out.

    The forest is ``estimator_``, a is ``scale_``, and b, shape (n_classes,), is ``offsets_``.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    estimator_: RandomForestClassifier
    scale_: float
    offsets_: FloatArray

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(
        self, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp], judges: FloatArray
    ) -> FloatArray:
        forest = RandomForestClassifier(self.n_estimators, n_jobs=self.n_jobs, random_state=self.random_state)
        self.estimator_, left_out = forest_left_out(forest, X, y, weights, groups)
        if left_out is None:
            raise ValueError(f"{type(self).__name__}: n_samples={len(X)} of one group, so none can be left out.")
        self.classes_ = self.estimator_.classes_
        scores = _log(left_out)
        judged = (judges > 0) & np.isin(y, self.classes_)
        codes = np.searchsorted(self.classes_, y)
        self.scale_, self.offsets_ = calibrate(scores[judged], codes[judged], judges[judged])
        return softmax_of(scores, self.scale_, self.offsets_)

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        yield softmax_of(_log(self.estimator_.predict_proba(rows)), self.scale_, self.offsets_)


def _log(probabilities: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probabilities, FLOOR)))


ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Directions of the landmarks' span with a smaller part of the largest eigenvalue are rounding.
_RANK = 1e-9


class _LandmarkRidge(_FittedLeftOut):
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "landmarks": ["array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"rbf", "linear"})],
        "alphas": ["array-like"],
    }

    coefficients_: FloatArray
    intercept_: FloatArray
    alpha_: float

    def __init__(
        self,
        landmarks: ArrayLike | None = None,
        *,
        kernel: str = "rbf",
        gamma: float = 1.0,
        alphas: Sequence[float] = ALPHAS,
    ) -> None:
        self.landmarks = landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.alphas = alphas

    def _features(self, X: FloatArray) -> FloatArray:
        if self.kernel == "linear":
            return X
        kernel = Kernel(metric="rbf", parameters={"gamma": self.gamma})
        return np.asarray(kernel.between(X, np.asarray(self.landmarks, dtype=np.float64)))

    def _root(self, n_features: int) -> FloatArray:
        r"""Return R with :math:`R R^\top = \kappa(S, S)^+`, which makes the penalty that of plain ridge regression."""
        if self.kernel == "linear":
            return np.eye(n_features)
        if self.landmarks is None:
            raise ValueError(f"{type(self).__name__}: the kernel 'rbf' needs landmarks, such as anchor rows; got None.")
        S = np.asarray(self.landmarks, dtype=np.float64)
        if S.ndim != 2 or S.shape[1] != n_features:
            raise ValueError(
                f"{type(self).__name__}: landmarks must have the {n_features} columns of the rows; got shape {S.shape}."
            )
        # Equal landmarks make the kernel matrix singular, and a pseudoinverse without their directions is exact.
        eigenvalues, U = scipy.linalg.eigh(self._features(S), overwrite_a=True)
        kept = eigenvalues > _RANK * eigenvalues[-1]
        return np.asarray(U[:, kept] / np.sqrt(eigenvalues[kept]))

    def _scores(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield scores of one batch of rows after the other."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        width = max(len(self.coefficients_), np.size(self.intercept_))
        for batch in row_batches(rows, width):
            yield np.asarray(self._features(batch) @ self.coefficients_ + self.intercept_)


class LandmarkRidgeClassifier(_Probable, _LandmarkRidge):
    """Kernel ridge regression of one-hot classes on landmarks, with calibrated probabilities.

    The penalty with the smallest log loss on rows left out is taken, in closed form for all rows; the scale and the
    offsets of the softmax are fitted to these left-out scores.  The probabilities are ``softmax(scale_ * F(x) +
    offsets_)``, with F of ``coefficients_``, shape (n_landmarks, n_classes), and ``intercept_``.  ``alpha_`` is the
    penalty taken.

    Parameters
    ----------
    landmarks : array-like of shape (n_landmarks, n_components), default=None
        S, rows that may be shown to everybody who gets the model: anchor rows.  Not needed by the linear kernel.
    kernel : {"rbf", "linear"}, default="rbf"
    gamma : float, default=1.0
        Width parameter of the RBF kernel.
    alphas : sequence of float
        Penalties to choose from.
    """

    scale_: float
    offsets_: FloatArray

    def _fit(
        self, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp], judges: FloatArray
    ) -> FloatArray:
        check_classification_targets(y)
        root = self._root(X.shape[1])
        path = ridge_path_of_features(self._features(X) @ root, weights)
        classes = np.unique(y[path.weights > 0])
        T = (y[:, None] == classes).astype(np.float64)
        codes = np.argmax(T, axis=1)
        judged = (judges > 0) & T.any(axis=1)
        best = None
        # Of equally good ones the largest penalty is taken.
        for alpha in sorted(self.alphas, reverse=True):
            scores = path.predict_left_out(alpha, T, groups)
            scale, offsets = calibrate(scores[judged], codes[judged], judges[judged])
            probabilities = softmax_of(scores, scale, offsets)
            loss = float(judges[judged] @ log_loss_of(probabilities[judged], codes[judged]))
            if best is None or loss < best[0]:
                best = loss, alpha, scale, offsets, probabilities
        assert best is not None
        _, alpha, self.scale_, self.offsets_, probabilities = best
        coefficients, self.intercept_ = path.solve(alpha, T)
        self.classes_ = classes
        self.alpha_ = float(alpha)
        self.coefficients_ = root @ coefficients
        return probabilities

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        for scores in self._scores(X):
            yield softmax_of(scores, self.scale_, self.offsets_)


class LandmarkRidgeRegressor(RegressorMixin, _LandmarkRidge):
    """Kernel ridge regression of numbers on landmarks; see `LandmarkRidgeClassifier`.

    The penalty with the smallest squared error on rows left out is taken, in closed form for all rows.  Coefficients
    have one column, and there is no calibration.
    """

    def _fit(
        self, X: FloatArray, y: NDArray[Any], weights: FloatArray, groups: NDArray[np.intp], judges: FloatArray
    ) -> FloatArray:
        root = self._root(X.shape[1])
        path = ridge_path_of_features(self._features(X) @ root, weights)
        T = np.asarray(y, dtype=np.float64)[:, None]
        left_out = {alpha: path.predict_left_out(alpha, T, groups)[:, 0] for alpha in sorted(self.alphas, reverse=True)}
        alpha = min(left_out, key=lambda each: float(judges @ (left_out[each] - T[:, 0]) ** 2))
        coefficients, intercept = path.solve(alpha, T)
        self.alpha_ = float(alpha)
        self.coefficients_ = root @ coefficients[:, 0]
        self.intercept_ = intercept[0]
        return left_out[alpha]

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return predicted numbers, shape (n_rows,)."""
        return np.concatenate(list(self._scores(X)))


class _Averaged(FittedAlready):
    def __init__(self, estimators: Sequence[Any], weights: Sequence[float] | FloatArray) -> None:
        self.estimators = self.estimators_ = list(estimators)
        self.weights = [float(weight) for weight in np.ravel(weights)]
        shares = np.asarray(weights, dtype=np.float64)
        if not self.estimators:
            raise ValueError(f"{type(self).__name__}: estimators is empty; name at least one.")
        is_share = np.isfinite(shares) & (shares >= 0)
        if shares.shape != (len(self.estimators),) or not is_share.all() or not shares.any():
            raise ValueError(
                f"{type(self).__name__}: weights must be {len(self.estimators)} numbers from 0 on, not all 0; got "
                f"{self.weights!r}."
            )
        self.weights_ = shares / shares.sum()
        self.n_features_in_ = self.estimators[0].n_features_in_
        self.name = type(self).__name__

    def _batches(self, X: ArrayLike, width: int) -> Iterator[FloatArray]:
        rows = validate_data(self, X, reset=False)
        return row_batches(rows, max(width, rows.shape[1]))

    def _mean(self, predictions: Iterable[FloatArray]) -> FloatArray:
        """Return the weighted sum, with one term at a time in memory."""
        return np.asarray(sum(weight * each for weight, each in zip(self.weights_, predictions, strict=True)))


class AveragedClassifier(_Probable, _Averaged):
    """Weighted mean of the class probabilities of fitted classifiers; scikit-learn's `VotingClassifier` trains one.

    It takes fitted classifiers with `predict_proba`, and a weight from 0 on for each, not all 0; ``weights_`` add up to
    one.  Its classes are all that any of them knows; to the others a class is impossible.
    """

    def __init__(self, estimators: Sequence[Any], weights: Sequence[float] | FloatArray) -> None:
        super().__init__(estimators, weights)
        self.classes_ = np.unique(np.concatenate([each.classes_ for each in self.estimators]))

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        for rows in self._batches(X, len(self.classes_)):
            yield self._mean(
                probabilities_of(each.predict_proba(rows), each.classes_, self.classes_) for each in self.estimators_
            )


class AveragedRegressor(RegressorMixin, _Averaged):
    """Weighted mean of the predictions of fitted regressors; see `AveragedClassifier`."""

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return predicted numbers, shape (n_rows,)."""
        batches = self._batches(X, 1)
        return np.concatenate([self._mean(each.predict(rows) for each in self.estimators_) for rows in batches])


class Levelled(FittedAlready):
    """A fitted model at the level of one party: its own intercepts beside those of the common model."""

    def __init__(self, estimator: Any, level: FloatArray) -> None:
        self.estimator = estimator
        self.level = level
        self.n_features_in_ = estimator.n_features_in_
        self.name = estimator_kind(estimator)


class LevelledClassifier(_Probable, Levelled):
    r"""With :math:`p_k(c \mid x) \propto p(c \mid x)\, e^{d_{kc}}`; the level d has shape (n_classes,)."""

    def __init__(self, estimator: Any, level: FloatArray) -> None:
        super().__init__(estimator, level)
        self.classes_ = estimator.classes_

    def _probabilities(self, X: ArrayLike) -> Iterator[FloatArray]:
        yield at_level(self.estimator.predict_proba(X), self.level)


class LevelledRegressor(RegressorMixin, Levelled):
    """With a level that is added."""

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return predicted numbers, shape (n_rows,)."""
        return np.asarray(self.estimator.predict(X) + self.level)


def add_level(estimator: Any, level: FloatArray) -> Levelled:
    """Return a fitted classifier or regressor at the level of one party."""
    kind = LevelledClassifier if is_classifier(estimator) else LevelledRegressor
    return kind(getattr(estimator, "best_estimator_", estimator), level)


def at_level(probabilities: FloatArray, level: FloatArray) -> FloatArray:
    """Return class probabilities moved to a party's level, shape (n_rows, n_classes)."""
    raised = probabilities * np.exp(level)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def probabilities_of(probabilities: FloatArray, known: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """Return probabilities of the known classes in the order of more, sorted ones; others get probability 0."""
    spread = np.zeros((len(probabilities), len(classes)))
    spread[:, np.searchsorted(classes, known)] = probabilities
    return spread
