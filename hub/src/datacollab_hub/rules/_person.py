"""The person who asks: a key, its roles in a project, and roles that go together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from datacollab.bundle import PublicKey
from datacollab.errors import ExchangeError


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


def check_invited(role: Role, roles: Collection[Role]) -> None:
    """Refuse a role that does not go together with those that a key has in the project.

    An owner may be a party; all else excludes one another: the analyst must know neither the anchor nor how large it
    is, and an auditor sees all others' files.

    Raises
    ------
    ExchangeError
        ``NOT_ALLOWED``.
    """
    # The one pair of roles that a key may have: owners often bring rows too.
    together = {Role.OWNER, Role.PARTY}
    if roles and not {role, *roles} <= together and {*roles} != {role}:
        raise ExchangeError(
            "NOT_ALLOWED",
            f"A key that is {' and '.join(sorted(roles))} of the project cannot be its {role} too. Join with another "
            "key.",
        )
