"""From whom a bundle is, and for whom, by the project that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..bundle import Envelope, PublicKey
from ..errors import ExchangeError
from ..exchange.project import Project
from ._kinds import KINDS, Kind, kind_of

__all__ = ["Addressed", "addressed"]

_SEALED = "sealed.bin"


@dataclass(frozen=True)
class Addressed:
    """What was found.

    Attributes
    ----------
    kind : Kind
    sender : PublicKey
        Who has signed it, as the project wants it.
    recipients : tuple of PublicKey
    party : str or None
        Whom it is from, or for; None of an anchor.
    created : datetime
        By the sender's clock.
    sealed : bool
        Whether only its recipients can read it.
    """

    kind: Kind
    sender: PublicKey
    recipients: tuple[PublicKey, ...]
    party: str | None
    created: datetime
    sealed: bool

    @property
    def file_name(self) -> str:
        """What it is called in a folder."""
        return f"{self.party or self.kind.name}{self.kind.suffix}"


def addressed(bundle: Envelope, project: Project, what: str) -> Addressed:
    """Check that a bundle belongs to a project, and is signed by the member whose part it is to make it.

    Parameters
    ----------
    bundle : Envelope
        Verified: whole, its signature valid.
    project : Project
    what : str
        What an error calls it.

    Raises
    ------
    ExchangeError
        WRONG_KIND, PROJECT_HASH_MISMATCH, NOT_A_MEMBER, SIGNATURE_MISSING, SIGNATURE_INVALID or BUNDLE_MALFORMED.
    """
    kind = kind_of(bundle.kind, bundle.facts)
    if kind is None:
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {bundle.kind}, which is not carried; one of {', '.join(KINDS)} is wanted."
        )
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{what} was made for another version of project {project.name!r} than {project.fingerprint}. Compare "
            "`datacollab project show` on both sides, and have it made again.",
        )
    party = None if kind.recipient == "parties" else _party(bundle, project, what)
    sender = _keys(kind.sender, project, party)[0]
    if bundle.signer is None:
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    if bundle.signer != sender:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {bundle.signer.fingerprint}; the project wants {sender.fingerprint} for it. Do not "
            "use it, and ask the sender by another way.",
        )
    recipients, sealed = _keys(kind.recipient, project, party), bundle.members.keys() == {_SEALED}
    return Addressed(kind, sender, recipients, party, _created(bundle, what), sealed)


def _party(bundle: Envelope, project: Project, what: str) -> str:
    party = bundle.facts.get("party")
    if not isinstance(party, str) or party not in project.parties:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{what} names a party that is not in project {project.name!r}; its parties are "
            f"{', '.join(project.parties)}. Ask the project's owner.",
        )
    return party


def _keys(role: str, project: Project, party: str | None) -> tuple[PublicKey, ...]:
    if role == "parties":
        return tuple(project.parties.values())
    if role == "party" and party is not None:
        return (project.parties[party],)
    return (project.owner if role == "owner" else project.analyst,)


def _created(bundle: Envelope, what: str) -> datetime:
    said = bundle.facts.get("sealed_at" if bundle.kind == KINDS["anchor"].bundle else "created")
    try:
        created = datetime.fromisoformat(said)  # type: ignore[arg-type]
        if created.utcoffset() is None:
            raise ValueError
    except (TypeError, ValueError):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not say when it was made. Have it sent again.") from None
    return created
