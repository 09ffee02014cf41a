"""The analyst's model: checked, and pooled with what the party has alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from ..._typing import FloatArray
from ...bundle import Bundle, KeyPair, is_container, is_encrypted, unpack, unseal
from ...errors import DataCollabError, ExchangeError
from ...model import MODEL_KIND, PartyModel, estimator_kind, model_from, plain_facts, task_of
from ...party import LocalParty, PersonalModel, personal_model, personal_state, personalise
from ...survival import SurvivalModel
from ..project import Anchor, EncodedTable, Project
from ._prepare import SEALED
from ._sides import agreed_times, times_within
from ._stored import OwnRows

__all__ = [
    "Pooled",
    "are_targets",
    "check_addressed",
    "check_model_works",
    "check_not_older",
    "open_model",
    "pool",
    "pooled_from",
]


def open_model(
    data: bytes,
    source: Path,
    project: Project,
    key: KeyPair,
    party: str,
    share_digest: str | None,
) -> tuple[PartyModel, Bundle]:
    """Read a model, and check that it was made for this party from its last share.

    Parameters
    ----------
    data : bytes
    source : Path
        Whom an error names.
    project : Project
        Whose analyst has to have signed it.
    key : KeyPair
        The party's, to which it is sealed.
    party : str
    share_digest : str or None
        Identity of the party's last share.

    Raises
    ------
    ExchangeError
        Of the kinds "verification" and "model".
    """
    if not (is_container(data) or is_encrypted(data)):
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{source} is no bundle; the .dcmodel that the analyst sent is wanted. Give that file."
        )
    bundle = unpack(data, kind=MODEL_KIND, signed_by=project.analyst, what=str(source))
    check_addressed(bundle, source, project, party, share_digest)
    return _unsealed(bundle, source, project, key, party), bundle


def check_addressed(bundle: Bundle, source: Path, project: Project, party: str, share_digest: str | None) -> None:
    """Refuse what was not made for this party from its last share.

    Parameters
    ----------
    bundle : Bundle
        A model, or answers in its place.
    source, project, party, share_digest
        As in `open_model`.

    Raises
    ------
    ExchangeError
        WRONG_RECIPIENT, PROJECT_HASH_MISMATCH, WRONG_SHARE or MODEL_MALFORMED.
    """
    facts = plain_facts(bundle)
    if facts.get("party") != party:
        raise ExchangeError(
            "WRONG_RECIPIENT",
            f"{source} was made for party {facts.get('party')!r}, and this is {party!r}. Its map g_k would give wrong "
            "predictions; ask the analyst for your own.",
        )
    if facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{source} was made for another version of project {project.name!r}. Compare what `datacollab project "
            "show` prints on both sides, and ask for a new one.",
        )
    if facts.get("share_digest") != share_digest:
        raise ExchangeError(
            "WRONG_SHARE",
            f"{source} was made from another share of party {party!r} than its last one. Send the file in the outbox "
            "to the analyst, and take what is made from it.",
        )


def _unsealed(bundle: Bundle, source: Path, project: Project, key: KeyPair, party: str) -> PartyModel:
    """The model inside, which has to be what is said of it outside."""
    if bundle.members.keys() != {SEALED}:
        raise _malformed(f"{source} is not sealed to party {party!r}, as every model of a project is")
    try:
        inner = unseal(bundle.members[SEALED], key, purpose=f"model of {party} in {project.digest}")
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{source}: {error}") from None
    opened = unpack(inner, kind=MODEL_KIND, what=f"What is sealed in {source}")
    model = model_from(opened)
    found = {
        "party": model.party,
        "task": _kind(model.estimator),
        "n_components": model.integration_function.n_components,
        "estimator": estimator_kind(model.estimator),
    }
    wrong = [
        name for name, value in found.items() if any(facts.get(name) != value for facts in (bundle.facts, opened.facts))
    ]
    if wrong:
        raise _malformed(f"{source} holds a model of which it says something else: {wrong!r}")
    # Clusters are told like classes.
    if found["task"] != {"none": "classification"}.get(project.task.kind, project.task.kind):
        raise _malformed(
            f"{source} holds a model for {found['task']}; project {project.name!r} is a {project.task.kind}"
        )
    return model


def _kind(estimator: Any) -> str | None:
    if is_classifier(estimator) or isinstance(estimator, SurvivalModel):
        return task_of(estimator)
    return "regression" if is_regressor(estimator) else None


def check_not_older(bundle: Bundle, source: Path, installed: Path) -> None:
    """Refuse a model in place of a later one that was made from the same share.

    Parameters
    ----------
    bundle : Bundle
        The model to be installed.
    source : Path
        Whom an error names.
    installed : Path
        The model that is installed, if any is.

    Raises
    ------
    ExchangeError
        ALREADY_THERE, or MODEL_MALFORMED where it does not say when it was made.
    """
    made = _made(bundle, source)
    try:
        known = unpack(installed, kind=bundle.kind)
    except ExchangeError:
        return
    made_of = "share_digest" if bundle.kind == MODEL_KIND else "context"
    if known.facts.get(made_of) == bundle.facts.get(made_of) and made < _made(known, installed):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{source} was made at {bundle.facts['created']}, and a later model from the same share is installed, made "
            f"at {known.facts['created']}. Keep that one; --older installs the older one all the same.",
        )


def _made(bundle: Bundle, source: Path) -> datetime:
    created = bundle.facts.get("created")
    try:
        made = datetime.fromisoformat(created if isinstance(created, str) else "")
    except ValueError:
        raise _malformed(f"{source} does not say when it was made") from None
    return made if made.tzinfo else made.replace(tzinfo=UTC)


def check_model_works(model: PartyModel, anchor_representation: FloatArray, project: Project) -> None:
    """Predict the anchor at home, as a trial.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, when that fails, or gives something other than the project's targets.
    """
    try:
        predicted = model.predict(anchor_representation)
        if isinstance(model.estimator, SurvivalModel) and (times := times_within(model, agreed_times(project))):
            model.predict_survival(anchor_representation, times)
    except DataCollabError as error:
        raise _malformed(f"It does not take this party's representation: {error}") from None
    except Exception as error:
        raise _malformed(f"A trial with the anchor failed ({type(error).__name__})") from None
    classes = getattr(model.estimator, "classes_", predicted)
    if predicted.shape != (len(anchor_representation),) or not all(
        are_targets(y, project) for y in (predicted, classes)
    ):
        raise _malformed(f"In a trial it predicted something other than the targets of project {project.name!r}")


def are_targets(predicted: Any, project: Project) -> bool:
    """Whether an array holds nothing but the project's classes, numbers of clusters, or else finite numbers."""
    if project.task.kind == "none":
        return predicted.dtype.kind in "iu" and bool((predicted >= 0).all())
    if project.task.kind == "classification":
        return bool(np.isin(predicted, np.asarray(project.task.classes)).all())
    return predicted.dtype.kind in "biuf" and bool(np.isfinite(predicted).all())


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")


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
