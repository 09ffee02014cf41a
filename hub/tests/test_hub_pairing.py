"""A hub's database and its blobs belong together, or nothing is begun, and nothing is swept away."""

import os

import pytest
from starlette.testclient import TestClient

from datacollab.errors import ExchangeError
from datacollab_hub.store import Blobs, Store, backup, downgrade, restore, upgrade
from datacollab_hub.web import make_app
from hub_world import NOW, World, bundle, refused

SHARE = bundle("share", "north", party="north")


@pytest.fixture
def sent(agreed):
    """A hub with a file that was there for a year."""
    agreed.send("north", "share", SHARE)
    for path in agreed.blobs():
        os.utime(path, (NOW - 366 * 86_400,) * 2)
    return agreed


def mismatch(action):
    with pytest.raises(ExchangeError) as caught:
        action()
    assert caught.value.code == "STORE_MISMATCH"


def test_another_database_begins_nothing_and_removes_nothing(sent, tmp_path):
    blobs = str(sent.folder / "blobs")
    mismatch(lambda: Store.opened(tmp_path / "other", blobs=blobs))
    other = Store.located(tmp_path / "other", blobs=blobs)
    mismatch(lambda: other.tidy(NOW))
    other.close()
    assert [path.read_bytes() for path in sent.blobs()] == [SHARE]


def test_a_database_that_is_swapped_while_the_hub_runs_removes_nothing(sent, tmp_path):
    other = World(tmp_path / "other")
    swapped = Store(other.store.engine, sent.store.blobs)
    mismatch(lambda: swapped.tidy(NOW))
    other.store.close()
    assert len(sent.blobs()) == 1


def test_lost_blobs_are_told_at_the_start_and_to_whoever_asks(sent, tmp_path, database):
    for lost in (sent.folder / "blobs" / "hub-id", *sent.blobs()):
        lost.unlink()
    with TestClient(make_app(sent.hub)) as client:
        assert client.get("/readyz").status_code == 503
    mismatch(lambda: Store.opened(sent.folder, database=database))


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
    mismatch(lambda: Store.opened(tmp_path))


def test_a_restored_hub_has_an_id_of_its_own(sent, tmp_path, database):
    backup(sent.store, tmp_path / "copy")
    new = Store.opened(tmp_path / "new")
    before = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    restore(new, tmp_path / "copy")
    new.check()
    new.close()
    after = (tmp_path / "new" / "blobs" / "hub-id").read_text()
    assert len({before, after, (sent.folder / "blobs" / "hub-id").read_text()}) == 3
    mismatch(lambda: Store.opened(tmp_path / "x", database=database, blobs=str(tmp_path / "new" / "blobs")))


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
    mismatch(lambda: Store.opened(tmp_path / "other", blobs="memory://hub-with-a-mark"))
