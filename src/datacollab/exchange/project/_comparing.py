"""What one revision of the agreement says, and another does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...bundle import PublicKey
from ._column import Column
from ._content import project_content
from ._describing import column_rules, column_values
from ._project import Project

__all__ = ["Change", "compare_projects"]

_WORDS = {
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


@dataclass(frozen=True)
class Change:
    """An entry that differs.

    Attributes
    ----------
    where : str
        Which one, in words.
    before, after : str or None
        What it says; None where it is not there.
    """

    where: str
    before: str | None
    after: str | None


def compare_projects(before: Project, after: Project) -> list[Change]:
    """Entries that differ, by what they are about; the revision's number is none of them.

    Parameters
    ----------
    before, after : Project

    Returns
    -------
    list of Change
        Empty where both say the same.
    """
    changes = [*_general(before, after), *_members(before, after), *_columns(before, after)]
    return [change for change in changes if change.before != change.after]


def _general(before: Project, after: Project) -> Iterator[Change]:
    old, new = project_content(before), project_content(after)
    for section in ("project", "task", "anchor", "rules"):
        for name in dict.fromkeys([*old[section], *new[section]]):
            if name != "revision":
                where = _WORDS.get((section, name), f"{section.capitalize()}: {name.replace('_', ' ')}")
                yield Change(where, _said(old[section].get(name)), _said(new[section].get(name)))


def _members(before: Project, after: Project) -> Iterator[Change]:
    old, new = _keys(before), _keys(after)
    for who in dict.fromkeys([*old, *new]):
        yield _of_keys(who, old.get(who), new.get(who))


def _keys(project: Project) -> dict[str, PublicKey]:
    return {"Owner": project.owner, "Analyst": project.analyst} | {
        f"Party {name}": key for name, key in project.parties.items()
    }


def _of_keys(who: str, before: PublicKey | None, after: PublicKey | None) -> Change:
    said = [None if key is None else key.fingerprint for key in (before, after)]
    if said[0] == said[1] and before != after:
        # Fingerprints are hashes cut short: two keys that share one are told apart in full.
        said = [None if key is None else key.text for key in (before, after)]
    return Change(who, *said)


def _columns(before: Project, after: Project) -> Iterator[Change]:
    old, new = ({column.name: column for column in project.columns} for project in (before, after))
    for name in dict.fromkeys([*old, *new]):
        yield Change(f"Column {name}", _described(old.get(name)), _described(new.get(name)))
    common = [[name for name in one if name in other] for one, other in ((old, new), (new, old))]
    yield Change("Order of the columns", *(", ".join(names) for names in common))


def _described(column: Column | None) -> str | None:
    if column is None:
        return None
    # All categories, as one of many may be what changed.
    values = column_values(column) if column.kind == "number" else ", ".join(column.categories)
    return "; ".join(part for part in (f"{column.kind}, {values}", column_rules(column)) if part)


def _said(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    return f"{value:.10g}"
