"""Whether a model may be installed: whose it is, and whether it works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..bundle import Bundle, Limits, unpack
from ..errors import DataCollabError, ExchangeError
from ..model import MODEL_KIND, PartyModel, model_from
from ..project import Project

__all__ = ["check_model_works", "open_model", "read_model"]


def read_model(path: Path) -> bytes:
    """The file as a whole, so that what is checked is what is installed.

    Raises
    ------
    ExchangeError
        TOO_LARGE, before anything is read.
    """
    size, most = path.stat().st_size, Limits().total_bytes
    if size > most:
        raise ExchangeError("TOO_LARGE", f"{path} has {size} bytes; {most} are allowed. Check where it comes from.")
    return path.read_bytes()


def open_model(
    data: bytes, source: Path, project: Project, party: str, share_digest: str | None
) -> tuple[PartyModel, Bundle]:
    """Read a model, and check that it was made for this party from its last share.

    Parameters
    ----------
    data : bytes
    source : Path
        Whom an error names.
    project : Project
        Whose analyst has to have signed it.
    party : str
    share_digest : str or None
        Identity of the party's last share.

    Raises
    ------
    ExchangeError
        Of the kinds "verification" and "model".
    """
    bundle = unpack(data, kind=MODEL_KIND, signed_by=project.analyst)
    facts = bundle.facts
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
            "show` prints on both sides, and ask for a new model.",
        )
    if facts.get("share_digest") != share_digest:
        raise ExchangeError(
            "WRONG_SHARE",
            f"{source} was made from another share of party {party!r} than its last one. Send the file in the outbox "
            "to the analyst, and install the model made from it.",
        )
    return model_from(bundle), bundle


def check_model_works(model: PartyModel, anchor_representation: FloatArray, project: Project) -> None:
    """Predict the anchor at home, as a trial.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, when that fails, or gives something other than the project's targets.
    """
    try:
        predicted = model.predict(anchor_representation)
    except DataCollabError as error:
        raise _malformed(f"It does not take this party's representation: {error}") from None
    except Exception as error:
        raise _malformed(f"A trial with the anchor failed ({type(error).__name__})") from None
    classes = getattr(model.estimator, "classes_", predicted)
    if predicted.shape != (len(anchor_representation),) or not all(
        _are_targets(y, project) for y in (predicted, classes)
    ):
        raise _malformed(f"In a trial it predicted something other than the targets of project {project.name!r}")


def _are_targets(predicted: Any, project: Project) -> bool:
    if project.task.kind == "classification":
        return bool(np.isin(predicted, np.asarray(project.task.classes)).all())
    return predicted.dtype.kind in "biuf" and bool(np.isfinite(predicted).all())


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")
