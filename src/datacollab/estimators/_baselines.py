"""The baselines Central and Local, and folds that keep parties together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._tags import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._by_name import takes_numbers_alone
from .._constraints import HasMethods
from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_column, plain_table
from .._validation import FloatArray, PartyName, check_single_targets
from ..errors import AgreementError, UnknownPartyError
from ..model import probabilities_of
from ..survival import SurvivalModel, concordance_index
from ._roles import by_party, owners, predict_by_party, warn_of_scorer


class PartyStratifiedKFold(BaseCrossValidator):
    """K folds, stratified by party, and by class within each party where the target has classes.

    A collaboration can only predict for parties it was fitted with, so folds that leave a party out of training, as
    those of ``GroupKFold`` do, are of no use.  Every party's share of two folds differs by at most one row.

    Parameters
    ----------
    n_splits : int, default=5
    party_column : str or int, default=None
        Column of X that names the owner of each row; it replaces `groups`.
    shuffle : bool, default=False
        Whether rows of one party and class are dealt out in random order.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> hospital = np.repeat(["a", "b"], [6, 3])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0, 1, 1])
    >>> for train, test in PartyStratifiedKFold(3).split(y, y, groups=hospital):
    ...     print(hospital[test], y[test])
    ['a' 'a' 'b'] [0 1 0]
    ['a' 'a' 'b'] [0 1 1]
    ['a' 'a' 'b'] [0 1 1]
    """

    __metadata_request__split: ClassVar = {"groups": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        party_column: str | int | None = None,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if n_splits < 2:
            raise ValueError(f"n_splits={n_splits}: expected at least 2 folds.")
        self.n_splits = n_splits
        self.party_column = party_column
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return number of folds."""
        return self.n_splits

    def _iter_test_indices(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[NDArray[np.intp]]:
        if groups is None and self.party_column is None:
            raise ValueError("PartyStratifiedKFold needs groups, one party name per row, or party_column.")
        _, names = owners(X, groups, self.party_column)
        parties, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
        # Every fold is predicted by models of the others, so each party needs a row in every fold.
        small = {party: n for party, n in zip(parties.tolist(), counts.tolist(), strict=True) if n < self.n_splits}
        if small:
            raise ValueError(f"n_splits={self.n_splits} needs at least as many rows of every party; got {small}.")

        classes = np.zeros_like(codes)
        # Numbers are no classes: then folds are stratified by party alone.
        if y is not None and type_of_target(y) in {"binary", "multiclass"}:
            classes = np.unique(np.asarray(y), return_inverse=True)[1]
        ties = np.arange(len(codes))
        if self.shuffle:
            check_random_state(self.random_state).shuffle(ties)
        # Rows in the order of party, then class, are dealt out in turn, as one deals cards: even shares for parties
        # and, as nearly as can be, for the classes within them, however few rows a class has.
        dealt = np.empty(len(codes), dtype=np.intp)
        dealt[np.lexsort((ties, classes, codes))] = np.arange(len(codes)) % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(dealt == fold)


class _Baseline(MetaEstimatorMixin, BaseEstimator, ABC):
    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True, "anchor_target": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "party_column": [str, Integral, None],
    }

    def __init__(self, estimator: Any, *, party_column: str | int | None = None) -> None:
        self.estimator = estimator
        self.party_column = party_column

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Fit on raw rows; `anchor` and `anchor_target` are not looked at, nor does `Central` look at `groups`.

        Raise ValueError if `Local` is given no owners.
        """
        self._validate_params()
        target = plain_column(y)
        # Survival models read targets of several fields.
        if not isinstance(self.estimator, SurvivalModel):
            check_single_targets(target, "y", AgreementError)
        # None is left to the model to refuse, as scikit-learn's checks expect.
        self._fit(X, None if y is None else target, groups)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, target: Any, groups: ArrayLike | None) -> None:
        """Fit to checked targets."""

    @abstractmethod
    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Predict rows."""

    def score(
        self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return accuracy, coefficient of determination or, for a survival model, concordance."""
        if isinstance(self.estimator, SurvivalModel):
            if sample_weight is not None:
                raise TypeError("Concordance takes no sample_weight; leave it out.")
            return concordance_index(y, self.predict(X, groups=groups))
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X, groups=groups), sample_weight=sample_weight))

    def _make_model(self, rows: Any) -> Any:
        """Return the model to fit; one of numbers alone gets a frame of categories and gaps encoded."""
        model = clone(self.estimator)
        if hasattr(rows, "columns") and not has_numbers_alone(rows) and _takes_numbers(model):
            return make_pipeline(TableEncoder("X"), model)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        return tags


def _takes_numbers(estimator: Any) -> bool:
    """Return whether a model is one of a library's, or a pipeline that begins with a map of numbers alone."""
    inner = getattr(estimator, "estimator", estimator)  # of a search
    if hasattr(inner, "steps"):
        return takes_numbers_alone(inner)
    return type(inner).__module__.partition(".")[0] in ("sklearn", "datacollab")


def _has_probabilities(self: Any) -> bool:
    return hasattr(self.estimator, "predict_proba")


class Central(_Baseline):
    """All raw rows in one place: the upper bound that privacy forbids.

    Parameters
    ----------
    estimator : estimator
        Fitted on the pooled raw rows, as ``estimator_``.  A model of scikit-learn's, or a pipeline that begins with a
        scaler, gets categories as zeros and ones, and gaps filled.  Others get the frame.
    party_column : str or int, default=None
        Column of X that names the owner of each row; left out of the features.

    Examples
    --------
    >>> import datacollab as dc
    >>> from sklearn.linear_model import Ridge
    >>> central = dc.Central(Ridge()).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], groups=["a", "a", "b"])
    >>> central.predict([[1.0]]).round(6)
    array([1.])
    """

    def _fit(self, X: ArrayLike, target: Any, groups: ArrayLike | None) -> None:
        rows = self._features(X)
        self.estimator_ = self._make_model(rows).fit(rows, target)

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Predict rows of any party."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(self._features(X)))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return class probabilities of rows of any party, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(self._features(X)))

    @property
    def n_features_in_(self) -> int:
        """Columns of the raw rows, without the one that names the owner."""
        return int(self.estimator_.n_features_in_)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of a classifier."""
        return np.asarray(self.estimator_.classes_)

    def _features(self, X: ArrayLike) -> Any:
        if self.party_column is None:
            return plain_table(X, "X")
        rows, _ = owners(X, None, self.party_column)
        return rows


class Local(_Baseline):
    """Every party alone: one model per party, on its own raw rows.

    Parameters
    ----------
    estimator : estimator
        As for `Central`, but fitted once per party, into the dict ``estimators_``.  A party whose rows all belong to
        one class always predicts that class.
    party_column : str or int, default=None
        Column of X that names the owner of each row; it replaces `groups`.

    Examples
    --------
    >>> import datacollab as dc
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [0.0, 1.0, 0.0, -1.0]
    >>> local = dc.Local(LinearRegression()).fit(X, y, groups=["a", "a", "b", "b"])
    >>> local.predict([[2.0], [2.0]], groups=["a", "b"]).round(6)
    array([ 2., -2.])
    """

    def _fit(self, X: ArrayLike, target: Any, groups: ArrayLike | None) -> None:
        rows, names = owners(X, groups, self.party_column)
        self.estimators_: dict[PartyName, Any] = {}
        for party, index in by_party(names).items():
            own = target[index]
            model = self._make_model(rows)
            # Most classifiers refuse one class; a party that has no other predicts that one.
            if is_classifier(self) and len(np.unique(own)) == 1:
                model = DummyClassifier(strategy="most_frequent")
            self.estimators_[party] = model.fit(_safe_indexing(rows, index), own)

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Predict, each row with its own party's model; UnknownPartyError for owners that took no part in `fit`."""
        return self._by_party({party: model.predict for party, model in self._fitted.items()}, X, groups)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return class probabilities by each row's own party, shape (n_samples, n_classes), as in `predict`.

        A class that a party has no rows of gets 0.
        """
        models = self._fitted
        classes = self.classes_

        def bind(model: Any) -> Callable[[Any], FloatArray]:
            return lambda rows: probabilities_of(model.predict_proba(rows), model.classes_, classes)

        return self._by_party({party: bind(model) for party, model in models.items()}, X, groups)

    @property
    def _fitted(self) -> dict[PartyName, Any]:
        check_is_fitted(self)
        return self.estimators_

    def _by_party(
        self, functions: Mapping[PartyName, Callable[[Any], NDArray[Any]]], X: ArrayLike, groups: ArrayLike | None
    ) -> NDArray[Any]:
        warn_of_scorer(groups, self.party_column, depth=3)
        rows, names = owners(X, groups, self.party_column)
        unknown = [party for party in by_party(names) if party not in self.estimators_]
        if unknown:
            raise UnknownPartyError(
                f"Parties {unknown!r} took no part in fit; known parties: {list(self.estimators_)!r}."
            )
        return predict_by_party(rows, names, functions)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of all parties' classifiers."""
        return np.unique(np.concatenate([model.classes_ for model in self.estimators_.values()]))
