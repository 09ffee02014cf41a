"""What the one-process estimators share: playing all roles, and routing rows to their owners."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array, check_random_state
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from .._validation import FloatArray, HasMethods, PartyName, StrOptions, check_single_targets
from ..analyst import KTI, Analyst, BaseIntegrator, Collaboration
from ..errors import AgreementError, AnchorError, RepeatableSecretWarning, UnknownPartyError
from ..model import PartyModel
from ..party import Defence, Party, obfuscator
from ..share import Share
from ._anchor_check import warn_of_anchor
from ._groups import by_party, owners, predict_by_party, warn_of_scorer

__all__ = ["BaseDataCollaboration"]


class BaseDataCollaboration(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator, ABC):
    """Parties, analyst and predictions of one collaboration."""

    # Named parameters of the methods, requested by default: a collaboration without owners and anchors is none.
    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True, "anchor_target": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}
    __metadata_request__transform: ClassVar = {"groups": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "obfuscator": [HasMethods(["fit", "transform"]), Mapping, callable, None],
        "integrator": [BaseIntegrator, StrOptions({"auto"}), None],
        "estimator": [HasMethods(["fit", "predict"]), StrOptions({"auto"}), None],
        "fit_on": [StrOptions({"anchor"}), "array-like", None],
        "defences": [list, tuple],
        "shuffle": ["boolean"],
        "party_column": [str, Integral, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    parties_: dict[PartyName, Party]
    models_: dict[PartyName, PartyModel]
    collaboration_: Collaboration

    def __init__(
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | str | None = None,
        estimator: Any = None,
        *,
        fit_on: Any = None,
        defences: Sequence[Defence] = (),
        shuffle: bool = True,
        party_column: str | int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.obfuscator = obfuscator
        self.integrator = integrator
        self.estimator = estimator
        self.fit_on = fit_on
        self.defences = defences
        self.shuffle = shuffle
        self.party_column = party_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Play all roles: every party obfuscates and shares, the analyst integrates and trains.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            Rows of all parties.
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            Public or synthetic rows that all parties obfuscate.  Under cross-validation, scikit-learn's metadata
            routing cuts whatever has as many rows as `X` into folds: an anchor of that length loses some of its rows.
            Inside a `Pipeline`, the steps before transform X but not the anchor, unless it is built with
            ``transform_input=["anchor"]``; to cross-validate that needs scikit-learn 1.8.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where a graph needs them.

        Returns
        -------
        self

        Raises
        ------
        AnchorError
            When there is no anchor.
        ObfuscationError
            When a party's obfuscator or a defence fails; the message names the party.
        AgreementError, RepresentationError, NumericalError
            When the representations cannot be integrated.

        Warns
        -----
        UserWarning
            When the anchor looks as if it were in other units than `X`, or, in cross-validation, has as many rows.
        """
        self._validate_params()
        X, y = validate_data(self, self._checked(X), y, skip_check_array=True)
        check_single_targets(np.asarray(y), "y", AgreementError)
        y = check_array(y, input_name="y", ensure_2d=False, dtype=None)
        target = self._checked_target(column_or_1d(y, warn=True))
        check_consistent_length(X, target)
        if anchor is None:
            raise AnchorError(
                "Data collaboration needs an anchor: public or synthetic rows that all parties obfuscate. Pass "
                "anchor=..., for example from datacollab.UniformAnchor or datacollab.SMOTEAnchor."
            )
        X, names = owners(X, groups, self.party_column)
        warn_of_anchor(X, anchor)
        if anchor_target is not None:
            check_single_targets(np.asarray(anchor_target), "anchor_target", AgreementError)
            anchor_target = self._checked_anchor_target(np.asarray(anchor_target))
        random_state = None if self.random_state is None else check_random_state(self.random_state)
        parties = [(self._party(party, anchor, random_state), index) for party, index in by_party(names).items()]
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_share)(party, _safe_indexing(X, index), target[index], anchor, anchor_target)
            for party, index in parties
        )
        integrator = KTI() if self.integrator is None else self.integrator
        analyst = Analyst(
            _seeded(integrator, random_state),
            _seeded(self._default_estimator(), random_state),
            task="classification" if is_classifier(self) else "regression",
        )
        self.collaboration_ = analyst.fit(share for _, share in fitted)
        self.parties_ = {party.name: party for party, _ in fitted}
        self.models_ = {party: self.collaboration_.party_model(party) for party in self.parties_}
        return self

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Predict, each row through its own party's h(g_k(f_k(x))).

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
        groups : array-like of shape (n_samples,), optional
            Owner of each row.  Needed unless `party_column` is set.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        UnknownPartyError
            When a row's owner took no part in `fit`.
        """
        return self._by_party("predict", X, groups)

    def represent(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Collaboration representations g_k(f_k(x)), shape (n_samples, n_components)."""
        return self._by_party("transform", X, groups)

    def transform(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """What `represent` gives, or a dataframe of it where `set_output` asks for one."""
        return self.represent(X, groups=groups)

    def fit_transform(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> FloatArray:
        """Fit, and give the collaboration representations of all rows in their order."""
        fitted = self.fit(X, y, groups=groups, anchor=anchor, anchor_target=anchor_target)
        return np.asarray(fitted.represent(X, groups=groups))

    @property
    def _n_features_out(self) -> int:
        """Columns of the collaboration representations, as scikit-learn asks for them to name them."""
        return int(next(iter(self.models_.values())).integration_function.n_components)

    def _by_party(self, method: str, X: ArrayLike, groups: ArrayLike | None) -> NDArray[Any]:
        check_is_fitted(self)
        if method != "transform":
            warn_of_scorer(groups, self.party_column, depth=3)
        X = validate_data(self, self._checked(X), reset=False, skip_check_array=True)
        X, names = owners(X, groups, self.party_column)
        unknown = [party for party in by_party(names) if party not in self.parties_]
        if unknown:
            raise UnknownPartyError(
                f"Parties {unknown!r} took no part in fit; known parties: {list(self.parties_)!r}. A party predicts "
                "with its own obfuscator, so a new one must join a new collaboration first."
            )
        functions = {
            name: lambda rows, party=party, model=self.models_[name]: getattr(party, method)(rows, model)
            for name, party in self.parties_.items()
        }
        return predict_by_party(X, names, functions)

    def _checked(self, X: Any) -> Any:
        """Check an array; a dataframe is left to the obfuscator, which may take columns by name."""
        if hasattr(X, "columns"):
            return X
        tags = self.__sklearn_tags__().input_tags
        finite: bool | str = "allow-nan" if tags.allow_nan else True
        return check_array(
            X, dtype=None, ensure_all_finite=finite, accept_sparse=tags.sparse, estimator=self, input_name="X"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.obfuscator, "fit"):
            accepted = get_tags(self.obfuscator).input_tags
            tags.input_tags.allow_nan, tags.input_tags.sparse = accepted.allow_nan, accepted.sparse
        return tags

    def _sk_visual_block_(self) -> Any:
        """The diagram in a notebook: f, g and h in the order in which rows pass them, not by the alphabet."""
        steps = [
            ("obfuscator", obfuscator("pca") if self.obfuscator is None else self.obfuscator),
            ("integrator", KTI() if self.integrator is None else self.integrator),
            ("estimator", self._default_estimator()),
        ]
        return Pipeline([(name, step) for name, step in steps if hasattr(step, "get_params")])._sk_visual_block_()

    def _party(self, name: PartyName, anchor: Any, random_state: np.random.RandomState | None) -> Party:
        on_anchor = isinstance(self.fit_on, str)
        return Party(
            name,
            self._obfuscator(name, random_state),
            fit_on=anchor if on_anchor else self.fit_on,
            defences=self.defences,
            shuffle=self.shuffle,
            random_state=_seed(random_state),
        )

    def _obfuscator(self, party: PartyName, random_state: np.random.RandomState | None) -> Any:
        given = self.obfuscator
        if isinstance(given, Mapping):
            if party not in given:
                raise UnknownPartyError(f"obfuscator has no entry for party {party!r}; it has {list(given)!r}.")
            given = given[party]
        elif given is None:
            given = obfuscator("pca")
        elif not hasattr(given, "fit"):
            given = given(party)
        return _seeded(given, random_state)

    @abstractmethod
    def _default_estimator(self) -> Any:
        """The model h where none is given."""

    @abstractmethod
    def _checked_anchor_target(self, anchor_target: NDArray[Any]) -> NDArray[Any]:
        """Anchor targets, of a type that graphs read as the task has it."""

    @abstractmethod
    def _checked_target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets, of the type that the task has."""


def _fit_and_share(
    party: Party, X: Any, y: NDArray[Any], anchor: ArrayLike, anchor_target: ArrayLike | None
) -> tuple[Party, Share]:
    with warnings.catch_warnings():
        # Nothing leaves this process, so a repeatable obfuscation is no secret given away.
        warnings.simplefilter("ignore", RepeatableSecretWarning)
        party.fit(X, y)
    return party, party.share(anchor, anchor_target)


def _seed(random_state: np.random.RandomState | None) -> np.random.RandomState | None:
    if random_state is None:
        return None
    return np.random.RandomState(random_state.randint(np.iinfo(np.int32).max))


def _seeded(estimator: Any, random_state: np.random.RandomState | None) -> Any:
    """A clone in which every ``random_state`` left at None is drawn from ``random_state``."""
    if isinstance(estimator, str):
        return estimator
    copy = clone(estimator)
    if random_state is not None:
        for name, value in sorted(copy.get_params(deep=True).items()):
            if value is None and name.rpartition("__")[2] == "random_state":
                copy.set_params(**{name: _seed(random_state)})
    return copy
