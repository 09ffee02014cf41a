"""A copy of all that a hub keeps, as files that any database can be filled from."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select, text

from datacollab.bundle import canonical_json, parse_json, write_atomically
from datacollab.errors import ExchangeError

from ._database import check_current, newest
from ._schema import METADATA, files, keys, log, projects
from ._store import Store, pair_anew

_ROWS = "database.jsonl"
_LEFT_OUT = ("hub", "uploads", "chunks", "sessions", "browsers")
"""A restored hub has another id, and what is on its way begins anew."""

_TABLES = [table for table in METADATA.sorted_tables if table.name not in _LEFT_OUT]


def backup(store: Store, folder: Path) -> int:
    """Write all rows, as they were at one moment, and the blobs of all files; the hub may go on meanwhile.

    A file that is withdrawn before its blob was copied is withdrawn in the backup too.

    Parameters
    ----------
    store : Store
    folder : Path
        Made, closed to all but its owner.

    Returns
    -------
    int
        How many files there are.

    Raises
    ------
    ExchangeError
        ``ALREADY_THERE``, when the folder exists; ``STATE_DAMAGED``, when a file's bytes are not there, or others.
    """
    if folder.exists():
        raise ExchangeError("ALREADY_THERE", f"{folder} exists. Name a folder that does not; nothing was written.")
    (folder / "blobs").mkdir(parents=True, mode=0o700)
    # The mode above is of no effect on a folder's parents, and a mask may change it.
    folder.chmod(0o700)
    rows: list[tuple[str, dict[str, Any]]] = []
    with store.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            # All tables as of one moment, or a row could name another that is not in the copy.
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.execution_options(reading=True).begin():
            for table in _TABLES:
                for each in connection.execute(select(table)).mappings():
                    rows.append((table.name, {name: _plain(value) for name, value in each.items()}))
    # Rows before blobs: a blob that goes in between is explained below, one that comes has no row here.
    live = [row for table, row in rows if table == files.name and row["blob"]]
    for row in live:
        if not _copy_blob(store, folder, row):
            row |= _withdrawn(store, row)
    lines = [canonical_json({"table": table, "row": row}) for table, row in rows]
    head = {"format": "datacollab hub backup 1", "revision": newest(), "rows": len(lines)}
    # Last of all: a folder without this file is no backup, and cannot be taken for one.
    write_atomically(folder / _ROWS, b"\n".join([canonical_json(head), *lines]) + b"\n", mode=0o600)
    return sum(1 for row in live if row["blob"])


def _copy_blob(store: Store, folder: Path, row: dict[str, Any]) -> bool:
    """Copy a file's blob; False where it is not there."""
    path = folder / "blobs" / row["sha256"]
    if path.exists():
        return True  # The same bytes, of another project.
    try:
        found = _write(path, store.blobs.read(row["blob"]))
    except FileNotFoundError:
        path.unlink(missing_ok=True)
        return False
    # Spoilt bytes would show only when the backup is needed.
    if found != row["sha256"]:
        raise _describe_loss(row)
    return True


def _withdrawn(store: Store, row: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of a row whose blob was there when the rows were read."""
    with store.reading() as connection:
        now = (
            connection.execute(select(files.c.withdrawn, files.c.blob).where(files.c.id == row["id"]))
            .mappings()
            .first()
        )
    # Only its sender's withdrawal explains that bytes are gone.
    if now is None or now["withdrawn"] is None:
        raise _describe_loss(row)
    return dict(now)


def _describe_loss(row: dict[str, Any]) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"The bytes of the file {row['sha256']} are missing, or others. Look at the place of the blobs.",
    )


def _write(path: Path, pieces: Iterator[bytes]) -> str:
    sha256 = hashlib.sha256()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        for piece in pieces:
            sha256.update(piece)
            target.write(piece)
        target.flush()
        # On the disk before any row says that it is there.
        os.fsync(target.fileno())
    return sha256.hexdigest()


def restore(store: Store, folder: Path) -> int:
    """Fill an empty hub from a backup; all of it, or nothing.

    Returns
    -------
    int
        How many files there are.

    Raises
    ------
    ExchangeError
        ``ALREADY_THERE``, when the hub is not empty; ``DATABASE_OUTDATED``, when another version of the program made
        the backup; ``STATE_DAMAGED``, when it is not whole.
    """
    check_current(store.engine)
    # All of the file is checked before the first row is written.
    lines = list(_lines(folder / _ROWS))
    written: list[str] = []
    try:
        # One transaction: where it fails the hub is empty, and can be filled again.
        with store.writing() as connection:
            if any(connection.execute(select(func.count()).select_from(each)).scalar() for each in (keys, projects)):
                raise ExchangeError("ALREADY_THERE", "The hub is not empty. Restore into a new folder and database.")
            for table, row in lines:
                if table == "files" and row["blob"]:
                    row["blob"] = _restore_blob(store, folder, row, written)
                connection.execute(insert(METADATA.tables[table]).values(**row))
            _go_on_counting(connection)
            # From here on the hub that was backed up cannot sweep these blobs.
            pair_anew(connection, store.blobs)
    except BaseException:
        store.blobs.remove(*written)
        raise
    return len(written)


def _restore_blob(store: Store, folder: Path, row: dict[str, Any], written: list[str]) -> str:
    path = folder / "blobs" / row["sha256"]
    if not path.is_file():
        raise _damage_in(path)
    with open(path, "rb") as source:
        blob, _, sha256 = store.blobs.write("files", iter(lambda: source.read(2**20), b""))
    # Before its hash is compared, so that a wrong one is removed as well.
    written.append(blob)
    if sha256 != row["sha256"]:
        raise _damage_in(path)
    return blob


def _go_on_counting(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # The server's counter did not see numbers that came with the rows.
        most = "SELECT setval(pg_get_serial_sequence('files', 'id'), (SELECT max(id) FROM files))"
        connection.execute(text(most))


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables and rows."""
    if not path.is_file():
        raise ExchangeError("FOLDER_MISSING", f"{path} is not there. Give the folder of a whole backup.")
    tables = {table.name: table for table in _TABLES}
    with open(path, "rb") as source:
        head = _parse_line(source.readline(), path)
        if head.get("revision") != newest():
            raise ExchangeError(
                "DATABASE_OUTDATED",
                f"The backup is of revision {head.get('revision')}, this version of the program works with {newest()}. "
                "Restore it with the version that made it, then upgrade.",
            )
        lines = source.readlines()
        # A file that was cut off may end at a line's end too.
        if head.get("rows") != len(lines):
            raise _damage_in(path)
        for line in lines:
            said = _parse_line(line, path)
            table = tables.get(str(said.get("table")))
            # Only names of the schema reach the database, whatever the file says.
            if table is None or not isinstance(said.get("row"), dict) or {*said["row"]} != {*table.c.keys()}:
                raise _damage_in(path)
            yield table.name, {name: _original(table, name, value) for name, value in said["row"].items()}


def _parse_line(line: bytes, path: Path) -> dict[str, Any]:
    try:
        said = parse_json(line, what=str(path))
    except ExchangeError:
        raise _damage_in(path) from None
    if not isinstance(said, dict):
        # The caller refuses what has no entries.
        return {}
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat()
    return value


def _original(table: Any, name: str, value: Any) -> Any:
    if table is log or value is None:
        return value
    wanted = table.c[name].type.python_type
    if wanted is bytes:
        return base64.b64decode(value)
    if wanted is date:
        return date.fromisoformat(value)
    return value


def _damage_in(path: Path) -> ExchangeError:
    return ExchangeError("STATE_DAMAGED", f"{path} is damaged or missing. Take another backup; nothing was restored.")
