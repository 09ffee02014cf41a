"""Roles that a key may take, and project files that may follow one another."""

from __future__ import annotations

from collections.abc import Collection

from datacollab.errors import ExchangeError

from ._person import Role

__all__ = ["check_follows", "check_invited"]


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


def check_follows(revision: int, digest: str, there: tuple[int, str] | None) -> bool:
    """Refuse a project file that does not follow the one that is there; whether it is another one.

    Parameters
    ----------
    revision, digest
        Of the new one.
    there : (int, str), optional
        Revision and digest of the one that holds.

    Raises
    ------
    ExchangeError
        ``PROJECT_OLDER``.
    """
    if there is None:
        return True
    # The very file once more, after an answer that was lost: no fault, and no entry of the log.
    if digest == there[1]:
        return False
    # An equal number with other words would be a fork that members cannot order.
    if revision <= there[0]:
        raise ExchangeError(
            "PROJECT_OLDER",
            f"The file is revision {revision} of the project; the hub has {there[0]}. If the new one is meant, sign it "
            "again with a higher revision.",
        )
    return True
