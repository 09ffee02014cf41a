"""Members of a project, and their agreements, then and now."""

from __future__ import annotations

from datacollab.agreement import Project

from ..rules import not_found
from ..store import AgreementRow, Member, agreement_text, agreements_of, members_of
from ._hub import Hub, require_agreement, the_project
from ._projects import read_agreement

__all__ = ["project_members", "project_revisions", "read_agreed_project"]


def project_members(hub: Hub, project: str) -> list[Member]:
    """All of them: every member may read the project file, which names them, and the log, which names auditors."""
    with hub.store.reading() as connection:
        return members_of(connection, the_project(connection, project).id)


def project_revisions(hub: Hub, project: str) -> list[AgreementRow]:
    """Project files that the hub has, the first one first."""
    with hub.store.reading() as connection:
        return agreements_of(connection, the_project(connection, project).id)


def read_agreed_project(hub: Hub, project: str, revision: int | None = None) -> tuple[Project, bytes]:
    """A project file, its signature verified once more, and its very bytes.

    Parameters
    ----------
    hub : Hub
    project : str
    revision : int, optional
        The one that holds, by default.

    Raises
    ------
    ExchangeError
        ``AGREEMENT_MISSING``, ``NOT_FOUND``, and as `read_project`.
    """
    with hub.store.reading() as connection:
        row = the_project(connection, project)
        require_agreement(row)
        data = row.agreement
        if revision is not None:
            data = agreement_text(connection, row.id, revision)
    if data is None:
        raise not_found()
    # Verified each time it is read: whoever can write to the database could have changed it.
    return read_agreement(data), data
