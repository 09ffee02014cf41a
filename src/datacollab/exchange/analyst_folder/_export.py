"""Models on their way to the parties, or answers in their place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..._typing import FloatArray
from ...bundle import KeyPair, pack, seal
from ...errors import ExchangeError
from ...model import (
    ANSWERS_KIND,
    MODEL_KIND,
    PartyModel,
    anchor_answers,
    answers_contents,
    estimator_kind,
    model_contents,
)
from ..project import Project
from ._integration import Integration
from ._shares import SEALED

__all__ = ["refuse_training_rows", "signed_answers", "signed_model"]


def refuse_training_rows(result: Integration, overridden_by: str | None) -> None:
    """Raise where the model carries training rows, unless someone answers for it."""
    if result.row_findings and overridden_by is None:
        raise ExchangeError(
            "MODEL_LEAKS_ROWS",
            f"The model {result.estimator} carries rows that it was trained on ({', '.join(result.row_findings)}); "
            "each party would get the collaboration representations of all others. Integrate with another model, such "
            "as random-forest.",
        )


def signed_model(
    model: PartyModel,
    result: Integration,
    project: Project,
    key: KeyPair,
    *,
    overridden_by: str | None,
) -> bytes:
    """A `.dcmodel` file for one party, sealed to it: a kernel map holds the party's representation of the anchor."""
    inner, members = model_contents(model)
    party = str(model.party)
    purpose = f"model of {party} in {project.digest}"
    sealed = seal(pack(MODEL_KIND, inner, members), [project.parties[party]], purpose=purpose)
    return pack(
        MODEL_KIND,
        {name: inner[name] for name in ("task", "n_components", "estimator", "versions")}
        | _about(party, result, project)
        | {
            "parameters": result.parameters,
            "row_lint": {
                "found": bool(result.row_findings),
                "overridden_by": overridden_by if result.row_findings else None,
            },
        },
        {SEALED: sealed},
        key=key,
    )


def signed_answers(
    model: PartyModel, anchor_representation: FloatArray, result: Integration, project: Project, key: KeyPair
) -> bytes:
    """A `.dcanswers` file for one party, sealed to it: what its model says of the anchor, and no model.

    Raises
    ------
    ExchangeError
        MODEL_UNSUPPORTED, where the model has no answers that can be sent.
    """
    party = str(model.party)
    try:
        inner, members = answers_contents(anchor_answers(model, anchor_representation))
    except (TypeError, ArithmeticError) as error:
        raise ExchangeError("MODEL_UNSUPPORTED", f"{error} Integrate with another model.") from None
    purpose = f"answers for {party} in {project.digest}"
    sealed = seal(pack(ANSWERS_KIND, inner, members), [project.parties[party]], purpose=purpose)
    facts = {name: inner[name] for name in ("task", "n_anchors", "versions")} | _about(party, result, project)
    return pack(ANSWERS_KIND, facts | {"estimator": estimator_kind(model.estimator)}, {SEALED: sealed}, key=key)


def _about(party: str, result: Integration, project: Project) -> dict[str, Any]:
    """What is said outside of the seal of anything that goes back."""
    return {
        "party": party,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "project": project.name,
        "project_digest": project.digest,
        "share_digest": result.share_digests[party],
        "method": result.method,
        "n_parties": len(result.share_digests),
        "n_rows": result.n_rows,
    }
