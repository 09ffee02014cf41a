"""Install the analyst's model, or distil its anchor predictions; forget the map that the share was made by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text

from ..._typing import FloatArray
from ...agreement import Anchor, Project
from ...bundle import Bundle, digest, is_container, is_encrypted, read_regular, unpack, unseal
from ...errors import AnchorError, DataCollabError, ExchangeError
from ...folder.party import (
    NO_MODEL,
    SEALED,
    AtHome,
    Folder,
    MappedModel,
    are_targets,
    check_logged,
    check_not_forgotten,
    check_not_older,
    commit_distilled,
    commit_model,
    destroy_map,
    has_forgotten,
    last_share,
    list_times,
    locked,
    malformed,
    settle,
    times_within,
)
from ...model import (
    MODEL_KIND,
    PREDICTIONS_KIND,
    AnchorPredictions,
    PartyModel,
    estimator_kind,
    model_from,
    plain_facts,
    predictions_contents,
    predictions_from,
    task_of,
)
from ...own import (
    AnchorRidge,
    DistilledModel,
    LocalParty,
    distil_predictions,
    fit_to_predictions,
    personal_model,
    personal_state,
    personalise,
)
from ...survival import SurvivalModel
from ...table import encode_table, read_table, table_source
from ._stored_party import StoredParty, load_party

_FEWEST_JUDGES = 10
"""Own rows with which it can be said how far the anchor is from them."""
_FEWEST_OTHERS = 3
"""Parties besides one from which the analyst makes a model without it."""
_NOT_SAID = "Nothing can be said of what collaboration brought"


def install_rows(
    folder: Folder,
    model_file: Path,
    *,
    older: bool,
    public: Any = None,
    random_state: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Install a model for rows, and combine it with own models; see `PartyFolder.install`."""
    installed = folder.files.model
    settle(folder)
    stored = load_party(folder)
    data = read_regular(model_file)
    model, bundle = open_model(folder, data, model_file, stored.share_digest)
    if not older:
        check_not_older(bundle, model_file, installed, made_of="share_digest")
    pooled, members = _combine(folder, stored, model, public, random_state, progress)
    # The party's own models take their time, in which other commands may work here.
    with locked(folder):
        if load_party(folder).share_digest != stored.share_digest:
            raise ExchangeError(
                "BUSY",
                f"{folder.path} shared again while this command ran, and the model is of the share before. Send the "
                "new share, and install the model made from it.",
            )
        check_logged(folder, stored.share_digest)
        if not older:
            check_not_older(bundle, model_file, installed, made_of="share_digest")
        entry = {"digest": bundle.digest, "file": model_file.name, "pooled": bool(members)}
        entry |= {name: bundle.facts.get(name) for name in ("estimator", "created")}
        commit_model(folder, data, entry, facts={"model_digest": bundle.digest, **pooled}, members=members)
    return bundle.facts | pooled


def _combine(
    folder: Folder,
    stored: StoredParty,
    model: PartyModel,
    public: Any,
    random_state: int | None,
    progress: Callable[[str], None] | None,
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Fit own models and combine them with the common one; return facts and members of the file, or say why not."""
    project = folder.project
    anchor = folder.anchor
    own = stored.own
    representation = stored.party.obfuscate(anchor.rows)
    _check_works(model, representation, project)
    # A public table that cannot be read is an error, even if it turns out not to be needed.
    rows, target = _read_public_rows(project, anchor, public)
    if (reason := _not_comparable(project, model)) is not None:
        return {"sentence": f"{_NOT_SAID}: {reason}. Predictions are those of the collaboration.", "benefit": None}, {}
    if model.without_party is not None:
        _check_works(replace(model, estimator=model.without_party), representation, project)
    if model.left_out is not None and (own.order is None or len(model.left_out) != len(own.order)):
        raise malformed(
            f"The model says something of {len(model.left_out)} rows left out, and party {folder.name!r} has shared "
            f"{own.n_shared}"
        )
    try:
        personal = personalise(
            stored.party,
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
        raise malformed(f"The model fails on rows of party {folder.name!r} ({type(error).__name__})") from None
    benefit = personal.benefit_
    return {"sentence": benefit.sentence, "benefit": benefit.to_dict()}, personal_state(personal)


def _read_public_rows(project: Project, anchor: Anchor, public: Any) -> tuple[FloatArray, NDArray[Any] | None]:
    """Return public rows and their targets: those of a table that is given, or else the anchor's."""
    if public is not None:
        source = table_source(public, "the public table")
        public = read_table(source, schema=project)
        with_target = project.task.is_single and project.task.target in public.columns
        table = encode_table(project, public, where=str(source), with_target=with_target, partly=True)
        return table.X[table.labelled], table.target
    # Generated rows of all classes are equally many, so their targets are no sample of anybody's.
    if project.anchor.method != "sample" or anchor.target is None:
        return anchor.rows, None
    return anchor.labelled_rows, anchor.target


def _not_comparable(project: Project, model: PartyModel) -> str | None:
    """Return why nothing honest can be said of the common model beside own ones, or None."""
    if not project.task.is_single:
        return "a party's own models are made and compared for classes and numbers alone"
    # On own rows that it was trained on, the common model would look better than it is.
    if model.left_out is None and model.without_party is None:
        way_on = "Ask the analyst for one that has it (`datacollab analyst integrate` with its defaults)"
        if len(project.parties) <= _FEWEST_OTHERS:
            way_on = (
                f"If defences changed rows, that takes more than {_FEWEST_OTHERS} parties; else ask the analyst for "
                "one that has it (`datacollab analyst integrate` with its defaults)"
            )
        return f"the model came without what it says of your rows left out. {way_on}"
    return None


def _check_works(model: PartyModel, anchor_representation: FloatArray, project: Project) -> None:
    """Predict the anchor at home, as a trial."""
    try:
        predicted = model.predict(anchor_representation)
        if isinstance(model.estimator, SurvivalModel) and (times := times_within(model, list_times(project))):
            model.predict_survival(anchor_representation, times)
    except DataCollabError as error:
        raise malformed(f"It does not take this party's representation: {error}") from None
    except Exception as error:
        raise malformed(f"A trial with the anchor failed ({type(error).__name__})") from None
    classes = getattr(model.estimator, "classes_", predicted)
    if predicted.shape != (len(anchor_representation),) or not all(
        are_targets(y, project) for y in (predicted, classes)
    ):
        raise malformed(f"In a trial it predicted something other than the targets of project {project.name!r}")


def distil(folder: Folder, predictions_file: Path, tree: int | None) -> dict[str, Any]:
    """Distil a model from the analyst's anchor predictions; see `PartyFolder.distil`."""
    settle(folder)
    anchor = folder.anchor
    share_digest = _digest_of_last_share(folder)
    rows = _own_rows(folder)
    data = read_regular(predictions_file)
    predictions, bundle = _open_predictions(folder, data, predictions_file, share_digest, len(anchor.rows))
    estimator = None if tree is None else _tree(tree, predictions)
    try:
        model = distil_predictions(predictions.party, anchor.rows, predictions, estimator, rows=rows)
    except AnchorError as error:
        raise ExchangeError("ANSWERS_UNFIT", str(error)) from None
    recipe: dict[str, Any] = {"tree": tree}
    # Its penalty and width were chosen on the anchor; the next fit takes them as they are.
    if isinstance(ridge := model.estimator, AnchorRidge):
        recipe = {"gamma": ridge.gamma_, "alpha": ridge.alpha_, "standardize": ridge.standardize_}
    figures = {"r2": model.r2, "agreement": model.agreement, "remoteness": model.remoteness}
    facts, members = predictions_contents(predictions)
    state = {"answers": facts, "recipe": recipe, "figures": figures, "anchor": _identity(anchor)}
    entry = {"digest": bundle.digest, "file": predictions_file.name, "created": bundle.facts.get("created")}
    with locked(folder):
        if _digest_of_last_share(folder) != share_digest:
            raise ExchangeError(
                "BUSY",
                f"{folder.path} shared again while this command ran, and the predictions are of the share before. Send "
                "the new share, and distil what is made of it.",
            )
        commit_distilled(folder, entry, facts=state, members=members)
    words = None
    if tree is not None:
        names = list(folder.project.feature_names)
        # Beyond its depth the text would be cut.
        depth = model.estimator.get_depth() + 1
        words = str(export_text(model.estimator, feature_names=names, max_depth=depth, decimals=3))
    return bundle.facts | figures | {"tree": words}


def _own_rows(folder: Folder) -> FloatArray | None:
    """Return own rows to judge how far the anchor is from them; None if they are forgotten, or too few."""
    if has_forgotten(folder):
        return None
    X = load_party(folder).own.X
    if len(X) < _FEWEST_JUDGES:
        return None
    return X


def forget(folder: Folder) -> None:
    """Destroy the map f_k and all that was made by it; see `PartyFolder.forget`."""
    with locked(folder):
        check_not_forgotten(folder)
        folder.log.append("forget", share=_digest_of_last_share(folder))
        # From the log's entry on it has forgotten: a killed command is finished by the next one.
        destroy_map(folder)


def rows_at_home(folder: Folder) -> AtHome:
    """Return the sides that a party predicts with."""
    settle(folder)
    file = folder.files.model
    sides: dict[str, MappedModel] = {}
    if (distilled := _fit_distilled(folder)) is not None:
        sides["distilled"] = distilled
        # The distilled model needs no map: it predicts also after `forget`.
        if not file.exists():
            sentence = f"{_NOT_SAID}: no model is installed, and anchor predictions say nothing of your rows left out."
            return AtHome(sides=sides, sentence=sentence)
    stored = load_party(folder)
    if not file.exists():
        way_on = NO_MODEL
        if folder.project.task.kind == "effect":
            way_on = "Of an effect no model comes back: the estimate is the analyst's."
        raise ExchangeError("NOT_INSTALLED", f"{folder.path} holds no model. {way_on}")
    model, bundle = open_model(folder, read_regular(file), file, stored.share_digest)
    h = model.estimator
    # A model without probabilities may have classes, whose columns would stay empty.
    classes = h.classes_ if hasattr(h, "predict_proba") else None
    collaboration = MappedModel(name=estimator_kind(h), classes=classes, model=model, map=stored.party.obfuscate)
    combined, sentence = _read_combined(folder, bundle.digest, stored.party, model)
    # The first is the usual one: the combined model, if there is one.
    sides = combined | {"collaboration": collaboration} | sides
    return AtHome(sides=sides, sentence=sentence, party=stored.party, model=model)


def _read_combined(
    folder: Folder, model_digest: str, party: LocalParty, model: PartyModel
) -> tuple[dict[str, MappedModel], str]:
    """Return the sides of own models combined with this one, none if there are none, and a sentence about them."""
    nothing = f"{_NOT_SAID}: nothing was combined with the installed model. Run `datacollab party install` again."
    if not folder.files.personal.exists():
        return {}, nothing
    kept = folder.read(folder.files.personal)
    # Own models were weighed against one common model, and say nothing of another.
    if kept.facts.get("model_digest") != model_digest:
        return {}, nothing
    sentence = str(kept.facts["sentence"])
    if not kept.members:
        return {}, sentence
    personal = personal_model(kept.members, party, model)
    known: dict[str, Any] = {"name": type(personal).__name__, "classes": getattr(personal, "classes_", None)}
    return {name: MappedModel(**known, model=personal, options={"using": name}) for name in personal.sides}, sentence


def _fit_distilled(folder: Folder) -> MappedModel | None:
    """Fit the distilled model again, the same to the last bits of its sums; None if there is none."""
    if not folder.files.learned.exists():
        return None
    kept = folder.read(folder.files.learned)
    facts = kept.facts
    anchor = folder.anchor
    if facts.get("anchor") != _identity(anchor):
        raise ExchangeError(
            "ANCHOR_MISMATCH",
            "The distilled model is of another anchor than the one that is there now. Open the anchor that was "
            "shared again, or distil predictions on this one.",
        )
    try:
        predictions = predictions_from(Bundle(PREDICTIONS_KIND, dict(facts["answers"]), dict(kept.members), None, ""))
        recipe = facts["recipe"]
        estimator = _tree(recipe["tree"], predictions) if "tree" in recipe else AnchorRidge(**recipe)
        model = DistilledModel(
            party=predictions.party,
            estimator=fit_to_predictions(estimator, anchor.rows, predictions.values, predictions.classes),
            classes_=predictions.classes,
            **facts["figures"],
        )
    # What this program wrote and signed is not checked entry by entry.
    except (ExchangeError, KeyError, TypeError, ValueError) as error:
        raise ExchangeError(
            "STATE_DAMAGED",
            f"The distilled model cannot be read ({type(error).__name__}). Run `datacollab party distil` again with "
            "the file that the analyst sent.",
        ) from None
    return MappedModel(name=estimator_kind(model.estimator), classes=model.classes_, model=model)


def _digest_of_last_share(folder: Folder) -> str:
    """Return the identity of the last share in this project, which the log knows also without the map."""
    last = last_share(folder)
    if last is None:
        raise ExchangeError(
            "NOT_SHARED", f"{folder.path} has shared nothing in this project. Run `datacollab party share` first."
        )
    return str(last["facts"]["digest"])


def _open_sealed(
    folder: Folder, data: bytes, source: Path, kind: str, words: tuple[str, str, str], share_digest: str | None
) -> tuple[Bundle, Bundle]:
    """Return the signed bundle and the one sealed inside; words are the ending, the purpose, and the errors' code."""
    project = folder.project
    party = folder.name
    ending, purpose, code = words
    # Asked before all else, as people often give a file of another kind.
    if not (is_container(data) or is_encrypted(data)):
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{source} is no bundle; expected the .{ending} that the analyst sent. Give that file."
        )
    bundle = unpack(data, kind=kind, signed_by=project.analyst, what=str(source))
    try:
        facts = plain_facts(bundle)
    except ExchangeError:
        if kind == MODEL_KIND:
            raise
        raise malformed(f"{source} has a manifest that does not say what it should", code) from None
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
    if bundle.members.keys() != {SEALED}:
        raise malformed(f"{source} is not sealed to party {party!r}, as every such file of a project is", code)
    try:
        inner = unseal(bundle.members[SEALED], folder.key, purpose=f"{purpose} {party} in {project.digest}")
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{source}: {error}") from None
    return bundle, unpack(inner, kind=kind, what=f"The sealed part of {source}")


def open_model(folder: Folder, data: bytes, source: Path, share_digest: str | None) -> tuple[PartyModel, Bundle]:
    """Read a model, and check that it was made for this party from its last share, and that its manifest is true."""
    words = ("dcmodel", "model of", "MODEL_MALFORMED")
    bundle, opened = _open_sealed(folder, data, source, MODEL_KIND, words, share_digest)
    model = model_from(opened)
    task = folder.project.task
    contents = {
        "party": model.party,
        "task": None,
        "n_components": model.integration_function.n_components,
        "estimator": estimator_kind(model.estimator),
    }
    if is_classifier(model.estimator) or isinstance(model.estimator, SurvivalModel):
        contents["task"] = task_of(model.estimator)
    elif is_regressor(model.estimator):
        contents["task"] = "regression"
    manifests = (bundle.facts, opened.facts)
    wrong = [name for name, value in contents.items() if any(facts.get(name) != value for facts in manifests)]
    # Pages and logs show the manifest that stands outside of the seal.
    if wrong:
        raise malformed(f"{source} holds another model than it says: {wrong!r}")
    # Clusters are predicted like classes.
    if contents["task"] != {"none": "classification"}.get(task.kind, task.kind):
        raise malformed(
            f"{source} holds a model for {contents['task']}; project {folder.project.name!r} is a {task.kind}"
        )
    return model, bundle


def _open_predictions(
    folder: Folder, data: bytes, source: Path, share_digest: str | None, n_anchors: int
) -> tuple[AnchorPredictions, Bundle]:
    """Read predictions, and check that they were made for this party from its last share, on this anchor."""
    project = folder.project
    code = "ANSWERS_MALFORMED"
    words = ("dcanswers", "answers for", code)
    bundle, opened = _open_sealed(folder, data, source, PREDICTIONS_KIND, words, share_digest)
    predictions = predictions_from(opened)
    task = "regression" if predictions.classes is None else "classification"
    contents = {"party": predictions.party, "task": task, "n_anchors": predictions.n_anchors}
    wrong = [name for name, value in contents.items() if bundle.facts.get(name) != value]
    if wrong or predictions.party != folder.name:
        raise malformed(f"{source} holds other predictions than it says: {wrong!r}", code)
    if predictions.n_anchors != n_anchors:
        raise malformed(
            f"{source} holds {predictions.n_anchors} predictions, and the anchor has {n_anchors} rows", code
        )
    targets = predictions.values if predictions.classes is None else predictions.classes
    if task != project.task.kind or not are_targets(targets, project):
        raise malformed(f"{source} holds something other than the targets of project {project.name!r}", code)
    return predictions, bundle


def _identity(anchor: Anchor) -> str:
    return digest(np.ascontiguousarray(anchor.rows, dtype=np.float64).tobytes())


def _tree(depth: int, predictions: AnchorPredictions) -> Any:
    # The same seed always: the tree is fitted again whenever the folder is opened.
    kind = DecisionTreeRegressor if predictions.classes is None else DecisionTreeClassifier
    return kind(max_depth=depth, random_state=0)
