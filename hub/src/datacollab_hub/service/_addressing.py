"""For whom a file is, by its kind and the members."""

from __future__ import annotations

from collections.abc import Sequence

from datacollab.errors import ExchangeError

from ..rules import Kind, Role, not_found
from ..store import Member

__all__ = ["recipient_of"]


def recipient_of(kind: Kind, said: str | None, members: Sequence[Member]) -> str:
    """Fingerprint of whom a file is for; empty for all parties.

    Parameters
    ----------
    kind : Kind
    said : str, optional
        Name or fingerprint of a party, if the file is for one.
    members : sequence of Member

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``, ``NOT_FOUND``.
    """
    if not kind.names_recipient:
        # Its kind decides who gets it: no sender steers a share to anybody else.
        always = ""
        if not kind.to_all:
            always = next(each.fingerprint for each in members if each.role == kind.to)
        if said not in (None, always):
            raise ExchangeError(
                "REQUEST_MALFORMED",
                f"recipient: a file of the kind {kind.name} goes where it always goes. Leave it out.",
            )
        return always
    for each in members:
        # People know the name, programs the key.
        if each.role == Role.PARTY and said in (each.name, each.fingerprint):
            return each.fingerprint
    if said is None:
        raise ExchangeError("REQUEST_MALFORMED", "recipient: the name of a party of the project is wanted.")
    raise not_found()
