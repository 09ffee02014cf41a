"""Rows of a database by one query: SQLite, DuckDB and PostgreSQL, opened to be read alone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._require import require
from ..errors import ExchangeError, MissingExtraError
from ._arrow_frames import reader_frames
from ._column import Schema
from ._exports import settle_concepts, tell_concepts
from ._limits import unreadable
from ._text import AS_CAME, settle_types, spell_names

DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
_SCHEME = re.compile(r"postgres(?:ql)?://")
_OPTION = re.compile(r"[?&]([^=&?]*)=")
_SECRETS = {"password", "sslpassword"}
_SELECT = re.compile(r"(?>\s|--[^\n]*\n|/\*(?s:.*?)\*/|\()*+(?:SELECT|WITH|VALUES|TABLE|FROM)\b", re.IGNORECASE)
"""How a query begins.  Databases refuse the rest, but a COPY writes files where nothing else may be changed."""
_FAILURES = {
    # Of SQLite by name of its code, of DuckDB by name of the error, of PostgreSQL by SQLSTATE or its first signs.
    ("SQLITE_READONLY", "SQLITE_AUTH", "25006"): "does something else than to read. Give one SELECT",
    ("ParserException", "42601", "ProgrammingError", "Warning"): (
        "is not one statement that the database understands. Give one SELECT"
    ),
    ("CatalogException", "BinderException", "42P01", "42703", "42883", "SQLITE_ERROR"): (
        "names a table, a column or a function that is not there, or has a slip in its SQL. Try it in the database's "
        "own program"
    ),
    ("42501",): "reads a table that this user may not read. Ask the database's administrator",
    ("ConversionException", "OutOfRangeException", "22"): (
        "computes or converts an entry that does not allow it. Try it in the database's own program"
    ),
    ("SQLITE_BUSY", "SQLITE_LOCKED", "IOException"): (
        "cannot be run, for the file is in use or cannot be opened. Close programs that write to it, and try again"
    ),
    ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_CANTOPEN"): (
        "cannot be run, for the file is no whole database of this kind. Check the file"
    ),
    ("57",): "was stopped by the server, by a limit of time or its administrator. Try again, or ask for fewer rows",
}


def _is_database(place: str | Path) -> bool:
    """Return whether a place is an address or a file of a database, by the end of its name."""
    return "://" in str(place) or Path(place).suffix.lower() in DATABASES


def needs_query(path: Path) -> ExchangeError:
    """Return the refusal of a file that is a database, which has many tables."""
    return unreadable(
        path, 'is a database. Say which rows: --sql "SELECT …" (in Python: Query(path, "SELECT …") as the table).'
    )


@dataclass(frozen=True, repr=False)
class Query:
    """Rows of a database: a file of SQLite or DuckDB, or PostgreSQL's address, and one SELECT.

    It runs whenever its rows are read.  The database is opened to be read alone.  A password has no place in an
    address, as that stands in histories and lists of programs: libpq takes it from ``PGPASSFILE`` (``~/.pgpass``),
    ``PGSERVICEFILE`` or ``PGPASSWORD``.  As text it is the file, or the address without user and options.

    Raises
    ------
    ExchangeError
        TABLE_UNREADABLE if the place is no database, or holds a password, which is not shown.

    Examples
    --------
    >>> from datacollab.table import Query
    >>> query = Query("postgresql://ward7@db.example/registry", "SELECT age, ward FROM patients")
    >>> str(query)
    'postgresql://db.example/registry'
    """

    database: str | Path
    sql: str

    def __post_init__(self) -> None:
        place = str(self.database)
        scheme = _SCHEME.match(place)
        if scheme is not None:
            # By the last @ and any colon before it: a password may hold signs that end an address elsewhere.
            user = place[scheme.end() :].rpartition("@")[0]
            names = {unquote(each).strip().lower() for each in _OPTION.findall(place)}
            if ":" in user or names & _SECRETS:
                raise unreadable(
                    "The address of the database",
                    "holds a password, and stands in histories of commands. Leave the password out: libpq takes it "
                    "from ~/.pgpass (or PGPASSFILE), a service (PGSERVICEFILE), or PGPASSWORD.",
                )
        # Any other address may hold a password, too, and is not shown.
        elif "://" in place:
            raise unreadable("The address of the database", "is none of PostgreSQL. Begin it with postgresql://.")
        elif not _is_database(place):
            raise unreadable(
                place, f"is no database, which --sql is for. Its name ends in one of {', '.join(DATABASES)}."
            )
        if not self.sql.strip():
            raise unreadable(str(self), 'is a database: say which rows, as --sql "SELECT age, ward FROM patients".')
        if _SELECT.match(self.sql) is None:
            raise unreadable(str(self), "is read by one SELECT, and --sql is something else. Give one SELECT.")

    @property
    def path(self) -> Path | None:
        """The file of the database, if it is one."""
        return None if "://" in str(self.database) else Path(self.database)

    @property
    def name(self) -> str:
        """The file's name, or the address without user and options."""
        return str(self) if self.path is None else self.path.name

    def __repr__(self) -> str:
        return f"Query({str(self)!r})"

    def __str__(self) -> str:
        place = str(self.database)
        if self.path is not None:
            return place
        return f"postgresql://{place.partition('://')[2].rpartition('@')[2].partition('?')[0]}"


def query_frames(query: Query, *, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
    """Run a query, and yield its rows in data frames; one without rows is one empty frame.

    Errors name the kind of failure alone: a database's own words may quote entries, and its address.
    """
    if query.path is not None and not query.path.is_file():
        raise FileNotFoundError(f"There is no file {query.path}.")
    with ExitStack() as stack:
        try:
            if query.path is not None and not _is_duckdb(query.path):
                yield from _sqlite_frames(query, stack, batch_rows, schema)
                return
            reader = _ask_postgresql(query, stack) if query.path is None else _ask_duckdb(query, stack, batch_rows)
            _check_columns(query, reader.schema.names)
            yield from reader_frames(reader, query, batch_rows, schema)
        except (ExchangeError, MissingExtraError, MemoryError):
            raise
        # Each driver has errors of its own, and those of Arrow.
        except Exception as error:
            raise _refusal(query, error) from None


def _check_columns(query: Query, names: object) -> None:
    if not names:
        raise unreadable(query, "gives no columns for this query. Give one SELECT.")


def _refusal(query: Query, error: Exception) -> ExchangeError:
    """Return the error for a query, by the code of the failure alone."""
    names = (getattr(error, "sqlstate", None), getattr(error, "sqlite_errorname", None), type(error).__name__)
    codes = [each for each in names if each]
    for signs, sentence in _FAILURES.items():
        if any(code == sign or (code[:2] == sign and len(code) == 5) for code in codes[:1] for sign in signs):
            return unreadable(query, f"has refused the query ({codes[0]}): it {sentence}.")
    return unreadable(
        query,
        f"has failed ({codes[0]}), and nothing was made of its rows. Try the query in the database's own program, and "
        "run this again.",
    )


def _ask_postgresql(query: Query, stack: ExitStack) -> Any:
    driver = require("adbc_driver_postgresql.dbapi", "databases")
    try:
        connection = stack.enter_context(closing(driver.connect(str(query.database), autocommit=True)))
    # Its words name user and address.
    except Exception:
        raise unreadable(
            query,
            "lets nobody in. Check host, port, name of the database, user and password, as by: psql ADDRESS. The "
            "password comes from ~/.pgpass (or PGPASSFILE), a service (PGSERVICEFILE), or PGPASSWORD.",
        ) from None
    cursor = stack.enter_context(closing(connection.cursor()))
    cursor.execute("SET default_transaction_read_only = on")
    # The driver wraps the query, and a comment at its end would swallow the rest.
    cursor.execute(f"{query.sql}\n")
    return cursor.fetch_record_batch()


def _is_duckdb(path: Path) -> bool:
    """Return whether a file is DuckDB's; both programs name files .db."""
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK" or path.suffix.lower() == ".duckdb"


def _ask_duckdb(query: Query, stack: ExitStack, batch_rows: int) -> Any:
    duckdb = require("duckdb", "databases")
    # A query must not fetch programs from the network.
    options = {"autoinstall_known_extensions": False}
    connection = stack.enter_context(closing(duckdb.connect(str(query.path), read_only=True, config=options)))
    statements = connection.extract_statements(query.sql)
    if [each.type.name for each in statements] != ["SELECT"]:
        raise unreadable(query, "is read by one SELECT, and --sql is something else. Give one SELECT.")
    return connection.sql(query.sql).to_arrow_reader(min(batch_rows, _MOST_AT_ONCE))


_MOST_AT_ONCE = 2**16


def _sqlite_frames(query: Query, stack: ExitStack, batch_rows: int, schema: Schema | None) -> Iterator[Any]:
    """Yield rows of SQLite, whose columns have a type in each entry; by Python's own driver, which guesses none."""
    assert query.path is not None
    place = f"{query.path.resolve().as_uri()}?mode=ro"
    connection = stack.enter_context(closing(sqlite3.connect(place, uri=True)))
    cursor = connection.execute(query.sql)
    _check_columns(query, cursor.description)
    in_database = [each[0] for each in cursor.description]
    names = [name or each for name, each in zip(spell_names(query, in_database, schema), in_database, strict=True)]
    tell_concepts(str(query), names, schema)
    is_empty = True
    while rows := cursor.fetchmany(batch_rows):
        is_empty = False
        yield _sqlite_frame(query, names, list(zip(*rows, strict=True)), schema)
    if is_empty:
        yield _sqlite_frame(query, names, [()] * len(names), schema)


def _sqlite_frame(query: Query, names: Sequence[str], columns: Sequence[Sequence[Any]], schema: Schema | None) -> Any:
    pandas = require("pandas", "cli")
    known = set(names) if schema is None else {*schema.labels}
    numeric = set() if schema is None else {name for name, labels in schema.labels.items() if not labels}
    series = []
    for name, entries in zip(names, columns, strict=True):
        types = set(map(type, entries)) - {type(None)}
        # Without a schema one type is guessed for all entries; with one, each entry is read by itself.
        is_mixed = schema is None and str in types and len(types) > 1
        if name in known and (bytes in types or is_mixed):
            sort = "bytes" if bytes in types else "numbers and texts"
            raise ExchangeError(
                "SCHEMA_DTYPE", f"{query}: column {name!r} holds {sort}. Make one type of them by CAST in the query."
            )
        dtype = None if schema is None else object
        if types <= {int, float} and (name in numeric or (schema is None and types)):
            dtype = np.float64 if name in numeric or float in types or None in entries else np.int64
        series.append(pandas.Series(entries, dtype=dtype))
    frame = pandas.concat(series, axis=1) if series else pandas.DataFrame()
    keep = () if schema is None else schema.keep
    as_came = {
        name + AS_CAME: pandas.Series(columns[names.index(name)], dtype=object) for name in keep if name in names
    }
    return settle_concepts(settle_types(frame.set_axis(list(names), axis=1).assign(**as_came), schema), schema)
