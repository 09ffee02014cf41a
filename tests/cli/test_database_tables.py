"""Commands that take a database in place of a table's file: --sql, and nothing of passwords anywhere."""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi as postgresql

from datacollab.steps.party import PartyFolder
from playing import assert_refused, run, runs
from postgres_server import find_programs, run_server
from sums_world import new_sums_world, rows_of

PARTIES = ("north", "south", "east")
SELECT = ("--sql", "SELECT * FROM patients")
party, project = map(runs, ("party", "project"))


def done(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def write_databases(folder, rows):
    with closing(sqlite3.connect(folder / "patients.sqlite")) as connection:
        rows.to_sql("patients", connection, index=False)
    with duckdb.connect(folder / "patients.duckdb") as connection:
        connection.from_df(rows).create("patients")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """All have shared, the north by a query, and have the model."""
    world = new_sums_world(tmp_path_factory.mktemp("databases"), parties=PARTIES)
    write_databases(world.root, rows_of(400, 7))
    heard = [f"--heard={each}" for each in world.heard("north")]
    at = ("-C", world.root / "north")
    text = done(party("check", world.root / "patients.sqlite", *SELECT, *at))
    (command,) = (line.strip() for line in text.splitlines() if "party share" in line)
    assert shlex.split(command)[3:6] == [str(world.root / "patients.sqlite"), *SELECT]
    done(run(*shlex.split(command.partition(" --heard")[0])[1:], *heard))
    for name in PARTIES[1:]:
        world.share(name)
    world.analyst.add(sorted(world.root.glob("*/outbox/*.dcsum")))
    world.analyst.integrate()
    (model,) = (each for each in world.analyst.export() if each.name.startswith("north"))
    done(party("install", model, *at))
    return world


@pytest.fixture
def world(installed, tmp_path):
    return installed.copied(tmp_path)


def test_a_share_is_told_and_kept_under_the_name_of_the_file(world):
    assert "You shared 400 rows of patients.sqlite on" in PartyFolder(world.root / "north").describe_share()


@pytest.mark.parametrize("name", ["patients.sqlite", "patients.duckdb"])
def test_predictions_and_scores_are_those_of_the_file(world, name):
    at = ("-C", world.root / "north")
    root = world.root
    done(party("predict", root / "new.csv", "-o", root / "of_file.csv", *at))
    said = done(party("predict", root / name, *SELECT, "-o", root / "of_query.csv", *at))
    assert "400 predictions" in said
    found, expected = (pd.read_csv(root / f"of_{each}.csv") for each in ("query", "file"))
    pd.testing.assert_frame_equal(found, expected)
    scores = [
        json.loads(done(party("evaluate", *table, "--json", *at)))
        for table in ((root / name, *SELECT), (root / "new.csv",))
    ]
    assert scores[0]["accuracy"] == scores[1]["accuracy"]


def test_a_project_is_drafted_from_a_query(world):
    keys = [word for name in PARTIES for word in ("--party", f"{name}={world.root / name / 'public.key'}")]
    for like in (("public.csv",), ("patients.sqlite", *SELECT)):
        done(
            project(
                *("new", "wards", "--like", world.root / like[0], *like[1:], "--target", "ill", "--purpose", "Who?"),
                *(*keys, "--analyst", world.root / "analyst" / "public.key", "-C", world.root / "north"),
                *("-o", world.root / f"of_{like[0]}.toml", "--rows"),
            )
        )
    names = [
        [line for line in (world.root / f"of_{like}.toml").read_text().splitlines() if line.startswith("name = ")]
        for like in ("public.csv", "patients.sqlite")
    ]
    assert names[0] == names[1]


@pytest.mark.slow
def test_a_trial_reads_a_query(world):
    said = done(run("trial", world.root / "patients.duckdb", *SELECT, "--target", "ill", "--parties", "3"))
    assert "400" in said


def test_sql_and_a_database_need_one_another(world):
    at = ("-C", world.root / "north")
    refused = ("TABLE_UNREADABLE", 13)
    assert_refused(party("check", world.root / "new.csv", *SELECT, *at), *refused, "no database", ".duckdb")
    assert_refused(party("check", world.root / "patients.sqlite", *at), *refused, "--sql")
    assert_refused(party("check", "postgresql://db/x", *at), *refused, "--sql")
    assert_refused(party("evaluate", world.root / "patients.sqlite", "--sql", "DROP TABLE patients", *at), *refused)
    missing = party("check", world.root / "none.sqlite", *SELECT, *at)
    assert missing.exit_code == 2
    assert "does not exist" in missing.output


def test_the_output_is_never_the_database(world):
    file = world.root / "patients.sqlite"
    before = file.read_bytes()
    result = party("predict", file, *SELECT, "-o", file, "--force", "-C", world.root / "north")
    assert result.exit_code == 2
    assert file.read_bytes() == before


def texts_of(root):
    return b"".join(path.read_bytes() for path in Path(root).rglob("*") if path.is_file())


def test_an_address_with_a_password_is_refused_and_appears_nowhere(world):
    address = "postgresql://ann:geheim@127.0.0.1:1/x"
    for words in (("check",), ("evaluate",), ("predict", "-o", world.root / "p.csv"), ("share", "--approve")):
        result = party(words[0], address, *SELECT, *words[1:], "-C", world.root / "north")
        assert_refused(result, "TABLE_UNREADABLE", 13, ".pgpass")
        assert "geheim" not in result.output
        assert "ann" not in result.output
    assert b"geheim" not in texts_of(world.root)


@pytest.fixture(scope="module")
def server(installed):
    """Asks the user ward7 for a password."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL (initdb, postgres) is not installed here, or nobody may run it")
    with run_server(programs) as address:
        with closing(postgresql.connect(f"{address}/postgres", autocommit=True)) as made, made.cursor() as cursor:
            cursor.adbc_ingest("patients", pa.Table.from_pandas(rows_of(400, 7)))
            cursor.execute("CREATE USER ward7 PASSWORD 'geheim'")
            cursor.execute("GRANT SELECT ON patients TO ward7")
            cursor.execute("SELECT setting FROM pg_settings WHERE name = 'hba_file'")
            (file,) = cursor.fetchone()
            Path(file).write_text("host all ward7 all scram-sha-256\nhost all all all trust\nlocal all all trust\n")
            cursor.execute("SELECT pg_reload_conf()")
            cursor.fetchall()
        yield address.replace("hub@", "ward7@") + "/postgres"


def test_a_password_of_the_environment_stands_nowhere(world, server, tmp_path, monkeypatch):
    at = ("-C", world.root / "north")
    refused = party("evaluate", server, *SELECT, *at)
    assert_refused(refused, "TABLE_UNREADABLE", 13, "lets nobody in", "pgpass")
    kept = tmp_path / "elsewhere" / "pgpass"
    kept.parent.mkdir()
    kept.write_text("*:*:*:ward7:geheim\n")
    kept.chmod(0o600)
    outputs = [refused.output]
    for name, value in (("PGPASSWORD", "geheim"), ("PGPASSFILE", str(kept))):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            for words in (("check",), ("evaluate",), ("predict", "-o", world.root / f"{name}.csv")):
                result = party(words[0], server, *SELECT, *words[1:], *at)
                if words[0] != "check":
                    done(result)
                outputs.append(result.output)
    shutil.rmtree(kept.parent)
    assert "geheim" not in "".join(outputs)
    assert b"geheim" not in texts_of(tmp_path)
    logged = [entry for entry in PartyFolder(world.root / "north").log.entries() if entry["event"] == "predict"]
    assert logged
    assert b"ward7" not in texts_of(world.root / "north"), "nor is the user"
    assert any("postgresql://127.0.0.1:" in json.dumps(entry) for entry in logged)
