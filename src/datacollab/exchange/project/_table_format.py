"""In which format a table is stored, by the end of the file's name."""

from __future__ import annotations

from pathlib import Path

from ...errors import ExchangeError

__all__ = ["table_format", "unreadable"]

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
