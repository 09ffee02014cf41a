"""The agreement as people read it, and the changes between two revisions."""

from __future__ import annotations

import difflib
from typing import Annotated

from fastapi import Query, Response

from datacollab.agreement import anchor_lines, column_rows, task_lines

from .. import service
from ._changes import compare_projects
from ._showing import show
from ._visit import Visiting, new_router

__all__ = ["ROUTER"]

ROUTER = new_router()
Revision = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
_MOST_LINES = 1000
"""Of a file that is compared line by line; what takes longer is for a program of one's own."""


@ROUTER.get("/projects/{project}/agreement")
def agreement(visit: Visiting, project: str, revision: Revision = None) -> Response:
    """The one that holds, or an earlier one."""
    status = service.project_status(visit.hub, visit.person, project)
    said, _ = service.read_agreed_project(visit.hub, project, revision)
    return show(
        "agreement.html",
        visit.hub,
        visit,
        project=status,
        here="agreement",
        said=said,
        is_current=said.digest == status["digest"],
        revisions=service.project_revisions(visit.hub, project),
        task=task_lines(said),
        anchor=anchor_lines(said),
        columns=column_rows(said.columns),
        keys={"Owner": said.owner, "Analyst": said.analyst}
        | {f"Party {name}": key for name, key in said.parties.items()},
    )


@ROUTER.get("/projects/{project}/agreement/changes")
def changes(visit: Visiting, project: str, before: Revision = None, after: Revision = None) -> Response:
    """Show the changes from one revision to another; of the last two where none is named."""
    status = service.project_status(visit.hub, visit.person, project)
    revisions = service.project_revisions(visit.hub, project)
    numbers = [each.revision for each in revisions]
    new = after
    if new is None:
        new = next(iter(numbers[-1:]), None)
    old = before
    if old is None:
        # The one before; the first revision is compared with itself, and nothing has changed.
        old = next((each for each in reversed(numbers) if new and each < new), new)
    old_said, old_text = service.read_agreed_project(visit.hub, project, old)
    new_said, new_text = service.read_agreed_project(visit.hub, project, new)
    return show(
        "changes.html",
        visit.hub,
        visit,
        project=status,
        here="agreement",
        revisions=revisions,
        before=old_said,
        after=new_said,
        changes=compare_projects(old_said, new_said),
        lines=_lines(old_text, new_text),
    )


def _lines(before: bytes, after: bytes) -> list[str] | None:
    """Lines that differ, with a sign in front; None where there are too many to compare."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    if max(len(old), len(new)) > _MOST_LINES:
        return None
    # Without the first two lines, which name files.
    return list(difflib.unified_diff(old, new, "before", "after", lineterm="", n=1))[2:]
