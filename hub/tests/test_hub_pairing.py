"""A hub's database and its blobs belong together, or nothing is begun or swept away; backups of both."""

import os
import shutil

import pytest
from sqlalchemy import delete
from starlette.testclient import TestClient

from datacollab.bundle import digest
from datacollab_hub.store import METADATA, Blobs, Store, backup, downgrade, restore, upgrade
from datacollab_hub.web import make_app
from hub_world import FINGERPRINTS, NOW, World, agreed_world, bundle, refused
from party_world import refusal

SHARE = bundle("share", "north", party="north")


@pytest.fixture
def sent(agreed):
    """A hub with a file that was there for a year."""
    agreed.send("north", "share", SHARE)
    for path in agreed.blobs():
        os.utime(path, (NOW - 366 * 86_400,) * 2)
    return agreed


def test_another_database_begins_nothing_and_removes_nothing(sent, tmp_path):
    blobs = str(sent.folder / "blobs")
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "other", blobs=blobs)
    other = Store.located(tmp_path / "other", blobs=blobs)
    refusal("STORE_MISMATCH", other.tidy, NOW)
    other.close()
    assert [path.read_bytes() for path in sent.blobs()] == [SHARE]


def test_a_database_that_is_swapped_while_the_hub_runs_removes_nothing(sent, tmp_path):
    other = World(tmp_path / "other")
    swapped = Store(other.store.engine, sent.store.blobs)
    refusal("STORE_MISMATCH", swapped.tidy, NOW)
    other.store.close()
    assert len(sent.blobs()) == 1


def test_lost_blobs_are_told_at_the_start_and_to_whoever_asks(sent, tmp_path, database):
    for lost in (sent.folder / "blobs" / "hub-id", *sent.blobs()):
        lost.unlink()
    with TestClient(make_app(sent.hub)) as client:
        assert client.get("/readyz").status_code == 503
    refusal("STORE_MISMATCH", Store.opened, sent.folder, database=database)


def test_the_mark_alone_may_be_lost(sent, database):
    """As with a hub from before there was one: all that the database names lies there, so it is made again."""
    mark = sent.folder / "blobs" / "hub-id"
    said = mark.read_text()
    mark.unlink()
    Store.opened(sent.folder, database=database).close()
    assert mark.read_text() == said


def test_a_hub_from_before_there_were_marks_goes_on(sent, database):
    downgrade(sent.store.engine, "0001")
    (sent.folder / "blobs" / "hub-id").unlink()
    upgrade(sent.store.engine)
    store = Store.opened(sent.folder, database=database)
    store.tidy(NOW)
    store.close()
    assert [path.read_bytes() for path in sent.blobs()] == [SHARE]


def test_blobs_that_an_empty_database_does_not_name_are_not_its_own(tmp_path):
    Blobs(str(tmp_path / "blobs")).write("files", [b"somebody's"])
    refusal("STORE_MISMATCH", Store.opened, tmp_path)


def test_a_restored_hub_has_an_id_of_its_own(sent, tmp_path, database):
    backup(sent.store, tmp_path / "copy")
    new = Store.opened(tmp_path / "new")
    before = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    restore(new, tmp_path / "copy")
    new.check()
    new.close()
    after = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    assert len({before, after, (sent.folder / "blobs" / "hub-id").read_text()}) == 3
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "x", database=database, blobs=str(tmp_path / "new" / "blobs"))


@pytest.mark.parametrize(
    ("name", "goes"),
    [(f"files/{'a' * 32}", True), (f"files/.{'a' * 32}.part", True), (f"uploads/{'b' * 32}/{'a' * 32}", True),
     (f"uploads/{'b' * 32}/.{'a' * 32}.part", True), ("hub-id", False), ("notes.txt", False), ("files/notes", False),
     (f"other/{'a' * 32}", False), (f"files/{'A' * 32}", False), (f"files/deeper/{'a' * 32}", False)],
)  # fmt: skip
def test_only_what_the_hub_calls_blobs_is_swept(tmp_path, name, goes):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (NOW, NOW))
    assert Blobs(str(tmp_path)).sweep(set(), older_than=NOW) == 0
    assert Blobs(str(tmp_path)).sweep(set(), older_than=NOW + 1) == goes
    assert path.exists() != goes


def test_the_place_is_marked_wherever_it_is(tmp_path):
    with World(tmp_path, blobs="memory://hub-with-a-mark") as world:
        world.store.check()
        refused(world.ask("stranger", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)
    refusal("STORE_MISMATCH", Store.opened, tmp_path / "other", blobs="memory://hub-with-a-mark")


ANCHOR = bundle("anchor", "owner")


def back_up(world, copy):
    """Some of everything, of which a backup is made."""
    world.send("owner", "anchor", ANCHOR)
    world.send("north", "share", SHARE)
    world.send("south", "share", bundle("share", "south", party="south"))
    world.ask("south", "DELETE", f"/v1/projects/{{p}}/files/{digest(bundle('share', 'south', party='south'))}")
    world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}")
    world.join("other", world.invite())
    started = bundle("sums", "south", party="south")
    world.part("south", world.start("south", "sums", started).json()["upload"], 0, started[:100])
    assert backup(world.store, copy) == 2


@pytest.fixture
def copied(agreed, tmp_path):
    back_up(agreed, tmp_path / "copy")
    return agreed, tmp_path / "copy"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A backup alone, which is the same whatever database it was made of."""
    folder = tmp_path_factory.mktemp("whole")
    with agreed_world(folder / "hub") as world:
        back_up(world, folder / "copy")
    return folder / "copy"


@pytest.mark.slow
def test_all_is_there_again(copied, tmp_path):
    """From either database into SQLite."""
    before, copy = copied
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        assert restore(after.store, copy) == 2
        after.project, after.now = before.project, before.now
        for who in ("owner", "north", "analyst", "south"):
            for path in ("", "/files", "/log"):
                address = "/v1/projects/{p}" + path
                assert after.ask(who, "GET", address).json() == before.ask(who, "GET", address).json()
            address = "/v1/projects/{p}/agreement"
            assert after.ask(who, "GET", address).content == before.ask(who, "GET", address).content
        assert after.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
        assert after.decide("other").status_code == 200
        assert after.ask("owner", "POST", "/v1/projects", {"name": "second"}).status_code == 201
        # Numbers of files go on after the last one.
        assert after.send("south", "share", bundle("share", "south", party="south")).status_code == 201


def test_into_the_database_that_it_came_from(copied, tmp_path):
    before, copy = copied
    project = before.project
    with before.store.writing() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(delete(table))
    assert restore(before.store, copy) == 2
    before.project = project
    assert before.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
    assert before.send("south", "share", bundle("share", "south", party="south")).status_code == 201


@pytest.mark.slow
def test_a_file_that_is_withdrawn_meanwhile_is_withdrawn_in_the_backup(agreed, tmp_path, monkeypatch):
    """Its row was read before, its bytes would have been after."""
    agreed.send("north", "share", SHARE)
    agreed.send("owner", "anchor", ANCHOR)
    read, path = Blobs.read, f"/v1/projects/{{p}}/files/{digest(SHARE)}"

    def withdrawn_first(self, *args):
        monkeypatch.setattr(Blobs, "read", read)
        assert agreed.ask("north", "DELETE", path).status_code == 200
        return read(self, *args)

    monkeypatch.setattr(Blobs, "read", withdrawn_first)
    assert backup(agreed.store, tmp_path / "copy") == 1
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        assert restore(after.store, tmp_path / "copy") == 1
        after.project = agreed.project
        assert after.files("owner") == agreed.files("owner")
        refused(after.ask("analyst", "GET", path), "NOT_FOUND", 404)
        assert after.ask("north", "GET", path.replace(digest(SHARE), digest(ANCHOR))).content == ANCHOR


def test_only_an_empty_hub_is_filled(copied):
    before, copy = copied
    files = before.files("owner")
    refusal("ALREADY_THERE", restore, before.store, copy)
    refusal("ALREADY_THERE", backup, before.store, copy)
    assert before.files("owner") == files


def damaged_rows(copy):
    path = copy / "database.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"table":"files"', b'"table":"filez"', 1))


def cut_line(copy):
    path = copy / "database.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def missing_line(copy):
    path = copy / "database.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def changed_blob(copy):
    (copy / "blobs" / digest(SHARE)).write_bytes(SHARE[:-1] + b"x")


def missing_blob(copy):
    (copy / "blobs" / digest(SHARE)).unlink()


@pytest.mark.parametrize("damage", [damaged_rows, cut_line, missing_line, changed_blob, missing_blob])
def test_a_backup_that_is_not_whole_fills_nothing(whole, tmp_path, damage):
    copy = shutil.copytree(whole, tmp_path / "copy")
    damage(copy)
    with World(tmp_path / "new") as after:
        with after.store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM keys")
        refusal("STATE_DAMAGED", restore, after.store, copy)
        refused(after.ask("owner", "GET", "/v1/projects"), "KEY_UNKNOWN", 401)
        assert after.blobs() == []


def test_a_backup_is_closed_to_others(whole):
    for path in [whole, *whole.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert FINGERPRINTS["owner"] in (whole / "database.jsonl").read_text()


def test_a_missing_file_is_no_backup(agreed, tmp_path):
    agreed.send("north", "share", SHARE)
    (blob,) = agreed.blobs()
    blob.unlink()
    refusal("STATE_DAMAGED", backup, agreed.store, tmp_path / "copy")
    refusal("FOLDER_MISSING", restore, agreed.store, tmp_path / "nowhere")
