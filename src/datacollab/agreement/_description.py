"""A project in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ..table import Column, range_words
from ._project import Project, project_content
from ._sealed_anchor import guessing
from ._sharing import ANALYST, sharing_sentences

_MOST_ALIKE = 4


def task_lines(project: Project) -> list[str]:
    """Return lines on the task: its kind, and the entries of its columns."""
    task, shares_rows = project.task, project.sharing is None
    possible = range_words(task.minimum, task.maximum, task.unit) if task.minimum is not None else ""
    if task.is_single:
        merged = "".join(f"; {entry} is taken for {name}" for entry, name in (task.merged or {}).items())
        sought = "" if task.positive is None else f"; {task.positive} is sought"
        return [f"{task.words}: {f'classes {_listed(task.classes)}{sought}{merged}' if task.classes else possible}"]
    lines = [task.words]
    if task.treatment:
        lines.append(f"{task.treatment}: treated {_listed(task.treated)}; not {_listed(task.untreated)}")
    if task.event:
        lines.append(f"{task.event}: seen {_listed(task.seen)}; not {_listed(task.not_seen)}")
    if task.outcome:
        lines.append(f"{task.outcome}: {possible}")
    if task.time:
        rounded = f", rounded up to {task.rounding:.10g} before they leave" if task.rounding else ", NOT rounded"
        unit = task.unit and f" {task.unit}"
        lines.append(f"{task.time}: at most {task.maximum:.10g}{unit}{rounded if shares_rows else ''}")
    if task.time and not task.rounding and shares_rows:
        lines.append(
            "warning: times are not rounded (rounding is 0): a row's own exact time can identify it, and no defence of "
            "its features changes that. Agree on a rounding."
        )
    return lines


def anchor_lines(project: Project) -> list[str]:
    """Return lines on the anchor's recipe, and on how hard the anchor is to guess."""
    if not project.has_anchor:
        return ["none: the statistics need none"]
    recipe = project.anchor
    found = guessing(recipe.method, n_features=project.n_features)
    return [
        f"{recipe.n_rows} rows by {recipe.method}" + (f", from {recipe.source}" if recipe.source else ""),
        ("warning: " if found.level == "warning" else "") + found.sentence,
    ]


def rules_line(project: Project) -> str:
    """Return a line on the rules of sharing."""
    deadline = "none" if project.deadline is None else project.deadline.isoformat()
    if project.sharing is not None:
        return f"at least {project.min_rows} rows of each party; all parties share; deadline {deadline}"
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
    mapped = f", at most {project.most_components} columns in the common map" if sharing.has_map else ""
    labelled += "" if sharing.outcome is None else f"; {sharing.outcome} is the outcome"
    most = {name: f", at most {each} rows" for name, each in (sharing.most_rows or {}).items()}
    private = "" if sharing.epsilon is None else f"; noise enough for an epsilon of {sharing.epsilon:g}"
    return [
        f"sums under masks: {' and '.join(sharing.statistics)}, noise {sharing.noise:g}{mapped}, run {sharing.run}"
        f"{labelled}{private}",
        *(f"{name}: {sharing.entities[name]}{most.get(name, '')}" for name in (*project.parties, ANALYST)),
        *(f"warning: {sentence}" for sentence in sharing_sentences(sharing)),
    ]


def project_changes(before: Project, after: Project) -> list[str]:
    """Return a line for each entry that a revision changed; keys and long texts are not repeated."""
    old, new = (dict(_flat(project_content(each))) for each in (before, after))
    lines = []
    for name in dict.fromkeys([*old, *new]):
        if name == "[project] revision" or old.get(name) == new.get(name):
            continue
        column = name.partition(":")[0]
        if f"{column}: kind" in old.keys() ^ new.keys():
            lines.append(f"{column}: {'added' if name in new else 'removed'}")
            continue
        was, now = (str(each.get(name, "none")) for each in (old, new))
        is_short = max(len(was), len(now)) <= _MOST_LETTERS
        lines.append(f"{name}: {was} becomes {now}" if is_short else f"{name}: changed")
    return list(dict.fromkeys(lines))


_MOST_LETTERS = 80


def _flat(content: dict[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place and value of every entry of a project's contents."""
    for name, value in content.items():
        if name == "columns":
            for column in value:
                yield from _flat(column, f"column {column['name']!r}: ")
        elif isinstance(value, dict):
            yield from _flat(value, f"{where}{name} " if where else f"[{name}] ")
        else:
            yield f"{where}{name}", value


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
