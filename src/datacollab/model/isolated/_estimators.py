"""Classifiers and regressors whose predictions come from a confined process."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ..._typing import FloatArray
from ...bundle import arrays_to_bytes, bytes_to_arrays
from ...errors import ExchangeError
from .._class_names import check_classes, class_names
from .._from_elsewhere import FromElsewhere
from .._refusal import malformed
from ._process import Worker

__all__ = ["IsolatedClassifier", "IsolatedRegressor", "open_isolated"]

_BATCH_BYTES = 2**26
_OVERHEAD = 2**12
"""Bytes of an answer beyond its numbers."""
_MOST_NAME = 200
_TOLERANCE = 1e-3
"""Of probabilities and their sums: graphs compute in single precision."""
_MAKING_LOCKS = threading.Lock()


class _Isolated(FromElsewhere):
    """A model's bytes, and the process that has read them; it is started when it is first asked, and after a copy."""

    def __init__(self, form: str, data: bytes, n_features: int, name: str) -> None:
        self.form = form
        self.data = data
        self.n_features = n_features
        self.name = name

    @property
    def n_features_in_(self) -> int:
        """Columns that it takes."""
        return self.n_features

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_worker", "_lock")}

    def _answers(self, ask: str, X: ArrayLike, n_columns: int) -> NDArray[Any]:
        """What the process answers for rows, of shape (n_rows,) or (n_rows, n_columns) of any type that JSON names."""
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        size = max(1, _BATCH_BYTES // (8 * max(n_columns, self.n_features)))
        with self._one_at_a_time():
            worker = self._running()
            return np.concatenate(
                [self._batch(worker, ask, rows[start : start + size], n_columns) for start in range(0, len(rows), size)]
            )

    def _one_at_a_time(self) -> threading.Lock:
        """A process answers one question after the other."""
        with _MAKING_LOCKS:
            lock: threading.Lock = self.__dict__.setdefault("_lock", threading.Lock())
        return lock

    def _batch(self, worker: Worker, ask: str, rows: FloatArray, n_columns: int) -> NDArray[Any]:
        body = arrays_to_bytes({"rows": np.ascontiguousarray(rows)})
        _, answer = worker.ask({"ask": ask}, body, most_answer=8 * len(rows) * n_columns + _OVERHEAD)
        wanted = (len(rows), n_columns) if ask == "predict_proba" else (len(rows),)
        try:
            arrays = bytes_to_arrays(answer, what="An answer")
        except ExchangeError:
            raise malformed("what its process answered is no answer") from None
        if arrays.keys() != {"answer"} or arrays["answer"].shape != wanted:
            raise malformed("it does not answer for each of its rows")
        return arrays["answer"]

    def _running(self) -> Worker:
        worker: Worker | None = vars(self).get("_worker")
        if worker is None or not worker.is_running:
            worker, _ = _started(self.form, self.data, self._about())
            self._worker = worker
        return worker

    def _about(self) -> dict[str, Any]:
        return {"name": self.name, "classes": None, "classes_dtype": None, "probabilities": False}


class IsolatedClassifier(ClassifierMixin, _Isolated):
    """A classifier in a process of its own.

    Parameters
    ----------
    form : {"skops", "onnx"}
    data : bytes
        Of the model.
    n_features : int
        Columns that it takes.
    name : str
        Of the class that was trained.
    classes : ndarray of shape (n_classes,)
        In ascending order.
    probabilities : bool
        Whether it gives any.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    def __init__(
        self, form: str, data: bytes, n_features: int, name: str, classes: NDArray[Any], probabilities: bool
    ) -> None:
        super().__init__(form, data, n_features, name)
        self.classes = classes
        self.probabilities = probabilities

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes in the order of the probabilities."""
        return self.classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, shape (n_rows,).

        Raises
        ------
        ExchangeError
            MODEL_MALFORMED or TOO_LARGE.
        """
        positions = self._answers("predict", X, 1)
        if positions.dtype != np.int64 or positions.min() < 0 or positions.max() >= len(self.classes):
            raise malformed("it predicts classes that are none of its own")
        return np.asarray(self.classes[positions])

    @available_if(lambda self: self.probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, shape (n_rows, n_classes).

        Raises
        ------
        ExchangeError
            MODEL_MALFORMED or TOO_LARGE.
        """
        found = _numbers(self._answers("predict_proba", X, len(self.classes)))
        if found.min() < -_TOLERANCE or np.abs(found.sum(axis=1) - 1).max() > _TOLERANCE:
            raise malformed("it gives probabilities that are none")
        return found

    def _about(self) -> dict[str, Any]:
        names, dtype = class_names(self.classes)
        return {"name": self.name, "classes": names, "classes_dtype": dtype, "probabilities": self.probabilities}


class IsolatedRegressor(RegressorMixin, _Isolated):
    """A regressor in a process of its own.

    Parameters
    ----------
    form : {"skops", "onnx"}
    data : bytes
        Of the model.
    n_features : int
        Columns that it takes.
    name : str
        Of the class that was trained.

    Attributes
    ----------
    n_features_in_ : int
    """

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predicted numbers, shape (n_rows,).

        Raises
        ------
        ExchangeError
            MODEL_MALFORMED or TOO_LARGE.
        """
        return _numbers(self._answers("predict", X, 1))


def open_isolated(
    form: str, data: bytes, n_features: int, about: dict[str, Any] | None = None
) -> IsolatedClassifier | IsolatedRegressor:
    """Have a confined process read a model.

    Parameters
    ----------
    form : {"skops", "onnx"}
    data : bytes
    n_features : int
        Columns that it has to take.
    about : dict, optional
        What a graph does not say of itself: name, classes, their type, and whether it gives probabilities.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, TOO_LARGE, UNTRUSTED_TYPE, OBJECTS_REFUSED or ONNX_UNSUPPORTED.
    """
    worker, facts = _started(form, data, about or {})
    name, classes = facts.get("name"), check_classes(facts.get("classes"), facts.get("classes_dtype"))
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > _MOST_NAME:
        raise malformed("its estimator does not have a name that is one")
    estimator = (
        IsolatedRegressor(form, data, n_features, name)
        if classes is None
        else IsolatedClassifier(form, data, n_features, name, classes, facts.get("probabilities") is True)
    )
    estimator._worker = worker
    return estimator


def _started(form: str, data: bytes, about: dict[str, Any]) -> tuple[Worker, dict[str, Any]]:
    worker = Worker(form)
    try:
        return worker, worker.ask(about, data, most_answer=0)[0]
    except ExchangeError:
        worker.close()
        raise


def _numbers(answer: NDArray[Any]) -> FloatArray:
    if answer.dtype != np.float64 or not np.isfinite(answer).all():
        raise malformed("it answers with something other than finite numbers")
    return np.asarray(answer)
