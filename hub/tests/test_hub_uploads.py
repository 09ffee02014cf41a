"""Uploads: whole and accepted, or not there, and ended once; what one key can make a hub keep."""

import os
import threading
import time

import pytest
from starlette.testclient import TestClient

from datacollab.agreement import project_text
from datacollab.bundle import digest, pack, read_envelope
from datacollab.errors import ExchangeError
from datacollab_hub.rules import Person, Role
from datacollab_hub.service import Announced, Hub, append_part, own_upload, start_upload
from datacollab_hub.store import Blobs
from datacollab_hub.web import make_app
from hub_world import FINGERPRINTS, KEYS, NOW, PROJECT, URL, World, agreed_world, bundle, make_project, refused

SHARE = bundle("share", "north", party="north")


def upload_of(answer):
    assert answer.status_code == 201, answer.text
    return answer.json()["upload"]


def test_an_upload_goes_on_where_it_ended(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    answer = agreed.part("north", upload, 0, SHARE[:300])
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, "300")
    assert agreed.start("north", "share", SHARE).json() == {"upload": upload, "offset": 300}
    answer = agreed.ask("north", "HEAD", f"/v1/projects/{{p}}/uploads/{upload}")
    assert (answer.status_code, answer.headers["Upload-Offset"], answer.content) == (200, "300", b"")
    assert agreed.files("north") == []
    answer = agreed.part("north", upload, 300, SHARE[300:])
    assert (answer.status_code, answer.json()) == (201, {"file": digest(SHARE)})
    assert agreed.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
    assert [path.read_bytes() for path in agreed.blobs()] == [SHARE]


def test_parts_that_come_twice_or_too_early_are_told_where_to_go_on(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    for offset, there in ((100, "0"), (0, "500"), (0, "500"), (600, "500"), (499, "500"), (501, "500")):
        answer = agreed.part("north", upload, offset, SHARE[offset : offset + 500])
        if (offset, there) == (0, "500") and answer.status_code == 204:
            continue
        refused(answer, "OFFSET_DIFFERS", 409)
        assert answer.headers["Upload-Offset"] == there
    assert agreed.part("north", upload, 500, SHARE[500:]).status_code == 201
    assert len(agreed.blobs()) == 1


def test_the_same_again_is_the_same(agreed):
    assert agreed.send("north", "share", SHARE).status_code == 201
    answer = agreed.start("north", "share", SHARE)
    assert (answer.status_code, answer.json()) == (200, {"file": digest(SHARE)})
    assert len(agreed.files("north")) == 1


def test_an_answer_that_was_lost_is_given_again(agreed, monkeypatch):
    """All parts are there, and nobody was told that they are a file: the process was killed in between."""
    upload = upload_of(agreed.start("north", "share", SHARE))

    def killed(*_):
        raise RuntimeError("in the place of a kill")

    with monkeypatch.context() as patched:
        patched.setattr("datacollab_hub.service._uploading.finish", killed)
        assert agreed.part("north", upload, 0, SHARE).status_code == 500
    answer = agreed.ask("north", "HEAD", f"/v1/projects/{{p}}/uploads/{upload}")
    assert answer.headers["Upload-Offset"] == str(len(SHARE))
    assert agreed.files("north") == []
    if agreed.hub.store.engine.dialect.name == "sqlite":
        assert agreed.start("north", "share", SHARE).json() == {"file": digest(SHARE)}
    else:
        assert agreed.part("north", upload, len(SHARE), b"").json() == {"file": digest(SHARE)}
    assert len(agreed.files("north")) == 1


def test_another_content_is_refused_and_gone(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    refused(agreed.part("north", upload, 0, SHARE[:-1] + b"x"), "HASH_MISMATCH", 422)
    refused(agreed.part("north", upload, 0, SHARE), "NOT_FOUND", 404)
    assert (agreed.blobs(), folders(agreed)) == ([], [])
    assert agreed.files("owner") == []
    assert agreed.send("north", "share", SHARE).status_code == 201


@pytest.mark.parametrize(
    ("who", "kind", "data", "recipient", "code"),
    [
        ("north", "share", bundle("share", "south", party="north"), None, "SIGNATURE_INVALID"),
        ("north", "share", bundle("share", "north", party="south"), None, "WRONG_RECIPIENT"),
        ("north", "share", bundle("sums", "north", party="north"), None, "WRONG_KIND"),
        ("north", "sums", SHARE, None, "WRONG_KIND"),
        ("north", "share", bundle("share", "north", party="north", project=make_project(min_rows=9)), None,
         "PROJECT_HASH_MISMATCH"),
        ("north", "share", b"PK\x05\x06" + bytes(18), None, "BUNDLE_MALFORMED"),
        ("north", "share", bytes(3000), None, "BUNDLE_MALFORMED"),
        ("north", "share", pack("datacollab.share", {}, {}), None, "SIGNATURE_MISSING"),
        ("analyst", "model", bundle("model", "analyst", party="south"), "north", "WRONG_RECIPIENT"),
        ("analyst", "model", bundle("answers", "analyst", party="north"), "north", "WRONG_KIND"),
        ("analyst", "model", pack("datacollab.model", {}, {}, key=KEYS["analyst"]), "north", "WRONG_KIND"),
        ("owner", "anchor", bundle("anchor", "analyst"), None, "SIGNATURE_INVALID"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_file_that_is_not_what_it_should_be_is_refused_and_gone(agreed, who, kind, data, recipient, code):
    refused(agreed.send(who, kind, data, recipient), code, 422)
    assert agreed.blobs() == []
    assert agreed.files("owner") == []
    assert [entry["action"] for entry in agreed.log()] == ["opened", "agreement"]


@pytest.mark.parametrize(
    ("who", "kind", "recipient"),
    [("north", "model", "south"), ("north", "anchor", None), ("analyst", "share", None), ("owner", "share", None),
     ("owner", "model", "north"), ("analyst", "anchor", None)],
)  # fmt: skip
def test_kinds_come_from_those_who_make_them(agreed, who, kind, recipient):
    refused(agreed.start(who, kind, SHARE, recipient), "NOT_ALLOWED", 403)


@pytest.mark.parametrize("kind", ["answers", "model"])
def test_what_goes_back_is_for_the_party_that_is_named(agreed, kind):
    for named in ("north", FINGERPRINTS["north"]):
        assert agreed.start("analyst", kind, SHARE, named).status_code == 201
    refused(agreed.start("analyst", kind, SHARE), "REQUEST_MALFORMED", 400)
    for nobody in ("analyst", FINGERPRINTS["owner"], FINGERPRINTS["stranger"], "East"):
        refused(agreed.start("analyst", kind, SHARE, nobody), "NOT_FOUND", 404)


@pytest.mark.parametrize(
    "wrong",
    [{"size": 0}, {"size": -1}, {"size": 2**60}, {"size": 1.5}, {"sha256": "X" * 64}, {"sha256": "a" * 63},
     {"kind": "state"}, {"recipient": "south"}, {"kind": "../share"}],
)  # fmt: skip
def test_announcements_are_checked(agreed, wrong):
    body = {"kind": "share", "sha256": digest(SHARE), "size": len(SHARE), **wrong}
    refused(agreed.ask("north", "POST", "/v1/projects/{p}/uploads", body), "REQUEST_MALFORMED", 400)


def test_no_more_comes_than_was_announced(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    refused(agreed.part("north", upload, 0, SHARE + b"x"), "TOO_LARGE", 413)
    refused(agreed.part("north", upload, 0, b""), "REQUEST_MALFORMED", 400)
    refused(agreed.part("north", upload, 0, bytes(2**22 + 1)), "TOO_LARGE", 413)
    for offset in ("", "x", "-1", "1.0", "9" * 30):
        refused(agreed.part("north", upload, offset, b"x"), "REQUEST_MALFORMED", 400)
    refused(agreed.start("north", "share", SHARE, size=len(SHARE) + 1), "REQUEST_MALFORMED", 400)


def test_an_upload_is_its_senders_alone(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    for who in ("south", "analyst", "owner"):
        refused(agreed.part(who, upload, 0, SHARE), "NOT_FOUND", 404)
        assert agreed.ask(who, "HEAD", f"/v1/projects/{{p}}/uploads/{upload}").status_code == 404
    agreed.open_project("second")
    agreed.put_agreement()
    refused(agreed.part("north", upload, 0, SHARE), "NOT_FOUND", 404)


def test_nothing_is_taken_before_there_is_a_project_file(world):
    world.open_project()
    world.admit("north", "party")
    refused(world.start("north", "share", SHARE), "AGREEMENT_MISSING", 404)


@pytest.mark.slow
def test_a_party_has_one_live_share(agreed):
    other = bundle("share", "north", party="north", size=77)
    first, second = (upload_of(agreed.start("north", "share", data)) for data in (SHARE, other))
    assert agreed.part("north", first, 0, SHARE).status_code == 201
    refused(agreed.part("north", second, 0, other), "ALREADY_SHARED", 409)
    refused(agreed.start("north", "share", other), "ALREADY_SHARED", 409)
    assert agreed.send("south", "share", bundle("share", "south", party="south")).status_code == 201
    assert agreed.ask("north", "DELETE", f"/v1/projects/{{p}}/files/{digest(SHARE)}").status_code == 200
    assert agreed.send("north", "share", other).status_code == 201
    assert agreed.send("north", "sums", bundle("sums", "north", party="north")).status_code == 201


def test_the_last_day_ends_at_midnight_by_the_hubs_clock(agreed):
    late = upload_of(agreed.start("south", "share", bundle("share", "south", party="south")))
    agreed.now = 1_801_439_999.0  # 31 January 2027, 23:59:59
    assert agreed.send("north", "share", SHARE).status_code == 201
    agreed.now += 1
    refused(agreed.part("south", late, 0, bundle("share", "south", party="south")), "DEADLINE_PASSED", 403)
    refused(agreed.start("south", "share", bundle("share", "south", party="south")), "DEADLINE_PASSED", 403)
    # What was taken in time is said to be there, and all else goes on.
    assert agreed.start("north", "share", SHARE).status_code == 200
    assert agreed.send("analyst", "model", bundle("model", "analyst", party="north"), "north").status_code == 201


def test_a_file_of_an_older_agreement_is_not_taken(agreed):
    upload = upload_of(agreed.start("north", "share", SHARE))
    agreed.put_agreement(make_project(revision=2))
    refused(agreed.part("north", upload, 0, SHARE), "PROJECT_HASH_MISMATCH", 422)


def test_whoever_is_the_analyst_no_more_finishes_nothing(agreed):
    data = bundle("model", "analyst", party="north")
    upload = upload_of(agreed.start("analyst", "model", data, "north"))
    parties = {**PROJECT.parties, "third": KEYS["analyst"].public}
    agreed.put_agreement(make_project(revision=2, analyst=KEYS["other"].public, parties=parties))
    refused(agreed.part("analyst", upload, 0, data), "NOT_ALLOWED", 403)
    assert agreed.files("owner") == []


def test_limits_of_the_operator(tmp_path):
    limits = {"file_bytes": 3000, "sender_bytes": 4000, "open_uploads": 2}
    with agreed_world(tmp_path, **limits) as world:
        refused(world.start("north", "share", SHARE, size=3001), "TOO_LARGE", 413)
        assert world.start("north", "sums", SHARE, size=2500).status_code == 201
        refused(world.start("north", "share", SHARE, size=1501), "QUOTA_EXCEEDED", 413)
        assert world.start("south", "share", SHARE, size=1501).status_code == 201
        for number in range(2):
            assert world.start("analyst", "model", SHARE, "north", size=1, sha256=f"{number:064}").status_code == 201
        refused(world.start("analyst", "model", SHARE, "north", size=1, sha256="f" * 64), "QUOTA_EXCEEDED", 413)


@pytest.mark.slow
def test_what_others_sent_takes_nobodys_room(tmp_path):
    """By which sizes are still taken the analyst would learn how large the anchor is."""
    with agreed_world(tmp_path, file_bytes=4000, sender_bytes=4000) as world:
        anchor = bundle("anchor", "owner")
        assert world.start("owner", "anchor", anchor).status_code == 201
        for size in (4000, 4000):
            assert world.start("analyst", "model", SHARE, "north", size=size).status_code == 201
        message = refused(world.start("analyst", "model", SHARE, "north", size=1), "REQUEST_MALFORMED", 400)
        assert message == refused(world.start("analyst", "model", SHARE, "north", size=3999), "REQUEST_MALFORMED", 400)
        refused(world.start("analyst", "model", SHARE, "south", size=1), "QUOTA_EXCEEDED", 413)
        assert world.send("owner", "anchor", anchor).status_code == 201
        refused(world.start("owner", "anchor", anchor, size=1), "REQUEST_MALFORMED", 400)


def full(*_, **__):
    raise OSError(28, "No space left on device", "/secret/place")


def test_a_full_disk_loses_nothing(agreed, monkeypatch):
    upload = upload_of(agreed.start("north", "share", SHARE))
    agreed.part("north", upload, 0, SHARE[:500])
    with monkeypatch.context() as patched:
        patched.setattr(Blobs, "write", full)
        message = refused(agreed.part("north", upload, 500, SHARE[500:800]), "STORE_FULL", 507)
        assert "secret" not in message
    answer = agreed.ask("north", "HEAD", f"/v1/projects/{{p}}/uploads/{upload}")
    assert answer.headers["Upload-Offset"] == "500"
    # And where the parts are there, but not the room for the whole.
    whole = Blobs.write
    with monkeypatch.context() as patched:
        patched.setattr(
            Blobs, "write", lambda self, folder, pieces: (full if folder == "files" else whole)(self, folder, pieces)
        )
        refused(agreed.part("north", upload, 500, SHARE[500:]), "STORE_FULL", 507)
    assert agreed.files("north") == []
    assert agreed.part("north", upload, len(SHARE), b"").status_code == 201
    assert [path.read_bytes() for path in agreed.blobs()] == [SHARE]


def test_a_disk_that_fills_in_the_middle_leaves_no_part(tmp_path):
    blobs = Blobs(str(tmp_path))

    def pieces():
        yield b"first"
        full()

    with pytest.raises(OSError, match="No space"):
        blobs.write("files", pieces())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_many_clients_at_once_make_one_file(agreed):
    """Each is told that the file is there, or where to go on; none is told of a failure."""
    person = Person(KEYS["north"].public, frozenset({Role.PARTY}))
    announced, failed = Announced("share", digest(SHARE), len(SHARE), None), []

    def send():
        for _ in range(200):
            try:
                found = start_upload(agreed.hub, person, agreed.project, announced)
                while "file" not in found:
                    own = own_upload(agreed.hub, person, agreed.project, found["upload"])
                    part = SHARE[own.offset : own.offset + 300]
                    found = {**append_part(agreed.hub, person, own, own.offset, part), "upload": own.id}
                return
            except ExchangeError as error:
                if error.code not in ("OFFSET_DIFFERS", "NOT_FOUND", "BUSY"):
                    failed.append(error)
                time.sleep(0.02)
            except Exception as error:
                failed.append(error)
                return
        failed.append("never done")

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(agreed.files("north")) == 1
    assert [path.read_bytes() for path in agreed.blobs()] == [SHARE]
    assert [entry["action"] for entry in agreed.log()].count("received") == 1


@pytest.mark.parametrize("data", [SHARE + b"hidden", SHARE.replace(b"manifest", b"man\\u0069fest", 1)])
def test_a_file_that_would_hide_something_is_refused(agreed, data):
    refused(agreed.send("north", "share", data, piece=2**20), "BUNDLE_MALFORMED", 422)
    assert agreed.blobs() == []


def test_a_manifest_that_would_fill_the_memory_is_refused(agreed):
    size = 3 * 2**20
    said = size.to_bytes(8, "little") + SHARE[8:].ljust(size)
    refused(agreed.send("north", "share", said, piece=2**20), "TOO_LARGE", 413)
    assert agreed.blobs() == []


READING = "datacollab_hub.service._uploading.read_envelope"


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
    upload, reading, told = begun(agreed), threading.Event(), threading.Event()
    n_read, answers = [], []

    def waits(*args, **kwargs):
        n_read.append(1)
        reading.set()
        assert told.wait(60)
        return read_envelope(*args, **kwargs)

    monkeypatch.setattr(READING, waits)
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
    upload = begun(agreed)

    def ended_meanwhile(*args, **kwargs):
        monkeypatch.undo()
        first, agreed.client = agreed.client, other_process
        try:
            assert agreed.part("north", upload, len(SHARE), b"").status_code == 201
            if is_withdrawn:
                assert agreed.ask("north", "DELETE", f"/v1/projects/{{p}}/files/{digest(SHARE)}").status_code == 200
        finally:
            agreed.client = first
        return read_envelope(*args, **kwargs)

    monkeypatch.setattr(READING, ended_meanwhile)
    answer = agreed.part("north", upload, 300, SHARE[300:])
    if is_withdrawn:
        refused(answer, "NOT_FOUND", 404)
    else:
        assert answer.json() == {"file": digest(SHARE)}
    assert [each["withdrawn"] is not None for each in agreed.files("north")] == [is_withdrawn]
    assert len(agreed.blobs()) == (not is_withdrawn)
    assert [each["action"] for each in agreed.log()].count("received") == 1


@pytest.mark.slow
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
    with agreed_world(tmp_path, open_uploads=1, sender_bytes=len(SHARE)) as world:
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
    with agreed_world(tmp_path, part_bytes=2**16) as world:
        upload = begun(world, data=data, n_bytes=0)
        for n_bytes in (0, 1, 2**16 - 1):
            message = refused(world.part("north", upload, 0, data[:n_bytes]), "REQUEST_MALFORMED", 400)
            assert "65536" in message
        assert (world.blobs(), folders(world)) == ([], [])
        assert world.part("north", upload, 0, data[: 2**16]).status_code == 204
        assert world.part("north", upload, 2**16, data[2**16 :]).status_code == 201


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


def padded(revision, size):
    """A project file made large by comments."""
    text = project_text(make_project(revision=revision), KEYS["owner"]).encode()
    return text + b"#" * (size - len(text) - 1) + b"\n"


def test_revisions_of_project_files_have_a_limit_that_all_projects_of_a_key_share(tmp_path, database):
    with World(tmp_path / "hub", database, agreement_bytes=50_000) as world:

        def put(revision):
            return world.ask("owner", "PUT", "/v1/projects/{p}/agreement", padded(revision, 20_000))

        first = world.open_project()
        assert put(1).status_code == 201
        world.open_project("another")
        assert put(1).status_code == 201
        refused(put(2), "QUOTA_EXCEEDED", 413)
        world.project = first
        refused(put(2), "QUOTA_EXCEEDED", 413)
        # What is there may be sent again, and a small file still has room.
        assert put(1).status_code == 200
        assert world.put_agreement(make_project(revision=2)).status_code == 201


def test_a_key_opens_so_many_projects_and_another_key_its_own(tmp_path, database):
    with World(tmp_path / "hub", database, projects_per_key=1) as world:
        world.open_project()
        refused(world.ask("owner", "POST", "/v1/projects", {"name": "two"}), "QUOTA_EXCEEDED", 413)
        world.allow("other")
        assert world.ask("other", "POST", "/v1/projects", {"name": "of another"}).status_code == 201
