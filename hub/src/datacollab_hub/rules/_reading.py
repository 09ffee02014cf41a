"""Who sees that a file is there, and who is given it."""

from __future__ import annotations

from dataclasses import dataclass

from ._kinds import KINDS
from ._person import Person, Role

__all__ = ["FileFacts", "may_fetch", "may_see"]


@dataclass(frozen=True)
class FileFacts:
    """Facts that decide who may fetch a file.

    Attributes
    ----------
    kind : str
    sender : str
        Fingerprint.
    recipient : str
        Fingerprint; empty where it is for all parties.
    is_current : bool
        Whether it belongs to the project file that holds now.
    """

    kind: str
    sender: str
    recipient: str
    is_current: bool


def may_fetch(person: Person, file: FileFacts) -> bool:
    """Whether a file is this person's to have: its sender's and its recipients', nobody else's.

    Files for all parties are for those of the project file that it belongs to: a new one may name others, an analyst
    among them who was a party.
    """
    # An empty recipient stands for all parties, and is no key's fingerprint.
    if person.fingerprint in (file.sender, file.recipient):
        return True
    return KINDS[file.kind].to_all and file.is_current and Role.PARTY in person.roles


def may_see(person: Person, file: FileFacts) -> bool:
    """Whether a person sees that a file is there, and how large it is."""
    # Owner and auditor watch over the exchange: that a file came, and never its bytes.
    return may_fetch(person, file) or bool({Role.OWNER, Role.AUDITOR} & person.roles)
