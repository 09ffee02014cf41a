"""Opening the database, SQLite in a file or of a server, and bringing it to this version or back by Alembic."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, InvalidatePoolError, OperationalError

from datacollab.errors import ExchangeError

# Milliseconds that a writer waits for its turn, as many parties may share at once.
_WAIT_MS = 30_000
_IDLE = 5.0
"""Seconds after which a connection to a server is tried before it is used; each time would cost as much as asking."""


def database_url(data: Path, url: str | None) -> str:
    """The address that is told, with the driver that this program brings, or else of a file in the hub's folder."""
    if url is None:
        return f"sqlite:///{data / 'hub.sqlite'}"
    try:
        parsed = make_url(url)
    except ArgumentError:
        # It may hold a password, so it is not repeated.
        raise ExchangeError(
            "REQUEST_MALFORMED",
            "The database's address cannot be read. Wanted: postgresql://user:password@host/name, or sqlite:///FILE.",
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    # For the engine alone: no message and no log shows it.
    return parsed.render_as_string(hide_password=False)


def open_engines(url: str) -> tuple[Engine, Engine]:
    """An engine whose transactions are serialised where they write to one project, and one to read by.

    SQLite has one writer at a time for all; with a server, who writes to a project locks its row first.  Who reads from
    a server does so statement by statement: each statement does so in a transaction that is READ COMMITTED too, and
    the words that begin and end one would cost as much as the question.  Readers wait for no lock, so a few connections
    do for all threads; to make one costs more than many questions.
    """
    if not url.startswith("sqlite"):
        readers = {"pool_size": 10, "max_overflow": 0, "isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
        return _server_engine(url, pool_size=20, max_overflow=20), _server_engine(url, **readers)
    # More connections than threads that answer, so that none waits for another's.
    engine = create_engine(url, pool_size=20, max_overflow=40, connect_args={"timeout": _WAIT_MS / 1000})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine, engine


def _server_engine(url: str, **options: Any) -> Engine:
    engine = create_engine(url, **options)
    event.listen(engine, "checkin", _note_idle)
    event.listen(engine, "checkout", _try_idle)
    return engine


def _note_idle(_: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()


def _try_idle(connection: Any, record: Any, _: Any) -> None:
    """Have all connections made anew, where the server was begun again meanwhile."""
    # One that was never idle has just been made, and needs no question.
    if time.monotonic() - record.info.get("idle_since", float("inf")) < _IDLE:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        # The driver began a transaction for the question.
        connection.rollback()
    except connection.OperationalError as error:
        raise InvalidatePoolError from error


def _prepare_sqlite(connection: Any, _: Any) -> None:
    # Else Python's driver begins transactions by itself, and too late: a reader that turns writer is refused at once.
    connection.isolation_level = None
    # WAL: readers do not wait for writers. FULL: what was accepted outlasts a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_WAIT_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    reading = connection.get_execution_options().get("reading")
    # A writer takes its turn at the start: one that reads first could be refused half-way.
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


@contextmanager
def transaction(engine: Engine, *, reading: bool = False) -> Iterator[Connection]:
    """All or nothing.

    Parameters
    ----------
    engine : Engine
    reading : bool, default=False
        Whether nothing will be written, so that writers need not wait.
    """
    with engine.connect().execution_options(reading=reading) as connection, connection.begin():
        try:
            yield connection
        # A refusal by a rule, after rows were read to their end.
        except ExchangeError:
            raise
        except BaseException:
            # Rows that nobody has read to their end stay as they were to a connection of SQLite's, which then is let
            # write no more.
            connection.invalidate()
            raise


def disk_is_full(error: BaseException) -> bool:
    """Whether an error means that there is no room, in the database or beside it."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    # The driver's own words: SQLAlchemy adds the statement, in which these could stand as well.
    said = str(getattr(error, "orig", error))
    return isinstance(error, OperationalError | sqlite3.OperationalError) and (
        "is full" in said or "No space left" in said
    )


_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring an older or empty database to a revision; all of it, or nothing where the database can undo it."""
    _run(engine, revision, up=True)


def downgrade(engine: Engine, revision: str) -> None:
    """Bring a database back to an earlier revision, or to ``base``, which is nothing: all in it is lost then."""
    _run(engine, revision, up=False)


def current(engine: Engine) -> str | None:
    """The database's revision; None where it is empty."""
    with transaction(engine, reading=True) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def is_empty(engine: Engine) -> bool:
    """Whether no hub has made its tables in a database yet."""
    return not inspect(engine).get_table_names()


@cache
def newest() -> str | None:
    """The revision that this version of the program works with."""
    return ScriptDirectory(str(_SCRIPTS)).get_current_head()


def check_current(engine: Engine) -> None:
    """Bring an empty database up, and refuse one of another version.

    Raises
    ------
    ExchangeError
        ``DATABASE_OUTDATED``.
    """
    found = current(engine)
    # Tables without a revision are another program's, and stay as they are.
    if found is None and is_empty(engine):
        upgrade(engine)
    elif found != newest():
        raise ExchangeError(
            "DATABASE_OUTDATED",
            f"The hub's database is of revision {found}; this version of the program works with {newest()}. Make a "
            "backup, then run `datacollab hub db upgrade`, or install the version that wrote it.",
        )


def _run(engine: Engine, revision: str, *, up: bool) -> None:
    config = Config()
    # Alembic expands percent signs, which a path may hold.
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with transaction(engine) as connection:
        # The steps run in this transaction: where one fails, the database is as it was before.
        config.attributes["connection"] = connection
        try:
            if up:
                command.upgrade(config, revision)
            else:
                command.downgrade(config, revision)
        except CommandError:
            raise ExchangeError(
                "DATABASE_OUTDATED",
                "The database cannot be brought to that revision: this version of the program does not know it, or not "
                f"the one that it has. It knows up to {newest()}; install the version that wrote the database.",
            ) from None
