"""A model of the anchor's predictions on its raw columns, or a refusal where it would not hold for a party's rows."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .._constraints import Interval
from .._validation import FloatArray, PartyName
from ..errors import AgreementError, AnchorError
from ..linalg import Kernel, full_ridge_path, median_gamma, ridge_with_intercept
from ..model import AnchorPredictions, probabilities_of

# Widths that are tried, as multiples of one over the median squared distance.
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Rows by which width and penalty are chosen; ten decompositions of a matrix of this size take some seconds.
_MOST_TRIED = 1000


class AnchorRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""RBF kernel ridge regression with a free intercept, of one or several numbers at once.

    Parameters that are None are chosen by the squared error on rows left out, one by one and in closed form: whether
    columns are standardised, the width among five multiples of the median one, and the penalty among seven.

    Parameters
    ----------
    gamma : float or None, default=None
        Of :math:`\exp(-\gamma \|x - a\|^2)`, on columns as they are used.
    alpha : float or None, default=None
        Penalty.
    standardize : bool or None, default=None
        Whether each column is brought to mean 0 and variance 1.

    Attributes
    ----------
    gamma_, alpha_, standardize_
        The parameters, given or chosen.
    r2_ : float
        Part of the targets' variance that is predicted of rows left out; slightly flattering where the parameters were
        chosen by it.
    coefficients_ : ndarray of shape (n_rows, n_targets)
    intercept_ : ndarray of shape (n_targets,)

    Notes
    -----
    Of more than 1,000 rows, 1,000 choose: always the same ones, drawn at random.  All are learned from.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "alpha": [Interval(Real, 0, None, closed="neither"), None],
        "standardize": ["boolean", None],
    }

    gamma_: float
    alpha_: float
    standardize_: bool
    r2_: float
    coefficients_: FloatArray
    intercept_: FloatArray

    def __init__(
        self, *, gamma: float | None = None, alpha: float | None = None, standardize: bool | None = None
    ) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.standardize = standardize

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose parameters that are None, and solve for targets of shape (n_rows,) or (n_rows, n_targets).

        Raise ValueError if all rows are equal, so that there is no width.
        """
        self._validate_params()
        rows, target = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        T = np.asarray(target, dtype=np.float64).reshape(len(rows), -1)
        self._is_flat = target.ndim == 1
        error, self.gamma_, self.alpha_, self.standardize_ = self._choose(rows, T)
        self.r2_ = 1 - error
        self._centre, self._scale = _centre_and_scale(rows, self.standardize_)
        self._rows = (rows - self._centre) / self._scale
        self.coefficients_, self.intercept_ = ridge_with_intercept(self._kernel.gram(self._rows), self.alpha_, T)
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return predicted numbers, of shape (n_rows,) or (n_rows, n_targets)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        kernel = self._kernel.between((rows - self._centre) / self._scale, self._rows)
        values = np.asarray(kernel @ self.coefficients_ + self.intercept_)
        if self._is_flat:
            return values[:, 0]
        return values

    @property
    def _kernel(self) -> Kernel:
        return Kernel(metric="rbf", parameters={"gamma": self.gamma_})

    def _choose(self, rows: FloatArray, T: FloatArray) -> tuple[float, float, float, bool]:
        """Return the least error on rows left out, relative to a mean's, and the width, penalty and scaling of it."""
        if len(rows) > _MOST_TRIED:
            tried = np.random.default_rng(0).choice(len(rows), size=_MOST_TRIED, replace=False)
            rows = rows[tried]
            T = T[tried]
        n = len(T)
        # A mean of the other rows misses a row by this.
        spread = float((((T - T.mean(axis=0)) * n / (n - 1)) ** 2).sum())
        best: tuple[float, float, float, bool] | None = None
        scalings = (False, True) if self.standardize is None else (bool(self.standardize),)
        alphas = _ALPHAS if self.alpha is None else (float(self.alpha),)
        for standardize in scalings:
            centre, scale = _centre_and_scale(rows, standardize)
            used = (rows - centre) / scale
            for gamma in self._widths(used):
                path = full_ridge_path(Kernel(metric="rbf", parameters={"gamma": gamma}).gram(used))
                for alpha in alphas:
                    error = float((path.errors_left_out(alpha, T, intercept=True) ** 2).sum())
                    # Targets that are all equal are met by any setting.
                    if spread > 0:
                        error /= spread
                    else:
                        error = 0.0
                    if best is None or error < best[0]:
                        best = error, gamma, alpha, standardize
        assert best is not None
        return best

    def _widths(self, rows: FloatArray) -> list[float]:
        if self.gamma is not None:
            return [float(self.gamma)]
        median = median_gamma(rows)
        if not 0 < median < np.inf:
            raise ValueError("More than half of the distances between rows are 0, or one is infinite; give gamma.")
        return [multiple * median for multiple in _MULTIPLES]


def _centre_and_scale(rows: FloatArray, standardize: bool) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of the columns; 1 for constant ones, and where they are not wanted."""
    scale = rows.std(axis=0) if standardize else np.ones(rows.shape[1])
    return rows.mean(axis=0), np.where(scale > 0, scale, 1.0)


_REPEATS = 5
_MOST_ROWS = 1000


def remoteness(own: FloatArray, anchor: FloatArray) -> float:
    """Return how many times farther the nearest anchor row is than the nearest other own row, on average.

    It is 1 for rows of one distribution, for any number of them.  Columns count by their spread over both.
    """
    scale = np.vstack([own, anchor]).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    own = own / scale
    anchor = anchor / scale
    generator = np.random.default_rng(0)
    # Nearest rows are nearer among more rows, so both are samples of one size.
    size = min(len(own), len(anchor), _MOST_ROWS)
    to_anchor = to_own = 0.0
    for _ in range(_REPEATS):
        mine = own[generator.permutation(len(own))[:size]]
        theirs = anchor[generator.permutation(len(anchor))[:size]]
        to_own += float(NearestNeighbors(n_neighbors=1).fit(mine).kneighbors()[0].mean())
        to_anchor += float(NearestNeighbors(n_neighbors=1).fit(theirs).kneighbors(mine)[0].mean())
    if to_anchor == 0:
        return 0.0
    # Own rows that are all repeated, and none of them in the anchor.
    if to_own == 0:
        return np.inf
    return to_anchor / to_own


# How far rows may be from adding up to one and still be left as they are.
_ONE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DistilledModel:
    """An estimator that `Party.distil` fitted on the anchor's raw columns and its predictions.

    It says nothing of how right the predictions are, only how well they were learned.

    Attributes
    ----------
    party : str or int
    estimator : estimator
        Fitted.  A regressor of predictions, several at once where these are probabilities; or a classifier.
    classes_ : ndarray of shape (n_classes,) or None
        None if targets are numbers.
    r2, agreement : float
        Part of the predictions' variance over the anchor that the estimator meets on rows left out, and the share of
        these that get the class that is predicted; None for numbers.
    remoteness : float or None
        How many times farther the nearest anchor row is from an own row than the nearest own one, if these were given.
    """

    party: PartyName
    estimator: Any
    classes_: NDArray[Any] | None
    r2: float
    agreement: float | None
    remoteness: float | None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict raw rows, of the anchor's columns: classes or numbers, of shape (n_rows,)."""
        if self.classes_ is None or is_classifier(self.estimator):
            return np.asarray(self.estimator.predict(X)).reshape(-1)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities of raw rows, of shape (n_rows, n_classes), in the order of `classes_`.

        A regressor's numbers are cut off at 0 and 1, and made to add up to one.  Models of numbers raise
        AttributeError, and so do classifiers that give none.
        """
        if self.classes_ is None:
            raise AttributeError(f"Party {self.party!r} has a model of numbers, which has no probabilities.")
        return as_probabilities(self.estimator, self.classes_, X)

    def __repr__(self) -> str:
        name = getattr(self.estimator, "steps", [("", self.estimator)])[-1][1]
        return f"DistilledModel(party={self.party!r}, {type(name).__name__}, r2={self.r2:.3f})"


def as_probabilities(estimator: Any, classes: NDArray[Any], X: ArrayLike) -> FloatArray:
    """Return probabilities of all classes by a fitted classifier, which may not know all, or a regressor of them."""
    if is_classifier(estimator):
        return probabilities_of(np.asarray(estimator.predict_proba(X)), estimator.classes_, classes)
    values = np.clip(np.asarray(estimator.predict(X), dtype=np.float64).reshape(-1, len(classes)), 0.0, 1.0)
    totals = values.sum(axis=1, keepdims=True)
    # A row without any gets all classes alike.
    values = np.where(totals > 0, values, 1.0 / len(classes))
    totals = np.where(totals > 0, totals, 1.0)
    return np.asarray(np.where(np.abs(totals - 1.0) <= _ONE, values, values / totals))


SMALLEST_R2 = 0.6
"""With digits, real anchors have .84 to .95 by leave-one-out, interpolated ones .97 and more, uniform ones .29 to .5;
of tables of few columns uniform ones have more, and show by where the own rows are."""
MOST_REMOTE = 1.5
"""With eight tables, real anchors have .9 to 1.15, interpolated ones to 1.2, normal ones to 1.45, uniform ones 1.6 and
more; parties with rows of two classes of ten have 1.3."""
_FEWEST_ANCHORS = 20
# Fewer own rows say little on how far rows lie from one another.
_FEWEST_ROWS = 10
_FOLDS = 5


def distil_predictions(
    party: PartyName,
    anchor: ArrayLike,
    predictions: AnchorPredictions,
    estimator: Any = None,
    *,
    rows: ArrayLike | None = None,
) -> DistilledModel:
    """Fit an estimator to predictions on an anchor; see `Party.distil`, where parameters and errors are described."""
    columns = _check_anchor(party, anchor, predictions)
    far = None if rows is None else _check_remoteness(party, rows, columns)
    _check_estimator(party, estimator, predictions)
    ridge = AnchorRidge().fit(columns, predictions.values)
    if estimator is None:
        estimator = AnchorRidge(gamma=ridge.gamma_, alpha=ridge.alpha_, standardize=ridge.standardize_)
    values = predictions.values
    left_out = _predict_left_out(estimator, anchor, predictions)
    r2 = 1.0 - float(((values - left_out) ** 2).sum()) / float(((values - values.mean(axis=0)) ** 2).sum())
    # An estimator that suits the predictions less than a smooth function does says nothing against the anchor.
    if (reached := max(r2, ridge.r2_)) < SMALLEST_R2:
        raise _unfit(
            party,
            f"of what the predictions vary by, {max(reached, 0.0):.0%} can be said of anchor rows left out, and "
            f"{SMALLEST_R2:.0%} are needed. The anchor's rows lie too far from one another, or in another order than "
            "when they were shared",
        )
    agreement = None
    if values.ndim == 2:
        agreement = float(np.mean(left_out.argmax(axis=1) == values.argmax(axis=1)))
    return DistilledModel(
        party=party,
        estimator=fit_to_predictions(estimator, anchor, values, predictions.classes),
        classes_=predictions.classes,
        r2=r2,
        agreement=agreement,
        remoteness=far,
    )


def _check_anchor(party: PartyName, anchor: ArrayLike, predictions: AnchorPredictions) -> FloatArray:
    """Return the anchor as numbers, which the predictions have to belong to."""
    if not isinstance(predictions, AnchorPredictions):
        raise TypeError(
            f"Expected AnchorPredictions (see Collaboration.anchor_predictions), got {type(predictions).__name__}."
        )
    if predictions.party != party:
        raise AgreementError(
            f"Party {party!r} was given the predictions made for {predictions.party!r}; ask the analyst for its own."
        )
    columns = _numbers(anchor, f"Party {party!r}: the anchor")
    if len(columns) != predictions.n_anchors:
        raise AgreementError(
            f"Party {party!r}: there are predictions on {predictions.n_anchors} anchor rows, and the anchor has "
            f"{len(columns)}. Give the anchor that was shared, in its order."
        )
    if len(columns) < _FEWEST_ANCHORS:
        raise _unfit(party, f"the anchor has {len(columns)} rows, fewer than {_FEWEST_ANCHORS}")
    # Nothing can be said of a share of the variance where there is none.
    if not np.ptp(predictions.values, axis=0).any():
        raise _unfit(party, "the predictions on all rows are the same, so there is nothing to learn")
    return columns


def _check_remoteness(party: PartyName, rows: ArrayLike, anchor: FloatArray) -> float:
    own = _numbers(rows, f"Party {party!r}: the own rows")
    if own.shape[1] != anchor.shape[1] or len(own) < _FEWEST_ROWS:
        raise ValueError(
            f"Party {party!r}: rows must be at least {_FEWEST_ROWS} of its own, with the anchor's {anchor.shape[1]} "
            f"columns; got shape {own.shape}."
        )
    far = remoteness(own, anchor)
    if far > MOST_REMOTE:
        raise _unfit(
            party,
            f"the nearest anchor row is {far:.1f} times as far from an own row as the nearest own one, and "
            f"{MOST_REMOTE} times are allowed. The anchor lies where the party has no rows",
        )
    return far


def _numbers(table: ArrayLike, what: str) -> FloatArray:
    try:
        columns = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        columns = np.empty(0)
    if columns.ndim != 2 or not columns.size or not np.isfinite(columns).all():
        raise AnchorError(f"{what} must be a table of finite numbers. Encode texts, and fill in what is missing.")
    return columns


def _check_estimator(party: PartyName, estimator: Any, predictions: AnchorPredictions) -> None:
    if estimator is None or is_regressor(estimator):
        return
    if not is_classifier(estimator):
        raise TypeError(
            f"Party {party!r}: expected a classifier or regressor of scikit-learn, got {type(estimator).__name__}."
        )
    if predictions.classes is None:
        raise TypeError(
            f"Party {party!r}: the predictions are numbers; a {type(estimator).__name__} cannot learn them."
        )


def _predict_left_out(estimator: Any, anchor: ArrayLike, predictions: AnchorPredictions) -> FloatArray:
    """Return predictions for anchor rows left out, by five folds, in the layout of the given ones."""
    values = predictions.values
    classes = predictions.classes
    left_out = np.empty(values.shape)
    for learned, others in KFold(_FOLDS, shuffle=True, random_state=0).split(values):
        fitted = fit_to_predictions(estimator, _safe_indexing(anchor, learned), values[learned], classes)
        left_out[others] = _predict_values(fitted, _safe_indexing(anchor, others), classes)
    return left_out


def _predict_values(fitted: Any, rows: ArrayLike, classes: NDArray[Any] | None) -> FloatArray:
    if classes is None:
        return np.asarray(fitted.predict(rows), dtype=np.float64).reshape(-1)
    # A classifier without probabilities is certain of the class that it names.
    if is_classifier(fitted) and not hasattr(fitted, "predict_proba"):
        return np.asarray(np.asarray(fitted.predict(rows))[:, None] == classes, dtype=np.float64)
    return as_probabilities(fitted, classes, rows)


def fit_to_predictions(estimator: Any, anchor: ArrayLike, values: FloatArray, classes: NDArray[Any] | None) -> Any:
    """Return a fitted clone: a regressor, or a classifier of each row with every class by its probability.

    Values have the shape (n_anchors,) or (n_anchors, n_classes); classes (n_classes,), or None for numbers.
    """
    copy = clone(estimator)
    if classes is None or is_regressor(copy):
        return copy.fit(anchor, values)
    last = copy
    name = "sample_weight"
    if isinstance(copy, Pipeline):
        step, last = copy.steps[-1]
        name = f"{step}__sample_weight"
    if not has_fit_parameter(last, "sample_weight"):
        return copy.fit(anchor, classes[values.argmax(axis=1)])
    # Each row stands there once for each class that is possible for it, weighing as much as that is probable.
    rows, codes = np.nonzero(values > 0)
    return copy.fit(_safe_indexing(anchor, rows), classes[codes], **{name: values[rows, codes]})


def _unfit(party: PartyName, reason: str) -> AnchorError:
    return AnchorError(
        f"Party {party!r}: nothing can be distilled from these predictions that would hold for its rows, for {reason}. "
        "Ask the analyst for a model instead, or agree on an anchor of rows like the parties'."
    )
