"""Where predictions may be written: nowhere that something else would be lost."""

from __future__ import annotations

from pathlib import Path

from ...errors import DataCollabError, ExchangeError
from ..project import table_batches
from ._prediction import PREDICTION

__all__ = ["check_output"]


def check_output(output: Path, source: Path, *, force: bool) -> None:
    """Refuse a place for predictions before any work is done.

    Parameters
    ----------
    output : Path
    source : Path
        The table that is to be predicted.
    force : bool
        Whether any other file may be overwritten.

    Raises
    ------
    ValueError
        When the file is the table itself.
    FileNotFoundError
        When there is no such folder.
    ExchangeError
        ALREADY_THERE, when the file exists and holds no predictions.
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {output.parent} for {output.name}. Make it first.")
    if not output.exists():
        return
    if output.samefile(source):
        raise ValueError(f"{output} is the table itself; write the predictions to another file.")
    if not (force or _holds_predictions(output)):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{output} exists and does not hold predictions: it has no column {PREDICTION!r}. Write to another file, "
            "or overwrite this one with --force.",
        )


def _holds_predictions(file: Path) -> bool:
    try:
        return file.is_file() and PREDICTION in next(table_batches(file, batch_rows=1)).columns
    except DataCollabError:
        return False
