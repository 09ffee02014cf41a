"""The database's versions, blobs that nobody names, and many at once."""

import gc
import os
import sqlite3
import threading
from contextlib import closing

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from datacollab.agreement import project_text
from datacollab_hub import store as stores
from datacollab_hub.requests import check_hub_log
from datacollab_hub.store import METADATA, Store, check_current, database_url, downgrade, remember_nonce, upgrade
from hub_world import FINGERPRINTS, KEYS, NOW, PROJECT, agreed_world, bundle
from party_world import refusal


@pytest.fixture
def store(tmp_path, database):
    store = Store.opened(tmp_path / "hub", database=database)
    yield store
    store.close()


def test_the_steps_lead_to_the_tables_that_are_used(store):
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        found = inspect(connection)
        indexes = {each["name"] for table in METADATA.tables for each in found.get_indexes(table)}
    assert {index.name for table in METADATA.tables.values() for index in table.indexes} <= indexes


@pytest.mark.slow
def test_there_and_back_again(store):
    assert stores.current(store.engine) == stores.newest() == "0003"
    downgrade(store.engine, "base")
    assert set(inspect(store.engine).get_table_names()) == {"alembic_version"}
    assert stores.current(store.engine) is None
    upgrade(store.engine)
    check_current(store.engine)


def test_project_files_that_held_before_they_were_all_kept_are_there(agreed):
    downgrade(agreed.store.engine, "0001")
    upgrade(agreed.store.engine)
    with agreed.store.reading() as connection:
        assert stores.agreements_of(connection, agreed.project) == [stores.AgreementRow(1, PROJECT.digest, None)]
        assert stores.agreement_text(connection, agreed.project, 1) == project_text(PROJECT, KEYS["owner"]).encode()
        assert stores.agreement_text(connection, agreed.project, 2) is None


def test_another_version_is_refused(store):
    with store.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert "9999" in refusal("DATABASE_OUTDATED", check_current, store.engine)
    refusal("DATABASE_OUTDATED", upgrade, store.engine)
    with store.writing() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    refusal("DATABASE_OUTDATED", check_current, store.engine)


def test_a_step_that_fails_changes_nothing(store, monkeypatch):
    downgrade(store.engine, "base")
    made = op.create_table

    def fails(name, *args, **kwargs):
        if name == "uploads":
            raise RuntimeError("in the middle")
        return made(name, *args, **kwargs)

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(op, "create_table", fails)
        upgrade(store.engine)
    assert set(inspect(store.engine).get_table_names()) <= {"alembic_version"}


def test_a_database_is_addressed_and_in_a_folder_that_is_closed_to_others(tmp_path):
    Store.opened(tmp_path / "hub").close()
    assert (tmp_path / "hub").stat().st_mode & 0o077 == 0
    assert database_url(tmp_path, None) == f"sqlite:///{tmp_path}/hub.sqlite"
    assert database_url(tmp_path, "postgresql://me:secret@db/x") == "postgresql+psycopg://me:secret@db/x"
    message = refusal("REQUEST_MALFORMED", database_url, tmp_path, "secret password")
    assert "secret" not in message
    engine, _ = stores.open_engines(database_url(tmp_path, None))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    engine.dispose()


def test_a_nonce_is_taken_once(store):
    remember_nonce(store.engine, "a", "n", 0, 10)
    remember_nonce(store.engine, "b", "n", 0, 10)
    refusal("REPLAYED", remember_nonce, store.engine, "a", "n", 5, 15)
    remember_nonce(store.engine, "a", "n", 11, 20)


def test_many_at_once_write_one_chain(store):
    with store.writing() as connection:
        stores.add_key(connection, KEYS["owner"].public, NOW)
        project = stores.new_project(connection, "busy", FINGERPRINTS["owner"], NOW)
    failed = []

    def write(number):
        try:
            for turn in range(5):
                with store.writing() as connection:
                    stores.append_log(
                        connection, project, NOW, FINGERPRINTS["owner"], "fetched", {"n": number, "turn": turn}
                    )
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with store.reading() as connection:
        entries = stores.log_entries(connection, project)
    assert len(entries) == 40
    check_hub_log(project, entries)


def test_what_is_left_half_done_is_cleared_away(agreed):
    share = bundle("share", "north", party="north")
    upload = agreed.start("north", "share", share).json()["upload"]
    agreed.part("north", upload, 0, share[:100])
    agreed.send("south", "share", bundle("share", "south", party="south"))
    name, _, _ = agreed.store.blobs.write("files", [b"nobody's"])
    nobodys = next(path for path in agreed.blobs() if path.name == name.rpartition("/")[2])
    for path in agreed.blobs():
        os.utime(path, (NOW, NOW))
    agreed.store.tidy(NOW + 80_000)
    assert len(agreed.blobs()) == 3
    agreed.store.tidy(NOW + 90_000)
    assert nobodys not in agreed.blobs()
    assert agreed.part("north", upload, 100, share[100:200]).status_code == 204
    agreed.now += 8 * 86_400
    for path in agreed.blobs():
        os.utime(path, (NOW, NOW))
    agreed.store.tidy(agreed.now)
    assert [path.read_bytes() for path in agreed.blobs()] == [bundle("share", "south", party="south")]
    assert agreed.part("north", upload, 200, share[200:]).status_code == 404


@pytest.mark.slow
def test_a_row_that_cannot_be_read_keeps_no_writer_out(tmp_path):
    """A cursor that was not read to its end keeps what it saw, and SQLite lets no writer in behind that."""
    with agreed_world(tmp_path / "hub") as world:
        with closing(sqlite3.connect(tmp_path / "hub" / "hub.sqlite")) as outside:
            (facts,) = outside.execute("SELECT facts FROM log WHERE seq = 1").fetchone()
            outside.execute("UPDATE log SET facts = '{' WHERE seq = 1")
            outside.commit()
            # What failed is collected whenever it pleases.
            gc.disable()
            try:
                assert world.ask("owner", "GET", "/v1/projects/{p}/log").status_code == 500
                outside.execute("UPDATE log SET facts = ? WHERE seq = 1", (facts,))
                outside.commit()
                answer = world.send("north", "share", bundle("share", "north", party="north"))
            finally:
                gc.enable()
        assert answer.status_code == 201, answer.text
