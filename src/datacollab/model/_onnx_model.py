"""A party's model in its ONNX form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, check_representation, require
from ..errors import ExchangeError
from ._maps import IntegrationFunction
from ._onnx_graph import INPUT, read_graph
from ._onnx_sizes import BATCH
from ._party_model import PartyModel
from ._refusal import malformed
from ._trial import try_prediction

__all__ = ["OnnxModel", "OnnxPartyModel", "onnx_party_model"]

_CLASS_TYPES = ("bool", "float32", "float64", "int32", "int64", "object", "str")


class OnnxModel:
    """h∘g_k as a graph; takes intermediate representations.

    Parameters
    ----------
    data : bytes
        Of a graph that `read_graph` accepts.
    n_features : int
        Columns it takes.
    classes : ndarray of shape (n_classes,), optional
        For classification.
    """

    def __init__(self, data: bytes, *, n_features: int, classes: NDArray[Any] | None) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.n_features_in_ = n_features
        self._classes = classes
        try:
            self._session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        # The runtime's errors have no common type.
        except Exception as error:
            raise _malformed(f"cannot be prepared ({type(error).__name__})") from None

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predicted targets, of shape (n_rows,)."""
        found = self._run(X, 0).reshape(len(np.asarray(X)))
        if self._classes is None:
            return found.astype(np.float64)
        kind = self._classes.dtype
        return found.astype(str).astype(kind) if kind.kind in "OU" else found.astype(kind)

    def probabilities(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self._run(X, 1).astype(np.float64)

    def _run(self, X: ArrayLike, output: int) -> NDArray[Any]:
        rows = np.ascontiguousarray(X, dtype=np.float64)
        try:
            names = [self._session.get_outputs()[output].name]
            # What a graph computes is bounded for so many rows.
            batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)] or [rows]
            return np.concatenate([np.asarray(self._session.run(names, {INPUT: each})[0]) for each in batches])
        # The runtime's errors have no common type.
        except Exception as error:
            raise _malformed(f"cannot be run ({type(error).__name__})") from None


class OnnxRegressor(OnnxModel):
    """A graph that predicts numbers."""


class OnnxClassifier(OnnxModel):
    """A graph that predicts classes."""

    @property
    def classes_(self) -> NDArray[Any]:
        """Of shape (n_classes,)."""
        return np.asarray(self._classes)


class OnnxProbabilisticClassifier(OnnxClassifier):
    """A graph that predicts classes, and how probable each is."""

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes)."""
        return self.probabilities(X)


@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxPartyModel(PartyModel):
    """A party's model of which g_k and h are one graph; `integration_function` is there for `transform` alone."""

    def predict(self, representation: ArrayLike) -> NDArray[Any]:
        """Predicted targets h(g_k(x)), of shape (n_rows,)."""
        return np.asarray(self.estimator.predict(self._checked(representation)))

    def predict_proba(self, representation: ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes), in the order of ``estimator.classes_``."""
        return np.asarray(self.estimator.predict_proba(self._checked(representation)))

    def _checked(self, representation: ArrayLike) -> FloatArray:
        n_features = self.integration_function.n_intermediate
        return check_representation(representation, self.party, n_features=n_features)


def onnx_party_model(g: IntegrationFunction, data: bytes, facts: Mapping[str, Any]) -> OnnxPartyModel:
    """The model whose graph was read from a file, after checks.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    MissingExtraError
        Without the extra `onnx`.
    """
    about = facts.get("onnx")
    if not isinstance(about, Mapping) or facts.get("n_intermediate") != g.n_intermediate:
        raise _malformed("is not described in its manifest")
    read_graph(data, n_features=g.n_intermediate)
    classes = _classes(facts.get("classes"), about.get("classes_dtype"))
    kind = OnnxRegressor if classes is None else OnnxClassifier
    if classes is not None and about.get("probabilities") is True:
        kind = OnnxProbabilisticClassifier
    estimator = kind(data, n_features=g.n_intermediate, classes=classes)
    model = OnnxPartyModel(party=g.party, integration_function=g, estimator=estimator)
    try_prediction(model)
    return model


def _classes(names: Any, dtype: Any) -> NDArray[Any] | None:
    if names is None:
        return None
    plain = isinstance(names, list) and names and all(isinstance(name, str | int | float) for name in names)
    if not plain or dtype not in _CLASS_TYPES or len(set(names)) != len(names):
        raise _malformed("does not list its classes")
    if any(isinstance(name, str) != (dtype in ("object", "str")) for name in names):
        raise _malformed("has classes of another type than its manifest says")
    return np.array(names, dtype=dtype)


def _malformed(what: str) -> ExchangeError:
    return malformed(f"its ONNX form {what}")
