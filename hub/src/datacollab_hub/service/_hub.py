"""A hub: its store, its operator's settings, and its clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Connection

from datacollab.errors import ExchangeError

from ..rules import Settings, check_id, not_found
from ..store import ProjectRow, Store, project_row
from ._claims import Claims
from ._views import Views

__all__ = ["Hub", "require_agreement", "the_project"]


@dataclass(frozen=True)
class Hub:
    """See the module.

    Attributes
    ----------
    store : Store
    settings : Settings
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
