"""A project in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ..table import MOST_OUTSIDE, Column, range_words
from ._project import Project, project_content
from ._sealed_anchor import guessing
from ._sharing import ANALYST, HAZARDS, sharing_sentences
from ._task import Task

_MOST_ALIKE = 4
"""Columns that are shown one by one, though they are alike."""
_MOST_LISTED = 8
_MOST_LETTERS = 80
"""Letters of an entry that is shown before and after a change."""


def task_lines(project: Project) -> list[str]:
    """Return lines on the task: its kind, and the entries of its columns."""
    task = project.task
    if task.classes:
        return [f"{task.words}: {_class_words(task)}"]
    if task.is_single:
        return [f"{task.words}: {range_words(task.minimum, task.maximum, task.unit)}"]
    lines = [task.words]
    if task.treatment:
        lines.append(f"{task.treatment}: treated {_list_first(task.treated)}; not {_list_first(task.untreated)}")
    if task.event:
        lines.append(f"{task.event}: seen {_list_first(task.seen)}; not {_list_first(task.not_seen)}")
    if task.outcome:
        lines.append(f"{task.outcome}: {range_words(task.minimum, task.maximum, task.unit)}")
    if task.time:
        lines += _time_lines(task, shares_rows=not project.shares_sums)
    return lines


def _class_words(task: Task) -> str:
    words = f"classes {_list_first(task.classes)}"
    if task.positive is not None:
        words += f"; {task.positive} is sought"
    return words + "".join(f"; {entry} is taken for {name}" for entry, name in (task.merged or {}).items())


def _time_lines(task: Task, *, shares_rows: bool) -> list[str]:
    """Return lines on times; only shared rows carry times of their own."""
    line = f"{task.time}: at most {task.maximum:.10g}{task.unit and f' {task.unit}'}"
    if not shares_rows:
        return [line]
    if task.rounding:
        return [f"{line}, rounded up to {task.rounding:.10g} before they leave"]
    return [
        f"{line}, NOT rounded",
        "warning: times are not rounded (rounding is 0): a row's own exact time can identify it, and no defence of "
        "its features changes that. Agree on a rounding.",
    ]


def anchor_lines(project: Project) -> list[str]:
    """Return lines on the anchor's recipe, and on how hard the anchor is to guess."""
    if not project.has_anchor:
        # Statistics of a study are sums over the table's own columns.
        return ["none: the statistics need none"]
    recipe = project.anchor
    made = f"{recipe.n_rows} rows by {recipe.method}"
    if recipe.source:
        made += f", from {recipe.source}"
    protection = guessing(recipe.method, n_features=project.n_features)
    if protection.level == "warning":
        return [made, f"warning: {protection.sentence}"]
    return [made, protection.sentence]


def rules_line(project: Project) -> str:
    """Return a line on the rules of sharing."""
    deadline = "none" if project.deadline is None else project.deadline.isoformat()
    if project.shares_sums:
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
    line = f"sums under masks: {' and '.join(sharing.statistics)}, noise {sharing.noise:g}"
    if sharing.has_map:
        line += f", at most {project.most_components} columns in the common map"
    line += f", run {sharing.run}"
    if sharing.labelled_by is not None:
        line += f"; {sharing.labelled_by} adds labelled public rows"
    if sharing.outcome is not None:
        line += f"; {sharing.outcome} is the outcome"
    if sharing.factors is not None:
        line += f"; {', '.join(sharing.factors)} explain the outcome"
    if sharing.rounds is not None:
        own = "a baseline" if HAZARDS in sharing.statistics else "an intercept"
        line += f"; {sharing.rounds} rounds, with {own} of each party"
    if sharing.epsilon is not None:
        line += f"; noise enough for an epsilon of {sharing.epsilon:g}"
    lines = [line]
    if sharing.logistic_model is not None:
        coefficients = (f"{name} {value:g}" for name, value in sharing.logistic_model.items())
        lines.append(f"the logistic model that is tried: {', '.join(coefficients)}")
    most = {name: f", at most {each} rows" for name, each in (sharing.most_rows or {}).items()}
    return [
        *lines,
        *(f"{name}: {sharing.entities[name]}{most.get(name, '')}" for name in (*project.parties, ANALYST)),
        *(f"warning: {sentence}" for sentence in sharing_sentences(sharing)),
    ]


def project_changes(before: Project, after: Project) -> list[str]:
    """Return a line for each entry that a revision changed; keys and long texts are not repeated."""
    old = dict(_flatten(project_content(before)))
    new = dict(_flatten(project_content(after)))
    lines = []
    for name in dict.fromkeys([*old, *new]):
        if name == "[project] revision" or old.get(name) == new.get(name):
            continue
        column = name.partition(":")[0]
        # A whole column came or went: one line for all of its entries.
        if f"{column}: kind" in old.keys() ^ new.keys():
            verb = "added" if name in new else "removed"
            lines.append(f"{column}: {verb}")
            continue
        was = str(old.get(name, "none"))
        now = str(new.get(name, "none"))
        if max(len(was), len(now)) <= _MOST_LETTERS:
            lines.append(f"{name}: {was} becomes {now}")
        else:
            lines.append(f"{name}: changed")
    return list(dict.fromkeys(lines))


def _flatten(content: dict[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place and value of every entry of a project's contents."""
    for name, value in content.items():
        if name == "columns":
            for column in value:
                yield from _flatten(column, f"column {column['name']!r}: ")
        elif isinstance(value, dict):
            yield from _flatten(value, f"{where}{name} " if where else f"[{name}] ")
        else:
            yield f"{where}{name}", value


def column_rows(columns: Sequence[Column], *, fills: bool = True) -> list[tuple[str, str, str]]:
    """Return name, values and rules of each column; one row for several that follow one another and are alike.

    `fills` is whether missing entries are filled in.
    """

    def rules(column: Column, fill: object) -> str:
        return _rule_words(column, fill, fills)

    rows: list[tuple[str, str, str]] = []
    for (values, _), group in groupby(columns, key=lambda column: (_value_words(column), rules(column, "any"))):
        alike = list(group)
        if len(alike) <= _MOST_ALIKE:
            rows += [(column.name, values, rules(column, column.fill)) for column in alike]
            continue
        fill = alike[0].fill
        if any(column.fill != fill for column in alike):
            fill = "filled in"
        name = f"{alike[0].name} ... {alike[-1].name} ({len(alike)} columns)"
        rows.append((name, values, rules(alike[0], fill)))
    return rows


def _value_words(column: Column) -> str:
    if column.kind == "number":
        return range_words(column.minimum, column.maximum, column.unit)
    return _list_first(column.categories)


def _rule_words(column: Column, fill: object, fills: bool) -> str:
    """Return the rules for entries that do not fit; empty if all are refused."""
    words = []
    if column.missing != "refuse" and fills:
        words.append(f"missing: {fill}{' and a flag' * column.flag_missing}")
    elif column.missing != "refuse":
        words.append("missing: left so")
    for name in ("outside", "unknown"):
        rule = getattr(column, name)
        if rule != "refuse":
            words.append(f"{name}: {rule}")
    if column.most_unknown != MOST_OUTSIDE:
        words[-1] += f" (up to {column.most_unknown:.0%})"
    return ", ".join(words)


def _list_first(names: Iterable[object]) -> str:
    """Return the first names, and the number of all if there are more."""
    texts = [str(name) for name in names]
    words = ", ".join(texts[:_MOST_LISTED])
    return f"{words}, ... ({len(texts)})" if len(texts) > _MOST_LISTED else words
