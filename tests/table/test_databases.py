"""Queries of SQLite, DuckDB and PostgreSQL: what each type becomes, what is refused, and that nothing is changed."""

import sqlite3
from contextlib import closing
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as postgresql
import duckdb
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from datacollab.errors import ExchangeError
from datacollab.table import Column, Query, Schema, encode_table, read_table, table_batches
from postgres_server import find_programs, run_server

PEOPLE = """
CREATE TABLE people (age INTEGER, weight {decimal}, ward TEXT, seen DATE, smoker {truth}, id BIGINT);
INSERT INTO people VALUES (64, 70.5, 'north', '2026-01-31', {yes}, 9007199254740993);
INSERT INTO people VALUES (NULL, 81.25, NULL, NULL, {no}, 2);
INSERT INTO people VALUES (71, NULL, 'south', '2026-02-28', NULL, 3);
"""
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="number", minimum=0, maximum=120, missing="fill", fill=50.0, flag_missing=True),
        Column(name="weight", kind="number", minimum=0, maximum=200, missing="fill", fill=75.0, flag_missing=True),
        Column(
            name="ward", kind="category", categories=("north", "south"), missing="fill", fill="north", flag_missing=True
        ),
        Column(name="smoker", kind="category", categories=("0", "1"), missing="fill", fill="0", flag_missing=True),
        Column(name="id", kind="category", categories=("9007199254740992", "9007199254740993", "2", "3")),
    )
)
MATRIX = [
    [64, 0, 70.5, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0],
    [50, 1, 81.25, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0],
    [71, 0, 75, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1],
]


def people(decimal, truth, yes, no):
    return [each for each in PEOPLE.format(decimal=decimal, truth=truth, yes=yes, no=no).split(";") if each.strip()]


@pytest.fixture(scope="module")
def server():
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL (initdb, postgres) is not installed here, or nobody may run it")
    with run_server(programs) as address, closing(postgresql.connect(f"{address}/postgres", autocommit=True)) as made:
        with made.cursor() as cursor:
            cursor.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
            cursor.execute("CREATE SEQUENCE people_numbers")
            for statement in people("NUMERIC(10, 2)", "BOOLEAN", "true", "false"):
                cursor.execute(statement)
        yield f"{address}/postgres"


def write_sqlite(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in statements or people("REAL", "INTEGER", 1, 0):
            connection.execute(each)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("databases")
    write_sqlite(folder / "people.sqlite")
    for name in ("people.duckdb", "of_duckdb.db"):
        with duckdb.connect(folder / name) as connection:
            connection.execute(";".join(people("DECIMAL(10, 2)", "BOOLEAN", "true", "false")))
    return folder


@pytest.fixture(params=["people.sqlite", "people.duckdb", "of_duckdb.db", "PostgreSQL"])
def place(request, files):
    if request.param == "PostgreSQL":
        return request.getfixturevalue("server")
    return files / request.param


def read_one(place, expression, schema=None):
    return read_table(Query(place, f"SELECT {expression} AS x"), schema=schema)["x"].tolist()


def test_entries_are_the_same_in_all_databases(place):
    query = Query(place, "SELECT * FROM people ORDER BY weight IS NULL, weight -- all of them")
    frame = read_table(query, schema=SCHEMA)
    assert_array_equal(encode_table(SCHEMA, frame, where="the rows", with_target=False).X, np.array(MATRIX))
    (found,) = set(frame["seen"].dropna().astype(str)) - {"2026-02-28"}
    assert found == "2026-01-31"


def test_batches_and_no_rows(place):
    frames = list(table_batches(Query(place, "SELECT age FROM people"), batch_rows=2, schema=SCHEMA))
    assert [len(each) for each in frames] == [2, 1]
    assert {str(each["age"].dtype) for each in frames} == {"float64"}
    (empty,) = table_batches(Query(place, "SELECT age, ward FROM people WHERE age > 200"), schema=SCHEMA)
    assert (list(empty.columns), len(empty)) == (["age", "ward"], 0)


WRITES = (
    "INSERT INTO people (age) VALUES (1)",
    "DELETE FROM people",
    "DROP TABLE people",
    "CREATE TABLE other (a INTEGER)",
    "SELECT 1 AS a; DROP TABLE people",
    "ATTACH '{}' AS other",
    "VACUUM INTO '{}'",
    "COPY people TO '{}'",
    "WITH one AS (SELECT 1 AS a) INSERT INTO people (age) SELECT a FROM one",
)


@pytest.mark.parametrize(
    "sql", [*WRITES, "INSERT INTO people (age) VALUES (1) RETURNING age", "SELECT FROM people x x"]
)
def test_anything_but_a_select_is_refused_and_changes_nothing(place, sql, tmp_path):
    with pytest.raises(ExchangeError) as caught:
        read_table(Query(place, sql.format(tmp_path / "written.db")))
    assert caught.value.code == "TABLE_UNREADABLE"
    assert "SELECT" in str(caught.value) or "own program" in str(caught.value)
    assert not any(tmp_path.iterdir())
    assert len(read_table(Query(place, "SELECT * FROM people"))) == 3


def test_of_two_selects_none_is_read(place):
    with pytest.raises(ExchangeError, match="one SELECT"):
        read_table(Query(place, "SELECT 1 AS x; SELECT 2 AS x"))


def test_a_query_without_end_is_read_in_batches(files):
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    frames = table_batches(Query(files / "people.sqlite", numbers), batch_rows=5)
    assert [next(frames)["x"].tolist() for _ in range(2)] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    frames.close()


def test_words_of_a_database_are_not_passed_on(place):
    expressions = {"SELECT nothere FROM people": "nothere", "SELECT * FROM hidden": "hidden"}
    if not str(place).endswith("sqlite"):
        expressions["SELECT CAST(ward AS INTEGER) AS x FROM people"] = "north"
    for sql, word in expressions.items():
        with pytest.raises(ExchangeError, match=r"refused the query|has failed") as caught:
            read_table(Query(place, sql))
        assert word not in str(caught.value)
        assert caught.value.__cause__ is None


def test_two_columns_of_one_name_are_refused(place):
    with pytest.raises(ExchangeError, match="columns 1, 2 share names"):
        read_table(Query(place, "SELECT age, age FROM people"))


def test_an_address_with_a_password_is_refused_and_not_shown():
    for address in (
        *("postgresql://ann:geheim@db/x", "postgres://ann:ge/heim@db/x", "postgresql://ann:ge?heim@db/x"),
        *("postgresql://db/x?password=geheim", "postgresql://db/x?user=ann&PASS%77ORD=geheim"),
        *("postgresql://db/x?sslpassword=geheim", "mysql://ann:geheim@db/x", "postgresql://ann:@ge@heim:@db/x"),
    ):
        with pytest.raises(ExchangeError) as caught:
            Query(address, "SELECT 1")
        assert not any(word in str(caught.value) for word in ("heim", "ann", "ge@"))
    with pytest.raises(ExchangeError, match="pgpass"):
        Query("postgresql://ann:geheim@db/x", "SELECT 1")


def test_a_query_is_named_without_user_and_options():
    query = Query("postgresql://ann@db:5433/x?sslmode=require&user=bob", "SELECT 'geheim'")
    assert str(query) == query.name == "postgresql://db:5433/x"
    assert repr(query) == "Query('postgresql://db:5433/x')"


def test_a_query_may_begin_with_comments_and_brackets(files):
    for sql in (
        "-- DROP\nSELECT 1 AS x",
        "/* a */ /* b */ (SELECT 1 AS x)",
        "with y as (select 1 as x) select x from y",
    ):
        if "(SELECT" not in sql:
            assert read_one_of(files / "people.sqlite", sql) == [1]
        assert read_one_of(files / "people.duckdb", sql) == [1]


def read_one_of(place, sql):
    return read_table(Query(place, sql))["x"].tolist()


def test_a_database_without_a_query_is_refused(files):
    for path in (files / "people.sqlite", str(files / "people.duckdb")):
        with pytest.raises(ExchangeError, match='--sql "SELECT'):
            read_table(path)
    with pytest.raises(FileNotFoundError):
        read_table(Query(files / "none.sqlite", "SELECT 1"))
    (files / "text.sqlite").write_text("age,ward\n" * 1000)
    with pytest.raises(ExchangeError, match="SQLITE_NOTADB"):
        read_table(Query(files / "text.sqlite", "SELECT * FROM people"))


# SQLite has a type in each entry: its ADBC driver guesses one from the first rows (findings/).


def test_types_of_sqlite_do_not_depend_on_the_first_rows(tmp_path):
    entries = ["NULL"] * 3000 + ["3.14159265358979", "2", "9007199254740993"]
    rows = ", ".join(f"({each})" for each in entries)
    path = write_sqlite(tmp_path / "late.sqlite", "CREATE TABLE t (x)", f"INSERT INTO t VALUES {rows}")
    frame = read_table(Query(path, "SELECT x FROM t"))
    assert frame["x"].dropna().tolist() == [3.14159265358979, 2.0, 9007199254740992.0]
    schema = Schema(
        columns=(Column(name="x", kind="category", categories=("2", "9007199254740993", "3.14159265358979")),)
    )
    frames = list(table_batches(Query(path, "SELECT x FROM t"), batch_rows=1000, schema=schema))
    X = encode_table(schema, frames[-1], where="the rows", with_target=False).X
    assert_array_equal(X, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_numbers_beside_texts_in_sqlite_are_read_one_by_one_or_refused(tmp_path):
    path = write_sqlite(tmp_path / "mixed.db", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1), (2.5), ('x'), (1.0)")
    category = Schema(columns=(Column(name="x", kind="category", categories=("1", "2.5", "x")),))
    X = encode_table(
        category, read_table(Query(path, "SELECT x FROM t"), schema=category), where="", with_target=False
    ).X
    assert_array_equal(X, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    with pytest.raises(ExchangeError, match="'x' holds numbers and texts.*CAST"):
        read_table(Query(path, "SELECT x FROM t"))
    number = Schema(columns=(Column(name="x", kind="number", minimum=0, maximum=9),))
    with pytest.raises(ExchangeError, match="holds text in 1 of 4 rows"):
        encode_table(number, read_table(Query(path, "SELECT x FROM t"), schema=number), where="it:", with_target=False)
    with pytest.raises(ExchangeError, match="'x' holds bytes"):
        read_one(path, "x'00ff'")


# PostgreSQL


def test_numeric_of_postgresql_is_a_number_where_one_is_expected(server):
    """Its driver gives texts."""
    number = Schema(columns=(Column(name="x", kind="number", minimum=0, maximum=9),))
    category = Schema(columns=(Column(name="x", kind="category", categories=("12345678901234567890.5", "1")),))
    assert read_one(server, "1.25::numeric", number) == [1.25]
    assert read_one(server, "0.1::numeric + 0.2") == [0.3]
    assert np.isnan(read_one(server, "'NaN'::numeric", number)).all()
    frame = read_table(
        Query(server, "SELECT 1.00::numeric AS x UNION ALL SELECT 12345678901234567890.5"), schema=category
    )
    assert_array_equal(encode_table(category, frame, where="", with_target=False).X.sum(axis=0), [1, 1])


def test_types_of_postgresql(server):
    assert read_one(server, "'happy'::mood") == ["happy"]
    uuid = "96d10a85-d210-4898-aea0-2185eb94d735"
    assert read_one(server, f"'{uuid}'::uuid") == [uuid]
    assert read_one(server, "true") == [True]
    assert read_one(server, "'a'::varchar") == ["a"]
    (moment,) = read_one(server, "'2026-01-31 12:00+02'::timestamptz")
    assert str(moment) == "2026-01-31 10:00:00+00:00"


@pytest.mark.parametrize("expression", ["12.34::money", "'10.0.0.1'::inet", "'(1,2)'::point", "int4range(1, 2)"])
def test_types_of_postgresql_that_come_as_other_numbers_or_bytes_are_refused(server, expression):
    """Money comes as hundredths, and others as bytes of the wire."""
    with pytest.raises(ExchangeError, match=r"'x' holds PostgreSQL's type.*CAST"):
        read_one(server, expression)
    assert read_one(server, f"({expression})::text")[0]


def test_arrays_of_postgresql_are_refused_where_the_project_has_the_column(server):
    number = Schema(columns=(Column(name="x", kind="number", minimum=0, maximum=9),))
    with pytest.raises(ExchangeError, match="'x' holds lists or records"):
        read_one(server, "ARRAY[1, 2]", number)
    assert len(read_table(Query(server, "SELECT 1 AS x, ARRAY[1, 2] AS y"), schema=number)) == 1


def test_nobody_gets_in_without_words_of_the_driver(server):
    place = server.rpartition("/")[0]
    for address in (f"{place}/geheim", place.replace("hub@", "geheim@") + "/postgres", f"{place}/x?geheim=1"):
        with pytest.raises(ExchangeError, match=r"lets nobody in.*PGPASSFILE") as caught:
            read_table(Query(address, "SELECT 1"))
        assert caught.value.__cause__ is None
        assert "user" not in str(caught.value).partition(" lets")[0]
        assert str(caught.value).count("geheim") == address.endswith("/geheim")


def test_a_query_that_fails_late_gives_nothing(server):
    rows = "SELECT 1 / (200000 - n) AS x FROM generate_series(1, 300000) AS n"
    with pytest.raises(ExchangeError, match="TABLE_UNREADABLE|has failed|refused|nothing was made"):
        read_table(Query(server, rows))
    frames = table_batches(Query(server, "SELECT n FROM generate_series(1, 1000000) AS n"))
    next(frames)
    frames.close()
    assert read_one(server, "1") == [1], "the connection that was left is closed"


@pytest.mark.slow
def test_a_connection_that_is_lost_ends_in_an_error(server):
    frames = table_batches(Query(server, "SELECT generate_series(1, 9000000) AS lost"))
    next(frames)
    with closing(postgresql.connect(server, autocommit=True)) as other, other.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE '%AS lost%' AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchall() == [(True,)]
    with pytest.raises(ExchangeError, match="nothing was made of its rows.*run this again"):
        for _ in frames:
            pass


def test_a_session_is_read_only_whatever_the_address_says(server):
    options = quote("-c default_transaction_read_only=off")
    with pytest.raises(ExchangeError, match="has failed"):
        read_table(Query(f"{server}?options={options}", "SELECT nextval('people_numbers')"))
    with pytest.raises(ExchangeError, match="25006"):
        sql = "WITH new AS (INSERT INTO people (age) VALUES (1) RETURNING age) SELECT age FROM new"
        read_table(Query(f"{server}?options={options}", sql))
    assert read_table(Query(server, "SELECT is_called FROM people_numbers"))["is_called"].tolist() == [False]


def test_duckdb_fetches_no_programs(files):
    setting = "SELECT value AS x FROM duckdb_settings() WHERE name = 'autoinstall_known_extensions'"
    assert read_one_of(files / "people.duckdb", setting) == ["false"]
