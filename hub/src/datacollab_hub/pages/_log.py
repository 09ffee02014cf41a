"""The log, with its chain checked, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query, Response

from datacollab.errors import ExchangeError

from .. import service
from ..requests import LOG_START, check_hub_log
from ..service import Hub
from ._files import KIND_WORDS, names_of
from ._visit import Visiting, new_router

ROUTER = new_router()
_ON_A_PAGE = 50


@dataclass(frozen=True)
class _Read:
    """A log that was read from its beginning.

    Attributes
    ----------
    entries : list of dict
        Those of one page.
    head : str
        Digest of the last one.
    broken : str or None
        Why the chain does not hold.
    """

    entries: list[dict[str, Any]]
    n_entries: int
    head: str
    broken: str | None


@ROUTER.get("/projects/{project}/log")
def log(visit: Visiting, project: str, after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None) -> Response:
    """Entries after a number; the last ones by default."""
    status = service.project_status(visit.hub, visit.person, project)
    last = status["head"]["seq"]
    first = max(0, last - _ON_A_PAGE)
    if after is not None:
        first = min(after, last)
    read = _read(visit.hub, project, first)
    earlier = None
    later = None
    if first > 0:
        earlier = max(0, first - _ON_A_PAGE)
    if first + _ON_A_PAGE < read.n_entries:
        later = first + _ON_A_PAGE
    names = names_of(service.project_members(visit.hub, project))
    # Links lead to these alone: the log names files that not every reader may see.
    seen = {file["sha256"] for file in service.list_files(visit.hub, visit.person, project)}
    return visit.show(
        "log.html",
        project=status,
        here="log",
        read=read,
        seen=seen,
        entries=[_describe(each, names) for each in reversed(read.entries)],
        earlier=earlier,
        later=later,
    )


def _read(hub: Hub, project: str, after: int) -> _Read:
    """Read all of a log, as a chain is checked from its beginning, and keep a page of it."""
    seq = 0
    head = LOG_START
    kept = []
    broken = None
    while entries := service.project_log(hub, project, seq):
        if broken is None:
            try:
                head = check_hub_log(project, entries, after=seq, previous=head)
            except ExchangeError as error:
                # The first fault counts: nothing after it can be checked.
                broken = str(error)
        kept += [each for each in entries if after < each["seq"] <= after + _ON_A_PAGE]
        seq = entries[-1]["seq"]
        if broken is not None:
            # As it stands there, to be compared with what members have seen.
            head = str(entries[-1]["digest"])
    return _Read(kept, seq, head, broken)


def _describe(entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """An entry for people."""
    # A log that was changed may hold anything.
    facts = entry["facts"]
    if not isinstance(facts, dict):
        facts = {}
    who = str(entry["who"])
    return {
        "seq": entry["seq"],
        "seconds": _seconds(str(entry["time"])),
        "who": who,
        "name": names.get(who),
        "what": _sentence(str(entry["action"]), facts, names),
        "sha256": facts.get("sha256"),
        "digest": entry["digest"],
    }


def _seconds(time: str) -> int | None:
    try:
        return int(datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _sentence(action: str, facts: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Describe an action in a sentence.

    Examples
    --------
    >>> _sentence("approved", {"name": "north", "role": "party", "key": "abcd-efgh-ijkl-mnop"}, {})
    'let in north as party, key abcd-efgh-ijkl-mnop'
    """
    kind = KIND_WORDS.get(str(facts.get("kind")), str(facts.get("kind"))).lower()
    recipient = facts.get("recipient")
    to = ""
    if recipient:
        to = f", for {names.get(str(recipient), recipient)}"
    name, role, key = (facts.get(each) for each in ("name", "role", "key"))
    sentences = {
        "opened": f"opened the project {name}",
        "invited": f"invited {name} as {role}",
        "asked": f"asked to join as {role}, by the name {name}",
        "approved": f"let in {name} as {role}, key {key}",
        "refused": f"did not let in {name} as {role}, key {key}",
        "agreement": f"sent the project file, revision {facts.get('revision')}",
        "received": f"sent a file: {kind}{to}",
        "fetched": "fetched a file",
        "withdrawn": f"took back a file: {kind}",
    }
    return sentences.get(action, action)
