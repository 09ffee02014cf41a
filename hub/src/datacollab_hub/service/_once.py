"""Kinds of files that a party sends once: a second one of the same rows tells more."""

from __future__ import annotations

from sqlalchemy import Connection

from datacollab.errors import ExchangeError

from ..rules import Kind
from ..store import has_live_share, last_live

__all__ = ["is_second", "second_refused"]

_SECOND = {
    "share": "A share of this party is on the hub; two of the same rows tell more than one. Withdraw it first if "
    "another is meant in its place.",
    "sums": "Sums of this party are on the hub, and further ones of the same rows tell more. They are taken once the "
    "analyst's request for a further round, round.dcround, has come after them: ask the analyst to push it. If others "
    "are meant in place of those that are here, withdraw these first.",
}


def is_second(connection: Connection, kind: Kind, project: str, project_digest: str, sender: str) -> bool:
    """Return whether a file that a party sends once is here already, and nobody has asked for another.

    Whoever accepts a file holds the project's row, so that of two uploads at once the later one finds the first.
    """
    if kind.name == "share":
        return has_live_share(connection, project, sender)
    if kind.name != "sums":
        return False
    own = last_live(connection, project, project_digest, "sums", sender)
    asked = last_live(connection, project, project_digest, "round")
    # Ids are in the order in which files came: a request that came after a party's last sums is not answered yet.
    return own is not None and (asked is None or asked < own)


def second_refused(kind: Kind) -> ExchangeError:
    """Return the refusal of a second file of a kind, with the way on."""
    return ExchangeError("ALREADY_SHARED", _SECOND[kind.name])
