"""A pooled model as bytes, for the party's own disk.  They are as sensitive as the raw table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from .._validation import require
from ..errors import ExchangeError
from ..model import PartyModel
from ._inference import LocalInference
from ._personal_model import CollaborationOpinion, PersonalModel

__all__ = ["personal_model", "personal_state"]

_MEMBER = "personal.skops"
_PARTS = ("encoder", "scorers", "blend", "benefit", "unit", "classes")
_OWN_PARTS = ("own scorers", "own blend")
"""Of own rows without public ones; parties without public rows have none."""
_PARTY = "datacollab.party."
_OWN_TYPES = frozenset(
    {
        "datacollab.linalg._kernels.Kernel",
        "numpy.dtype",
        "sklearn.tree._tree.Tree",
        f"{_PARTY}_batches.TableForm",
        f"{_PARTY}_benefit.Benefit",
        f"{_PARTY}_benefit.Side",
        f"{_PARTY}_blend.ClassBlend",
        f"{_PARTY}_blend.NumberBlend",
        f"{_PARTY}_own_models.EstimatorScorer",
        f"{_PARTY}_own_models.KernelScorer",
        f"{_PARTY}_own_models.SpreadScorer",
        f"{_PARTY}_paired_intervals.Estimate",
        f"{_PARTY}_table_encoder.TableEncoder",
    }
)
"""Types that may be constructed besides those of scikit-learn and NumPy that skops itself trusts."""


def personal_state(personal: PersonalModel) -> dict[str, bytes]:
    """What a pooled model needs to predict later on, but for f_k and the common model; `personal_model` reads it.

    Parameters
    ----------
    personal : PersonalModel

    Returns
    -------
    dict of str to bytes

    Raises
    ------
    ExchangeError
        STATE_UNSUPPORTED, when the party's own models cannot be stored.
    MissingExtraError
        When skops is not installed.
    """
    skops_io = require("skops.io", "exchange")
    parts = {
        "encoder": personal._encoder,
        "scorers": personal._scorers,
        "blend": personal._blend,
        "benefit": personal.benefit_,
        "unit": personal._unit,
        "classes": personal._opinion.classes,
        **({} if personal._own is None else dict(zip(_OWN_PARTS, personal._own, strict=True))),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data: bytes = skops_io.dumps(parts)
    if unknown := set(skops_io.get_untrusted_types(data=data)) - _OWN_TYPES:
        raise ExchangeError(
            "STATE_UNSUPPORTED",
            f"Party {personal.party!r}: its own models are made of types that would not be read again: "
            f"{sorted(unknown)[:10]}.",
        )
    return {_MEMBER: data}


def personal_model(members: Mapping[str, bytes], home: LocalInference, model: PartyModel) -> PersonalModel:
    """A pooled model, from what `personal_state` gave.

    Parameters
    ----------
    members : mapping of str to bytes
    home : Party or LocalParty
        With the map f_k of the share that the model was made of.
    model : PartyModel
        The common model that it was pooled with.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED, when they are not what `personal_state` gives.
    MissingExtraError
        When skops is not installed.
    """
    skops_io = require("skops.io", "exchange")
    try:
        data = members[_MEMBER]
        if unknown := set(skops_io.get_untrusted_types(data=data)) - _OWN_TYPES:
            raise ValueError(f"{len(unknown)} types are not trusted")
        parts: dict[str, Any] = skops_io.loads(data, trusted=sorted(_OWN_TYPES))
        encoder, scorers, blend, benefit, unit, classes = (parts[name] for name in _PARTS)
        opinion = CollaborationOpinion(model, (), (0.0, 1.0) if unit is None else tuple(unit))
        opinion.classes = classes
        own = (parts[_OWN_PARTS[0]], parts[_OWN_PARTS[1]]) if _OWN_PARTS[0] in parts else None
        unit = None if unit is None else tuple(unit)
        return PersonalModel(home, opinion, encoder, scorers, blend, unit, benefit, own)
    # Skops and NumPy raise many kinds of errors for damaged contents, and may quote them.
    except Exception as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The pooled model of this party cannot be read ({type(error).__name__}). Install the analyst's model "
            "again.",
        ) from None
