"""What a party has alone and what the others brought, pooled at home when a model is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..._typing import FloatArray
from ...errors import DataCollabError, ExchangeError
from ...model import PartyModel
from ...party import LocalParty, PersonalModel, personal_model, personal_state, personalise
from ..project import Anchor, EncodedTable, Project
from ._installation import check_model_works
from ._own_rows import OwnRows

__all__ = ["Pooled", "pool", "pooled_from"]

NOT_SAID = "Nothing can be said of what collaboration brought"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """A pooled model on its way to the disk, or why there is none.

    Attributes
    ----------
    facts : dict of str to object
        For the file: "sentence", and "benefit" or null.
    members : dict of str to bytes
        Empty where nothing could be pooled.
    """

    facts: dict[str, Any]
    members: dict[str, bytes] = field(default_factory=dict, repr=False)


def pool(
    project: Project,
    party: LocalParty,
    own: OwnRows,
    model: PartyModel,
    anchor: Anchor,
    public: EncodedTable | None,
    *,
    anchor_representation: FloatArray,
    random_state: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Pooled:
    """Fit the party's own models, and pool them with the common one.

    What the party has without the others is its own rows and public ones: those given, or else the anchor's.

    Parameters
    ----------
    project : Project
    party : LocalParty
    own : OwnRows
    model : PartyModel
        Checked.
    anchor : Anchor
    public : EncodedTable or None
        With targets or without.
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        By the party's own f_k.
    random_state : int, optional
    progress : callable, optional
        Called with the name of each step before it starts.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, where what the model says of rows left out is not of this party's share, or its model without
        the party fails.
    """
    if reason := _reason_for_none(project, model):
        return Pooled(facts={"sentence": f"{NOT_SAID}: {reason}", "benefit": None})
    if model.without_party is not None:
        check_model_works(replace(model, estimator=model.without_party), anchor_representation, project)
    if model.left_out is not None and (own.order is None or len(model.left_out) != len(own.order)):
        raise ExchangeError(
            "MODEL_MALFORMED",
            f"The model says something of {len(model.left_out)} rows left out, and party {party.name!r} has shared "
            f"{own.n_shared}. Do not use it, and ask the analyst.",
        )
    rows, target = (anchor.rows, anchor.target) if public is None else (public.X, public.target)
    try:
        personal = personalise(
            party,
            model,
            own.X,
            own.target,
            order=own.order,
            public=rows,
            public_target=target,
            random_state=random_state,
            progress=progress,
        )
    except DataCollabError:
        raise
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise ExchangeError(
            "MODEL_MALFORMED",
            f"The model fails on rows of party {party.name!r} ({type(error).__name__}). Do not use it, and ask the "
            "analyst.",
        ) from None
    benefit = personal.benefit_
    return Pooled(facts={"sentence": benefit.sentence, "benefit": benefit.to_dict()}, members=personal_state(personal))


def pooled_from(members: Mapping[str, bytes], party: LocalParty, model: PartyModel) -> PersonalModel | None:
    """The pooled model on the disk; None where there is none.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED.
    """
    return personal_model(members, party, model) if members else None


def _reason_for_none(project: Project, model: PartyModel) -> str | None:
    if not project.task.is_single:
        return (
            "a party's own models are made and compared for classes and numbers alone. Predictions are those of the "
            "collaboration."
        )
    if model.left_out is None and model.without_party is None:
        return (
            "the model came without what it says of your rows left out. Predictions are those of the collaboration; "
            "ask the analyst for a model that has it (`datacollab analyst integrate` with its defaults)."
        )
    return None
