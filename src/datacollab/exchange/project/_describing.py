"""A project in words: what it says, and what differs from another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ...bundle import PublicKey
from ._anchor import guessing
from ._column import Column
from ._project import Project, project_content
from ._sharing import ANALYST, sharing_sentences
from ._task import Task

__all__ = ["Change", "anchor_lines", "column_rows", "compare_projects", "rules_line", "sharing_lines", "task_lines"]

_MOST_ALIKE = 4


def task_lines(task: Task) -> list[str]:
    """What is learned, and from which entries of which columns."""
    if task.is_single:
        what = f"classes {_listed(task.classes)}" if task.classes else _range(task.minimum, task.maximum, task.unit)
        return [f"{task.words}: {what}"]
    lines = [task.words]
    if task.treatment:
        lines.append(f"{task.treatment}: treated {_listed(task.treated)}; not {_listed(task.untreated)}")
    if task.event:
        lines.append(f"{task.event}: seen {_listed(task.seen)}; not {_listed(task.not_seen)}")
    if task.outcome:
        lines.append(f"{task.outcome}: {_range(task.minimum, task.maximum, task.unit)}")
    if task.time:
        rounded = f"rounded up to {task.rounding:.10g} before they leave" if task.rounding else "NOT rounded"
        lines.append(f"{task.time}: at most {task.maximum:.10g}{task.unit and ' ' + task.unit}, {rounded}")
    if task.exact_times:
        lines.append(f"warning: {task.exact_times}")
    return lines


def anchor_lines(project: Project) -> list[str]:
    """How the anchor is made, and what it takes to guess it."""
    recipe = project.anchor
    found = guessing(recipe.method, n_features=project.n_features)
    return [
        f"{recipe.n_rows} rows by {recipe.method}" + (f", from {recipe.source}" if recipe.source else ""),
        f"guessing it, {found.level}: {found.sentence}",
    ]


def rules_line(project: Project) -> str:
    """What parties may share, and from how many of them."""
    deadline = "none" if project.deadline is None else project.deadline.isoformat()
    return (
        f"at most {project.max_components} components; at least {project.min_rows} rows, "
        f"{project.min_class_rows} of each class, {project.quorum} parties; deadline {deadline}; shares "
        f"{'sealed to the analyst' if project.seal_shares else 'signed, not sealed'}"
    )


def sharing_lines(project: Project) -> list[str]:
    """How parties share, if not by rows, who is behind their keys, and what people have to know of that."""
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
    """Name, values and rules of each column; one row for several that follow one another and are alike."""
    rows: list[tuple[str, str, str]] = []
    for words, group in groupby(columns, key=_alike):
        alike = list(group)
        names = [column.name for column in alike]
        if len(names) > _MOST_ALIKE:
            fill = alike[0].fill if len({column.fill for column in alike}) == 1 else "filled in"
            rows.append((f"{names[0]} ... {names[-1]} ({len(names)} columns)", words[0], _rules(alike[0], fill)))
        else:
            rows += [(column.name, words[0], column_rules(column)) for column in alike]
    return rows


def column_values(column: Column) -> str:
    """What may stand in a column."""
    if column.kind == "number":
        return _range(column.minimum, column.maximum, column.unit)
    return _listed(column.categories)


def column_rules(column: Column) -> str:
    """What becomes of entries that do not fit; nothing where all are refused."""
    return _rules(column, column.fill)


def _alike(column: Column) -> tuple[str, str]:
    """What columns have in common that are shown as one, whatever is filled in."""
    return column_values(column), _rules(column, "filled in")


def _rules(column: Column, fill: object) -> str:
    missing = [] if column.missing == "refuse" else [f"missing: {fill}{' and a flag' * column.flag_missing}"]
    others = [f"{name}: {rule}" for name in ("outside", "unknown") if (rule := getattr(column, name)) != "refuse"]
    return ", ".join(missing + others)


def _range(minimum: float | None, maximum: float | None, unit: str) -> str:
    return f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"


def _listed(names: Iterable[object]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:8]) + (f", ... ({len(texts)})" if len(texts) > 8 else "")


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
    changes = [
        *(*_general(before, after), *_members(before, after)),
        *(*_sharing(before, after), *_columns(before, after)),
    ]
    return [change for change in changes if change.before != change.after]


def _general(before: Project, after: Project) -> Iterator[Change]:
    old, new = project_content(before), project_content(after)
    for section in ("project", "task", "anchor", "rules"):
        for name in dict.fromkeys([*old[section], *new[section]]):
            if name != "revision":
                where = _WORDS.get((section, name), f"{section.capitalize()}: {name.replace('_', ' ')}")
                yield Change(where, _said(old[section].get(name)), _said(new[section].get(name)))


def _sharing(before: Project, after: Project) -> Iterator[Change]:
    old, new = (project_content(each).get("sharing", {}) for each in (before, after))
    for name in dict.fromkeys([*old, *new]):
        if name in ("mask_keys", "entities"):
            what = {"mask_keys": "Mask key of", "entities": "Legal entity of"}[name]
            first, second = old.get(name, {}), new.get(name, {})
            for member in dict.fromkeys([*first, *second]):
                yield Change(f"{what} {member}", first.get(member), second.get(member))
        else:
            yield Change(f"Sharing: {name.replace('_', ' ')}", _said(old.get(name)), _said(new.get(name)))


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
