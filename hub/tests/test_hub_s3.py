"""A hub whose blobs lie in an object store."""

import fsspec
import pytest

from datacollab.bundle import digest
from datacollab.errors import ExchangeError
from datacollab_hub.store import Blobs, Store
from hub_world import agreed_world, bundle, refused
from s3_server import run_bucket

boto3 = pytest.importorskip("boto3", reason="the extra s3 is not installed, or what plays its server")
SHARE = bundle("share", "north", party="north", size=2**21)


@pytest.fixture
def bucket():
    with run_bucket() as url:
        yield url


@pytest.fixture
def world(tmp_path, bucket):
    with agreed_world(tmp_path / "hub", blobs=f"{bucket}/of/a-hub") as world:
        yield world


def objects(bucket):
    found = boto3.client("s3").list_objects_v2(Bucket=bucket.removeprefix("s3://"))
    return sorted(each["Key"] for each in found.get("Contents", ()))


@pytest.mark.slow
def test_what_is_sent_comes_back_and_goes_with_its_tombstone(world, bucket):
    assert world.send("north", "share", SHARE, piece=2**22).status_code == 201
    assert len(objects(bucket)) == 2
    assert all(name.startswith("of/a-hub/") for name in objects(bucket))
    place = f"/v1/projects/{{p}}/files/{digest(SHARE)}"
    assert world.ask("analyst", "GET", place).content == SHARE
    part = world.ask("analyst", "GET", place, headers={"Range": "bytes=1048570-1048585"})
    assert (part.status_code, part.content) == (206, SHARE[1048570:1048586])
    assert world.ask("north", "DELETE", place).status_code == 200
    assert objects(bucket) == ["of/a-hub/hub-id"]
    assert world.ask("analyst", "GET", place).status_code == 404


@pytest.mark.slow
def test_an_upload_in_parts_goes_on_where_it_was(world, bucket):
    upload = world.start("north", "share", SHARE).json()["upload"]
    half = len(SHARE) // 2
    assert world.part("north", upload, 0, SHARE[:half]).status_code == 204
    assert world.part("north", upload, half, SHARE[half:]).status_code == 201
    assert world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARE)}").content == SHARE
    assert len(objects(bucket)) == 2


@pytest.mark.slow
def test_blobs_of_nobody_are_swept_and_those_of_another_hub_refused(world, bucket, tmp_path):
    assert world.send("north", "share", SHARE, piece=2**22).status_code == 201
    # Written by another process than the one that sweeps.
    boto3.client("s3").put_object(Bucket=bucket.removeprefix("s3://"), Key=f"of/a-hub/files/{'c' * 32}", Body=b"left")
    named = {name for name in world.store.blobs.names() if not name.endswith("c" * 32)}
    assert world.store.blobs.sweep(named, older_than=2e10) == 1
    assert world.store.blobs.names() == named
    with pytest.raises(ExchangeError, match="do not belong together"):
        Store.opened(tmp_path / "other", blobs=f"{bucket}/of/a-hub")


@pytest.mark.slow
def test_a_store_that_is_gone_is_told(world, bucket):
    assert world.client.get("/readyz").status_code == 200
    client = boto3.client("s3")
    for name in objects(bucket):
        client.delete_object(Bucket=bucket.removeprefix("s3://"), Key=name)
    client.delete_bucket(Bucket=bucket.removeprefix("s3://"))
    world.now += 3600
    assert world.client.get("/readyz").status_code == 503


@pytest.mark.slow
def test_what_another_process_wrote_is_there_after_a_sweep(bucket):
    one = Blobs(f"{bucket}/of/a-hub")
    # Else both would share one file system, and what it remembers.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    other = Blobs(f"{bucket}/of/a-hub")
    first, _, _ = one.write("files", [b"first"])
    assert one.sweep({first}, older_than=2e10) == 0
    second, _, _ = other.write("files", [b"second"])
    assert b"".join(one.read(second)) == b"second"
    with one.opened(second) as file:
        assert file.read() == b"second"
    assert one.names() == {first, second}


@pytest.fixture
def stoppable(monkeypatch):
    """A bucket, and its server."""
    moto = pytest.importorskip("moto.server", reason="moto, which plays the server, is not installed")
    started = []

    class Noted(moto.ThreadedMotoServer):
        def start(self):
            started.append(self)
            super().start()

    monkeypatch.setattr(moto, "ThreadedMotoServer", Noted)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with run_bucket() as url:
        yield url, started[0]


@pytest.mark.slow
def test_a_store_that_is_not_reached_is_no_fault_of_the_hub(stoppable, tmp_path):
    url, server = stoppable
    with agreed_world(tmp_path / "hub", blobs=f"{url}/of/a-hub") as world:
        assert world.send("north", "share", SHARE, piece=2**22).status_code == 201
        place = f"/v1/projects/{{p}}/files/{digest(SHARE)}"
        sums = bundle("sums", "north", party="north")
        upload = world.start("north", "sums", sums).json()["upload"]
        server.stop()
        assert world.client.get("/readyz").status_code == 503
        refused(world.ask("analyst", "GET", place), "UNAVAILABLE", 503)
        refused(world.part("north", upload, 0, sums), "UNAVAILABLE", 503)
        # Its bytes go when the store is there again, and nobody is given them from now on.
        assert world.ask("north", "DELETE", place).status_code == 200
        assert world.files("north")[0]["withdrawn"] is not None
        with pytest.raises(OSError, match="the place for blobs fails"):
            world.store.blobs.sweep(set(), older_than=2e10)
