"""In which format a table is stored, by the end of the file's name, and one type for a column in all its batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ExchangeError

if TYPE_CHECKING:
    from ._project import Project

__all__ = ["settled", "table_format", "unreadable"]

_FORMATS = {
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
}


def table_format(path: Path, *, default: str | None = None) -> str:
    """CSV, Parquet or Arrow.

    Raises
    ------
    ExchangeError
        When the end of the name is none of the known ones, and there is no default.
    """
    found = _FORMATS.get(path.suffix.lower(), default)
    if found is None:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{path} ends in {path.suffix!r}; name it with one of {', '.join(_FORMATS)}."
        )
    return found


def unreadable(path: Path, kind: str, error: BaseException) -> ExchangeError:
    """The error for a Parquet or Arrow file that cannot be read, without the reader's words, which may quote data."""
    wanted = "an Arrow or Feather file" if kind == "Arrow" else f"a {kind} file"
    return ExchangeError(
        "TABLE_UNREADABLE",
        f"{path} cannot be read as {wanted} ({type(error).__name__}). Export it again, or save the table as CSV.",
    )


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
