"""A model of the anchor's answers on its raw columns, or a refusal where it would not hold for a party's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from .._validation import FloatArray, PartyName
from ..errors import AgreementError, AnchorError
from ..model import AnchorAnswers
from ._anchor_support import remoteness
from ._answer_ridge import AnswerRidge
from ._learned_model import LearnedModel, as_probabilities

__all__ = ["MOST_REMOTE", "SMALLEST_R2", "fit_to_answers", "learn_answers"]

SMALLEST_R2 = 0.6
"""Of digits, real anchors have .84 to .94 by leave-one-out, interpolated ones .99, uniform ones .29 to .48."""
MOST_REMOTE = 1.5
"""Of eight tables, real anchors have .9 to 1.15, interpolated ones to 1.2, normal ones to 1.45, uniform ones 1.6 and
more; parties with rows of two classes of ten have 1.3."""
_FEWEST_ANCHORS = 20
_FEWEST_ROWS = 10
_FOLDS = 5


def learn_answers(
    party: PartyName,
    anchor: ArrayLike,
    answers: AnchorAnswers,
    estimator: Any = None,
    *,
    rows: ArrayLike | None = None,
) -> LearnedModel:
    """Fit an estimator to answers on an anchor; see `Party.learn`, where parameters and errors are described."""
    columns = _checked(party, anchor, answers)
    far = None if rows is None else _checked_remoteness(party, rows, columns)
    _check_estimator(party, estimator, answers)
    ridge = AnswerRidge().fit(columns, answers.values)
    if estimator is None:
        estimator = AnswerRidge(gamma=ridge.gamma_, alpha=ridge.alpha_, standardize=ridge.standardize_)
    left_out = _left_out(estimator, anchor, answers)
    r2 = _r2(answers.values, left_out)
    # An estimator that suits the answers less than a smooth function does says nothing against the anchor.
    if (reached := max(r2, ridge.r2_)) < SMALLEST_R2:
        raise _unfit(
            party,
            f"of what the answers vary by, {max(reached, 0.0):.0%} can be said of anchor rows left out, and "
            f"{SMALLEST_R2:.0%} are wanted. The anchor's rows lie too far from one another, or in another order than "
            "when they were shared",
        )
    return LearnedModel(
        party=party,
        estimator=fit_to_answers(estimator, anchor, answers.values, answers.classes),
        classes_=answers.classes,
        r2=r2,
        agreement=None
        if answers.classes is None
        else float(np.mean(left_out.argmax(axis=1) == answers.values.argmax(axis=1))),
        remoteness=far,
    )


def _checked(party: PartyName, anchor: ArrayLike, answers: AnchorAnswers) -> FloatArray:
    """The anchor as numbers, which the answers have to belong to."""
    if not isinstance(answers, AnchorAnswers):
        raise TypeError(
            f"AnchorAnswers are wanted, as Collaboration.anchor_answers gives; got {type(answers).__name__}."
        )
    if answers.party != party:
        raise AgreementError(
            f"Party {party!r} was given the answers made for {answers.party!r}; ask the analyst for its own."
        )
    columns = _numbers(anchor, f"Party {party!r}: the anchor")
    if len(columns) != answers.n_anchors:
        raise AgreementError(
            f"Party {party!r}: there are answers on {answers.n_anchors} anchor rows, and the anchor has "
            f"{len(columns)}. Give the anchor that was shared, in its order."
        )
    if len(columns) < _FEWEST_ANCHORS:
        raise _unfit(party, f"the anchor has {len(columns)} rows, and at least {_FEWEST_ANCHORS} are wanted")
    if not np.ptp(answers.values, axis=0).any():
        raise _unfit(party, "the answers on all rows are the same, so there is nothing to learn")
    return columns


def _checked_remoteness(party: PartyName, rows: ArrayLike, anchor: FloatArray) -> float:
    own = _numbers(rows, f"Party {party!r}: the own rows")
    if own.shape[1] != anchor.shape[1] or len(own) < _FEWEST_ROWS:
        raise ValueError(
            f"Party {party!r}: rows must be at least {_FEWEST_ROWS} of its own, with the anchor's {anchor.shape[1]} "
            f"columns; got shape {own.shape}."
        )
    far = remoteness(own, anchor)
    if far > MOST_REMOTE:
        raise _unfit(
            party,
            f"the nearest anchor row is {far:.1f} times as far from an own row as the nearest own one, and "
            f"{MOST_REMOTE} times are allowed. Answers were asked where the party has no rows",
        )
    return far


def _numbers(table: ArrayLike, what: str) -> FloatArray:
    try:
        columns = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        columns = np.empty(0)
    if columns.ndim != 2 or not columns.size or not np.isfinite(columns).all():
        raise AnchorError(f"{what} must be a table of finite numbers. Encode texts, and fill in what is missing.")
    return columns


def _check_estimator(party: PartyName, estimator: Any, answers: AnchorAnswers) -> None:
    if estimator is None or is_regressor(estimator):
        return
    if not is_classifier(estimator):
        raise TypeError(
            f"Party {party!r}: a classifier or regressor of scikit-learn is wanted; got {type(estimator).__name__}."
        )
    if answers.classes is None:
        raise TypeError(
            f"Party {party!r}: the answers are numbers, which {type(estimator).__name__}, a classifier, cannot learn."
        )


def _left_out(estimator: Any, anchor: ArrayLike, answers: AnchorAnswers) -> FloatArray:
    """What the estimator says of anchor rows that it was not fitted on, by five folds, as the answers are laid out."""
    left_out = np.empty(answers.values.shape)
    for learned, rest in KFold(_FOLDS, shuffle=True, random_state=0).split(answers.values):
        fitted = fit_to_answers(estimator, _safe_indexing(anchor, learned), answers.values[learned], answers.classes)
        left_out[rest] = _said(fitted, _safe_indexing(anchor, rest), answers.classes)
    return left_out


def _said(fitted: Any, rows: ArrayLike, classes: NDArray[Any] | None) -> FloatArray:
    if classes is None:
        return np.asarray(fitted.predict(rows), dtype=np.float64).reshape(-1)
    if is_classifier(fitted) and not hasattr(fitted, "predict_proba"):
        return np.asarray(np.asarray(fitted.predict(rows))[:, None] == classes, dtype=np.float64)
    return as_probabilities(fitted, classes, rows)


def fit_to_answers(estimator: Any, anchor: ArrayLike, values: FloatArray, classes: NDArray[Any] | None) -> Any:
    """A fitted clone: a regressor of the answers, or a classifier of each row with every class by its probability.

    Parameters
    ----------
    estimator : estimator
    anchor : array-like or dataframe of shape (n_anchors, n_features)
    values : ndarray of shape (n_anchors,) or (n_anchors, n_classes)
    classes : ndarray of shape (n_classes,) or None
    """
    copy = clone(estimator)
    if classes is None or is_regressor(copy):
        return copy.fit(anchor, values)
    last, name = copy, "sample_weight"
    if isinstance(copy, Pipeline):
        step, last = copy.steps[-1]
        name = f"{step}__sample_weight"
    if not has_fit_parameter(last, "sample_weight"):
        return copy.fit(anchor, classes[values.argmax(axis=1)])
    rows, codes = np.nonzero(values > 0)
    return copy.fit(_safe_indexing(anchor, rows), classes[codes], **{name: values[rows, codes]})


def _r2(values: FloatArray, left_out: FloatArray) -> float:
    """Part of the variance of all answers together that is met."""
    return 1.0 - float(((values - left_out) ** 2).sum()) / float(((values - values.mean(axis=0)) ** 2).sum())


def _unfit(party: PartyName, reason: str) -> AnchorError:
    return AnchorError(
        f"Party {party!r}: nothing can be learned from these answers that would hold for its rows, for {reason}. Ask "
        "the analyst for a model instead, or agree on an anchor of rows like the parties'."
    )
