"""A party's model in its ONNX form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, check_representation
from ..errors import ExchangeError
from ._composed import ComposedModel
from ._maps import IntegrationFunction
from ._refusal import malformed
from ._trial import try_prediction
from .isolated import open_isolated

__all__ = ["GraphModel", "graph_model"]

_MOST_BYTES = 2**28


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphModel(ComposedModel):
    """g_k and h as one graph; `integration_function` is there for `transform` alone."""

    def predict(self, representation: ArrayLike) -> NDArray[Any]:
        """Predicted targets h(g_k(x)), of shape (n_rows,)."""
        return np.asarray(self.estimator.predict(self._checked(representation)))

    def predict_proba(self, representation: ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes), in the order of ``estimator.classes_``."""
        return np.asarray(self.estimator.predict_proba(self._checked(representation)))

    def _checked(self, representation: ArrayLike) -> FloatArray:
        n_features = self.integration_function.n_intermediate
        return check_representation(representation, self.party, n_features=n_features)


def graph_model(g: IntegrationFunction, data: bytes, facts: Mapping[str, Any]) -> GraphModel:
    """The model whose graph was read from a file, in a confined process.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, TOO_LARGE, OBJECTS_REFUSED, or ONNX_UNSUPPORTED without the extra `onnx`.
    """
    if len(data) > _MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"The ONNX form has {len(data)} bytes; {_MOST_BYTES} are allowed. Take the other form."
        )
    described = facts.get("onnx")
    if not isinstance(described, Mapping) or facts.get("n_intermediate") != g.n_intermediate:
        raise malformed("its ONNX form is not described in its manifest")
    about = {
        "name": facts.get("estimator"),
        "classes": facts.get("classes"),
        "classes_dtype": described.get("classes_dtype"),
        "probabilities": described.get("probabilities") is True,
    }
    estimator = open_isolated("onnx", data, g.n_intermediate, about)
    model = GraphModel(party=g.party, integration_function=g, estimator=estimator)
    try_prediction(model)
    return model
