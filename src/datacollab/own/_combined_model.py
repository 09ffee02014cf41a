"""A party's own model beside the common one of sums, and the mean of both: made at home, where all of it stays."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._frames import are_missing, plain_column
from .._typing import FloatArray
from ..errors import AgreementError
from ..sums import RidgeSums, SumsModel
from ._own_models import MOST_LOGISTIC_WORK

MOST_OWN_ROWS = 2000
"""Of more rows, an own model learns from so many, taken by chance: it is fitted in seconds, and a table may be long."""
# Fewer rows leave too few for three folds, and for trees that did not see a row.
_FEWEST_OWN_ROWS = 10
_FEW_COLUMNS = 30
_FOLDS: dict[str, Any] = {"n_splits": 3, "shuffle": True, "random_state": 0}
_TREES: dict[str, Any] = {"n_estimators": 60, "min_samples_leaf": 2, "oob_score": True, "random_state": 0}
# As in `SumsModel.predict_proba`: nothing is ever ruled out.
_LEAST_PROBABILITY = 1e-3
# Where models are compared, smaller probabilities count as this, so that no single row decides.
_LEAST_JUDGED = 0.01
_WEIGHTS = np.linspace(0.0, 1.0, 21)
_OWN_SHARE = 0.5
# Of 13 rules on 17 tables, with 3 to 20 parties of 50 to 400 rows: with this one the mean of both models lost 3.0 %
# less (log loss or error) than the common model, and at worst 1.0 % more; .65 in place of .5 lost 3.5 % less, and 1.5 %
# more.  With a better common model (columns of ranks) both gained 2.5 to 2.7 %.  On digits, mnist and fashion-mnist
# weights from .2 on cost accuracy, one half up to .07, and .1 brought .002: there the own model has none.

# Part of its usual weight that an own model keeps if it does not predict better than the classes' shares, or the mean:
# a mean with a poor model still often loses less than the better one alone.
_DOUBTED = 0.25
# Standard errors by which the own model has to lower the common one's loss, for more than its usual weight.
_CLEARLY = 3.0
# Standard errors within which a larger weight is as good as the best one. The common model learnt from the very rows
# that judge, so that the best weight is too small.
_AS_GOOD = 2.0


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A model that a party learnt from `n_own` rows of its own and labelled public ones.

    It is a random forest, or a linear model.  `columns` are the places of the classes that it knows, among all that
    were agreed on; None for numbers.  `rows` are encoded, shape (n_rows, n_encoded), the own ones first, and `targets`,
    too, shape (n_rows, n_outputs).  `left_out` has the outputs for each row of models that did not see it.  `forest`
    spares a second fit where it was fitted already.
    """

    is_forest: bool
    columns: NDArray[np.intp] | None
    n_own: int
    rows: FloatArray
    targets: FloatArray
    left_out: FloatArray
    forest: Any = None

    @cached_property
    def estimator(self) -> Any:
        """The model, fitted to all rows; the same rows give the same one."""
        if self.forest is not None:
            return self.forest
        aims = self.targets[:, 0]
        # Classes are numbered among those that the party has rows of, as its model knows no others.
        if self.columns is not None:
            aims = np.searchsorted(self.columns, self.targets.argmax(axis=1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _make_model(self.is_forest, self.columns is None, self.rows.shape[1]).fit(self.rows, aims)

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return probabilities of the known classes, shape (n_rows, n_known), or encoded numbers, shape (n_rows, 1)."""
        if self.columns is None:
            return np.asarray(self.estimator.predict(Z), dtype=np.float64)[:, None]
        return np.asarray(self.estimator.predict_proba(Z), dtype=np.float64)

    @property
    def words(self) -> str:
        """The model and its rows in words."""
        kind = "a random forest" if self.is_forest else "a linear model"
        words = f"{kind} on {self.n_own:,} of your rows"
        n_public = len(self.rows) - self.n_own
        if n_public:
            words += f" and {n_public:,} labelled public ones"
        return words


def fit_own_model(statistic: RidgeSums, *parts: tuple[FloatArray, ArrayLike]) -> OwnModel | None:
    """Choose a random forest or a linear model by rows that it did not see.

    Each part has rows, shape (n_rows, n_encoded), and their targets: the party's own rows, and labelled public ones if
    there are any.  The statistic knows the classes, or the range, that were agreed on.  There is no model of fewer than
    ten rows, or of one class.  Raise AgreementError if targets are missing, none of those agreed on, or not one per
    row.
    """
    # The same rows give the same model.
    generator = np.random.default_rng(0)
    rows: list[FloatArray] = []
    targets: list[FloatArray] = []
    for Z, y in parts:
        encoded = statistic.encode(y)
        if len(encoded) != len(Z):
            raise AgreementError(
                f"The own model: there are {len(Z)} rows and {len(encoded)} targets. Give one per row."
            )
        chosen = np.sort(generator.permutation(len(Z))[:MOST_OWN_ROWS])
        rows.append(Z[chosen])
        targets.append(encoded[chosen])
    X = np.concatenate(rows)
    t = np.concatenate(targets)
    columns, aims = np.unique(t.argmax(axis=1), return_inverse=True)
    if len(X) < _FEWEST_OWN_ROWS or (statistic.classes is not None and len(columns) < 2):
        return None
    with warnings.catch_warnings():
        # Of small classes, rows without a vote, and iterations: models are judged on rows that they did not see.
        warnings.simplefilter("ignore")
        if statistic.classes is None:
            forest, left_out = _choose_for_numbers(X, t[:, 0])
            return OwnModel(forest is not None, None, len(rows[0]), X, t, left_out[:, None], forest)
        forest, left_out = _choose_for_classes(X, aims, len(columns))
    return OwnModel(forest is not None, columns, len(rows[0]), X, t, left_out, forest)


def _make_model(is_forest: bool, is_number: bool, n_columns: int) -> Any:
    if is_forest and is_number:
        # All columns at each split do better on few columns, a third of them takes less time on many.
        part = 1.0 if n_columns <= _FEW_COLUMNS else 1 / 3
        return RandomForestRegressor(max_features=part, **_TREES)
    if is_forest:
        return RandomForestClassifier(**_TREES)
    if is_number:
        return make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.1, 1000, 9)))
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))


def _choose_for_numbers(X: FloatArray, aims: FloatArray) -> tuple[RandomForestRegressor | None, FloatArray]:
    """Return the forest, or None if the linear model is better, and the better one's numbers for rows left out."""
    forest = _make_model(True, True, X.shape[1]).fit(X, aims)
    of_forest = forest.oob_prediction_
    of_linear = cross_val_predict(_make_model(False, True, X.shape[1]), X, aims, cv=KFold(**_FOLDS))
    if np.mean((of_forest - aims) ** 2) <= np.mean((of_linear - aims) ** 2):
        return forest, of_forest
    return None, of_linear


def _choose_for_classes(
    X: FloatArray, aims: NDArray[np.intp], n_known: int
) -> tuple[RandomForestClassifier | None, FloatArray]:
    """Return the forest, or None if the linear model is better, and probabilities for rows left out by the better."""
    forest = _make_model(True, False, X.shape[1]).fit(X, aims)
    of_forest = np.nan_to_num(forest.oob_decision_function_)
    # Each fold has to leave two classes to learn from; and of wide tables a linear model takes long.
    if np.sort(np.bincount(aims))[-2] < _FOLDS["n_splits"] or X.size * n_known > MOST_LOGISTIC_WORK:
        return forest, of_forest
    linear = _make_model(False, False, X.shape[1])
    of_linear = cross_val_predict(linear, X, aims, cv=StratifiedKFold(**_FOLDS), method="predict_proba")
    every = np.arange(len(aims))
    if _log_losses(of_forest[every, aims]).mean() <= _log_losses(of_linear[every, aims]).mean():
        return forest, of_forest
    return None, of_linear


def _log_losses(of_true: FloatArray) -> FloatArray:
    return np.asarray(-np.log(of_true.clip(_LEAST_JUDGED, 1.0)))


def _weigh_by_losses(usual: float, losses: FloatArray, constant: FloatArray, counts: FloatArray) -> float:
    """Return the own model's weight, from the losses of both together on rows that it did not see.

    `losses` are (n_weights, n_rows), those of the constant (n_rows,), and `counts` say how much each row counts.
    """
    mean = losses @ counts
    # The last weight is the own model alone.
    if mean[-1] >= constant @ counts:
        return _DOUBTED * usual
    best = int(mean.argmin())

    def is_clear(gain: FloatArray, errors: float) -> bool:
        # The variance of a weighted mean of rows that are drawn independently.
        spread = counts @ (gain - gain @ counts) ** 2 * (counts @ counts)
        return bool(gain @ counts > errors * np.sqrt(spread))

    if not is_clear(losses[0] - losses[best], _CLEARLY):
        return usual
    as_good = [not is_clear(loss - losses[best], _AS_GOOD) for loss in losses[best:]]
    return max(usual, float(_WEIGHTS[best:][as_good][-1]))


class CombinedModel:
    """The mean of the common model of sums and a party's own model.  Nothing of it leaves the party.

    It weighs probabilities, or numbers.  The own model is the better of a random forest and a linear model on the
    party's rows and labelled public ones; there is none if columns are all alike.  Its weight is half the root of their
    part of all rows in the total.  It is a quarter of that if the own model predicts rows that it did not see no better
    than a constant, and more if both together predict them clearly better with more.  Rows of each class count there
    as much as the common model says that there are.  A class that they lack keeps the common model's probability.

    Parameters
    ----------
    space : CommonSpace
        Or what encodes and maps rows like one, and says whether columns are `alike`.
    model : SumsModel
        The common model that came back.
    own : OwnModel, optional
        `fit` makes it.  Without one, predictions are the common model's.

    Attributes
    ----------
    weight : float
        The own model's weight in the mean.
    """

    def __init__(self, space: Any, model: SumsModel, own: OwnModel | None = None) -> None:
        self.space = space
        self.model = model
        self.own = own
        self.weight = self._weight()

    def fit(self, X: Any, y: ArrayLike, *, public: Any = None, public_target: ArrayLike | None = None) -> Self:
        """Fit the own model; there is none of fewer than ten rows, of one class, or of columns that are all alike.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            The party's own rows.
        y : array-like of shape (n_rows,)
        public : array-like or dataframe of shape (n_public, n_features), optional
            Public rows, such as the anchor.
        public_target : array-like of shape (n_public,), optional
            Their targets; None or NaN is a row without one.

        Raises
        ------
        AgreementError
            If rows cannot be read, or targets do not fit the rows or the common model.
        """
        parts = [(self.space.encode(X), plain_column(y))]
        if public is not None and public_target is not None:
            Z = self.space.encode(public)
            labels = plain_column(public_target)
            is_labelled = ~are_missing(labels)
            # A mask of another length is refused with the counts of rows and targets.
            if len(is_labelled) == len(Z):
                Z = Z[is_labelled]
            parts.append((Z, labels[is_labelled]))
        self.own = None
        # On columns that are all alike, such as pixels, an own model costs accuracy.
        if not self.space.alike:
            self.own = fit_own_model(self.model.statistic, *parts)
        self.weight = self._weight()
        return self

    def _weight(self) -> float:
        """Weigh the own model by its number of rows, and by its predictions for rows that it did not see."""
        own = self.own
        if own is None:
            return 0.0
        usual = own_weight(len(own.rows), self.model.fit.n_rows)
        common = self._predict_common(own.rows)
        alone = self._place_own(own.left_out, common)
        weights = _WEIGHTS[:, None]
        if own.columns is None:
            truth = self.model.statistic.decode(own.targets)
            losses = ((1 - weights) * common + weights * alone - truth) ** 2
            return _weigh_by_losses(usual, losses, (truth.mean() - truth) ** 2, np.full(len(truth), 1 / len(truth)))
        true = own.targets.argmax(axis=1)
        n_outputs = self.model.statistic.n_outputs
        # A party may see more of a class than others do, which is no reason to trust its own model more.
        counts = (common.mean(axis=0) / np.maximum(np.bincount(true, minlength=n_outputs), 1))[true]
        counts = counts / counts.sum()
        shares = np.bincount(true, counts, n_outputs)
        every = np.arange(len(true))
        losses = _log_losses((1 - weights) * common[every, true] + weights * alone[every, true])
        return _weigh_by_losses(usual, losses, _log_losses(shares[true]), counts)

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the sides that can predict, the usual one first."""
        if self.own is None:
            return ("collaboration",)
        return ("combined", "local", "collaboration")

    def predict(self, X: Any, using: str | None = None) -> NDArray[Any]:
        """Return classes or numbers, shape (n_rows,).

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
        using : {"combined", "local", "collaboration"}, optional
            Both together, the own model, or the common one; by default both, if there is an own model.

        Raises
        ------
        ValueError, AgreementError
            If there is no such side, or rows cannot be read.
        """
        outputs = self._predict_side(X, using)
        if self.model.classes is None:
            return outputs
        return np.asarray(np.asarray(self.model.classes)[outputs.argmax(axis=1)])

    def predict_proba(self, X: Any, using: str | None = None) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes), as in `predict`; numbers have none."""
        if self.model.classes is None:
            raise AttributeError("CombinedModel: the target is a number, so there are no class probabilities.")
        return self._predict_side(X, using)

    def _predict_side(self, X: Any, using: str | None) -> FloatArray:
        """Return probabilities, shape (n_rows, n_classes), or numbers, shape (n_rows,)."""
        if using is None:
            using = self.sides[0]
        if using not in self.sides:
            raise ValueError(f"using must be one of {', '.join(map(repr, self.sides))}; got {using!r}.")
        Z = self.space.encode(X)
        if using == "collaboration":
            return self._predict_common(Z)
        assert self.own is not None  # or neither is a side
        if using == "local":
            return self._place_own(self.own.outputs(Z), None)
        common = self._predict_common(Z)
        return np.asarray((1 - self.weight) * common + self.weight * self._place_own(self.own.outputs(Z), common))

    def _predict_common(self, Z: FloatArray) -> FloatArray:
        mapped = self.space.map_encoded(Z)
        if self.model.classes is None:
            return np.asarray(self.model.predict(mapped))
        return np.asarray(self.model.predict_proba(mapped))

    def _place_own(self, outputs: FloatArray, common: FloatArray | None) -> FloatArray:
        assert self.own is not None
        if self.own.columns is None:
            return np.asarray(self.model.statistic.decode(outputs))
        return _on_all_classes(outputs, self.own.columns, self.model.statistic.n_outputs, common)


def _on_all_classes(
    known: FloatArray, columns: NDArray[np.intp], n_classes: int, common: FloatArray | None
) -> FloatArray:
    """Return probabilities of all classes: those that a party has no row of are the common model's, or least."""
    if common is None:
        # With nobody else to ask, a class that the party never saw is unlikely, and not impossible.
        shares = np.full((len(known), n_classes), _LEAST_PROBABILITY)
        shares[:, columns] = np.maximum(known, _LEAST_PROBABILITY)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
    # The own model divides what the common one leaves to the classes that the party has rows of.
    shares = common.copy()
    shares[:, columns] = known * common[:, columns].sum(axis=1, keepdims=True)
    return shares


def own_weight(n_own: float, n_total: float) -> float:
    """Return an own model's usual weight in its mean with the common one: half the root of its part of all rows.

    ``n_own`` counts the labelled public rows that it learnt from, too.

    Examples
    --------
    >>> own_weight(100, 400)
    0.25
    """
    return _OWN_SHARE * math.sqrt(n_own / max(n_own, n_total, 1.0))
