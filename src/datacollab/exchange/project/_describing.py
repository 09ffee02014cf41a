"""A project in words, and its differences from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...bundle import PublicKey
from ._anchor import guessing
from ._column import Column
from ._numbers import range_words
from ._project import Project, project_content
from ._sharing import ANALYST, sharing_sentences
from ._task import Task

__all__ = ["Change", "anchor_lines", "column_rows", "compare_projects", "rules_line", "sharing_lines", "task_lines"]

_MOST_ALIKE = 4


def task_lines(task: Task) -> list[str]:
    """Return lines on the task: its kind, and the entries of its columns."""
    possible = range_words(task.minimum, task.maximum, task.unit) if task.minimum is not None else ""
    if task.is_single:
        return [f"{task.words}: {f'classes {_listed(task.classes)}' if task.classes else possible}"]
    lines = [task.words]
    if task.treatment:
        lines.append(f"{task.treatment}: treated {_listed(task.treated)}; not {_listed(task.untreated)}")
    if task.event:
        lines.append(f"{task.event}: seen {_listed(task.seen)}; not {_listed(task.not_seen)}")
    if task.outcome:
        lines.append(f"{task.outcome}: {possible}")
    if task.time:
        rounded = f"rounded up to {task.rounding:.10g} before they leave" if task.rounding else "NOT rounded"
        lines.append(f"{task.time}: at most {task.maximum:.10g}{task.unit and ' ' + task.unit}, {rounded}")
    if task.exact_times:
        lines.append(f"warning: {task.exact_times}")
    return lines


def anchor_lines(project: Project) -> list[str]:
    """Return lines on the anchor's recipe, and on how hard the anchor is to guess."""
    recipe = project.anchor
    found = guessing(recipe.method, n_features=project.n_features)
    return [
        f"{recipe.n_rows} rows by {recipe.method}" + (f", from {recipe.source}" if recipe.source else ""),
        f"guessing it, {found.level}: {found.sentence}",
    ]


def rules_line(project: Project) -> str:
    """Return a line on the rules of sharing."""
    deadline = "none" if project.deadline is None else project.deadline.isoformat()
    return (
        f"at most {project.max_components} components; at least {project.min_rows} rows, "
        f"{project.min_class_rows} of each class, {project.quorum} parties; deadline {deadline}; shares "
        f"{'sealed to the analyst' if project.seal_shares else 'signed, not sealed'}"
    )


def sharing_lines(project: Project) -> list[str]:
    """Return lines on sharing by sums: settings, legal entities and warnings; none if rows are shared."""
    sharing = project.sharing
    if sharing is None:
        return []
    labelled = "" if sharing.labelled_by is None else f"; {sharing.labelled_by} adds labelled public rows"
    private = "" if sharing.epsilon is None else f"; noise enough for an epsilon of {sharing.epsilon:g}"
    return [
        f"sums under masks, noise {sharing.noise:g}, at most {sharing.n_components} columns in the common map, run "
        f"{sharing.run}{labelled}{private}",
        *(f"{name}: {sharing.entities[name]}" for name in (*project.parties, ANALYST)),
        *(f"warning: {sentence}" for sentence in sharing_sentences(sharing)),
    ]


def column_rows(columns: Sequence[Column]) -> list[tuple[str, str, str]]:
    """Return name, values and rules of each column; one row for several that follow one another and are alike."""
    rows: list[tuple[str, str, str]] = []
    for (values, _), group in groupby(columns, key=lambda column: (_values(column), _rules(column, "filled in"))):
        alike = list(group)
        if len(alike) > _MOST_ALIKE:
            fill = alike[0].fill if len({column.fill for column in alike}) == 1 else "filled in"
            name = f"{alike[0].name} ... {alike[-1].name} ({len(alike)} columns)"
            rows.append((name, values, _rules(alike[0], fill)))
        else:
            rows += [(column.name, values, _rules(column, column.fill)) for column in alike]
    return rows


def _values(column: Column) -> str:
    if column.kind == "number":
        return range_words(column.minimum, column.maximum, column.unit)
    return _listed(column.categories)


def _rules(column: Column, fill: object) -> str:
    """Return the rules for entries that do not fit; empty if all are refused."""
    missing = [] if column.missing == "refuse" else [f"missing: {fill}{' and a flag' * column.flag_missing}"]
    others = [f"{name}: {rule}" for name in ("outside", "unknown") if (rule := getattr(column, name)) != "refuse"]
    return ", ".join(missing + others)


def _listed(names: Iterable[object]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:8]) + (f", ... ({len(texts)})" if len(texts) > 8 else "")


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


@dataclass(frozen=True)
class Change:
    """An entry that differs.

    Attributes
    ----------
    where : str
        Its name, in words.
    before, after : str or None
        Its values; None if there is none.
    """

    where: str
    before: str | None
    after: str | None


def compare_projects(before: Project, after: Project) -> list[Change]:
    """Return the entries that differ, by their subjects; empty if both say the same.

    The number of the revision is not compared.

    Parameters
    ----------
    before, after : Project
    """
    changes = [
        _change(where, old.get(where), new.get(where))
        for old, new in zip(_sections(before), _sections(after), strict=True)
        for where in dict.fromkeys([*old, *new])
    ]
    one, other = ([column.name for column in project.columns] for project in (before, after))
    common = [[name for name in names if name in others] for names, others in ((one, set(other)), (other, set(one)))]
    changes.append(Change("Order of the columns", *(", ".join(names) for names in common)))
    return [change for change in changes if change.before != change.after]


def _sections(project: Project) -> list[dict[str, Any]]:
    """Return the entries by their names in words, in four groups."""
    content = project_content(project)
    general = {
        _NAMES.get((section, name), f"{section.capitalize()}: {name.replace('_', ' ')}"): _words(value)
        for section in ("project", "task", "anchor", "rules")
        for name, value in content[section].items()
        if name != "revision"
    }
    members = {"Owner": project.owner, "Analyst": project.analyst}
    members |= {f"Party {name}": key for name, key in project.parties.items()}
    sharing = content.get("sharing", {})
    mask_keys, entities = sharing.pop("mask_keys", {}), sharing.pop("entities", {})
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
    # All categories, as one of many may be what changed.
    values = _values(column) if column.kind == "number" else ", ".join(column.categories)
    rules = _rules(column, column.fill)
    return f"{column.kind}, {values}" + (f"; {rules}" if rules else "")


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value:.10g}"
