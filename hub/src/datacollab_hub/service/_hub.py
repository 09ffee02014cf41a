"""A hub: its store, its operator's settings, its clock, and the uploads that are being ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection

from datacollab.errors import ExchangeError

from ..rules import Settings, check_id, not_found
from ..store import ProjectRow, Store, project_row
from ._views import Views


class Claims:
    """One request at a time for each upload; others are told to ask again, as finishing reads all of a file."""

    def __init__(self) -> None:
        # In memory, so of this process alone; between processes the database decides, which drops an upload once.
        self._held: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def of(self, upload: str) -> Iterator[None]:
        """Hold an upload.

        Raises
        ------
        ExchangeError
            ``BUSY``.
        """
        with self._lock:
            # Refused and not made to wait: a thread that waits answers nobody.
            if upload in self._held:
                raise ExchangeError("BUSY", "Another request is just completing this upload. Ask again in a moment.")
            self._held.add(upload)
        try:
            yield
        finally:
            with self._lock:
                self._held.remove(upload)


@dataclass(frozen=True)
class Hub:
    """See the module.

    Attributes
    ----------
    clock : callable
        Seconds since 1970.
    claims : Claims
        Uploads that are being ended.
    views : Views
        Views of projects.
    """

    store: Store
    settings: Settings
    # Given from outside, so that tests can let time pass.
    clock: Callable[[], float] = time.time
    claims: Claims = field(default_factory=Claims)
    views: Views = field(default_factory=Views)


def the_project(connection: Connection, project: str, *, lock: bool = False) -> ProjectRow:
    """A project that is there.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``.
    """
    # Only what has the form of an id is looked up.
    row = project_row(connection, check_id(project), lock=lock)
    if row is None:
        raise not_found()
    return row


def require_agreement(row: ProjectRow) -> str:
    """The digest of the project file that holds.

    Raises
    ------
    ExchangeError
        ``AGREEMENT_MISSING``.
    """
    if row.digest is None:
        raise ExchangeError(
            "AGREEMENT_MISSING",
            "The project has no project file on the hub yet. Its owner sends it with `datacollab remote push`.",
        )
    return row.digest
