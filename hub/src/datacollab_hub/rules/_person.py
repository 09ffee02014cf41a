"""The person who asks: a key, and its roles in a project."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from datacollab.bundle import PublicKey

__all__ = ["MEMBERS", "Person", "Role"]


class Role(StrEnum):
    """A role of a key on the hub, or in the project of a request."""

    ANYBODY = "anybody"
    INVITED = "invited"
    KNOWN = "known"
    OPENER = "opener"
    PARTY = "party"
    ANALYST = "analyst"
    AUDITOR = "auditor"
    OWNER = "owner"


MEMBERS = frozenset({Role.PARTY, Role.ANALYST, Role.AUDITOR, Role.OWNER})
"""Roles in a project."""


@dataclass(frozen=True)
class Person:
    """A key that signed a request.

    Attributes
    ----------
    key : PublicKey
    roles : frozenset of Role
        Of the hub, and of the project that the request names, where it names one.
    """

    key: PublicKey
    roles: frozenset[Role] = field(default_factory=frozenset)

    @property
    def fingerprint(self) -> str:
        """The hub's name for the key."""
        return self.key.fingerprint

    @property
    def is_member(self) -> bool:
        """Whether it has a role in the project."""
        # Roles on the hub, as that of an opener, give nobody a place in a project.
        return bool(self.roles & MEMBERS)
