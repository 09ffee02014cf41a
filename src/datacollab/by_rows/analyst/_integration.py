"""The result of an integration: agreement, score, and rows in the model; and the models, kept and sent."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..._require import require
from ..._typing import FloatArray
from ...agreement import Project, Task
from ...bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, now, pack, seal, unpack
from ...errors import ExchangeError, NumericalError
from ...folder.analyst import SEALED, ReceivedFile
from ...linalg import auc_with_interval, entropy, log_losses, mean_with_interval, ranking_figures
from ...model import (
    MODEL_KIND,
    PREDICTIONS_KIND,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    PartyModel,
    add_level,
    anchor_predictions,
    estimator_kind,
    fit_weighted,
    head_from,
    head_to,
    map_from,
    map_to,
    model_contents,
    predictions_contents,
)
from ...risk.attacks import find_training_rows
from ...share import Share
from ...survival import SurvivalModel, concordance_index

if TYPE_CHECKING:
    from ...analyst import Collaboration, Selection

_FIND = 0.8
"""The share of the sought class that the threshold is to find."""


@dataclass(frozen=True, kw_only=True)
class Integration:
    """An integration of rows in numbers and names.

    Attributes
    ----------
    method, estimator, parameters : str, str, and dict of str to object
        Classes of the integrator and of the model h; the integrator's numbers and texts.
    share_digests : dict of party to str
        The shares that it was made of.
    concordance, n_repeated : dict of party to float, and to int
        See `anchor_concordance`; and rows of each share that equal another one of it, as means of groups do.
    score : Score or None
    row_findings : tuple of str
        Places of training rows in the model.
    selection : Selection or None
        The candidates that were tried, if the analyst was left a choice.
    """

    method: str
    parameters: dict[str, Any]
    n_components: int
    estimator: str
    n_rows: int
    share_digests: dict[str, str]
    concordance: dict[str, float]
    n_repeated: dict[str, int]
    score: Score | None
    row_findings: tuple[str, ...]
    created: str
    selection: Selection | None = None

    def facts(self) -> dict[str, Any]:
        """Return the same as JSON holds it; figures of candidates that are not finite are null."""
        facts = asdict(self) | {"row_findings": list(self.row_findings)}
        if (selection := facts["selection"]) is not None:
            candidates = [_finite_or_none(candidate) for candidate in selection["candidates"]]
            selection |= {"candidates": candidates, "chosen": next(each for each in candidates if each["chosen"])}
        return facts

    def facts_to_log(self) -> dict[str, Any]:
        """Return the same without the candidates that were not taken."""
        facts = self.facts()
        if facts["selection"] is not None:
            del facts["selection"]["candidates"]
        return facts

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Return the integration whose facts these are; see `facts`."""
        from ...analyst import Candidate, Selection

        known: dict[str, Any] = {**facts, "row_findings": tuple(facts["row_findings"])}
        if (score := facts["score"]) is not None:
            known["score"] = Score(**score | {"never_called": tuple(score["never_called"])})
        if (selection := facts.get("selection")) is not None:
            candidates: list[dict[str, Any]] = []
            for candidate in selection["candidates"]:
                # JSON has no NaN; figures that may be None stay so.
                lost = {name: math.nan for name, value in candidate.items() if value is None and name not in _MAY_LACK}
                candidates.append(candidate | lost)
            named = {name: selection[name] for name in ("metric", "judged_on", "n_judges", "constant")}
            known["selection"] = Selection(candidates=tuple(Candidate(**each) for each in candidates), **named)
        return cls(**known)


def _finite_or_none(candidate: Mapping[str, Any]) -> dict[str, Any]:
    lost = {name for name, value in candidate.items() if isinstance(value, float) and not math.isfinite(value)}
    return {**candidate, **dict.fromkeys(lost)}


@dataclass(frozen=True, kw_only=True)
class Score:
    """How good the model is on rows left out of its training, with a 95 % interval over the folds or rows.

    `name` is "AUC" of two classes, "log loss" of more, "accuracy" if the model gives no probabilities, "root mean
    squared error", or "concordance" of times to an event, and `baseline` that of always the same answer.  `n_folds` is
    None if every row was left out by itself.  Of two classes with probabilities, `ranking` is "positive", the sought
    one, and the figures of `linalg.ranking_figures`.  `never_called` are classes that rows left out have, and that none
    of them was taken for.
    """

    name: str
    value: float
    low: float
    high: float
    baseline: float
    n_folds: int | None
    ranking: Mapping[str, Any] | None = None
    never_called: tuple[str | int, ...] = ()

    def sentence(self) -> str:
        """Return the score in words."""
        how = "each by itself" if self.n_folds is None else f"{self.n_folds} folds"
        return (
            f"{self.name[0].upper()}{self.name[1:]} of the model on rows left out: {self.value:.3f} ({self.low:.3f} to "
            f"{self.high:.3f}, {how}); always the same answer has {self.baseline:.3f}."
        )


_MAY_LACK = ("alpha", "failure")
"""Figures of a candidate that there may not be."""
_NAMED_PARAMETERS = ("kernel", "gamma", "alpha", "graph_weight", "center", "solver", "basis", "reference")


def anchor_concordance(mapped: Mapping[Any, FloatArray]) -> dict[Any, float]:
    r"""Share of the mean anchor's variance that each party's mapped anchor reproduces (eq. anchor-concordance).

    :math:`1 - \|g_k(\tilde A_k) - \bar Z\|^2 / \|\bar Z - \bar z\|^2` with :math:`\bar Z` the mean over the parties and
    :math:`\bar z` its mean row.  It is 1 where all agree, and near or below 0 for a party whose anchor rows are others,
    or in another order.  Mapped anchors have the shape (n_anchors, n_components).
    """
    # All parties map the same anchor rows, so that any difference is one of their maps.
    mean = np.mean(list(mapped.values()), axis=0)
    spread = float(((mean - mean.mean(axis=0)) ** 2).sum())
    return {party: 1.0 - float(((rows - mean) ** 2).sum()) / spread for party, rows in mapped.items()}


def describe(
    collaboration: Collaboration, received: Sequence[ReceivedFile], project: Project, n_folds: int | None
) -> Integration:
    """Return an integration in numbers and names."""
    integrator = collaboration.integrator_
    estimator = collaboration.estimator_
    parameters = integrator.get_params(deep=False)
    shares = [each.share for each in received]
    n_rows, n_components = np.vstack(list(collaboration.representations_.values())).shape
    name = estimator_kind(estimator)
    if (steps := getattr(estimator, "steps", None)) is not None:
        name = " + ".join(type(step).__name__ for _, step in steps)
    score = None
    if n_folds is not None:
        score = _score(collaboration, shares, project.task, n_folds)
    n_repeated = {}
    for share in shares:
        counts = np.unique(share.representation, axis=0, return_counts=True)[1]
        n_repeated[share.party] = int(counts[counts > 1].sum())
    return Integration(
        method=type(integrator).__name__,
        parameters={
            name: parameters[name]
            for name in _NAMED_PARAMETERS
            if isinstance(parameters.get(name, ...), str | bool | int | float | None)
        },
        n_components=n_components,
        estimator=name,
        n_rows=n_rows,
        share_digests={each.party: each.digest for each in received},
        concordance=anchor_concordance(
            integrator.transform({share.party: share.anchor_representation for share in shares})
        ),
        n_repeated=n_repeated,
        score=score,
        row_findings=tuple(training_rows_sent(collaboration, received)),
        created=now(),
        selection=collaboration.selection_,
    )


_MOST_ROWS = 5000
"""Of more rows, so many are looked for, and so many judge a ridge regression."""


def training_rows_sent(collaboration: Collaboration, received: Sequence[ReceivedFile]) -> list[str]:
    """Return the places of parties' rows in any model that would be sent."""
    representations = [collaboration.representations_[each.party] for each in received]
    # The models without a party are sent as well, one to each.
    sent = {"": collaboration.estimator_} | {
        f"without {each.party}: ": collaboration.party_model(each.party).without_party for each in received
    }
    return [
        f"{prefix}{place}"
        for prefix, estimator in sent.items()
        if estimator is not None
        for place in training_rows_in(estimator, representations)
    ]


def training_rows_in(estimator: Any, representations: Sequence[FloatArray]) -> list[str]:
    """Return the places of training rows in a fitted model, as they are or under changes of units."""
    rows = np.vstack(representations)
    # A model that keeps rows keeps most of them: a sample finds it.
    if len(rows) > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), size=_MOST_ROWS, replace=False)]
    if not len(rows):
        return []
    findings = sorted(find_training_rows(estimator, rows), key=lambda finding: finding.path)
    return [f"{each.path} ({each.n_found} rows)" for each in findings if each.n_found]


def _score(collaboration: Collaboration, shares: Sequence[Share], task: Task, n_folds: int) -> Score | None:
    """Score the model by its predictions for rows left out, or else by cross-validation."""
    if task.kind == "none":
        return None
    if not task.is_single:
        return _survival_score(collaboration, shares, n_folds)
    known = [(share.target, collaboration.left_out_.get(share.party)) for share in shares]
    pairs = [(target, left_out) for target, left_out in known if left_out is not None]
    if not pairs and isinstance(collaboration.estimator_, LandmarkRidgeClassifier | LandmarkRidgeRegressor):
        pairs = [_leave_out(collaboration, shares)]
    if pairs:
        target, left_out = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        if task.kind == "classification":
            return _score_of_classes(target, left_out, collaboration.estimator_.classes_, task)
        # Student's interval of the mean square, whose ends have roots.
        squares = (left_out - target) ** 2
        half = stats.t.ppf(0.975, max(len(squares) - 1, 1)) * squares.std(ddof=1) / np.sqrt(len(squares))
        return Score(
            name="root mean squared error",
            value=float(np.sqrt(squares.mean())),
            low=float(np.sqrt(max(squares.mean() - half, 0.0))),
            high=float(np.sqrt(squares.mean() + half)),
            baseline=float(np.std(target)),
            n_folds=None,
        )
    return _cross_validate(collaboration.estimator_, *_stack(collaboration, shares), task, n_folds)


def _leave_out(collaboration: Collaboration, shares: Sequence[Share]) -> tuple[NDArray[Any], FloatArray]:
    """Return targets, and predictions of a ridge regression for each row without it and those equal to it, exactly.

    Of more than 5,000 rows so many are drawn and fitted.
    """
    from sklearn.base import clone

    rows, target, groups = _stack(collaboration, shares)
    # The same rows each time, so that a score can be compared with the last one.
    drawn = np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]
    judged = clone(collaboration.estimator_).fit_left_out(rows[drawn], target[drawn], groups=groups[drawn])
    return target[drawn], judged


def _score_of_classes(target: NDArray[Any], probabilities: FloatArray, classes: NDArray[Any], task: Task) -> Score:
    """Return the area under the curve of two classes, if it has an interval, or else the log loss."""
    predicted = classes[np.argmax(probabilities, axis=1)]
    ranking = _ranking(task, target, _of_positive(task, classes, probabilities))
    if ranking is not None and ranking["auc_interval"] is not None:
        name = "AUC"
        baseline = 0.5
        value = ranking["auc"]
        interval = ranking["auc_interval"]
    else:
        name = "log loss"
        baseline = entropy(np.unique(target, return_counts=True)[1])
        value, interval = mean_with_interval(_losses(classes, probabilities, target))
    low, high = interval or (value, value)
    return Score(
        name=name,
        value=value,
        low=low,
        high=high,
        baseline=baseline,
        n_folds=None,
        ranking=ranking,
        never_called=_never_called(task, target, predicted),
    )


def _cross_validate(
    estimator: Any, rows: FloatArray, target: NDArray[Any], groups: NDArray[np.intp], task: Task, n_folds: int
) -> Score | None:
    """Score fresh copies of the model over folds, in which equal rows stay together; None with fewer than two folds."""
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_validate

    n_folds = min(n_folds, len(np.unique(groups)))
    splitter: Any = GroupKFold
    dummy: Any = DummyRegressor()
    name = "root mean squared error"
    scoring = "neg_root_mean_squared_error"
    most = np.inf
    if task.kind == "classification":
        # Each fold is to have rows of each class.
        n_folds = min(n_folds, *(len(np.unique(groups[target == each])) for each in np.unique(target)))
        splitter = StratifiedGroupKFold
        dummy = DummyClassifier()
        name = scoring = "accuracy"
        most = 1.0
    if n_folds < 2:
        return None
    folds = splitter(n_folds, shuffle=True, random_state=0)
    options = {"groups": groups, "cv": folds, "scoring": scoring, "return_estimator": True, "return_indices": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop early; the score shows whether it matters
        trained = cross_validate(clone(estimator), rows, target, **options)
        baseline = abs(cross_validate(dummy, rows, target, **options)["test_score"])
    left_out = list(zip(trained["estimator"], trained["indices"]["test"], strict=True))
    predicted = np.concatenate([model.predict(rows[out]) for model, out in left_out])
    never_called = _never_called(task, target, predicted)
    if all(hasattr(model, "predict_proba") for model, _ in left_out):
        parts = [(model.classes_, model.predict_proba(rows[out]), target[out]) for model, out in left_out]
        return _score_of_folds(parts, entropy(np.unique(target, return_counts=True)[1]), task, never_called)
    scores = abs(trained["test_score"])
    return _over_folds(name, scores, baseline=float(baseline.mean()), most=most, never_called=never_called)


def _score_of_folds(
    parts: Sequence[tuple[NDArray[Any], FloatArray, NDArray[Any]]],
    prevalence_loss: float,
    task: Task,
    never_called: tuple[str | int, ...],
) -> Score:
    """Score classes, probabilities and targets of each fold: by the area under the curve, if each fold has one."""
    targets = [target for *_, target in parts]
    of_positive = [_of_positive(task, classes, probabilities) for classes, probabilities, _ in parts]
    ranking = _ranking(task, np.concatenate(targets), np.concatenate(of_positive))
    facts: dict[str, Any] = {"ranking": ranking, "never_called": never_called}
    if ranking is not None and all(len(np.unique(target)) == 2 for target in targets):
        is_positive = [np.asarray(target == ranking["positive"]) for target in targets]
        areas = [auc_with_interval(*each)[0] for each in zip(is_positive, of_positive, strict=True)]
        return _over_folds("AUC", np.array(areas), baseline=0.5, most=1.0, **facts)
    losses = np.array([_losses(*part).mean() for part in parts])
    return _over_folds("log loss", losses, baseline=prevalence_loss, most=np.inf, **facts)


def _losses(classes: NDArray[Any], probabilities: FloatArray, target: NDArray[Any]) -> FloatArray:
    """Return log losses; a class that the model does not know has no probability."""
    return log_losses((probabilities * np.equal.outer(target, classes)).sum(axis=1))


def _ranking(task: Task, target: NDArray[Any], probabilities: FloatArray) -> dict[str, Any] | None:
    if task.positive is None:
        return None
    return {"positive": task.positive, **ranking_figures(target == task.positive, probabilities, _FIND)}


def _of_positive(task: Task, classes: NDArray[Any], probabilities: FloatArray) -> FloatArray:
    """Return probabilities of the sought one of two classes; zeros if the model does not know it."""
    # A party may have no row of it, and the model of a fold may have seen none.
    if task.positive is None or task.positive not in classes:
        return np.zeros(len(probabilities))
    return np.asarray(probabilities[:, int(np.argmax(classes == task.positive))])


def _never_called(task: Task, target: NDArray[Any], predicted: NDArray[Any]) -> tuple[str | int, ...]:
    missing = set(target.tolist()) - set(predicted.tolist())
    return tuple(name for name in task.classes if name in missing)


def _survival_score(collaboration: Collaboration, shares: Sequence[Share], n_folds: int) -> Score | None:
    """Cross-validate the concordance of the log risk on the collaboration representations, equal rows together."""
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold

    rows, target, groups = _stack(collaboration, shares)
    # Each party has a baseline of its own, and so a stratum.
    strata = np.repeat(np.arange(len(shares)), [len(share.target) for share in shares])
    n_folds = min(n_folds, len(np.unique(groups)))
    if n_folds < 2:
        return None
    scores: list[float] = []
    for kept, out in GroupKFold(n_folds, shuffle=True, random_state=0).split(rows, groups=groups):
        fitted = fit_weighted(
            clone(collaboration.estimator_), rows[kept], target[kept], np.ones(len(kept)), strata=strata[kept]
        )
        try:
            scores.append(concordance_index(target[out], fitted.predict(rows[out])))
        # Of no pair of rows in this fold the order is known.
        except NumericalError:
            return None
    return _over_folds("concordance", np.array(scores), baseline=0.5, most=1.0)


def _over_folds(name: str, scores: FloatArray, *, most: float, **facts: Any) -> Score:
    """Return the mean over folds, with Student's interval."""
    n_folds = len(scores)
    value = float(scores.mean())
    half = float(stats.t.ppf(0.975, n_folds - 1) * scores.std(ddof=1) / np.sqrt(n_folds))
    low = max(value - half, 0.0)
    high = min(value + half, most)
    return Score(name=name, value=value, low=low, high=high, n_folds=n_folds, **facts)


def _stack(collaboration: Collaboration, shares: Sequence[Share]) -> tuple[FloatArray, NDArray[Any], NDArray[np.intp]]:
    """Return all rows, their targets, and a number for each, which equal rows of a party, as group means are, share."""
    numbers: list[NDArray[np.intp]] = []
    start = 0
    for share in shares:
        # In different folds a mean of a group would be predicted from itself.
        equal = np.unique(share.representation, axis=0, return_inverse=True)[1].ravel()
        numbers.append(start + equal)
        start += len(equal)
    rows = np.vstack([collaboration.representations_[share.party] for share in shares])
    return rows, np.concatenate([share.target for share in shares]), np.concatenate(numbers)


COLLABORATION_KIND = "datacollab.collaboration"
_MAPS = "maps.safetensors"
_LEFT_OUT = "left-out.safetensors"
_WITHOUT = "without.bin"
_OWN = "own.bin"
_HEAD = "h"
_OBJECT = f"{_HEAD}.skops"
_LIBRARIES = ("numpy", "scipy", "sklearn")
"""Libraries whose types may be in an estimator that is no plain numbers."""


def pack_collaboration(collaboration: Collaboration, result: Integration) -> bytes:
    """Pack all parties' g_k, h once, and for each party the parts of its own model; no representation."""
    facts: list[dict[str, Any]] = []
    # Maps are numbers, but h may be any estimator: hence a kind of file that never leaves this disk.
    arrays: dict[str, NDArray[Any]] = {}
    left_out: dict[str, NDArray[Any]] = {}
    without: list[bytes] = []
    own: list[bytes] = []
    for number, party in enumerate(collaboration.parties):
        model = collaboration.party_model(party)
        map_facts, map_arrays = map_to(model.integration_function)
        arrays |= {f"{number}.{name}": array for name, array in map_arrays.items()}
        if model.left_out is not None:
            left_out[f"{number}"] = np.asarray(model.left_out, dtype=np.float64)
        # Members of a bundle are few, and parties may be many: so their models follow one another in one member.
        without.append(_pack_head(model.without_party))
        facts.append({"party": party, "map": map_facts, "without_bytes": len(without[-1]), "level": None})
        if (level := collaboration.levels_.get(party)) is not None:
            facts[-1]["level"] = np.asarray(level).tolist()
        if isinstance(model.estimator, SurvivalModel):
            own.append(_pack_head(model.estimator.for_party(party)))
            facts[-1]["own_bytes"] = len(own[-1])
    head = None
    members = {_OWN: b"".join(own)}
    # Where each party has a baseline of its own it gets no other; otherwise h is the same for all.
    if not own:
        head, members = _write_head(collaboration.estimator_)
    members |= {_MAPS: arrays_to_bytes(arrays), _LEFT_OUT: arrays_to_bytes(left_out), _WITHOUT: b"".join(without)}
    return pack(COLLABORATION_KIND, {"integration": result.facts(), "maps": facts, "head": head}, members)


def unpack_collaboration(data: bytes, *, where: str) -> tuple[dict[str, PartyModel], Integration]:
    """Return models by party, and their integration."""
    try:
        bundle = unpack(data, kind=COLLABORATION_KIND)
        return dict(_models(bundle)), Integration.from_facts(bundle.facts["integration"])
    # What this program wrote is not checked entry by entry; it is not read from elsewhere.
    except (ExchangeError, KeyError, TypeError, ValueError):
        raise ExchangeError("STATE_DAMAGED", f"{where} is damaged. Run `datacollab analyst integrate` again.") from None


def _models(bundle: Bundle) -> Iterator[tuple[str, PartyModel]]:
    arrays = bytes_to_arrays(bundle.members[_MAPS], what=_MAPS)
    left_out = bytes_to_arrays(bundle.members[_LEFT_OUT], what=_LEFT_OUT)
    without = io.BytesIO(bundle.members[_WITHOUT])
    own = io.BytesIO(bundle.members.get(_OWN, b""))
    head = bundle.facts["head"]
    estimator = None
    for number, entry in enumerate(bundle.facts["maps"]):
        party = entry["party"]
        prefix = f"{number}."
        ours = {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
        g = map_from(party, entry["map"], ours)
        if head is None:
            estimator = _open_head(own.read(entry["own_bytes"]), g.n_components)
        # One h for all parties, read once.
        elif estimator is None:
            estimator = _read_head(head, bundle.members, g.n_components)
        h = estimator
        if entry["level"] is not None:
            h = add_level(estimator, np.asarray(entry["level"]))
        model = PartyModel(
            party=party,
            integration_function=g,
            estimator=h,
            left_out=left_out.get(f"{number}"),
            without_party=_open_head(without.read(entry["without_bytes"]), g.n_components),
        )
        yield party, model


def _pack_head(estimator: Any | None) -> bytes:
    if estimator is None:
        return b""
    head, members = _write_head(estimator)
    return pack(COLLABORATION_KIND, {"head": head}, members)


def _open_head(data: bytes, n_components: int) -> Any | None:
    if not data:
        return None
    bundle = unpack(data, kind=COLLABORATION_KIND)
    return _read_head(bundle.facts["head"], bundle.members, n_components)


def _write_head(estimator: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Write an estimator as numbers, or as skops does if no numbers describe it; of a search, the best estimator."""
    # The other candidates of a search are of no use, and may hold rows.
    estimator = getattr(estimator, "best_estimator_", estimator)
    try:
        return head_to(estimator, _HEAD)
    except ExchangeError as unsupported:
        if unsupported.code != "MODEL_UNSUPPORTED" or isinstance(estimator, SurvivalModel):
            raise
        # An object stays on this disk: parties get numbers, or predictions for the anchor.
        skops_io = require("skops.io", "exchange")
        try:
            data: bytes = skops_io.dumps(estimator)
            _list_types(data)
        # Skops and what it calls raise many kinds of errors for objects that it cannot take apart.
        except Exception:
            raise unsupported from None
        return {"form": "object"}, {_OBJECT: data}


def _read_head(facts: Any, members: Mapping[str, bytes], n_components: int) -> Any:
    """Read the estimator that `_write_head` wrote, in this program and on this disk."""
    if facts["form"] != "object":
        return head_from(facts, members, _HEAD, n_components)
    data = members[_OBJECT]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return require("skops.io", "exchange").loads(data, trusted=_list_types(data))
    # Skops raises many kinds of errors for what it did not write, and may quote it.
    except Exception as error:
        raise ValueError(f"the object cannot be read ({type(error).__name__})") from None


def _list_types(data: bytes) -> list[str]:
    """Return the types that skops does not know by itself, all of them of `_LIBRARIES`."""
    types: list[str] = require("skops.io", "exchange").get_untrusted_types(data=data)
    # Reading an object runs code of its library: of no other than these.
    if any(name.partition(".")[0] not in _LIBRARIES for name in types):
        raise ValueError("objects of other libraries than scikit-learn, SciPy and NumPy")
    return types


def sign_model(model: PartyModel, result: Integration, project: Project, key: KeyPair) -> bytes:
    """Write a `.dcmodel` file for one party, sealed to it: a kernel map holds its representation of the anchor."""
    inner, members = model_contents(model)
    facts = {name: inner[name] for name in ("task", "n_components", "estimator", "versions")}
    facts |= {"parameters": result.parameters, "row_lint": {"found": False, "overridden_by": None}}
    return _seal_and_sign(MODEL_KIND, "model of", pack(MODEL_KIND, inner, members), facts, model, result, project, key)


def sign_predictions(
    model: PartyModel, anchor_representation: FloatArray, result: Integration, project: Project, key: KeyPair
) -> bytes:
    """Write a `.dcanswers` file for one party, sealed to it: its model's predictions for the anchor."""
    try:
        inner, members = predictions_contents(anchor_predictions(model, anchor_representation))
    except (TypeError, ArithmeticError) as error:
        raise ExchangeError("MODEL_UNSUPPORTED", f"{error} Integrate with another model.") from None
    facts = {name: inner[name] for name in ("task", "n_anchors", "versions")}
    facts |= {"estimator": estimator_kind(model.estimator)}
    data = pack(PREDICTIONS_KIND, inner, members)
    return _seal_and_sign(PREDICTIONS_KIND, "answers for", data, facts, model, result, project, key)


def _seal_and_sign(
    kind: str,
    purpose: str,
    data: bytes,
    facts: Mapping[str, Any],
    model: PartyModel,
    result: Integration,
    project: Project,
    key: KeyPair,
) -> bytes:
    """Seal the bytes that go back to one party, and sign them with the facts outside of the seal."""
    party = str(model.party)
    outside = {
        **facts,
        "party": party,
        "created": now(),
        "project": project.name,
        "project_digest": project.digest,
        "share_digest": result.share_digests[party],
        "method": result.method,
        "n_parties": len(result.share_digests),
        "n_rows": result.n_rows,
    }
    # The purpose is bound into the seal, so that a sealed file cannot be passed off as another.
    sealed = seal(data, [project.parties[party]], purpose=f"{purpose} {party} in {project.digest}")
    return pack(kind, outside, {SEALED: sealed}, key=key)
