"""One type for a column in all batches of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["settled"]


def settled(table: Any, project: Project | None) -> Any:
    """Make numbers of the project float64, lest a type change after a first batch that has whole ones only.

    What holds no numbers stays, for `encode_table` to refuse.
    """
    if project is None:
        return table
    numeric = {column.name for column in project.columns if column.kind == "number"}
    numeric |= {name for name, labels in project.task.labels.items() if not labels}
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items() if name in numeric}
    return table.astype({name: "float64" for name, kind in kinds.items() if kind in "biu"})
