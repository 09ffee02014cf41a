"""Uploads end once, for whom the project file that holds then names, and leave nothing behind."""

import os
import threading

import pytest
from starlette.testclient import TestClient

from datacollab.bundle import digest
from datacollab_hub.service import Hub
from datacollab_hub.web import make_app
from hub_world import FINGERPRINTS, KEYS, NOW, PROJECT, URL, World, bundle, make_project, refused

SHARE = bundle("share", "north", party="north")


def folders(world):
    return sorted(path.name for path in (world.folder / "blobs" / "uploads").glob("*"))


def begun(world, who="north", kind="share", data=SHARE, recipient=None, n_bytes=300):
    answer = world.start(who, kind, data, recipient)
    assert answer.status_code == 201, answer.text
    upload = answer.json()["upload"]
    if n_bytes:
        assert world.part(who, upload, 0, data[:n_bytes]).status_code == 204
    return upload


def test_an_upload_is_finished_by_one_request_at_a_time(agreed, monkeypatch):
    """The second comes while the first reads the file."""
    from datacollab_hub.service import _finishing

    upload, reading, told = begun(agreed), threading.Event(), threading.Event()
    read, n_read, answers = _finishing.read_envelope, [], []

    def waits(*args, **kwargs):
        n_read.append(1)
        reading.set()
        assert told.wait(60)
        return read(*args, **kwargs)

    monkeypatch.setattr(_finishing, "read_envelope", waits)
    first = threading.Thread(target=lambda: answers.append(agreed.part("north", upload, 300, SHARE[300:])))
    first.start()
    try:
        assert reading.wait(60)
        place = f"/v1/projects/{{p}}/uploads/{upload}"
        for answer in (agreed.part("north", upload, len(SHARE), b""), agreed.ask("north", "DELETE", place)):
            refused(answer, "BUSY", 503)
            assert answer.headers["Retry-After"] == "1"
        assert len(agreed.blobs()) == 3  # Two parts, and the file once.
    finally:
        told.set()
        first.join()
    assert answers[0].status_code == 201
    assert len(n_read) == 1
    assert [path.read_bytes() for path in agreed.blobs()] == [SHARE]
    assert folders(agreed) == []


@pytest.fixture
def other_process(agreed):
    """Another hub on the same store, whose claims are its own."""
    hub = Hub(agreed.store, agreed.hub.settings, agreed.hub.clock)
    with TestClient(make_app(hub), base_url=URL, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_a_process_that_is_late_brings_no_withdrawn_file_back(agreed, other_process, monkeypatch, is_withdrawn):
    """While one process reads the file, another one accepts it, and the sender takes it back."""
    from datacollab_hub.service import _finishing

    upload, read = begun(agreed), _finishing.read_envelope

    def ended_meanwhile(*args, **kwargs):
        monkeypatch.setattr(_finishing, "read_envelope", read)
        first, agreed.client = agreed.client, other_process
        try:
            assert agreed.part("north", upload, len(SHARE), b"").status_code == 201
            if is_withdrawn:
                assert agreed.ask("north", "DELETE", f"/v1/projects/{{p}}/files/{digest(SHARE)}").status_code == 200
        finally:
            agreed.client = first
        return read(*args, **kwargs)

    monkeypatch.setattr(_finishing, "read_envelope", ended_meanwhile)
    answer = agreed.part("north", upload, 300, SHARE[300:])
    if is_withdrawn:
        refused(answer, "NOT_FOUND", 404)
    else:
        assert answer.json() == {"file": digest(SHARE)}
    assert [each["withdrawn"] is not None for each in agreed.files("north")] == [is_withdrawn]
    assert len(agreed.blobs()) == (not is_withdrawn)
    assert [each["action"] for each in agreed.log()].count("received") == 1


def test_a_last_part_that_was_taken_is_kept_where_the_hub_fails_then(agreed, monkeypatch):
    blobs, upload = type(agreed.store.blobs), begun(agreed)
    write = blobs.write

    def fails(self, folder, pieces):
        if folder == "files":
            raise OSError("unplugged")
        return write(self, folder, pieces)

    monkeypatch.setattr(blobs, "write", fails)
    told = refused(agreed.part("north", upload, 300, SHARE[300:]), "UNAVAILABLE", 503)
    assert told == "The hub cannot reach what it keeps. Ask again; what it took before is kept."
    monkeypatch.undo()
    place = f"/v1/projects/{{p}}/uploads/{upload}"
    assert agreed.ask("north", "HEAD", place).headers["Upload-Offset"] == str(len(SHARE))
    assert agreed.part("north", upload, len(SHARE), b"").status_code == 201


def test_an_upload_that_is_given_up_is_gone(tmp_path):
    with World(tmp_path, open_uploads=1, sender_bytes=len(SHARE)) as world:
        world.open_project()
        world.put_agreement()
        upload = begun(world)
        place = f"/v1/projects/{{p}}/uploads/{upload}"
        for who in ("south", "analyst", "owner"):
            refused(world.ask(who, "DELETE", place), "NOT_FOUND", 404)
        refused(world.start("north", "sums", SHARE), "QUOTA_EXCEEDED", 413)
        assert world.ask("north", "DELETE", place).status_code == 204
        assert (world.blobs(), folders(world)) == ([], [])
        refused(world.ask("north", "DELETE", place), "NOT_FOUND", 404)
        refused(world.part("north", upload, 300, SHARE[300:]), "NOT_FOUND", 404)
        assert world.send("north", "share", SHARE).status_code == 201


def test_parts_are_of_some_size_but_for_the_last(tmp_path):
    data = bundle("share", "north", party="north", size=100_000)
    with World(tmp_path, part_bytes=2**16) as world:
        world.open_project()
        world.put_agreement()
        upload = begun(world, data=data, n_bytes=0)
        for n_bytes in (0, 1, 2**16 - 1):
            message = refused(world.part("north", upload, 0, data[:n_bytes]), "REQUEST_MALFORMED", 400)
            assert "65536" in message
        assert (world.blobs(), folders(world)) == ([], [])
        assert world.part("north", upload, 0, data[: 2**16]).status_code == 204
        assert world.part("north", upload, 2**16, data[2**16 :]).status_code == 201


@pytest.mark.parametrize("wrong", [SHARE[:-1] + b"x", b"x" * len(SHARE)])
def test_what_is_refused_leaves_no_folder(agreed, wrong):
    upload = begun(agreed)
    refused(agreed.part("north", upload, 300, wrong[300:]), "HASH_MISMATCH", 422)
    assert (agreed.blobs(), folders(agreed)) == ([], [])


def test_folders_that_a_kill_left_are_cleared_away(agreed):
    left = agreed.folder / "blobs" / "uploads" / ("a" * 32)
    left.mkdir(parents=True)
    os.utime(left, (NOW, NOW))
    agreed.store.tidy(NOW + 80_000)
    assert left.exists()
    agreed.store.tidy(NOW + 90_000)
    assert not left.exists()


def test_a_share_goes_to_the_analyst_of_the_project_file_that_holds_at_its_end(agreed):
    """It was begun while another was the analyst, who is none of its recipients."""
    new = make_project(revision=2, analyst=KEYS["other"].public)
    share = bundle("share", "north", party="north", project=new)
    upload = begun(agreed, data=share)
    agreed.put_agreement(new)
    assert agreed.part("north", upload, 300, share[300:]).status_code == 201
    (file,) = agreed.files("north")
    assert file["recipient"] == FINGERPRINTS["other"]
    assert agreed.log()[-1]["facts"]["recipient"] == FINGERPRINTS["other"]
    path = f"/v1/projects/{{p}}/files/{digest(share)}"
    assert agreed.ask("other", "GET", path).content == share
    refused(agreed.ask("analyst", "GET", path), "NOT_FOUND", 404)


def test_a_model_for_a_party_that_was_left_out_is_refused(agreed):
    new = make_project(revision=2, parties={"north": PROJECT.parties["north"], "east": KEYS["other"].public})
    model = bundle("model", "analyst", party="south", project=new)
    upload = begun(agreed, "analyst", "model", model, "south")
    agreed.put_agreement(new)
    refused(agreed.part("analyst", upload, 300, model[300:]), "WRONG_RECIPIENT", 422)
    assert agreed.blobs() == []
