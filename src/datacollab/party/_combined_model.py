"""A party's own model beside the common one of sums, and the mean of both: made at home, where all of it stays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from .._frames import are_missing, plain_column
from .._recommended import own_weight
from .._typing import FloatArray
from ..errors import AgreementError, ExchangeError
from ..sums import RidgeSums, SumsModel
from ._own_models import MOST_LOGISTIC_WORK
from ._state import from_skops, to_skops

MOST_OWN_ROWS = 2000
"""Of more rows, an own model learns from so many, taken by chance: it is fitted in seconds, and a table may be long."""
_FEWEST_OWN_ROWS = 10
_FEW_COLUMNS = 30
_FOLDS: dict[str, Any] = {"n_splits": 3, "shuffle": True, "random_state": 0}
_TREES: dict[str, Any] = {"n_estimators": 60, "min_samples_leaf": 2, "oob_score": True, "random_state": 0}
_LEAST_PROBABILITY = 1e-3
"""As in `SumsModel.predict_proba`: nothing is ever ruled out."""
_LEAST_JUDGED = 0.01
"""Where models are compared, smaller probabilities count as this, so that no single row decides."""


@dataclass(frozen=True, eq=False)
class OwnModel:
    """What a party learnt from `n_own` rows of its own and `n_public` labelled public ones.

    `columns` are the places of the classes that it knows, among all that were agreed on; None for numbers.
    """

    estimator: Any
    columns: NDArray[np.intp] | None
    n_own: int
    n_public: int

    def outputs(self, Z: FloatArray) -> FloatArray:
        """Return probabilities of the known classes, shape (n_rows, n_known), or encoded numbers, shape (n_rows, 1)."""
        if self.columns is None:
            return np.asarray(self.estimator.predict(Z), dtype=np.float64)[:, None]
        return np.asarray(self.estimator.predict_proba(Z), dtype=np.float64)

    @property
    def words(self) -> str:
        """What it is, in words."""
        kind = "a random forest" if hasattr(self.estimator, "estimators_") else "a linear model"
        public = f" and {self.n_public:,} labelled public ones" if self.n_public else ""
        return f"{kind} on {self.n_own:,} of your rows{public}"


def fit_own_model(statistic: RidgeSums, *parts: tuple[FloatArray, ArrayLike]) -> OwnModel | None:
    """Fit a random forest and a linear model, and return the better one on rows that it did not see.

    Each part has rows, shape (n_rows, n_encoded), and their targets: the party's own rows, and labelled public ones if
    there are any.  The statistic knows the classes, or the range, that were agreed on.  There is no model of fewer than
    ten rows, or of one class.  Raise AgreementError if targets are missing, none of those agreed on, or not one per
    row.
    """
    generator = np.random.default_rng(0)  # the same rows give the same model
    rows: list[FloatArray] = []
    encoded: list[FloatArray] = []
    for Z, y in parts:
        t = statistic.encode(y)
        if len(t) != len(Z):
            raise AgreementError(f"The own model: there are {len(Z)} rows and {len(t)} targets. Give one per row.")
        taken = np.sort(generator.permutation(len(Z))[:MOST_OWN_ROWS])
        rows.append(Z[taken])
        encoded.append(t[taken])
    X = np.concatenate(rows)
    t = np.concatenate(encoded)
    columns, aims = np.unique(t.argmax(axis=1), return_inverse=True)
    if len(X) < _FEWEST_OWN_ROWS or (statistic.classes is not None and len(columns) < 2):
        return None
    n_own = len(rows[0])
    with warnings.catch_warnings():
        # Of small classes, rows without a vote, and iterations: models are judged on rows that they did not see.
        warnings.simplefilter("ignore")
        if statistic.classes is None:
            return OwnModel(_better_number(X, t[:, 0]), None, n_own, len(X) - n_own)
        return OwnModel(_better_classifier(X, aims, len(columns)), columns, n_own, len(X) - n_own)


def _better_number(X: FloatArray, aims: FloatArray) -> Any:
    # All columns at each split do better on few columns, a third of them takes less time on many.
    some = 1.0 if X.shape[1] <= _FEW_COLUMNS else 1 / 3
    forest = RandomForestRegressor(max_features=some, **_TREES).fit(X, aims)
    linear = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.1, 1000, 9)))
    of_forest = np.mean((forest.oob_prediction_ - aims) ** 2)
    of_linear = np.mean((cross_val_predict(linear, X, aims, cv=KFold(**_FOLDS)) - aims) ** 2)
    return forest if of_forest <= of_linear else linear.fit(X, aims)


def _better_classifier(X: FloatArray, aims: NDArray[np.intp], n_known: int) -> Any:
    forest = RandomForestClassifier(**_TREES).fit(X, aims)
    # Each fold has to leave two classes to learn from; and of wide tables a linear model takes long.
    if np.sort(np.bincount(aims))[-2] < _FOLDS["n_splits"] or X.size * n_known > MOST_LOGISTIC_WORK:
        return forest
    linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    left_out = cross_val_predict(linear, X, aims, cv=StratifiedKFold(**_FOLDS), method="predict_proba")
    of_forest = _mean_loss(np.nan_to_num(forest.oob_decision_function_), aims)
    return forest if of_forest <= _mean_loss(left_out, aims) else linear.fit(X, aims)


def _mean_loss(probabilities: FloatArray, aims: NDArray[np.intp]) -> float:
    of_true = probabilities[np.arange(len(aims)), aims].clip(_LEAST_JUDGED, 1.0)
    return float(-np.log(of_true).mean())


class CombinedModel:
    """The mean of the common model of sums and a party's own model.  Nothing of it leaves the party.

    It weighs probabilities, or numbers.  The own model is the better of a random forest and a linear model on the
    party's rows and labelled public ones.  Its weight is half the root of their part of all rows in the total, and none
    if columns are all alike.  A class that they lack keeps the common model's probability.

    Parameters
    ----------
    space : CommonSpace
        Or what encodes and maps rows like one, and says whether columns are `alike`.
    model : SumsModel
        The common model that came back.
    own : OwnModel, optional
        `fit` makes it.  Without one, predictions are the common model's.
    """

    def __init__(self, space: Any, model: SumsModel, own: OwnModel | None = None) -> None:
        self.space = space
        self.model = model
        self.own = own

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
            Z, labels = self.space.encode(public), plain_column(public_target)
            has = ~are_missing(labels)
            # A mask of another length is refused with the counts of rows and targets.
            parts.append((Z[has] if len(has) == len(Z) else Z, labels[has]))
        self.own = None if self.space.alike else fit_own_model(self.model.statistic, *parts)
        return self

    @property
    def weight(self) -> float:
        """The own model's weight in the mean."""
        if self.own is None:
            return 0.0
        return own_weight(self.own.n_own + self.own.n_public, self.model.fit.n_rows, alike=self.space.alike)

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of what can predict, the usual one first."""
        return ("collaboration",) if self.own is None else ("combined", "local", "collaboration")

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
        said = self._said(X, using)
        if self.model.classes is None:
            return said
        return np.asarray(np.asarray(self.model.classes)[said.argmax(axis=1)])

    def predict_proba(self, X: Any, using: str | None = None) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes), as in `predict`; numbers have none."""
        if self.model.classes is None:
            raise AttributeError("CombinedModel: the target is a number, so there are no class probabilities.")
        return self._said(X, using)

    def _said(self, X: Any, using: str | None) -> FloatArray:
        """Return probabilities, shape (n_rows, n_classes), or numbers, shape (n_rows,)."""
        using = self.sides[0] if using is None else using
        if using not in self.sides:
            raise ValueError(f"using must be one of {', '.join(map(repr, self.sides))}; got {using!r}.")
        Z = self.space.encode(X)
        common = None
        if using != "local":
            say = self.model.predict if self.model.classes is None else self.model.predict_proba
            common = say(self.space.map_encoded(Z))
            if using == "collaboration" or self.own is None:
                return common
        assert self.own is not None  # or "local" is no side
        said = self.own.outputs(Z)
        if self.own.columns is None:
            said = self.model.statistic.decode(said)
        else:
            said = _on_all_classes(said, self.own.columns, self.model.statistic.n_outputs, common)
        return said if common is None else np.asarray((1 - self.weight) * common + self.weight * said)


def _on_all_classes(
    known: FloatArray, columns: NDArray[np.intp], n_classes: int, common: FloatArray | None
) -> FloatArray:
    """Return probabilities of all classes: those that a party has no row of are the common model's, or least."""
    if common is None:
        shares = np.full((len(known), n_classes), _LEAST_PROBABILITY)
        shares[:, columns] = np.maximum(known, _LEAST_PROBABILITY)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
    shares = common.copy()
    shares[:, columns] = known * common[:, columns].sum(axis=1, keepdims=True)
    return shares


_TYPES = frozenset({f"{OwnModel.__module__}.{OwnModel.__qualname__}", "numpy.dtype", "sklearn.tree._tree.Tree"})
"""Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts."""


def own_model_to(own: OwnModel) -> bytes:
    """Return an own model as bytes for the party's disk."""
    return to_skops(own, _TYPES)[0]


def own_model_from(data: bytes) -> OwnModel:
    """Return the own model that `own_model_to` wrote; raise STATE_DAMAGED if it is none."""
    try:
        own: OwnModel = from_skops(data, _TYPES)
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The own model of this party cannot be read ({type(error).__name__}). Remove own.dcstate, and run "
            "`datacollab party share` with the table once more: it sends nothing new.",
        ) from None
    return own
