"""The one thing that comes back from the analyst to a party."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ..bundle import Bundle, KeyPair, PublicKey, pack, unpack, write_atomically
from ._codec import MODEL_KIND, decode_model, model_contents
from ._composed import ComposedModel
from ._onnx_model import GraphModel

__all__ = ["OnnxPartyModel", "PartyModel", "model_from"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyModel(ComposedModel):
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
        bundle = unpack(Path(path), kind=MODEL_KIND, signed_by=signed_by)
        return model_from(bundle, prefer_onnx=prefer_onnx, objects=objects)


@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxPartyModel(GraphModel, PartyModel):
    """A party's model of which g_k and h are one graph; `integration_function` is there for `transform` alone."""


def model_from(bundle: Bundle, *, prefer_onnx: bool = False, objects: bool = False) -> PartyModel:
    """The model in a bundle, after checks of every part.

    Nothing that the bundle brings along is run in this process: objects and graphs, where they are asked for, predict
    in a process of their own, without files and network and with little memory.

    Parameters
    ----------
    bundle : Bundle
    prefer_onnx : bool, default=False
        Whether to take the ONNX form, where there is one.
    objects : bool, default=False
        Whether to take objects of scikit-learn, where the model consists of them.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, OBJECTS_REFUSED, UNTRUSTED_TYPE, VERSION_MISMATCH, MODEL_MALFORMED or ONNX_UNSUPPORTED.
    """
    read = decode_model(bundle, prefer_onnx=prefer_onnx, objects=objects)
    kind = OnnxPartyModel if isinstance(read, GraphModel) else PartyModel
    return kind(**{each.name: getattr(read, each.name) for each in fields(read)})
