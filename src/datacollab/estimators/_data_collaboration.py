"""The estimators of data collaboration: supervised, by sums or rows, survival, and clusters."""

from __future__ import annotations

import secrets
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, ClusterMixin, RegressorMixin, is_classifier
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._constraints import HasMethods, Interval, StrOptions
from .._frames import are_missing, plain_column, spelt_otherwise
from .._typing import DefaultNumber
from .._validation import FloatArray, PartyName, check_single_targets, count_missing
from ..analyst import LTI, Analyst, AnchorScaled, BaseIntegrator, Clustering, cluster, integrate
from ..errors import AgreementError, FewEventsWarning, HeavyTailWarning, SmallClassWarning
from ..own import CombinedModel, fit_own_model
from ..party import CommonSpace, Defence
from ..share import Share
from ..sums import FEWEST_PARTIES, MaskKey, SumsPlan, fences
from ..survival import CoxRegression, concordance_index
from ..targets import TargetKind, check_class_names, named_target, target_kind
from ._arguments import Tables, compare_targets, join_parties, one_per_anchor_row
from ._roles import BaseDataCollaboration, PlayedRoles, by_party, clone_with_seeds, predict_by_party, refuse_unquoted


@dataclass(frozen=True, kw_only=True, eq=False)
class SumsTask:
    """The targets that are summed up: their classes, or else the range and scale of numbers, and epsilon if bounded."""

    classes: NDArray[Any] | None = None
    limits: tuple[float, float] | None = None
    scale: str | None = None
    epsilon: float | None = None


class PlayedSums:
    """A common model from masked sums, and the models that parties predict with, each beside one of its own."""

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        rows: Mapping[PartyName, NDArray[np.intp]],
        anchor: Any,
        anchor_target: NDArray[Any] | None,
        *,
        task: SumsTask,
        random_state: np.random.RandomState | None,
        space: CommonSpace | None = None,
    ) -> None:
        if len(rows) < FEWEST_PARTIES:
            raise AgreementError(
                f"Sums need at least {FEWEST_PARTIES} parties; groups names {len(rows)}, with n_samples={len(y)}. With "
                "two, each party learns the other's sums by subtracting its own. Pass sharing='rows' to share rows."
            )
        if anchor_target is not None:
            anchor_target = one_per_anchor_row(anchor_target, np.shape(anchor)[0])
            compare_targets(y, anchor_target, are_classes=task.classes is not None)
        draw = secrets.token_bytes if random_state is None else random_state.bytes
        keys = {party: MaskKey(draw(32)) for party in rows}
        self.space = CommonSpace(anchor, draw(32), unknown="warn") if space is None else space
        classes = None if task.classes is None else tuple(task.classes.tolist())
        self.plan = SumsPlan(
            {party: key.public for party, key in keys.items()},
            n_components=self.space.n_components,
            classes=classes,
            limits=task.limits,
            noise=self.space.recommended.noise,
            least_penalty=self.space.recommended.least_penalty,
            scale=task.scale,
            epsilon=task.epsilon,
        )
        messages = []
        # All rows are encoded at once, so that one warning tells of new categories.
        everybody = np.concatenate(list(rows.values()))
        encoded = self.space.encode(_safe_indexing(X, everybody))
        self._learnt_from = dict[PartyName, list[tuple[FloatArray, NDArray[Any]]]]()
        public = list[tuple[FloatArray, NDArray[Any]]]()
        if anchor_target is not None:
            has = ~are_missing(anchor_target)
            public = [(self.space.encode(anchor)[has], anchor_target[has])]
        ends = np.cumsum([len(index) for index in rows.values()])
        for place, (party, index) in enumerate(rows.items()):
            own = encoded[ends[place] - len(index) : ends[place]]
            v = self.space.map_encoded(own)
            t = y[index]
            self._learnt_from[party] = [(own, t), *public]
            # The first party counts the labelled public rows for all.
            counted = None
            if place == 0 and anchor_target is not None:
                counted = self.space.anchor[has], anchor_target[has]
            noise_key = None if random_state is None else draw(32)
            messages.append(self.plan.message(party, v, t, keys[party], noise_key=noise_key, public=counted))
        self.model = self.plan.solve(messages)

    @cached_property
    def homes(self) -> dict[PartyName, CombinedModel]:
        """The model that each party predicts with; own models are fitted when somebody asks for them."""
        homes = {}
        for party, parts in self._learnt_from.items():
            own = None
            if not self.space.alike:  # Of columns that are all alike an own model has no weight.
                own = fit_own_model(self.plan.statistic, *parts)
            homes[party] = CombinedModel(self.space, self.model, own)
        return homes

    def at_home(self, method: str, X: Any, names: NDArray[Any]) -> NDArray[Any]:
        """Return results of "predict" or "predict_proba" by each row's owner's `CombinedModel`."""
        # Rows of nobody, or of a party that came later, are predicted by the common model alone.
        common = CombinedModel(self.space, self.model)
        if not len(names):
            return np.asarray(getattr(common, method)(X))
        homes = {name: self.homes.get(name, common) for name in by_party(names)}
        return predict_by_party(X, names, {name: getattr(home, method) for name, home in homes.items()})

    def __repr__(self) -> str:
        n_rows = f"{self.model.fit.n_rows:.0f}"
        return f"PlayedSums(parties={list(self.plan.roster)}, n_rows={n_rows}, noise={self.plan.statistic.noise:.3g})"


_OF_ROWS = ("obfuscator", "integrator", "estimator", "fit_on", "defences")
"""Parameters that only sharing rows has a use for."""


class _Supervised(BaseDataCollaboration):
    """Classification and regression: sums under masks, or rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseDataCollaboration._parameter_constraints,
        "sharing": [StrOptions({"sums", "rows"}), None],
        "epsilon": [Interval(Real, 0, None, closed="neither"), None],
    }

    sums_: PlayedSums

    def __init__(  # noqa: PLR0913
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | str | None = None,
        estimator: Any = None,
        *,
        sharing: str | None = None,
        epsilon: float | None = None,
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
        self.sharing = sharing
        self.epsilon = epsilon
        self.fit_on = fit_on
        self.defences = defences
        self.shuffle = shuffle
        self.party_column = party_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _row_parameters(self) -> list[str]:
        """Names of the parameters that are set and that only rows have a use for."""
        names = [name for name in _OF_ROWS if getattr(self, name) is not None]
        return [name for name in names if name != "defences" or len(self.defences)]

    @property
    def _shares_sums(self) -> bool:
        """Whether sums are shared: by default, unless a parameter is set that only rows have a use for."""
        names = self._row_parameters
        culprits = ", ".join(names) or "sharing"
        # Contradictions are refused: to ignore one parameter could share rows where sums were meant.
        if getattr(self, "scale", None) is not None and (names or self.sharing == "rows"):
            raise ValueError(
                f"{type(self).__name__}: scale is for sums, and {culprits} has rows shared. Leave "
                "one of them out, or take the logarithms of y and anchor_target."
            )
        if self.epsilon is not None and (names or self.sharing == "rows"):
            raise ValueError(
                f"{type(self).__name__}: epsilon is a bound for sums, and {culprits} has rows "
                "shared. Leave one of them out, or pass defences=[GaussianMechanism(epsilon)] in place of epsilon."
            )
        if self.sharing == "sums" and names:
            raise ValueError(
                f"{type(self).__name__}: sharing='sums' has no use for {culprits}. Leave these out, or pass "
                "sharing='rows'."
            )
        if self.sharing is None:
            return not names
        return self.sharing == "sums"

    def _play(
        self,
        X: Any,
        target: NDArray[Any],
        names: NDArray[Any],
        anchor: Any,
        anchor_target: NDArray[Any] | None,
        random_state: np.random.RandomState | None,
    ) -> None:
        # An earlier fit may have shared the other way; its attributes would decide how rows are predicted.
        for attribute in ("sums_", "parties_", "models_", "collaboration_"):
            if hasattr(self, attribute):
                delattr(self, attribute)
        if self._shares_sums:
            if hasattr(X, "columns") and (extra := [name for name in X.columns if name not in list(anchor.columns)]):
                raise AgreementError(
                    f"X has {len(extra)} columns that the anchor lacks: {extra[:10]!r}."
                    f"{spelt_otherwise(extra, list(anchor.columns))} Leave them out of X, or add them to the anchor."
                )
            task = replace(self._sums_task(target), epsilon=self.epsilon)
            self.sums_ = PlayedSums(
                X, target, by_party(names), anchor, anchor_target, task=task, random_state=random_state
            )
            if constant := self.sums_.model.constant_classes:
                n_classes = len(np.unique(target))
                warnings.warn(
                    f"The total says hardly more of {len(constant)} of {n_classes} classes than their "
                    "shares of rows, from which probabilities differ little: they have too few rows for its noise, or "
                    "nothing to do with the columns. Add rows of them, or labelled public rows with anchor_target.",
                    FewEventsWarning,
                    stacklevel=3,
                )
        else:
            super()._play(X, target, names, anchor, anchor_target, random_state)

    @property
    def _has_maps(self) -> bool:
        return not hasattr(self, "sums_")

    def _call_fitted(self, method: str, X: Any, names: NDArray[Any], *arguments: Any) -> NDArray[Any]:
        if self._has_maps:
            return super()._call_fitted(method, X, names, *arguments)
        if method == "transform":
            return self.sums_.space.transform(X)
        return self.sums_.at_home(method, X, names)

    @property
    def _n_features_out(self) -> int:
        if self._has_maps:
            return super()._n_features_out
        return self.sums_.space.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.sharing != "rows" and not self._row_parameters:
            tags.input_tags.allow_nan = True  # The common map fills gaps.
        return tags

    def _default_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        if self.integrator == "auto":
            return "auto"
        forest = RandomForestClassifier if is_classifier(self) else RandomForestRegressor
        return make_pipeline(StandardScaler(), forest())

    def _targets(self, values: ArrayLike, name: str) -> NDArray[Any]:
        target = plain_column(values)
        check_single_targets(target, name, AgreementError)
        if name == "y":
            refuse_unquoted(target, "y", 1)
            if missing := count_missing(target):
                raise AgreementError(f"y is missing in {missing} of {len(target)} rows. Leave these rows out.")
            target = column_or_1d(check_array(target, input_name="y", ensure_2d=False, dtype=None), warn=True)
        return self._of_task(target, name)

    @abstractmethod
    def _of_task(self, target: NDArray[Any], name: str) -> NDArray[Any]:
        """Return targets in the type of the task, by which graphs read the anchor's."""

    @abstractmethod
    def _sums_task(self, target: NDArray[Any]) -> SumsTask:
        """Return the classes, or the range, of a target that is summed up."""


def _estimator_has(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        if self._shares_sums:
            return True
        if hasattr(self, "collaboration_"):
            return hasattr(self.collaboration_.estimator_, method)
        # The analyst chooses among models that have all methods.
        estimator = self._default_estimator()
        return isinstance(estimator, str) or hasattr(estimator, method)

    return check


class DataCollaborationClassifier(ClassifierMixin, _Supervised):
    """Data collaboration for classification, all roles in one process.

    For trying out methods on data that may be in one place; a real collaboration uses the roles themselves.  By
    default, parties share sums under masks, with noise, from which all get the same model.  With `groups`, each row is
    then predicted by this model and its own party's model together, as `CombinedModel` does; without, by the common
    model alone.

    Parameters
    ----------
    obfuscator : transformer, mapping of party to transformer, or callable, default=None
        f_k; each party fits a clone of it on its own rows.  A mapping or a callable of the party's name gives each
        its own.  None takes ``obfuscator("pca")``.
    integrator : BaseIntegrator or "auto", default=None
        How representations are aligned.  None takes ``KTI()``; "auto" leaves the choice to `Analyst`.
    estimator : estimator or "auto", default=None
        h, trained on all collaboration representations.  None takes a random forest on standardised columns, or "auto"
        where the integrator is; "auto" leaves the choice to `Analyst`.  Entries of representations are small, about
        ``n_anchors ** -0.5`` or less, so put a scaler before a model of your own.
    sharing : {"sums", "rows"}, default=None
        What parties send.  None takes rows if `obfuscator`, `integrator`, `estimator`, `fit_on` or `defences` is
        given, and sums otherwise.  Sums need three parties or more.
    epsilon : float, default=None
        Makes the total of sums (epsilon, 1e-5)-differentially private for replacing one row.  The noise is that of
        `RidgeSums.noise_for`, and at least the recommended one.  The bound holds if at most half of the parties
        work with the analyst, and takes the classes of y as known.  Smaller is safer, and costs accuracy.
    fit_on : "anchor", array-like or dataframe of shape (n_public, n_features), default=None
        Public rows that every party fits its own obfuscator on, instead of its private rows; see `Party`.  "anchor"
        takes the anchor given to `fit`.
    defences : list or tuple of Defence, default=()
        Applied by every party to its rows before it shares them; see `Party`.
    shuffle : bool, default=True
        Whether the parties' rows are joined in a random order, as between organisations.  False keeps that of `X`.
    party_column : str or int, default=None
        Column of X that names the owner of each row.  It replaces `groups`, is taken out before anything else, and
        lets scorers that pass nothing but X work.  Anchors come without it.
    n_jobs : int, default=None
        Parties obfuscating at a time.
    random_state : int, RandomState or None, default=None
        Seeds every ``random_state`` left at None in obfuscators, integrator and estimator, a different one for each
        party.  None leaves the secrets to the operating system.

    Attributes
    ----------
    parties_, models_ : dict of party to Party, and to PartyModel
    collaboration_ : Collaboration
    sums_ : PlayedSums
        In place of these three if sums are shared.
    n_features_in_, feature_names_in_ : int, ndarray of str
    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    A grid search over both sides, in which the owners and the anchor travel by metadata routing; of a graph it reaches
    ``integrator__graph__n_neighbors``:

    >>> import sklearn, datacollab as dc
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = dc.datasets.load("digits")
    >>> split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=60, random_state=0)
    >>> rows, target, hospital = split.pooled()
    >>> clf = dc.DataCollaborationClassifier(dc.obfuscator("pca"), dc.KTI(), random_state=0)
    >>> grid = {"integrator__alpha": [0.01, 1.0], "obfuscator__n_components": [10, 20]}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(clf, grid, cv=dc.PartyStratifiedKFold(2))
    ...     search = search.fit(rows, target, groups=hospital, anchor=X[split.rest[:200]])
    >>> sorted(search.best_params_)
    ['integrator__alpha', 'obfuscator__n_components']

    The best collaboration predicts new rows, each through the party that owns it:

    >>> new = X[split.rest[200:400]]
    >>> search.best_estimator_.predict(new, groups=["party-0"] * len(new)).shape
    (200,)
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of the model."""
        if hasattr(self, "sums_"):
            return np.asarray(self.sums_.plan.classes)
        return np.asarray(self.collaboration_.estimator_.classes_)

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return class probabilities, shape (n_samples, n_classes), each row through its own party."""
        return self._by_party("predict_proba", X, groups)

    def score(
        self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return accuracy of `predict`."""
        return float(accuracy_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))

    def _of_task(self, target: NDArray[Any], name: str) -> NDArray[Any]:
        # Texts beside numbers are refused with the names of the parties.
        if name == "y" and len({isinstance(each, str) for each in target.tolist()}) < 2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SmallClassWarning)
                check_class_names(target, name)
            check_classification_targets(target)
        return target

    def _sums_task(self, target: NDArray[Any]) -> SumsTask:
        return SumsTask(classes=np.unique(target))


class DataCollaborationRegressor(RegressorMixin, _Supervised):
    """Data collaboration for regression, all roles in one process.

    Parameters, attributes and sharing are those of `DataCollaborationClassifier`, without `classes_`.  The bound of
    epsilon takes the range of y as known.  Sums clip y where a few entries lie farther outside of nine tenths of them
    than twice their range, as noise is a part of the range.

    Parameters
    ----------
    scale : {"log"}, default=None
        Sum up logarithms, of entries of 0 or more such as costs or durations; see `RidgeSums`.  Predictions are means
        in the units of y.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_Supervised._parameter_constraints,
        "scale": [StrOptions({"log"}), None],
    }

    def __init__(  # noqa: PLR0913
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | str | None = None,
        estimator: Any = None,
        *,
        sharing: str | None = None,
        epsilon: float | None = None,
        scale: str | None = None,
        fit_on: Any = None,
        defences: Sequence[Defence] = (),
        shuffle: bool = True,
        party_column: str | int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            obfuscator,
            integrator,
            estimator,
            sharing=sharing,
            epsilon=epsilon,
            fit_on=fit_on,
            defences=defences,
            shuffle=shuffle,
            party_column=party_column,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.scale = scale

    def score(
        self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return coefficient of determination of `predict`."""
        return float(r2_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))

    def _of_task(self, target: NDArray[Any], name: str) -> NDArray[Any]:
        try:
            return np.asarray(target, dtype=np.float64)
        except ValueError:
            # numpy's own message quotes an entry.
            raise ValueError(
                f"{name} must be numeric for regression; got dtype {target.dtype}. For classes there is "
                "DataCollaborationClassifier."
            ) from None

    def _sums_task(self, target: NDArray[Any]) -> SumsTask:
        if self.scale == "log" and (target < 0).any():
            raise ValueError(
                f"{type(self).__name__}: scale='log' is for y of 0 or more, and {(target < 0).sum()} of {len(target)} "
                "entries are below. Correct them, or leave out the scale."
            )
        # One entry of a million among hundreds would set the noise for all.
        low, high = fences(target, scale=self.scale)
        if n_beyond := int(((target < low) | (target > high)).sum()):
            advice = "Correct mistyped entries"
            if self.scale is None and target.min() >= 0:
                advice += "; for costs, durations and the like pass scale='log'"
            larger = "larger"
            if self.scale is None:
                larger = f"{np.ptp(target) / (high - low):.1f} times as large"
            warnings.warn(
                f"{n_beyond} of {len(target)} entries of y lie so far from nine tenths of them that they are clipped: "
                f"noise is a part of the range, and with them it would be {larger}. {advice}.",
                HeavyTailWarning,
                stacklevel=4,
            )
        if low >= high:
            # Of targets that are all alike; half a unit may vanish beside a number of 1e16, so one step at least.
            half = max(0.5, float(np.spacing(abs(low))))
            low -= half
            high += half
        if self.scale is not None:
            low = max(0.0, low)
        return SumsTask(limits=(low, high), scale=self.scale)


class DataCollaborationClusterer(ClusterMixin, PlayedRoles):
    """Data collaboration for clustering, all roles in one process.

    Its clusters are those of the real roles.  No labels are needed or looked at.

    Parameters
    ----------
    obfuscator : transformer, mapping of party to transformer, or callable, default=None
        f_k.  Distances are those that it leaves: standardise columns in different units, as with
        ``obfuscator("pca", standardize=True)``.
    integrator : BaseIntegrator or None, default=None
        None takes `AnchorScaled`, whose distances are those that parties see on the anchor.  Other methods have
        orthonormal targets, in which all directions are equally long; put them into `AnchorScaled`.
    estimator : clusterer or None, default=None
        Any with `fit_predict`.  None takes `KMeans`, begun ten times.
    n_clusters : int, default=8
        For `KMeans`, if `estimator` is None.
    assignment, least_rows
        See `datacollab.analyst.cluster`.
    fit_on, defences, shuffle, party_column, n_jobs, random_state
        As in `DataCollaborationClassifier`.  Defences that need targets are refused.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row of `fit`, as its own party's model says; ``collaboration_.agreement_`` tells how often
        the clusterer says the same.
    collaboration_, parties_, models_, n_features_in_, feature_names_in_
        As in `DataCollaborationClassifier`.

    Examples
    --------
    >>> import numpy as np, datacollab as dc
    >>> from datacollab.estimators import DataCollaborationClusterer
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, _ = dc.datasets.load("digits")
    >>> rows, hospital, anchor = X[:300], np.arange(300) % 3, X[300:600]
    >>> clusterer = DataCollaborationClusterer(dc.obfuscator("pca", 30), n_clusters=10, random_state=0)
    >>> labels = clusterer.fit_predict(rows, groups=hospital, anchor=anchor)
    >>> bool(adjusted_rand_score(KMeans(10, n_init=10, random_state=0).fit_predict(rows), labels) > 0.6)
    True
    """

    __metadata_request__fit: ClassVar = {"groups": True, "anchor": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlayedRoles._parameter_constraints,
        "integrator": [BaseIntegrator, None],
        "estimator": [HasMethods(["fit_predict"]), None],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "assignment": [HasMethods(["fit", "predict"]), None],
        "least_rows": [Interval(Integral, 1, None, closed="left")],
    }

    collaboration_: Clustering
    labels_: NDArray[np.intp]

    def __init__(  # noqa: PLR0913
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | None = None,
        estimator: Any = None,
        *,
        n_clusters: int = 8,
        assignment: Any = None,
        least_rows: int = 5,
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
        self.n_clusters = n_clusters
        self.assignment = assignment
        self.least_rows = least_rows
        self.fit_on = fit_on
        self.defences = defences
        self.shuffle = shuffle
        self.party_column = party_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Tables, y: None = None, *, groups: ArrayLike | None = None, anchor: ArrayLike | None = None
    ) -> Self:
        """Play all roles: every party obfuscates and shares, the analyst integrates and clusters.

        Parameters, errors and warnings are those of `DataCollaborationClassifier.fit`; `y` is ignored.  Raise
        ValueError if a cluster has fewer than `least_rows` rows.
        """
        self._validate_params()
        X, _, groups = join_parties(X, None, groups, self.party_column)
        X = validate_data(self, self._check_rows(X), skip_check_array=True)
        X, names, anchor, random_state = self._begin(X, groups, anchor)
        shares = self._share(X, None, names, anchor, None, random_state)
        integrator = self.integrator or AnchorScaled()
        # Seeds are drawn in this order: integrator, clusterer, assignment.
        integration = integrate(shares, clone_with_seeds(integrator, random_state))
        clusterer = clone_with_seeds(self._default_estimator(), random_state)
        assignment = None
        if self.assignment is not None:
            assignment = clone_with_seeds(self.assignment, random_state)
        self.collaboration_ = cluster(integration, clusterer, assignment=assignment, least_rows=self.least_rows)
        self.models_ = {party: self.collaboration_.party_model(party) for party in self.parties_}
        self.labels_ = self._call_fitted("predict", X, names)
        return self

    def _default_estimator(self) -> Any:
        if self.estimator is None:
            return KMeans(self.n_clusters, n_init=10)
        return self.estimator


class DataCollaborationSurvival(BaseDataCollaboration):
    """Data collaboration for survival analysis, all roles in one process.

    Its predictions are those of the real roles.

    Parameters
    ----------
    integrator : BaseIntegrator or None, default=None
        None takes `LTI` with an intercept and as many components as the narrowest share has columns.
    estimator : SurvivalModel or None, default=None
        h: `datacollab.survival.CoxRegression`, which None takes, or `datacollab.survival.SurvivalForest`.
    strata : {"party"} or None, default="party"
        Whether each party has risks of its own over time, with common hazard ratios.
    time_step : float, "auto" or None, default="auto"
        Parties round times up to multiples of it before they share them; see `Party`.
    obfuscator, fit_on, defences, shuffle, party_column, n_jobs, random_state
        As in `DataCollaborationClassifier`.

    Attributes
    ----------
    parties_, models_, collaboration_
        As in `DataCollaborationClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollab as dc
    >>> from datacollab.targets import survival_target
    >>> generator = np.random.default_rng(0)
    >>> X = generator.normal(size=(300, 4))
    >>> time = generator.exponential(np.exp(-X[:, 0]))
    >>> y = survival_target(time < 3, np.minimum(time, 3))
    >>> hospital = np.repeat(["a", "b", "c"], 100)
    >>> anchor = generator.normal(size=(200, 4))
    >>> model = dc.DataCollaborationSurvival(dc.obfuscator("pca", 4), random_state=0)
    >>> model.fit(X, y, groups=hospital, anchor=anchor).predict_survival(X[:2], [0.5, 1.0], groups=hospital[:2]).shape
    (2, 2)
    >>> bool(model.score(X, y, groups=hospital) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseDataCollaboration._parameter_constraints,
        "strata": [StrOptions({"party"}), None],
        "time_step": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
    }
    __metadata_request__predict_survival: ClassVar = {"groups": True}
    _of_parties = ("time_step",)

    def __init__(  # noqa: PLR0913
        self,
        obfuscator: Any = None,
        integrator: BaseIntegrator | None = None,
        estimator: Any = None,
        *,
        strata: str | None = "party",
        time_step: float | str | None = "auto",
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
        self.strata = strata
        self.time_step = time_step
        self.fit_on = fit_on
        self.defences = defences
        self.shuffle = shuffle
        self.party_column = party_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def predict_survival(self, X: ArrayLike, times: ArrayLike, *, groups: ArrayLike | None = None) -> FloatArray:
        """Return each row's probability of no event up to each time, shape (n_samples, n_times).

        Raise UnknownPartyError if a row's owner took no part in `fit`, and ValueError if a time is beyond the end of a
        party's observation.
        """
        return self._by_party("predict_survival", X, groups, times)

    def score(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None) -> float:
        """Return Harrell's concordance index of the log risks, over pairs within and between parties."""
        return concordance_index(self._targets(y, "y"), self.predict(X, groups=groups))

    def _default_estimator(self) -> Any:
        if self.estimator is None:
            return CoxRegression()
        return self.estimator

    def _integrator_for(self, shares: Sequence[Share]) -> BaseIntegrator:
        # With an intercept, as maps of the parties are centred in different places; no wider than the narrowest share.
        return LTI(DefaultNumber(min(share.representation.shape[1] for share in shares)), fit_intercept=True)

    def _analyst(self, integrator: Any, estimator: Any) -> Analyst:
        return Analyst(integrator, estimator, strata=self.strata)

    def _targets(self, values: ArrayLike, name: str) -> NDArray[Any]:
        y = np.asarray(values)
        if target_kind(y) is not TargetKind.SURVIVAL:
            raise AgreementError(
                f"Expected times to an event as {name} (see datacollab.targets.survival_target), got {y.dtype}."
            )
        return named_target(y)
