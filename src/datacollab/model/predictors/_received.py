"""Classifiers and regressors that came as arrays: they predict, and cannot be trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ..._typing import FloatArray
from .._batches import row_batches
from .._from_elsewhere import FromElsewhere, check_classes, class_names
from ._chain import Chain, read_chain
from ._step import bad_predictor

__all__ = ["Received", "ReceivedClassifier", "ReceivedRegressor", "checked_name", "read_predictor", "write_predictor"]

_MOST_NUMBERS = 2**18
"""Of the widest table while a batch of rows is on its way: such a table stays in a processor's cache."""
_LEAST_BATCH = 64
_MOST_NAME = 200


class Received(FromElsewhere):
    """What all models made of steps have in common."""

    chain: Chain

    @property
    def n_features_in_(self) -> int:
        """Columns that it takes."""
        return self.chain.n_in

    def _batches(self, X: ArrayLike) -> Iterator[FloatArray]:
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return row_batches(rows, self.chain.width, most_numbers=_MOST_NUMBERS, least_rows=_LEAST_BATCH)


class ReceivedClassifier(ClassifierMixin, Received):
    """A classifier made of steps.

    Parameters
    ----------
    chain : Chain
        The last of its tables has a probability, or a score, for each class.
    classes : ndarray of shape (n_classes,)
        In ascending order.
    name : str
        Of the class that was trained.
    decides : int, optional
        After how many steps the class is decided: the one with the largest score, or of two classes with one score the
        second where that is above 0.  After all by default.
    zero_is_second : bool, default=False
        Whether a single score of 0 means the second class.
    probabilities : bool, default=True
        Whether what comes last are probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    def __init__(
        self,
        chain: Chain,
        classes: NDArray[Any],
        *,
        name: str,
        decides: int | None = None,
        zero_is_second: bool = False,
        probabilities: bool = True,
    ) -> None:
        self.chain = chain
        self.classes = classes
        self.name = name
        self.decides = decides
        self.zero_is_second = zero_is_second
        self.probabilities = probabilities

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return self.classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, shape (n_rows,)."""
        decides = len(self.chain.steps) if self.decides is None else self.decides
        scores_of = Chain(self.chain.steps[:decides])
        codes = [self._decided(scores_of(rows)) for rows in self._batches(X)]
        return np.asarray(self.classes[np.concatenate(codes)])

    @available_if(lambda self: self.probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes)."""
        return np.concatenate([self.chain(rows) for rows in self._batches(X)])

    def _decided(self, scores: FloatArray) -> NDArray[np.intp]:
        if scores.shape[1] == len(self.classes):
            return np.asarray(np.argmax(scores, axis=1))
        second = scores[:, 0] >= 0 if self.zero_is_second else scores[:, 0] > 0
        return second.astype(np.intp)


class ReceivedRegressor(RegressorMixin, Received):
    """A regressor made of steps.

    Parameters
    ----------
    chain : Chain
        Its last table has one column.
    name : str
        Of the class that was trained.

    Attributes
    ----------
    n_features_in_ : int
    """

    def __init__(self, chain: Chain, *, name: str) -> None:
        self.chain = chain
        self.name = name

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted numbers, shape (n_rows,)."""
        return np.concatenate([self.chain(rows)[:, 0] for rows in self._batches(X)])


def write_predictor(
    estimator: ReceivedClassifier | ReceivedRegressor,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a predictor.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, for classes that are neither texts nor numbers.
    """
    steps, arrays = estimator.chain.written()
    facts: dict[str, Any] = {"name": estimator.name, "steps": steps}
    if isinstance(estimator, ReceivedClassifier):
        facts["classes"], facts["classes_dtype"] = class_names(estimator.classes)
        facts["decides"] = len(steps) if estimator.decides is None else estimator.decides
        facts["zero_is_second"] = estimator.zero_is_second
        facts["probabilities"] = estimator.probabilities
    else:
        facts["classes"] = facts["classes_dtype"] = None
    return facts, arrays


def read_predictor(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_columns: int
) -> ReceivedClassifier | ReceivedRegressor:
    """The predictor that facts and arrays describe, after checks of every part.

    Parameters
    ----------
    facts : mapping
    arrays : mapping of str to ndarray
    n_columns : int
        That it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    wanted = {"form", "name", "steps", "classes", "classes_dtype"}
    wanted |= set() if facts.get("classes") is None else {"decides", "zero_is_second", "probabilities"}
    if not facts.keys() <= wanted:
        raise bad_predictor("says more than an estimator of steps has to say")
    name = checked_name(facts)
    classes = check_classes(facts.get("classes"), facts.get("classes_dtype"))
    left = dict(arrays)
    chain = read_chain(facts.get("steps"), left, n_columns)
    if left:
        raise bad_predictor("has arrays of none of its steps")
    if classes is None:
        if facts.get("classes_dtype") is not None:
            raise bad_predictor("has a type of classes, and none")
        if chain.n_out != 1:
            raise bad_predictor(f"predicts {chain.n_out} numbers for a row; one is wanted")
        return ReceivedRegressor(chain, name=name)
    decides, zero_is_second, probabilities = (facts.get(key) for key in ("decides", "zero_is_second", "probabilities"))
    if type(decides) is not int or not 0 < decides <= len(chain.steps):
        raise bad_predictor("does not say after which of its steps the class is decided")
    if type(zero_is_second) is not bool or type(probabilities) is not bool:
        raise bad_predictor("does not say what its scores mean")
    n_scores = Chain(chain.steps[:decides]).n_out
    if n_scores != len(classes) and not (n_scores == 1 and len(classes) == 2):
        raise bad_predictor(f"has {n_scores} scores for {len(classes)} classes")
    if probabilities and chain.n_out != len(classes):
        raise bad_predictor(f"has {chain.n_out} probabilities for {len(classes)} classes")
    return ReceivedClassifier(
        chain,
        classes,
        name=name,
        decides=decides,
        zero_is_second=zero_is_second,
        probabilities=probabilities,
    )


def checked_name(facts: Mapping[str, Any]) -> str:
    """Class of the estimator that was trained."""
    name = facts.get("name")
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > _MOST_NAME:
        raise bad_predictor("does not have a name that is one")
    return name
