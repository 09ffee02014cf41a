"""What the confined process makes of a model's bytes: something that predicts, and what it says of itself."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from ..._typing import FloatArray
from ...errors import ExchangeError
from .._class_names import check_classes, class_names
from .._onnx_runtime import graph_session, run_graph
from .._refusal import malformed
from .._skops_file import estimator_from_bytes, estimator_to_bytes

__all__ = ["LOADERS", "PRELOAD", "Predictor"]

_NEVER_PREDICTS = frozenset(
    {
        *("_build_utils", "_test_common", "_testing", "callback", "conftest", "datasets", "estimator_checks"),
        *("experimental", "externals", "inspection", "tests"),
    }
)
_MOST_ROWS = 10_000
"""That are predicted at once, so that what is computed between stays small."""


class Predictor(Protocol):
    """A model that was loaded."""

    def facts(self) -> dict[str, Any]:
        """What it says of itself."""

    def predict(self, rows: FloatArray) -> NDArray[Any]:
        """Numbers, or positions in its classes."""

    def predict_proba(self, rows: FloatArray) -> FloatArray:
        """Probabilities of its classes."""


class _Objects:
    """An estimator of scikit-learn."""

    def __init__(self, data: bytes, about: Mapping[str, Any]) -> None:
        self._estimator = estimator_from_bytes(data)
        self._classes = getattr(self._estimator, "classes_", None) if is_classifier(self._estimator) else None

    def facts(self) -> dict[str, Any]:
        names, dtype = (None, None) if self._classes is None else class_names(np.asarray(self._classes))
        return {
            "name": type(self._estimator).__name__,
            "classes": names,
            "classes_dtype": dtype,
            "probabilities": hasattr(self._estimator, "predict_proba"),
        }

    def predict(self, rows: FloatArray) -> NDArray[Any]:
        return _positions(self._in_parts("predict", rows), self._classes)

    def predict_proba(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self._in_parts("predict_proba", rows), dtype=np.float64)

    def _in_parts(self, method: str, rows: FloatArray) -> NDArray[Any]:
        parts = [rows[start : start + _MOST_ROWS] for start in range(0, len(rows), _MOST_ROWS)] or [rows]
        return np.concatenate([np.asarray(getattr(self._estimator, method)(part)) for part in parts])


class _Graph:
    """An ONNX graph from representations to predictions."""

    def __init__(self, data: bytes, about: Mapping[str, Any]) -> None:
        self._classes = check_classes(about.get("classes"), about.get("classes_dtype"))
        self._session = graph_session(data)
        self._about = {name: about.get(name) for name in ("name", "classes", "classes_dtype", "probabilities")}

    def facts(self) -> dict[str, Any]:
        return self._about

    def predict(self, rows: FloatArray) -> NDArray[Any]:
        return _positions(run_graph(self._session, rows, 0, self._classes), self._classes)

    def predict_proba(self, rows: FloatArray) -> FloatArray:
        return run_graph(self._session, rows, 1).astype(np.float64)


def _positions(predicted: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    """Of each prediction in the classes; of a regressor the numbers themselves."""
    if classes is None:
        return predicted.astype(np.float64).reshape(len(predicted))
    positions = {name: position for position, name in enumerate(classes.tolist())}
    try:
        return np.array([positions[name] for name in predicted.ravel().tolist()], dtype=np.int64)
    except KeyError:
        raise malformed("it predicts classes that are none of its own") from None


def _import_scikit_learn() -> None:
    """Every module of it, and whatever reading and predicting import: once the process is confined, none can be."""
    sklearn = importlib.import_module("sklearn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(sklearn.__path__, "sklearn."):
            if not _NEVER_PREDICTS & {*module.name.split(".")}:
                importlib.import_module(module.name)
        rows, target = np.eye(4), np.array([0, 1, 0, 1])
        for kind in (LogisticRegression, RandomForestClassifier):
            estimator_from_bytes(estimator_to_bytes(kind().fit(rows, target))).predict_proba(rows)


def _import_runtime() -> None:
    try:
        importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ExchangeError(
            "ONNX_UNSUPPORTED", "The graph needs onnxruntime. Install it by `pip install 'datacollab[onnx]'`."
        ) from error


LOADERS: dict[str, type[_Objects] | type[_Graph]] = {"skops": _Objects, "onnx": _Graph}
"""By form."""
PRELOAD = {"skops": _import_scikit_learn, "onnx": _import_runtime}
"""What to import for a form, before the process is confined."""
