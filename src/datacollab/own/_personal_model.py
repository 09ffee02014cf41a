"""A party's own models and the common one, pooled on rows that neither saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from .._encoder import TableEncoder
from .._frames import equal_rows, plain_column
from .._threads import one_thread
from .._validation import FloatArray, PartyName, check_single_targets, require
from ..bundle import Bundle, SignedFile
from ..errors import AgreementError, ExchangeError
from ..linalg import Kernel
from ..model import PartyModel
from ._benefit import Benefit, Estimate, Side, benefit_of
from ._blend import Blend, Blender, ClassBlend, ClassBlender, NumberBlend, NumberBlender
from ._local_party import LocalParty, check_one_per_row, from_skops, local_party, party_state, to_skops
from ._own_models import (
    EstimatorScorer,
    KernelScorer,
    OwnCandidate,
    OwnData,
    Scorer,
    SpreadScorer,
    fold_numbers,
    log_of_shares,
    own_candidates,
)


@dataclass(frozen=True, eq=False)
class CollaborationOpinion:
    """The common model's output in columns of all classes, or as numbers in a unit: a mean and a deviation."""

    model: PartyModel
    classes: NDArray[Any] | None
    unit: tuple[float, float] | None

    def judge(self, representation: FloatArray) -> FloatArray:
        """Return logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1), for f_k of any rows."""
        return self._output(self.model.estimator, self.model.transform(representation))

    def judge_own_rows(
        self, representation: FloatArray, order: NDArray[np.intp] | None
    ) -> tuple[FloatArray, str | None]:
        """Return outputs for own rows by models without them, and the kind of these models."""
        n_own = len(representation)
        n_outputs = 1 if self.classes is None else len(self.classes)
        # Rows that a defence kept from being shared, or that cannot be left out, stay without an opinion.
        outputs = np.full((n_own, n_outputs), np.nan)
        if self.model.left_out is not None:
            places, common = self._check_left_out(np.asarray(self.model.left_out, dtype=np.float64), order, n_own)
            whole = np.isfinite(common).all(axis=1)
            if not whole.any():
                return outputs, None
            outputs[places[whole]] = self._to_columns(common[whole], self.model.estimator)
            return outputs, "left out"
        if self.model.without_party is not None:
            return self._output(self.model.without_party, self.model.transform(representation)), "without the party"
        return outputs, None

    def _check_left_out(
        self, left_out: FloatArray, order: NDArray[np.intp] | None, n_own: int
    ) -> tuple[NDArray[np.intp], FloatArray]:
        party = self.model.party
        if order is None:
            raise AgreementError(
                f"Party {party!r}: the model's left-out predictions are in the order of the share. Pass order, the "
                "position in the table of each shared row."
            )
        places = np.asarray(order)
        expected: tuple[int, ...] = (len(places),)
        if self.classes is not None:
            expected = (len(places), len(self.model.estimator.classes_))
        if left_out.shape != expected:
            raise AgreementError(
                f"Party {party!r}: left-out predictions for its {len(places)} shared rows must have shape {expected}; "
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
        return self._to_columns(common.astype(np.float64), estimator)

    def _to_columns(self, common: FloatArray, estimator: Any) -> FloatArray:
        if self.classes is None:
            assert self.unit is not None
            return (common - self.unit[0]) / self.unit[1]
        # The party may have rows of classes that the common model does not know; these get the floor of all shares.
        shares = np.zeros((len(common), len(self.classes)))
        shares[:, np.searchsorted(self.classes, np.asarray(estimator.classes_))] = np.maximum(common, 0.0)
        return log_of_shares(shares)


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and any(isinstance(one, str) for one in labels))


N_TREES = 300
MOST_REFITS = 60
"""Fits of the weights for the report: each own row by itself up to so many, and as many folds beyond."""


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
        The gain from collaboration, as the party's own rows show it.
    sides : tuple of str
        Values for `using` in `predict`; "own" where there were public rows to do without.  Its models learn from none
        of these, which may still set the units in which columns are compared.

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
        self._home = home
        self._opinion = opinion
        self._encoder = encoder
        self._scorers = scorers
        self._blend = blend
        self._own = own
        self.sides: tuple[str, ...] = ("combined", "local", "collaboration")
        if own is not None:
            self.sides = ("combined", "local", "own", "collaboration")
        if opinion.classes is not None:
            self.classes_ = opinion.classes

    def predict(self, X: ArrayLike, using: str = "combined") -> NDArray[Any]:
        """Predict raw rows, shape (n_rows,).

        By default both sides together; `using` can also be "local", the party's own models with the public rows, "own",
        without them, or "collaboration", the common model.  Raise ValueError if there is no such side, and
        AgreementError or ObfuscationError if the rows are not like the party's own.
        """
        outputs = self._predict_side(X, using)
        if self._opinion.unit is None:
            return np.asarray(self.classes_[outputs.argmax(axis=1)])
        # Numbers were standardised for the pool.
        mean, deviation = self._opinion.unit
        return np.asarray(mean + deviation * outputs)

    def predict_proba(self, X: ArrayLike, using: str = "combined") -> FloatArray:
        """Return class probabilities of raw rows, shape (n_rows, n_classes), in the order of `classes_`; see `predict`.

        Raise AttributeError if numbers are predicted.
        """
        if self._opinion.unit is not None:
            raise AttributeError(f"Party {self.party!r}: the target is a number, so there are no class probabilities.")
        shares = np.exp(self._predict_side(X, using))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _predict_side(self, X: Any, using: str) -> FloatArray:
        if using not in self.sides:
            raise ValueError(f"using must be one of {', '.join(map(repr, self.sides))}; got {using!r}.")
        scorers = self._scorers
        blend = self._blend
        # Models that did without public rows have a blend of their own, in which they are the local side.
        if using == "own" and self._own is not None:
            scorers, blend = self._own
            using = "local"
        Z = self._encoder.transform(X)
        common = self._opinion.judge(self._home.obfuscate(X))
        return np.asarray(getattr(blend.speak([score(Z) for score in scorers], common), using))

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        facts, members = party_state(self._home)
        return {"map": facts}, members | personal_state(self) | {_COMMON: self._opinion.model.to_bytes()}

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> PersonalModel:
        members = dict(bundle.members)
        facts = bundle.facts.get("map")
        common = members.pop(_COMMON, None)
        if not isinstance(facts, Mapping) or common is None:
            raise _refuse_state("a part is missing")
        return personal_model(members, local_party(facts, members), PartyModel.from_bytes(common))

    def __repr__(self) -> str:
        return f"PersonalModel(party={self.party!r}, weights={self.benefit_.weights})"


@one_thread
def personalise(  # noqa: PLR0913
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
    """Combine a party's own models with the common one, by their predictions for own rows that they did not see.

    Parameters
    ----------
    home : Party or LocalParty
    model : PartyModel
        The model that the analyst made for this party.
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
    own_model = home.check_model(model)
    numbers = not hasattr(own_model.estimator, "classes_")
    target, labels = _check_targets(home.name, X, y, public, public_target, numbers)
    generator = check_random_state(random_state)
    classes = None
    if not numbers:
        classes = _list_classes(own_model, target, labels)
    # Public rows say how columns vary, too, though only own and labelled ones have targets.
    tables = [] if public is None else [public]
    encoder = TableEncoder(f"Party {home.name!r}: the table", standardise=True)
    encoder.fit(X, beside=tables)
    rows = encoder.transform(X)
    aims = _encode_targets(classes, target, labels)
    opinion = CollaborationOpinion(own_model, classes, aims.unit)
    data = OwnData(
        rows=np.concatenate([rows, *map(encoder.transform, tables)]),
        target=aims.values,
        n_own=len(rows),
        n_classes=None if aims.columns is None else len(aims.columns),
        common_units=encoder.common_units,
    )
    say("own models")
    candidates = own_candidates(data, generator, n_trees=N_TREES, n_jobs=n_jobs)
    say("collaboration")
    common, basis = opinion.judge_own_rows(home.obfuscate(X), order)
    own_aims = aims.among_all[: data.n_own]
    beyond = aims.among_all[data.n_own :]

    def make_blender(chosen: list[OwnCandidate], of_public: NDArray[Any]) -> Blender:
        if aims.columns is None:
            return NumberBlender(chosen, common, own_aims, of_public)
        return ClassBlender(chosen, common, own_aims, of_public, aims.columns)

    blender = make_blender(candidates, beyond)
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
        None if aims.unit is None else aims.unit[1],
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
        # Beside the pool, the party's models as they were without any public row.
        on_own = [replace(each, left_out=each.left_out[: data.n_own]) for each in candidates if each.own_only]
        own_blend = make_blender(on_own, beyond[:0]).choose_local()
        own = ([on_own[place].fit() for place in own_blend.own], own_blend)
    return PersonalModel(home, opinion, encoder, scorers, blend, benefit, own)


def _list_classes(model: PartyModel, target: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the classes of the model, of the own rows and of labelled public ones, in order."""
    # Without labels, as where public rows have none, their kind is open.
    known = [np.asarray(model.estimator.classes_), *(each for each in (target, labels) if len(each))]
    if len({_is_text(each) for each in known}) > 1:
        raise AgreementError(
            f"Party {model.party!r}: the classes of its model are of another kind (texts or numbers) than its own "
            "targets. Give y as it was shared."
        )
    return np.unique(np.concatenate([each.astype(object) for each in known]).tolist())


@dataclass(frozen=True, eq=False)
class _Aims:
    """Targets of the own rows, then of labelled public ones, as own models learn them.

    For classes, values are codes, and columns are the places of the party's classes among all.  For numbers, values are
    standardised by the unit, a mean and a deviation.
    """

    values: NDArray[Any]
    unit: tuple[float, float] | None = None
    columns: NDArray[np.intp] | None = None

    @property
    def among_all(self) -> NDArray[Any]:
        """Codes among all classes, or numbers as they are."""
        if self.columns is None:
            return self.values
        return np.asarray(self.columns[self.values])


def _encode_targets(classes: NDArray[Any] | None, target: NDArray[Any], labels: NDArray[Any]) -> _Aims:
    both = np.concatenate([target, labels])
    if classes is not None:
        own_classes, codes = np.unique(both, return_inverse=True)
        return _Aims(codes.ravel(), columns=np.searchsorted(classes, own_classes))
    # Targets that are all equal have no deviation to divide by.
    deviation = float(both.std()) or 1.0
    mean = float(both.mean())
    return _Aims((both - mean) / deviation, unit=(mean, deviation))


def _check_targets(
    party: PartyName, X: Any, y: Any, public: Any, public_target: Any, numbers: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return targets of the own rows and of the labelled public ones, none of the latter where there are none."""
    target = _check_target(party, y, _num_samples(X), "y", numbers)
    if len(target) < 2:
        raise AgreementError(f"Party {party!r}: expected at least two own rows, to hold one against the other.")
    if public_target is None:
        return target, target[:0]
    if public is None:
        raise AgreementError(f"Party {party!r}: public_target belongs to public rows; give these as public.")
    labels = _check_target(party, public_target, _num_samples(public), "public_target", numbers)
    if not numbers and {target.dtype.kind, labels.dtype.kind} & {"U", "O"}:
        # Texts of different lengths have different types, which would cut the longer ones off.
        target = target.astype(object)
        labels = labels.astype(object)
    return target, labels


def _check_target(party: PartyName, values: Any, n_rows: int, name: str, numbers: bool) -> NDArray[Any]:
    target = plain_column(values)
    check_single_targets(target, f"Party {party!r}: {name}", AgreementError)
    check_one_per_row(party, target, n_rows, name)
    if not numbers:
        return target
    if target.dtype.kind not in "biuf" or not np.isfinite(target.astype(np.float64)).all():
        raise AgreementError(f"Party {party!r}: the model predicts numbers, so {name} must be finite numbers.")
    return target.astype(np.float64)


_MEMBER = "personal.skops"
_COMMON = "common.dcmodel"
_PARTS = ("encoder", "scorers", "blend", "benefit", "unit", "classes", "filler")
_OWN_PARTS = ("own scorers", "own blend")
_PARTS_MADE_OF = (
    *(Benefit, ClassBlend, Estimate, EstimatorScorer, Kernel, KernelScorer, NumberBlend, Side, SpreadScorer),
    TableEncoder,
)
# Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts.
_TYPES = frozenset(f"{each.__module__}.{each.__qualname__}" for each in _PARTS_MADE_OF) | {
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
}


def personal_state(personal: PersonalModel) -> dict[str, bytes]:
    """Return members of a bundle for later predictions by a combined model, except f_k and the common model.

    Raise STATE_UNSUPPORTED if the party's own models cannot be stored, and MissingExtraError if skops is not installed.
    """
    parts: dict[str, Any] = {
        "encoder": personal._encoder,
        "scorers": personal._scorers,
        "blend": personal._blend,
        "benefit": personal.benefit_,
        "unit": personal._opinion.unit,
        "classes": personal._opinion.classes,
        "filler": personal._home._filler,
    }
    if personal._own is not None:
        parts |= dict(zip(_OWN_PARTS, personal._own, strict=True))
    data, unknown = to_skops(parts, _TYPES)
    if unknown:
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {personal.party!r}: its own models are made of types that would not be read again: {unknown[:10]}.",
        )
    return {_MEMBER: data}


def personal_model(members: Mapping[str, bytes], home: LocalParty, model: PartyModel) -> PersonalModel:
    """Return the combined model, from members of `personal_state`; `home` has the map f_k of the share behind it.

    Raise STATE_DAMAGED if the members are not those of `personal_state`, and MissingExtraError if skops is not
    installed.
    """
    require("skops.io", "exchange")
    try:
        parts: dict[str, Any] = from_skops(members[_MEMBER], _TYPES)
        encoder, scorers, blend, benefit, unit, classes, home._filler = (parts[name] for name in _PARTS)
        # Files may hold a tuple as a list.
        opinion = CollaborationOpinion(model, classes, unit and tuple(unit))
        own = None
        if _OWN_PARTS[0] in parts:
            own = (parts[_OWN_PARTS[0]], parts[_OWN_PARTS[1]])
        return PersonalModel(home, opinion, encoder, scorers, blend, benefit, own)
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise _refuse_state(type(error).__name__) from None


def _refuse_state(reason: str) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"The combined model of this party cannot be read ({reason}). Install the analyst's model again.",
    )
