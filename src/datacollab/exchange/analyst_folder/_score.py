"""Judge a collaboration by rows that were left out: of classes, numbers and times to events."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..._validation import FloatArray
from ...errors import NumericalError
from ...linalg import ranking_figures
from ...model import fit_weighted
from ...share import Share
from ...survival import concordance_index
from ..project import Task

if TYPE_CHECKING:
    from ...analyst import Collaboration

__all__ = ["Score", "rows_together", "score_of", "survival_score"]


def rows_together(shares: Sequence[Share]) -> NDArray[np.intp]:
    """Return a number for each row; equal rows of a party, as means of groups are, have the same."""
    numbers: list[NDArray[np.intp]] = []
    start = 0
    for share in shares:
        equal = np.unique(share.representation, axis=0, return_inverse=True)[1].ravel()
        numbers.append(start + equal)
        start += len(equal)
    return np.concatenate(numbers)


FIND = 0.8
"""The share of the second of two classes that the threshold is to find."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """How good the model is on rows left out of its training, with a 95 % interval over the folds or rows.

    Attributes
    ----------
    name : str
        "accuracy", "root mean squared error", or "concordance" of times to an event.
    value, low, high : float
    baseline : float
        Of always answering with the most frequent class, the mean, or the same risk.
    n_folds : int or None
        None where every row was left out by itself, and the interval is over rows.
    ranking : mapping of str to object or None
        Of two classes, what the probabilities of the second say of the rows left out: "positive", its name, and what
        `linalg.ranking_figures` gives.  None for more classes, for numbers, and for a model without probabilities.
    never_called : tuple of str or int
        Classes that rows left out are of and that none of them was taken for.
    """

    name: str
    value: float
    low: float
    high: float
    baseline: float
    n_folds: int | None
    ranking: Mapping[str, Any] | None = None
    never_called: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        # JSON has lists only.
        object.__setattr__(self, "never_called", tuple(self.never_called))

    def sentence(self) -> str:
        """Return the score in words."""
        how = "each by itself" if self.n_folds is None else f"{self.n_folds} folds"
        return (
            f"{self.name.capitalize()} of the model on rows left out: {self.value:.3f} ({self.low:.3f} to "
            f"{self.high:.3f}, {how}); always the same answer has {self.baseline:.3f}."
        )


def score_of(collaboration: Collaboration, shares: Sequence[Share], task: Task, n_folds: int) -> Score | None:
    """Score the model by its predictions for rows left out, or else by cross-validation."""
    known = [(share.target, collaboration.left_out_.get(share.party)) for share in shares]
    pairs = [(target, left_out) for target, left_out in known if left_out is not None]
    if pairs:
        target, left_out = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        if task.kind == "classification":
            return _score_of_classes(target, left_out, collaboration.estimator_.classes_, task)
        return _score_of_numbers(target, left_out)
    rows = np.vstack([collaboration.representations_[share.party] for share in shares])
    target = np.concatenate([share.target for share in shares])
    return _cross_validated(collaboration.estimator_, rows, target, rows_together(shares), task, n_folds)


def _score_of_classes(target: NDArray[Any], probabilities: FloatArray, classes: NDArray[Any], task: Task) -> Score:
    predicted = classes[np.argmax(probabilities, axis=1)]
    right = predicted == target
    interval = stats.binomtest(int(right.sum()), len(right)).proportion_ci(0.95, method="wilson")
    return Score(
        name="accuracy",
        value=float(right.mean()),
        low=float(interval.low),
        high=float(interval.high),
        baseline=float(np.unique(target, return_counts=True)[1].max() / len(target)),
        n_folds=None,
        ranking=_ranking(task, target, _of_second(task, classes, probabilities)),
        never_called=_never_called(task, target, predicted),
    )


def _score_of_numbers(target: NDArray[Any], left_out: FloatArray) -> Score:
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


def _cross_validated(
    estimator: Any, rows: FloatArray, target: NDArray[Any], groups: NDArray[np.intp], task: Task, n_folds: int
) -> Score | None:
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_validate

    is_classification = task.kind == "classification"
    if is_classification:
        n_folds = min(n_folds, *(len(np.unique(groups[target == each])) for each in np.unique(target)))
    n_folds = min(n_folds, len(np.unique(groups)))
    if n_folds < 2:
        return None
    folds = (StratifiedGroupKFold if is_classification else GroupKFold)(n_folds, shuffle=True, random_state=0)
    scoring = "accuracy" if is_classification else "neg_root_mean_squared_error"
    dummy = DummyClassifier() if is_classification else DummyRegressor()
    options = {"groups": groups, "cv": folds, "scoring": scoring, "return_estimator": True, "return_indices": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop early; the score shows whether it matters
        trained = cross_validate(clone(estimator), rows, target, **options)
        baseline = abs(cross_validate(dummy, rows, target, **options)["test_score"])
    left_out = list(zip(trained["estimator"], trained["indices"]["test"], strict=True))
    return _over_folds(
        "accuracy" if is_classification else "root mean squared error",
        abs(trained["test_score"]),
        baseline=float(baseline.mean()),
        most=1.0 if is_classification else np.inf,
        ranking=_ranking_by_folds(task, rows, target, left_out),
        never_called=_never_called(task, target, np.concatenate([model.predict(rows[out]) for model, out in left_out])),
    )


def _ranking_by_folds(
    task: Task, rows: FloatArray, target: NDArray[Any], left_out: Sequence[tuple[Any, NDArray[np.intp]]]
) -> dict[str, Any] | None:
    if not all(hasattr(model, "predict_proba") for model, _ in left_out):
        return None
    found = [_of_second(task, model.classes_, model.predict_proba(rows[out])) for model, out in left_out]
    return _ranking(task, np.concatenate([target[out] for _, out in left_out]), np.concatenate(found))


def _ranking(task: Task, target: NDArray[Any], probabilities: FloatArray) -> dict[str, Any] | None:
    if len(task.classes) != 2:
        return None
    positive = task.classes[1]
    return {"positive": positive, **ranking_figures(np.asarray(target == positive), probabilities, FIND)}


def _of_second(task: Task, classes: NDArray[Any], probabilities: FloatArray) -> FloatArray:
    """Probabilities of the second of two classes; zeros where the model does not know it."""
    if len(task.classes) != 2 or task.classes[1] not in classes:
        return np.zeros(len(probabilities))
    return np.asarray(probabilities[:, int(np.argmax(classes == task.classes[1]))])


def _never_called(task: Task, target: NDArray[Any], predicted: NDArray[Any]) -> tuple[str | int, ...]:
    there, called = set(target.tolist()), set(predicted.tolist())
    return tuple(name for name in task.classes if name in there - called)


def survival_score(collaboration: Collaboration, shares: Sequence[Share], n_folds: int) -> Score | None:
    """Cross-validate the concordance of the log risk on the collaboration representations, equal rows together."""
    from sklearn.base import clone
    from sklearn.model_selection import GroupKFold

    rows = np.vstack([collaboration.representations_[share.party] for share in shares])
    target = np.concatenate([share.target for share in shares])
    strata = np.repeat(np.arange(len(shares)), [len(share.target) for share in shares])
    groups = rows_together(shares)
    n_folds = min(n_folds, len(np.unique(groups)))
    if n_folds < 2:
        return None
    found: list[float] = []
    for kept, out in GroupKFold(n_folds, shuffle=True, random_state=0).split(rows, groups=groups):
        fitted = fit_weighted(
            clone(collaboration.estimator_), rows[kept], target[kept], np.ones(len(kept)), strata=strata[kept]
        )
        try:
            found.append(concordance_index(target[out], fitted.predict(rows[out])))
        except NumericalError:
            return None
    return _over_folds("concordance", np.array(found), baseline=0.5, most=1.0)


def _over_folds(name: str, scores: FloatArray, *, most: float, **facts: Any) -> Score:
    """Return the mean over folds, with Student's interval."""
    n_folds, value = len(scores), float(scores.mean())
    half = float(stats.t.ppf(0.975, n_folds - 1) * scores.std(ddof=1) / np.sqrt(n_folds))
    low, high = max(value - half, 0.0), min(value + half, most)
    return Score(name=name, value=value, low=low, high=high, n_folds=n_folds, **facts)
