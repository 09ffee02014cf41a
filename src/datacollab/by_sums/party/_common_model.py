"""The one model of all parties' sums at home: read, checked, installed, and combined with the party's own."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...agreement import Project
from ...bundle import Bundle, KeyPair, digest, read_regular, unpack, unseal
from ...errors import ExchangeError
from ...folder.party import (
    NO_MODEL,
    SEALED,
    AtHome,
    Folder,
    MappedModel,
    check_logged,
    check_not_older,
    commit_model,
    locked,
    malformed,
    read_sum,
    settle,
)
from ...sums import SUMS_MODEL_KIND, SumsModel
from ..plan import fewest_rows, plan_of, purpose_of_model
from ._added_rows import project_map
from ._own_model import read_own_model

_FACTS = {
    *("party", "project", "project_digest", "context", "model_digest", "estimator", "n_components"),
    *("n_parties", "n_rows", "created", "versions"),
}


def read_model(data: bytes, project: Project, party: str, key: KeyPair, *, where: str) -> tuple[SumsModel, Bundle]:
    """Read a party's `.dcmodel` file of unknown origin: the model within, and the bundle outside.

    The project's analyst has to have signed both.
    """
    bundle = unpack(data, kind=SUMS_MODEL_KIND, signed_by=project.analyst, what=where)
    if bundle.facts.keys() != _FACTS or bundle.members.keys() != {SEALED}:
        raise malformed(f"{where} has other facts or parts than a model for one party")
    if bundle.facts["party"] != party:
        raise ExchangeError(
            "WRONG_RECIPIENT",
            f"{where} was made for party {bundle.facts['party']!r}, and this is {party!r}. Ask the analyst for your "
            "own.",
        )
    if bundle.facts["project_digest"] != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{where} was made for another version of project {project.name!r}, or another run. Compare what "
            "`datacollab project show` prints on both sides, and ask for a new one.",
        )
    try:
        inner = unseal(bundle.members[SEALED], key, purpose=purpose_of_model(party, project))
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where}: {error}") from None
    if digest(inner) != bundle.facts["model_digest"]:
        raise malformed(f"{where} holds another model than it says")
    # The outside is the envelope of one party; the model within is the same for all.
    model = SumsModel.from_bytes(inner, signed_by=project.analyst)
    expected = {"context": model.context.hex(), "n_components": len(model.fit.coefficients)}
    if any(bundle.facts[name] != value for name, value in expected.items()):
        raise malformed(f"{where} holds a model that differs from its facts")
    return model, bundle


_LARGEST_OUTPUT = 10.0
"""Encoded targets are from -1 to 1; a model with far larger outputs on the anchor was not fitted to them."""


def install_sums(folder: Folder, model_file: Path, *, older: bool) -> dict[str, Any]:
    """Install the one model of all parties' sums; see `PartyFolder.install`."""
    data = read_regular(model_file)
    with locked(folder):
        home, bundle, share_digest = _of_sums(folder, data, model_file)
        if not older:
            check_not_older(bundle, model_file, folder.files.model, made_of="context")
        check_logged(folder, share_digest)
        entry = {"digest": bundle.digest, "file": model_file.name, "model_digest": bundle.facts["model_digest"]}
        entry |= {name: bundle.facts[name] for name in ("estimator", "created", "context")}
        outcome = {"sentence": home.sentence, "benefit": None}
        commit_model(folder, data, entry, facts={"model_digest": bundle.digest, **outcome}, members={})
    return bundle.facts | {"method": "sums", **outcome}


def sums_at_home(folder: Folder) -> AtHome:
    """Return the sides that a party predicts with."""
    settle(folder)
    file = folder.files.model
    _read_message(folder)
    if not file.is_file():
        raise ExchangeError("NOT_INSTALLED", f"{folder.path} holds no model. {NO_MODEL}")
    home, _, _ = _of_sums(folder, read_regular(file), file)
    return home


def _of_sums(folder: Folder, data: bytes, source: Path) -> tuple[AtHome, Bundle, str]:
    """Read and check the model of all parties' sums; return its sides, its bundle, and the message's identity."""
    project = folder.project
    anchor = folder.anchor
    where = str(source)
    kept = _read_message(folder)
    model, bundle = read_model(data, project, folder.name, folder.key, where=where)
    common = project_map(project, anchor)
    commitment = str(kept.facts["anchor_commitment"])
    plan = plan_of(project, anchor_commitment=commitment, n_components=common.n_components)
    # Counts make no model.
    if model.context.hex() != kept.facts["context"] or plan.ridge is None:
        raise ExchangeError(
            "WRONG_SHARE",
            f"{where} was made of another sum than the one that this party was in. Have the analyst integrate the "
            "files of this run.",
        )
    agreed = plan.ridge
    if (model.classes, model.limits, model.scale) != (agreed.classes, agreed.limits, agreed.scale):
        raise malformed(f"{where} is of other classes, or of another range or scale, than project {project.name!r}")
    # The analyst signs the file, but the party alone can compare it with its map.
    if len(model.fit.coefficients) != common.n_components:
        raise malformed(
            f"{where} has coefficients for {len(model.fit.coefficients)} columns, and the common map has "
            f"{common.n_components}"
        )
    _check_size(model, plan.noise * plan.agreed.excess, len(plan.roster) * fewest_rows(project), where)
    outputs = model.fit.predict(common.transform(anchor.rows))
    if not (np.abs(outputs) <= _LARGEST_OUTPUT).all():
        raise malformed(f"In a trial with the anchor, {where} gives what no target can be")
    classes = None if model.classes is None else np.asarray(model.classes)
    # Predictions keep the coefficients of all rows, and their mean is that of the party's own.
    moved = replace(model, fit=model.fit.move_intercept(**kept.facts["own"]))
    collaboration = MappedModel(name="ridge regression on sums", model=moved, map=common.transform, classes=classes)
    sides = {"collaboration": collaboration}
    own, reason = read_own_model(folder)
    sentence = "Predictions are those of the one model of all parties' rows, with an intercept of your own rows."
    if own is None:
        sentence += f" There is no own model beside it. {reason}"
    else:
        from ...own import CombinedModel

        both = CombinedModel(common, moved, own)
        known: dict[str, Any] = {"name": "combined with the party's own", "model": both, "classes": classes}
        beside = {name: MappedModel(options={"using": name}, **known) for name in both.sides if name not in sides}
        sides = beside | sides
        sentence = (
            f"Predictions combine the model of all parties' rows ({1 - both.weight:.0%}) and your own "
            f"({both.weight:.0%}): {own.words}."
        )
    return AtHome(sides=sides, sentence=sentence, model=model, may_distil=False), bundle, kept.facts["entry"]["digest"]


def _check_size(model: SumsModel, noise: float, together: int, where: str) -> None:
    """Refuse coefficients that no ridge regression on so many rows has, with the agreed noise."""
    fit = model.fit
    n_components, n_outputs = fit.coefficients.shape
    least = noise * math.sqrt(2 * n_components)
    if not (math.isfinite(fit.n_rows) and math.isfinite(fit.alpha)) or fit.alpha < least * (1 - 1e-9):
        raise malformed(f"{where} has a smaller penalty than its noise demands")
    # Far more noise than any run has: errors of 32 standard deviations do not happen.
    slack = 32 * noise
    if fit.n_rows < together - slack:
        raise malformed(f"{where} says that there are {fit.n_rows:.0f} rows, and the parties add {together} at least")
    # The ridge solution's norm is at most |T| / (2 sqrt(alpha)); noise in the moments adds |E| / alpha.
    of_rows = math.sqrt(fit.n_rows * n_outputs / fit.alpha)
    of_noise = slack * math.sqrt(n_components * n_outputs) / fit.alpha
    if float(np.linalg.norm(fit.coefficients)) > of_rows + of_noise:
        raise malformed(f"{where} has larger coefficients than ridge regression gives")


def _read_message(folder: Folder) -> Bundle:
    kept = read_sum(folder, folder.project)
    if kept is None:
        raise ExchangeError(
            "NOT_SHARED", f"{folder.path} has added nothing to this project's sums. Run `datacollab party share` first."
        )
    return kept
