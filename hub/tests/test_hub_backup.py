"""A backup fills an empty hub, on whichever database, with all that was there."""

import shutil

import pytest

from datacollab.bundle import digest
from datacollab.errors import ExchangeError
from datacollab_hub.store import Blobs, backup, restore
from hub_world import FINGERPRINTS, World, bundle, refused

SHARE, ANCHOR = bundle("share", "north", party="north"), bundle("anchor", "owner")


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
    with World(folder / "hub") as world:
        world.open_project()
        world.put_agreement()
        back_up(world, folder / "copy")
    return folder / "copy"


def refusal(code, action):
    with pytest.raises(ExchangeError) as caught:
        action()
    assert caught.value.code == code


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
    from sqlalchemy import delete

    from datacollab_hub.store._schema import METADATA

    project = before.project
    with before.store.writing() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(delete(table))
    assert restore(before.store, copy) == 2
    before.project = project
    assert before.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
    assert before.send("south", "share", bundle("share", "south", party="south")).status_code == 201


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
    refusal("ALREADY_THERE", lambda: restore(before.store, copy))
    refusal("ALREADY_THERE", lambda: backup(before.store, copy))
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
        refusal("STATE_DAMAGED", lambda: restore(after.store, copy))
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
    refusal("STATE_DAMAGED", lambda: backup(agreed.store, tmp_path / "copy"))
    refusal("FOLDER_MISSING", lambda: restore(agreed.store, tmp_path / "nowhere"))
