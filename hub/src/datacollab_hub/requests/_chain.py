"""The log of a project on a hub: entries chained by their hashes, for the hub to write and for all to check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from datacollab.errors import ExchangeError
from datacollab.folder.log import CHAIN_START, Chain

LOG_START = CHAIN_START
"""What the first entry names as the one before it."""


def hub_entry(
    project: str, seq: int, time: str, who: str, action: str, facts: Mapping[str, Any], previous: str
) -> dict[str, Any]:
    """An entry with its digest, which covers the project's id and all else in it.

    Parameters
    ----------
    project : str
        Its id on the hub, so that no other project's log can be shown in its place.
    seq : int
        From 1.
    time : str
        By the hub's clock, in ISO 8601.
    who : str
        Fingerprint of the key that asked for the action, or ``hub``.
    action : str
    facts : mapping of str to object
        Facts that JSON can hold.
    previous : str
        Digest of the entry before, or `LOG_START`.

    Examples
    --------
    >>> entry = hub_entry("p", 1, "2027-01-31T12:00:00Z", "hub", "opened", {}, LOG_START)
    >>> check_hub_log("p", [entry]) == entry["digest"]
    True
    """
    # A copy of the facts: the caller's mapping may change after the digest was taken.
    return _chain(project).entry(seq, previous, time=time, who=who, action=action, facts=dict(facts))


def check_hub_log(
    project: str, entries: Iterable[Mapping[str, Any]], *, after: int = 0, previous: str = LOG_START
) -> str:
    """Check that entries follow from those that were seen before.

    Parameters
    ----------
    project : str
    entries : iterable of mapping
    after : int, default=0
        Number of the last entry that was seen.
    previous : str
        Its digest.

    Returns
    -------
    str
        Digest of the last entry; ``previous`` where there is none.

    Raises
    ------
    ExchangeError
        ``LOG_BROKEN``, naming the project and the first entry that does not follow.
    """
    return _chain(project).check(entries, after=after, previous=previous)


def _chain(project: str) -> Chain:
    def broken(seq: int) -> ExchangeError:
        return ExchangeError(
            "LOG_BROKEN",
            f"Entry {seq} of the hub's log does not follow from the one before it, in the project {project}: "
            "entries were changed, moved or removed. Keep what the hub sent, and compare it with what other "
            "members have.",
        )

    return Chain(
        # A domain of its own: digests of a folder's log are of no use here.
        b"datacollab hub log 1\n",
        broken,
        number="seq",
        hash="digest",
        others=("time", "who", "action"),
        # Hashed, though no entry carries it: another project's log cannot stand in for this one's.
        besides={"project": project},
    )
