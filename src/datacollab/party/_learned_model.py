"""A party's own model of the anchor's answers: from raw rows to targets, without any f_k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from .._validation import FloatArray, PartyName

__all__ = ["LearnedModel", "as_probabilities"]

_ONE = 1e-9
"""How far rows may be from adding up to one and still be left as they are."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LearnedModel:
    """What `Party.learn` gives: an estimator that was fitted on the anchor's raw columns and its answers.

    Attributes
    ----------
    party : str or int
    estimator : estimator
        Fitted.  A regressor of answers, several at once where these are probabilities; or a classifier.
    classes_ : ndarray of shape (n_classes,) or None
        None where targets are numbers.
    r2 : float
        Part of the answers' variance over the anchor that the estimator meets on rows left out.
    agreement : float or None
        Share of anchor rows left out that get the class that their answer names; None for numbers.
    remoteness : float or None
        How much farther the nearest anchor row is from an own row than the nearest own one; 1 is as it should be.
        None where no own rows were given.

    Notes
    -----
    It says nothing of how right the answers are, only how well they were learned.
    """

    party: PartyName
    estimator: Any
    classes_: NDArray[Any] | None
    r2: float
    agreement: float | None
    remoteness: float | None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict raw rows, of the anchor's columns: classes or numbers, of shape (n_rows,)."""
        if self.classes_ is None or is_classifier(self.estimator):
            return np.asarray(self.estimator.predict(X)).reshape(-1)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities of raw rows, of shape (n_rows, n_classes), in the order of `classes_`.

        A regressor's numbers are cut off at 0 and 1, and made to add up to one.

        Raises
        ------
        AttributeError
            When targets are numbers, or the estimator is a classifier that gives none.
        """
        if self.classes_ is None:
            raise AttributeError(f"Party {self.party!r} has learned numbers, of which there are no probabilities.")
        return as_probabilities(self.estimator, self.classes_, X)

    def __repr__(self) -> str:
        name = getattr(self.estimator, "steps", [("", self.estimator)])[-1][1]
        return f"LearnedModel(party={self.party!r}, {type(name).__name__}, r2={self.r2:.3f})"


def as_probabilities(estimator: Any, classes: NDArray[Any], X: ArrayLike) -> FloatArray:
    """Probabilities of all classes by a fitted classifier, which may not know all, or a regressor of them."""
    if is_classifier(estimator):
        known = np.asarray(estimator.predict_proba(X))
        values = np.zeros((len(known), len(classes)))
        values[:, np.searchsorted(classes, estimator.classes_)] = known
        return values
    values = np.clip(np.asarray(estimator.predict(X), dtype=np.float64).reshape(-1, len(classes)), 0.0, 1.0)
    totals = values.sum(axis=1, keepdims=True)
    # Of a row without any, all classes are alike.
    values = np.where(totals > 0, values, 1.0 / len(classes))
    totals = np.where(totals > 0, totals, 1.0)
    return np.asarray(np.where(np.abs(totals - 1.0) <= _ONE, values, values / totals))
