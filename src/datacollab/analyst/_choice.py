r"""Choose integration method, weight of the anchor's rows and model by what they say of rows left out.

* A candidate of the analyst, fitted, and what it says of rows left out.

The average of ridge regressions that say nearly the same of rows left out.

Which of several candidates is best is known to within what chance makes of few rows, and the one that looks best has
often been lucky.  So they are averaged, with weights

.. math:: w_j \propto \exp\Bigl(-\tau \sum_i \bigl(\ell_j(i) - \ell_*(i)\bigr)\Bigr)

of their losses on rows left out: pseudo-Bayesian model averaging (Geisser and Eddy 1979; Yao et al. 2018, "Using
stacking to average Bayesian predictive distributions"), tempered, since the losses of candidates for the same rows
differ by chance as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, DataCollabError
from ..model import AveragedClassifier, AveragedRegressor, fit_left_out, fit_weighted, log_loss_of, probabilities_of
from ..share import Share
from ._base import BaseIntegrator
from ._candidates import (
    MORE_LANDMARKS,
    WIDTHS,
    Candidate,
    NamedModel,
    Selection,
    forest,
    is_ridge,
    kernel_models,
    name_of,
    reads_targets,
    with_many_landmarks,
)
from ._training import TrainingRows, mean_anchor

__all__ = ["Choice", "Search", "averaged", "judged_losses", "trained_again"]


_Z = 1.96
_FLATTERED = 0.75
"""Part of the best loss so far that a more complicated candidate may have at most, where interpolated rows judge."""


@dataclass(kw_only=True, eq=False)
class _Ledger:
    """What was tried so far."""

    total: int
    handicap: float
    budget: float | None
    progress: Callable[[int, int, str], None] | None
    candidates: list[Candidate] = field(default_factory=list)
    losses: list[FloatArray | None] = field(default_factory=list)
    best: Choice | None = None
    error: DataCollabError | ValueError | None = None
    started: float = field(default_factory=time.monotonic)

    def begin(self, name: str, ahead: int = 0) -> bool:
        """Whether there is time for one more, `ahead` of what is added; the first candidate is always tried."""
        some = any(losses is not None for losses in self.losses)
        if some and self.budget is not None and time.monotonic() - self.started > self.budget:
            return False
        if self.progress is not None:
            self.progress(len(self.candidates) + ahead, self.total, name)
        return True

    def add(self, choice: Choice) -> None:
        self.candidates.append(choice.candidate)
        self.losses.append(choice.losses)

    def offer(self, choice: Choice) -> None:
        """Take a candidate where it beats what was best so far; of equal losses the first stays."""
        # Candidates come from simple to complicated.
        if self.best is None or choice.candidate.loss < self.handicap * self.best.candidate.loss:
            self.best = choice

    def skip(self, candidate: Candidate, error: DataCollabError | ValueError | None = None) -> None:
        self.candidates.append(candidate)
        self.losses.append(None)
        self.error = self.error or error


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """Candidates, to be tried one after the other."""

    integrators: Sequence[BaseIntegrator]
    model: NamedModel | None
    anchor_weights: Sequence[float]
    is_classification: bool
    cautious: bool
    interpolated: bool
    class_weight: str | Mapping[Any, float] | None
    budget: float | None
    n_jobs: int | None
    random_state: int
    progress: Callable[[int, int, str], None] | None

    def run(self, shares: Mapping[PartyName, Share], training: TrainingRows) -> tuple[Choice, Selection]:
        """Try all candidates; the smallest loss wins."""
        weights = tuple(self.anchor_weights) if training.has_anchor else (0.0,)
        n_models, n_refined = self._counts(len(weights))
        total = len(self.integrators) * n_models + n_refined
        handicap = _FLATTERED if self.interpolated and self.model is None else 1.0
        ledger = _Ledger(total=total, handicap=handicap, budget=self.budget, progress=self.progress)
        for integrator in self.integrators:
            name = name_of(integrator)
            if not ledger.begin(name):
                ledger.skip(Candidate(integrator=name, failure="not tried, for the budget was spent"))
                continue
            if training.judged_on == "anchor" and reads_targets(integrator) and len(self.integrators) > 1:
                ledger.skip(Candidate(integrator=name, failure="it reads the anchor's targets, which judge here"))
                continue
            anchors = {party: share.anchor_representation for party, share in shares.items()}
            try:
                fitted = clone(integrator).fit(anchors, training.anchor_target)
            except (DataCollabError, ValueError) as error:
                ledger.skip(Candidate(integrator=name, failure=str(error)), error)
                continue
            self._try_models(fitted, shares, training, weights, ledger)
        if ledger.best is None:
            raise ledger.error or AgreementError("There is nothing to try; name at least one integration method.")
        if self.model is None:
            self._refine(ledger.best, shares, training, ledger)
        return ledger.best, _selection(ledger, ledger.best, training)

    def _counts(self, n_weights: int) -> tuple[int, int]:
        """How many are tried of an integration method, and how many of all once more at most."""
        if self.model is not None:
            return n_weights, 0
        # The cautious have a linear and two kernel regressions; others all widths, and a forest and an average besides.
        return (3, 1) if self.cautious else ((1 + len(WIDTHS)) * n_weights + 2, len(WIDTHS) * n_weights)

    def _try_models(
        self,
        integrator: BaseIntegrator,
        shares: Mapping[PartyName, Share],
        training: TrainingRows,
        weights: Sequence[float],
        ledger: _Ledger,
    ) -> None:
        rows = training.mapped(integrator, shares)
        tried: list[Choice] = []
        for model, weight in self._models(mean_anchor(integrator, shares), weights, tried):
            if not ledger.begin(f"{name_of(integrator)}, {model.name}"):
                ledger.skip(
                    Candidate(
                        integrator=name_of(integrator),
                        model=model.name,
                        anchor_weight=weight,
                        failure="not tried, for the budget was spent",
                    )
                )
                continue
            tried.append(self._try(integrator, model, weight, rows, training))
            ledger.add(tried[-1])
        average = self._average(tried, training)
        if average is not None:
            ledger.add(average)
            # It stands for its parts, of which one may have a smaller loss by chance alone.
            tried = [average, *(each for each in tried if not is_ridge(each.estimator))]
        for each in tried:
            ledger.offer(each)

    def _average(self, tried: Sequence[Choice], training: TrainingRows) -> Choice | None:
        """Of the ridge regressions, where the parties' own rows judge."""
        if self.model is not None or self.cautious:
            return None
        ridges = [each for each in tried if is_ridge(each.estimator)]
        return averaged(ridges, training, training.counts(self.class_weight))

    def _refine(self, best: Choice, shares: Mapping[PartyName, Share], training: TrainingRows, ledger: _Ledger) -> None:
        """The best kernel ridge regressions once more on more landmarks, which would be too slow for all.

        What they give is taken unless it is clearly worse: the more landmarks, the nearer they are to ones without such
        a restriction.
        """
        anchor = mean_anchor(best.integrator, shares)
        parts = best.averaged or (best,)
        refined: list[Choice] = []
        ledger.total = len(ledger.candidates) + len(parts)
        for part in parts:
            model = with_many_landmarks(NamedModel(name=part.candidate.model, estimator=part.estimator), anchor)
            if model is None:
                refined.append(part)
            elif ledger.begin(f"{part.candidate.integrator}, {model.name}", ahead=len(refined)):
                refined.append(self._try(part.integrator, model, part.candidate.anchor_weight, part.rows, training))
            else:
                return
        again = [each for each, part in zip(refined, parts, strict=True) if each is not part]
        if not again:
            return
        for each in again:
            ledger.add(each)
        new = again[0]
        if best.averaged:
            average = self._average(refined, training)
            if average is None:
                return
            new = average
            ledger.add(new)
        low, _ = _interval(new.losses - best.losses)
        if low <= 0:
            ledger.best = new

    def _models(
        self, anchor: FloatArray, weights: Sequence[float], tried: Sequence[Choice]
    ) -> Iterator[tuple[NamedModel, float]]:
        if self.model is not None:
            yield from ((self.model, weight) for weight in weights)
            return
        for weight in weights:
            yield from (
                (model, weight)
                for model in kernel_models(
                    anchor,
                    is_classification=self.is_classification,
                    cautious=self.cautious,
                    interpolated=self.interpolated,
                )
            )
        if self.cautious:
            return
        best = min((choice.candidate for choice in tried), key=lambda each: each.loss, default=None)
        trees = forest(is_classification=self.is_classification, n_jobs=self.n_jobs, random_state=self.random_state)
        yield trees, weights[0] if best is None else best.anchor_weight

    def _try(
        self,
        integrator: BaseIntegrator,
        model: NamedModel,
        anchor_weight: float,
        rows: FloatArray,
        training: TrainingRows,
    ) -> Choice:
        started = time.monotonic()
        weights = training.weights(anchor_weight, self.class_weight)
        counts = training.counts(self.class_weight)
        fitted, left_out = fit_left_out(
            model.estimator, rows, training.target, weights, groups=training.groups, judges=counts
        )
        if left_out is None:
            raise AgreementError(
                f"{model.name} gives no probabilities, or there are too few rows to leave some out; choose another "
                "model."
            )
        losses = judged_losses(getattr(fitted, "classes_", None), left_out, training, counts)
        candidate = Candidate(
            integrator=name_of(integrator),
            model=model.name,
            anchor_weight=anchor_weight,
            alpha=getattr(fitted, "alpha_", None),
            loss=float(losses.mean()),
            standard_error=float(losses.std() / np.sqrt(len(losses))),
            seconds=time.monotonic() - started,
        )
        return Choice(
            candidate=candidate,
            integrator=integrator,
            estimator=fitted,
            rows=rows,
            weights=weights,
            left_out=left_out,
            losses=losses,
        )


def _interval(differences: FloatArray) -> tuple[float, float]:
    """95 % interval of the mean."""
    half = _Z * float(differences.std()) / np.sqrt(len(differences))
    return float(differences.mean()) - half, float(differences.mean()) + half


def _selection(ledger: _Ledger, best: Choice, training: TrainingRows) -> Selection:
    """All candidates, each with an interval of its difference from the chosen one."""
    parts: dict[int, float] = {}
    if best.averaged:
        parts = {
            id(part.candidate): weight for part, weight in zip(best.averaged, best.estimator.weights_, strict=True)
        }
    candidates = []
    for candidate, losses in zip(ledger.candidates, ledger.losses, strict=True):
        if losses is None:
            candidates.append(candidate)
            continue
        low, high = _interval(losses - best.losses)
        candidates.append(candidate.compared(low, high, candidate is best.candidate, parts.get(id(candidate), 0.0)))
    is_classification = hasattr(best.estimator, "classes_")
    return Selection(
        candidates=tuple(candidates),
        metric="log loss" if is_classification else "squared error",
        judged_on=training.judged_on,
        n_judges=int(np.sum(training.judges > 0)),
    )


_TAU = 0.1
"""Chosen on draws of flchain, gbsg2, whas500, breast cancer, digits and diabetes."""
_LEAST = 0.02
"""Part of the average below which a candidate is left out of it, so that models stay small."""


def averaged(choices: Sequence[Choice], training: TrainingRows, counts: FloatArray) -> Choice | None:
    """The average of candidates, all of one integration method; None where there is one alone, or one is all of it."""
    if not choices:
        return None
    weights = tempered_weights([each.losses for each in choices], squared=not hasattr(choices[0].estimator, "classes_"))
    parts = tuple(each for each, weight in zip(choices, weights, strict=True) if weight > 0)
    if len(parts) < 2:
        return None
    weights = weights[weights > 0]
    fitted = [each.estimator for each in parts]
    if hasattr(fitted[0], "classes_"):
        average = AveragedClassifier.of(fitted, weights)
        classes = average.classes_
        said = [probabilities_of(each.left_out, each.estimator.classes_, classes) for each in parts]
    else:
        average, classes = AveragedRegressor.of(fitted, weights), None
        said = [each.left_out for each in parts]
    left_out = np.tensordot(weights, np.stack(said), axes=1)
    losses = judged_losses(classes, left_out, training, counts)
    refined = any(each.candidate.model.endswith(MORE_LANDMARKS) for each in parts)
    candidate = Candidate(
        integrator=parts[0].candidate.integrator,
        model=f"average of {len(parts)}" + (MORE_LANDMARKS if refined else ""),
        anchor_weight=float(weights @ [each.candidate.anchor_weight for each in parts]),
        loss=float(losses.mean()),
        standard_error=float(losses.std() / np.sqrt(len(losses))),
    )
    return Choice(
        candidate=candidate,
        integrator=parts[0].integrator,
        estimator=average,
        rows=parts[0].rows,
        weights=np.average([each.weights for each in parts], axis=0, weights=weights),
        left_out=left_out,
        losses=losses,
        averaged=parts,
    )


def tempered_weights(losses: Sequence[FloatArray], *, squared: bool) -> FloatArray:
    """Weights of candidates by their losses on the same rows, those of next to none set to 0."""
    totals = np.array([each.sum() for each in losses])
    if squared:
        variance = totals.min() / len(losses[0])
        totals = totals / (2 * variance) if variance > 0 else np.where(totals > 0, np.inf, 0.0)
    weights = np.exp(-_TAU * (totals - totals.min()))
    weights /= weights.sum()
    weights[weights < _LEAST] = 0.0
    return np.asarray(weights / weights.sum())


_FLOOR = 1e-6
"""Smallest probability of a class in the log loss, for classes that the training lacks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """A candidate, fitted."""

    candidate: Candidate
    integrator: BaseIntegrator
    estimator: Any
    rows: FloatArray
    weights: FloatArray
    left_out: FloatArray
    losses: FloatArray
    averaged: tuple[Choice, ...] = ()


def trained_again(choice: Choice, training: TrainingRows, there: FloatArray) -> Any | None:
    """A model with the same settings, those chosen on rows left out among them, trained on some of the rows."""
    if choice.averaged:
        weights = choice.estimator.weights_
        again = [
            (trained_again(part, training, there), weight)
            for part, weight in zip(choice.averaged, weights, strict=True)
        ]
        pairs = [(estimator, weight) for estimator, weight in again if estimator is not None]
        average = AveragedClassifier if hasattr(choice.estimator, "classes_") else AveragedRegressor
        return average.of(*zip(*pairs, strict=True)) if pairs else None
    weights = choice.weights * there
    if not weights.any():
        return None
    copy = clone(choice.estimator)
    if hasattr(choice.estimator, "alpha_") and "alphas" in copy.get_params():
        copy.set_params(alphas=(choice.estimator.alpha_,))
    if not hasattr(copy, "fit_left_out"):
        return fit_weighted(copy, choice.rows, training.target, weights)
    judges = training.judges * (weights > 0)
    if not judges.any():
        judges = (weights > 0).astype(np.float64)
    return fit_left_out(copy, choice.rows, training.target, weights, groups=training.groups, judges=judges)[0]


def judged_losses(
    classes: NDArray[Any] | None, left_out: FloatArray, training: TrainingRows, counts: FloatArray
) -> FloatArray:
    """Log loss or squared error of each row that judges, as much as it counts, shape (n_judges,)."""
    judged = training.judges > 0
    losses = _losses(classes, left_out[judged], training.target[judged])
    return np.asarray(losses * counts[judged] / counts[judged].mean())


def _losses(classes: NDArray[Any] | None, left_out: FloatArray, target: NDArray[Any]) -> FloatArray:
    if classes is None:
        return np.asarray((left_out - target) ** 2)
    known = np.isin(target, classes)
    losses = np.full(len(target), -np.log(_FLOOR))
    codes = np.searchsorted(classes, target[known])
    losses[known] = np.minimum(log_loss_of(left_out[known], codes), -np.log(_FLOOR))
    return losses
