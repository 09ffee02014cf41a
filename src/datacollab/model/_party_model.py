"""The one thing that comes back from the analyst to a party."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ..bundle import Bundle, KeyPair, PublicKey, pack, unpack, write_atomically
from ._codec import MODEL_KIND, decode_model, model_contents
from ._composed import ComposedModel

__all__ = ["PartyModel", "model_from"]


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

    def save(self, path: str | Path, *, key: KeyPair | None = None) -> None:
        """Write the model to a `.dcmodel` file (no pickle).

        Parameters
        ----------
        path : str or Path
            A file there is replaced.
        key : KeyPair, optional
            Whose signature it gets.

        Raises
        ------
        ExchangeError
            When the model cannot be sent; see `model_contents`.
        """
        facts, members = model_contents(self)
        write_atomically(Path(path), pack(MODEL_KIND, facts, members, key=key), mode=0o600)

    @staticmethod
    def load(path: str | Path, *, signed_by: PublicKey | None = None) -> PartyModel:
        """Read a model that `save` wrote: numbers, and nothing that could be run.

        Parameters
        ----------
        path : str or Path
        signed_by : PublicKey, optional
            Who has to have signed it.

        Raises
        ------
        ExchangeError
            When the file is damaged, not signed as wanted, or inconsistent.
        """
        return model_from(unpack(Path(path), kind=MODEL_KIND, signed_by=signed_by))


def model_from(bundle: Bundle) -> PartyModel:
    """The model in a bundle, after checks of every part.  Numbers are read, and nothing that could be run.

    Parameters
    ----------
    bundle : Bundle

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE or MODEL_MALFORMED.
    """
    read = decode_model(bundle)
    return PartyModel(**{each.name: getattr(read, each.name) for each in fields(read)})
