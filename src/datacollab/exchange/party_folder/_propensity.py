"""The analyst's propensity model for a party: whose it is, and what it is made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...bundle import Bundle, KeyPair, is_container, unpack, unseal
from ...errors import ExchangeError
from ...model import MODEL_KIND, PartyModel, model_from
from ..project import Project
from ._installation import check_addressed, read_model
from ._share_file import SEALED

__all__ = ["open_propensity"]


def open_propensity(
    source: Path, project: Project, key: KeyPair, party: str, share_digest: str
) -> tuple[PartyModel, Bundle]:
    """Read a propensity model, and check that it was made for this party from its last share.

    Parameters
    ----------
    source : Path
    project : Project
        Whose analyst has to have signed it.
    key : KeyPair
        The party's, to which it is sealed.
    party : str
    share_digest : str
        Identity of the party's last share.

    Raises
    ------
    ExchangeError
        Of the kinds "verification" and "model".
    """
    data = read_model(source)
    if not is_container(data):
        raise ExchangeError(
            "BUNDLE_MALFORMED",
            f"{source} is no bundle; the .dcpropensity that the analyst sent is wanted. Give that file.",
        )
    bundle = unpack(data, kind=MODEL_KIND, signed_by=project.analyst, what=str(source))
    check_addressed(bundle, source, project, party, share_digest)
    if bundle.members.keys() != {SEALED} or bundle.facts.get("target") not in ("ATE", "ATT"):
        raise _malformed(f"{source} holds no propensity: it is not sealed, or does not say of which effect it is")
    try:
        # Another purpose than a model's to predict with, so that neither is taken for the other.
        inner = unseal(bundle.members[SEALED], key, purpose=f"propensity of {party} in {project.digest}")
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{source}: {error}") from None
    model = model_from(unpack(inner, kind=MODEL_KIND, what=f"What is sealed in {source}"))
    classes = getattr(model.estimator, "classes_", None)
    gives_two = hasattr(model.estimator, "predict_proba") and classes is not None
    if model.party != party or not gives_two or not np.array_equal(np.asarray(classes), [0, 1]):
        raise _malformed(f"{source} holds another model than of who is treated (1) and who is not (0)")
    return model, bundle


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")
