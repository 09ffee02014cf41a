"""Views of projects that polls show: read from the database once, and again when a project's log has grown."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from ..rules import FileFacts, Role, check_id, not_found
from ..store import FileRow, Member, ProjectRow, fetches_of, files_of, log_head, members_of, project_row

# Some tens of megabytes of memory; what was not asked for longest goes first.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class View:
    """A project as it was when its log ended with an entry.

    All that is in it is written in the transaction of an entry of the log, so as long as the log ends with the same
    entry, it equals the database.

    Attributes
    ----------
    head : (int, str)
        Number and digest of the entry.
    row : ProjectRow
        Without the project file.
    """

    head: tuple[int, str]
    row: ProjectRow
    members: list[Member]
    files: list[FileRow]
    fetches: dict[int, dict[str, int]]

    @property
    def n_rows(self) -> int:
        """Its part of the room that all views share."""
        return 1 + len(self.members) + len(self.files) + sum(map(len, self.fetches.values()))

    @cached_property
    def names(self) -> dict[str, str]:
        """Members' names by their keys; an owner who is a party has a party's."""
        return {each.fingerprint: each.name for each in self.members if each.role != Role.OWNER}

    @cached_property
    def parties(self) -> dict[str, str]:
        """Parties' names by their keys."""
        return {each.fingerprint: each.name for each in self.members if each.role == Role.PARTY}

    @cached_property
    def listed(self) -> list[tuple[FileFacts, Mapping[str, Any]]]:
        """Facts that decide who sees each file, and its description."""
        return [(facts_of(each, self.row), self._show(each)) for each in self.files]

    def _show(self, file: FileRow) -> dict[str, Any]:
        return {
            "sha256": file.sha256,
            "kind": file.kind,
            "sender": file.sender,
            "sender_name": self.names.get(file.sender),
            "recipient": file.recipient or None,
            "recipient_name": self.names.get(file.recipient),
            "size": file.size,
            "current": file.project_digest == self.row.digest,
            "received": file.received,
            "fetched": self.fetches.get(file.id, {}),
            "withdrawn": file.withdrawn,
        }

    @cached_property
    def standing(self) -> dict[str, Any]:
        """Names of parties: of all, of those that have shared and have not, and of those for whom a file waits.

        After a request for a further round, sums count that came since.  A model waits, answers in its place, or the
        last request. ``rounds`` is the number of requests.
        """
        parties = self.parties
        # Files of an earlier project file count no more.
        live = [each for each in self.files if each.withdrawn is None and each.project_digest == self.row.digest]
        named: list[str] = []
        if self.row.digest:
            # Before there is a project file, a share is expected of nobody.
            named = sorted(parties.values())
        asked = [each.id for each in live if each.kind == "round"]
        last_asked = max(asked, default=0)
        # Sums that came before the last request answer an earlier one.
        answers = [each for each in live if each.kind == "sums" and each.id > last_asked]
        shares = [*answers, *(each for each in live if each.kind == "share")]
        shared = {parties[each.sender] for each in shares if each.sender in parties}
        missing = sorted(set(named) - shared)
        back = [each for each in live if each.kind in ("model", "sums-model", "answers") and each.recipient in parties]
        # A file waits for its party until that party itself was given it.
        waiting = {parties[each.recipient] for each in back if each.recipient not in self.fetches.get(each.id, {})}
        if asked:
            given = self.fetches.get(last_asked, {})
            # Whoever has answered got it in another way.
            waiting |= {name for key, name in parties.items() if name in missing and key not in given}
        return {
            "parties": named,
            "shared": sorted(shared),
            "missing": missing,
            "waiting": sorted(waiting),
            "rounds": len(asked),
        }


class Views:
    """Views that were made, the ones that were wanted last.

    Parameters
    ----------
    most_rows : int
        Of the database, that are kept.
    """

    def __init__(self, most_rows: int = _MOST_ROWS) -> None:
        self._most = most_rows
        self._kept: OrderedDict[str, View] = OrderedDict()
        self._n_rows = 0
        self._lock = threading.Lock()

    def of(self, connection: Connection, project: str) -> View:
        """A project as it is now.

        Raises
        ------
        ExchangeError
            ``NOT_FOUND``.
        """
        # Every change writes an entry, so the project is the same as long as the log's end is.
        head = log_head(connection, check_id(project))
        with self._lock:
            kept = self._kept.get(project)
            if kept is not None and kept.head == head:
                self._kept.move_to_end(project)
                return kept
        # The log's end was read before: where it grows in between, this view is asked for once, and no more.
        view = _read(connection, project, head)
        with self._lock:
            self._drop(project)
            self._kept[project] = view
            self._n_rows += view.n_rows
            # The new view may go as well, where it alone needs more than all the room.
            while self._n_rows > self._most:
                self._drop(next(iter(self._kept)))
        return view

    def _drop(self, project: str) -> None:
        gone = self._kept.pop(project, None)
        if gone is not None:
            self._n_rows -= gone.n_rows


def facts_of(file: FileRow, row: ProjectRow) -> FileFacts:
    """Return the facts that decide who may fetch a file of a project."""
    return FileFacts(file.kind, file.sender, file.recipient, file.project_digest == row.digest)


def _read(connection: Connection, project: str, head: tuple[int, str]) -> View:
    row = project_row(connection, project)
    if row is None:
        raise not_found()
    return View(
        head,
        # The file itself is large, and no poll shows it.
        replace(row, agreement=None),
        members_of(connection, project),
        files_of(connection, project),
        fetches_of(connection, project),
    )
