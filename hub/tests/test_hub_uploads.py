"""Uploads: whole and accepted, or not there."""

import threading
import time

import pytest

from datacollab.bundle import digest, pack
from datacollab.errors import ExchangeError
from datacollab_hub.rules import Person, Role
from datacollab_hub.service import Announced, append_part, own_upload, start_upload
from datacollab_hub.store import Blobs
from hub_world import FINGERPRINTS, KEYS, PROJECT, World, bundle, make_project, refused

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
        patched.setattr("datacollab_hub.service._continuing.finish", killed)
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
    assert agreed.blobs() == []
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
        answer = agreed.ask(
            "north", "PATCH", f"/v1/projects/{{p}}/uploads/{upload}", b"x", headers={"Upload-Offset": offset}
        )
        refused(answer, "REQUEST_MALFORMED", 400)
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
    with World(tmp_path, **limits) as world:
        world.open_project()
        world.put_agreement()
        refused(world.start("north", "share", SHARE, size=3001), "TOO_LARGE", 413)
        assert world.start("north", "sums", SHARE, size=2500).status_code == 201
        refused(world.start("north", "share", SHARE, size=1501), "QUOTA_EXCEEDED", 413)
        assert world.start("south", "share", SHARE, size=1501).status_code == 201
        for number in range(2):
            assert world.start("analyst", "model", SHARE, "north", size=1, sha256=f"{number:064}").status_code == 201
        refused(world.start("analyst", "model", SHARE, "north", size=1, sha256="f" * 64), "QUOTA_EXCEEDED", 413)


def test_what_others_sent_takes_nobodys_room(tmp_path):
    """By which sizes are still taken the analyst would learn how large the anchor is."""
    with World(tmp_path, file_bytes=4000, sender_bytes=4000) as world:
        world.open_project()
        world.put_agreement()
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


def test_blobs_elsewhere(tmp_path):
    """Any place of fsspec; here its memory, where nothing is appended to and renaming is copying."""
    with World(tmp_path, blobs="memory://hub-of-a-test") as world:
        world.open_project()
        world.put_agreement()
        assert world.send("north", "share", SHARE).status_code == 201
        headers = {"Range": "bytes=10-19"}
        answer = world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}", headers=headers)
        assert (answer.status_code, answer.content) == (206, SHARE[10:20])
        assert world.client.get("/readyz").json() == {"status": "ready"}
        assert world.blobs() == []


def test_two_at_once_make_one_file(agreed):
    """Both requests for the last part found the upload as it was; the database lets one of them through."""
    person = Person(KEYS["north"].public, frozenset({Role.PARTY}))
    announced = Announced("share", digest(SHARE), len(SHARE), None)
    upload = start_upload(agreed.hub, person, agreed.project, announced)["upload"]
    stale = own_upload(agreed.hub, person, agreed.project, upload)
    assert append_part(agreed.hub, person, stale, 0, SHARE) == {"file": digest(SHARE)}
    with pytest.raises(Exception, match="nothing of this name"):
        append_part(agreed.hub, person, stale, 0, SHARE)
    assert len(agreed.files("north")) == 1
    assert len(agreed.blobs()) == 1


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
