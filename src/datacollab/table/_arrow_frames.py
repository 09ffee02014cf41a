"""Batches of Arrow, of files and of streams, as data frames."""

from __future__ import annotations

import re
import uuid
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

from .._require import require
from ..errors import ExchangeError, MissingExtraError
from ._column import Schema
from ._exports import settle_concepts, tell_concepts
from ._limits import unreadable
from ._text import settle_types, spell_names

NAMELESS_INDEX = re.compile(r"__index_level_\d+__|level_\d+")
_NULLABLE = {f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NULLABLE["bool"] = "boolean"
"""Types of pandas in which entries may be missing, by those of Arrow."""
_BEGUN: weakref.WeakSet[Any] = weakref.WeakSet()
"""Streams that were read, and have no rows any more."""


def is_stream(table: Any) -> bool:
    """Return whether a table is read as a stream of Arrow; frames of pandas are taken as they are."""
    return hasattr(table, "__arrow_c_stream__") and not hasattr(table, "iloc")


def stream_frames(stream: Any, place: object, *, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
    """Read a stream of Arrow in frames of `batch_rows`, however long its own batches are; errors call it `place`.

    A stream without rows is one empty frame.  Its producer's words are passed on nowhere, as they may quote entries.
    """
    pyarrow = require("pyarrow", "tables")
    _begin(stream, place)
    try:
        reader = pyarrow.RecordBatchReader.from_stream(stream)
        yield from reader_frames(reader, place, batch_rows, schema)
    except (ExchangeError, MissingExtraError):
        raise
    except MemoryError:
        raise ExchangeError("TOO_LARGE", f"{place} does not fit into memory. Read it where there is more.") from None
    # A producer may fail in any way.
    except Exception as error:
        raise unreadable(
            place,
            f"cannot be read to its end as a stream of Arrow ({type(error).__name__}), and nothing was made of it. "
            "Make it anew and try again; cast columns of types that Arrow lacks to numbers or text.",
        ) from None


def reader_frames(reader: Any, place: object, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
    """Yield the rows of a ``pyarrow.RecordBatchReader`` in frames of `batch_rows`; errors are its own."""
    pyarrow = require("pyarrow", "tables")
    tell_concepts(str(place), reader.schema.names, schema)
    n_read = 0
    waiting: list[Any] = []
    n_waiting = 0
    for batch in reader:
        waiting.append(batch)
        n_waiting += batch.num_rows
        # Rules for exceptions count in frames: many short batches would be judged by too few rows.
        if n_waiting < batch_rows:
            continue
        table = pyarrow.Table.from_batches(waiting)
        whole = n_waiting - n_waiting % batch_rows
        for start in range(0, whole, batch_rows):
            yield to_frame(table.slice(start, batch_rows), schema, place)
        n_read += whole
        n_waiting -= whole
        waiting = table.slice(whole).to_batches()
    if n_waiting or not n_read:
        yield to_frame(pyarrow.Table.from_batches(waiting, reader.schema), schema, place)


def _begin(stream: Any, place: object) -> None:
    """Refuse a stream that was read before: it would be a table without rows."""
    # Frames, tables and relations give their rows again; readers have neither length nor names of columns.
    if hasattr(stream, "__len__") or hasattr(stream, "columns"):
        return
    try:
        was_read = stream in _BEGUN
        _BEGUN.add(stream)
    # Handles of ADBC and the like refuse by themselves to be read twice.
    except TypeError:
        return
    if was_read:
        raise unreadable(
            place,
            "is a stream that was read already, and gives its rows once. Make the stream anew for each call, or give a "
            "table that holds the rows: stream.read_all().",
        )


def to_frame(batch: Any, schema: Schema | None, path: object) -> Any:
    """Return a batch as a data frame, whose types do not depend on whether entries are missing in it."""
    batch = _plain_columns(batch, schema, path)
    try:
        frame = batch.to_pandas(types_mapper=partial(_pandas_type, is_declared=schema is not None))
    # A file's description of the frame that it was written from may be anything, and is believed.
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(type(error).__name__) from None
    # An index with a name is data, such as record numbers.
    try:
        frame = frame.reset_index(drop=all(name is None for name in frame.index.names))
    except ValueError:
        raise unreadable(path, "has a column and an index of one name. Rename or remove one of them.") from None
    # pandas writes an index without a name as a column.
    is_index = [isinstance(name, str) and bool(NAMELESS_INDEX.fullmatch(name)) for name in frame.columns]
    if any(is_index):
        frame = frame.loc[:, [not each for each in is_index]]
    in_file = list(map(str, frame.columns))
    names = [name or each for name, each in zip(spell_names(path, in_file, schema), in_file, strict=True)]
    return settle_concepts(settle_types(frame.set_axis(names, axis=1), schema), schema)


def _plain_columns(batch: Any, schema: Schema | None, path: object) -> Any:
    """Return a batch with numbers and texts for extensions of Arrow; refuse lists, records and bytes of databases."""
    pyarrow = require("pyarrow", "tables")
    known = None if schema is None else {*schema.labels, *schema.feature_names}
    for place, field in enumerate(batch.schema):
        name = field.name
        is_used = known is None or name in known
        is_number = schema is not None and name in schema.labels and not schema.labels[name]
        sort = _refused_sort(field, is_declared=schema is not None)
        if sort and is_used:
            raise ExchangeError(
                "SCHEMA_DTYPE",
                f"{path}: column {name!r} holds {sort}; expected a number or text in each row. Write each as one in "
                "the file or, by CAST, in the query, or leave the column out.",
            )
        kind = getattr(field.type, "extension_name", "")
        entries: Any = None
        if kind == "arrow.uuid":
            texts = [None if each is None else str(uuid.UUID(bytes=each)) for each in _stored(batch, place).to_pylist()]
            entries = pyarrow.array(texts, pyarrow.string())
        elif kind == "arrow.opaque" and field.type.type_name == "numeric" and (schema is None or is_number):
            # The driver gives numbers of any length as texts; NaN among them is a gap.
            entries = _stored(batch, place).cast(pyarrow.float64())
        elif kind:
            entries = _stored(batch, place)
        if entries is not None:
            batch = batch.set_column(place, name, entries)
    return batch


def _stored(batch: Any, place: int) -> Any:
    column = batch.column(place)
    return column.cast(column.type.storage_type)


def _refused_sort(field: Any, *, is_declared: bool) -> str:
    """Return in words the entries of a column that are neither numbers nor text; empty if they are."""
    types = require("pyarrow", "tables").types
    # Without a schema the draft of a project leaves them out.
    if is_declared and types.is_nested(field.type):
        return "lists or records"
    if getattr(field.type, "extension_name", "") == "arrow.opaque" and types.is_binary(field.type.storage_type):
        return f"PostgreSQL's type {field.type.type_name!r}"
    # The driver gives hundredths as whole numbers.
    if (field.metadata or {}).get(b"POSTGRESQL:type") == b"money":
        return "PostgreSQL's type 'money'"
    return ""


def _pandas_type(kind: Any, *, is_declared: bool) -> Any:
    """Return the type of pandas for one of Arrow, or None for its own choice.

    Types that pandas lacks stay as they are: objects of Python take many times as much, and tell no type if empty.
    """
    pandas = require("pandas", "cli")
    types = require("pyarrow", "tables").types
    if is_declared and str(kind) in _NULLABLE:
        return pandas.api.types.pandas_dtype(_NULLABLE[str(kind)])
    foreign = [types.is_date, types.is_time, types.is_decimal]
    foreign += [types.is_binary, types.is_large_binary, types.is_fixed_size_binary]
    is_kept = types.is_nested(kind) or (is_declared and any(is_foreign(kind) for is_foreign in foreign))
    if is_kept:
        return pandas.ArrowDtype(kind)
    return None
