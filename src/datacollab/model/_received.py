"""Predictors made of steps: chains, classifiers, regressors, clusters and survival models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from .._typing import FloatArray
from ..survival import Baseline, SurvivalModel
from ._from_elsewhere import FromElsewhere, bad_predictor, check_classes, class_names, large_predictor
from ._models import row_batches
from ._steps import (
    MOST_NUMBER,
    MOST_WIDTH,
    Affine,
    Binary,
    Budget,
    Clip,
    Complement,
    Elementwise,
    Isotonic,
    LogFloor,
    NormalDensities,
    Normalise,
    Parts,
    Radial,
    Scale,
    Softmax,
    Step,
    Stretch,
)
from ._trees import Trees

_MOST_STEPS = 100
_MOST_PARTS = 1_000
_MOST_NESTED = 4


class Chain:
    """Steps, at least one; each takes what the one before gives.

    Parameters
    ----------
    steps : sequence of Step
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.n_in, self.n_out = self.steps[0].n_in, self.steps[-1].n_out

    def __repr__(self) -> str:
        return f"Chain({', '.join(step.kind for step in self.steps)})"

    def __call__(self, rows: FloatArray) -> FloatArray:
        for step in self.steps:
            rows = step(rows)
        return rows

    @property
    def width(self) -> int:
        """Columns of the widest table on the way."""
        inner = [step.width if isinstance(step, Mean) else step.n_out for step in self.steps]
        return max([self.n_in, *inner])

    def written(self, path: str = "") -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
        """Return facts of the steps, and their arrays under the path."""
        facts: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for number, step in enumerate(self.steps):
            if isinstance(step, Mean):
                own, inner = step.written(f"{path}{number}.")
            else:
                own, inner = step.facts(), {f"{path}{number}.{name}": each for name, each in step.arrays().items()}
            facts.append({"kind": step.kind} | own)
            arrays |= inner
        return facts, arrays


class Mean(Step):
    """Σ w_j h_j(x) over chains h_j."""

    kind = "mean"

    def __init__(self, weights: FloatArray, chains: Sequence[Chain]) -> None:
        self.weights, self.chains = weights, tuple(chains)
        self.n_in, self.n_out = chains[0].n_in, chains[0].n_out
        self.width = max(chain.width for chain in chains)

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = np.zeros((len(rows), self.n_out))
        if (self.weights == self.weights[0]).all():
            # In scikit-learn's order of adding and dividing, so that ties stay ties.
            for chain in self.chains:
                total += chain(rows)
            return total / len(self.chains)
        for weight, chain in zip(self.weights, self.chains, strict=True):
            total += weight * chain(rows)
        return total

    def written(self, path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return facts and arrays of all chains, whose arrays have their numbers in the path."""
        facts: list[Any] = []
        arrays: dict[str, NDArray[Any]] = {f"{path}weights": self.weights}
        for number, chain in enumerate(self.chains):
            steps, inner = chain.written(f"{path}{number}.")
            facts.append(steps)
            arrays |= inner
        return {"chains": facts}, arrays

    @classmethod
    def read(cls, parts: Parts, n_in: int, nested: int = 0) -> Self:
        listed = parts.listed("chains")
        if nested >= _MOST_NESTED or len(listed) > _MOST_PARTS:
            raise large_predictor(
                f"{len(listed)} models in one another; {_MOST_PARTS}, {_MOST_NESTED} deep, are allowed"
            )
        weights = parts.table("weights", (len(listed),), most=1)
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
            raise bad_predictor("has weights that are not positive, or do not add up to one")
        chains = [
            read_chain(steps, parts.arrays, n_in, path=f"{parts.path}{number}.", nested=nested + 1, budget=parts.budget)
            for number, steps in enumerate(listed)
        ]
        if len({chain.n_out for chain in chains}) > 1:
            raise bad_predictor("is the mean of models with different numbers of columns")
        return cls(weights, chains)


_KINDS: dict[str, type[Step]] = {
    step.kind: step
    for step in (
        *(Affine, Binary, Clip, Complement, Elementwise, Isotonic, LogFloor, Mean, NormalDensities, Normalise),
        *(Radial, Scale, Softmax, Stretch, Trees),
    )
}


def read_chain(
    facts: Any,
    arrays: dict[str, NDArray[Any]],
    n_in: int,
    *,
    path: str = "",
    nested: int = 0,
    budget: Budget | None = None,
) -> Chain:
    """Return the chain that facts and arrays describe; arrays that belong to it are removed from the mapping.

    Parameters
    ----------
    facts : object
        A list with the facts of each step.
    arrays : dict of str to ndarray
    n_in : int
        Columns that it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    if not isinstance(facts, list) or not facts:
        raise bad_predictor("has no list of steps")
    if len(facts) > _MOST_STEPS:
        raise large_predictor(f"{len(facts)} steps; {_MOST_STEPS} are allowed")
    budget = Budget() if budget is None else budget
    steps: list[Step] = []
    n_columns = n_in
    for number, each in enumerate(facts):
        parts = Parts(each, arrays, f"{path}{number}.", budget)
        if parts.kind not in _KINDS:
            raise bad_predictor("has a step of a kind that is not known")
        kind = _KINDS[parts.kind]
        step = Mean.read(parts, n_columns, nested) if kind is Mean else kind.read(parts, n_columns)
        parts.finish()
        budget.spend(step.work, step.calls)
        n_columns = step.n_out
        if n_columns > MOST_WIDTH:
            raise large_predictor(f"{n_columns} columns on the way; {MOST_WIDTH} are allowed")
        steps.append(step)
    return Chain(steps)


_MOST_NUMBERS = 2**18
"""Numbers in the widest table that a batch needs: such a table stays in a processor's cache."""
_LEAST_BATCH = 64
_MOST_NAME = 200


class Received(FromElsewhere):
    """What all models made of steps have in common."""

    chain: Chain

    @property
    def n_features_in_(self) -> int:
        """Columns that it takes."""
        return self.chain.n_in

    def _batches(self, X: ArrayLike) -> Iterator[FloatArray]:
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return row_batches(rows, self.chain.width, most_numbers=_MOST_NUMBERS, least_rows=_LEAST_BATCH)


class ReceivedClassifier(ClassifierMixin, Received):
    """A classifier made of steps.

    Parameters
    ----------
    chain : Chain
        The last of its tables has a probability, or a score, for each class.
    classes : ndarray of shape (n_classes,)
        In ascending order.
    name : str
        Name of the class that was trained.
    decides : int, optional
        After how many steps the class is decided: the one with the largest score, or of two classes with one score the
        second where that is above 0.  After all by default.
    zero_is_second : bool, default=False
        Whether a single score of 0 means the second class.
    probabilities : bool, default=True
        Whether what comes last are probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    def __init__(
        self,
        chain: Chain,
        classes: NDArray[Any],
        *,
        name: str,
        decides: int | None = None,
        zero_is_second: bool = False,
        probabilities: bool = True,
    ) -> None:
        self.chain = chain
        self.classes = classes
        self.name = name
        self.decides = decides
        self.zero_is_second = zero_is_second
        self.probabilities = probabilities

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return self.classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row, shape (n_rows,)."""
        decides = len(self.chain.steps) if self.decides is None else self.decides
        scores_of = Chain(self.chain.steps[:decides])
        codes = [self._decided(scores_of(rows)) for rows in self._batches(X)]
        return np.asarray(self.classes[np.concatenate(codes)])

    @available_if(lambda self: self.probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate([self.chain(rows) for rows in self._batches(X)])

    def _decided(self, scores: FloatArray) -> NDArray[np.intp]:
        if scores.shape[1] == len(self.classes):
            return np.asarray(np.argmax(scores, axis=1))
        second = scores[:, 0] >= 0 if self.zero_is_second else scores[:, 0] > 0
        return second.astype(np.intp)


class ReceivedRegressor(RegressorMixin, Received):
    """A regressor made of steps.

    Parameters
    ----------
    chain : Chain
        Its last table has one column.
    name : str
        Name of the class that was trained.

    Attributes
    ----------
    n_features_in_ : int
    """

    def __init__(self, chain: Chain, *, name: str) -> None:
        self.chain = chain
        self.name = name

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return predicted numbers, shape (n_rows,)."""
        return np.concatenate([self.chain(rows)[:, 0] for rows in self._batches(X)])


def write_predictor(
    estimator: ReceivedClassifier | ReceivedRegressor,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a predictor.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, for classes that are neither texts nor numbers.
    """
    steps, arrays = estimator.chain.written()
    facts: dict[str, Any] = {"name": estimator.name, "steps": steps}
    if isinstance(estimator, ReceivedClassifier):
        facts["classes"], facts["classes_dtype"] = class_names(estimator.classes)
        facts["decides"] = len(steps) if estimator.decides is None else estimator.decides
        facts["zero_is_second"] = estimator.zero_is_second
        facts["probabilities"] = estimator.probabilities
    else:
        facts["classes"] = facts["classes_dtype"] = None
    return facts, arrays


def read_predictor(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_columns: int
) -> ReceivedClassifier | ReceivedRegressor:
    """Return the predictor that facts and arrays describe, after checks of every part.

    Parameters
    ----------
    facts : mapping
    arrays : mapping of str to ndarray
    n_columns : int
        That it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    wanted = {"form", "name", "steps", "classes", "classes_dtype"}
    wanted |= set() if facts.get("classes") is None else {"decides", "zero_is_second", "probabilities"}
    if not facts.keys() <= wanted:
        raise bad_predictor("says more than an estimator of steps has to say")
    name = checked_name(facts)
    classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    left = dict(arrays)
    chain = read_chain(facts.get("steps"), left, n_columns)
    if left:
        raise bad_predictor("has arrays of none of its steps")
    if classes is None:
        if facts.get("classes_dtype") is not None:
            raise bad_predictor("has a type of classes, and none")
        if chain.n_out != 1:
            raise bad_predictor(f"predicts {chain.n_out} numbers for a row; expected one")
        return ReceivedRegressor(chain, name=name)
    decides, zero_is_second, probabilities = (facts.get(key) for key in ("decides", "zero_is_second", "probabilities"))
    if type(decides) is not int or not 0 < decides <= len(chain.steps):
        raise bad_predictor("does not say after which of its steps the class is decided")
    if type(zero_is_second) is not bool or type(probabilities) is not bool:
        raise bad_predictor("does not say what its scores mean")
    n_scores = Chain(chain.steps[:decides]).n_out
    if n_scores != len(classes) and not (n_scores == 1 and len(classes) == 2):
        raise bad_predictor(f"has {n_scores} scores for {len(classes)} classes")
    if probabilities and chain.n_out != len(classes):
        raise bad_predictor(f"has {chain.n_out} probabilities for {len(classes)} classes")
    return ReceivedClassifier(
        chain,
        classes,
        name=name,
        decides=decides,
        zero_is_second=zero_is_second,
        probabilities=probabilities,
    )


def checked_name(facts: Mapping[str, Any]) -> str:
    """Return class of the estimator that was trained."""
    name = facts.get("name")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > _MOST_NAME:
        raise bad_predictor("does not have a name that is one")
    return name


_ELSEWHERE = 1e60
"""Variance of a column that a component does not look at: no square of a row's entries counts beside it."""
_LEAST_DENSITY = 1e-100
"""Beside the largest density of all; rows of less are as novel as can be said."""


def nearest_centre(centres: FloatArray, classes: NDArray[Any], *, name: str = "NearestCentre") -> ReceivedClassifier:
    r"""Return the classifier by the nearest of a few points.

    As :math:`\|x - c\|^2 = \|x\|^2 - (2 c^\top x - \|c\|^2)`, the nearest has the largest of scores that are linear.

    Parameters
    ----------
    centres : ndarray of shape (n_centres, n_columns)
    classes : ndarray of shape (n_centres,)
        Class of each centre, ascending.
    name : str
        Name of the class that was trained.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.model import nearest_centre
    >>> nearest_centre(np.array([[0.0], [10.0]]), np.array([0, 1])).predict([[4.0], [6.0]])
    array([0, 1])
    """
    # About the centres' mean, where squares cancel least.
    middle = centres.mean(axis=0)
    moved = centres - middle
    scores = Affine(2.0 * moved.T, -np.sum(moved**2, axis=1) - 2.0 * moved @ middle)
    return ReceivedClassifier(Chain((scores,)), classes, name=name, probabilities=False)


def mixture_classes(mixture: Any, classes: NDArray[Any]) -> ReceivedClassifier:
    """Return what a fitted `sklearn.mixture.GaussianMixture` says of rows: components and their probabilities.

    Parameters
    ----------
    mixture : GaussianMixture
        With covariances of any type.
    classes : ndarray of shape (n_components,)
        Class of each component, ascending.
    """
    steps = _log_densities(mixture)
    chain = Chain((*steps, Softmax(len(classes))))
    return ReceivedClassifier(chain, classes, name=type(mixture).__name__, decides=len(steps))


def mixture_novelty(mixture: Any) -> ReceivedRegressor:
    r"""Return a score of novelty, :math:`-\log p(x)` of a fitted `GaussianMixture`, less a constant.

    The constant makes the score 0 at the largest density that a component alone can have.  Scores end at 230 (a density
    of 1e-100 beside that one): rows beyond differ from others, but not from one another.

    Parameters
    ----------
    mixture : GaussianMixture
    """
    peak = float(np.max(np.log(mixture.weights_) + _log_peaks(mixture)))
    *whiten, densities = _log_densities(mixture, less=peak)
    total = Affine(np.ones((densities.n_out, 1)), np.zeros(1))
    steps: tuple[Step, ...] = (*whiten, densities, Elementwise(densities.n_out, "exp"), total)
    negated = Stretch(np.full(1, -1.0), np.zeros(1))
    return ReceivedRegressor(Chain((*steps, LogFloor(1, _LEAST_DENSITY), negated)), name=type(mixture).__name__)


def _log_densities(mixture: Any, *, less: float = 0.0) -> tuple[Step, ...]:
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
    # What the step adds for the variances, the log densities of the other columns included, is taken out again.
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


SURVIVAL_PART = "survival"
"""Key of the facts, and what names of arrays begin with, that only survival models have."""
_BASELINES = ("common", "own")
_MOST_TIMES = 100_000
_MOST_COLUMNS = 1_000
"""Columns of a covariance: its eigenvalues are computed."""
_ROUNDING = 1e-6


class ReceivedSurvival(SurvivalModel, Received):
    """A survival model made of steps; of a Cox regression, with its coefficients and their covariance.

    Parameters
    ----------
    chain : Chain
        Its last table has one column, the log risk.
    baseline : Baseline
    name : str
        Name of the class that was trained.
    baseline_of : {"own", "common"}
        Whose hazard the baseline is: of the rows of the party that the model was made for, or of all parties' rows.
    covariance : ndarray of shape (n_features, n_features), optional
        Covariance of the coefficients of a Cox regression; the chain is then (x - mean) β.

    Attributes
    ----------
    baselines_ : dict of None to Baseline
    coef_, mean_ : ndarray of shape (n_features,)
        For a Cox regression only.
    covariance_ : ndarray of shape (n_features, n_features)
        For a Cox regression only.
    n_features_in_ : int
    """

    def __init__(
        self, chain: Chain, baseline: Baseline, *, name: str, baseline_of: str, covariance: FloatArray | None = None
    ) -> None:
        self.chain = chain
        self.baseline = baseline
        self.name = name
        self.baseline_of = baseline_of
        self.covariance = covariance

    @property
    def baselines_(self) -> dict[Any, Baseline]:  # type: ignore[override]
        """The one that was sent."""
        return {None: self.baseline}

    @property
    def coef_(self) -> FloatArray:
        """β."""
        return np.asarray(self._cox()[1].coefficients[:, 0])

    @property
    def mean_(self) -> FloatArray:
        """The row of log risk 0."""
        return self._cox()[0].centre

    @property
    def covariance_(self) -> FloatArray:
        """Covariance of `coef_`."""
        if self.covariance is None:
            raise AttributeError(f"A {self.name} has no coefficients.")
        return self.covariance

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the log risk of each row, shape (n_rows,)."""
        return np.concatenate([self.chain(rows)[:, 0] for rows in self._batches(X)])

    def _cox(self) -> tuple[Scale, Affine]:
        steps = self.chain.steps
        if self.covariance is None or not (isinstance(steps[0], Scale) and isinstance(steps[-1], Affine)):
            raise AttributeError(f"A {self.name} has no coefficients.")
        return steps[0], steps[-1]


def write_survival(estimator: ReceivedSurvival) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and arrays of a survival model."""
    steps, arrays = estimator.chain.written()
    facts: dict[str, Any] = {"name": estimator.name, "steps": steps, "classes": None, "classes_dtype": None}
    facts[SURVIVAL_PART] = {"baseline": estimator.baseline_of}
    found = {"times": estimator.baseline.times, "cumulative_hazard": estimator.baseline.cumulative_hazard}
    if estimator.covariance is not None:
        found["covariance"] = estimator.covariance
    return facts, arrays | {f"{SURVIVAL_PART}.{name}": each for name, each in found.items()}


def read_survival(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_columns: int) -> ReceivedSurvival:
    """Return the survival model that facts and arrays describe, after checks of every part.

    Parameters
    ----------
    facts : mapping
    arrays : mapping of str to ndarray
    n_columns : int
        That it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    if not facts.keys() <= {"form", "name", "steps", "classes", "classes_dtype", SURVIVAL_PART}:
        raise bad_predictor("says more than a survival model has to say")
    if facts.get("classes") is not None or facts.get("classes_dtype") is not None:
        raise bad_predictor("has classes, and a survival model has none")
    about, left = facts[SURVIVAL_PART], dict(arrays)
    if not isinstance(about, Mapping) or about.keys() != {"baseline"} or about["baseline"] not in _BASELINES:
        raise bad_predictor("does not say whose hazard its baseline is")
    covariance = _covariance(left, n_columns)
    baseline = _baseline(left)
    chain = read_chain(facts.get("steps"), left, n_columns)
    if left:
        raise bad_predictor("has arrays of none of its steps")
    if chain.n_out != 1:
        raise bad_predictor(f"predicts {chain.n_out} numbers for a row; expected one")
    if covariance is not None:
        _check_cox(chain)
    name = checked_name(facts)
    return ReceivedSurvival(chain, baseline, name=name, baseline_of=about["baseline"], covariance=covariance)


def _baseline(arrays: dict[str, NDArray[Any]]) -> Baseline:
    times, hazard = (_taken(arrays, name, 1) for name in ("times", "cumulative_hazard"))
    if len(times) > _MOST_TIMES:
        raise large_predictor(f"{len(times)} steps in its baseline; {_MOST_TIMES} are allowed")
    if len(times) != len(hazard) or times[0] <= 0 or hazard[0] < 0:
        raise bad_predictor("has a baseline without one time above 0 for each hazard from 0 on")
    if not (np.diff(times) > 0).all() or not (np.diff(hazard) >= 0).all():
        raise bad_predictor("has a baseline that does not ascend")
    return Baseline(times, hazard)


def _covariance(arrays: dict[str, NDArray[Any]], n_columns: int) -> FloatArray | None:
    if f"{SURVIVAL_PART}.covariance" not in arrays:
        return None
    covariance = _taken(arrays, "covariance", 2)
    if n_columns > _MOST_COLUMNS:
        raise large_predictor(f"a covariance of {n_columns} columns; {_MOST_COLUMNS} are allowed")
    if covariance.shape != (n_columns, n_columns):
        raise bad_predictor("has a covariance of another shape than its columns want")
    variances = np.diagonal(covariance)
    if not (variances >= 0).all():
        raise bad_predictor("has negative variances")
    # Columns may be on very different scales, so it is looked at as correlations.
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = covariance / scale / scale[:, None]
    if not (np.abs(correlation - correlation.T) <= _ROUNDING).all() or not (np.abs(correlation) <= 1 + _ROUNDING).all():
        raise bad_predictor("has a covariance that is none")
    if np.linalg.eigvalsh(correlation)[0] < -_ROUNDING * n_columns:
        raise bad_predictor("has a covariance that is not positive")
    return covariance


def _check_cox(chain: Chain) -> None:
    steps = chain.steps
    if len(steps) != 2 or not isinstance(steps[0], Scale) or not isinstance(steps[1], Affine):
        raise bad_predictor("has a covariance of coefficients, and is no linear model")
    if (steps[0].spread != 1).any() or steps[1].intercept.any():
        raise bad_predictor("has a covariance of other coefficients than its own")


def _taken(arrays: dict[str, NDArray[Any]], name: str, ndim: int) -> FloatArray:
    array = arrays.pop(f"{SURVIVAL_PART}.{name}", None)
    if array is None or array.dtype != np.float64 or array.ndim != ndim or not array.size:
        raise bad_predictor(f"has no {name} of double precision")
    if not (np.abs(array) <= MOST_NUMBER).all():
        raise bad_predictor(f"has {name} that are not finite, or beyond {MOST_NUMBER:g}")
    return array
