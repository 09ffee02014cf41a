"""The one thing that comes back from the analyst to a party."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName
from ..bundle import KeyPair, PublicKey, pack, unpack, write_atomically
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
    left_out : ndarray of shape (n_shared,) or (n_shared, n_classes), or None
        What h says of each row of the party's share, in the order of the share, when that row is left out of its
        training: class probabilities in the order of ``estimator.classes_``, or numbers.  It goes to this party alone,
        and rounded: with the model, exact ones would tell sums over the other parties' rows.
    without_party : estimator or None
        h as it is without any row of this party, where its shared rows are not its own rows one by one, so that
        nothing can be left out for one of them.  The party scores its own rows with it.
    """

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

    def save(self, path: str | Path, *, key: KeyPair | None = None, onnx: bool = False, objects: bool = False) -> None:
        """Write the model to a `.dcmodel` file (no pickle).

        Parameters
        ----------
        path : str or Path
            A file there is replaced.
        key : KeyPair, optional
            Whose signature it gets.
        onnx : bool, default=False
            Whether to add the ONNX form, which other languages can run.
        objects : bool, default=False
            Whether an estimator that cannot be written as plain numbers may go as an object of scikit-learn.  Its
            receiver has to ask for it, too.

        Raises
        ------
        ExchangeError
            When the model cannot be sent; see `model_contents`.
        """
        from ._codec import MODEL_KIND, model_contents

        facts, members = model_contents(self, onnx=onnx, objects=objects)
        write_atomically(Path(path), pack(MODEL_KIND, facts, members, key=key), mode=0o600)

    @staticmethod
    def load(
        path: str | Path, *, signed_by: PublicKey | None = None, prefer_onnx: bool = False, objects: bool = False
    ) -> PartyModel:
        """Read a model that `save` wrote; nothing that the file brings along is run in this process.

        Parameters
        ----------
        path : str or Path
        signed_by : PublicKey, optional
            Who has to have signed it.
        prefer_onnx : bool, default=False
            Whether to take the ONNX form, where there is one.  It predicts in a process of its own.
        objects : bool, default=False
            Whether to take objects of scikit-learn, where the model consists of them.  They predict in a process of
            their own, without files and network and with little memory, on Linux alone.

        Raises
        ------
        ExchangeError
            When the file is damaged, not signed as wanted, inconsistent, or made of objects.
        """
        from ._codec import MODEL_KIND, model_from

        bundle = unpack(Path(path), kind=MODEL_KIND, signed_by=signed_by)
        return model_from(bundle, prefer_onnx=prefer_onnx, objects=objects)
