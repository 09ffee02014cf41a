"""The one thing that comes back from the analyst to a party."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName
from ._maps import IntegrationFunction

__all__ = ["PartyModel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyModel:
    """One party's integration function g_k and the common model h.

    A party composes it with its own secret f_k, and predicts alone from then on: h(g_k(f_k(x))).

    Attributes
    ----------
    party : str or int
        For whom it is made.  Another party's g_k would give wrong numbers without a sign of it.
    integration_function : IntegrationFunction
        g_k, a `LinearMap` or a `KernelMap`.
    estimator : estimator
        h, fitted on the collaboration representations of all parties.
    """

    party: PartyName
    integration_function: IntegrationFunction
    estimator: Any

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
