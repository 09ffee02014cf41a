"""Differences between two revisions of an agreement, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from datacollab.agreement import Project, column_rows, project_content
from datacollab.bundle import PublicKey
from datacollab.table import Column

__all__ = ["Change", "compare_projects"]

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
