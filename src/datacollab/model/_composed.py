"""An integration function and a model after it, which know of no file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName
from ._maps import IntegrationFunction

__all__ = ["ComposedModel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComposedModel:
    """h after g_k; `PartyModel`, where the fields are described, is this with its file."""

    party: PartyName
    integration_function: IntegrationFunction
    estimator: Any
    left_out: FloatArray | None = field(default=None, repr=False)
    without_party: Any | None = field(default=None, repr=False)

    def transform(self, representation: ArrayLike) -> FloatArray:
        """Collaboration representation g_k(x), of shape (n_rows, n_components).

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
            The party's own f_k(X).
        """
        return self.integration_function(representation)

    def predict(self, representation: ArrayLike) -> NDArray[Any]:
        """Predicted targets h(g_k(x)), of shape (n_rows,)."""
        return np.asarray(self.estimator.predict(self.transform(representation)))

    def predict_proba(self, representation: ArrayLike) -> FloatArray:
        """Class probabilities, of shape (n_rows, n_classes), in the order of ``estimator.classes_``.

        Raises
        ------
        AttributeError
            When the model h gives no probabilities.
        """
        return np.asarray(self.estimator.predict_proba(self.transform(representation)))

    def predict_survival(self, representation: ArrayLike, times: ArrayLike) -> FloatArray:
        """Probability of no event up to each time, of shape (n_rows, n_times).

        Parameters
        ----------
        representation : array-like of shape (n_rows, n_intermediate)
        times : array-like of shape (n_times,)
            From 0 to the end of the observation, which is the last of the baseline's times.

        Raises
        ------
        AttributeError
            When the model h is no survival model.
        ValueError
            When a time is beyond the end of the observation.
        """
        return np.asarray(self.estimator.predict_survival(self.transform(representation), times))

    def predict_cumulative_hazard(self, representation: ArrayLike, times: ArrayLike) -> FloatArray:
        """Λ(t | x) of each row at each time, of shape (n_rows, n_times); see `predict_survival`."""
        return np.asarray(self.estimator.predict_cumulative_hazard(self.transform(representation), times))
