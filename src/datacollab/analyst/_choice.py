"""An analyst who chooses: candidates, and the search among them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, DataCollabError
from ..linalg import entropy, median_gamma
from ..model import (
    ALPHAS,
    AveragedClassifier,
    AveragedRegressor,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    fit_left_out,
    fit_weighted,
    log_loss_of,
    probabilities_of,
)
from ..share import Share
from ._graphs import TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import LTI, ODC, BaseIntegrator
from ._training import TrainingRows, mean_anchor

ANCHOR_WEIGHTS = (0.0, 0.3, 1.0)
"""Weights of an anchor row beside a party's row."""
WIDTHS = (0.5, 1.0, 2.0)
"""Multiples of one over the median squared distance."""
_LARGE_ALPHAS = (0.1, 1.0, 10.0)
_VERY_LARGE_ALPHAS = (1.0, 10.0)
_BEYOND = 0.7
"""Part of the difference between two anchor rows that a landmark lies beyond a third."""
FEW_LANDMARKS = 400
"""Landmarks in the search."""
MANY_LANDMARKS = 1000
"""Landmarks of the model that is taken in the end."""
MORE_LANDMARKS = ", more landmarks"
"""Suffix to the name of a model that has many."""
_TREES = 200
_PART_OF_COLUMNS = 1 / 3
"""Tried at a split in regression: components are many and alike, and all of them take three times as long."""


class NamedModel(NamedTuple):
    """A model to try, and its name in tables."""

    name: str
    estimator: Any


_RIDGES = LandmarkRidgeClassifier | LandmarkRidgeRegressor
"""The models of `kernel_models`."""


def default_integrators(shares: Mapping[PartyName, Share], *, cautious: bool = False) -> list[BaseIntegrator]:
    """Return integration methods for these shares, simple ones first.

    As many components as the widest share has columns, where the anchor has more rows than that.
    """
    columns = [share.representation.shape[1] for share in shares.values()]
    first = next(iter(shares.values()))
    n_anchors = first.anchor_representation.shape[0]
    n_components = min(max(columns), n_anchors - 1)
    integrators: list[BaseIntegrator] = []
    if len(set(columns)) == 1:
        integrators.append(ODC(reference="consensus"))
    kti = KTI(n_components, alpha=0.1, center=True)
    # The anchor's rows cannot tell how a method does on rows unlike them: few candidates, and none that reads targets.
    if cautious:
        return [*integrators, kti]
    integrators += [LTI(n_components), kti]
    if any(share.anchor_target is not None for share in shares.values()):
        integrators.append(KTI(n_components, alpha=0.1, center=True, graph=TargetSimilarityGraph()))
    return integrators


def kernel_models(
    anchor: FloatArray, *, is_classification: bool, cautious: bool = False, interpolated: bool = False
) -> list[NamedModel]:
    """Return linear and kernel ridge regressions whose landmarks are made of anchor rows."""
    # Rows that defences changed flatter small penalties, and interpolated ones do so the most.
    alphas: tuple[float, ...] = ALPHAS
    if interpolated:
        alphas = _VERY_LARGE_ALPHAS
    elif cautious:
        alphas = _LARGE_ALPHAS
    ridge = LandmarkRidgeClassifier if is_classification else LandmarkRidgeRegressor
    models = [NamedModel("ridge", ridge(kernel="linear", alphas=alphas))]
    S = landmarks(anchor, FEW_LANDMARKS)
    gamma = median_gamma(anchor)
    # Anchors with half their rows equal have no width.
    if np.isfinite(gamma) and gamma > 0:
        models += [
            NamedModel(f"kernel ridge, width {factor:g}", ridge(S, gamma=factor * gamma, alphas=alphas))
            for factor in WIDTHS
            if not (cautious and factor < 1)
        ]
    return models


def with_many_landmarks(model: NamedModel, anchor: FloatArray) -> NamedModel | None:
    """Return the same kernel ridge regression on more landmarks; None for other models, and those that have many."""
    if getattr(model.estimator, "landmarks", None) is None or model.name.endswith(MORE_LANDMARKS):
        return None
    return NamedModel(
        model.name + MORE_LANDMARKS,
        clone(model.estimator).set_params(landmarks=landmarks(anchor, MANY_LANDMARKS)),
    )


def forest(*, is_classification: bool, n_jobs: int | None, random_state: int) -> NamedModel:
    """Return a random forest, whose rows left out are those that a tree did not see."""
    options: dict[str, Any] = {"n_estimators": _TREES, "n_jobs": n_jobs, "random_state": random_state}
    estimator: Any = RandomForestRegressor(max_features=_PART_OF_COLUMNS, **options)
    if is_classification:
        estimator = CalibratedForestClassifier(**options)
    return NamedModel("random forest", estimator)


def reads_targets(integrator: BaseIntegrator) -> bool:
    """Return whether an integration method looks at the targets of the anchor's rows."""
    graphs = (getattr(integrator, "graph", None), getattr(integrator, "penalty_graph", None))
    return isinstance(integrator, KTICV) or any(isinstance(each, TargetSimilarityGraph) for each in graphs)


def name_of(integrator: BaseIntegrator) -> str:
    """Return the name of an integration method in tables."""
    name = type(integrator).__name__
    graph = getattr(integrator, "graph", None)
    if graph is not None:
        name += f" + {type(graph).__name__}"
    return name


def landmarks(anchor: FloatArray, most: int) -> FloatArray:
    r"""Return rows whose kernel functions span nearly the space of the parties' rows, made of anchor rows alone.

    Half are anchor rows; the others are :math:`a_i + \tau (a_j - a_k)`, since parties' rows lie beyond the anchor's,
    above all where these were interpolated.  Always the same ones.
    """
    # Drawn from one seed: candidates must not differ by the luck of their landmarks.
    generator = np.random.default_rng(0)
    n_kept = min(len(anchor), most // 2)
    kept = anchor[np.sort(generator.choice(len(anchor), n_kept, replace=False))]
    i, j, k = generator.integers(len(anchor), size=(3, most - n_kept))
    return np.vstack([kept, anchor[i] + _BEYOND * (anchor[j] - anchor[k])])


_JUDGED_ON = {
    "rows": "the parties' rows, each left out",
    "anchor": "the anchor's rows, each left out, for the parties' rows were changed by defences",
    "groups": "the parties' rows as defences changed them, equal ones left out together; the scores may flatter",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An integration method, a weight of the anchor's rows and a model, and how they did; or an average of such.

    Attributes
    ----------
    integrator, model : str
    anchor_weight : float
        Weight of an anchor row beside a party's row in the training of h; an average has the mean.
    alpha : float or None
        The ridge penalty, chosen on rows left out, where the model has one.
    loss, standard_error : float
        Mean over the rows left out; not a number where the candidate was not tried.
    difference_low, difference_high : float
        95 % interval of the loss minus that of the chosen candidate, row by row.
    seconds : float
    chosen : bool
    part : float
        Weight in the chosen average, from 0 to 1.
    failure : str or None
        Why it was not tried or could not be fitted.
    """

    integrator: str
    model: str = ""
    anchor_weight: float = 0.0
    alpha: float | None = None
    loss: float = math.nan
    standard_error: float = math.nan
    difference_low: float = math.nan
    difference_high: float = math.nan
    seconds: float = 0.0
    chosen: bool = False
    part: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """All candidates of a choice.

    Attributes
    ----------
    candidates : tuple of Candidate
        In the order in which they were tried, simple ones first.
    metric : {"log loss", "squared error"}
    judged_on : {"rows", "anchor", "groups"}
        The rows that the losses are of: the parties'; the anchor's, where the shared rows are not the parties' own; or
        changed rows, where there is nothing else.
    n_judges : int
        Rows that judged.
    constant : float
        Loss on these rows of the classes' frequencies among them, or of the mean: a useful model is below.
    """

    candidates: tuple[Candidate, ...]
    metric: str
    judged_on: str
    n_judges: int
    constant: float = math.nan

    @property
    def caution(self) -> str:
        """A warning about scores on the rows left out; empty where these are the parties' own."""
        if self.judged_on == "rows":
            return ""
        return (
            "These rows are not the parties' own as they are, and their labels may be what models at the parties "
            "named. Expect less at the parties, and go by what each one finds on its own rows."
        )

    @property
    def chosen(self) -> Candidate:
        """The candidate that was taken."""
        return next(candidate for candidate in self.candidates if candidate.chosen)

    def by_loss(self) -> list[Candidate]:
        """Return candidates that were tried, from the smallest loss on."""
        return sorted((each for each in self.candidates if each.failure is None), key=lambda each: each.loss)

    def best(self, most: int) -> list[Candidate]:
        """Return the best candidates, so many at most; the one that was taken is among them."""
        best = self.by_loss()[:most]
        return best if self.chosen in best else [*best[: most - 1], self.chosen]

    def table(self, most: int = 10) -> str:
        """Return the best candidates as text, the chosen one marked."""
        lines = [f"{self.metric} on {self.n_judges} rows: {_JUDGED_ON[self.judged_on]}"]
        if math.isfinite(self.constant):
            lines.append(f"   {self.constant:.4f}  a constant, which looks at no column")
        for each in self.best(most):
            mark = "*" if each.chosen else " "
            line = f" {mark} {each.loss:.4f} ± {each.standard_error:.4f}  {each.integrator}, {each.model}"
            if each.alpha is not None:
                line += f", penalty {each.alpha:g}"
            line += f", anchor rows × {each.anchor_weight:.2g}"
            if each.part:
                line += f", {each.part:.0%} of the average"
            if not each.chosen:
                line += f"  ({each.difference_low:+.4f} to {each.difference_high:+.4f})"
            lines.append(line)
        if self.judged_on != "rows" and self.by_loss()[0].loss < self.chosen.loss:
            lines.append(
                " The simpler one (*) was taken: rows that were made between others flatter what follows them closely, "
                "so a more complicated one has to have a loss that is 25 % smaller."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


_Z = 1.96
_NO_TIME = "not tried, for the budget was spent"
_FLATTERED = 0.75
"""Part of the best loss so far that a more complicated candidate may have at most, where interpolated rows judge."""


@dataclass(kw_only=True, eq=False)
class _Ledger:
    """The candidates tried so far, and the best of them."""

    total: int
    handicap: float
    budget: float | None
    progress: Callable[[int, int, str], None] | None
    candidates: list[Candidate] = field(default_factory=list)
    losses: list[FloatArray | None] = field(default_factory=list)
    best: FittedCandidate | None = None
    error: DataCollabError | ValueError | None = None
    started: float = field(default_factory=time.monotonic)

    def begin(self, name: str, ahead: int = 0) -> bool:
        """Return whether there is time for one more, `ahead` of those added; the first candidate is always tried."""
        some = any(losses is not None for losses in self.losses)
        # Whatever the budget, there has to be one model.
        if some and self.budget is not None and time.monotonic() - self.started > self.budget:
            return False
        if self.progress is not None:
            self.progress(len(self.candidates) + ahead, self.total, name)
        return True

    def add(self, choice: FittedCandidate) -> None:
        self.candidates.append(choice.candidate)
        self.losses.append(choice.losses)

    def offer(self, choice: FittedCandidate) -> None:
        """Take a candidate where it beats the best so far; of equal losses the first stays."""
        # Candidates come from simple to complicated.
        if self.best is None or choice.candidate.loss < self.handicap * self.best.candidate.loss:
            self.best = choice

    def skip(self, candidate: Candidate, error: DataCollabError | ValueError | None = None) -> None:
        self.candidates.append(candidate)
        self.losses.append(None)
        # The first error is raised if no candidate can be fitted.
        self.error = self.error or error


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """Candidates, to be tried one after the other."""

    shares: Mapping[PartyName, Share]
    training: TrainingRows
    integrators: Sequence[BaseIntegrator]
    model: NamedModel | None
    anchor_weights: Sequence[float]
    is_classification: bool
    class_weight: str | Mapping[Any, float] | None
    budget: float | None
    n_jobs: int | None
    random_state: int
    progress: Callable[[int, int, str], None] | None

    @property
    def cautious(self) -> bool:
        """True if rows judge that are not the parties' own."""
        return self.training.judged_on != "rows"

    @property
    def _flattered(self) -> bool:
        """True if rows left out have near copies among the others, which kernels follow: only a linear model is tried.

        Noise on means of groups makes them unequal, so that they cannot be left out together.
        """
        groups = self.training.groups
        return self.is_classification and self.training.judged_on == "groups" and len(np.unique(groups)) == len(groups)

    def run(self) -> tuple[FittedCandidate, Selection]:
        """Try all candidates; the smallest loss wins."""
        training = self.training
        weights = tuple(self.anchor_weights) if training.has_anchor else (0.0,)
        n_models, n_refined = self._counts(len(weights))
        total = len(self.integrators) * n_models + n_refined
        handicap = _FLATTERED if training.interpolated and self.model is None else 1.0
        ledger = _Ledger(total=total, handicap=handicap, budget=self.budget, progress=self.progress)
        for integrator in self.integrators:
            name = name_of(integrator)
            if not ledger.begin(name):
                ledger.skip(Candidate(integrator=name, failure=_NO_TIME))
                continue
            # A method that has read the judges' targets would win by having seen the answers.
            if training.judged_on == "anchor" and reads_targets(integrator) and len(self.integrators) > 1:
                ledger.skip(Candidate(integrator=name, failure="it reads the anchor's targets, which judge here"))
                continue
            anchors = {party: share.anchor_representation for party, share in self.shares.items()}
            try:
                fitted = clone(integrator).fit(anchors, training.anchor_target)
            # A method that these shares do not allow is a line of the table, and no end of the search.
            except (DataCollabError, ValueError) as error:
                ledger.skip(Candidate(integrator=name, failure=str(error)), error)
                continue
            self._try_models(fitted, weights, ledger)
        if ledger.best is None:
            raise ledger.error or AgreementError("There is nothing to try; name at least one integration method.")
        if self.model is None:
            self._refine(ledger.best, ledger)
        return ledger.best, self._select(ledger, ledger.best)

    @cached_property
    def _counted(self) -> FloatArray:
        """How much each row counts in judging, shape (n_rows,)."""
        return self.training.counts(self.class_weight)

    def _counts(self, n_weights: int) -> tuple[int, int]:
        """Return how many candidates of an integration method are tried, and how many of all at most once more."""
        if self.model is not None or self._flattered:
            return n_weights, 0
        # A linear and two kernel regressions.
        if self.cautious:
            return 3, 1
        # A linear one and all widths, with each weight of the anchor; a forest and an average besides.
        return (1 + len(WIDTHS)) * n_weights + 2, len(WIDTHS) * n_weights

    def _try_models(self, integrator: BaseIntegrator, weights: Sequence[float], ledger: _Ledger) -> None:
        rows = self.training.map_rows(integrator, self.shares)
        tried: list[FittedCandidate] = []
        for model, weight in self._models(mean_anchor(integrator, self.shares), weights, tried):
            if not ledger.begin(f"{name_of(integrator)}, {model.name}"):
                named = Candidate(integrator=name_of(integrator), model=model.name, anchor_weight=weight)
                ledger.skip(replace(named, failure=_NO_TIME))
                continue
            tried.append(self._try(integrator, model, weight, rows))
            ledger.add(tried[-1])
        average = self._average(tried)
        if average is not None:
            ledger.add(average)
            # It stands for its parts, and one of them may have a smaller loss by chance.
            tried = [average, *(each for each in tried if not isinstance(each.estimator, _RIDGES))]
        for each in tried:
            ledger.offer(each)

    def _average(self, tried: Sequence[FittedCandidate]) -> FittedCandidate | None:
        """Average the ridge regressions, if the parties' own rows judge; None if one alone has a weight."""
        choices = [each for each in tried if isinstance(each.estimator, _RIDGES)]
        if self.model is not None or self.cautious or not choices:
            return None
        weights = weigh_by_losses([each.losses for each in choices], squared=not self.is_classification)
        parts = tuple(each for each, weight in zip(choices, weights, strict=True) if weight > 0)
        if len(parts) < 2:
            return None
        weights = weights[weights > 0]
        average = _average_of([each.estimator for each in parts], weights)
        classes = getattr(average, "classes_", None)
        predictions = [each.left_out for each in parts]
        if classes is not None:
            predictions = [probabilities_of(each.left_out, each.estimator.classes_, classes) for each in parts]
        # Each part's prediction was made without the row, and so is their average.
        left_out = np.tensordot(weights, np.stack(predictions), axes=1)
        losses = self._losses(classes, left_out)
        name = f"average of {len(parts)}"
        if any(each.candidate.model.endswith(MORE_LANDMARKS) for each in parts):
            name += MORE_LANDMARKS
        first = parts[0]
        candidate = Candidate(
            integrator=first.candidate.integrator,
            model=name,
            anchor_weight=float(weights @ [each.candidate.anchor_weight for each in parts]),
            loss=float(losses.mean()),
            standard_error=float(losses.std() / np.sqrt(len(losses))),
        )
        return replace(
            first,
            candidate=candidate,
            estimator=average,
            weights=np.average([each.weights for each in parts], axis=0, weights=weights),
            left_out=left_out,
            losses=losses,
            parts=parts,
            certainty=1.0,
        )

    def _refine(self, best: FittedCandidate, ledger: _Ledger) -> None:
        """Fit the best kernel ridge regressions again on more landmarks, which would be too slow for all.

        They are taken unless they are clearly worse: the more landmarks, the nearer they are to ones without such a
        restriction.
        """
        anchor = mean_anchor(best.integrator, self.shares)
        parts = best.parts or (best,)
        refined: list[FittedCandidate] = []
        ledger.total = len(ledger.candidates) + len(parts)
        for part in parts:
            model = with_many_landmarks(NamedModel(part.candidate.model, part.estimator), anchor)
            if model is None:
                refined.append(part)
                continue
            # An average of some parts alone would not be the one that was chosen.
            if not ledger.begin(f"{part.candidate.integrator}, {model.name}", ahead=len(refined)):
                return
            refined.append(self._try(part.integrator, model, part.candidate.anchor_weight, part.rows))
        again = [each for each, part in zip(refined, parts, strict=True) if each is not part]
        if not again:
            return
        for each in again:
            ledger.add(each)
        new = self._average(refined) if best.parts else again[0]
        if new is None:
            return
        if best.parts:
            ledger.add(new)
        low, _ = _interval(new.losses - best.losses)
        # Clearly worse is an interval of the difference above 0.
        if low <= 0:
            ledger.best = new

    def _models(
        self, anchor: FloatArray, weights: Sequence[float], tried: Sequence[FittedCandidate]
    ) -> Iterator[tuple[NamedModel, float]]:
        if self.model is not None:
            yield from ((self.model, weight) for weight in weights)
            return
        for weight in weights:
            models = kernel_models(
                anchor,
                is_classification=self.is_classification,
                cautious=self.cautious,
                interpolated=self.training.interpolated,
            )
            if self._flattered:
                # The linear one comes first.
                models = models[:1]
            yield from ((model, weight) for model in models)
        if self.cautious:
            return
        # Forests are slow, so one is tried, with the weight that was the best for ridge regressions.
        best = min((choice.candidate for choice in tried), key=lambda each: each.loss, default=None)
        trees = forest(is_classification=self.is_classification, n_jobs=self.n_jobs, random_state=self.random_state)
        yield trees, weights[0] if best is None else best.anchor_weight

    def _try(
        self, integrator: BaseIntegrator, model: NamedModel, anchor_weight: float, rows: FloatArray
    ) -> FittedCandidate:
        training = self.training
        started = time.monotonic()
        weights = training.weights(anchor_weight, self.class_weight)
        # One fit on all rows; the predictions are those of fits without the row's group.
        fitted, left_out = fit_left_out(
            model.estimator, rows, training.target, weights, groups=training.groups, judges=self._counted
        )
        if left_out is None:
            raise AgreementError(
                f"{model.name} gives no probabilities, or there are too few rows to leave some out; choose another "
                "model."
            )
        losses = self._losses(getattr(fitted, "classes_", None), left_out)
        certainty = _certainty(fitted, rows, mean_anchor(integrator, self.shares), training)
        _lessen_certainty(fitted, certainty, training)
        candidate = Candidate(
            integrator=name_of(integrator),
            model=model.name,
            anchor_weight=anchor_weight,
            alpha=getattr(fitted, "alpha_", None),
            loss=float(losses.mean()),
            standard_error=float(losses.std() / np.sqrt(len(losses))),
            seconds=time.monotonic() - started,
        )
        return FittedCandidate(
            candidate=candidate,
            integrator=integrator,
            estimator=fitted,
            rows=rows,
            weights=weights,
            left_out=left_out,
            losses=losses,
            certainty=certainty,
        )

    def _losses(self, classes: NDArray[Any] | None, left_out: FloatArray) -> FloatArray:
        """Return log loss or squared error of each row that judges, as much as it counts, shape (n_judges,)."""
        judged = self.training.judges > 0
        left_out = left_out[judged]
        target = self.training.target[judged]
        if classes is None:
            losses = (left_out - target) ** 2
        else:
            # A class that training lacks has the probability 0, whose loss would outweigh all others.
            known = np.isin(target, classes)
            losses = np.full(len(target), -np.log(_FLOOR))
            codes = np.searchsorted(classes, target[known])
            losses[known] = np.minimum(log_loss_of(left_out[known], codes), -np.log(_FLOOR))
        counts = self._counted[judged]
        return np.asarray(losses * counts / counts.mean())

    def _select(self, ledger: _Ledger, best: FittedCandidate) -> Selection:
        """Return all candidates, each with an interval of its difference from the chosen one."""
        weights: dict[int, float] = {}
        if best.parts:
            pairs = zip(best.parts, best.estimator.weights_, strict=True)
            weights = {id(part.candidate): float(weight) for part, weight in pairs}
        candidates = []
        for candidate, losses in zip(ledger.candidates, ledger.losses, strict=True):
            if losses is None:
                candidates.append(candidate)
                continue
            # Row by row, since the same rows are hard for all candidates.
            low, high = _interval(losses - best.losses)
            part = weights.get(id(candidate), 0.0)
            chosen = candidate is best.candidate
            candidates.append(replace(candidate, difference_low=low, difference_high=high, chosen=chosen, part=part))
        target = self.training.target
        if hasattr(best.estimator, "classes_"):
            metric = "log loss"
            constant = entropy(np.bincount(np.unique(target, return_inverse=True)[1], weights=self._counted))
        else:
            metric = "squared error"
            mean = np.average(target, weights=self._counted)
            constant = float(np.average((target - mean) ** 2, weights=self._counted))
        return Selection(
            candidates=tuple(candidates),
            metric=metric,
            judged_on=self.training.judged_on,
            n_judges=int(np.sum(self.training.judges > 0)),
            constant=constant,
        )


def _interval(differences: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the mean."""
    half = _Z * float(differences.std()) / np.sqrt(len(differences))
    return float(differences.mean()) - half, float(differences.mean()) + half


_TAU = 0.1
"""Power of the likelihood in the weights; chosen on draws of flchain, gbsg2, whas500, breast cancer, digits and
diabetes."""
_LEAST = 0.02
"""Part of the average below which a candidate is left out of it, so that models stay small."""


def _average_of(estimators: Sequence[Any], weights: Sequence[float] | FloatArray) -> Any:
    """Return the average of fitted classifiers, or of regressors."""
    if hasattr(estimators[0], "classes_"):
        return AveragedClassifier(estimators, weights)
    return AveragedRegressor(estimators, weights)


def weigh_by_losses(losses: Sequence[FloatArray], *, squared: bool) -> FloatArray:
    """Return weights of candidates by their losses on the same rows, those of next to none set to 0."""
    totals = np.array([each.sum() for each in losses])
    if squared:
        # A squared error over twice the best candidate's variance is a normal log loss.
        variance = totals.min() / len(losses[0])
        totals = totals / (2 * variance) if variance > 0 else np.where(totals > 0, np.inf, 0.0)
    # A power of the likelihood: rows are not as independent as they would have to be for all of it.
    weights = np.exp(-_TAU * (totals - totals.min()))
    weights /= weights.sum()
    weights[weights < _LEAST] = 0.0
    return np.asarray(weights / weights.sum())


_FLOOR = 1e-6
"""Smallest probability of a class in the log loss, for classes that the training lacks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedCandidate:
    """A candidate with its fitted model, its predictions for rows left out, and their losses."""

    candidate: Candidate
    integrator: BaseIntegrator
    estimator: Any
    rows: FloatArray
    weights: FloatArray
    left_out: FloatArray
    losses: FloatArray
    parts: tuple[FittedCandidate, ...] = ()
    """The choices that it averages; none of one model."""
    certainty: float = 1.0


def train_again(choice: FittedCandidate, training: TrainingRows, kept: FloatArray) -> Any | None:
    """Train a model with the same settings, those chosen on rows left out among them, on the rows kept.

    Of an average, the parts that these rows can train keep their weights; None if there are none.
    """
    if choice.parts:
        again = [train_again(part, training, kept) for part in choice.parts]
        pairs = zip(again, choice.estimator.weights_, strict=True)
        trained = [(estimator, weight) for estimator, weight in pairs if estimator is not None]
        return _average_of(*zip(*trained, strict=True)) if trained else None
    weights = choice.weights * kept
    if not weights.any():
        return None
    # The penalty is not chosen again: rows of the party that is left out would be missed twice.
    copy = clone(choice.estimator)
    if hasattr(choice.estimator, "alpha_") and "alphas" in copy.get_params():
        copy.set_params(alphas=(choice.estimator.alpha_,))
    if not hasattr(copy, "fit_left_out"):
        return fit_weighted(copy, choice.rows, training.target, weights)
    # Its probabilities are calibrated on rows left out: on those that judge, if any of these are kept.
    judges = training.judges * (weights > 0)
    if not judges.any():
        judges = (weights > 0).astype(np.float64)
    fitted = fit_left_out(copy, choice.rows, training.target, weights, groups=training.groups, judges=judges)[0]
    _lessen_certainty(fitted, choice.certainty, training)
    return fitted


def _certainty(estimator: Any, rows: FloatArray, anchor: FloatArray, training: TrainingRows) -> float:
    """Return the factor of log odds that were learnt from means of groups; 1 for other rows.

    Means vary less about their class than rows do, and by the rule of Gaussian classes log odds learnt from them are as
    many times too large.  How much less shows beside the anchor's rows, which are no means.
    """
    if training.judged_on != "groups" or not isinstance(estimator, LandmarkRidgeClassifier):
        return 1.0
    own = _log_odds(estimator, rows)
    others = _log_odds(estimator, anchor)
    codes = np.unique(training.target, return_inverse=True)[1]
    means = np.stack([own[codes == code].mean(axis=0) for code in range(codes.max() + 1)])[codes]
    # The anchor's variance within classes is its variance less that between the classes' means.
    within = float(np.sum((own - means) ** 2) / len(own))
    between = means.var(axis=0).sum()
    expected = max(float(others.var(axis=0).sum() - between), within)
    return min(1 / training.group_size, within / expected if expected > 0 else 1.0)


def _log_odds(estimator: LandmarkRidgeClassifier, rows: FloatArray) -> FloatArray:
    logs = np.log(np.maximum(estimator.predict_proba(rows), _FLOOR))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _lessen_certainty(estimator: Any, certainty: float, training: TrainingRows) -> None:
    """Bring log odds nearer to those of the class frequencies, in place."""
    if certainty < 1:
        counts = np.array([np.sum(training.target == each) for each in estimator.classes_])
        # At no certainty at all, predictions are the frequencies.
        logs = np.log(counts / counts.sum())
        estimator.scale_ *= certainty
        estimator.offsets_ = certainty * estimator.offsets_ + (1 - certainty) * (logs - logs.mean())
