"""Writing a table batch by batch, in place of the old one once it is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..._require import require
from ._table_format import table_format

__all__ = ["write_table"]


def write_table(path: Path, batches: Iterable[Any], *, mode: int = 0o666) -> int:
    """Write data frames one after another into a CSV, Parquet or Arrow file, by the end of its name.

    The file appears when all of it is on the disk; if anything goes wrong, what was there before is still there.

    Parameters
    ----------
    path : Path
    batches : iterable of DataFrame
        At least one, with the same columns each.
    mode : int, default=0o666
        Permissions from the first moment on; the umask takes away from them.

    Returns
    -------
    int
        Rows written.

    Raises
    ------
    ExchangeError
        When the end of the name is unknown.
    MissingExtraError
        When pyarrow is wanted and not installed.
    """
    path = Path(path)
    open_writer = {"CSV": _csv_writer, "Parquet": _parquet_writer, "Arrow": _arrow_writer}[table_format(path)]
    part = path.with_name(f".{path.name[:80]}.{secrets.token_hex(8)}.part")
    n_rows = 0
    try:
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            _claim(file)
            with contextlib.ExitStack() as stack:
                write: Callable[[Any], None] | None = None
                for batch in batches:
                    write = write or open_writer(file, batch, stack)
                    write(batch)
                    n_rows += len(batch)
                if write is None:
                    raise ValueError(f"There is nothing to write into {path}: no batch, not even one without rows.")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        if error.filename != str(part):
            raise
        # The name in the error is to be the one that was asked for.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return n_rows


def _claim(file: IO[bytes]) -> None:
    """Keep other commands from taking the file for what a killed one left behind; see `exchange.log.locked`."""
    if os.name == "posix":
        import fcntl

        # Some file systems know no locks; there, nobody else may work in the folder.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _csv_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    file.write(first.iloc[:0].to_csv(index=False, lineterminator="\n").encode())
    return lambda batch: _discard(file.write(batch.to_csv(index=False, header=False, lineterminator="\n").encode()))


def _parquet_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    parquet, schema = require("pyarrow.parquet", "tables"), _schema(first)
    writer = stack.enter_context(parquet.ParquetWriter(file, schema))
    return lambda batch: writer.write_table(_arrow_table(batch, schema))


def _arrow_writer(file: IO[bytes], first: Any, stack: contextlib.ExitStack) -> Callable[[Any], None]:
    ipc, schema = require("pyarrow.ipc", "tables"), _schema(first)
    writer = stack.enter_context(ipc.new_file(file, schema))
    return lambda batch: writer.write_table(_arrow_table(batch, schema))


def _schema(first: Any) -> Any:
    return require("pyarrow", "tables").Schema.from_pandas(first, preserve_index=False)


def _arrow_table(batch: Any, schema: Any) -> Any:
    return require("pyarrow", "tables").Table.from_pandas(batch, schema=schema, preserve_index=False)


def _discard(_: object) -> None:
    pass
