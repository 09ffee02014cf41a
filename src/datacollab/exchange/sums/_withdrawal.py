"""A party's signed word that it has left a run: without it, a run of the others could tell its sums."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from ...bundle import KeyPair, pack, unpack
from ...errors import ExchangeError

__all__ = ["Withdrawal", "read_withdrawal", "withdrawal_to_bytes"]

_KIND = "datacollab.withdrawal"
_TYPES = {"party": str, "project": str, "project_digest": str, "had_shared": bool, "created": str}


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """What a party says when it leaves a run.

    Attributes
    ----------
    party, project, project_digest : str
        Of the run: another run is another digest.
    had_shared : bool
        Whether its message had been released.
    created : str
        When, in ISO 8601.
    signer : str
        The party's public key, as text.
    """

    party: str
    project: str
    project_digest: str
    had_shared: bool
    created: str
    signer: str


def withdrawal_to_bytes(party: str, project: str, project_digest: str, had_shared: bool, key: KeyPair) -> bytes:
    """Return the bytes of a `.dcwithdrawal` file, signed with the party's key."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    said = Withdrawal(
        party=party,
        project=project,
        project_digest=project_digest,
        had_shared=had_shared,
        created=created,
        signer=key.public.text,
    )
    return pack(_KIND, {name: value for name, value in asdict(said).items() if name in _TYPES}, {}, key=key)


def read_withdrawal(data: bytes, *, where: str) -> Withdrawal:
    """Read a withdrawal of unknown origin; the caller compares its signer with the run's key of that party.

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, and what `datacollab.bundle.unpack` raises.
    """
    bundle = unpack(data, kind=_KIND, what=where)
    facts = bundle.facts
    whole = facts.keys() == _TYPES.keys() and all(type(facts[name]) is kind for name, kind in _TYPES.items())
    if bundle.signer is None or bundle.members or not whole:
        raise ExchangeError(
            "SHARE_MALFORMED", f"{where} is no signed withdrawal. Ask the party to run `datacollab party withdraw`."
        )
    return Withdrawal(**facts, signer=bundle.signer.text)
