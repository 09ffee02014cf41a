"""Large tables, a few rows at a time: from Parquet, Arrow, memory-mapped arrays, frames, or whatever yields them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from .._validation import PartyName, require
from ..errors import DatasetError, ObfuscationError

__all__ = ["BATCH_ROWS", "TableForm", "row_batches"]

BATCH_ROWS = 16_384


@dataclass(frozen=True)
class TableForm:
    """How the table was laid out that a party's obfuscator was fitted on."""

    n_columns: int | None
    columns: list[str] | None
    library: str | None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Form of an array-like or frame."""
        shape = np.shape(X)
        names = list(getattr(X, "columns", []))
        return cls(
            n_columns=shape[1] if len(shape) == 2 else None,
            columns=names if names and all(isinstance(name, str) for name in names) else None,
            library=type(X).__module__.partition(".")[0] if names else None,
        )

    def bring(self, batch: Any, party: PartyName) -> Any:
        """The same rows in this form: columns chosen and ordered by name; Arrow as the frame or array of fit.

        Arrays stay as they are, and so do frames where fit saw no names.
        """
        if self.columns is not None and (names := _names(batch)) is not None and names != self.columns:
            self.check_names(names, party)
            batch = batch.select(self.columns) if _is_arrow(batch) else batch[self.columns]
        return self._from_arrow(batch, party) if _is_arrow(batch) else batch

    def check_names(self, names: list[str], party: PartyName) -> None:
        """Raise ObfuscationError unless each column seen in fit is there once."""
        missing = [name for name in self.columns or [] if names.count(name) != 1]
        if missing:
            raise ObfuscationError(
                f"Party {party!r}: {len(missing)} of the {len(self.columns or [])} columns seen in fit are not there, "
                f"or there twice: {missing[:10]!r}. Name the columns as in fit; others are left out. "
                "Nothing left the party."
            )

    def _from_arrow(self, batch: Any, party: PartyName) -> Any:
        if self.columns is not None:
            return (
                importlib.import_module("polars").from_arrow(batch) if self.library == "polars" else batch.to_pandas()
            )
        if self.n_columns != batch.num_columns:
            raise ObfuscationError(
                f"Party {party!r}: the table has {batch.num_columns} columns, but {self.n_columns} in fit, where they "
                "had no names to choose by. Fit on a frame with named columns, or leave the others out. "
                "Nothing left the party."
            )
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])


def row_batches(source: Any, form: TableForm, *, party: PartyName, batch_rows: int) -> Iterator[Any]:
    """Cut a source into batches of at most `batch_rows` rows, none of them empty."""
    return _cut(_pieces(source, form, party, batch_rows), batch_rows, party)


def _cut(pieces: Iterable[Any], batch_rows: int, party: PartyName) -> Iterator[Any]:
    for piece in pieces:
        if not _is_table(piece):
            raise TypeError(
                f"Party {party!r}: each piece of the source must be a two-dimensional array, a frame or an Arrow "
                f"batch; got {type(piece).__name__} of shape {np.shape(piece)}."
            )
        for start in range(0, _num_rows(piece), batch_rows):
            yield _rows(piece, start, min(start + batch_rows, _num_rows(piece)))


def _pieces(source: Any, form: TableForm, party: PartyName, batch_rows: int) -> Iterable[Any]:
    """Tables of any height."""
    if isinstance(source, str | os.PathLike):
        source = _open_parquet(os.fspath(source), party)
    if _is_arrow(source) and hasattr(source, "scanner"):
        return _scan(source, form, party, batch_rows)
    if _is_table(source):
        return [source]
    if isinstance(source, Iterable) and not isinstance(source, bytes | dict):
        return _read(source, party) if _is_arrow(source) else source
    raise TypeError(
        f"Party {party!r}: rows can be read from the path of a Parquet file or directory, a pyarrow table, dataset or "
        f"reader, a two-dimensional array or frame, or an iterable of these; got {type(source).__name__}."
    )


def _open_parquet(path: str, party: PartyName) -> Any:
    arrow, datasets = require("pyarrow", "tables"), require("pyarrow.dataset", "tables")
    try:
        return datasets.dataset(path, format="parquet")
    except (OSError, arrow.ArrowException) as error:
        found = "is no Parquet file, or damaged" if os.path.exists(path) else "does not exist"
        raise DatasetError(f"Party {party!r}: {path!r} {found} ({type(error).__name__}).") from None


def _scan(dataset: Any, form: TableForm, party: PartyName, batch_rows: int) -> Iterator[Any]:
    if form.columns is not None:
        form.check_names(dataset.schema.names, party)
    # By default sixteen batches and the files' next parts are read ahead, and what is in memory grows with them.
    batches = dataset.to_batches(
        columns=form.columns, batch_size=batch_rows, batch_readahead=1, fragment_readahead=1, use_threads=False
    )
    return _read(batches, party)


def _read(batches: Iterable[Any], party: PartyName) -> Iterator[Any]:
    arrow = require("pyarrow", "tables")
    try:
        yield from batches
    except arrow.ArrowException as error:
        # Arrow's own message may quote an entry, so it is dropped.
        raise DatasetError(f"Party {party!r}: the table could not be read ({type(error).__name__}).") from None


def _is_arrow(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def _is_table(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2


def _names(table: Any) -> list[str] | None:
    if _is_arrow(table):
        return list(table.schema.names)
    return list(table.columns) if hasattr(table, "columns") else None


def _num_rows(table: Any) -> int:
    return int(_num_samples(table))


def _rows(table: Any, start: int, stop: int) -> Any:
    if _is_arrow(table):
        return table.slice(start, stop - start)
    return table.iloc[start:stop] if hasattr(table, "iloc") else table[start:stop]
