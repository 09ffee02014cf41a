"""A party that combines what the others brought with what it has by itself, and what that brought it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._encoder import TableEncoder
from .._frames import equal_rows, plain_column
from .._threads import one_thread
from .._validation import FloatArray, PartyName, check_single_targets, require
from ..bundle import Bundle, SignedFile
from ..errors import AgreementError, ExchangeError
from ..linalg import FEWEST_OF_A_CLASS, Kernel, auc_difference, auc_with_interval, entropy, mean_with_interval
from ..model import PartyModel
from ._local_party import LocalParty, TableForm, one_per_row
from ._own_models import (
    Blend,
    Blender,
    Candidate,
    ClassBlend,
    ClassBlender,
    EstimatorScorer,
    KernelScorer,
    NumberBlend,
    NumberBlender,
    Opinions,
    OwnData,
    Scorer,
    SpreadScorer,
    fold_numbers,
    log_of_shares,
    own_candidates,
)
from ._state import from_skops, local_party, party_state, to_skops

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure and its 95 % interval; None for both ends where no interval holds."""

    value: float
    low: float | None = None
    high: float | None = None


def _estimate(value: float, interval: Sequence[float] | None) -> Estimate:
    return Estimate(value=value) if interval is None else Estimate(value=value, low=interval[0], high=interval[1])


_Measured = Callable[..., tuple[float, list[float] | None]]


def _root_mean(squares: FloatArray) -> tuple[float, None]:
    return float(np.sqrt(squares.mean())), None


def _mean_drop(losses: FloatArray, losses_before: FloatArray) -> tuple[float, list[float] | None]:
    return mean_with_interval(losses_before - losses)


def error_reduction(squares: FloatArray, squares_before: FloatArray) -> tuple[float, list[float]]:
    r"""Return by which part one model's root mean squared error is below another's on the same rows.

    The jackknife of :math:`\log(\mathrm{RMSE}/\mathrm{RMSE}_0)`, with a quantile of Student's t.
    """
    tiny = np.finfo(np.float64).tiny
    ratio = float(0.5 * np.log(max(squares.mean(), tiny) / max(squares_before.mean(), tiny)))
    without = np.maximum(_means_without(squares), tiny) / np.maximum(_means_without(squares_before), tiny)
    replicates = 0.5 * np.log(without)
    n = len(replicates)
    deviation = np.sqrt((n - 1) * np.mean((replicates - replicates.mean()) ** 2))
    half = float(stats.t.ppf((1 + _CONFIDENCE) / 2, n - 1) * deviation)
    return 1 - float(np.exp(ratio)), [1 - float(np.exp(ratio + side * half)) for side in (1, -1)]


def _means_without(values: FloatArray) -> FloatArray:
    """Return means of all values but one, shape (n_values,)."""
    return np.asarray((values.sum() - values) / (len(values) - 1))


_SIDES = ("local", "collaboration", "combined")

_REASONS = {
    "left out": "each judged by models that it was left out of",
    "without the party": "each judged by the common model as it is without any row of the party, and by own models "
    "that it was left out of",
}


@dataclass(frozen=True, kw_only=True)
class Side:
    """How well the party does in one way.

    `loss` is the mean log loss, or squared error; `score` is in the benefit's metric, without an interval for numbers:
    none holds where few large errors make most of it.
    """

    loss: float
    score: Estimate


@dataclass(frozen=True, kw_only=True)
class Benefit:
    """What collaboration brought to a party, as its own rows say.

    Attributes
    ----------
    party : str or int
    metric : {"AUC", "log loss", "RMSE"}
        For two classes the area under the curve, if three judged rows or more have each; otherwise the log loss.
    basis : {"left out", "without the party"} or None
        How the common model was judged: by the left-out predictions that came with it, or by the model without the
        party.  None if neither came, so that nothing honest can be said.
    n_rows, n_judged : int
        Own rows, and those among them that were judged.
    constant : float
        The score of always answering the share of each class among the judged rows, or their mean.
    local : Side
        The best that the party has without the others.
    collaboration, combined : Side or None
        The common model, and both together.
    collaboration_gain, combined_gain : Estimate or None
        What they are better than `local` on the same rows, with a paired 95 % interval: the difference of areas, how
        much less the log loss is, or the part by which the root mean squared error is less.
    own_models, own_weights : tuple
        What `local` is made of, and its weights.
    weights : dict of str to float
        Of "local" and "collaboration" in the pool.

    Notes
    -----
    Nothing leaves the party, unless it shows this to somebody.  The intervals are about which rows the party happens to
    have, the fitted models given.  Weights and choices that judge a row were made without it.  All of it is about rows
    like the party's own.
    """

    party: PartyName
    metric: str
    basis: str | None
    n_rows: int
    n_judged: int
    constant: float
    local: Side
    collaboration: Side | None = None
    combined: Side | None = None
    collaboration_gain: Estimate | None = None
    combined_gain: Estimate | None = None
    own_models: tuple[str, ...]
    own_weights: tuple[float, ...]
    weights: dict[str, float]

    @property
    def sentence(self) -> str:
        """What collaboration brought, in words."""
        if self.basis is None or self.combined is None or self.combined_gain is None:
            return (
                f"It cannot be said what collaboration brought: the model came without left-out predictions for the "
                f"{self.n_rows} own rows, which it was trained on. The analyst can send them for rows "
                "without defences; with defences it takes three other parties."
            )
        gain, form = self.combined_gain, ".4g" if self.metric == "RMSE" else ".3f"
        alone, both = (f"{side.score.value:{form}}" for side in (self.local, self.combined))
        assert gain.low is not None
        assert gain.high is not None
        factor, unit = {"AUC": (100, "points of AUC"), "log loss": (1, "of log loss")}.get(
            self.metric, (100, "% less error")
        )
        places = ".3f" if factor == 1 else ".1f"
        value, low, high = (f"{factor * each:{places}}" for each in (gain.value, gain.low, gain.high))
        size, interval = f"{value.removeprefix('-')} {unit}", f"95 % interval {low} to {high}"
        if gain.low > 0:
            brought = f"brought {size} ({interval})"
        elif gain.high < 0:
            brought = f"cost {size} ({interval})"
        elif gain.value > 0:
            brought = f"brought {size}, or nothing ({interval})"
        else:
            brought = f"brought nothing beyond chance ({interval})"
        return (
            f"Collaboration {brought}: {self.metric} {alone} alone, {both} with it, {self.constant:{form}} for always "
            f"the same answer, on {self.n_judged} own rows, {_REASONS[self.basis]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it, the sentence included."""
        lists = {"own_models": list(self.own_models), "own_weights": list(self.own_weights)}
        return asdict(self) | lists | {"sentence": self.sentence}


def benefit_of(
    opinions: Opinions, target: NDArray[Any], judged: NDArray[np.bool_], unit: float | None, **facts: Any
) -> Benefit:
    """Return the report on the judged rows, or on what the party has by itself where none is judged.

    For numbers, unit is one standard deviation of the target; for classes it is None, and targets are codes.
    """
    is_judged = judged.sum() > 1  # One row gives no interval.
    names = _SIDES if is_judged else _SIDES[:1]
    rows = judged if is_judged else np.ones_like(judged)
    said = {name: getattr(opinions, name)[rows] for name in names}
    known: NDArray[Any] = target[rows] if unit is not None else target[rows].astype(np.intp)
    score: _Measured = mean_with_interval
    gain: _Measured = _mean_drop
    if unit is not None:
        metric, constant, score, gain = "RMSE", float(known.std() * unit), _root_mean, error_reduction
        losses = found = {name: ((numbers - known) * unit) ** 2 for name, numbers in said.items()}
    else:
        losses = found = {name: -logs[np.arange(len(known)), known] for name, logs in said.items()}
        metric, constant, positive = "log loss", entropy(np.bincount(known)), known == 1
        is_ranked = said[names[0]].shape[1] == 2 and min(positive.sum(), (~positive).sum()) >= FEWEST_OF_A_CLASS
        if is_ranked:
            metric, constant = "AUC", 0.5
            found = {name: logs[:, 1] - logs[:, 0] for name, logs in said.items()}
            score, gain = partial(auc_with_interval, positive), partial(auc_difference, positive)
    sides: Any = {name: Side(loss=float(losses[name].mean()), score=_estimate(*score(found[name]))) for name in names}
    gains: Any = {f"{name}_gain": _estimate(*gain(found[name], found["local"])) for name in names[1:]}
    return Benefit(metric=metric, constant=constant, n_judged=int(judged.sum()), **sides, **gains, **facts)


class CollaborationOpinion:
    """The common model's output in columns of all classes, or as numbers."""

    def __init__(self, model: PartyModel, classes: NDArray[Any] | None, unit: tuple[float, float] | None) -> None:
        self.model, self.classes, self.unit = model, classes, unit

    def of(self, representation: FloatArray) -> FloatArray:
        """Return logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1), for f_k of any rows."""
        return self._output(self.model.estimator, self.model.transform(representation))

    def of_own_rows(self, representation: FloatArray, order: NDArray[np.intp] | None) -> tuple[FloatArray, str | None]:
        """Return outputs for own rows by models without them, and the kind of these models."""
        n_own = len(representation)
        outputs = np.full((n_own, 1 if self.classes is None else len(self.classes)), np.nan)
        if self.model.left_out is not None:
            places, common = self._checked(np.asarray(self.model.left_out, dtype=np.float64), order, n_own)
            whole = np.isfinite(common).all(axis=1)
            outputs[places[whole]] = self._in_columns(common[whole], self.model.estimator)
            return outputs, "left out" if whole.any() else None
        if self.model.without_party is not None:
            return self._output(self.model.without_party, self.model.transform(representation)), "without the party"
        return outputs, None

    def _checked(
        self, left_out: FloatArray, order: NDArray[np.intp] | None, n_own: int
    ) -> tuple[NDArray[np.intp], FloatArray]:
        party = self.model.party
        if order is None:
            raise AgreementError(
                f"Party {party!r}: the model's left-out predictions are in the order of the share. Pass order, the "
                "position in the table of each shared row."
            )
        places = np.asarray(order)
        n_classes = None if self.classes is None else len(self.model.estimator.classes_)
        wanted = (len(places),) if n_classes is None else (len(places), n_classes)
        if left_out.shape != wanted:
            raise AgreementError(
                f"Party {party!r}: left-out predictions for its {len(places)} shared rows must have shape {wanted}; "
                f"got {left_out.shape}. The model is not the one made of this share."
            )
        within = places.size > 0 and places.dtype.kind in "iu" and places.min() >= 0 and places.max() < n_own
        if not within or len(np.unique(places)) < len(places):
            raise AgreementError(
                f"Party {party!r}: order must hold positions among the {n_own} own rows, each once; got "
                f"{len(places)} entries, {len(np.unique(places))} of them distinct."
            )
        return places.astype(np.intp), left_out.reshape(len(places), -1)

    def _output(self, estimator: Any, Z: FloatArray) -> FloatArray:
        if self.classes is None:
            common = np.asarray(estimator.predict(Z)).reshape(len(Z), -1)
        elif hasattr(estimator, "predict_proba"):
            common = np.asarray(estimator.predict_proba(Z))
        else:
            # A model without probabilities names one class; how far it is to be believed is settled afterwards.
            common = np.asarray(estimator.predict(Z))[:, None] == np.asarray(estimator.classes_)[None, :]
        return self._in_columns(common.astype(np.float64), estimator)

    def _in_columns(self, common: FloatArray, estimator: Any) -> FloatArray:
        if self.classes is None:
            assert self.unit is not None
            return (common - self.unit[0]) / self.unit[1]
        shares = np.zeros((len(common), len(self.classes)))
        shares[:, np.searchsorted(self.classes, np.asarray(estimator.classes_))] = np.maximum(common, 0.0)
        return log_of_shares(shares)


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(one, str) for one in labels))


N_TREES = 300
MOST_REFITS = 60
"""Of the weights, for the report: each own row by itself up to so many, and as many folds beyond."""


class PersonalModel(SignedFile):
    """One party's own models and the common one, pooled: predicts raw rows at the party.

    Made by `Party.personalise`, or by `personalise`.  `save` writes a file (no pickle) for the party's own disk, and
    `load` reads it.

    Attributes
    ----------
    party : str or int
    classes_ : ndarray of shape (n_classes,)
        The party's own, those of labelled public rows and those of the common model; absent for numbers.
    n_features_in_ : int or None
    benefit_ : Benefit
        What collaboration brought, as the party's own rows say.
    sides : tuple of str
        What `predict` can use; "own" where there were public rows to do without.  Its models learn from none of these,
        which may still set the units in which columns are compared.

    Notes
    -----
    The own models hold the party's rows, so this, and its file, are as sensitive as the raw table.

    In the pool, `log p` is a weighted sum of the sides' log probabilities (a log-opinion pool [Genest1986]_); numbers
    are averaged.  The weights are fitted to left-out predictions of the party's own rows and held to weights by loss.
    """

    kind = "datacollab.party-state"

    classes_: NDArray[Any]

    def __init__(
        self,
        home: LocalParty,
        opinion: CollaborationOpinion,
        encoder: TableEncoder,
        scorers: list[Scorer],
        blend: Blend,
        benefit: Benefit,
        own: tuple[list[Scorer], Blend] | None = None,
    ) -> None:
        self.party = home.name
        self.n_features_in_ = encoder.n_features_in_
        self.benefit_ = benefit
        self._home, self._opinion, self._encoder = home, opinion, encoder
        self._scorers, self._blend, self._own = scorers, blend, own
        self.sides = ("combined", "local", *(() if own is None else ("own",)), "collaboration")
        if opinion.classes is not None:
            self.classes_ = opinion.classes

    def predict(self, X: ArrayLike, using: str = "combined") -> NDArray[Any]:
        """Predict raw rows, shape (n_rows,).

        By default both sides together; `using` can also be "local", the party's own models with the public rows, "own",
        without them, or "collaboration", the common model.  Raise ValueError if there is no such side, and
        AgreementError or ObfuscationError if the rows are not like the party's own.
        """
        said = self._said(X, using)
        if self._opinion.unit is None:
            return np.asarray(self.classes_[said.argmax(axis=1)])
        mean, deviation = self._opinion.unit
        return np.asarray(mean + deviation * said)

    def predict_proba(self, X: ArrayLike, using: str = "combined") -> FloatArray:
        """Return class probabilities of raw rows, shape (n_rows, n_classes), in the order of `classes_`; see `predict`.

        Raise AttributeError if numbers are predicted.
        """
        if self._opinion.unit is not None:
            raise AttributeError(f"Party {self.party!r}: the target is a number, so there are no class probabilities.")
        shares = np.exp(self._said(X, using))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _said(self, X: Any, using: str) -> FloatArray:
        if using not in self.sides:
            raise ValueError(f"using must be one of {', '.join(map(repr, self.sides))}; got {using!r}.")
        scorers, blend = (self._scorers, self._blend) if using != "own" or self._own is None else self._own
        Z = self._encoder.transform(X)
        common = self._opinion.of(self._home.obfuscate(X))
        opinions = blend.speak([score(Z) for score in scorers], common)
        return np.asarray(getattr(opinions, "local" if using == "own" else using))

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        facts, members = party_state(self._home)
        return {"map": facts}, members | personal_state(self) | {_COMMON: self._opinion.model.to_bytes()}

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> PersonalModel:
        members = dict(bundle.members)
        facts, common = bundle.facts.get("map"), members.pop(_COMMON, None)
        if not isinstance(facts, Mapping) or common is None:
            raise _damaged("a part is missing")
        return personal_model(members, local_party(facts, members), PartyModel.from_bytes(common))

    def __repr__(self) -> str:
        return f"PersonalModel(party={self.party!r}, weights={self.benefit_.weights})"


@one_thread
def personalise(
    home: LocalParty,
    model: PartyModel,
    X: ArrayLike,
    y: ArrayLike,
    *,
    order: NDArray[np.intp] | None = None,
    public: ArrayLike | None = None,
    public_target: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> PersonalModel:
    """Combine a party's own models with the common one, on what each says of own rows that it did not see.

    Parameters
    ----------
    home : Party or LocalParty
    model : PartyModel
        What the analyst made for this party.
    X : array-like or dataframe of shape (n_samples, n_features)
        The own raw rows, as they were shared.
    y : array-like of shape (n_samples,)
    order : ndarray of shape (n_shared,), optional
        Position in the table of each row of the share, where the model has `left_out`; `Party.personalise` knows it.
    public : array-like or dataframe of shape (n_public, n_features), optional
        Rows that the party has besides: they count for "local", which the party could have had without the others.
    public_target : array-like of shape (n_public,), optional
    random_state, n_jobs
        Of forests and folds.
    progress : callable, optional
        Called with the name of each step before it starts.

    Raises
    ------
    AgreementError, ObfuscationError
        If the model was made for another party; if rows, targets, order and left-out predictions do not fit together;
        if there are fewer than two own rows.
    """
    say = progress or (lambda step: None)
    own_model = home._own(model)
    numbers = not hasattr(own_model.estimator, "classes_")
    target, labels = _checked_targets(home.name, X, y, public, public_target, numbers)
    generator = check_random_state(random_state)
    classes = None if numbers else _all_classes(own_model, target, labels)
    encoder = TableEncoder(f"Party {home.name!r}: the table", standardise=True)
    encoder.fit(X, beside=[] if public is None else [public])
    rows = encoder.transform(X)
    beside = [] if public is None else [encoder.transform(public)]
    aims, unit, columns = _aims(classes, target, labels)
    opinion = CollaborationOpinion(own_model, classes, unit)
    data = OwnData(
        rows=np.concatenate([rows, *beside]),
        target=aims,
        n_own=len(rows),
        n_classes=None if columns is None else len(columns),
        common_units=encoder.common_units,
    )
    say("own models")
    candidates = own_candidates(data, generator, n_trees=N_TREES, n_jobs=n_jobs)
    say("collaboration")
    common, basis = opinion.of_own_rows(home.obfuscate(X), order)
    known = aims if columns is None else columns[aims]
    own_aims, beyond = known[: data.n_own], known[data.n_own :]

    def blender_of(found: list[Candidate], beside: NDArray[Any]) -> Blender:
        if columns is None:
            return NumberBlender(found, common, own_aims, beside)
        return ClassBlender(found, common, own_aims, beside, columns)

    blender = blender_of(candidates, beyond)
    say("pool")
    groups = equal_rows(rows)
    n_folds = min(MOST_REFITS, len(np.unique(groups)))
    if n_folds < 2:
        raise AgreementError(f"Party {home.name!r}: all its own rows are equal, so none can be held against others.")
    blend, opinions = blender.settle(fold_numbers(groups, own_aims, n_folds, generator))
    chosen = [candidates[place] for place in blend.own]
    benefit = benefit_of(
        opinions,
        blender.target,
        blender.judged,
        None if unit is None else unit[1],
        party=home.name,
        basis=basis,
        n_rows=data.n_own,
        own_models=tuple(candidate.name for candidate in chosen),
        own_weights=tuple(map(float, blend.own_weights)),
        weights=dict(zip(("local", "collaboration"), map(float, blend.weights), strict=True)),
    )
    scorers = [candidate.fit() for candidate in chosen]
    own = None
    if public is not None:
        on_own = [replace(each, left_out=each.left_out[: data.n_own]) for each in candidates if each.own_only]
        own_blend = blender_of(on_own, beyond[:0]).local()
        own = [on_own[place].fit() for place in own_blend.own], own_blend
    return PersonalModel(home, opinion, encoder, scorers, blend, benefit, own)


def _all_classes(model: PartyModel, target: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the classes of the model, of the own rows and of labelled public ones, in order."""
    # Without labels, as where public rows have none, their kind is open.
    known = [np.asarray(model.estimator.classes_), *(each for each in (target, labels) if len(each))]
    if len({_is_text(each) for each in known}) > 1:
        raise AgreementError(
            f"Party {model.party!r}: the classes of its model are of another kind (texts or numbers) than its own "
            "targets. Give y as it was shared."
        )
    return np.unique(np.concatenate([each.astype(object) for each in known]).tolist())


def _aims(
    classes: NDArray[Any] | None, target: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[Any], tuple[float, float] | None, NDArray[np.intp] | None]:
    """Return what own models learn, how numbers are standardised, and where own classes stand among all."""
    both = np.concatenate([target, labels])
    if classes is not None:
        own_classes, codes = np.unique(both, return_inverse=True)
        return codes.ravel(), None, np.searchsorted(classes, own_classes)
    deviation = float(both.std())
    unit = float(both.mean()), deviation if deviation > 0 else 1.0
    return (both - unit[0]) / unit[1], unit, None


def _checked_targets(
    party: PartyName, X: Any, y: Any, public: Any, public_target: Any, numbers: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return targets of the own rows and of the labelled public ones, none of the latter where there are none."""
    target = _checked_target(party, y, _num_samples(X), "y", numbers)
    if len(target) < 2:
        raise AgreementError(f"Party {party!r}: expected at least two own rows, to hold one against the other.")
    if public_target is None:
        return target, target[:0]
    if public is None:
        raise AgreementError(f"Party {party!r}: public_target belongs to public rows; give these as public.")
    labels = _checked_target(party, public_target, _num_samples(public), "public_target", numbers)
    if not numbers and {target.dtype.kind, labels.dtype.kind} & {"U", "O"}:
        target, labels = target.astype(object), labels.astype(object)
    return target, labels


def _checked_target(party: PartyName, values: Any, n_rows: int, name: str, numbers: bool) -> NDArray[Any]:
    target = plain_column(values)
    check_single_targets(target, f"Party {party!r}: {name}", AgreementError)
    one_per_row(party, target, n_rows, name)
    if numbers and (target.dtype.kind not in "biuf" or not np.isfinite(target.astype(np.float64)).all()):
        raise AgreementError(f"Party {party!r}: the model predicts numbers, so {name} must be finite numbers.")
    return target.astype(np.float64) if numbers else target


_MEMBER, _COMMON = "personal.skops", "common.dcmodel"
_PARTS = ("encoder", "scorers", "blend", "benefit", "unit", "classes", "filler")
_OWN_PARTS = ("own scorers", "own blend")
_PARTS_MADE_OF = (
    *(Benefit, ClassBlend, Estimate, EstimatorScorer, Kernel, KernelScorer, NumberBlend, Side, SpreadScorer),
    *(TableEncoder, TableForm),
)
_TYPES = frozenset(f"{each.__module__}.{each.__qualname__}" for each in _PARTS_MADE_OF) | {
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
}
"""Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts."""


def personal_state(personal: PersonalModel) -> dict[str, bytes]:
    """Return what a combined model needs to predict later, except f_k and the common model.

    Raise STATE_UNSUPPORTED if the party's own models cannot be stored, and MissingExtraError if skops is not installed.
    """
    parts = {
        "encoder": personal._encoder,
        "scorers": personal._scorers,
        "blend": personal._blend,
        "benefit": personal.benefit_,
        "unit": personal._opinion.unit,
        "classes": personal._opinion.classes,
        "filler": personal._home._filler,
        **({} if personal._own is None else dict(zip(_OWN_PARTS, personal._own, strict=True))),
    }
    data, unknown = to_skops(parts, _TYPES)
    if unknown:
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {personal.party!r}: its own models are made of types that would not be read again: {unknown[:10]}.",
        )
    return {_MEMBER: data}


def personal_model(members: Mapping[str, bytes], home: LocalParty, model: PartyModel) -> PersonalModel:
    """Return the combined model, from what `personal_state` gave; `home` has the map f_k of the share behind it.

    Raise STATE_DAMAGED if the members are not what `personal_state` gives, and MissingExtraError if skops is not
    installed.
    """
    require("skops.io", "exchange")
    try:
        parts: dict[str, Any] = from_skops(members[_MEMBER], _TYPES)
        encoder, scorers, blend, benefit, unit, classes, home._filler = (parts[name] for name in _PARTS)
        opinion = CollaborationOpinion(model, classes, None if unit is None else tuple(unit))
        own = (parts[_OWN_PARTS[0]], parts[_OWN_PARTS[1]]) if _OWN_PARTS[0] in parts else None
        return PersonalModel(home, opinion, encoder, scorers, blend, benefit, own)
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise _damaged(type(error).__name__) from None


def _damaged(reason: str) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"The combined model of this party cannot be read ({reason}). Install the analyst's model again.",
    )
