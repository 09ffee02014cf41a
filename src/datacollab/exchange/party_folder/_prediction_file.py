"""Where predictions and explanations may be written: nowhere that something else would be lost."""

from __future__ import annotations

from pathlib import Path

from ...errors import DataCollabError, ExchangeError
from ..project import table_batches
from ._prediction import PREDICTION

__all__ = ["check_output"]


def check_output(
    output: Path, source: Path, *, force: bool, what: str = "predictions", column: str = PREDICTION
) -> None:
    """Refuse a place for predictions, or explanations, before any work is done.

    Parameters
    ----------
    output : Path
    source : Path
        The table that is to be predicted.
    force : bool
        Whether any other file may be overwritten.
    what : str, default="predictions"
        That are to be written.
    column : str, default="prediction"
        By which a file of the same kind is known; it is overwritten without being asked.

    Raises
    ------
    ValueError
        When the file is the table itself.
    FileNotFoundError
        When there is no such folder.
    ExchangeError
        ALREADY_THERE, when the file exists and is not of this kind.
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent} for {output.name}. Make it first.")
    if not output.exists():
        return
    if output.samefile(source):
        raise ValueError(f"{output} is the table itself; write the {what} to another file.")
    if not (force or _has_column(output, column)):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{output} exists and does not hold {what}: it has no column {column!r}. Write to another file, or "
            "overwrite this one with --force.",
        )


def _has_column(file: Path, column: str) -> bool:
    try:
        return file.is_file() and column in next(table_batches(file, batch_rows=1)).columns
    except DataCollabError:
        return False
