"""The agreement in words, for whoever shows it to people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ._column import Column
from ._guessing import guessing
from ._project import Project
from ._task import Task

__all__ = ["anchor_lines", "column_rows", "column_rules", "column_values", "rules_line", "task_lines"]

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
