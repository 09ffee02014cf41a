"""The model that comes back from the analyst to a party, and its file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from .._typing import FloatArray, PartyName
from .._version import __version__
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays, now
from ..errors import AgreementError, ExchangeError
from ..survival import SurvivalModel
from ..targets import TargetKind
from ._heads import head_from, head_to
from ._maps import IntegrationFunction, KernelMap, map_from, map_to
from ._refusals import bad_model, estimator_kind, reason_of

MODEL_KIND = "datacollab.model"


def task_of(estimator: Any) -> str:
    """Return the task of an estimator: "classification", "regression" or "survival"."""
    if isinstance(estimator, SurvivalModel):
        return TargetKind.SURVIVAL.value
    return "classification" if is_classifier(estimator) else "regression"


_MOST_COUNT = 10**12
_MOST_NUMBER = 1e300
_MOST_TEXT = 200
_MOST_ENTRIES = 50


def plain_facts(bundle: Bundle) -> dict[str, Any]:
    """Return the facts of a model, after a check that those known here are short and of their types.

    The bundle is sealed or not; facts that it lacks are not asked for.  MODEL_MALFORMED names the facts that are not
    plain, and never shows their values.
    """
    wrong = [name for name, fits in _FITTING.items() if name in bundle.facts and not fits(bundle.facts[name])]
    if wrong:
        raise bad_model(f"its manifest holds something else than what belongs there in {wrong!r}")
    return dict(bundle.facts)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_TEXT and value.isprintable()


def _is_time(value: Any) -> bool:
    try:
        return _is_text(value) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_value(value: Any) -> bool:
    if type(value) in (float, int):
        return bool(abs(value) <= _MOST_NUMBER)
    return value is None or type(value) is bool or _is_text(value)


def _is_mapping(value: Any) -> bool:
    """Return whether it maps names to single values."""
    if not isinstance(value, Mapping) or len(value) > _MOST_ENTRIES:
        return False
    return all(_is_text(name) and _is_value(each) for name, each in value.items())


def _is_lint(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() != {"found", "overridden_by"} or type(value["found"]) is not bool:
        return False
    return value["overridden_by"] is None or _is_text(value["overridden_by"])


_FITTING: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("n_components", "n_intermediate", "n_parties", "n_rows"),
        lambda value: type(value) is int and 0 <= value <= _MOST_COUNT,
    ),
    **dict.fromkeys(("method", "project", "project_digest", "share_digest"), _is_text),
    **dict.fromkeys(("parameters", "versions"), _is_mapping),
    "created": _is_time,
    "estimator": lambda value: _is_text(value) and value.isidentifier() and value.isascii(),
    "party": lambda value: type(value) is int or (isinstance(value, str) and len(value) <= _MOST_TEXT),
    "row_lint": _is_lint,
    "task": ("classification", "regression", "survival").__contains__,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyModel(SignedFile):
    """One party's integration function g_k and the common model h.

    A party composes it with its own secret f_k, and predicts alone from then on: h(g_k(f_k(x))).

    Attributes
    ----------
    party : str or int
        For whom it is made.  Another party's g_k would give wrong numbers without a sign of it.
    integration_function : IntegrationFunction
        g_k, a `LinearMap` or a `KernelMap`.
    estimator : estimator
        h, fitted on the collaboration representations of all parties.
    left_out : ndarray of shape (n_shared,) or (n_shared, n_classes), or None
        Predictions of h for each row of the party's share, in the order of the share, when that row is left out of its
        training: class probabilities in the order of ``estimator.classes_``, or numbers.  It goes to this party alone,
        and rounded: with the model, exact ones would tell sums over the other parties' rows.
    without_party : estimator or None
        h as it is without any row of this party, where its shared rows are not its own rows one by one, so that
        nothing can be left out for one of them.  The party scores its own rows with it.
    """

    party: PartyName
    integration_function: IntegrationFunction
    estimator: Any
    left_out: FloatArray | None = field(default=None, repr=False)
    without_party: Any | None = field(default=None, repr=False)

    kind = MODEL_KIND

    def transform(self, representation: ArrayLike) -> FloatArray:
        """Return collaboration representation g_k(x), of shape (n_rows, n_components), of the party's own f_k(X)."""
        return self.integration_function(representation)

    def predict(self, representation: ArrayLike) -> NDArray[Any]:
        """Return predicted targets h(g_k(x)), of shape (n_rows,)."""
        return np.asarray(self.estimator.predict(self.transform(representation)))

    def predict_proba(self, representation: ArrayLike) -> FloatArray:
        """Return class probabilities, of shape (n_rows, n_classes), in the order of ``estimator.classes_``.

        Raise AttributeError if the model h gives none.
        """
        return np.asarray(self.estimator.predict_proba(self.transform(representation)))

    def predict_survival(self, representation: ArrayLike, times: ArrayLike) -> FloatArray:
        """Return probability of no event up to each time, of shape (n_rows, n_times).

        Times are from 0 to the end of the observation, which is the last of the baseline's times; raise ValueError for
        one beyond, and AttributeError if the model h is no survival model.
        """
        return np.asarray(self.estimator.predict_survival(self.transform(representation), times))

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return model_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> PartyModel:
        return model_from(bundle)


# Made-up rows that a model is tried on.
_N_TRIED = 8
# Allowed error of probabilities and their sums.
_TOLERANCE = 1e-3


def _try_prediction(model: PartyModel) -> FloatArray:
    """Predict for made-up rows, and return these.

    A linear map says nothing of the scale of its rows, and far from those that it was trained on an estimator may well
    fail; so smaller rows are tried too.  A kernel map may give zero far from its own anchor rows, so rows are between
    these.
    """
    generator = np.random.default_rng(0)
    g = model.integration_function
    if isinstance(g, KernelMap):
        anchors = g.anchor_representation
        first, second = generator.integers(len(anchors), size=(2, _N_TRIED))
        weights = generator.random((_N_TRIED, 1))
        tried = [np.asarray(weights * anchors[first] + (1 - weights) * anchors[second])]
    else:
        normal = generator.standard_normal((_N_TRIED, g.n_intermediate))
        tried = [scale * normal for scale in (1.0, 1e-3, 0.0)]
    refusals = []
    for rows in tried:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                _check_answers(model, rows)
        except ExchangeError as refusal:
            refusals.append(refusal)
        # An estimator with contradictory attributes may raise anything.
        except Exception as error:
            refusals.append(_bad_answer(model, f"fails on made-up rows ({type(error).__name__})"))
        else:
            return rows
    raise refusals[0]


def _check_answers(model: PartyModel, rows: FloatArray) -> None:
    predicted = model.predict(rows)
    if predicted.shape != (len(rows),):
        raise _bad_answer(model, f"predicts shape {predicted.shape} for {len(rows)} rows")
    if isinstance(model.estimator, SurvivalModel):
        for baseline in model.estimator.baselines_.values():
            times = np.append(0.0, baseline.times)
            survival = model.predict_survival(rows, times)
            if survival.shape != (len(rows), len(times)) or not ((survival >= 0) & (survival <= 1)).all():
                raise _bad_answer(model, "gives survival that is no probability")
    classes = getattr(model.estimator, "classes_", None)
    if classes is None:
        if predicted.dtype.kind not in "biuf" or not np.isfinite(predicted).all():
            raise _bad_answer(model, "predicts something other than finite numbers")
        return
    if not np.isin(predicted, classes).all():
        raise _bad_answer(model, "predicts classes that are none of its own")
    if hasattr(model.estimator, "predict_proba"):
        shares = model.predict_proba(rows)
        if shares.shape != (len(rows), len(classes)) or shares.dtype.kind != "f" or not np.isfinite(shares).all():
            raise _bad_answer(model, "gives no probability for each class")
        if not are_probabilities(shares, _TOLERANCE):
            raise _bad_answer(model, "gives probabilities that do not add up to one")


def are_probabilities(values: FloatArray, tolerance: float) -> bool:
    """Return whether rows lie between 0 and 1 and add up to one."""
    within = values.min() >= -tolerance and values.max() <= 1 + tolerance
    return bool(within and np.abs(values.sum(axis=1) - 1.0).max() <= tolerance)


def _bad_answer(model: PartyModel, what: str) -> ExchangeError:
    return bad_model(f"its {type(model.estimator).__name__} {what}")


_MAP = "g.safetensors"
_LEFT_OUT = "left-out.safetensors"
# Beginnings of the names of members that hold h, and h without the party.
_HEAD = "h"
_WITHOUT = "h-without"


def model_contents(model: PartyModel) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts and members of a model's file; or raise MODEL_UNSUPPORTED or TOO_LARGE.

    They are read again with all checks, so that the party's program will take them.  Of a search over parameters, the
    best estimator is sent.
    """
    estimator = _of_party(getattr(model.estimator, "best_estimator_", model.estimator), model.party)
    g = model.integration_function
    if isinstance(g, KernelMap):
        g = g.to_numpy()
    without = getattr(model.without_party, "best_estimator_", model.without_party)
    sent = replace(model, integration_function=g, estimator=estimator, without_party=without)
    map_facts, arrays = map_to(g)
    head, members = head_to(estimator, _HEAD)
    members[_MAP] = arrays_to_bytes(arrays)
    without_head = None
    if without is not None:
        without_head, without_members = head_to(without, _WITHOUT)
        members |= without_members
    facts = _facts_of(sent) | {
        "party": model.party,
        "integration_function": map_facts,
        "head": head,
        "without_party": without_head,
        "created": now(),
        "versions": {"datacollab": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
    }
    if model.left_out is not None:
        members[_LEFT_OUT] = arrays_to_bytes({"left_out": np.asarray(model.left_out, dtype=np.float64)})
    _check_written(facts, members, sent)
    return facts, members


def _of_party(estimator: Any, party: PartyName) -> Any:
    """Return a survival model with the baseline of the party alone; any other as it is."""
    if not isinstance(estimator, SurvivalModel) or not hasattr(estimator, "baselines_"):
        return estimator
    try:
        return estimator.for_party(party)
    except AgreementError as error:
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {type(estimator).__name__} cannot be sent to party {party!r}, which gets its own baseline or the "
            f"common one. {error} Train it with the parties as strata, or without strata.",
        ) from None


def model_from(bundle: Bundle) -> PartyModel:
    """Return the model in a bundle, after checks of every part.  Numbers are read, and nothing that could be run.

    Raise WRONG_KIND, TOO_LARGE or MODEL_MALFORMED.
    """
    if bundle.kind != MODEL_KIND:
        raise ExchangeError("WRONG_KIND", f"Expected a model, got a bundle of kind {bundle.kind!r}.")
    return _model_of(plain_facts(bundle), bundle.members)


def _model_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> PartyModel:
    g = _map_of(facts, members)
    estimator = head_from(facts.get("head"), members, _HEAD, g.n_components)
    model = PartyModel(
        party=g.party,
        integration_function=g,
        estimator=estimator,
        left_out=_read_left_out(members, estimator),
        without_party=_without_party(facts, members, g, estimator),
    )
    # Facts are shown to people, so they have to be those of the parts.
    wrong = [name for name, value in _facts_of(model).items() if name not in facts or facts[name] != value]
    if wrong:
        raise bad_model(f"its manifest says something else than its parts of {wrong!r}")
    _try_prediction(model)
    return model


def _map_of(facts: Mapping[str, Any], members: Mapping[str, bytes]) -> IntegrationFunction:
    # A member that nothing reads could carry anything to the party.
    known = {_MAP, _LEFT_OUT, f"{_HEAD}.safetensors", f"{_WITHOUT}.safetensors"}
    without = facts.get("without_party") is None and any(name.startswith(f"{_WITHOUT}.") for name in members)
    if _MAP not in members or not members.keys() <= known or without:
        raise bad_model(f"it has the members {sorted(members)!r}, which are not those of a model")
    party = facts.get("party")
    if isinstance(party, bool) or not isinstance(party, str | int):
        raise bad_model("it does not say for which party it is")
    try:
        arrays = bytes_to_arrays(members[_MAP], what=_MAP)
    except ExchangeError:
        raise bad_model("the arrays of its integration function cannot be read") from None
    return map_from(party, facts.get("integration_function"), arrays)


def _read_left_out(members: Mapping[str, bytes], estimator: Any) -> FloatArray | None:
    """Return numbers, one for each shared row, or probabilities of each class; None if there are none."""
    if _LEFT_OUT not in members:
        return None
    if isinstance(estimator, SurvivalModel):
        raise bad_model("it is a survival model with predictions for rows left out, which none has")
    what = "its predictions for rows left out"
    try:
        arrays = bytes_to_arrays(members[_LEFT_OUT], what="The predictions for rows left out")
    except ExchangeError:
        raise bad_model(f"{what} cannot be read") from None
    if arrays.keys() != {"left_out"} or arrays["left_out"].dtype != np.float64:
        raise bad_model(f"{what} are no table of double precision")
    left_out = arrays["left_out"]
    classes = getattr(estimator, "classes_", None)
    expected = left_out.shape[:1]
    if classes is not None:
        expected = (*expected, len(classes))
    if left_out.ndim < 1 or left_out.shape != expected or not left_out.size or not np.isfinite(left_out).all():
        raise bad_model(f"{what} do not have the shape of its targets, or are not finite")
    if classes is not None and not are_probabilities(left_out, _TOLERANCE):
        raise bad_model(f"{what} are no probabilities")
    return left_out


def _without_party(
    facts: Mapping[str, Any], members: Mapping[str, bytes], g: IntegrationFunction, estimator: Any
) -> Any | None:
    """Return the model without this party's rows, which has to be one for the same targets."""
    if facts.get("without_party") is None:
        return None
    without = head_from(facts["without_party"], members, _WITHOUT, g.n_components)
    # The report of the gain scores own rows by it, so it has to predict the same targets.
    if task_of(without) != task_of(estimator) or isinstance(estimator, SurvivalModel):
        raise bad_model("its estimator without the party is for another task")
    if is_classifier(estimator) and not np.isin(without.classes_, estimator.classes_).all():
        raise bad_model("its estimator without the party knows classes that the one with it does not")
    _try_prediction(PartyModel(party=g.party, integration_function=g, estimator=without))
    return without


def _facts_of(model: PartyModel) -> dict[str, Any]:
    """Return facts of a model besides its parts."""
    classes = getattr(model.estimator, "classes_", None)
    if classes is not None:
        classes = np.asarray(classes).tolist()
    return {
        "n_intermediate": model.integration_function.n_intermediate,
        "n_components": model.integration_function.n_components,
        "estimator": estimator_kind(model.estimator),
        "task": task_of(model.estimator),
        "classes": classes,
    }


def _check_written(facts: Mapping[str, Any], members: Mapping[str, bytes], model: PartyModel) -> None:
    """Refuse a model that the party's program would refuse, or that would predict otherwise."""
    name = type(model.estimator).__name__
    try:
        read = _model_of(facts, members)
        rows = _try_prediction(model)
    except ExchangeError as error:
        # A smaller model helps against this one, and another kind of model against all others.
        if error.code == "TOO_LARGE":
            raise
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"The {name} cannot be sent, for the party's program would refuse it ({reason_of(error)}). Train another "
            "kind of model.",
        ) from None
    pairs = [(model, read)]
    if model.without_party is not None:
        before, after = (replace(each, estimator=each.without_party) for each in (model, read))
        pairs.append((before, after))
    if not all(_predict_alike(before, after, rows) for before, after in pairs):
        raise ExchangeError(
            "MODEL_UNSUPPORTED", f"The {name} predicts otherwise once written and read. Train another kind of model."
        )


def _predict_alike(first: PartyModel, second: PartyModel, rows: FloatArray) -> bool:
    if isinstance(first.estimator, SurvivalModel):
        times = second.estimator.baseline.times
        before = first.predict_survival(rows, times)
        if not np.allclose(before, second.predict_survival(rows, times), rtol=1e-9, atol=1e-12):
            return False
    before = first.predict(rows)
    after = second.predict(rows)
    # Classes have to be the same; numbers may be added in another order.
    same = np.allclose(before, after, rtol=1e-9) if before.dtype.kind == "f" else np.array_equal(before, after)
    if same and hasattr(first.estimator, "predict_proba"):
        return bool(np.allclose(first.predict_proba(rows), second.predict_proba(rows), rtol=1e-9, atol=1e-12))
    return bool(same)
