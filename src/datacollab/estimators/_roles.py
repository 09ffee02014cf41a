"""All roles in one process: the common part of the estimators."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.decomposition import PCA
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils import _safe_indexing, check_array, check_random_state
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, validate_data

from .._by_name import takes_numbers_alone
from .._constraints import HasMethods, StrOptions
from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_column, plain_table
from .._typing import DefaultNumber
from .._validation import FloatArray, PartyName, count_missing
from ..analyst import KTI, Analyst, BaseIntegrator, Collaboration
from ..errors import AnchorError, RepeatableSecretWarning, SmallClassWarning, UnknownPartyError, UnsendableWarning
from ..model import PartyModel
from ..party import Defence, Party, obfuscator
from ..share import Share
from ..targets import check_coding
from ._arguments import Tables, as_column, check_anchor, count_before_folds, join_parties, one_per_anchor_row


def owners(X: Any, groups: ArrayLike | None, party_column: str | int | None) -> tuple[Any, NDArray[Any]]:
    """Return a plain table without the column that names the owners of its rows, and the owners."""
    X = plain_table(X, "X", ValueError)
    if party_column is not None:
        X, column = _without_column(X, party_column)
        if groups is not None and not np.array_equal(np.asarray(groups), column):
            raise ValueError(f"groups and the column {party_column!r} name different owners; pass one of them only.")
        groups = column
    if groups is None:
        raise ValueError(
            "Who owns each row? Pass groups=<one party name per row>, or set party_column to the column of X that "
            "holds it. With GridSearchCV or cross_val_score, groups travel by metadata routing: "
            "sklearn.set_config(enable_metadata_routing=True). Scorers (scoring='accuracy', 'roc_auc', ...) pass "
            "nothing but X to predict, so they need party_column."
        )
    names = as_column(groups, "groups")
    if names.shape != (_num_samples(X),):
        raise ValueError(f"groups must have one party name per row, shape ({_num_samples(X)},); got {names.shape}.")
    missing = count_missing(names)
    if missing:
        raise ValueError(f"{missing} of {len(names)} rows have no owner (None or NaN): every row needs one.")
    return X, names


def warn_of_scorer(groups: ArrayLike | None, party_column: str | int | None, *, depth: int) -> None:
    """Warn where scikit-learn predicts, for one of its scorers, without saying whose rows these are.

    It turns the error that follows into a score of nan.  Other callers see the error itself.
    """
    # Called by scikit-learn, there is no other sign that it is a scorer that asks.
    caller = str(sys._getframe(depth).f_globals.get("__name__"))
    if groups is None and party_column is None and caller.startswith("sklearn."):
        warnings.warn(
            "Rows came without groups, so nobody knows whose they are: a scorer's scores will be nan. scoring='...' "
            "passes nothing but X to predict. Leave out scoring=, for the estimator's own score gets groups by "
            "metadata routing, or set party_column to the column of X that names the owners.",
            stacklevel=depth + 1,
        )


def _without_column(X: Any, column: str | int) -> tuple[Any, NDArray[Any]]:
    if hasattr(X, "columns"):
        names = list(X.columns)
        if column not in names:
            raise ValueError(f"party_column={column!r} is none of the {len(names)} columns of X.")
        # By place, as scikit-learn takes numbers for places, and they may be names.
        kept = [place for place, name in enumerate(names) if name != column]
        return _safe_indexing(X, kept, axis=1), np.asarray(X[column])
    if not isinstance(column, int):
        raise ValueError(f"party_column={column!r}: X has no column names; give the position of the column instead.")
    array = np.asarray(X)
    return np.delete(array, column, axis=1), array[:, column]


def by_party(names: NDArray[Any]) -> dict[PartyName, NDArray[np.intp]]:
    """Return row numbers of each party, parties in sorted order."""
    # By one sort, where a comparison for each party would read all rows as often.
    unique, codes = np.unique(names, return_inverse=True)
    return {party: np.flatnonzero(codes == code) for code, party in enumerate(unique.tolist())}


def predict_by_party(
    X: Any, names: NDArray[Any], predict: Mapping[PartyName, Callable[[Any], NDArray[Any]]]
) -> NDArray[Any]:
    """Let each party predict its own rows, and put the results back in the order of the rows."""
    rows = by_party(names)
    parts = [predict[party](_safe_indexing(X, index)) for party, index in rows.items()]
    # The inverse of the permutation that sorted the rows by party.
    order = np.argsort(np.concatenate(list(rows.values())), kind="stable")
    return np.asarray(np.concatenate(parts)[order])


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

    _of_parties: ClassVar[tuple[str, ...]] = ()
    """Further parameters that the parties take."""

    parties_: dict[PartyName, Party]
    models_: dict[PartyName, PartyModel]
    collaboration_: Collaboration

    obfuscator: Any
    integrator: BaseIntegrator | str | None
    estimator: Any
    fit_on: Any
    defences: Sequence[Defence]
    shuffle: bool
    party_column: str | int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> NDArray[Any]:
        """Predict, each row through its own party's h(g_k(f_k(x))); return shape (n_samples,).

        `groups` names the owner of each row, unless `party_column` is set.  Raise UnknownPartyError for an owner who
        took no part in `fit`.
        """
        return self._by_party("predict", X, groups)

    def represent(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return collaboration representations g_k(f_k(x)), shape (n_samples, n_components)."""
        return self._by_party("transform", X, groups)

    def transform(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return the representations of `represent`, or a dataframe of them where `set_output` asks for one."""
        return self.represent(X, groups=groups)

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> FloatArray:
        """Fit with the arguments of `fit`, and give the collaboration representations of all rows in their order."""
        X, y, options["groups"] = join_parties(X, y, options.get("groups"), self.party_column)
        fitted: Self = self.fit(X, y, **options)
        return np.asarray(fitted.represent(X, groups=options["groups"]))

    @property
    def _n_features_out(self) -> int:
        """Columns of the collaboration representations, as scikit-learn asks for them to name them."""
        return int(next(iter(self.models_.values())).integration_function.n_components)

    def _by_party(self, method: str, X: ArrayLike, groups: ArrayLike | None, *arguments: Any) -> NDArray[Any]:
        check_is_fitted(self)
        if method != "transform" and self._has_maps:
            warn_of_scorer(groups, self.party_column, depth=3)
        X = self._check_rows(X)
        like = self
        column = self.party_column
        # Of a frame without the column of the owners; nobody can tell which one an array lacks.
        if not self._has_maps and column is not None and column not in list(getattr(X, "columns", [column])):
            like = copy(self)
            like.n_features_in_ = self.n_features_in_ - 1
            if hasattr(self, "feature_names_in_"):
                like.feature_names_in_ = self.feature_names_in_[self.feature_names_in_ != column]
            column = None
        X = validate_data(like, X, reset=False, skip_check_array=True)
        if not self._has_maps:
            # Rows of nobody are predicted by the common model alone.
            names = np.array([])
            if column is not None or groups is not None:
                X, names = owners(X, groups, column)
            return self._call_fitted(method, X, names, *arguments)
        X, names = owners(X, groups, self.party_column)
        unknown = [party for party in by_party(names) if party not in self.parties_]
        if unknown:
            raise UnknownPartyError(
                f"Parties {unknown!r} took no part in fit; known parties: {list(self.parties_)!r}. A party predicts "
                "with its own obfuscator, so a new one must join a new collaboration first."
            )
        return self._call_fitted(method, X, names, *arguments)

    @property
    def _has_maps(self) -> bool:
        """Whether each party has a map of its own, so that every row needs an owner."""
        return True

    def _call_fitted(self, method: str, X: Any, names: NDArray[Any], *arguments: Any) -> NDArray[Any]:
        """Return the results of a method of each party for its rows, which were checked."""
        functions = {
            name: lambda rows, party=party, model=self.models_[name]: getattr(party, method)(rows, model, *arguments)
            for name, party in self.parties_.items()
        }
        return predict_by_party(X, names, functions)

    def _check_rows(self, X: Any) -> Any:
        """Check an array; a plain frame is left to the obfuscator, which may take columns by name."""
        X = plain_table(X, "X", ValueError)
        if hasattr(X, "columns"):
            return X
        refuse_unquoted(X, "X", 2)
        tags = self.__sklearn_tags__().input_tags
        finite: bool | str = "allow-nan" if tags.allow_nan else True
        return check_array(
            X, dtype=None, ensure_all_finite=finite, accept_sparse=tags.sparse, estimator=self, input_name="X"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Tags are those of the map that rows go through first; scikit-learn's own checks ask for them.
        if hasattr(self.obfuscator, "fit"):
            accepted = get_tags(self.obfuscator).input_tags
            tags.input_tags.allow_nan = accepted.allow_nan
            tags.input_tags.sparse = accepted.sparse
        if self.obfuscator is None or takes_numbers_alone(self.obfuscator):
            tags.input_tags.allow_nan = True  # A party fills gaps before such a map.
        return tags

    def _begin(
        self, X: Any, groups: ArrayLike | None, anchor: Any
    ) -> tuple[Any, NDArray[Any], Any, np.random.RandomState | None]:
        """Check the anchor; return rows, owners, anchor and a generator."""
        if anchor is None:
            raise AnchorError(
                "Data collaboration needs an anchor: public or synthetic rows that all parties obfuscate. Pass "
                "anchor=..., for example from datacollab.UniformAnchor or datacollab.SMOTEAnchor."
            )
        X, names = owners(X, groups, self.party_column)
        anchor = plain_table(anchor, "The anchor", AnchorError)
        check_anchor(X, anchor)
        warn_of_anchor(X, anchor)
        random_state = None
        if self.random_state is not None:
            # None stays None: secrets then come from the operating system, and not from NumPy's own generator.
            random_state = check_random_state(self.random_state)
        return X, names, anchor, random_state

    def _share(
        self,
        X: Any,
        target: NDArray[Any] | None,
        names: NDArray[Any],
        anchor: Any,
        anchor_target: ArrayLike | None,
        random_state: np.random.RandomState | None,
    ) -> list[Share]:
        """Return every party's share; the parties stay in `parties_`."""
        tasks = []
        for name, index in by_party(names).items():
            # Parties are made in order, before any works: seeds do not depend on n_jobs.
            party = self._make_party(name, anchor, random_state)
            y = None
            if target is not None:
                y = target[index]
            tasks.append(delayed(_fit_and_share)(party, _safe_indexing(X, index), y, anchor, anchor_target))
        fitted = Parallel(n_jobs=self.n_jobs)(tasks)
        self.parties_ = {party.name: party for party, _ in fitted}
        return [share for _, share in fitted]

    def _make_party(self, name: PartyName, anchor: Any, random_state: np.random.RandomState | None) -> Party:
        return Party(
            name,
            self._make_obfuscator(name, random_state),
            fit_on=anchor if isinstance(self.fit_on, str) else self.fit_on,
            defences=self.defences,
            shuffle=self.shuffle,
            random_state=_draw_seed(random_state),
            **{name: getattr(self, name) for name in self._of_parties},
        )

    def _make_obfuscator(self, party: PartyName, random_state: np.random.RandomState | None) -> Any:
        f = self.obfuscator
        if isinstance(f, Mapping):
            if party not in f:
                raise UnknownPartyError(f"obfuscator has no entry for party {party!r}; it has {list(f)!r}.")
            f = f[party]
        elif f is None:
            f = obfuscator("pca")
        elif not hasattr(f, "fit"):
            f = f(party)
        return clone_with_seeds(f, random_state)

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the model h to take if none is given."""


def _fit_and_share(
    party: Party, X: Any, y: NDArray[Any] | None, anchor: ArrayLike, anchor_target: ArrayLike | None
) -> tuple[Party, Share]:
    with warnings.catch_warnings():
        # Nothing leaves this process, so a repeatable obfuscation is no secret given away.
        warnings.simplefilter("ignore", RepeatableSecretWarning)
        warnings.simplefilter("ignore", SmallClassWarning)
        _lower_default(party.obfuscator, X if party.fit_on is None else party.fit_on)
        party.fit(X, y)
    return party, party.share(anchor, anchor_target)


def _lower_default(f: Any, rows: Any) -> None:
    """Lower the default of a linear map to the size of the rows as numbers; other maps do so in `fit`."""
    # The last step of a pipeline has the number of columns.
    reducer = getattr(f, "steps", [("", f)])[-1][1]
    if isinstance(reducer, PCA | GaussianRandomProjection) and isinstance(reducer.n_components, DefaultNumber):
        table = plain_table(rows, "X", ValueError)
        if not has_numbers_alone(table):
            table = TableEncoder("X").fit_transform(table)
        reducer.n_components = min(int(reducer.n_components), *np.shape(table))


def refuse_unquoted(values: Any, name: str, n_dimensions: int) -> None:
    """Raise ValueError, which names no value, for arrays that scikit-learn would refuse by quoting them."""
    if sparse.issparse(values):
        return
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}. Give real numbers.")
    if array.ndim < n_dimensions:
        raise ValueError(
            f"Expected {n_dimensions}D array, got {array.ndim}D array instead: {name} has shape {array.shape}. Reshape "
            "your data: one row is array.reshape(1, -1), one column array.reshape(-1, 1)."
        )


def _draw_seed(random_state: np.random.RandomState | None) -> np.random.RandomState | None:
    if random_state is None:
        return None
    return np.random.RandomState(random_state.randint(np.iinfo(np.int32).max))


def clone_with_seeds(estimator: Any, random_state: np.random.RandomState | None) -> Any:
    """Return a clone in which every ``random_state`` left at None is drawn from ``random_state``."""
    # "auto", which the analyst replaces.
    if isinstance(estimator, str):
        return estimator
    copy = clone(estimator)
    if random_state is not None:
        # In the order of names, so that each gets the same seed in every version of scikit-learn.
        for name, value in sorted(copy.get_params(deep=True).items()):
            if value is None and name.rpartition("__")[2] == "random_state":
                copy.set_params(**{name: _draw_seed(random_state)})
    return copy


class BaseDataCollaboration(PlayedRoles):
    """Fit by targets, for a subclass that names their kind."""

    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True, "anchor_target": True}
    __metadata_request__predict_proba: ClassVar = {"groups": True}

    def fit(
        self,
        X: Tables,
        y: Tables,
        *,
        groups: ArrayLike | None = None,
        anchor: ArrayLike | None = None,
        anchor_target: ArrayLike | None = None,
    ) -> Self:
        """Play all roles: every party obfuscates and shares, the analyst integrates and trains.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features), or dict or list of them
            Rows of all parties: one table, or a dict of party to table, or a list of the tables of parties 0, 1, ...
        y : array-like of shape (n_samples,), or dict or list of them, as X is
        groups : array-like of shape (n_samples,), optional
            Owner of each row of one table.  Needed unless `party_column` is set.
        anchor : array-like or dataframe of shape (n_anchors, n_features)
            Public or synthetic rows that all parties obfuscate.  In cross-validation, metadata routing cuts an anchor
            with as many rows as `X` into folds.  Inside a `Pipeline`, the steps before transform X but not the anchor,
            unless it is built with ``transform_input=["anchor"]``.
        anchor_target : array-like of shape (n_anchors,), optional
            Targets of the anchor rows, where a graph needs them: one each.  Sums count these rows once; None or NaN is
            a row without a target, which serves as anchor alone.  Where rows are shared, none may be missing.

        Raises
        ------
        AnchorError
            If there is no anchor.
        ObfuscationError
            If a party's obfuscator or a defence fails; the message names the party.
        AgreementError, RepresentationError, NumericalError
            If the representations cannot be integrated.

        Warns
        -----
        UserWarning
            If the anchor looks as if it were in other units than `X`, or was cut in cross-validation; if numbers of
            `anchor_target` lie elsewhere than `y`; if many rows have categories that the anchor lacks.
        """
        self._validate_params()
        X, y, groups = join_parties(X, y, groups, self.party_column)
        X, values = validate_data(self, self._check_rows(X), y, skip_check_array=True)
        target = self._targets(values, "y")
        check_consistent_length(X, target)
        X, names, anchor, random_state = self._begin(X, groups, anchor)
        if is_classifier(self):
            # Parties that code one class in different ways would train a model on nonsense.
            check_coding({party: plain_column(target[rows]) for party, rows in by_party(names).items()})
        if anchor_target is not None:
            # Sums take rows without a target for anchor alone; graphs over rows need all of them.
            column = one_per_anchor_row(anchor_target, _num_samples(anchor), may_lack=self._shares_sums)
            anchor_target = self._targets(column, "anchor_target")
        self._play(X, target, names, anchor, anchor_target, random_state)
        return self

    def _play(
        self,
        X: Any,
        target: NDArray[Any],
        names: NDArray[Any],
        anchor: Any,
        anchor_target: NDArray[Any] | None,
        random_state: np.random.RandomState | None,
    ) -> None:
        """Share rows, integrate, train, and hand every party its model."""
        shares = self._share(X, target, names, anchor, anchor_target, random_state)
        integrator = self.integrator
        if integrator is None:
            integrator = self._integrator_for(shares)
        integrator = clone_with_seeds(integrator, random_state)
        analyst = self._analyst(integrator, clone_with_seeds(self._default_estimator(), random_state))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsendableWarning)  # Nothing leaves this process.
            self.collaboration_ = analyst.fit(shares)
        self.models_ = {party: self.collaboration_.party_model(party) for party in self.parties_}

    @property
    def _shares_sums(self) -> bool:
        return False

    def _integrator_for(self, shares: Sequence[Share]) -> BaseIntegrator:
        """Return the integrator to take for these shares if none is given."""
        return KTI()

    def _analyst(self, integrator: Any, estimator: Any) -> Analyst:
        return Analyst(integrator, estimator, task="classification" if is_classifier(self) else "regression")

    @abstractmethod
    def _targets(self, values: ArrayLike, name: str) -> NDArray[Any]:
        """Return "y" or "anchor_target", checked, as they are shared."""


NARROW = 0.5
WIDE = 10.0
"""Spread of the anchor's columns in that of X's.  Uniform in the range of X they have .58 of it or more."""


def warn_of_anchor(X: Any, anchor: Any) -> None:
    """Warn where the anchor is in other units than X, or was cut into folds with it.

    X is without the column that names the owners.  Other units are those of most columns of numbers, which vary far
    less or far more in the anchor, or lie elsewhere.
    """
    if n_rows := count_before_folds(anchor):
        warnings.warn(
            f"The anchor has lost rows: {_num_samples(anchor)} of {n_rows} are left. In cross-validation, scikit-learn "
            f"cuts an array with as many rows as X ({n_rows}) into folds: take one row more or less.",
            stacklevel=4,
        )
    if difference := _other_units(X, anchor):
        warnings.warn(
            f"In most columns the anchor's numbers {difference}, as where a step of a Pipeline has transformed X and "
            "not the anchor. Put that step into the obfuscator, as in obfuscator=make_pipeline(StandardScaler(), "
            'PCA(10)), or build the Pipeline with transform_input=["anchor"].',
            stacklevel=4,
        )


def _other_units(X: Any, anchor: Any) -> str | None:
    """Say how the anchor's numbers differ from those of X in most columns; None if they do not."""
    pairs = [(ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]) for ours, theirs in _numbers(X, anchor)]
    # Columns that are constant at the parties have no unit to compare.
    pairs = [(ours, theirs) for ours, theirs in pairs if len(theirs) and len(ours) and np.ptp(ours) > 0]
    if not pairs:
        return None

    def deviation(values: FloatArray) -> float:
        return float(np.mean(np.abs(values - np.median(values))))

    ratios = np.array([[spread(theirs) / spread(ours) for spread in (np.std, deviation)] for ours, theirs in pairs])
    # Either spread alone would take a few rows far off, or zeros and ones, for another unit.
    if np.median(ratios.max(axis=1)) < NARROW:
        return "vary far less than those of X"
    if np.median(ratios.min(axis=1)) > WIDE:
        return "vary far more than those of X"
    # A range's length away: other people may lie beside ours, and hardly so far.
    ranges = [(np.median(theirs), ours.min(), ours.max(), np.ptp(ours)) for ours, theirs in pairs]
    if np.mean([middle < low - span or middle > high + span for middle, low, high, span in ranges]) > 0.5:
        return "lie far outside the range of X"
    return None


def _numbers(X: Any, anchor: Any) -> list[tuple[FloatArray, FloatArray]]:
    """Return columns of numbers of both: by name where both have names, and else by position."""
    if sparse.issparse(X) or sparse.issparse(anchor):
        return []
    if hasattr(X, "columns") and hasattr(anchor, "columns"):
        there = set(anchor.columns)
        pairs: list[tuple[Any, Any]] = [(X[name], anchor[name]) for name in X.columns if name in there]
    else:
        X = np.asarray(X)
        anchor = np.asarray(anchor)
        if not (X.ndim == anchor.ndim == 2 and X.shape[1] == anchor.shape[1]):
            return []
        pairs = list(zip(X.T, anchor.T, strict=True))
    columns = []
    for ours, theirs in pairs:
        # Others are no numbers, which the obfuscator knows about.
        with suppress(TypeError, ValueError):
            columns.append((np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)))
    return columns
