"""Sums by files: the plan that a project and an anchor make, the file of the model, and a party's withdrawal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from .._version import __version__
from ..agreement import Project
from ..bundle import Bundle, KeyPair, digest, pack, seal, unpack, unseal
from ..errors import ExchangeError
from ..study import StudyPlan
from ..sums import SUMS_MODEL_KIND, SumsModel, read_mask_card
from .study import study_statistics

__all__ = ["DELTA", "SumsFacts", "Withdrawal", "fewest_rows", "model_to_bytes", "plan_of", "read_model"]
__all__ += ["read_sums_facts", "read_withdrawal", "withdrawal_to_bytes"]

# With fewer rows a party hides nobody, so no project may allow them.
_FEWEST_OWN_ROWS = 20
DELTA = 1e-5
"""Delta of the differential privacy that a project may ask for."""
_DIGITS = set("0123456789abcdef")
_HASH_DIGITS = 64


@dataclass(frozen=True, kw_only=True)
class SumsFacts:
    """The facts outside of a file of a party's sums."""

    project_digest: str
    anchor_commitment: str
    """Of the party's anchor (`Anchor.commitment`); equal in all files of one sum, and empty if it has no anchor."""
    n_components: int
    """Columns of the common map: those of the project, or fewer if the anchor's rank is smaller; 0 without anchor."""
    created: str
    """In ISO 8601."""

    def facts(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return asdict(self)


def fewest_rows(project: Project) -> int:
    """Return the fewest own rows that a party may add."""
    return max(_FEWEST_OWN_ROWS, project.min_rows)


def read_sums_facts(facts: Mapping[str, Any], project: Project, party: str, where: str) -> SumsFacts:
    """Read the facts outside of a party's file of sums, and check them against the project and its deadline."""
    try:
        said = SumsFacts(**{each.name: facts[each.name] for each in fields(SumsFacts)})
        n_digits = _HASH_DIGITS
        least = 1
        most = project.most_components
        if not project.has_anchor:
            # Of a study, which has no common map.
            n_digits = least = most = 0
        if not (set(said.anchor_commitment) <= _DIGITS and len(said.anchor_commitment) == n_digits):
            raise ValueError
        if type(said.n_components) is not int or not least <= said.n_components <= most:
            raise ValueError
        # One spelling of a time, so that a deadline cannot be passed by another.
        created = datetime.fromisoformat(said.created)
        if created.tzinfo is None or created.astimezone(UTC).isoformat(timespec="seconds") != said.created:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} does not say what it should of project, anchor, columns and time. Have it "
            "sent again.",
        ) from None
    if said.project_digest != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"Party {party!r} made {where} for another version of project {project.name!r}, or another run. Compare "
            "what `datacollab project show` prints on both sides.",
        )
    project.check_deadline(created.date())
    return said


def plan_of(project: Project, *, anchor_commitment: str, n_components: int) -> StudyPlan:
    """Return the plan of a project that shares sums; its context depends on the whole agreement."""
    sharing = project.sums
    # Each card carries its party's signature: the project's owner cannot put in a key of its own.
    roster: dict[str | int, bytes] = {
        name: read_mask_card(card, project.parties[name]) for name, card in sharing.mask_keys.items()
    }
    facts = {
        "project_digest": project.digest,
        "anchor_commitment": anchor_commitment,
        "run": sharing.run,
        "purpose": project.purpose,
        "columns": list(project.feature_names),
    }
    statistics = study_statistics(project, n_components=n_components)
    return StudyPlan(roster, statistics, facts=facts, epsilon=sharing.epsilon, delta=DELTA)


_SEALED = "sealed.bin"
_FACTS = {
    *("party", "project", "project_digest", "context", "model_digest", "estimator", "n_components"),
    *("n_parties", "n_rows", "created", "versions"),
}


def model_to_bytes(model: SumsModel, project: Project, party: str, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcmodel` file for one party.

    The sealed part is the same for all parties, so that they can compare its digest.  `key` is the analyst's.
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
    # Sealed to one party for one version of the project: a file in the wrong hands opens nowhere else.
    sealed = seal(data, [project.parties[party]], purpose=_purpose(party, project))
    return pack(SUMS_MODEL_KIND, outside, {_SEALED: sealed}, key=key)


def read_model(data: bytes, project: Project, party: str, key: KeyPair, *, where: str) -> tuple[SumsModel, Bundle]:
    """Read a party's `.dcmodel` file of unknown origin: the model within, and the bundle outside.

    The project's analyst has to have signed both.
    """
    bundle = unpack(data, kind=SUMS_MODEL_KIND, signed_by=project.analyst, what=where)
    if bundle.facts.keys() != _FACTS or bundle.members.keys() != {_SEALED}:
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
        inner = unseal(bundle.members[_SEALED], key, purpose=_purpose(party, project))
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


def _purpose(party: str, project: Project) -> str:
    return f"model of {party} in {project.digest}"


def malformed(sentence: str, code: str = "MODEL_MALFORMED") -> ExchangeError:
    """Return the error for a file of the analyst's that cannot be used."""
    return ExchangeError(code, f"{sentence}. Do not use it; ask the analyst.")


_WITHDRAWAL = "datacollab.withdrawal"
_TYPES = {"party": str, "project": str, "project_digest": str, "had_shared": bool, "created": str}


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """A party's signed statement that it has left a run; without it, a run of the others could reveal its sums."""

    party: str
    project: str
    project_digest: str
    """Another run is another digest."""
    had_shared: bool
    """Whether the party's message had been released."""
    created: str
    """In ISO 8601."""
    signer: str
    """The party's public key as text."""


def withdrawal_to_bytes(party: str, project: str, project_digest: str, had_shared: bool, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcwithdrawal` file, signed with the party's key."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    facts = {"party": party, "project": project, "project_digest": project_digest, "had_shared": had_shared}
    return pack(_WITHDRAWAL, {**facts, "created": created}, {}, key=key)


def read_withdrawal(data: bytes, *, where: str) -> Withdrawal:
    """Read a withdrawal of unknown origin; the caller compares its signer with the run's key of that party."""
    bundle = unpack(data, kind=_WITHDRAWAL, what=where)
    facts = bundle.facts
    # Every entry and its type, as the file may come from anybody.
    whole = facts.keys() == _TYPES.keys() and all(type(facts[name]) is kind for name, kind in _TYPES.items())
    if bundle.signer is None or bundle.members or not whole:
        raise ExchangeError(
            "SHARE_MALFORMED", f"{where} is no signed withdrawal. Ask the party to run `datacollab party withdraw`."
        )
    return Withdrawal(**facts, signer=bundle.signer.text)
