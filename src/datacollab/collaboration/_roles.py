"""What the one-process estimators share: who the parties are, and routing rows to their owners."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import FloatArray, HasMethods, PartyName, StrOptions
from ..analyst import BaseIntegrator, Collaboration
from ..errors import RepeatableSecretWarning, UnknownPartyError
from ..model import PartyModel
from ..party import Defence, Party, obfuscator
from ..share import Share
from ._groups import by_party, owners, predict_by_party, warn_of_scorer

__all__ = ["PlayedRoles", "seeded"]


class PlayedRoles(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator, ABC):
    """Parties, analyst and predictions of one collaboration."""

    # Named parameters of the methods, requested by default: a collaboration without owners and anchors is none.
    __metadata_request__predict: ClassVar = {"groups": True}
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

    @property
    def _n_features_out(self) -> int:
        """Columns of the collaboration representations, as scikit-learn asks for them to name them."""
        return int(next(iter(self.models_.values())).integration_function.n_components)

    def _by_party(self, method: str, X: ArrayLike, groups: ArrayLike | None, *further: Any) -> NDArray[Any]:
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
        return self._of_fitted(method, X, names, *further)

    def _of_fitted(self, method: str, X: Any, names: NDArray[Any], *further: Any) -> NDArray[Any]:
        """What a method of each party says of its rows, which were checked."""
        functions = {
            name: lambda rows, party=party, model=self.models_[name]: getattr(party, method)(rows, model, *further)
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
            ("integrator", self._default_integrator() if self.integrator is None else self.integrator),
            ("estimator", self._default_estimator()),
        ]
        return Pipeline([(name, step) for name, step in steps if hasattr(step, "get_params")])._sk_visual_block_()

    def _shared(
        self,
        X: Any,
        target: NDArray[Any] | None,
        names: NDArray[Any],
        anchor: Any,
        anchor_target: ArrayLike | None,
        random_state: np.random.RandomState | None,
    ) -> list[Share]:
        """Every party's share; the parties stay in `parties_`."""
        parties = [(self._party(party, anchor, random_state), index) for party, index in by_party(names).items()]
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_share)(
                party, _safe_indexing(X, index), None if target is None else target[index], anchor, anchor_target
            )
            for party, index in parties
        )
        self.parties_ = {party.name: party for party, _ in fitted}
        return [share for _, share in fitted]

    def _party(self, name: PartyName, anchor: Any, random_state: np.random.RandomState | None) -> Party:
        on_anchor = isinstance(self.fit_on, str)
        return Party(
            name,
            self._obfuscator(name, random_state),
            fit_on=anchor if on_anchor else self.fit_on,
            defences=self.defences,
            shuffle=self.shuffle,
            random_state=_seed(random_state),
            **self._party_options(),
        )

    def _party_options(self) -> dict[str, Any]:
        """What else parties are told."""
        return {}

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
        return seeded(given, random_state)

    @abstractmethod
    def _default_integrator(self) -> Any:
        """How representations are aligned where nothing is said."""

    @abstractmethod
    def _default_estimator(self) -> Any:
        """The model h where none is given."""


def _fit_and_share(
    party: Party, X: Any, y: NDArray[Any] | None, anchor: ArrayLike, anchor_target: ArrayLike | None
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


def seeded(estimator: Any, random_state: np.random.RandomState | None) -> Any:
    """A clone in which every ``random_state`` left at None is drawn from ``random_state``."""
    if isinstance(estimator, str):
        return estimator
    copy = clone(estimator)
    if random_state is not None:
        for name, value in sorted(copy.get_params(deep=True).items()):
            if value is None and name.rpartition("__")[2] == "random_state":
                copy.set_params(**{name: _seed(random_state)})
    return copy
