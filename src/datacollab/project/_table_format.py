"""In which format a table is stored, by the end of the file's name."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExchangeError

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
    """The error for a file that cannot be read; the reader's own words may quote an entry, so they are dropped."""
    wanted = {
        "CSV": "UTF-8 text, commas between columns, a header, and as many entries in every row",
        "Parquet": "a Parquet file",
        "Arrow": "an Arrow or Feather file",
    }
    article = "an" if kind == "Arrow" else "a"
    return ExchangeError(
        "TABLE_UNREADABLE",
        f"{path} cannot be read as {article} {kind} file ({type(error).__name__}). Wanted: {wanted[kind]}.",
    )
