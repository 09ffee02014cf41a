"""Predictors made of steps: classifiers, regressors, clusters and survival models; as facts and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from .._typing import FloatArray
from ..survival import Baseline, SurvivalModel
from ._models import row_batches
from ._refusals import FittedAlready, bad_predictor, check_classes, class_names, large_predictor
from ._steps import (
    Affine,
    Budget,
    Elementwise,
    LogFloor,
    ModelStep,
    NormalDensities,
    Parts,
    Scale,
    Softmax,
    StepChain,
    Stretch,
    read_chain,
)

# Numbers in the widest table that a batch needs: such a table stays in a processor's cache.
_MOST_NUMBERS = 2**18
_LEAST_BATCH = 64
_MOST_NAME = 200
_MOST_TIMES = 100_000
# Columns of a covariance: its eigenvalues are computed.
_MOST_COLUMNS = 1_000
_ROUNDING = 1e-6
# Fact of survival models alone, and what the names of their own arrays begin with.
_SURVIVAL = "survival"


class ReceivedPredictor(FittedAlready):
    """A predictor made of steps."""

    chain: StepChain

    @property
    def n_features_in_(self) -> int:
        """Columns that it takes."""
        return self.chain.n_in

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the number of each row, shape (n_rows,)."""
        return np.concatenate([self.chain(rows)[:, 0] for rows in self._batches(X)])

    def _batches(self, X: ArrayLike) -> Iterator[FloatArray]:
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return row_batches(rows, self.chain.width, most_numbers=_MOST_NUMBERS, least_rows=_LEAST_BATCH)


class ReceivedClassifier(ClassifierMixin, ReceivedPredictor):
    """A classifier made of steps; the last gives a probability, or a score, for each class.

    The class is decided after `decides` steps: it is the one with the largest score, or of two classes with one score
    the second where that is above 0 (or 0, if `zero_is_second`).  Of others than `probabilities` there is no
    `predict_proba`.  `name` is that of the class that was trained.
    """

    def __init__(
        self,
        chain: StepChain,
        classes: NDArray[Any],
        *,
        name: str,
        decides: int,
        zero_is_second: bool = False,
        probabilities: bool = True,
    ) -> None:
        self.chain = chain
        self.classes = self.classes_ = classes
        self.name = name
        self.decides = decides
        self.zero_is_second = zero_is_second
        self.probabilities = probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row, shape (n_rows,)."""
        scores_of = StepChain(self.chain.steps[: self.decides])
        codes = [self._decide(scores_of(rows)) for rows in self._batches(X)]
        return np.asarray(self.classes[np.concatenate(codes)])

    @available_if(lambda self: self.probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate([self.chain(rows) for rows in self._batches(X)])

    def _decide(self, scores: FloatArray) -> NDArray[np.intp]:
        if scores.shape[1] == len(self.classes):
            return np.asarray(np.argmax(scores, axis=1))
        # Of two classes there is one score; scikit-learn's models differ in the class of a score of zero.
        if self.zero_is_second:
            return (scores[:, 0] >= 0).astype(np.intp)
        return (scores[:, 0] > 0).astype(np.intp)


class ReceivedRegressor(RegressorMixin, ReceivedPredictor):
    """A regressor made of steps; see `ReceivedClassifier`.  The last table of the chain has one column."""

    def __init__(self, chain: StepChain, *, name: str) -> None:
        self.chain = chain
        self.name = name


class ReceivedSurvival(ReceivedPredictor, SurvivalModel):
    """A survival model made of steps to the log risk, and a baseline of the party's own rows, or of all parties' rows.

    A Cox regression, whose chain is (x - mean) β, has ``coef_`` and ``mean_``, shape (n_features,), and
    ``covariance_``.
    """

    def __init__(
        self, chain: StepChain, baseline: Baseline, *, name: str, baseline_of: str, covariance: FloatArray | None = None
    ) -> None:
        self.chain = chain
        self.baseline = baseline
        self.name = name
        self.baseline_of = baseline_of
        self.covariance = covariance
        self.baselines_ = {None: baseline}
        if covariance is not None:
            centred, product = chain.steps
            assert isinstance(centred, Scale)
            assert isinstance(product, Affine)
            self.coef_ = product.coefficients[:, 0]
            self.mean_ = centred.centre
            self.covariance_ = covariance


def write_predictor(estimator: ReceivedPredictor) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts of a predictor, which JSON can hold, and its arrays."""
    steps, arrays = estimator.chain.to_parts()
    facts: dict[str, Any] = {"name": estimator.name, "steps": steps, "classes": None, "classes_dtype": None}
    if isinstance(estimator, ReceivedClassifier):
        facts["classes"], facts["classes_dtype"] = class_names(estimator.classes)
        facts |= {name: getattr(estimator, name) for name in ("decides", "zero_is_second", "probabilities")}
    elif isinstance(estimator, ReceivedSurvival):
        facts[_SURVIVAL] = {"baseline": estimator.baseline_of}
        own = {"times": estimator.baseline.times, "cumulative_hazard": estimator.baseline.cumulative_hazard}
        if estimator.covariance is not None:
            own["covariance"] = estimator.covariance
        arrays |= {f"{_SURVIVAL}.{name}": each for name, each in own.items()}
    return facts, arrays


def read_predictor(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_columns: int) -> ReceivedPredictor:
    """Return the predictor that facts and arrays describe, after checks of every part."""
    # Each part is taken out as it is read; a part that remains in the end belongs to nothing.
    remaining = dict(arrays)
    budget = Budget()
    parts = Parts(facts, remaining, "", budget)
    parts.facts.pop("form", None)
    name = parts.facts.pop("name", None)
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > _MOST_NAME:
        raise bad_predictor("does not have a name that is one")
    dtype = parts.facts.pop("classes_dtype", None)
    classes = check_classes(parts.facts.pop("classes", None), dtype)
    of_survival = classes is None and _SURVIVAL in parts.facts
    survival = {}
    if of_survival:
        survival = _read_survival(parts, n_columns)
    chain = read_chain(parts.facts.pop("steps", None), remaining, n_columns, budget=budget)
    if remaining:
        raise bad_predictor("has arrays of none of its steps")
    if classes is not None:
        return _read_classifier(parts, chain, classes, name)
    if dtype is not None:
        raise bad_predictor("has a type of classes, and none")
    if parts.facts:
        raise bad_predictor("says more than an estimator of steps has to say")
    if chain.n_out != 1:
        raise bad_predictor(f"predicts {chain.n_out} numbers for a row; expected one")
    if not of_survival:
        return ReceivedRegressor(chain, name=name)
    if survival["covariance"] is not None:
        _check_cox(chain)
    return ReceivedSurvival(chain, name=name, **survival)


def _read_classifier(parts: Parts, chain: StepChain, classes: NDArray[Any], name: str) -> ReceivedClassifier:
    options = {key: parts.facts.pop(key, None) for key in ("decides", "zero_is_second", "probabilities")}
    decides = options["decides"]
    if parts.facts:
        raise bad_predictor("says more than an estimator of steps has to say")
    if type(decides) is not int or not 0 < decides <= len(chain.steps):
        raise bad_predictor("does not say after which of its steps the class is decided")
    if any(type(options[flag]) is not bool for flag in ("zero_is_second", "probabilities")):
        raise bad_predictor("does not say what its scores mean")
    # One score decides between two classes; otherwise there is one for each.
    n_scores = chain.steps[decides - 1].n_out
    if n_scores != len(classes) and not (n_scores == 1 and len(classes) == 2):
        raise bad_predictor(f"has {n_scores} scores for {len(classes)} classes")
    if options["probabilities"] and chain.n_out != len(classes):
        raise bad_predictor(f"has {chain.n_out} probabilities for {len(classes)} classes")
    return ReceivedClassifier(chain, classes, name=name, **options)


def _read_survival(parts: Parts, n_columns: int) -> dict[str, Any]:
    """Return the baseline, whose it is, and the covariance of a Cox regression's coefficients."""
    own = Parts(parts.facts.pop(_SURVIVAL), parts.arrays, f"{_SURVIVAL}.", parts.budget)
    baseline_of = own.choice("baseline", ("common", "own"))
    if own.facts:
        raise bad_predictor("says more of its baseline than whose hazard it is")
    covariance = None
    # Only a Cox regression has one.
    if own.has("covariance"):
        if n_columns > _MOST_COLUMNS:
            raise large_predictor(f"a covariance of {n_columns} columns; {_MOST_COLUMNS} are allowed")
        covariance = own.table("covariance", (n_columns, n_columns))
        _check_covariance(covariance)
    times = own.table("times", (None,))
    hazard = own.table("cumulative_hazard", times.shape, least=0)
    if len(times) > _MOST_TIMES:
        raise large_predictor(f"{len(times)} steps in its baseline; {_MOST_TIMES} are allowed")
    if times[0] <= 0 or not (np.diff(times) > 0).all() or not (np.diff(hazard) >= 0).all():
        raise bad_predictor("has a baseline that does not ascend")
    return {"baseline": Baseline(times, hazard), "baseline_of": baseline_of, "covariance": covariance}


def _check_covariance(covariance: FloatArray) -> None:
    variances = np.diagonal(covariance)
    if not (variances >= 0).all():
        raise bad_predictor("has negative variances")
    # Columns may be on very different scales, so it is looked at as correlations.
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = covariance / scale / scale[:, None]
    if not (np.abs(correlation - correlation.T) <= _ROUNDING).all() or not (np.abs(correlation) <= 1 + _ROUNDING).all():
        raise bad_predictor("has a covariance that is none")
    # Rounding leaves eigenvalues a little below zero, more of them in larger matrices.
    if np.linalg.eigvalsh(correlation)[0] < -_ROUNDING * len(covariance):
        raise bad_predictor("has a covariance that is not positive")


def _check_cox(chain: StepChain) -> None:
    steps = chain.steps
    # A Cox regression is centring and a product; its covariance is that of the product's coefficients.
    if len(steps) != 2 or not isinstance(steps[0], Scale) or not isinstance(steps[1], Affine):
        raise bad_predictor("has a covariance of coefficients, and is no linear model")
    if (steps[0].spread != 1).any() or steps[1].intercept.any():
        raise bad_predictor("has a covariance of other coefficients than its own")


# Variance of a column that a component does not look at: no square of a row's entries counts beside it.
_ELSEWHERE = 1e60
# Beside the largest density of all; rows of less are as novel as can be said.
_LEAST_DENSITY = 1e-100


def nearest_centre(centres: FloatArray, classes: NDArray[Any], *, name: str = "NearestCentre") -> ReceivedClassifier:
    r"""Return the classifier by the nearest of a few centres, shape (n_centres, n_columns), whose classes ascend.

    As :math:`\|x - c\|^2 = \|x\|^2 - (2 c^\top x - \|c\|^2)`, the nearest has the largest of scores that are linear.
    """
    # About the centres' mean, where squares cancel least.
    middle = centres.mean(axis=0)
    moved = centres - middle
    scores = Affine(2.0 * moved.T, -np.sum(moved**2, axis=1) - 2.0 * moved @ middle)
    return ReceivedClassifier(StepChain((scores,)), classes, name=name, decides=1, probabilities=False)


def mixture_classes(mixture: Any, classes: NDArray[Any]) -> ReceivedClassifier:
    """Return the classifier of rows by components of a fitted `sklearn.mixture.GaussianMixture`; classes ascend."""
    steps = _log_densities(mixture)
    chain = StepChain((*steps, Softmax(len(classes))))
    return ReceivedClassifier(chain, classes, name=type(mixture).__name__, decides=len(steps))


def mixture_novelty(mixture: Any) -> ReceivedRegressor:
    r"""Return a score of novelty, :math:`-\log p(x)` of a fitted `GaussianMixture`, less a constant.

    The constant makes the score 0 at the largest density that a component alone can have.  Scores end at 230 (a density
    of 1e-100 beside that one): rows beyond differ from others, but not from one another.
    """
    peak = float(np.max(np.log(mixture.weights_) + _log_peaks(mixture)))
    *whiten, densities = _log_densities(mixture, less=peak)
    total = Affine(np.ones((densities.n_out, 1)), np.zeros(1))
    steps: tuple[ModelStep, ...] = (*whiten, densities, Elementwise(densities.n_out, "exp"), total)
    negated = Stretch(np.full(1, -1.0), np.zeros(1))
    return ReceivedRegressor(StepChain((*steps, LogFloor(1, _LEAST_DENSITY), negated)), name=type(mixture).__name__)


def _log_densities(mixture: Any, *, less: float = 0.0) -> tuple[ModelStep, ...]:
    """Return steps to log(weight) + log density of each component, less a number.

    Each component's columns are whitened side by side, and it looks at its own alone.
    """
    factors = _precision_roots(mixture)
    n_components, n_columns, _ = factors.shape
    whitened = Affine(
        np.ascontiguousarray(factors.transpose(1, 0, 2).reshape(n_columns, -1)),
        -np.einsum("ki,kij->kj", mixture.means_, factors).reshape(-1),
    )
    own = np.repeat(np.eye(n_components), n_columns, axis=1) > 0
    variances = np.where(own, 1.0, _ELSEWHERE)
    # The step's constants for the variances, those of the other columns included, are taken out again.
    constants = 0.5 * np.sum(np.log(2.0 * np.pi * variances), axis=1)
    priors = np.log(mixture.weights_) + _log_peaks(mixture) + constants - less
    return whitened, NormalDensities(np.zeros(own.shape), variances, priors)


def _log_peaks(mixture: Any) -> FloatArray:
    """Return log density of each component at its mean, shape (n_components,)."""
    factors = _precision_roots(mixture)
    roots = np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum(axis=1)
    return np.asarray(roots - 0.5 * factors.shape[1] * np.log(2.0 * np.pi))


def _precision_roots(mixture: Any) -> FloatArray:
    """Return triangular L_k of shape (n_components, n_columns, n_columns), with inverse covariances L_k L_kᵀ."""
    n_components, n_columns = mixture.means_.shape
    roots = mixture.precisions_cholesky_
    if mixture.covariance_type == "full":
        return np.asarray(roots)
    if mixture.covariance_type == "tied":
        return np.broadcast_to(roots, (n_components, n_columns, n_columns))
    # "diag": a row for each component; "spherical": a number.
    return np.asarray(np.reshape(roots, (n_components, -1, 1)) * np.eye(n_columns))
