"""The common model as a file for one party: signed by the analyst, sealed to the party, the same within for all."""

from __future__ import annotations

from datetime import UTC, datetime

from ..._version import __version__
from ...bundle import Bundle, KeyPair, digest, pack, seal, unpack, unseal
from ...errors import ExchangeError
from ...sums import SUMS_MODEL_KIND, SumsModel
from ..project import Project

__all__ = ["model_to_bytes", "read_model"]

_SEALED = "sealed.bin"
_FACTS = {
    *("party", "project", "project_digest", "context", "model_digest", "estimator", "n_components"),
    *("n_parties", "n_rows", "created", "versions"),
}


def model_to_bytes(model: SumsModel, project: Project, party: str, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcmodel` file for one party.

    What is sealed within is the same for all parties, so that they can compare its digest.

    Parameters
    ----------
    model : SumsModel
    project : Project
    party : str
    key : KeyPair
        The analyst's.
    """
    data = model.to_bytes(key=key)
    outside = {
        "party": party,
        "project": project.name,
        "project_digest": project.digest,
        "context": model.context.hex(),
        "model_digest": digest(data),
        "estimator": "ridge regression on sums",
        "n_components": len(model.fit.coefficients),
        "n_parties": len(project.parties),
        "n_rows": round(model.fit.n_rows),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"datacollab": __version__},
    }
    sealed = seal(data, [project.parties[party]], purpose=_purpose(party, project))
    return pack(SUMS_MODEL_KIND, outside, {_SEALED: sealed}, key=key)


def read_model(data: bytes, project: Project, party: str, key: KeyPair, *, where: str) -> tuple[SumsModel, Bundle]:
    """Read a model of unknown origin: the model within, and the bundle outside.

    Parameters
    ----------
    data : bytes
        Of a `.dcmodel` file.
    project : Project
        Whose analyst has to have signed it, outside and within.
    party : str
    key : KeyPair
        The party's.
    where : str
        What an error calls the file.

    Raises
    ------
    ExchangeError
        Of the kinds "verification" and "model".
    """
    bundle = unpack(data, kind=SUMS_MODEL_KIND, signed_by=project.analyst, what=where)
    if bundle.facts.keys() != _FACTS or bundle.members.keys() != {_SEALED}:
        raise _malformed(f"{where} has other facts or parts than a model for one party")
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
        inner = unseal(bundle.members[_SEALED], key, purpose=_purpose(party, project))
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where}: {error}") from None
    if digest(inner) != bundle.facts["model_digest"]:
        raise _malformed(f"{where} holds another model than it says")
    model = SumsModel.from_bytes(inner, signed_by=project.analyst)
    said = {"context": model.context.hex(), "n_components": len(model.fit.coefficients)}
    if any(bundle.facts[name] != value for name, value in said.items()):
        raise _malformed(f"{where} holds a model of which it says something else")
    return model, bundle


def _purpose(party: str, project: Project) -> str:
    return f"model of {party} in {project.digest}"


def _malformed(sentence: str) -> ExchangeError:
    return ExchangeError("MODEL_MALFORMED", f"{sentence}. Do not use it; ask the analyst.")
