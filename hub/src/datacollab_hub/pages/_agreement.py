"""The agreement as people read it, and the changes between two revisions."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Response

from datacollab.agreement import Project, anchor_lines, column_rows, project_content, task_lines
from datacollab.bundle import PublicKey
from datacollab.table import Column

from .. import service
from ._visit import Visiting, new_router

_NAMES = {
    ("project", "name"): "Name",
    ("project", "purpose"): "Purpose",
    ("project", "format_version"): "Version of the format",
    ("task", "kind"): "Task",
    ("anchor", "method"): "Anchor: method",
    ("anchor", "n_rows"): "Anchor: rows",
    ("anchor", "source"): "Anchor: source",
    ("rules", "max_components"): "Most components",
    ("rules", "min_rows"): "Fewest rows of a party",
    ("rules", "min_class_rows"): "Fewest rows of each class",
    ("rules", "quorum"): "Fewest parties",
    ("rules", "deadline"): "Last day for shares",
    ("rules", "seal_shares"): "Shares are sealed to the analyst",
}


class Change(NamedTuple):
    """An entry that differs: its name and its values, in words; None if there is no value."""

    where: str
    before: str | None
    after: str | None


def compare_projects(before: Project, after: Project) -> list[Change]:
    """Return the entries that differ, by their subjects; empty if both say the same but for the revision's number."""
    changes = [
        _change(where, old.get(where), new.get(where))
        for old, new in zip(_sections(before), _sections(after), strict=True)
        for where in dict.fromkeys([*old, *new])
    ]
    one, other = ([column.name for column in project.columns] for project in (before, after))
    # Of columns that both have: one that was added is no other order.
    common = [[name for name in names if name in others] for names, others in ((one, set(other)), (other, set(one)))]
    changes.append(Change("Order of the columns", *(", ".join(names) for names in common)))
    return [change for change in changes if change.before != change.after]


def _sections(project: Project) -> list[dict[str, Any]]:
    """Return the entries by their names in words, in four groups."""
    content = project_content(project)
    general = {
        _NAMES.get((section, name), f"{section.capitalize()}: {name.replace('_', ' ')}"): _words(value)
        for section in ("project", "task", "anchor", "rules")
        for name, value in content.get(section, {}).items()
        # It differs always, and says nothing else.
        if name != "revision"
    }
    members = {"Owner": project.owner, "Analyst": project.analyst}
    members |= {f"Party {name}": key for name, key in project.parties.items()}
    sharing = content.get("sharing", {})
    # One line for each party, and not one for all.
    mask_keys = sharing.pop("mask_keys", {})
    entities = sharing.pop("entities", {})
    settings = {f"Sharing: {name.replace('_', ' ')}": _words(value) for name, value in sharing.items()}
    settings |= {f"Mask key of {name}": key for name, key in mask_keys.items()}
    settings |= {f"Legal entity of {name}": entity for name, entity in entities.items()}
    return [general, members, settings, {f"Column {column.name}": _column_words(column) for column in project.columns}]


def _change(where: str, before: PublicKey | str | None, after: PublicKey | str | None) -> Change:
    shown = [each.fingerprint if isinstance(each, PublicKey) else each for each in (before, after)]
    if shown[0] == shown[1] and before != after:
        # Fingerprints are hashes cut short: two keys that share one are shown in full.
        shown = [each.text if isinstance(each, PublicKey) else each for each in (before, after)]
    return Change(where, *shown)


def _column_words(column: Column) -> str:
    _, values, rules = column_rows([column])[0]
    # All categories, as one of many may be what changed.
    values = ", ".join(column.categories) or values
    words = f"{column.kind}, {values}"
    if rules:
        words += f"; {rules}"
    return words


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    # Before numbers, as truth values are numbers to Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{entry} → {name}" for entry, name in value.items()]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    # Ten digits are more than anybody agrees on, and show no rounding of binary fractions.
    return f"{value:.10g}"


ROUTER = new_router()
Revision = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
_MOST_LINES = 1000
"""Of a file that is compared line by line; what takes longer is for a program of one's own."""


@ROUTER.get("/projects/{project}/agreement")
def agreement(visit: Visiting, project: str, revision: Revision = None) -> Response:
    """The one that holds, or an earlier one."""
    status = service.project_status(visit.hub, visit.person, project)
    said, _ = service.read_agreed_project(visit.hub, project, revision)
    return visit.show(
        "agreement.html",
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
    return visit.show(
        "changes.html",
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
