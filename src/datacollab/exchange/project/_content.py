"""The agreement as plain values: what is signed, hashed and written."""

from __future__ import annotations

from typing import Any

from ._agreement import Agreement
from ._column import Column
from ._task import Task
from ._task_checks import task_entries

__all__ = ["FORMAT_VERSION", "project_content"]

FORMAT_VERSION = 1
"""Of the project file."""


def project_content(project: Agreement) -> dict[str, Any]:
    """All entries but the signature, with every default written out, so that equal agreements have equal contents."""
    rules: dict[str, Any] = {
        "max_components": project.max_components,
        "min_rows": project.min_rows,
        "min_class_rows": project.min_class_rows,
        "quorum": project.quorum,
        "seal_shares": project.seal_shares,
    }
    if project.deadline is not None:
        rules["deadline"] = project.deadline.isoformat()
    recipe = project.anchor
    general: dict[str, Any] = {"format_version": FORMAT_VERSION}
    # Left out where it is the first, so that an agreement has one spelling.
    general |= {"revision": project.revision} if project.revision > 1 else {}
    return {
        "project": general | {"name": project.name, "purpose": project.purpose},
        "task": _task_content(project.task),
        "anchor": {"method": recipe.method, "n_rows": recipe.n_rows, "source": recipe.source},
        "rules": rules,
        "columns": [_column_content(column) for column in project.columns],
        "members": {
            "owner": project.owner.text,
            "analyst": project.analyst.text,
            "parties": {name: key.text for name, key in project.parties.items()},
        },
    }


def _task_content(task: Task) -> dict[str, Any]:
    content: dict[str, Any] = {"kind": task.kind}
    for name in task_entries(task.kind, has_time=bool(task.time)):
        value = getattr(task, name)
        if isinstance(value, tuple):
            content[name] = list(value)
        else:
            content[name] = value if isinstance(value, str) else _number(value)
    return content


def _column_content(column: Column) -> dict[str, Any]:
    content: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "number":
        content |= {"unit": column.unit, "minimum": _number(column.minimum), "maximum": _number(column.maximum)}
    else:
        content["categories"] = list(column.categories)
    content["missing"] = column.missing
    if column.missing == "fill":
        fill = column.fill if isinstance(column.fill, str) else _number(column.fill)
        content |= {"fill": fill, "flag_missing": column.flag_missing}
    # Left out where they refuse, so that an agreement has one spelling.
    content |= {name: rule for name in ("outside", "unknown") if (rule := getattr(column, name)) != "refuse"}
    return content


def _number(value: float | None) -> float:
    """As a float, so that 1 and 1.0 are the same agreement; 0 is added to lose the sign of -0.0."""
    assert value is not None  # the constructors refuse a range with a bound missing
    return float(value) + 0.0
